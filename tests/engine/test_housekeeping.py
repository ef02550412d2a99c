"""Streams that run for days: idle epochs, folded carries, a log that is followed, and tables kept young."""

from __future__ import annotations

import datetime as dt
import signal
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.engine import handles, housekeeping, readers, refusals, steps, tables
from pipelines.engine.commits import CommitLog, Driver, open_driver
from pipelines.engine.entries import CommitKind, Entry, Span, State
from pipelines.engine.following import Following
from pipelines.engine.handles import Handle
from pipelines.engine.history import CarryLine, LogState
from pipelines.engine.lease import Claim
from pipelines.engine.sweep import sweep
from pipelines.engine.tables import NewFile, active_files, carry_path, create, stream_path
from tests.forked import ended

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

AT_ONCE = dt.timedelta(0)
STREAM = pa.schema(
    [
        pa.field("arrival", pa.timestamp("us", tz="UTC")),
        pa.field("place", pa.int64()),
        pa.field("commit", pa.int64()),
    ]
)
CARRY = pa.schema([pa.field(name, pa.int64() if name != "change" else pa.string()) for name in ("commit", "change")])
CARRY = CARRY.append(pa.field("key", pa.int64())).append(pa.field("due", pa.int64()))


def new_file(folder: Path, commit: int, rows: pa.Table) -> NewFile:
    """Write a task's file."""
    file = folder / f"c{commit:08d}-0-0-{uuid.uuid4().hex[:8]}.parquet"
    pq.write_table(rows, file)
    return NewFile(name=file.name, rows=rows.num_rows, size=file.stat().st_size)


def add_rows(driver: Driver, number: int, changes: Sequence[tuple[str, int, int | None]]) -> None:
    """Add one row of the stream and some of the carry."""
    stream, carry = stream_path(driver.root, "s"), carry_path(driver.root, "s", "state")
    create(stream, STREAM)
    create(carry, CARRY)
    row = pa.table({"arrival": [number], "place": [1], "commit": [number]}).cast(STREAM)
    driver.add_files(number, stream, [new_file(stream, number, row)])
    rows = [{"commit": number, "change": change, "key": key, "due": due} for change, key, due in changes]
    driver.add_files(number, carry, [new_file(carry, number, pa.Table.from_pylist(rows, schema=CARRY))])


def begin(driver: Driver, kind: CommitKind = CommitKind.EPOCH) -> int:
    """Write the intent of the next commit, one tick long."""
    number, tip = driver.next_number(), driver.state().tip
    parent = tip.commit if tip else 0
    driver.intent(number, Span(number, number + 1), parent, [number], {}, "print", kind=kind)
    return number


def epoch(driver: Driver, changes: Sequence[tuple[str, int, int | None]]) -> int:
    """Publish an epoch in two rows."""
    number = begin(driver)
    add_rows(driver, number, changes)
    driver.written_and_published(number, {"s": 1}, {"s": "h"}, f"carry {number}", {"tasks": 2})
    return number


def dues(root: Path, commit: int) -> dict[int, int]:
    """Read the carry at a commit."""
    found = readers.read_carry(root, "s", "state", commit, key=["key"])
    return dict(zip(found["key"].to_pylist(), found["due"].to_pylist(), strict=True))


def commits_seen(root: Path) -> list[int]:
    """Read the stream's rows as a reader does."""
    return list(readers.read_stream(root, "s")["commit"].to_pylist())


# --- the log is followed

ACTS = st.lists(
    st.tuples(
        st.sampled_from(["interval", "epoch", "idle", "fold", "lease", "reset"]), st.integers(0, 5), st.integers(1, 2)
    ),
    max_size=14,
)


def stamped(rows: list[Entry], row: Entry) -> None:
    """Append a row to a log in memory."""
    rows.append(replace(row, entry=len(rows) + 1, token=row.token or 1, at=len(rows)))


def act(rows: list[Entry], name: str, start: int, length: int) -> None:
    """Do what a driver would; what is refused leaves what came before it."""
    state = LogState.of(rows)
    tip = state.tip
    ahead = Span(tip.span.end, tip.span.end + 1) if tip else Span(0, 1)
    if name == "lease":
        stamped(rows, steps.hold(state, {"pid": start}))
    elif name == "reset":
        stamped(rows, steps.reset(state, state.next_number, start))
    elif name == "idle":
        stamped(rows, steps.idle(state, state.next_number, ahead, sequences=[1], counts={}))
    else:
        epochal = name != "interval"
        span = ahead if epochal else Span(start, start + length)
        kind = CommitKind.EPOCH if epochal else CommitKind.INTERVAL
        parent = (tip.commit if tip else 0) if epochal else state.parent_for(start)
        number = state.next_number
        facts = {"kind": kind, "parent": parent, "sequences": [1], "plan": "{}", "fingerprint": "print"}
        stamped(rows, steps.intend(state, number, span, **facts))  # type: ignore[arg-type]
        if name == "fold":
            stamped(rows, steps.fold(LogState.of(rows), number))
        if start == 5:
            stamped(rows, steps.abandon(LogState.of(rows), number, why="drawn"))
            return
        known = {"counts": {}, "hashes": {}, "carry_hash": "ab"[length - 1], "durations": {}}
        stamped(rows, steps.write(LogState.of(rows), number, **known))  # type: ignore[arg-type]
        stamped(rows, steps.publish(LogState.of(rows), number, verdict=None))


def play(acts: list[tuple[str, int, int]]) -> list[Entry]:
    """Play acts into a log in memory."""
    rows: list[Entry] = []
    for chosen in acts:
        try:
            act(rows, *chosen)
        except refusals.CommitError:
            continue
    return rows


def facts(state: LogState) -> dict[str, object]:
    """Ask a state everything."""
    numbers = list(state.commits)
    known = {name: getattr(state, name) for name in ("newest_entry", "token", "lease", "next_number", "pending", "tip")}
    known |= {name: getattr(state, name) for name in ("published", "visible", "stale", "carried")}
    known |= {"commits": dict(state.commits), "successors": dict(state.successors), "rows": tuple(state.entries)}
    known |= {
        "lines": [state.carry_line(number) for number in numbers],
        "at": [state.at(Span(n, n + 1)) for n in range(9)],
    }
    return known | {"asked": [refused_or(state, edge) for edge in range(9)]}


def refused_or(state: LogState, edge: int) -> tuple[object, ...]:
    """Ask about an edge; a refusal is an answer."""
    answers: list[object] = []
    questions: list[Callable[[], object]] = [
        lambda: state.parent_for(edge),
        lambda: state.superseded_by(Span(edge, edge + 2)),
    ]
    for question in questions:
        try:
            answers.append(question())
        except refusals.CommitError as error:
            answers.append((type(error), error.args))
    return tuple(answers)


@settings(max_examples=150, deadline=None)
@given(ACTS, st.lists(st.integers(0, 40), max_size=4))
def test_a_log_that_is_followed_says_what_its_rows_say(acts: list[tuple[str, int, int]], cuts: list[int]) -> None:
    rows = play(acts)
    states, states_at, done = [Following()], [0], 0
    for cut in [*sorted(cut for cut in cuts if cut < len(rows)), len(rows)]:
        states.append(states[-1].then(rows[done:cut]))
        states_at.append(cut)
        done = cut
    assert facts(states[-1]) == facts(LogState.of(rows))
    for state, cut in zip(states, states_at, strict=True):
        assert facts(state) == facts(LogState.of(rows[:cut]))


@settings(max_examples=50, deadline=None)
@given(ACTS)
def test_a_state_that_was_kept_goes_on_from_where_it_was(acts: list[tuple[str, int, int]]) -> None:
    rows = play(acts)
    half = len(rows) // 2
    kept = Following().then(rows[:half])
    kept.then(rows[half:])
    assert facts(kept.then(rows[half:])) == facts(LogState.of(rows))
    assert facts(kept) == facts(LogState.of(rows[:half]))


def test_a_log_of_one_process_is_followed_by_another(tmp_path: Path) -> None:
    other = CommitLog(tmp_path)
    with open_driver(tmp_path, flow="f") as driver:
        for _ in range(3):
            epoch(driver, [("set", 1, 1)])
            assert facts(other.state()) == facts(LogState.of(CommitLog(tmp_path).rows())) == facts(driver.state())


# --- a handle is as good as opening the table


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give the folder of a table that is made."""
    create(tmp_path / "t", STREAM)
    return tmp_path / "t"


def put(folder: Path, number: int) -> None:
    """Add a file through a handle of its own."""
    row = pa.table({"arrival": [number], "place": [1], "commit": [number]}).cast(STREAM)
    tables.add_files(folder, "f/t", number, [new_file(folder, number, row)])


def test_a_look_finds_nothing_new_or_all_of_it(folder: Path) -> None:
    handle = Handle(folder)
    for number in range(1, 4):
        put(folder, number)
        table = handle.look()
        assert table
        assert (table.version(), table.transaction_version("f/t")) == (number, number)
        assert handle.look() is table


def test_a_look_sees_past_a_log_that_was_cleaned(folder: Path) -> None:
    handle = Handle(folder)
    handle.look()
    for number in range(1, 4):
        put(folder, number)
    DeltaTable(str(folder)).create_checkpoint()
    assert housekeeping.clean_log(folder, AT_ONCE) == 3
    table = handle.look()
    assert table
    assert (table.version(), len(table.file_uris())) == (3, 3)


def test_a_handle_whose_version_was_cleaned_adds_nothing(folder: Path) -> None:
    put(folder, 1)
    handle = Handle(folder)
    handle.look()
    for number in range(2, 5):
        put(folder, number)
    DeltaTable(str(folder)).create_checkpoint()
    housekeeping.clean_log(folder, AT_ONCE)
    row = pa.table({"arrival": [9], "place": [1], "commit": [9]}).cast(STREAM)
    with pytest.raises(tables.ConcurrentAddError):
        handle.append([new_file(folder, 9, row)], "f/t", 9)
    assert len(DeltaTable(str(folder)).file_uris()) == 4


def test_a_table_that_was_made_again_is_seen_as_it_is(folder: Path) -> None:
    handle = Handle(folder)
    put(folder, 1)
    handle.look()
    for file in sorted(folder.rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    assert handle.look() is None
    create(folder, STREAM)
    put(folder, 1)
    put(folder, 2)
    table = handle.look()
    assert table
    assert table.transaction_version("f/t") == 2


def test_a_writer_checkpoints_and_the_table_stays_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handles, "CHECKPOINT_EVERY", 2)
    handle = Handle(folder)
    for number in range(1, 8):
        handle.keep_young()
        put(folder, number)
    assert handles.last_checkpoint(folder) >= 4
    assert len(DeltaTable(str(folder)).file_uris()) == 7


# --- idle, fold, one row for two


def test_an_idle_epoch_is_one_row_and_the_carry_goes_on_under_it(tmp_path: Path) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        epoch(driver, [("set", 1, 1), ("set", 2, 2)])
        before = driver.state().newest_entry
        for number in (2, 3):
            assert driver.idle(number, Span(number, number + 1), [number], {"landed": 0}).carry_hash == "carry 1"
        assert driver.state().newest_entry == before + 2
        epoch(driver, [("gone", 1, None)])
        assert driver.state().carry_line(4) == CarryLine(0, (1, 4))
        assert [row.commit for row in driver.state().published] == [1, 2, 3, 4]
    assert [dues(tmp_path, number) for number in (3, 4)] == [{1: 1, 2: 2}, {2: 2}]


def test_an_idle_epoch_is_refused_what_an_epoch_is_refused(tmp_path: Path) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        epoch(driver, [("set", 1, 1)])
        with pytest.raises(refusals.StreamedSpanError):
            driver.idle(2, Span(1, 3), [2], {})
        with pytest.raises(refusals.WrongStepError, match="number 2"):
            driver.idle(3, Span(2, 3), [2], {})
        begin(driver)
        with pytest.raises(refusals.PendingCommitError):
            driver.idle(3, Span(3, 4), [2], {})


def test_an_idle_epoch_replaces_no_interval(tmp_path: Path) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        number = begin(driver, CommitKind.INTERVAL)
        driver.written(number, {}, {}, "carry", {})
        driver.publish(number)
        with pytest.raises(refusals.WrongStepError, match="a span of its own"):
            driver.idle(2, Span(1, 2), [2], {})


def test_a_folded_epoch_is_a_base_and_only_what_comes_after_it_counts(tmp_path: Path) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        epoch(driver, [("set", 1, 1), ("set", 2, 1)])
        number = begin(driver)
        add_rows(driver, number, [("set", 1, 2), ("gone", 2, None), ("base", 1, 2)])
        assert driver.fold(number)
        driver.written_and_published(number, {}, {}, "folded", {})
        found = readers.carry_files(tmp_path, "s", "state", number)
        assert found.line == CarryLine(number, ())
        assert readers.taken_up(found, ["key"])["change"].to_pylist() == ["base"]
        epoch(driver, [("set", 3, 3)])
    assert [dues(tmp_path, commit) for commit in (1, 2, 3)] == [{1: 1, 2: 1}, {1: 2}, {1: 2, 3: 3}]
    assert CommitLog(tmp_path).state().carry_line(3) == CarryLine(2, (3,))


def test_an_attempt_that_cannot_know_of_bases_leaves_deltas(tmp_path: Path) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        epoch(driver, [("set", 1, 1)])
        add_rows(driver, begin(driver), [("set", 2, 2)])
    with open_driver(tmp_path, flow="f") as driver:
        add_rows(driver, 2, [("set", 2, 2), ("base", 1, 1), ("base", 2, 2)])
        assert not driver.fold(2)
        driver.written_and_published(2, {}, {}, "h", {})
    assert dues(tmp_path, 2) == {1: 1, 2: 2}


def test_folding_is_kept_by_the_next_attempt(tmp_path: Path) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        add_rows(driver, begin(driver), [("set", 1, 1), ("base", 1, 1)])
        assert driver.fold(1)
    with open_driver(tmp_path, flow="f") as driver:
        add_rows(driver, 1, [("set", 1, 1)])
        assert driver.fold(1)
        driver.written_and_published(1, {}, {}, "h", {})
        assert driver.state().carry_line(1) == CarryLine(1, ())
        assert [row.state for row in driver.state().entries].count(State.FOLDED) == 1


def test_only_an_epoch_is_folded_or_published_without_a_gate(tmp_path: Path) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        number = begin(driver, CommitKind.INTERVAL)
        with pytest.raises(refusals.WrongStepError, match="kind epoch"):
            driver.fold(number)
        with pytest.raises(refusals.WrongStepError, match="kind epoch"):
            driver.written_and_published(number, {}, {}, "h", {})
        assert driver.pending()


def test_later_steps_add_to_detail_and_durations(tmp_path: Path) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        number = begin(driver)
        driver.written(number, {}, {}, "h", {"tasks": 1}, detail={"timers": 3, "late_ms": 1})
        row = driver.publish(number, detail={"late_ms": 2}, durations={"gate": 4})
        assert (row.detail, row.durations) == ({"timers": 3, "late_ms": 2}, {"tasks": 1, "gate": 4})
        one = begin(driver)
        row = driver.written_and_published(one, {"s": 1}, {}, "h", {"tasks": 1}, detail={"timers": 1})
        assert (row.state, row.detail, row.counts) == (State.PUBLISHED, {"timers": 1}, {"s": 1})
        assert driver.state().tip == driver.state().commits[one]


# --- housekeeping


def files_of(path: Path) -> list[tuple[str, int, int]]:
    """Name a table's files by kind, with their bounds."""
    return sorted((file.path.name[0], file.first, file.last) for file in active_files(DeltaTable(str(path)), path))


def test_epochs_become_one_file_and_read_the_same(tmp_path: Path) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        for number in range(1, 11):
            epoch(driver, [("set", number % 3, number)])
        before = (commits_seen(tmp_path), [dues(tmp_path, number) for number in range(11)])
        assert not driver.keep_house(every=11)
        assert driver.keep_house(every=10)
        assert not driver.keep_house(every=10)
        assert files_of(stream_path(tmp_path, "s")) == [("k", 1, 10)]
        assert files_of(carry_path(tmp_path, "s", "state")) == [("k", 1, 10)]
        assert (commits_seen(tmp_path), [dues(tmp_path, number) for number in range(11)]) == before
        epoch(driver, [("set", 1, 11)])
        assert commits_seen(tmp_path) == list(range(1, 12))


def test_nothing_is_done_while_a_commit_is_open(tmp_path: Path) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        begin(driver)
        assert not driver.keep_house(every=1)


def test_intervals_stay_files_of_their_own_and_go_when_superseded(tmp_path: Path) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        for _ in range(2):
            number = driver.next_number()
            driver.intent(number, Span(0, 3), 0, [1], {}, "print")
            add_rows(driver, number, [("base", 1, number)])
            driver.written(number, {}, {}, "h", {})
            driver.publish(number)
        for _ in range(8):
            epoch(driver, [("set", 1, 1)])
        driver.keep_house(every=1)
        assert files_of(stream_path(tmp_path, "s")) == [("c", 1, 1), ("c", 2, 2), ("k", 3, 10)]
        epoch(driver, [("set", 1, 1)])
        driver.keep_house(every=1, keep=AT_ONCE)
        assert files_of(stream_path(tmp_path, "s")) == [("c", 2, 2), ("c", 11, 11), ("k", 3, 10)]
    assert commits_seen(tmp_path) == list(range(2, 12))


def test_replaced_files_stay_for_a_time_and_strays_go(tmp_path: Path) -> None:
    folder = stream_path(tmp_path, "s")
    with open_driver(tmp_path, flow="f") as driver:
        for _ in range(8):
            epoch(driver, [("set", 1, 1)])
        driver.keep_house(every=1)
        assert len(list(folder.glob("c*.parquet"))) == 8
        (folder / "k00000001-00000002-stray.parquet").write_bytes(b"half")
        epoch(driver, [("set", 1, 1)])
        driver.keep_house(every=1, keep=AT_ONCE)
        assert sorted(file.name[0] for file in folder.glob("*.parquet")) == ["c", "k"]
        epoch(driver, [("set", 1, 1)])
    assert commits_seen(tmp_path) == list(range(1, 11))


def test_a_reader_that_opened_its_files_before_reads_on(tmp_path: Path) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        for _ in range(8):
            epoch(driver, [("set", 1, 1)])
        found = readers.published(tmp_path, "s")
        driver.keep_house(every=1)
        assert sorted(found.scan(["commit"])["commit"].to_pylist()) == list(range(1, 9))


def test_versions_before_an_old_checkpoint_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeping, "KEEP_LOG", AT_ONCE)
    with open_driver(tmp_path, flow="f") as driver:
        log = CommitLog(tmp_path)
        log.state()
        for _ in range(8):
            epoch(driver, [("set", 1, 1)])
        driver.keep_house(every=1)
        for table in (stream_path(tmp_path, "s"), tables.commits_path(tmp_path)):
            assert len(list((table / "_delta_log").glob("*.json"))) == 1
        assert log.state() == CommitLog(tmp_path).state()
        epoch(driver, [("set", 1, 1)])
        sweep(tmp_path, AT_ONCE)
    assert commits_seen(tmp_path) == list(range(1, 10))


def test_a_driver_that_was_overtaken_keeps_no_house(tmp_path: Path) -> None:
    with open_driver(tmp_path, flow="f") as old:
        for _ in range(8):
            epoch(old, [("set", 1, 1)])
        house, state = old._house, old.state()
        with open_driver(tmp_path, flow="f", claim=Claim.TAKE_OVER) as new:
            new.keep_house(every=1)
            with pytest.raises(refusals.LeaseLostError):
                old.keep_house(every=1)
            with pytest.raises(tables.ConcurrentAddError, match="later driver"):
                house.keep(old.log, state, AT_ONCE)
        assert commits_seen(tmp_path) == list(range(1, 9))


def test_a_compaction_from_before_a_later_driver_is_refused(tmp_path: Path) -> None:
    folder = stream_path(tmp_path, "s")
    with open_driver(tmp_path, flow="f") as driver:
        epoch(driver, [("set", 1, 1)])
    stopped = Handle(folder)
    stopped.look()
    with open_driver(tmp_path, flow="f") as driver:
        driver.keep_house(every=1)
    with pytest.raises(tables.ConcurrentAddError):
        stopped.commit([], "f/streams/s/house", 1)


def process(root: Path, *arguments: str) -> int | None:
    """Run epochs with housekeeping in a process of its own."""
    return ended("tests.engine.housekeeping_process", str(root), *arguments)[0]


@pytest.mark.parametrize("point", ["merged", "compacted", "swept", "log", "vacuumed", "checkpointed"])
def test_a_stream_that_is_killed_keeping_house_goes_on_the_same(tmp_path: Path, point: str) -> None:
    assert process(tmp_path, "12", point) == -signal.SIGKILL
    assert commits_seen(tmp_path) == list(range(1, 11))
    assert dues(tmp_path, 10) == {0: 9, 1: 10, 2: 8}
    assert process(tmp_path, "24") == 0
    assert commits_seen(tmp_path) == list(range(1, 25))
    assert dues(tmp_path, 24) == {0: 24, 1: 22, 2: 23}
    folder = stream_path(tmp_path, "s")
    known = {file.path.name for file in active_files(DeltaTable(str(folder)), folder)}
    assert {file.name for file in folder.glob("*.parquet")} == known
