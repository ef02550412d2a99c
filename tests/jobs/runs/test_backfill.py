"""Intervals run again, changed, skipped and left out: what readers see is always what a fresh run would give."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pipelines.engine.columnar.columns import instant_text
from pipelines.engine.commits.errors import GapError, MissingPredecessorError, PartialOverlapError
from pipelines.engine.commits.history import State
from pipelines.engine.commits.paths import SchemaChangedError
from pipelines.engine.commits.readers import log_state
from pipelines.engine.landing.manifest import sequences
from pipelines.engine.tasks.local import CoreEngine
from pipelines.flows.reading import read_flow
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.runs.backfill import run_backfill
from tests.laws.trials import HOUR, MINUTE, PARCELS, SPANS, WHOLE, Trial, parcels, trial

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipelines.engine.commits.history import LogState
    from pipelines.engine.tasks.task import Done, Task
    from pipelines.jobs.runs.backfill import Interval


@pytest.fixture
def here(tmp_path: Path) -> Trial:
    """Give the parcels."""
    return trial(tmp_path / "parcels", PARCELS, {"parcels": parcels()})


def state(here: Trial, run: str) -> LogState:
    return log_state(here.root(run))


def late_parcel(rows: pa.Table) -> pa.Table:
    """Give the feed with a parcel more, seen at half past the first hour."""
    more = rows.slice(0, 1).to_pylist()[0]
    at = instant_text(SPANS[0][0] + 30 * MINUTE)
    row = pa.table({"seen": [at], "sent": [at]}).cast(pa.schema([rows.schema.field("seen"), rows.schema.field("sent")]))
    more |= {"number": 10_000, "depot": "north"} | row.to_pylist()[0]
    return pa.concat_tables([rows, pa.Table.from_pylist([more], schema=rows.schema)])


def test_run_again_replaces_and_doubles_nothing(here: Trial) -> None:
    before = here.run("main", SPANS)
    counts = [entry.counts for entry in state(here, "main").published]
    assert here.run("main", SPANS) == before
    again = state(here, "main")
    assert [entry.counts for entry in again.published] == counts
    assert [entry.supersedes for entry in again.published] == [(number,) for number in range(1, len(SPANS) + 1)]
    assert not again.stale
    assert len(sequences(here.wanted("main").landing)) == len(SPANS), "an unchanged feed lands nothing new"


def test_a_flow_with_other_columns_is_refused_before_anything_is_begun_and_the_run_goes_on(here: Trial) -> None:
    before = here.run("main", SPANS)
    source = replace(here.flow.sources["parcels"], rename={"weight": "mass"})
    changed = replace(here.wanted("main"), flow=replace(here.flow, sources={"parcels": source}))
    with pytest.raises(SchemaChangedError, match="must keep its columns"):
        run_backfill(changed, SPANS[1:2])
    assert state(here, "main").pending is None
    assert here.run("main", SPANS) == before


def test_one_interval_may_replace_several(here: Trial) -> None:
    before = here.run("main", SPANS)
    here.ran("main", WHOLE)
    assert here.hashes("main", WHOLE) == before
    assert [entry.supersedes for entry in state(here, "main").published] == [(1, 2, 3)]


def test_an_interval_in_the_middle_run_again_leaves_what_follows(here: Trial) -> None:
    before = here.run("main", SPANS)
    here.ran("main", SPANS[1:2])
    assert here.hashes("main", WHOLE) == before
    assert not state(here, "main").stale, "the carry is the same, so the new commit stands in as parent"


def test_a_changed_feed_lands_anew_and_makes_what_follows_stale(here: Trial) -> None:
    here.ran("main", SPANS)
    pq.write_table(late_parcel(parcels()), here.base / "parcels.parquet")
    here.ran("main", SPANS[:1])
    landed = sequences(here.wanted("main").landing)
    assert [(each.start, each.version) for each in landed if each.start == SPANS[0][0]] == [
        (SPANS[0][0], 1),
        (SPANS[0][0], 2),
    ]
    assert [entry.span for entry in state(here, "main").stale] == SPANS[1:2]
    here.ran("main", SPANS[1:])
    assert not state(here, "main").stale
    assert here.hashes("main", WHOLE) == here.run("fresh", SPANS)


def test_a_feed_whose_file_changed_and_whose_rows_did_not_lands_nothing(here: Trial) -> None:
    before = here.run("main", SPANS)
    pq.write_table(parcels(), here.base / "parcels.parquet", row_group_size=7)
    assert here.run("main", SPANS) == before
    assert len(sequences(here.wanted("main").landing)) == len(SPANS)


def test_an_interval_without_its_predecessor_is_refused_with_the_one_to_run_first(here: Trial) -> None:
    here.ran("main", SPANS[:1])
    with pytest.raises(MissingPredecessorError) as refused:
        here.ran("main", SPANS[2:])
    assert (refused.value.first_start, refused.value.first_end) == SPANS[1]
    for instant in SPANS[1]:
        assert instant_text(instant) in str(refused.value)
    assert state(here, "main").pending is None
    assert len(sequences(here.wanted("main").landing)) == 1, "a refused interval lands nothing"


@pytest.mark.parametrize(
    ("span", "refusal"),
    [
        ((SPANS[0][0] - 2 * HOUR, SPANS[0][0] - HOUR), GapError),
        ((SPANS[0][0], SPANS[0][0] + 30 * MINUTE), PartialOverlapError),
        ((SPANS[0][0] + 30 * MINUTE, SPANS[1][1]), PartialOverlapError),
    ],
)
def test_a_span_that_does_not_fit_is_refused(here: Trial, span: tuple[int, int], refusal: type[Exception]) -> None:
    here.ran("main", SPANS[:1])
    with pytest.raises(refusal):
        here.ran("main", [span])
    assert [entry.state for entry in state(here, "main").commits.values()] == [State.PUBLISHED]


def test_a_run_may_begin_anywhere(here: Trial) -> None:
    here.ran("late", SPANS[1:])
    assert [entry.parent for entry in state(here, "late").published] == [0, 1]


def test_a_run_may_be_extended_backwards_and_what_follows_is_stale_until_it_ran_again(here: Trial) -> None:
    here.ran("late", SPANS[2:])
    here.ran("late", SPANS[:2])
    assert [entry.span for entry in state(here, "late").published] == SPANS
    assert [entry.span for entry in state(here, "late").stale] == SPANS[2:]
    here.ran("late", SPANS[2:])
    assert not state(here, "late").stale
    assert here.hashes("late", WHOLE) == here.run("fresh", SPANS)


class Failing(CoreEngine):
    """Fails at an interval, and leaves its commit at intent."""

    def __init__(self, interval: Interval) -> None:
        self.interval = interval

    def run(self, tasks: Sequence[Task]) -> list[Done]:
        """Run tasks, unless they are of the interval."""
        if any(task.start == self.interval[0] for task in tasks):
            raise RuntimeError("no")
        return super().run(tasks)


def leave(here: Trial, interval: Interval, intervals: Sequence[Interval]) -> None:
    """Have a run end in the middle of an interval."""
    with pytest.raises(RuntimeError, match="no"):
        run_backfill(here.wanted("main", Failing(interval)), intervals)
    left = state(here, "main").pending
    assert left is not None
    assert left.span == interval


def assert_fresh(here: Trial) -> None:
    """See that the same words give what a run of its own gives."""
    here.ran("main", SPANS)
    assert not state(here, "main").stale
    assert here.hashes("main", WHOLE) == here.run("fresh", SPANS)


def test_what_was_left_by_a_run_backwards_runs_again_behind_what_runs_before_it(here: Trial) -> None:
    here.ran("main", SPANS[2:])
    leave(here, SPANS[1], SPANS[:2])
    assert_fresh(here)


@pytest.mark.parametrize("left", [0, 1])
def test_what_was_left_runs_again_where_something_else_came_in_since(here: Trial, left: int) -> None:
    leave(here, SPANS[left], SPANS)
    pq.write_table(late_parcel(parcels(seed=2)), here.base / "parcels.parquet")
    assert_fresh(here)


def test_what_was_left_runs_again_where_the_flow_has_changed_since(here: Trial) -> None:
    leave(here, SPANS[0], SPANS)
    (here.base / "flow.yaml").write_text(PARCELS.replace("delay: 10m", "delay: 20m"))
    assert_fresh(replace(here, flow=read_flow(here.base / "flow.yaml")))


def test_a_home_may_have_a_space_and_an_umlaut_in_its_name(tmp_path: Path) -> None:
    here = trial(tmp_path / "Eigene Dateien – größer", PARCELS, {"parcels": parcels()})
    here.run("zum ersten", SPANS[:2])
    assert len(state(here, "zum ersten").published) == 2


def test_the_landing_and_its_ledger_hold_every_row_of_the_feed_once(here: Trial) -> None:
    ran = here.ran("main", SPANS)
    landed = sum(each.entry.counts["landed"]["parcels"] for each in ran)  # type: ignore[index]
    ledger = here.table("main", "ledger").filter(pc.field("operator") == "landing")
    reasons = Counter(zip(ledger["reason"].to_pylist(), ledger["action"].to_pylist(), strict=True))
    feed = parcels()
    nowhere = feed["seen"].null_count
    assert reasons == {("no_arrival", "dropped"): nowhere}
    assert landed + nowhere == feed.num_rows


OTHERS = """\
flow: parcels
sources:
  parcels: {feed: {parquet: parcels.parquet}, key: depot, time: sent, arrival: seen}
  others: {feed: {parquet: others.parquet}, key: depot, time: sent, arrival: seen}
streams:
  both: {merge: [parcels, others]}
"""
MISFITS = {
    "a column of another type": (OTHERS, {"weight": pa.string()}, "one type"),
    "a column called port": (OTHERS, {"port": pa.string()}, "`port`"),
    "a merge of a merge": (OTHERS + "  more: {merge: [both, parcels]}\n", {}, "all streams at once"),
    "one port spelled twice": (OTHERS + "  by: {merge: parcels, ports_by: {depot: [1, '1']}}\n", {}, "must differ"),
    "ports by no column": (OTHERS + "  by: {merge: parcels, ports_by: {depo: [east]}}\n", {}, "did you mean `depot`"),
}


@pytest.mark.parametrize("misfit", MISFITS)
def test_streams_that_do_not_fit_the_columns_are_refused_before_anything_is_begun(misfit: str, tmp_path: Path) -> None:
    text, changed, said = MISFITS[misfit]
    others = parcels()
    for name, kind in changed.items():
        rest = others.drop_columns([name]) if name in others.column_names else others
        others = rest.append_column(name, pa.nulls(rest.num_rows, kind))
    here = trial(tmp_path, text, {"parcels": parcels(), "others": others})
    with pytest.raises(WrongUse, match=said):
        here.ran("main", SPANS)
    assert not here.root("main").exists()
