"""What a report is told, read from the tables of a run: the whole run, or one of its intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from importlib import metadata
from typing import TYPE_CHECKING

import pyarrow as pa

from expectations import report
from expectations.decided import ACCEPTED
from pipelines.engine.columnar.clock import wall_now
from pipelines.engine.commits.entry import LEDGER, CommitKind, State
from pipelines.engine.commits.leg_roots import leg_of
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.commits.plan import address_of
from pipelines.engine.commits.quality import before, read_quality
from pipelines.engine.commits.readers import read_ledger, read_stream
from pipelines.engine.landing.manifest import load_manifest
from pipelines.flows.check import is_of_each
from pipelines.flows.definition import flow_from_json
from pipelines.flows.model import Flow, is_side, main_of
from pipelines.jobs.environment.asked_for import followable
from pipelines.jobs.facts.asked import (
    Question,
    counting,
    is_of_many,
    not_asked,
    question,
    still_asked,
    tells_of_each,
    tells_of_page,
)
from pipelines.jobs.facts.current import is_current, made_good
from pipelines.jobs.facts.data_docs import docs_of
from pipelines.jobs.facts.delays import advising, chosen_delay, delays_of
from pipelines.jobs.facts.failing_rows import FailingRows
from pipelines.jobs.facts.let_pass import undecided
from pipelines.jobs.facts.narrowed import narrowed
from pipelines.jobs.facts.report_live import epoch_facts, read_legs, read_presence, read_region
from pipelines.jobs.runs.counts import counted
from pipelines.jobs.text.drawing import stream_words
from pipelines.operators.specs import SPECS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pipelines.engine.commits.history import Entry, LogState
    from pipelines.engine.commits.history import Span as CommitSpan
    from pipelines.engine.commits.quality import Quality
    from pipelines.flows.model import Stream
    from pipelines.jobs.runs.known import KnownRun

PACKAGES = ("pulseline", "pyspark", "deltalake", "pyarrow", "numba", "numpy", "great-expectations")
Span = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Reported:
    """The run, or the interval of it, that a page is about."""

    known: KnownRun
    span: Span | None = None
    """[start, end) of the interval, in ticks; None for the whole run."""

    @cached_property
    def flow(self) -> Flow:
        """Give the flow that made the newest commit."""
        return flow_from_json(self.known.definition)

    @property
    def root(self) -> Path:
        """Give the folder of the run's tables."""
        return self.known.root

    @property
    def run(self) -> str:
        """Give the name of the run."""
        return self.known.run

    @property
    def state(self) -> LogState:
        """Give what the log says."""
        return self.known.state

    def has(self, entry: Entry) -> bool:
        """Say whether a commit is of the interval."""
        return self.span is None or (entry.span.start < self.span[1] and self.span[0] < entry.span.end)

    @cached_property
    def parts(self) -> tuple[Reported, ...]:
        """Give the page by the legs of its run, the one that takes what lands first; itself alone in one piece."""
        return (self, *(replace(self, known=part) for part in self.known.parts[1:]))

    @cached_property
    def leg(self) -> str:
        """Name the leg that this is, of a run in several; empty for a run in one piece."""
        return leg_of(self.root)

    def of(self, table: str) -> Reported:
        """Give the part that makes a stream."""
        own = self.known.of(table)
        return next(part for part in self.parts if part.root == own.root)

    @property
    def published(self) -> tuple[Entry, ...]:
        """Give the published commits, in the order of their spans."""
        return tuple(entry for entry in self.state.published if self.has(entry))

    @property
    def commits(self) -> tuple[Entry, ...]:
        """Give every commit, whatever became of it."""
        return tuple(entry for entry in self.state.commits.values() if self.has(entry))

    @property
    def before(self) -> Entry | None:
        """Give the last published commit before the interval."""
        start = None if self.span is None else self.span[0]
        return next((e for e in reversed(self.state.published) if start is not None and e.span.end <= start), None)

    @property
    def bounds(self) -> tuple[int | None, int | None]:
        """Give where the page begins and ends."""
        if self.span is not None:
            return self.span
        spans = [entry.span for entry in self.published]
        return min((span.start for span in spans), default=None), max((span.end for span in spans), default=None)

    def has_all_of(self, check: Quality) -> bool:
        """Say whether a verdict is of no more than the page's commits: an epoch over midnight is judged whole."""
        first, last = self.bounds
        if first is None or last is None:
            return False
        spans = [entry.span for entry in self.published]
        begin, end = min([first, *(span.start for span in spans)]), max([last, *(span.end for span in spans)])
        return begin <= check.start and check.end <= end


def read_facts(
    about: Reported, certificate: report.Certificate | None, known: Sequence[Quality] | None = None
) -> report.ReportFacts:
    """Read all that the page says.

    Args:
        about: the run, or the interval of it.
        certificate: of the same span, where one was made.
        known: all that was judged of the run, told by interval as `narrowed` does, where that was read already.
    """
    flow, root = about.flow, about.root
    start, end = about.span or (None, None)
    tables = {name: _rows(about.of(name), name) for name in flow.tables()}
    is_told = about.span in {entry.span for entry in about.published}
    told = known or still_asked(about, read_quality(root))
    judged = before(told if known and is_told else narrowed(about, told), end)
    checks = [each for each in counting(about, judged) if start is None or start < each.end]
    first, last = about.bounds
    now = wall_now()
    stream = chosen_delay(about)
    return report.ReportFacts(
        flow=flow.name,
        about=flow.about,
        run=about.run,
        timezone=flow.timezone,
        start=first,
        end=last,
        next_step=next_step(about, checks),
        of_interval=about.span is not None,
        made_at=now,
        sources=tuple(_sources(flow, root, about.published)),
        streams=tuple(
            report.StreamFacts(name=name, does=_does(flow, name), rows=rows) for name, rows in tables.items()
        ),
        ledger=pa.concat_tables([read_ledger(each.root, start, end, state=each.state) for each in about.parts]),
        commits=tuple(commit_facts(each, entry) for each in about.parts for entry in each.commits),
        epochs=epochs_of(about),
        presence=read_presence(about.known, now) if about.span is None else None,
        legs=read_legs(about.known, flow, now) if about.span is None else (),
        region=read_region(about.known) if about.span is None else None,
        certificate=certificate,
        accounts=tuple(account_facts(each, about.of(each.name)) for each in flow.streams.values() if each.accountable),
        expectations=expectation_facts(about, checks, remembered(about, judged, about.span)),
        data_docs=docs_of(root, checks, about.span),
        unchecked=len(unchecked(about, checks)),
        not_asked=len(not_asked(about, checks)),
        picture=_picture(flow, tables),
        delays=None if stream is None or about.span is not None else delays_of(about, stream),
        advise="" if stream is None else advising(about, stream),
        versions={name: metadata.version(name) for name in PACKAGES},
    )


def _rows(about: Reported, name: str) -> pa.Table:
    start, end = about.span or (None, None)
    return read_stream(about.root, name, start, end, key=about.flow.key_of(name), state=about.state)


def epochs_of(about: Reported) -> tuple[report.EpochFacts, ...]:
    """Tell the published epochs of all legs, as they came."""
    found = [(each.leg, entry) for each in about.parts for entry in each.published if entry.kind is CommitKind.EPOCH]
    return tuple(epoch_facts(entry, leg) for leg, entry in sorted(found, key=lambda each: each[1].at))


def unchecked(about: Reported, checks: Sequence[Quality]) -> list[Entry]:
    """Give the published commits that no current check covers."""
    numbers = {check.commit for check in checks}
    spans = {(check.start, check.end) for check in checks if not check.commit}
    return [
        entry
        for entry in about.published
        if entry.kind in {CommitKind.INTERVAL, CommitKind.EPOCH}
        and entry.commit not in numbers
        and not any(start <= entry.span.start and entry.span.end <= end for start, end in spans)
    ]


def expectation_facts(
    about: Reported, checks: Sequence[Quality], memories: Mapping[Question, report.Memory]
) -> tuple[report.ExpectationFacts, ...]:
    """Gather what was found of each expectation, over all its checks."""
    groups: dict[Question, list[Quality]] = {}
    for check in checks:
        groups.setdefault(question(check), []).append(check)
    # What was judged of an `apply` alone is left of nothing once a run took the place of its commit.
    left = ((name, found) for name, checked in groups.items() if (found := once(about, checked)))
    return tuple(_expectation(about, found, memories.get(name, report.Memory())) for name, found in left)


def remembered(about: Reported, judged: Sequence[Quality], page: Span | None) -> dict[Question, report.Memory]:
    """Give all verdicts of each expectation, by stream and name, those of commits that were replaced among them.

    Args:
        about: the run, or the interval of it.
        judged: what was found, whether it still counts or not; of many intervals together only what does.
        page: the interval that a page is of: only what ends with it or before, and is of no more, whose verdict is none
            of an interval; None for all.
    """
    found: dict[Question, list[report.PastVerdict]] = {}
    for each in judged:
        # What was judged of an `apply`, whose commit has no span, is no interval's; a day of a change of clocks is
        # longer than others.
        if each.start == each.end or _is_of_others(about, each):
            continue
        if page is None or (each.end <= page[1] and each.end - each.start < 2 * (page[1] - page[0])):
            found.setdefault(question(each), []).append(_past(each, stands=is_current(about, each)))
    return {name: report.Memory(tuple(verdicts)) for name, verdicts in found.items()}


def _is_of_others(about: Reported, check: Quality) -> bool:
    """Say whether a check of several intervals together was made before one of them was published anew."""
    return is_of_many(about, check) and not is_current(about, check)


def _past(check: Quality, *, stands: bool) -> report.PastVerdict:
    return report.PastVerdict(
        start=check.start,
        end=check.end,
        commit=check.commit or None,
        at=check.at,
        held=check.held,
        severity=check.severity,
        looked_at=check.looked_at,
        unexpected=check.unexpected,
        stands=stands,
    )


def once(about: Reported, checks: Sequence[Quality]) -> list[Quality]:
    """Leave out checks of one expectation whose rows another has, so that none is counted twice: the newest counts.

    A check of a span that reaches beyond the page counts where nothing else has its rows, and it was asked of each row.
    One of a longer span that holds does not where that of an interval within fails: a mean of all is none of a day.
    """
    by_commit = {check.commit: check for check in checks if check.commit}
    spans: list[Quality] = []
    beyond: list[Quality] = []
    ordered = sorted((check for check in checks if not check.commit), key=lambda each: (each.at, each.end - each.start))
    for span in (each for each in reversed(ordered) if not _is_contradicted(each, checks)):
        inside = [by_commit.get(entry.commit) for entry in about.published if _covers(span, entry.span)]
        newer = all(each is not None and each.at > span.at for each in inside)
        if not about.has_all_of(span):
            beyond += [span] if tells_of_each(about, span) else []
        elif not newer or _breaks_together(about, span):
            spans = _with(spans, span)
    had = {entry.commit for entry in about.published if any(_covers(span, entry.span) for span in spans)}
    kept = [*spans, *(check for number, check in by_commit.items() if number not in had)]
    return sorted(kept or beyond[:1], key=lambda check: check.at)


def _breaks_together(about: Reported, check: Quality) -> bool:
    """Say whether rows of several intervals break a check together: that each holds by itself says nothing of it."""
    return not check.held and not is_of_each(check.expectation) and is_of_many(about, check)


def _with(spans: Sequence[Quality], older: Quality) -> list[Quality]:
    """Add a check to newer ones of other rows; where all hold, one of more rows takes the place of those within."""
    inside = [each for each in spans if each.start < older.end and older.start < each.end]
    if not inside:
        return [*spans, older]
    if older.held and all(each.held and _covers(older, each) for each in inside):
        return [*(each for each in spans if each not in inside), older]
    return list(spans)


def _is_contradicted(wide: Quality, checks: Sequence[Quality]) -> bool:
    """Say whether a check of a longer span holds where the newest one of an interval within does not."""
    if not wide.held:
        return False
    newest: dict[tuple[int, int], Quality] = {}
    for each in sorted(checks, key=lambda each: each.at):
        if _covers(wide, each) and (each.start, each.end) != (wide.start, wide.end):
            newest[each.start, each.end] = each
    return not all(each.held for each in newest.values())


def _broken(about: Reported, check: Quality) -> report.Broken:
    failing = FailingRows(about.root, check.start, check.end, check.commit)
    file = failing.file(check.table, check.expectation)
    told = report.Broken(
        start=check.start, end=check.end, commit=check.commit or None, unexpected=check.unexpected, rows=check.rows
    )
    return replace(told, file=file, link=f"rows/{failing.name}/{file.name}") if file.is_file() else told


def _expectation(about: Reported, found: Sequence[Quality], memory: report.Memory) -> report.ExpectationFacts:
    last, counts = found[-1], _counts(about, found)
    wrong = [check for check in counts if not check.held]
    # What was tried anew and refused counts as nothing where readers see other rows; it is told where those hold.
    refused = (each for each in found if each not in counts and not each.held)
    tried = [each for each in refused if not any(_covers(check, each) for check in wrong)]
    broken = tuple(_broken(about, check) for check in sorted([*wrong, *tried], key=lambda each: each.at))
    return report.ExpectationFacts(
        name=last.expectation,
        table=last.table,
        severity=last.severity,
        sentence=last.sentence,
        remedy=last.remedy,
        looked_at=sum(check.looked_at for check in counts),
        checks=len({(check.start, check.end, check.commit) for check in counts}),
        broken=broken,
        memory=memory,
    )


def _counts(about: Reported, found: Sequence[Quality]) -> list[Quality]:
    """Give checks of different rows: of a commit that nobody sees only where no other rows of its span were judged."""
    published = {0, *(entry.commit for entry in about.published)}
    seen = [check for check in found if check.commit in published]
    unseen = [check for check in found if check not in seen and not any(_covers(each, check) for each in seen)]
    # Of a day that was refused and tried again both wait for somebody's word, and have the same rows.
    again = [check for check in unseen if any(_covers(e, check) and e.commit > check.commit for e in unseen)]
    return [check for check in found if check in seen or (check in unseen and check not in again)]


def _covers(wide: Quality, check: Quality | CommitSpan) -> bool:
    return wide.start <= check.start and check.end <= wide.end


def next_step(about: Reported, checks: Sequence[Quality]) -> str:
    """Give the command to run next: a look at what waits, was rejected, was not checked or fails, or what goes on."""
    known = about.known
    rejected = [entry for entry in about.commits if entry.state is State.REJECTED and not made_good(about, entry)]
    waiting = [entry for entry in about.commits if entry.state is State.WRITTEN]
    missing = unchecked(about, checks)
    if looked_at := waiting or rejected:
        return known.looking_at(looked_at[-1].commit)
    if missing:
        is_of_days = missing[0].kind is CommitKind.INTERVAL
        return checking(about, (missing[0].span.start, missing[-1].span.end) if is_of_days else None)
    # What many days broke together is led to by their run, and on no page of one of them.
    own = checks if about.span is None else [each for each in checks if tells_of_page(about, each)]
    if fails := undecided(about, own):
        entry = about.state.commits.get(fails.commit)
        is_whole = entry is not None and (entry.kind is not CommitKind.INTERVAL or tells_of_each(about, fails))
        return checking(about, None if is_whole else (fails.start, fails.end))
    if others := not_asked(about, checks):
        is_of_days = others[0].kind is CommitKind.INTERVAL
        return checking(about, (others[0].span.start, others[-1].span.end) if is_of_days else about.span)
    if any(entry.kind is CommitKind.EPOCH for entry in about.published):
        return known.command("status")
    return known.next_command() if about.published else known.first_command()


def checking(about: Reported, span: Span | None) -> str:
    """Spell the check of a span, which says what to run where something fails; of all that is published without one."""
    ends = map(about.known.moments.argument, span or ())
    return about.known.command(
        "check", *(word for pair in zip(("--start", "--end"), ends, strict=False) for word in pair)
    )


def _sources(flow: Flow, root: Path, published: tuple[Entry, ...]) -> list[report.SourceFacts]:
    numbers = [number for entry in published for number in entry.sequences]
    landed = [load_manifest(landed_path(root), number) for number in numbers]
    return [
        report.SourceFacts(
            name=name,
            feed=source.feed.where,
            rows=sum(sequence.sources[name].rows for sequence in landed),
        )
        for name, source in flow.sources.items()
    ]


def _does(flow: Flow, name: str) -> str:
    """Say in words what the operator of a stream does."""
    if is_side(name):
        owner = flow.streams[main_of(name)]
        return f"what {owner.name} set aside: {SPECS[owner.operator].aside}"
    words = stream_words(flow.streams[name])
    first = next(place for place, word in enumerate(words) if word.startswith("= "))
    return "; ".join(words[first : first + 2]).removeprefix("= ")


def commit_facts(about: Reported, entry: Entry) -> report.CommitFacts:
    """Tell a commit as it stands."""
    state = about.state
    later = state.successors.get(entry.commit)
    replaced = ", ".join(str(number) for number in entry.supersedes)
    note = f"superseded by {later}" if later else (f"supersedes {replaced}" if replaced else "")
    said = entry.verdict or ""
    if entry.state is State.REJECTED:
        note = said
    elif said.startswith(ACCEPTED):
        note = "; ".join(filter(None, (said, note)))
    streams = [name for name in entry.counts if name not in {"landed", LEDGER}]
    durations = [value for value in entry.durations.values() if isinstance(value, int | float)]
    hashes = list(entry.hashes.values())
    content = next((said for said in reversed(hashes) if not said.startswith("0:")), hashes[-1] if hashes else None)
    return report.CommitFacts(
        number=entry.commit,
        kind=entry.kind.value,
        state="superseded" if later else entry.state.value,
        start=entry.span.start,
        end=entry.span.end,
        rows=sum(map(entry.rows_of, streams)) if entry.state is not State.INTENT else None,
        seconds=sum(durations) / 1000 if durations else None,
        hash=content,
        note=note,
        leg=about.leg,
        asked_by=followable(address_of(entry)),
    )


def account_facts(stream: Stream, about: Reported) -> report.Account:
    """Hold an operator to the account of rows, over the published commits; what it held before came in earlier."""
    before = _held_before(stream, about)
    unaccounted = f"{stream.name} late_cti dropped" if SPECS[stream.operator].joins_edges else ""
    rows_in = main = side = dropped = 0
    held = before
    for entry in about.published:
        count = counted(entry, stream.name)
        rows_in += count.get("in", 0)
        main += count.get("passed", 0)
        # Also what a flow of before set aside, and the one of now does not.
        side += sum(entry.rows_of(name) for name in entry.counts if is_side(name) and main_of(name) == stream.name)
        lines = counted(entry, LEDGER).items()
        dropped += sum(
            rows
            for words, rows in lines
            if words.split()[0] == stream.name and words.split()[2] == "dropped" and words != unaccounted
        )
        held = count.get("held", held)
    return report.Account(
        stream=stream.name, rows_in=rows_in, main=main, side=side, dropped=dropped, held=held - before
    )


def _held_before(stream: Stream, about: Reported) -> int:
    if about.before is not None:
        return counted(about.before, stream.name).get("held", 0)
    first = next(iter(about.published), None)
    # A run may begin with the carry of another one.
    return counted(first, stream.name).get("held", 0) if first and first.kind is CommitKind.ADOPT else 0


def _picture(flow: Flow, tables: Mapping[str, pa.Table]) -> report.Picture | None:
    """Choose what the charts draw: of the streams that advance time, else of those with rows of a source, the fullest.

    Of several as full, the last.
    """
    drawn = [stream for stream in flow.streams.values() if flow.sources_of(stream.name)]
    if not drawn:
        return None
    punctual = [stream for stream in drawn if stream.operator == "advance_time" and stream.sides]
    punctual = punctual or [stream for stream in drawn if stream.operator == "advance_time"]
    stream = max(reversed(punctual or drawn), key=lambda each: tables[each.name].num_rows)
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
