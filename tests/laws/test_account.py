"""The account of rows: what comes into an operator leaves, is set aside, is in the ledger, or is held; nothing else.

Rules of docs/semantics.md: S17
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pytest
from hypothesis import given

from pipelines.engine.commits.readers import log_state, read_carry
from pipelines.engine.landing.manifest import sequences
from tests.laws.drawn import CUTS, END, KINDS, ROWS, START, Row, feed, flows
from tests.laws.test_cuts import ENDS, examples
from tests.laws.trials import PARCELS, SPANS, Trial, cut, parcels, trial

if TYPE_CHECKING:
    import pyarrow as pa

    from pipelines.flows.model import Stream
    from pipelines.jobs.runs.backfill import Interval

MADE = {"heartbeat": "timer", "merge": "cti", "advance_time": "cti"}
"""Kind of the rows that an operator makes itself."""


def landed(here: Trial, source: str) -> int:
    """Count the landed rows of a source."""
    return sum(each.sources[source].rows for each in sequences(here.wanted("main").landing))


def count(rows: pa.Table, where: pc.Expression) -> int:
    return int(rows.filter(where).num_rows)


def came_out(here: Trial, stream: Stream) -> int:
    """Count the rows that left a stream's operator and came in before, in its tables, ledger and carry."""
    gone = (pc.field("stream") == stream.name) & (pc.field("action") == "dropped")
    passed = count(here.table("main", stream.name), pc.field("kind") != MADE.get(stream.operator, ""))
    sides = sum(here.table("main", side).num_rows for side in stream.sides)
    return int(passed + sides) + count(here.table("main", "ledger"), gone) + held(here, stream, newest(here))


def kinds_in(here: Trial, stream: Stream) -> set[str]:
    """Give the kinds of rows that come into a stream's operator."""
    return {
        kind
        for name in stream.inputs
        if name not in here.flow.sources
        for kind in here.table("main", name)["kind"].unique().to_pylist()
    }


def newest(here: Trial) -> int:
    return max(log_state(here.root("main")).visible)


def held(here: Trial, stream: Stream, commit: int) -> int:
    """Count the rows that a stream's carry holds at a commit, and that its operator does not make anew itself."""
    rows = read_carry(here.root("main"), stream.name, "held", commit)
    return count(rows, pc.field("kind") != MADE.get(stream.operator, "")) if rows.num_rows else 0


def rows_in(here: Trial, stream: Stream) -> int:
    """Count the rows of a stream's inputs, landed and in their tables."""
    return sum(
        landed(here, name) if name in here.flow.sources else here.table("main", name).num_rows for name in stream.inputs
    )


def assert_accounts(here: Trial, spans: list[Interval]) -> None:
    """Hold the tables of a run, and the counts of each of its commits, to the account."""
    accountable = [stream for stream in here.flow.streams.values() if stream.accountable]
    for stream in accountable:
        # Of other operators, and of CTIs that are imported, the counts of each commit below are the account.
        if stream.feeding == stream.inputs and MADE.get(stream.operator, "cti") not in kinds_in(here, stream):
            assert rows_in(here, stream) == came_out(here, stream), f"{stream.name}: the tables"
    before = dict.fromkeys(here.flow.streams, 0)
    published = log_state(here.root("main")).published
    assert len(published) == len(spans)
    for entry in published:
        for stream in accountable:
            counts: dict[str, int] = entry.counts[stream.name]  # type: ignore[assignment]
            sides = sum(sum(entry.counts.get(side, {}).values()) for side in stream.sides)  # type: ignore[attr-defined, misc]
            words = [(line.split(), rows) for line, rows in entry.counts["ledger"].items()]  # type: ignore[attr-defined]
            gone = sum(rows for (name, _, action), rows in words if (name, action) == (stream.name, "dropped"))
            assert counts["held"] == held(here, stream, entry.commit), f"{stream.name}: the rows held"
            kept = counts["held"] - before[stream.name]
            assert counts.get("in", 0) == counts.get("passed", 0) + sides + gone + kept, f"{stream.name}: {entry.span}"
            before[stream.name] = counts["held"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_operator_accounts_for_its_rows(kind: str) -> None:
    @examples(2)
    @given(flow=flows(kind), rows=ROWS, others=ROWS, cuts=CUTS, final=ENDS)
    def accounts(flow: str, rows: list[Row], others: list[Row], cuts: list[int], final: int | None) -> None:
        with tempfile.TemporaryDirectory() as folder:
            here = trial(Path(folder), flow, {"rows": feed(rows), "others": feed(others)})
            spans = cut(START, END, cuts)
            here.run("main", spans, final=final)
            assert_accounts(here, spans)

    accounts()


def test_the_parcels_are_accounted_for(tmp_path: Path) -> None:
    here = trial(tmp_path, PARCELS, {"parcels": parcels()})
    here.ran("main", SPANS)
    assert_accounts(here, SPANS)
    assert here.table("main", "punctual.diverted").num_rows > 0
    assert held(here, here.flow.streams["ordered"], newest(here)) > 0
