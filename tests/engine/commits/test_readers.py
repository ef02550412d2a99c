"""Readers see published commits only, in order, also before there is anything; the sweep removes what nobody sees."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import DeltaTable

from pipelines.engine.columnar.columns import LEDGER_SCHEMA, ORDER_FIELDS, times
from pipelines.engine.commits import readers
from pipelines.engine.commits.delta_log import create
from pipelines.engine.commits.driver import Driver, open_driver
from pipelines.engine.commits.history import CarryLine, CommitKind, Span
from pipelines.engine.commits.paths import NewFile, carry_path, stream_path
from pipelines.engine.commits.sweep import Swept, sweep
from pipelines.engine.files.folders import UNNAMED

STREAM = pa.schema([*ORDER_FIELDS, pa.field("origin", pa.string())])
CARRY = pa.schema(
    [
        pa.field("commit", pa.int64()),
        pa.field("change", pa.string()),
        pa.field("origin", pa.string()),
        pa.field("due", pa.int64()),
    ]
)
AT_ONCE = dt.timedelta(0)


def new_file(folder: Path, commit: int, table: pa.Table) -> NewFile:
    below = "" if folder.parent.name == "carry" else f"{UNNAMED}/"
    name = f"{below}c{commit:08d}-0-0-{uuid.uuid4().hex[:8]}.parquet"
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / name)
    return NewFile(name=name, rows=table.num_rows, size=(folder / name).stat().st_size)


def rows(commit: int, arrivals: list[int], origins: list[str]) -> pa.Table:
    """Give rows of the stream `s`; all of one arrival have the same place."""
    count = len(arrivals)
    given = {
        "arrival": times(pa.array(arrivals, pa.int64()).to_numpy()),
        "place": pa.array([1] * count, pa.int64()),
        "commit": pa.array([commit] * count, pa.int64()),
        "origin": pa.array(origins),
    }
    filled = [given.get(field.name, pa.nulls(count, field.type)) for field in STREAM]
    return pa.Table.from_arrays(filled, schema=STREAM)


def carry_rows(commit: int, changes: list[tuple[str, str, int | None]]) -> pa.Table:
    names = ("change", "origin", "due")
    return pa.Table.from_pylist(
        [{"commit": commit, **dict(zip(names, change, strict=True))} for change in changes], schema=CARRY
    )


def commit(  # noqa: PLR0913 - a commit's parts
    driver: Driver,
    span: Span,
    stream: pa.Table | None = None,
    changes: list[tuple[str, str, int | None]] | None = None,
    *,
    kind: CommitKind = CommitKind.INTERVAL,
    carry_hash: str = "same",
) -> int:
    """Publish one commit of the stream `s` and its carry; the number in `stream` is put right."""
    number, state = driver.next_number(), driver.state()
    tip = state.tip.commit if state.tip else 0
    parent = state.parent_for(span.start) if kind is CommitKind.INTERVAL else tip
    driver.intent(number, span, parent, [number], {}, "print", kind=kind)
    folder, carry = stream_path(driver.root, "s"), carry_path(driver.root, "s", "state")
    create(folder, STREAM)
    files = {}
    if stream is not None:
        fixed = rows(number, stream["arrival"].cast(pa.int64()).to_pylist(), stream["origin"].to_pylist())
        files["streams/s"] = [new_file(folder, number, fixed)]
    if changes:
        files["carry/s.state"] = [new_file(carry, number, carry_rows(number, changes))]
    driver.written(number, files, {}, {}, carry_hash, {})
    driver.publish(number)
    return number


def origins(root: Path, start: int | None = None, end: int | None = None) -> list[str]:
    return list(readers.read_stream(root, "s", start, end)["origin"].to_pylist())


def test_before_anything_was_run_everything_reads_as_no_rows(tmp_path: Path) -> None:
    assert readers.read_stream(tmp_path, "s").schema.names == [field.name for field in ORDER_FIELDS]
    assert readers.read_ledger(tmp_path).schema.equals(LEDGER_SCHEMA)
    assert readers.read_carry(tmp_path, "s", "state", 0).num_rows == 0
    assert readers.published(tmp_path, "s").files == ()
    assert list(tmp_path.iterdir()) == []


def test_rows_come_in_the_streams_order(tmp_path: Path) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        commit(driver, Span(1, 11), rows(0, [9, 3, 3], ["c", "b", "a"]))
        commit(driver, Span(11, 21), rows(0, [11], ["d"]))
    assert readers.read_stream(tmp_path, "s", key=["origin"])["origin"].to_pylist() == ["a", "b", "c", "d"]
    assert readers.read_stream(tmp_path, "s", columns=["origin"]).column_names == ["origin"]


def test_a_span_chooses_the_commits_that_it_meets(tmp_path: Path) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        for place, name in enumerate("abc"):
            commit(driver, Span(place * 10, place * 10 + 10), rows(0, [place * 10], [name]))
    assert origins(tmp_path, 10) == ["b", "c"]
    assert origins(tmp_path, None, 10) == ["a"]
    assert origins(tmp_path, 10, 20) == ["b"]
    assert len(readers.published(tmp_path, "s", 10, 20).files) == 1


def test_open_and_superseded_commits_are_not_seen(tmp_path: Path) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        commit(driver, Span(1, 11), rows(0, [1], ["old"]))
        assert origins(tmp_path) == ["old"]
        commit(driver, Span(1, 11), rows(0, [1], ["new"]))
        assert origins(tmp_path) == ["new"]
        driver.intent(3, Span(11, 21), 2, [3], {}, "print")
        folder = stream_path(tmp_path, "s")
        file = new_file(folder, 3, rows(3, [11], ["open"]))
        assert origins(tmp_path) == ["new"]
        driver.written(3, {"streams/s": [file]}, {}, {}, "h", {})
        assert origins(tmp_path) == ["new"]
        driver.publish(3)
        assert origins(tmp_path) == ["new", "open"]


def test_a_file_that_others_compacted_shows_its_visible_commits_only(tmp_path: Path) -> None:
    folder = stream_path(tmp_path, "s")
    with open_driver(tmp_path, flow="f") as driver:
        for place, name in enumerate(["old", "other"]):
            commit(driver, Span(place * 10, place * 10 + 10), rows(0, [place * 10], [name]))
        DeltaTable(str(folder)).optimize.compact()
        assert origins(tmp_path) == ["old", "other"]
        assert not readers.published(tmp_path, "s").exact
        assert origins(tmp_path, 10) == ["other"], "one file, of which some rows are asked for"
        commit(driver, Span(0, 10), rows(0, [1], ["new"]))
        assert origins(tmp_path) == ["new", "other"]
        assert plain(folder) == ["new", "other"]
        assert readers.read_stream(tmp_path, "s", columns=["origin"])["origin"].to_pylist() == ["new", "other"]


def plain(folder: Path) -> list[str]:
    """Read a table as anybody would who knows nothing of commits."""
    found = ds.dataset(DeltaTable(str(folder)).file_uris(), schema=STREAM, format="parquet").to_table()
    return list(found.sort_by([("arrival", "ascending"), ("place", "ascending")])["origin"].to_pylist())


def test_a_commit_that_is_written_and_one_that_was_superseded_can_be_read_when_asked_for(tmp_path: Path) -> None:
    folder = stream_path(tmp_path, "s")
    with open_driver(tmp_path, flow="f") as driver:
        for name in ("old", "new"):
            commit(driver, Span(1, 11), rows(0, [1], [name]))
        driver.intent(3, Span(11, 21), 2, [3], {}, "print")
        file = new_file(folder, 3, rows(3, [11], ["held"]))
        driver.written(3, {"streams/s": [file]}, {}, {}, "h", {})
        state = driver.state()
        for number, name in enumerate(["old", "new", "held"], 1):
            found = readers.rows_of(tmp_path, folder, [number], STREAM, state)
            assert found.scan(["origin"])["origin"].to_pylist() == [name]
        assert plain(folder) == ["new"]
        assert readers.settled_commits(tmp_path, folder, state) == [2]


def test_a_state_that_is_older_than_the_table_reads_what_it_shows(tmp_path: Path) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        commit(driver, Span(1, 11), rows(0, [1], ["old"]))
        state = readers.log_state(tmp_path)
        commit(driver, Span(1, 11), rows(0, [1], ["new"]))
    assert readers.read_stream(tmp_path, "s", state=state)["origin"].to_pylist() == ["old"]
    assert origins(tmp_path) == ["new"]


def test_a_table_whose_commits_are_all_open_reads_as_its_columns(tmp_path: Path) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        create(stream_path(tmp_path, "s"), STREAM)
        driver.intent(1, Span(1, 11), 0, [1], {}, "print")
        assert readers.read_stream(tmp_path, "s").schema.equals(STREAM)


def dues(root: Path, number: int) -> dict[str, int]:
    found = readers.read_carry(root, "s", "state", number, key=["origin"])
    if not found.num_rows:
        return {}
    return dict(zip(found["origin"].to_pylist(), found["due"].to_pylist(), strict=True))


def test_the_carry_is_the_newest_base_and_the_deltas_after_it(tmp_path: Path) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        commit(driver, Span(1, 11), None, [("base", "EWR", 1), ("base", "JFK", 1)])
        commit(driver, Span(11, 21), None, [("base", "EWR", 2), ("base", "JFK", 2)])
        commit(driver, Span(21, 22), None, [("set", "JFK", 3), ("set", "LGA", 3)], kind=CommitKind.EPOCH)
        commit(driver, Span(22, 23), None, [("gone", "EWR", None), ("set", "LGA", 4)], kind=CommitKind.EPOCH)
    assert [dues(tmp_path, number) for number in range(5)] == [
        {},
        {"EWR": 1, "JFK": 1},
        {"EWR": 2, "JFK": 2},
        {"EWR": 2, "JFK": 3, "LGA": 3},
        {"JFK": 3, "LGA": 4},
    ]
    found = readers.carry_files(tmp_path, "s", "state", 4)
    assert (found.line, len(found.base.files), len(found.deltas.files)) == (CarryLine(2, (3, 4)), 1, 2)


def test_a_carry_without_key_is_its_newest_row(tmp_path: Path) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        commit(driver, Span(1, 11), None, [("base", "", 1)])
        commit(driver, Span(11, 12), None, [("set", "", 2)], kind=CommitKind.EPOCH)
    assert readers.read_carry(tmp_path, "s", "state", 2)["due"].to_pylist() == [2]


def test_a_key_comes_back_after_it_was_gone() -> None:
    base = carry_rows(1, [("base", "EWR", 1)])
    deltas = pa.concat_tables([carry_rows(3, [("set", "EWR", 3)]), carry_rows(2, [("gone", "EWR", None)])])
    newest = readers.newest_rows(base, deltas, CarryLine(1, (2, 3)), ["origin"])
    assert newest["due"].to_pylist() == [3]


def test_reading_does_not_abort_the_interpreter(tmp_path: Path) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        commit(driver, Span(1, 11), rows(0, [1], ["a"]))
    code = (
        "import pathlib, sys\nfrom pipelines.engine.commits.readers import read_stream\n"
        "print(read_stream(pathlib.Path(sys.argv[1]), 's').num_rows, 'pyspark' in sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "1 False\n")


def swept(driver: Driver, keep: dt.timedelta = AT_ONCE) -> Swept:
    """Sweep under the lease."""
    return sweep(driver.root, keep, driver.state())


def test_a_sweep_removes_strays_and_keeps_what_counts(tmp_path: Path) -> None:
    folder = stream_path(tmp_path, "s")
    with open_driver(tmp_path, flow="f") as driver:
        commit(driver, Span(1, 11), rows(0, [1], ["a"]))
        stray = new_file(folder, 1, rows(1, [1], ["a"]))
        driver.intent(2, Span(11, 21), 1, [2], {}, "print")
        kept = [new_file(folder, number, rows(number, [11], ["b"])) for number in (2, 3)]
        never = new_file(carry_path(tmp_path, "t", "state"), 1, carry_rows(1, []))
        assert swept(driver) == Swept(files=2, size=stray.size + never.size)
    assert not (folder / stray.name).exists()
    assert all((folder / file.name).exists() for file in kept)
    assert origins(tmp_path) == ["a"]


def test_a_sweep_keeps_what_a_commit_that_waits_has_written(tmp_path: Path) -> None:
    folder = stream_path(tmp_path, "s")
    with open_driver(tmp_path, flow="f") as driver:
        driver.intent(1, Span(1, 11), 0, [1], {}, "print")
        create(folder, STREAM)
        file = new_file(folder, 1, rows(1, [1], ["a"]))
        driver.written(1, {"streams/s": [file]}, {}, {}, "h", {})
        assert swept(driver) == Swept()
        driver.reject(1, verdict="late")
        assert swept(driver, dt.timedelta(hours=1)) == Swept()
        assert swept(driver) == Swept(1, file.size)


def test_a_sweep_removes_superseded_commits_after_their_time(tmp_path: Path) -> None:
    folder = stream_path(tmp_path, "s")
    with open_driver(tmp_path, flow="f") as driver:
        for name in ("old", "new"):
            commit(driver, Span(1, 11), rows(0, [1], [name]), [("base", name, 1)])
        assert swept(driver, dt.timedelta(hours=1)) == Swept()
        assert swept(driver).files == 2
        assert [path.name[:9] for path in folder.rglob("*.parquet")] == ["c00000002"]
        assert swept(driver) == Swept()
        assert origins(tmp_path) == ["new"]
        commit(driver, Span(11, 21), rows(0, [11], ["next"]), [("base", "next", 1)])
    assert origins(tmp_path) == ["new", "next"]


def test_what_was_written_long_ago_stays_for_its_time_from_when_it_was_superseded(tmp_path: Path) -> None:
    folder = stream_path(tmp_path, "s")
    with open_driver(tmp_path, flow="f") as driver:
        commit(driver, Span(1, 11), rows(0, [1], ["old"]))
        (first,) = folder.rglob("*.parquet")
        os.utime(first, (0, 0))
        before = DeltaTable(str(folder)).version()
        commit(driver, Span(1, 11), rows(0, [1], ["new"]))
        assert swept(driver, dt.timedelta(hours=1)) == Swept()
    files = DeltaTable(str(folder), version=before).file_uris()
    assert pq.read_table(files[0], partitioning=None)["origin"].to_pylist() == ["old"]


def test_a_sweep_keeps_the_carry_that_an_epoch_still_stands_on(tmp_path: Path) -> None:
    with open_driver(tmp_path, flow="f") as driver:
        commit(driver, Span(1, 11), None, [("base", "EWR", 1)], carry_hash="one")
        epoch = commit(driver, Span(11, 12), None, [("set", "JFK", 2)], kind=CommitKind.EPOCH)
        commit(driver, Span(1, 11), None, [("base", "EWR", 9)], carry_hash="other")
        assert swept(driver) == Swept()
    assert dues(tmp_path, epoch) == {"EWR": 1, "JFK": 2}


def test_a_sweep_keeps_what_compaction_by_others_replaced_for_the_log_to_be_made_anew(tmp_path: Path) -> None:
    folder = stream_path(tmp_path, "s")
    with open_driver(tmp_path, flow="f") as driver:
        for place, name in enumerate("ab"):
            commit(driver, Span(place * 10, place * 10 + 10), rows(0, [place * 10], [name]))
        before = DeltaTable(str(folder)).version()
        for file in folder.rglob("c*.parquet"):
            os.utime(file, (0, 0))
        DeltaTable(str(folder)).optimize.compact()
        assert swept(driver) == Swept()
        assert len(list(folder.rglob("c*.parquet"))) == 2
        assert origins(tmp_path) == plain(folder) == ["a", "b"]
        # Once a commit of the two is run again, `commits` knows of a file of ours in place of all.
        commit(driver, Span(0, 10), rows(0, [0], ["c"]))
        assert swept(driver, dt.timedelta(hours=1)) == Swept()
        assert origins(tmp_path) == plain(folder) == ["c", "b"]
        older = DeltaTable(str(folder), version=before).file_uris()
        assert ds.dataset(older).to_table().num_rows == 2, "versions from before stay readable for their time"
        assert swept(driver).files == 3
        assert origins(tmp_path) == plain(folder) == ["c", "b"]


def test_a_driver_adds_beside_a_sweep(tmp_path: Path) -> None:
    """A removal between a driver's look at a table and its commit refuses neither."""
    folder = stream_path(tmp_path, "s")
    with open_driver(tmp_path, flow="f") as driver:
        for name in ("old", "new"):
            commit(driver, Span(1, 11), rows(0, [1], [name]))
        driver.intent(3, Span(11, 21), 2, [3], {}, "print")
        file = new_file(folder, 3, rows(3, [11], ["next"]))
        driver.written(3, {"streams/s": [file]}, {}, {}, "h", {})
        looked = driver.tables.log(folder)
        assert swept(driver).files == 1
        assert driver.tables.log(folder) is looked
        driver.publish(3)
    assert origins(tmp_path) == plain(folder) == ["new", "next"]
