"""The log's state as a function of rows, the steps of a commit, and commits by processes that are killed in between."""

from __future__ import annotations

import pickle
import signal
import uuid
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.engine.commits import errors as refusals
from pipelines.engine.commits import steps
from pipelines.engine.commits.delta_log import create
from pipelines.engine.commits.driver import CommitLog, Driver, open_driver
from pipelines.engine.commits.history import CarryLine, CommitKind, Entry, LogState, Span, State
from pipelines.engine.commits.log import from_table, to_table
from pipelines.engine.commits.paths import FileMissingError, NewFile, TableError, stream_path
from pipelines.engine.commits.readers import read_carry, read_stream
from pipelines.engine.files.folders import UNNAMED
from tests.forked import ended
from tests.wide import drawn as examples_of

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence
    from pathlib import Path

ROWS = pa.schema([pa.field("commit", pa.int64()), pa.field("value", pa.int64())])


class Model:
    """A log in memory: appends what the steps give, as a driver does."""

    def __init__(self) -> None:
        self.rows: list[Entry] = []

    @property
    def state(self) -> LogState:
        """Read the rows so far."""
        return LogState.of(self.rows)

    def append(self, row: Entry) -> Entry:
        """Append a row, stamped."""
        place = len(self.rows) + 1
        self.rows.append(replace(row, entry=place, token=1, at=place))
        return self.rows[-1]

    def begin(self, span: Span, kind: CommitKind = CommitKind.INTERVAL) -> int:
        """Append an intent."""
        state = self.state
        parent = state.parent_for(span.start) if kind is CommitKind.INTERVAL else state.tip.commit if state.tip else 0
        facts = {"kind": kind, "parent": parent, "sequences": [1], "plan": "{}", "fingerprint": "print"}
        number = state.next_number
        self.append(steps.intend(state, number, span, **facts))  # type: ignore[arg-type]
        return number

    def run(self, start: int, end: int, carry: str, kind: CommitKind = CommitKind.INTERVAL) -> int:
        """Take a commit to `published`."""
        number = self.begin(Span(start, end), kind)
        self.append(steps.write(self.state, number, counts={}, hashes={}, carry_hash=carry, durations={}))
        self.append(steps.publish(self.state, number, verdict=None))
        return number


def numbers(rows: tuple[Entry, ...]) -> list[int]:
    return [row.commit for row in rows]


@pytest.fixture
def week() -> Model:
    """Give a log of three intervals, 10 to 40, whose carries are a, b, c."""
    model = Model()
    for place, carry in enumerate("abc", 1):
        model.run(place * 10, place * 10 + 10, carry)
    return model


def test_an_empty_run_may_start_anywhere() -> None:
    assert LogState.of([]).parent_for(123) == 0
    assert LogState.of([]).carry_line(0) == CarryLine(0, ())


def test_an_interval_continues_what_ends_where_it_starts(week: Model) -> None:
    assert [week.state.parent_for(start) for start in (10, 20, 30, 40)] == [0, 1, 2, 3]


def test_a_missing_predecessor_is_named(week: Model) -> None:
    with pytest.raises(refusals.MissingPredecessorError) as refused:
        week.state.parent_for(60)
    assert (refused.value.first_start, refused.value.first_end) == (40, 60)


def test_a_run_extended_backwards_leaves_its_old_beginning_stale(week: Model) -> None:
    assert week.state.parent_for(0) == 0
    assert week.run(0, 10, "z") == 4
    assert numbers(week.state.published) == [4, 1, 2, 3]
    assert numbers(week.state.stale) == [1]
    assert week.state.parent_for(10) == 4
    week.run(10, 20, "a")
    assert not week.state.stale, "the carry came out as before, so what follows stands"


def test_an_interval_before_the_first_must_reach_it(week: Model) -> None:
    with pytest.raises(refusals.GapError) as refused:
        week.begin(Span(0, 9))
    assert (refused.value.end, refused.value.first) == (9, 10)


def test_a_run_that_a_stream_began_does_not_begin_earlier() -> None:
    model = Model()
    model.run(10, 20, "a", CommitKind.EPOCH)
    with pytest.raises(refusals.BeforeFirstError, match="another name"):
        model.state.parent_for(0)


@pytest.mark.parametrize(("start", "end", "cut"), [(15, 30, 1), (10, 35, 3), (22, 28, 2)])
def test_an_interval_never_replaces_a_part(week: Model, start: int, end: int, cut: int) -> None:
    with pytest.raises(refusals.PartialOverlapError) as refused:
        week.state.superseded_by(Span(start, end))
    assert refused.value.commit == cut


def test_a_start_inside_a_published_interval_is_refused(week: Model) -> None:
    with pytest.raises(refusals.PartialOverlapError):
        week.state.parent_for(25)


def test_an_interval_may_replace_several_and_go_on_beyond_them(week: Model) -> None:
    assert week.state.superseded_by(Span(20, 60)) == (2, 3)
    assert week.run(20, 60, "x") == 4
    assert numbers(week.state.published) == [1, 4]
    assert not week.state.stale


def test_an_open_commit_replaces_nothing_yet(week: Model) -> None:
    number = week.begin(Span(10, 20))
    assert numbers(week.state.published) == [1, 2, 3]
    week.append(steps.write(week.state, number, counts={}, hashes={}, carry_hash="x", durations={}))
    assert numbers(week.state.published) == [1, 2, 3]
    week.append(steps.publish(week.state, number, verdict=None))
    assert numbers(week.state.published) == [4, 2, 3]


def test_another_carry_makes_the_next_interval_stale_and_running_it_again_heals(week: Model) -> None:
    week.run(10, 20, "other")
    assert numbers(week.state.stale) == [2]
    assert week.state.parent_of(2) == 1
    week.run(20, 30, "b")
    assert not week.state.stale
    assert week.state.parent_of(3) == 5


def test_an_equal_carry_stands_in(week: Model) -> None:
    week.run(10, 20, "a")
    assert not week.state.stale
    assert week.state.parent_of(2) == 4


def test_what_ends_elsewhere_does_not_stand_in(week: Model) -> None:
    week.run(10, 30, "a")
    assert week.state.parent_of(2) == 1


def test_a_carry_that_comes_back_stands_in_again(week: Model) -> None:
    week.run(10, 20, "other")
    week.run(10, 20, "a")
    assert not week.state.stale
    assert week.state.parent_of(2) == 5


def test_a_rejected_commit_replaces_nothing(week: Model) -> None:
    number = week.begin(Span(10, 20))
    week.append(steps.write(week.state, number, counts={}, hashes={}, carry_hash="x", durations={}))
    week.append(steps.reject(week.state, number, verdict="late flights"))
    assert numbers(week.state.published) == [1, 2, 3]
    assert week.state.pending is None
    assert week.state.next_number == 5


def test_an_abandoned_number_is_not_used_again(week: Model) -> None:
    number = week.begin(Span(40, 50))
    week.append(steps.abandon(week.state, number, why="its version is gone"))
    assert week.begin(Span(40, 50)) == number + 1


def test_epochs_follow_the_last_published_commit_and_carry_deltas(week: Model) -> None:
    first = week.run(40, 41, "d", CommitKind.EPOCH)
    second = week.run(41, 42, "e", CommitKind.EPOCH)
    assert (week.state.commits[first].parent, week.state.commits[second].parent) == (3, first)
    assert week.state.carry_line(second) == CarryLine(3, (first, second))
    assert week.state.carry_line(3) == CarryLine(3, ())


def test_the_first_epoch_of_a_run_begins_from_an_empty_carry() -> None:
    model = Model()
    first = model.run(5, 6, "a", CommitKind.EPOCH)
    assert model.state.carry_line(first) == CarryLine(0, (first,))


def test_folding_gives_an_epoch_a_base(week: Model) -> None:
    first = week.run(40, 41, "d", CommitKind.EPOCH)
    second = week.run(41, 42, "e", CommitKind.EPOCH)
    week.append(replace(week.state.commits[first], state=State.FOLDED))
    assert week.state.carry_line(second) == CarryLine(first, (second,))
    assert week.state.commits[first].state is State.PUBLISHED


def test_under_epochs_an_equal_carry_stands_in_and_another_one_is_kept(week: Model) -> None:
    epoch = week.run(40, 41, "d", CommitKind.EPOCH)
    week.run(30, 40, "c")
    assert week.state.carry_line(epoch) == CarryLine(5, (epoch,))
    week.run(30, 40, "other")
    assert week.state.carry_line(epoch) == CarryLine(3, (epoch,))
    assert numbers(week.state.stale) == [epoch]
    assert 3 in week.state.carried


def test_an_interval_does_not_replace_epochs(week: Model) -> None:
    week.run(40, 41, "d", CommitKind.EPOCH)
    with pytest.raises(refusals.StreamedSpanError, match="another name"):
        week.state.superseded_by(Span(40, 50))


def test_an_idle_epoch_is_published_without_an_intent(week: Model) -> None:
    idle = Entry(commit=4, state=State.PUBLISHED, kind=CommitKind.EPOCH, parent=3, span=Span(40, 41), carry_hash="c")
    week.append(idle)
    assert week.state.tip
    assert week.state.tip.commit == 4
    assert week.state.carry_line(4) == CarryLine(3, ())


def test_steps_out_of_turn_are_refused(week: Model) -> None:
    with pytest.raises(refusals.WrongStepError, match="come to nothing"):
        steps.publish(week.state, 4, verdict=None)
    number = week.begin(Span(40, 50))
    with pytest.raises(refusals.WrongStepError, match="come to intent"):
        steps.publish(week.state, number, verdict=None)
    with pytest.raises(refusals.PendingCommitError, match="commit 4 is at intent"):
        week.begin(Span(40, 50))
    week.append(steps.write(week.state, number, counts={}, hashes={}, carry_hash="x", durations={}))
    with pytest.raises(refusals.WrongStepError):
        steps.write(week.state, number, counts={}, hashes={}, carry_hash="x", durations={})


@pytest.mark.parametrize(
    ("number", "span", "parent", "said"),
    [
        (5, Span(40, 50), 3, "number 4"),
        (4, Span(40, 50), 2, "parent 3"),
        (4, Span(40, 40), 3, "an end after its start"),
    ],
)
def test_an_intent_that_does_not_follow_is_refused(
    week: Model, number: int, span: Span, parent: int, said: str
) -> None:
    with pytest.raises(refusals.WrongStepError, match=said):
        steps.intend(
            week.state, number, span, kind=CommitKind.INTERVAL, parent=parent, sequences=[], plan="", fingerprint=""
        )


def test_a_pending_commit_is_finished_under_its_own_plan_only(week: Model) -> None:
    week.begin(Span(40, 50))
    pending = week.state.pending
    assert pending
    assert pending.under("print") is pending
    with pytest.raises(refusals.PlanChangedError, match="begun with"):
        pending.under("other")


def test_later_rows_know_the_plan_of_the_intent(week: Model) -> None:
    assert week.rows[-1].plan is None
    assert week.state.commits[3].plan == "{}"


ACTS = st.lists(
    st.tuples(
        st.integers(0, 6), st.integers(1, 3), st.sampled_from("abc"), st.sampled_from(list(State)), st.booleans()
    ),
    max_size=14,
)


def play(acts: list[tuple[int, int, str, State, bool]]) -> Model:
    """Run and run again intervals and epochs at random; what is refused is left out, some end before `published`."""
    model = Model()
    for start, length, carry, last, epoch in acts:
        tip = model.state.tip
        span = Span(start, start + length)
        if epoch:
            span = Span(tip.span.end, tip.span.end + 1) if tip else Span(0, 1)
        try:
            number = model.begin(span, CommitKind.EPOCH if epoch else CommitKind.INTERVAL)
        except refusals.CommitError:
            continue
        if last is State.ABANDONED:
            model.append(steps.abandon(model.state, number, why="drawn"))
            continue
        model.append(steps.write(model.state, number, counts={}, hashes={}, carry_hash=carry, durations={}))
        end = steps.reject if last is State.REJECTED else steps.publish
        model.append(end(model.state, number, verdict="drawn"))
    return model


@settings(max_examples=examples_of(50, 200), deadline=None)
@given(ACTS, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(
    acts: list[tuple[int, int, str, State, bool]], shuffler: random.Random
) -> None:
    rows = play(acts).rows
    mixed = shuffler.sample(rows, len(rows))
    left, right = LogState.of(rows), LogState.of(mixed)
    assert (left.published, left.stale, left.commits) == (right.published, right.stale, right.commits)


@settings(max_examples=examples_of(50, 200), deadline=None)
@given(ACTS)
def test_published_intervals_follow_one_another_without_gap_or_overlap(
    acts: list[tuple[int, int, str, State, bool]],
) -> None:
    spans = [row.span for row in play(acts).state.published]
    assert all(before.end == after.start for before, after in pairwise(spans))


@settings(max_examples=examples_of(50, 200), deadline=None)
@given(ACTS)
def test_only_a_published_row_changes_what_readers_see(acts: list[tuple[int, int, str, State, bool]]) -> None:
    rows = play(acts).rows
    for place, row in enumerate(rows):
        before, after = LogState.of(rows[:place]).visible, LogState.of(rows[: place + 1]).visible
        assert (after == before) == (row.state is not State.PUBLISHED)


@settings(max_examples=examples_of(50, 200), deadline=None)
@given(ACTS)
def test_a_stale_commits_parent_was_superseded_by_another_carry(
    acts: list[tuple[int, int, str, State, bool]],
) -> None:
    state = play(acts).state
    ends = {row.span.end: row.carry_hash for row in state.published}
    for row in state.published[1:]:
        began_with = state.commits[row.parent].carry_hash if row.parent else None
        assert (row in state.stale) == (began_with != ends[row.span.start])


@settings(max_examples=examples_of(50, 200), deadline=None)
@given(ACTS)
def test_the_carry_at_a_commit_has_one_line(acts: list[tuple[int, int, str, State, bool]]) -> None:
    state = play(acts).state
    for row in state.published:
        base, deltas = state.carry_line(row.commit)
        chain = [base, *deltas]
        assert chain[-1] == row.commit
        assert base == 0 or state.has_base(base)
        assert all(state.parent_of(child) == parent for parent, child in pairwise(chain))
        assert {*chain} - {0} <= state.carried


TEXT = st.text(max_size=8)
ENTRIES = st.builds(
    Entry,
    entry=st.integers(1, 2**40),
    commit=st.integers(0, 2**40),
    state=st.sampled_from(State),
    kind=st.sampled_from(CommitKind),
    parent=st.integers(0, 2**40),
    span=st.tuples(st.integers(-(2**50), 2**50), st.integers(1, 2**50)).map(lambda pair: Span(*pair)),
    sequences=st.lists(st.integers(1, 9)).map(tuple),
    plan=st.none() | TEXT,
    fingerprint=st.none() | TEXT,
    counts=st.dictionaries(TEXT, st.integers()),
    hashes=st.dictionaries(TEXT, TEXT),
    carry_hash=st.none() | TEXT,
    supersedes=st.lists(st.integers(1, 9)).map(tuple),
    files=st.none() | TEXT,
    settled=st.none() | TEXT,
    at=st.integers(0, 2**52),
)


@settings(deadline=None)
@given(st.lists(ENTRIES, max_size=3))
def test_rows_of_the_log_are_read_as_they_were_written(entries: list[Entry]) -> None:
    for entry in entries:
        assert from_table(to_table(entry)) == [entry]


def step_through(driver: Driver, span: Span) -> int:
    number = driver.next_number()
    driver.intent(number, span, driver.state().parent_for(span.start), [number], {"flow": "f"}, "print")
    driver.written(number, {}, {"s": 1}, {"s": "h"}, "carry", {"tasks": 12})
    driver.publish(number)
    return number


def test_a_driver_takes_a_commit_through_its_steps(tmp_path: Path) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        assert driver.pending() is None
        assert step_through(driver, Span(10, 20)) == 1
        assert step_through(driver, Span(20, 30)) == 2
    state = CommitLog(tmp_path).state()
    assert [(row.commit, row.parent, row.span) for row in state.published] == [(1, 0, (10, 20)), (2, 1, (20, 30))]
    assert (state.published[0].counts, state.published[0].plan) == ({"s": 1}, '{"flow":"f"}')
    assert [row.entry for row in state.entries] == list(range(1, 10))
    steps_of_one = [State.INTENT, State.WRITTEN, State.PUBLISHED]
    assert [row.state for row in state.entries] == [State.FORMAT, State.LEASE, *steps_of_one * 2, State.SETTLED]


def test_a_log_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert CommitLog(tmp_path).rows() == ()
    assert not (tmp_path / "commits").exists()


def test_a_log_of_many_files_is_compacted_when_a_driver_opens_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.engine.commits.log.MANY_FILES", 3)
    with open_driver(tmp_path, flow="f") as driver:
        step_through(driver, Span(10, 20))
    with open_driver(tmp_path, flow="f") as driver:
        assert len(DeltaTable(str(driver.log.path)).file_uris()) == 1
        step_through(driver, Span(20, 30))
    assert [row.commit for row in CommitLog(tmp_path).state().published] == [1, 2]


def test_a_log_that_was_compacted_reads_the_same(tmp_path: Path) -> None:
    log = CommitLog(tmp_path)
    with open_driver(tmp_path, flow="f") as driver:
        step_through(driver, Span(10, 20))
        before = log.state()
        DeltaTable(str(log.path)).optimize.compact()
        step_through(driver, Span(20, 30))
    assert log.state().entries[: len(before.entries)] == before.entries
    assert log.state() == CommitLog(tmp_path).state()


@pytest.mark.parametrize("compacted", [False, True])
def test_a_bit_of_a_log_that_changed_is_named_or_means_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, compacted: bool
) -> None:
    """Never other commits: what cannot be read is told, but the newest version, which counts as torn."""
    with open_driver(tmp_path, flow="f") as driver:
        step_through(driver, Span(10, 20))
    monkeypatch.setattr("pipelines.engine.commits.log.MANY_FILES", 1 if compacted else 100)
    with open_driver(tmp_path, flow="f") as driver:
        step_through(driver, Span(20, 30))
    log = CommitLog(tmp_path)
    wanted, newest = log.state(), max((log.path / "_delta_log").glob("*.json"))

    for file in sorted([*log.path.glob("*.parquet"), *log.path.glob("_delta_log/*.json")]):
        whole = file.read_bytes()
        for place in range(0, len(whole), 229 if file.suffix == ".parquet" else 101):
            file.write_bytes(flipped_at(whole, place))
            with suppress(TableError):
                found = CommitLog(tmp_path).state()
                lacks = wanted.entries[: len(found.entries)] if file == newest else wanted.entries
                assert found.entries == lacks, (file.name, place)
        file.write_bytes(whole)


def flipped_at(whole: bytes, place: int) -> bytes:
    return whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :]


def a_file(root: Path, commit: int, values: Sequence[int]) -> NewFile:
    """Write a file of the stream `s` as a task does."""
    name = f"{UNNAMED}/c{commit:08d}-0-0-{uuid.uuid4().hex[:8]}.parquet"
    path = stream_path(root, "s") / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"commit": [commit] * len(values), "value": values}, schema=ROWS), path)
    return NewFile(name=name, rows=len(values), size=path.stat().st_size)


def in_table(root: Path) -> list[str]:
    """Name the files that whoever opens the table `s` reads."""
    table = DeltaTable(str(stream_path(root, "s")))
    return sorted(pa.table(table.get_add_actions())["path"].to_pylist())


def test_files_are_named_under_a_pending_intent_and_enter_their_table_when_it_is_published(tmp_path: Path) -> None:
    create(stream_path(tmp_path, "s"), ROWS)
    file = a_file(tmp_path, 1, [1])
    files = {"streams/s": [file]}
    with open_driver(tmp_path, flow="f") as driver:
        with pytest.raises(refusals.WrongStepError, match="come to nothing"):
            driver.written(1, files, {}, {}, "h", {})
        driver.intent(1, Span(10, 20), 0, [1], {}, "print")
        with pytest.raises(refusals.WrongStepError, match="come to nothing"):
            driver.written(2, files, {}, {}, "h", {})
        driver.written(1, files, {}, {}, "h", {})
        assert in_table(tmp_path) == []
        with pytest.raises(refusals.WrongStepError, match="come to intent"):
            driver.written(1, files, {}, {}, "h", {})
    with open_driver(tmp_path, flow="f") as again:
        assert in_table(tmp_path) == []
        again.publish(1)
        assert in_table(tmp_path) == [file.name]
        version = DeltaTable(str(stream_path(tmp_path, "s"))).version()
    with open_driver(tmp_path, flow="f") as third:
        third.settle()
    assert (in_table(tmp_path), DeltaTable(str(stream_path(tmp_path, "s"))).version()) == ([file.name], version)


def test_a_file_that_is_not_whole_is_not_written_and_not_published(tmp_path: Path) -> None:
    create(stream_path(tmp_path, "s"), ROWS)
    with open_driver(tmp_path, flow="f") as driver:
        driver.intent(1, Span(10, 20), 0, [1], {}, "print")
        file = a_file(tmp_path, 1, [1])
        with pytest.raises(FileMissingError, match="with all its bytes"):
            driver.written(1, {"streams/s": [file._replace(size=file.size + 1)]}, {}, {}, "h", {})
        with pytest.raises(FileMissingError, match="run what wrote it again"):
            driver.written(1, {"streams/s": [file._replace(name="c1.parquet")]}, {}, {}, "h", {})
        driver.written(1, {"streams/s": [file]}, {}, {}, "h", {})
        (stream_path(tmp_path, "s") / file.name).unlink()
        with pytest.raises(FileMissingError, match="run what wrote it again"):
            driver.publish(1)
        assert driver.state().commits[1].state is State.WRITTEN
    assert in_table(tmp_path) == []


@pytest.mark.parametrize("verdict", ["reject", "abandon"])
def test_a_table_never_has_what_was_not_published(tmp_path: Path, verdict: str) -> None:
    create(stream_path(tmp_path, "s"), ROWS)
    with open_driver(tmp_path, flow="f") as driver:
        driver.intent(1, Span(10, 20), 0, [1], {}, "print")
        driver.written(1, {"streams/s": [a_file(tmp_path, 1, [1])]}, {}, {}, "h", {})
        driver.reject(1, verdict="late") if verdict == "reject" else driver.abandon(1, why="drawn")
    with open_driver(tmp_path, flow="f") as driver:
        driver.settle()
    assert (in_table(tmp_path), DeltaTable(str(stream_path(tmp_path, "s"))).version()) == ([], 0)


def run(root: Path, end: int, die_at: str = "") -> int | None:
    """Backfill in a process of its own."""
    return ended("tests.engine.commits.driver_process", str(root), "run", "0", str(end), *([die_at] if die_at else []))[
        0
    ]


def content(root: Path) -> tuple[list[int], list[int], int, list[str | None]]:
    """Give what a reader sees of a run: values, commits, the carry, the carry's hashes."""
    state = CommitLog(root).state()
    rows = read_stream(root, "numbers")
    tip = state.tip.commit if state.tip else 0
    total = read_carry(root, "numbers", "state", tip)["total"].to_pylist()[0]
    return rows["value"].to_pylist(), rows["commit"].to_pylist(), total, [row.carry_hash for row in state.published]


@pytest.mark.parametrize("point", ["intent", "between", "listed", "written", "published", "settled"])
def test_a_backfill_that_was_killed_gives_the_same_when_run_again(tmp_path: Path, point: str) -> None:
    assert run(tmp_path, 20, point) == -signal.SIGKILL
    assert run(tmp_path, 20) == 0
    values, commits, total, hashes = content(tmp_path)
    assert values == list(range(20))
    assert commits == [1] * 10 + [2] * 10
    assert (total, hashes) == (190, ["45", "190"])
    table = DeltaTable(str(stream_path(tmp_path, "numbers")))
    assert len(table.file_uris()) == 2
    recorded = CommitLog(tmp_path).state().recorded
    assert recorded is not None
    assert (recorded.commit, recorded.versions) == (2, {"streams/numbers": table.version()})


@pytest.mark.parametrize(
    "error",
    [
        refusals.LeaseHeldError("f", "process 1 on h", 0),
        refusals.LeaseLostError("f", 1, 2, "process 1 on h", 0),
        refusals.MissingPredecessorError(3, 1, 3),
        refusals.BeforeFirstError(1, 2),
        refusals.GapError(1, 2),
        refusals.PartialOverlapError(2, 1, 0, 10),
        refusals.StreamedSpanError(1, 2, 3, 0, 4),
        refusals.PendingCommitError(1, "intent"),
        refusals.WrongStepError(1, "publish", "a", "b"),
        refusals.PlanChangedError(1, "a", "b"),
        refusals.OlderHomeError("root", 1, 2),
        refusals.NewerHomeError("root", 3, 2),
    ],
)
def test_errors_survive_pickling(error: refusals.CommitError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
