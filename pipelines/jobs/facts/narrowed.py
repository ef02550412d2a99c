"""What a check of many intervals found, told of those that it found it in: the page of a day says what is of the day.

A check of a longer span judges each row of it, so it says of every interval how many of its rows break it. Where the
verdict of an interval says the same there is nothing to tell; where it does not, this is a newer verdict of it. A mean,
a set that must be there, what holds of most rows, or each value's being another is of all together and tells nothing of
one interval.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from expectations.laws import AS_PUBLISHED, AS_RECOMPUTED, EVENTS, OF_FILES, laws_of
from pipelines.engine.columnar.columns import instant_tick
from pipelines.engine.commits.entry import CommitKind
from pipelines.engine.commits.history import Span
from pipelines.flows.check import OWN, is_of_each
from pipelines.jobs.facts.current import is_current
from pipelines.jobs.facts.failing_rows import FailingRows
from pipelines.jobs.runs.counts import counted
from pipelines.operators.rows import KIND_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipelines.engine.commits.quality import Quality
    from pipelines.flows.check import Check
    from pipelines.jobs.facts.report import Reported

SHOWN = 20
"""Cases that a verdict has at most."""
OF_SOME = re.compile(r"\(asked of (\d+) of (\d+)")
NAMES = {"commit": pa.int64(), "arrival": pa.timestamp("us", "UTC")}
"""Columns of a file of failing rows that say in which interval one is."""


def narrowed(about: Reported, judged: Sequence[Quality]) -> tuple[Quality, ...]:
    """Add what checks of longer spans found of single intervals otherwise than these were judged.

    Args:
        about: the run, or the interval of a page.
        judged: all verdicts of the run.

    Returns:
        All of them, and behind each of a longer span those of its intervals.
    """
    own: dict[tuple[str, str, Span], list[Quality]] = {}
    for each in judged:
        if is_current(about, each):
            own.setdefault((each.table, each.expectation, Span(each.start, each.end)), []).append(each)
    parts = _Parts(about, own)
    # What an earlier check found of an interval is known to a later one.
    order = sorted(range(len(judged)), key=lambda place: judged[place].at)
    told = {place: tuple(parts.told(judged[place])) for place in order}
    return tuple(found for place, each in enumerate(judged) for found in (each, *told[place]))


class _Parts:
    """Tells checks of longer spans by interval."""

    def __init__(self, about: Reported, own: dict[tuple[str, str, Span], list[Quality]]) -> None:
        self._about, self._own = about, own

    def told(self, wide: Quality) -> Iterator[Quality]:
        """Give what a check found of single intervals, where that is another thing than is known of them."""
        for part in self._of(wide):
            # Of an interval it counts on where another one of its span was run again.
            if is_current(self._about, part):
                self._own.setdefault((part.table, part.expectation, Span(part.start, part.end)), []).append(part)
            yield part

    def _of(self, wide: Quality) -> Iterator[Quality]:
        spans = [] if wide.commit else [each for each in self._spans(wide.table) if _is_longer(wide, each)]
        if not spans or not is_of_each(wide.expectation) or self._is_of_most(wide):
            return
        before = {span: self._newest_before(wide, span) for span in spans}
        if wide.held and not any(before.values()):
            # Nobody looked at an interval by itself: the page of one tells of that alone.
            before = {span: None for span in spans if span == self._about.span}
        cases = self._cases(wide)
        if cases is None:
            return
        cases.sort()
        places, upto = [at for at, _ in cases], [0, *accumulate(weight for _, weight in cases)]
        for span in before:
            last, count = before[span], upto[bisect_left(places, span.end)] - upto[bisect_left(places, span.start)]
            if not count and is_of_some(wide):
                continue
            is_known = last is not None and last.held == (not count) and last.unexpected in {count, 0}
            if not is_known or (last is not None and count and last.severity != wide.severity):
                yield self._part(wide, span, count, last)

    def _is_of_most(self, wide: Quality) -> bool:
        """Say whether a check lets some rows break it: how many may, nobody knows of one interval by those of all."""
        own = self._own_check(wide)
        return (own is not None and "mostly" in own.arguments) or (wide.held and bool(wide.unexpected))

    def _own_check(self, wide: Quality) -> Check | None:
        """Find the team's own check that was asked: those that the file has now are asked of what was run before."""
        for flow in (self._about.known.flow_now, self._about.flow):
            checks = () if flow is None else flow.expect.get(wide.table, ())
            for each in checks:
                if each.label == wide.expectation:
                    return each
        return None

    def _part(self, wide: Quality, span: Span, count: int, last: Quality | None) -> Quality:
        places = [(self._at(wide, row), row) for row in wide.rows]
        rows = tuple(row for at, row in places if at is not None and span.holds(at))
        if count and not rows and last is not None:
            rows = last.rows
        looked_at = self._looked_at(wide, span) if last is None else last.looked_at
        seen = [entry.at for entry in self._made_by(wide.table).state.published if entry.span.meets(span)]
        return replace(
            wide,
            start=span.start,
            end=span.end,
            # Newer than what is known of the interval, which was not judged anew for all that.
            at=min(wide.at, max([*seen, *([last.at] if last else [])], default=wide.at) + 1),
            held=not count,
            rows=rows,
            looked_at=looked_at,
            unexpected=count if wide.unexpected else 0,
        )

    def _made_by(self, table: str) -> Reported:
        """Give the part of the run that makes a table; what lands and what is of the whole run is in the first."""
        return self._about.of(table) if table in self._about.flow.tables() else self._about

    def _spans(self, table: str) -> list[Span]:
        published = self._made_by(table).state.published
        spans = [entry.span for entry in published if entry.kind is CommitKind.INTERVAL]
        page = None if self._about.span is None else Span(*self._about.span)
        return spans if page is None or page in spans else [*spans, page]

    def _newest_before(self, wide: Quality, span: Span) -> Quality | None:
        known = self._own.get((wide.table, wide.expectation, span), ())
        return max((each for each in known if each.at < wide.at), key=lambda each: each.at, default=None)

    def _looked_at(self, wide: Quality, span: Span) -> int:
        """Say of how many rows of an interval a check was asked; 0 where nobody has counted those."""
        kinds = self._kinds(wide)
        if self._own_check(wide) is not None and wide.looked_at < self._rows_in(
            wide, Span(wide.start, wide.end), kinds
        ):
            # Rows without a value are not looked at, and of which intervals those are nobody knows.
            return 0
        return min(wide.looked_at, self._rows_in(wide, span, kinds))

    def _rows_in(self, wide: Quality, span: Span, kinds: Sequence[str]) -> int:
        inside = [entry for entry in self._made_by(wide.table).state.published if kinds and entry.span.meets(span)]
        if wide.table in self._about.flow.sources:
            return sum(counted(entry, "landed").get(wide.table, 0) for entry in inside)
        return sum(counted(entry, wide.table).get(kind, 0) for entry in inside for kind in kinds)

    def _kinds(self, wide: Quality) -> Sequence[str]:
        """Name the kinds of rows of which a check is asked, each of them; none where it is of some, or of no rows."""
        if wide.expectation == AS_PUBLISHED:
            return KIND_NAMES
        own = self._own_check(wide)
        if own is not None:
            return () if own.where else EVENTS
        laws = laws_of(self._about.flow, wide.table) if wide.table in self._about.flow.tables() else ()
        return next((law.governed for law in laws if law.name == wide.expectation), ())

    def _cases(self, wide: Quality) -> list[tuple[int, int]] | None:
        """Give when each case that breaks a check arrived, and how many rows it is; None where that is not known."""
        weights = [max(1, int(row.get("rows", 0))) if wide.expectation in OF_FILES else 1 for row in wide.rows]
        places = [self._at(wide, row) for row in wide.rows]
        if not wide.held and (len(places) >= SHOWN if not wide.unexpected else sum(weights) != wide.unexpected):
            return self._of_file(wide)
        known = [(at, weight) for at, weight in zip(places, weights, strict=True) if at is not None]
        return known if len(known) == len(places) else None

    def _of_file(self, wide: Quality) -> list[tuple[int, int]] | None:
        """Read the file that has all rows that break a check."""
        file = FailingRows(self._about.root, wide.start, wide.end, wide.commit).file(wide.table, wide.expectation)
        if not file.is_file():
            return None
        import pyarrow.csv as pcsv

        lines = pcsv.ParseOptions(newlines_in_values=True)
        read = pcsv.read_csv(file, parse_options=lines, convert_options=pcsv.ConvertOptions(column_types={**NAMES}))
        name = next((name for name in NAMES if name in read.column_names), None)
        if name is None or read.num_rows != wide.unexpected:
            return None
        values = pc.value_counts(read[name] if name == "commit" else read[name].cast(pa.int64())).to_pylist()
        found = [(self._begins(wide, each["values"]) if name == "commit" else each["values"]) for each in values]
        if None in found:
            return None
        return [(int(at or 0), each["counts"]) for at, each in zip(found, values, strict=True)]

    def _begins(self, wide: Quality, commit: int | None) -> int | None:
        entry = self._made_by(wide.table).state.commits.get(commit or 0)
        return None if entry is None else entry.span.start

    def _at(self, wide: Quality, row: Mapping[str, Any]) -> int | None:
        """Say when something arrived that breaks a check, in ticks."""
        if row.get("commit") is not None:
            return self._begins(wide, row["commit"])
        # A row that a team's own check tells has all its columns, which may be called as what ours tell.
        text = row.get("arrival") if wide.expectation.startswith(OWN) else row.get("start") or row.get("arrival")
        if text is not None:
            return instant_tick(text)
        argument = self._about.known.moments.argument
        begun = (span.start for span in self._spans(wide.table))
        return next((start for start in begun if argument(start) == row.get("interval")), None)


def _is_longer(wide: Quality, span: Span) -> bool:
    return wide.start <= span.start and span.end <= wide.end and (wide.start, wide.end) != span


def is_of_some(wide: Quality) -> bool:
    """Say whether a verdict is of some intervals of its span, by drawing: of the others it says nothing."""
    asked = OF_SOME.search(wide.sentence) if wide.expectation == AS_RECOMPUTED else None
    return asked is not None and asked[1] != asked[2]
