"""Streams that run for days: idle epochs, folded carries, a log that is followed, and tables kept young."""

from __future__ import annotations

import datetime as dt
import signal
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.engine.commits import delta_log, log, readers, steps
from pipelines.engine.commits import errors as refusals
from pipelines.engine.commits import paths as tables
from pipelines.engine.commits.delta_log import HOUSE, SETTLED, active_files, create
from pipelines.engine.commits.driver import CommitLog, Driver, open_driver
from pipelines.engine.commits.entry import CommitKind, Entry, Span, State
from pipelines.engine.commits.file_lists import FileLists
from pipelines.engine.commits.history import CarryLine, LogState, settled_text
from pipelines.engine.commits.incremental import Following
from pipelines.engine.commits.lease import Claim
from pipelines.engine.commits.paths import NewFile, carry_path, stream_path
from pipelines.engine.commits.sweep import sweep
from pipelines.engine.commits.table_log import TableChange, TableLog
from pipelines.engine.files.folders import UNNAMED
from tests.forked import ended
from tests.wide import drawn as examples_of

if TYPE_CHECKING:
    from collections.abc import Callable
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
    below = "" if folder.parent.name == "carry" else f"{UNNAMED}/"
    file = folder / f"{below}c{commit:08d}-0-0-{uuid.uuid4().hex[:8]}.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, file)
    size = file.stat().st_size
    return NewFile(name=f"{below}{file.name}", rows=rows.num_rows, size=size, first=commit, last=commit)


Files = Mapping[str, Sequence[NewFile]]


def files_for(driver: Driver, number: int, changes: Sequence[tuple[str, int, int | None]]) -> Files:
    """Write one row of the stream and some of the carry, as tasks do."""
    stream, carry = stream_path(driver.root, "s"), carry_path(driver.root, "s", "state")
    create(stream, STREAM)
    row = pa.table({"arrival": [number], "place": [1], "commit": [number]}).cast(STREAM)
    rows = [{"commit": number, "change": change, "key": key, "due": due} for change, key, due in changes]
    table = pa.Table.from_pylist(rows, schema=CARRY)
    return {
        "streams/s": [new_file(stream, number, row)],
        "carry/s.state": [new_file(carry, number, table)] if changes else [],
    }


def begin(driver: Driver, kind: CommitKind = CommitKind.EPOCH) -> int:
    """Write the intent of the next commit, one tick long."""
    number, tip = driver.next_number(), driver.state().tip
    parent = tip.commit if tip else 0
    driver.intent(number, Span(number, number + 1), parent, [number], {}, "print", kind=kind)
    return number


def epoch(driver: Driver, changes: Sequence[tuple[str, int, int | None]]) -> int:
    """Publish an epoch in two rows."""
    number = begin(driver)
    files = files_for(driver, number, changes)
    driver.written_and_published(number, files, {"s": {"data": 1}}, {"s": "h"}, f"carry {number}", {"tasks": 2})
    return number


def dues(root: Path, commit: int) -> dict[int, int]:
    """Read the carry at a commit."""
    found = readers.read_carry(root, "s", "state", commit, key=["key"])
    if not found.num_rows:
        return {}
    return dict(zip(found["key"].to_pylist(), found["due"].to_pylist(), strict=True))


def commits_seen(root: Path) -> list[int]:
    """Read the stream's rows as a reader does."""
    return list(readers.read_stream(root, "s")["commit"].to_pylist())


# --- the log is followed

ASIDE_ACTS = ("folded", "compacted", "settled", "rebuilt", "format")
ACTS = st.lists(
    st.tuples(
        st.sampled_from(["interval", "epoch", "idle", "fold", "lease", "reset", *ASIDE_ACTS]),
        st.integers(0, 5),
        st.integers(1, 2),
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
    elif name in ASIDE_ACTS:
        aside(rows, name, start)
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
        if start == 5:
            stamped(rows, steps.abandon(LogState.of(rows), number, why="drawn"))
            return
        known = {"counts": {}, "hashes": {}, "carry_hash": "ab"[length - 1], "durations": {}}
        known["detail"] = {"folded": True} if name == "fold" else {}
        stamped(rows, steps.write(LogState.of(rows), number, **known))  # type: ignore[arg-type]
        stamped(rows, steps.publish(LogState.of(rows), number, verdict=None))


def aside(rows: list[Entry], name: str, start: int) -> None:
    """Append a row about the tables, or the one of older code that says that a base stands beside the deltas."""
    state, settled = LogState.of(rows), None
    number = state.next_number - 1
    if name == "folded" and (number not in state.commits or state.commits[number].leaves_carry):
        return
    if name == "settled":
        settled = settled_text(number, {"streams/s": start}, start)
    kind = CommitKind.EPOCH if name == "folded" else CommitKind.HOUSE
    detail = {"table": f"streams/{start}", "covers": [[1, start]], "out": [], "format": 2, "past": start}
    commit = number if name == "folded" else 0
    stamped(rows, Entry(state=State(name), kind=kind, commit=commit, detail=detail, settled=settled))


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
    known |= {name: getattr(state, name) for name in ("format", "newest_published", "recorded")}
    known |= {"compactions": {table: list(rows) for table, rows in state.compactions.items()}}
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


@settings(max_examples=examples_of(50, 150), deadline=None)
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


@settings(max_examples=examples_of(25, 50), deadline=None)
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


# --- a look is as good as opening the table


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give the folder of a table that is made."""
    create(tmp_path / "t", STREAM)
    return tmp_path / "t"


def put(folder: Path, number: int) -> None:
    """Add a file from a look of its own."""
    row = pa.table({"arrival": [number], "place": [1], "commit": [number]}).cast(STREAM)
    log = TableLog(folder)
    log.look()
    log.commit(TableChange(adds=[new_file(folder, number, row)]), {SETTLED: number})


def test_a_look_finds_nothing_new_or_all_of_it(folder: Path) -> None:
    log = TableLog(folder)
    for number in range(1, 4):
        put(folder, number)
        assert log.look()
        assert (log.version, log.settled(), len(log.files)) == (number, number, number)
        assert log.look()
        fresh = TableLog(folder)
        assert fresh.look()
        assert (log.version, log.applications, log.files) == (fresh.version, fresh.applications, fresh.files)


def test_a_look_sees_past_a_log_that_was_cleaned(folder: Path) -> None:
    log = TableLog(folder)
    log.look()
    for number in range(1, 4):
        put(folder, number)
    assert delta_log.checkpoint(folder) == 3
    assert delta_log.clean_log(folder, AT_ONCE) == 3
    assert log.look()
    assert (log.version, log.settled(), len(log.files)) == (3, 3, 3)


def test_a_look_whose_version_was_cleaned_adds_nothing(folder: Path) -> None:
    put(folder, 1)
    log = TableLog(folder)
    log.look()
    for number in range(2, 5):
        put(folder, number)
    delta_log.checkpoint(folder)
    delta_log.clean_log(folder, AT_ONCE)
    row = pa.table({"arrival": [9], "place": [1], "commit": [9]}).cast(STREAM)
    with pytest.raises(tables.ConcurrentAddError):
        log.commit(TableChange(adds=[new_file(folder, 9, row)]), {SETTLED: 9})
    assert len(DeltaTable(str(folder)).file_uris()) == 4


def test_a_table_that_was_made_again_is_seen_as_it_is(folder: Path) -> None:
    log = TableLog(folder)
    put(folder, 1)
    log.look()
    for file in sorted(folder.rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    assert not log.look()
    create(folder, STREAM)
    put(folder, 1)
    put(folder, 2)
    assert log.look()
    assert (log.version, log.settled(), len(log.files)) == (2, 2, 2)


def test_a_checkpoint_leaves_the_table_the_same(folder: Path) -> None:
    for number in range(1, 8):
        if number % 3 == 0:
            assert delta_log.checkpoint(folder) == number - 1 == delta_log.checkpoint(folder)
        put(folder, number)
    assert delta_log.checkpoint_version(folder) == 5
    assert len(DeltaTable(str(folder)).file_uris()) == 7
    assert DeltaTable(str(folder)).transaction_version(SETTLED) == 7


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
        driver.written(number, {}, {}, {}, "carry", {})
        driver.publish(number)
        with pytest.raises(refusals.WrongStepError, match="a span of its own"):
            driver.idle(2, Span(1, 2), [2], {})


FOLDED = {"folded": True}


def test_a_folded_epoch_is_a_base_and_only_what_comes_after_it_counts(tmp_path: Path) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        epoch(driver, [("set", 1, 1), ("set", 2, 1)])
        number = begin(driver)
        files = files_for(driver, number, [("set", 1, 2), ("gone", 2, None), ("base", 1, 2)])
        driver.written_and_published(number, files, {}, {}, "folded", {}, detail=FOLDED)
        found = readers.carry_files(tmp_path, "s", "state", number)
        assert found.line == CarryLine(number, ())
        assert readers.taken_up(found, ["key"])["change"].to_pylist() == ["base"]
        epoch(driver, [("set", 3, 3)])
    assert [dues(tmp_path, commit) for commit in (1, 2, 3)] == [{1: 1, 2: 1}, {1: 2}, {1: 2, 3: 3}]
    assert CommitLog(tmp_path).state().carry_line(3) == CarryLine(2, (3,))


def test_a_base_that_no_row_tells_of_is_left_out(tmp_path: Path) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        epoch(driver, [("set", 1, 1)])
        files_for(driver, begin(driver), [("set", 2, 2)])
    with open_driver(tmp_path, flow="f") as driver:
        files = files_for(driver, 2, [("set", 2, 2), ("base", 1, 1), ("base", 2, 2)])
        driver.written_and_published(2, files, {}, {}, "h", {})
        assert driver.state().carry_line(2) == CarryLine(0, (1, 2))
    assert dues(tmp_path, 2) == {1: 1, 2: 2}


def test_what_an_attempt_folded_is_said_by_the_row_that_names_its_files(tmp_path: Path) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        files_for(driver, begin(driver), [("set", 1, 1), ("base", 1, 1)])
    with open_driver(tmp_path, flow="f") as driver:
        files = files_for(driver, 1, [("set", 1, 1), ("base", 1, 7)])
        driver.written(1, files, {}, {}, "h", {}, detail=FOLDED)
        assert driver.state().carry_line(1) == CarryLine(1, ())
        driver.publish(1)
        assert driver.state().carry_line(1) == CarryLine(1, ())
        assert State.FOLDED not in [row.state for row in driver.state().entries]
    assert dues(tmp_path, 1) == {1: 7}, "the first attempt's files are named by nothing"


def test_only_an_epoch_is_published_without_a_gate(tmp_path: Path) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        number = begin(driver, CommitKind.INTERVAL)
        with pytest.raises(refusals.WrongStepError, match="kind epoch"):
            driver.written_and_published(number, {}, {}, {}, "h", {})
        assert driver.pending()


def test_later_steps_add_to_detail_and_durations(tmp_path: Path) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        number = begin(driver)
        driver.written(number, {}, {}, {}, "h", {"tasks": 1}, detail={"timers": 3, "late_ms": 1})
        row = driver.publish(number, detail={"late_ms": 2}, durations={"gate": 4})
        assert (row.detail, row.durations) == ({"timers": 3, "late_ms": 2}, {"tasks": 1, "gate": 4})
        one = begin(driver)
        row = driver.written_and_published(one, {}, {"s": 1}, {}, "h", {"tasks": 1}, detail={"timers": 1})
        assert (row.state, row.detail, row.counts) == (State.PUBLISHED, {"timers": 1}, {"s": 1})
        assert driver.state().tip == driver.state().commits[one]


# --- housekeeping


def files_of(path: Path) -> list[tuple[str, int, int]]:
    """Name a table's files by kind, with their bounds."""
    return sorted((file.path.name[0], file.first, file.last) for file in active_files(DeltaTable(str(path)), path))


def files_below(path: Path) -> list[str]:
    """Name all files of a folder by kind and smallest commit, whoever knows of them."""
    return sorted(file.name[:9] for file in path.rglob("*.parquet") if "_delta_log" not in file.parts)


def test_epochs_become_one_file_and_read_the_same(tmp_path: Path) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        for number in range(1, 11):
            epoch(driver, [("set", number % 3, number)])
        before = (commits_seen(tmp_path), [dues(tmp_path, number) for number in range(11)])
        assert not driver.keep_house(every=11)
        assert driver.keep_house(every=10)
        assert not driver.keep_house(every=10)
        assert files_of(stream_path(tmp_path, "s")) == [("k", 1, 10)]
        for number in range(1, 11):
            held = FileLists(tmp_path, driver.state()).holder("carry/s.state", number)
            assert [(file.name[0], file.first, file.last) for file in held] == [("k", 1, 10)]
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
            driver.written(number, files_for(driver, number, [("base", 1, number)]), {}, {}, "h", {})
            driver.publish(number)
        for _ in range(8):
            epoch(driver, [("set", 1, 1)])
        driver.keep_house(every=1)
        assert files_of(stream_path(tmp_path, "s")) == [("c", 2, 2), ("k", 3, 10)]
        assert files_below(stream_path(tmp_path, "s"))[:2] == ["c00000001", "c00000002"]
        epoch(driver, [("set", 1, 1)])
        driver.keep_house(every=1, keep=AT_ONCE)
        assert files_of(stream_path(tmp_path, "s")) == [("c", 2, 2), ("c", 11, 11), ("k", 3, 10)]
        assert files_below(stream_path(tmp_path, "s")) == ["c00000002", "c00000011", "k00000003"]
    assert commits_seen(tmp_path) == list(range(2, 12))


def test_replaced_files_stay_for_a_time_and_strays_go(tmp_path: Path) -> None:
    folder = stream_path(tmp_path, "s")
    with open_driver(tmp_path, flow="f") as driver:
        for _ in range(8):
            epoch(driver, [("set", 1, 1)])
        driver.keep_house(every=1)
        assert len(list(folder.rglob("c*.parquet"))) == 8
        (folder / UNNAMED / "k00000001-00000002-stray.parquet").write_bytes(b"half")
        epoch(driver, [("set", 1, 1)])
        driver.keep_house(every=1, keep=AT_ONCE)
        assert files_below(folder) == ["c00000009", "k00000001"]
        epoch(driver, [("set", 1, 1)])
    assert commits_seen(tmp_path) == list(range(1, 11))


def test_what_a_killed_writer_had_not_named_goes_in_time(tmp_path: Path) -> None:
    folder = stream_path(tmp_path, "s")
    with open_driver(tmp_path, flow="f") as driver:
        epoch(driver, [("set", 1, 1)])
        draft = folder / "_delta_log" / ".00000000000000000009.json.a1b2.draft"
        draft.write_bytes(b"half")
        copy = tables.commits_path(tmp_path) / "_checkpoint-killed" / "_delta_log"
        copy.mkdir(parents=True)
        (copy / "00000000000000000000.json").touch()
        sweep(tmp_path, dt.timedelta(days=1), driver.state())
        assert draft.exists()
        assert copy.exists()
        sweep(tmp_path, AT_ONCE, driver.state())
    assert not draft.exists()
    assert not copy.parent.exists()
    assert commits_seen(tmp_path) == [1]


def test_a_reader_that_opened_its_files_before_reads_on(tmp_path: Path) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        for _ in range(8):
            epoch(driver, [("set", 1, 1)])
        found = readers.published(tmp_path, "s")
        driver.keep_house(every=1)
        assert sorted(found.scan(["commit"])["commit"].to_pylist()) == list(range(1, 9))


def test_versions_before_an_old_checkpoint_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "KEEP_LOG", AT_ONCE)
    with open_driver(tmp_path, flow="f") as driver:
        commits = CommitLog(tmp_path)
        commits.state()
        for _ in range(8):
            epoch(driver, [("set", 1, 1)])
        driver.keep_house(every=1)
        assert len(list((stream_path(tmp_path, "s") / "_delta_log").glob("*.json"))) == 10, "they are kept for a week"
        epoch(driver, [("set", 1, 1)])
        driver.keep_house(every=1, keep=AT_ONCE)
        for table in (stream_path(tmp_path, "s"), tables.commits_path(tmp_path)):
            assert len(list((table / "_delta_log").glob("*.json"))) == 1
        assert commits.state() == CommitLog(tmp_path).state()
        epoch(driver, [("set", 1, 1)])
        sweep(tmp_path, AT_ONCE, driver.state())
    assert commits_seen(tmp_path) == list(range(1, 11))


def test_a_driver_that_was_overtaken_keeps_no_house(tmp_path: Path) -> None:
    with open_driver(tmp_path, flow="f") as old:
        for _ in range(8):
            epoch(old, [("set", 1, 1)])
        house, state = old._house, old.state()
        with open_driver(tmp_path, flow="f", claim=Claim.TAKE_OVER) as new:
            new.keep_house(every=1)
            with pytest.raises(refusals.LeaseLostError):
                old.keep_house(every=1)
            with pytest.raises(refusals.LeaseLostError):
                house.keep(old.log, lambda: state, AT_ONCE)
        assert commits_seen(tmp_path) == list(range(1, 9))


def test_a_compaction_from_before_a_later_driver_is_refused(tmp_path: Path) -> None:
    folder = stream_path(tmp_path, "s")
    with open_driver(tmp_path, flow="f") as driver:
        for _ in range(8):
            epoch(driver, [("set", 1, 1)])
    stopped = TableLog(folder)
    stopped.look()
    with open_driver(tmp_path, flow="f") as driver:
        driver.keep_house(every=1)
    with pytest.raises(tables.ConcurrentAddError):
        stopped.commit(TableChange(says="OPTIMIZE"), {HOUSE: 1})
    assert commits_seen(tmp_path) == list(range(1, 9))


def process(root: Path, *arguments: str) -> int | None:
    """Run epochs with housekeeping in a process of its own."""
    return ended("tests.engine.commits.housekeeping_process", str(root), *arguments)[0]


@pytest.mark.parametrize(
    "point", ["merged", "noted", "compacted", "carried", "swept", "log", "vacuumed", "checkpointed"]
)
def test_a_stream_that_is_killed_keeping_house_goes_on_the_same(tmp_path: Path, point: str) -> None:
    assert process(tmp_path, "12", point) == -signal.SIGKILL
    assert commits_seen(tmp_path) == list(range(1, 11))
    assert dues(tmp_path, 10) == {0: 9, 1: 10, 2: 8}
    assert process(tmp_path, "24") == 0
    assert commits_seen(tmp_path) == list(range(1, 25))
    assert dues(tmp_path, 24) == {0: 24, 1: 22, 2: 23}
    folder = stream_path(tmp_path, "s")
    known = [file.path.name[:9] for file in active_files(DeltaTable(str(folder)), folder)]
    assert files_below(folder) == sorted(known)
