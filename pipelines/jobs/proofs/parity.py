"""The parity certificate: one flow over one span, computed in several ways, into runs of their own, and compared.

Engines, cuts and buckets do not matter: that is the product's promise, and this is where it is proved. What is compared
is what the tables hold, read back.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipelines.engine.columnar.columns import NOT_HASHED
from pipelines.engine.columnar.content import ContentHash, content_hash
from pipelines.engine.commits.entry import LEDGER
from pipelines.engine.commits.leg_roots import root_of, roots_of
from pipelines.engine.commits.readers import log_state, read_carry, read_ledger, read_stream
from pipelines.engine.tasks.carry import NOT_HASHED as CARRY_NOT_HASHED
from pipelines.engine.tasks.task import carry_key, carry_parts
from pipelines.errors import Exit
from pipelines.flows.definition import flow_to_json
from pipelines.flows.feeds.spec import Clock
from pipelines.flows.grid import intervals
from pipelines.flows.legs import in_legs, legs_of
from pipelines.flows.model import Flow
from pipelines.jobs.environment.engines import engine_named
from pipelines.jobs.environment.errors import JobError, WrongUse
from pipelines.jobs.environment.parameters import parameters_of
from pipelines.jobs.environment.settings import load_flow, read_settings
from pipelines.jobs.proofs.certificates import CARRY, ParityCertificate, ParityDifference, ParityWay, keep_certificate
from pipelines.jobs.runs.backfill import Backfill, run_backfill
from pipelines.jobs.runs.given_up import given_up
from pipelines.jobs.runs.regional import run_in_legs
from pipelines.jobs.runs.remade import make_anew, require_remade

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import pyarrow as pa

    from pipelines.engine.tasks.stages import Engine
    from pipelines.jobs.environment.settings import Settings
    from pipelines.jobs.runs.backfill import Interval

COMMAND = "parity"
BUCKETS = (1, 7, 16)
EPOCHS = 3
"""Epochs of an interval in a live way."""


def ways_of(flow: Flow, main_run: str = "", live_run: str = "") -> list[ParityWay]:
    """List the ways of a certificate.

    Args:
        flow: its own number of buckets is one of those tried; the default where it leaves it to its runs.
        main_run: a run that has been backfilled by Spark, interval by interval, already.
        live_run: a run that played the span live.
    """
    own = flow.buckets or Flow.buckets
    legs = len(legs_of(flow))
    regional = ParityWay(name=f"live, in {legs} legs", engine="core", cut="epoch by epoch", buckets=own, legs=legs)
    live = [ParityWay(name="Spark, live", engine="stream", cut="epoch by epoch", buckets=own, run=live_run)]
    return [
        ParityWay(name="plain core", engine="core", cut="by interval", buckets=own, plain=True),
        *(ParityWay(name="compiled core", engine="core", cut="one shot", buckets=buckets) for buckets in BUCKETS),
        *(ParityWay(name="Spark", engine="batch", cut="one shot", buckets=buckets) for buckets in BUCKETS),
        ParityWay(name="Spark", engine="batch", cut="by interval", buckets=own, run=main_run),
        *([regional] if legs > 1 else []),
        *(live if live_run else []),
    ]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What a certificate is made for."""

    settings: Settings
    flow: Flow
    spans: Sequence[Interval]
    spark: Engine
    main_run: str = ""
    live_run: str = ""


def certify(trial: Trial, tell: Callable[[str], None]) -> ParityCertificate:
    """Compute a flow in every way and compare what the tables hold.

    Args:
        trial: flow, span and engines.
        tell: told each way when it is done.

    Raises:
        WrongUse: a run that is made anew is there and is somebody else's; nothing was begun.
        LeaseHeldError: somebody is at work in one of those runs.
        JobError: a way could not be run.
    """
    require_ways(trial.settings, trial.flow)
    flow, spans = trial.flow, trial.spans
    tables = (*flow.tables(), LEDGER, CARRY)
    certificate = ParityCertificate(flow=flow.name, start=spans[0][0], end=spans[-1][1], tables=tables)
    roots = []
    for number, way in enumerate(ways_of(flow, trial.main_run, trial.live_run)):
        begun = time.perf_counter()
        roots.append(_compute(trial, way, number))
        certificate.ways.append(way)
        certificate.hashes.append(table_hashes(roots[-1], flow, certificate.start, certificate.end))
        certificate.seconds.append(time.perf_counter() - begun)
        same = certificate.hashes[-1] == certificate.hashes[0]
        tell(f"{way.title}: {certificate.seconds[-1]:.1f} s, {'equal' if same else 'DIFFERENT'}")
        certificate.differences += differences(certificate, flow, roots, number)
    spoken_for = [
        trial.settings.root(flow.name),
        *(root for root, way in zip(roots, certificate.ways, strict=True) if way.run),
    ]
    certificate.gaps = tuple(gap for root in dict.fromkeys(spoken_for) for gap in given_up(root))
    return certificate


def way_root(settings: Settings, flow: Flow, number: int) -> Path:
    """Give the root of the run in which a way is computed, anew each time."""
    return settings.root(flow.name, f"parity-way-{number}")


def require_ways(settings: Settings, flow: Flow) -> None:
    """See that no run has a name of those that a certificate makes anew, but those that one made.

    Raises:
        WrongUse: a run is there that no certificate made.
    """
    for number, _ in enumerate(ways_of(flow)):
        require_remade(way_root(settings, flow, number), COMMAND)


def _compute(trial: Trial, way: ParityWay, number: int) -> Path:
    if way.run:
        return trial.settings.root(trial.flow.name, way.run)
    root = way_root(trial.settings, trial.flow, number)
    make_anew(root, trial.flow.name, COMMAND)
    flow = replace(trial.flow, buckets=way.buckets)
    whole = [(trial.spans[0][0], trial.spans[-1][1])]
    spans = whole if way.cut == "one shot" else list(trial.spans)
    base = trial.settings.feeds_base(trial.flow)
    if way.legs:
        wanted = Backfill(flow=replace(flow, legs=in_legs(flow)), root=root, base=base, engine=engine_named(way.engine))
        run_in_legs(wanted, whole[0][0], _readings(spans))
    elif way.plain:
        _run_plain(flow, root, base, spans)
    else:
        engine = trial.spark if way.engine == "batch" else engine_named(way.engine)
        run_backfill(Backfill(flow=flow, root=root, base=base, engine=engine), spans)
    return root


def _readings(spans: Sequence[Interval]) -> list[int]:
    """Give the readings at which a live way lands: so many an interval, the last one at its end."""
    return [start + (end - start) * part // EPOCHS for start, end in spans for part in range(1, EPOCHS + 1)]


def _run_plain(flow: Flow, root: Path, base: Path, spans: Sequence[Interval]) -> None:
    """Backfill in a child process whose operators are not compiled."""
    request = {"flow": flow_to_json(flow), "root": str(root), "base": str(base), "intervals": spans, "engine": "core"}
    run = subprocess.run(
        [sys.executable, "-m", "pipelines.jobs.runs.backfill"],
        input=json.dumps(request),
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        raise JobError(f"the plain core could not be run: {run.stderr.strip()[-400:]}")


def table_hashes(root: Path, flow: Flow, start: int, end: int) -> dict[str, ContentHash]:
    """Hash what the tables of a run hold of a span, read back: each stream, the ledger, and the carry at its end."""
    found = {
        name: content_hash(rows_between(root, flow, name, start, end), leave_out=NOT_HASHED)
        for name in (*flow.tables(), LEDGER)
    }
    return found | {CARRY: carry_hash(root, flow, end)}


def carry_hash(root: Path, flow: Flow, end: int) -> ContentHash:
    """Hash the carry of a run, in all its legs, at the commits that end at an instant, in ticks."""
    newest = {
        each: max((entry for entry in log_state(each).published if entry.span.end == end), key=lambda e: e.commit)
        for each in roots_of(root)
    }
    parts = []
    for name, names in carry_parts(flow).items():
        own, stream = root_of(root, name), flow.streams[name]
        for part in names:
            carry = read_carry(own, name, part, newest[own].commit, key=carry_key(stream, part))
            parts.append(content_hash(carry, leave_out=CARRY_NOT_HASHED))
    return sum(parts, ContentHash(0, 0, 0))


def rows_between(root: Path, flow: Flow, name: str, start: int, end: int) -> pa.Table:
    """Read what readers see of a stream or the ledger, in its order; from `start` to `end`, in ticks."""
    if name == LEDGER:
        return read_ledger(root, start, end)
    return read_stream(root, name, start, end, key=flow.key_of(name))


def differences(certificate: ParityCertificate, flow: Flow, roots: Sequence[Path], way: int) -> list[ParityDifference]:
    """Find the first row of each table in which a way differs from the first one; of the carry none is looked for.

    Args:
        certificate: with the hashes of both ways.
        flow: what was run.
        roots: of the run of each way.
        way: its number.
    """
    found = []
    for table in certificate.tables:
        if table != CARRY and certificate.hashes[way][table] != certificate.hashes[0][table]:
            expected, came = (
                rows_between(root, flow, table, certificate.start, certificate.end).drop_columns(list(NOT_HASHED))
                for root in (roots[0], roots[way])
            )
            found.append(first_difference(table, way, expected, came))
    return found


def first_difference(table: str, way: int, expected: pa.Table, came: pa.Table) -> ParityDifference:
    """Find the first row in which two tables, both in stream order, differ.

    Args:
        table: its name.
        way: number of the way that `came` is of.
        expected: the reference's rows.
        came: the other's rows; they differ somewhere.
    """
    low, high = 0, min(expected.num_rows, came.num_rows)
    if expected.slice(0, high).equals(came.slice(0, high)):
        low = high
    while low < high:
        middle = (low + high) // 2
        if expected.slice(low, middle - low + 1).equals(came.slice(low, middle - low + 1)):
            low = middle + 1
        else:
            high = middle
    rows = [table.slice(low, 1).to_pylist() for table in (expected, came)]
    return ParityDifference(
        table=table,
        way=way,
        position=low + 1,
        expected=rows[0][0] if rows[0] else None,
        came=rows[1][0] if rows[1] else None,
    )


def print_certificate(  # noqa: PLR0913 - the options of the command
    name: str,
    start: str,
    end: str,
    as_json: bool,  # noqa: FBT001 - the command's flag
    params: Sequence[str],
    echo: Callable[[str], None],
) -> int:
    """Make a certificate and print it; 0 where all is equal, 1 where not."""
    settings = read_settings()
    flow = load_flow(settings, name, parameters_of(params))
    if flow.clock is Clock.WALL:
        raise WrongUse(
            f"a certificate needs a feed that can be read again and again; what comes in live cannot: pulseline replay "
            f"{name} plays what a run took in and compares"
        )
    spark = engine_named("batch", settings.master, settings.spark_log, settings.spark)
    trial = Trial(settings=settings, flow=flow, spans=intervals(flow, start, end), spark=spark)
    try:
        certificate = certify(trial, (lambda _: None) if as_json else echo)
    finally:
        spark.close()
    if settings.root(flow.name).is_dir():
        keep_certificate(settings.root(flow.name), certificate)
    for line in json_lines(certificate) if as_json else text_lines(certificate):
        echo(line)
    return Exit.FINE if certificate.equal else Exit.CHECK_FAILED


def json_lines(certificate: ParityCertificate) -> list[str]:
    """Give one JSON object a way and table."""
    return [
        json.dumps(
            {
                "flow": certificate.flow,
                "table": table,
                "way": way.title,
                "engine": way.engine,
                "cut": way.cut,
                "buckets": way.buckets,
                "rows": hashes[table].rows,
                "hash": hashes[table].text,
                "equal": hashes[table] == certificate.hashes[0][table],
                **({"gaps": [gap._asdict() for gap in certificate.gaps]} if certificate.gaps else {}),
            }
        )
        for way, hashes in zip(certificate.ways, certificate.hashes, strict=True)
        for table in certificate.tables
    ]


def text_lines(certificate: ParityCertificate) -> list[str]:
    """Give the certificate in words: one line a table, then what differs."""
    width = max(len(table) for table in certificate.tables)
    lines = [f"{'':{width}}  {'rows':>10}  content hash                      ways"]
    for table in certificate.tables:
        reference = certificate.hashes[0][table]
        same = sum(hashes[table] == reference for hashes in certificate.hashes)
        word = "equal" if same == len(certificate.ways) else f"{len(certificate.ways) - same} DIFFERENT"
        digits = reference.text.partition(":")[2]
        lines.append(f"{table:{width}}  {reference.rows:>10,}  {digits}  {same} of {len(certificate.ways)} {word}")
    for found in certificate.differences:
        way = certificate.ways[found.way].title
        lines.append(f"{found.table}, row {found.position:,}: {way} gave {found.came}, not {found.expected}")
    verdict = (
        "equal: every engine, cut and number of buckets gave the same rows of every table, byte for byte"
        if certificate.equal
        else "DIFFERENT: see the rows above; the first way is the reference"
    )
    return [*lines, *gap_lines(certificate), verdict]


def gap_lines(certificate: ParityCertificate) -> list[str]:
    """Say what the runs of a certificate have lost for ever."""
    return [f"gap: {gap}" for gap in certificate.gaps]
