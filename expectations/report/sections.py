"""The sections of the page, in their order. A new one is an entry in `SECTIONS`, a view here and a template beside it.

A view turns facts into what its template writes, or gives `None` where the facts have nothing for it: the section is
then left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from expectations.report.buffers import buffers_view
from expectations.report.calendar import calendar_view
from expectations.report.charts.arrivals import arrivals
from expectations.report.charts.days import days
from expectations.report.charts.delays import delay_charts
from expectations.report.charts.lateness import lateness
from expectations.report.charts.live import commit_pace, heartbeat_lateness
from expectations.report.charts.points import scene
from expectations.report.checks import checks_view
from expectations.report.ledger import LedgerView, ledger_view
from expectations.report.legs import legs_view
from expectations.report.presence import presence_view
from expectations.report.words import count, counted, duration, listed, short_hash
from pipelines.operators.rows import KIND_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from expectations.report.charts.delays import DelayFacts
    from expectations.report.charts.drawing import Chart
    from expectations.report.facts import (
        Account,
        CertificateRow,
        CommitFacts,
        Difference,
        ReportFacts,
        StreamFacts,
        Way,
    )
    from expectations.report.words import ReportClock
    from pipelines.operators.rows import Longs

MOST_ALIKE = {"epoch": 12, "interval": 400}
"""Published commits of a kind in a row that are told one by one."""
SHOWN_ALIKE = 4
"""Of more, how many at the beginning and at the end are."""


@dataclass(frozen=True, kw_only=True)
class PageSection:
    """One section: its anchor, its heading, its template, and the view that the template writes."""

    name: str
    title: str
    view: Callable[[ReportFacts, ReportClock], object | None]

    @property
    def template(self) -> str:
        """Give the file under `templates/`."""
        return f"{self.name}.html"


@dataclass(frozen=True, kw_only=True)
class CertificateCell:
    """One result of the certificate."""

    state: str
    """`reference`, `equal`, `unequal` or `missing`."""
    hash: str | None
    position: int | None = None


@dataclass(frozen=True, kw_only=True)
class CertificateLine:
    """One stream of the certificate."""

    stream: str
    rows: int | None
    hash: str | None
    short: str
    cells: tuple[CertificateCell, ...]


@dataclass(frozen=True, kw_only=True)
class DifferenceView:
    """One first differing row: its columns side by side."""

    stream: str
    way: str
    position: int
    columns: tuple[tuple[str, str, str, str], ...]
    """Name, expected, came, and `unequal` where the two differ."""


@dataclass(frozen=True, kw_only=True)
class CertificateView:
    """The certificate as a table: ways grouped by engine."""

    groups: tuple[tuple[str, int], ...]
    ways: tuple[Way, ...]
    lines: tuple[CertificateLine, ...]
    differences: tuple[DifferenceView, ...]
    left_out: tuple[str, ...]
    gaps: tuple[str, ...]
    timed: bool


def certificate_view(facts: ReportFacts, _: ReportClock) -> CertificateView | None:
    """Lay the certificate out; none where parity was not computed."""
    certificate = facts.certificate
    if certificate is None:
        return None
    places = {(found.stream, found.way): found.position for found in certificate.differences}
    return CertificateView(
        groups=_groups(certificate.ways),
        ways=certificate.ways,
        lines=tuple(_line(row, places) for row in certificate.rows),
        differences=tuple(_difference(found, certificate.ways) for found in certificate.differences),
        left_out=certificate.left_out,
        gaps=certificate.gaps,
        timed=any(way.seconds is not None for way in certificate.ways),
    )


def _groups(ways: tuple[Way, ...]) -> tuple[tuple[str, int], ...]:
    groups: list[tuple[str, int]] = []
    for way in ways:
        if groups and groups[-1][0] == way.title:
            groups[-1] = (way.title, groups[-1][1] + 1)
        else:
            groups.append((way.title, 1))
    return tuple(groups)


def _line(row: CertificateRow, places: Mapping[tuple[str, int], int]) -> CertificateLine:
    cells = tuple(_cell(row, way, places) for way in range(len(row.hashes)))
    rows = row.reference.partition(":")[0] if row.reference else ""
    known = int(rows) if rows.isdigit() else None
    return CertificateLine(
        stream=row.stream, rows=known, hash=row.reference, short=short_hash(row.reference), cells=cells
    )


def _cell(row: CertificateRow, way: int, places: Mapping[tuple[str, int], int]) -> CertificateCell:
    text = row.hashes[way]
    if text is None:
        return CertificateCell(state="missing", hash=None)
    if way == row.reference_way:
        return CertificateCell(state="reference", hash=text)
    state = "equal" if text == row.reference else "unequal"
    return CertificateCell(state=state, hash=text, position=places.get((row.stream, way)))


def _difference(found: Difference, ways: tuple[Way, ...]) -> DifferenceView:
    expected, came = found.expected or {}, found.came or {}
    columns = tuple(_compared(name, expected, came) for name in {**expected, **came})
    return DifferenceView(stream=found.stream, way=ways[found.way].full_title, position=found.position, columns=columns)


def _compared(name: str, expected: Mapping[str, object], came: Mapping[str, object]) -> tuple[str, str, str, str]:
    left, right = (_value(side, name) for side in (expected, came))
    return name, left, right, "unequal" if left != right else ""


def _value(row: Mapping[str, object], name: str) -> str:
    if not row:
        return "no such row"
    value = row.get(name)
    return "null" if value is None else str(value)


@dataclass(frozen=True, kw_only=True)
class StreamsView:
    """The counts of each stream, with a total beside them, and the accounts of rows."""

    kinds: tuple[str, ...]
    streams: tuple[StreamFacts, ...]
    accounts: tuple[tuple[Account, str, str], ...]
    """Each with its own anchor, and that of its rows in the ledger; empty where it has none there."""


def streams_view(facts: ReportFacts, _: ReportClock) -> StreamsView | None:
    """Count rows by stream and kind, for the kinds that occur."""
    if not facts.streams:
        return None
    kinds = tuple(kind for kind in KIND_NAMES if any(stream.counts[kind] for stream in facts.streams))
    accounts = tuple(
        (each, facts.account_anchor(each.stream), facts.ledger_anchor(each.stream)) for each in facts.accounts
    )
    return StreamsView(kinds=kinds, streams=facts.streams, accounts=accounts)


def charts_view(facts: ReportFacts, clock: ReportClock) -> tuple[Chart, ...] | None:
    """Draw the pictured stream; none where it has no row that could be drawn."""
    if facts.picture is None:
        return None
    seen = scene(facts, facts.picture)
    span = _span(facts, [points.arrival for points in (seen.data, seen.side) if len(points)])
    if span is None:
        return None
    return (arrivals(seen, facts.picture, clock, span), lateness(seen, facts.picture), days(seen, clock, span))


@dataclass(frozen=True, kw_only=True)
class DelayView:
    """What other delays would have done: in a sentence, as charts and as a table, as far as it was reckoned."""

    command: str
    sentence: str = ""
    charts: tuple[Chart, ...] = ()
    lines: tuple[tuple[str, ...], ...] = ()
    """Delay, late, share, two waits, and what it is."""


def delay_view(facts: ReportFacts, _: ReportClock) -> DelayView | None:
    """Say what other delays would have done; none where no stream has one to choose."""
    found = facts.delays
    if found is None:
        return DelayView(command=facts.advise) if facts.advise else None
    return DelayView(
        command=facts.advise,
        sentence=_of_delays(found),
        charts=tuple(replace(chart, name=f"delay-{chart.name}") for chart in delay_charts(found)),
        lines=tuple(
            (
                line.spelled,
                count(line.late),
                line.share,
                *("–" if wait is None else duration(wait) for wait in (line.half, line.most)),
                listed(
                    [
                        *(["the flow's"] if line.delay == found.current else []),
                        *(["enough"] if line.delay == found.advised else []),
                    ]
                ),
            )
            for line in found.lines
        ),
    )


def _of_delays(found: DelayFacts) -> str:
    late = found.late[found.current]
    events = counted(found.events, "event")
    told = f"Under the flow's delay of {duration(found.current)} {count(late)} of {events} came late"
    if found.advised is None:
        return f"{told}; no delay gets {found.share} on time."
    if found.advised == found.current:
        return f"{told}; it is what a person would write for {found.share} on time."
    left = "none" if not found.late[found.advised] else count(found.late[found.advised])
    return f"{told}; for {found.share} on time {duration(found.advised)} is enough, and {left} would be late."


def _span(facts: ReportFacts, arrivals_seen: list[Longs]) -> tuple[int, int] | None:
    if not arrivals_seen:
        return None
    first, last = min(int(a.min()) for a in arrivals_seen), max(int(a.max()) for a in arrivals_seen)
    start = first if facts.start is None else min(facts.start, first)
    return start, last + 1 if facts.end is None else max(facts.end, last + 1)


def ledger_section(facts: ReportFacts, clock: ReportClock) -> LedgerView | None:
    """Tell the ledger; none where it was not read."""
    return None if facts.ledger is None or not facts.streams else ledger_view(facts.ledger, clock, facts)


def live_view(facts: ReportFacts, clock: ReportClock) -> tuple[Chart, ...] | None:
    """Draw how a live run kept up; none where nothing ran live."""
    if not facts.epochs:
        return None
    late = heartbeat_lateness(facts.epochs, clock)
    return (*(() if late is None else (late,)), commit_pace(facts.epochs, clock))


@dataclass(frozen=True, kw_only=True)
class CommitLine:
    """One line of the commits: a commit, or published ones of a kind that follow one another, told as one."""

    commit: CommitFacts
    """Of several, numbers and sums: the span from the first to the last, all rows, all seconds."""
    page: str = ""
    """The page of its day; empty where there is none."""
    folded: int = 0
    """How many commits the line stands for; 0 where it is one."""
    last: int = 0


def commits_view(facts: ReportFacts, _: ReportClock) -> tuple[CommitLine, ...] | None:
    """Give the commits by number, many that are alike folded into one line; none where there is none."""
    lines: list[CommitLine] = []
    for (most, _of), group in groupby(sorted(facts.commits, key=_in_its_leg(facts)), key=_foldable):
        commits = list(group)
        if most and len(commits) > most:
            middle = commits[SHOWN_ALIKE:-SHOWN_ALIKE]
            lines += [_commit(facts, commit) for commit in commits[:SHOWN_ALIKE]]
            lines.append(CommitLine(commit=_summed(middle), folded=len(middle), last=middle[-1].number))
            commits = commits[-SHOWN_ALIKE:]
        lines += [_commit(facts, commit) for commit in commits]
    return tuple(lines) or None


def _commit(facts: ReportFacts, commit: CommitFacts) -> CommitLine:
    return CommitLine(commit=commit, page=facts.page_at(commit.start, commit.end))


def _in_its_leg(facts: ReportFacts) -> Callable[[CommitFacts], tuple[int, int]]:
    """Order commits by number; those of a leg of a run behind those of the legs before it."""
    places = {leg.name: place for place, leg in enumerate(facts.legs)}
    return lambda commit: (places.get(commit.leg, 0), commit.number)


def _foldable(commit: CommitFacts) -> tuple[int, str]:
    """Say how many commits like one are told one by one, 0 for all; and which leg's it is."""
    plain = (commit.state, commit.note) == ("published", "")
    return MOST_ALIKE.get(commit.kind, 0) if plain else 0, commit.leg


def _summed(commits: list[CommitFacts]) -> CommitFacts:
    seconds = [commit.seconds for commit in commits if commit.seconds is not None]
    return replace(
        commits[0],
        end=commits[-1].end,
        rows=sum(commit.rows or 0 for commit in commits),
        seconds=sum(seconds) if seconds else None,
        hash=None,
        asked_by="",
    )


SECTIONS = (
    PageSection(name="calendar", title="Calendar", view=calendar_view),
    PageSection(name="certificate", title="Parity certificate", view=certificate_view),
    PageSection(name="expectations", title="Expectations", view=checks_view),
    PageSection(name="streams", title="Streams", view=streams_view),
    PageSection(name="presence", title="Sources and keys", view=presence_view),
    PageSection(name="legs", title="Regions", view=legs_view),
    PageSection(name="buffers", title="Buffers", view=buffers_view),
    PageSection(name="live", title="Live", view=live_view),
    PageSection(name="charts", title="Charts", view=charts_view),
    PageSection(name="delay", title="Delay", view=delay_view),
    PageSection(name="ledger", title="Ledger", view=ledger_section),
    PageSection(name="commits", title="Commits", view=commits_view),
)
