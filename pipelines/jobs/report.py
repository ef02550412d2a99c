"""From the tables of a run to the page: read the facts, render them, write the file."""

from __future__ import annotations

import os
from importlib import metadata
from typing import TYPE_CHECKING

from expectations import report
from pipelines.engine.history import CommitKind, State
from pipelines.engine.lease import wall_ticks
from pipelines.engine.manifests import read_sequence
from pipelines.engine.readers import log_state, read_ledger, read_stream
from pipelines.flows.model import DIVERTED
from pipelines.jobs.counts import counted
from pipelines.jobs.drawing import stream_words

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pyarrow as pa

    from pipelines.engine.history import Entry, LogState
    from pipelines.flows.model import Flow, Stream
    from pipelines.jobs.parity import Certificate

PACKAGES = ("pulseline", "pyspark", "deltalake", "pyarrow", "numba", "numpy")
KINDS = frozenset({"data", "start", "end", "timer", "cti"})


def write_page(flow: Flow, root: Path, run: str, certificate: Certificate | None = None) -> Path:
    """Make the page of a run from its tables.

    Args:
        flow: the model.
        root: the run's folder.
        run: its name.
        certificate: of the same span, where one was made.

    Returns:
        The file, in the run's folder.
    """
    facts = read_facts(flow, root, run, certificate)
    page = root / "report" / "index.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    draft = page.with_suffix(".draft")
    draft.write_text(report.render(facts), encoding="utf-8")
    os.replace(draft, page)  # noqa: PTH105 - one step, also over a page that stands
    return page


def read_facts(flow: Flow, root: Path, run: str, certificate: Certificate | None) -> report.ReportFacts:
    """Read all that the page says of a run."""
    state = log_state(root)
    published = state.published
    ledger = read_ledger(root, state=state)
    tables = {name: read_stream(root, name, key=flow.key_of(name), state=state) for name in flow.tables()}
    return report.ReportFacts(
        flow=flow.name,
        about=flow.about,
        run=run,
        timezone=flow.timezone,
        start=min((entry.span.start for entry in published), default=None),
        end=max((entry.span.end for entry in published), default=None),
        next_step=_next_step(flow, run, published),
        made_at=wall_ticks(),
        sources=tuple(_sources(flow, root, published)),
        streams=tuple(
            report.StreamFacts(name=name, does=_does(flow, name), rows=rows) for name, rows in tables.items()
        ),
        ledger=ledger,
        commits=tuple(_commit(state, entry) for entry in state.commits.values()),
        epochs=tuple(_epoch(entry) for entry in published if entry.kind is CommitKind.EPOCH),
        certificate=None if certificate is None else _certificate(certificate),
        accounts=tuple(_account(stream, published) for stream in flow.streams.values()),
        picture=_picture(flow, tables),
        versions={name: metadata.version(name) for name in PACKAGES},
    )


def _next_step(flow: Flow, run: str, published: tuple[Entry, ...]) -> str:
    if any(entry.kind is CommitKind.EPOCH for entry in published):
        return f"pulseline status {flow.name} --run {run}"
    return f"pulseline run {flow.name} --start ... --end ..."


def _sources(flow: Flow, root: Path, published: tuple[Entry, ...]) -> list[report.SourceFacts]:
    numbers = [number for entry in published for number in entry.sequences]
    landed = [read_sequence(root / "landing" / "a", number) for number in numbers]
    return [
        report.SourceFacts(
            name=name,
            feed=source.feed.name or ", ".join(source.feed.paths),
            rows=sum(sequence.sources[name].rows for sequence in landed),
        )
        for name, source in flow.sources.items()
    ]


def _does(flow: Flow, name: str) -> str:
    """Say in words what the operator of a stream does."""
    if name.endswith(DIVERTED):
        return f"what {name.removesuffix(DIVERTED)} set aside: events behind a promise"
    words = stream_words(flow.streams[name])
    first = next(place for place, word in enumerate(words) if word.startswith("= "))
    return "; ".join(words[first : first + 2]).removeprefix("= ")


def _commit(state: LogState, entry: Entry) -> report.CommitFacts:
    later = state.successors.get(entry.commit)
    replaced = ", ".join(str(number) for number in entry.supersedes)
    note = f"superseded by {later}" if later else (f"supersedes {replaced}" if replaced else "")
    counts = [counted(entry, name) for name in entry.counts if name not in {"landed", "ledger"}]
    durations = [value for value in entry.durations.values() if isinstance(value, int | float)]
    content = entry.hashes.get(list(entry.hashes)[-1]) if entry.hashes else None
    return report.CommitFacts(
        number=entry.commit,
        kind=entry.kind.value,
        state="superseded" if later else entry.state.value,
        start=entry.span.start,
        end=entry.span.end,
        rows=sum(_rows(count) for count in counts) if entry.state is not State.INTENT else None,
        seconds=sum(durations) / 1000 if durations else None,
        hash=content,
        note=note,
    )


def _epoch(entry: Entry) -> report.EpochFacts:
    found = entry.detail.get("lateness")
    late = found if isinstance(found, dict) else {}
    return report.EpochFacts(
        number=entry.commit,
        at=entry.at,
        idle=entry.idle,
        timers=late.get("timers", 0),
        p50_ms=late.get("p50_ms"),
        p99_ms=late.get("p99_ms"),
    )


def _rows(count: Mapping[str, int]) -> int:
    return sum(rows for kind, rows in count.items() if kind in KINDS)


def _account(stream: Stream, published: tuple[Entry, ...]) -> report.Account:
    """Hold an operator to the account of rows, over all published commits."""
    rows_in = main = side = dropped = held = 0
    for entry in published:
        count = counted(entry, stream.name)
        rows_in += count.get("in", 0)
        main += count.get("passed", 0)
        side += sum(_rows(counted(entry, name)) for name in stream.sides)
        lines = counted(entry, "ledger").items()
        dropped += sum(
            rows for words, rows in lines if words.split()[0] == stream.name and words.split()[2] == "dropped"
        )
        held = count.get("held", held)
    return report.Account(stream=stream.name, rows_in=rows_in, main=main, side=side, dropped=dropped, held=held)


def _picture(flow: Flow, tables: Mapping[str, pa.Table]) -> report.Picture | None:
    """Choose what the charts draw: the last stream that advances time, else the last stream."""
    if not flow.streams:
        return None
    punctual = [stream for stream in flow.streams.values() if stream.operator == "advance_time"]
    stream = punctual[-1] if punctual else list(flow.streams.values())[-1]
    source = flow.sources[flow.sources_of(stream.name)[0]]
    key = next((name for name in source.key if name in tables[stream.name].column_names), None)
    payload = [name for name in ("carrier", "flight", "dest") if name in tables[stream.name].column_names]
    return report.Picture(
        stream=stream.name,
        side=next(iter(stream.sides), None),
        key=key,
        delay=getattr(stream.policy, "delay", None),
        tell=tuple(payload),
    )


def _certificate(made: Certificate) -> report.Certificate:
    return report.Certificate(
        ways=tuple(
            report.Way(engine=way.name, buckets=way.buckets, cut=way.cut, seconds=seconds)
            for way, seconds in zip(made.ways, made.seconds, strict=True)
        ),
        rows=tuple(
            report.CertificateRow(stream=table, hashes=tuple(hashes[table].text for hashes in made.hashes))
            for table in made.tables
        ),
        differences=tuple(
            report.Difference(
                stream=found.table, way=found.way, position=found.position, expected=found.expected, came=found.came
            )
            for found in made.differences
        ),
    )
