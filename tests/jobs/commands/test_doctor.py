"""What broke underneath a run is told in a sentence each, and had again with the same hashes, or not at all."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from pipelines.engine.columnar.columns import NOT_HASHED
from pipelines.engine.columnar.content import content_hash
from pipelines.engine.commits import log, taken_back
from pipelines.engine.commits.delta_log import HINT, snapshot
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.errors import LeaseHeldError
from pipelines.engine.commits.log import CommitLog
from pipelines.engine.commits.paths import (
    LOG,
    CommitsChangedError,
    CommitsLostError,
    ForeignWriteError,
    NewFile,
    RootGoneError,
    TableAheadError,
    TableError,
    TableLostError,
    TornLogError,
    commits_path,
    data_tables,
    stream_path,
    version_path,
)
from pipelines.engine.commits.readers import are_as_hashed, log_state, read_stream, rows_of_file
from pipelines.engine.commits.table_log import TableLog
from pipelines.engine.files.parquet import FileDamagedError
from pipelines.engine.files.stored import path_of
from pipelines.engine.landing.index import Landing
from pipelines.engine.live.examining import Finding, Ill
from pipelines.engine.live.relanding import GivesOthersError
from pipelines.engine.live.remaking import remake
from pipelines.engine.tasks.local import CoreEngine
from pipelines.errors import Exit
from pipelines.flows.reading import read_flow
from pipelines.jobs.commands import doctor as doctor_command
from pipelines.jobs.commands.abandon import abandon_commit
from pipelines.jobs.commands.check import check_flow
from pipelines.jobs.commands.doctor import examine
from pipelines.jobs.commands.plan import show_plan
from pipelines.jobs.commands.run import RunRequest, run_flow
from pipelines.jobs.commands.status import show_status
from pipelines.jobs.commands.tables import TablesQuery, tell_tables
from pipelines.jobs.environment.errors import JobError, WrongUse
from pipelines.jobs.environment.exits import exit_code_of
from pipelines.jobs.environment.settings import read_settings
from pipelines.jobs.facts.home import read_home
from pipelines.jobs.facts.planning import PlanRequest
from pipelines.jobs.runs.gate import hold
from pipelines.jobs.runs.known import open_run
from tests.jobs.damage import flipped, with_another_name, with_another_page_header, with_another_unit
from tests.laws.streamed import streamed
from tests.laws.trials import BEGIN, MINUTE, PARCELS, SPANS, WHOLE, Trial, parcels, trial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from pipelines.engine.files.stored import StorePath
    from tests.jobs.conftest import House


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """Give the parcels with two of three hours run, the second one twice."""
    found = trial(tmp_path_factory.mktemp("made") / "parcels", PARCELS, {"parcels": parcels(60)})
    found.ran("days", SPANS[:2])
    found.ran("days", SPANS[1:2])
    return found


@pytest.fixture
def here(made: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trial:
    """Give such parcels of a test's own, where commands find them as flow `runs`."""
    shutil.copytree(made.base, tmp_path, dirs_exist_ok=True)
    (tmp_path / made.flow.name).symlink_to("runs")
    monkeypatch.setenv("PULSELINE_HOME", str(tmp_path))
    return Trial(flow=read_flow(tmp_path / "flow.yaml", {}), base=tmp_path)


@pytest.fixture(params=["folder", "store"])
def placed(request: pytest.FixtureRequest, house: House, monkeypatch: pytest.MonkeyPatch) -> House:
    """Give a house in which nothing was run, its home in a folder or in a store."""
    if request.param == "store":
        monkeypatch.setenv("PULSELINE_HOME", str(request.getfixturevalue("store")))
    return house


def rows_in(root: Path) -> dict[str, int]:
    """Count the rows that any reader of Delta finds in each table."""
    files = {path.name: DeltaTable(str(path)).file_uris() for path in data_tables(root)}
    return {name: ds.dataset(found).count_rows() if found else 0 for name, found in files.items()}


def doctor(called: str = "runs", *, repair: bool = False, deep: bool = False) -> tuple[int, list[str]]:
    """Call the command and give its exit code and its lines."""
    said: list[str] = []
    return examine(called, "days", repair, as_json=False, echo=said.append, deep=deep), said


def first(folder: Path, pattern: str) -> Path:
    """Give one file."""
    return min(folder.glob(pattern))


def deleted(root: Path) -> None:
    """Take rows away as a user does."""
    DeltaTable(str(root / "streams" / "beating")).delete("kind = 'timer'")


def appended(root: Path) -> None:
    """Add rows as a user does."""
    table = DeltaTable(str(root / "streams" / "punctual"))
    rows = ds.dataset(table.file_uris()).to_table().cast(pa.schema(table.schema().to_arrow()))
    write_deltalake(table, rows, mode="append")


def without_a_file(root: Path) -> None:
    """Lose a file of the newest commit of a stream."""
    first(root / "streams" / "ordered" / "_written", "c00000003*").unlink()


def with_half_a_file(root: Path) -> None:
    """Lose the end of a file of the ledger."""
    file = first(root / "ledger" / "_written", "c00000001*")
    file.write_bytes(file.read_bytes()[:-9])


def without_a_carry(root: Path) -> None:
    """Lose what the next interval begins from."""
    first(root / "carry" / "ordered.state", "c00000003*").unlink()


def with_a_damaged_carry(root: Path) -> None:
    """Have other bits in what the next interval begins from."""
    flipped(first(root / "carry" / "ordered.state", "c00000003*"))


def without_a_log(root: Path) -> None:
    """Lose a table's log."""
    shutil.rmtree(root / "streams" / "punctual" / "_delta_log")


def without_a_table(root: Path) -> None:
    """Lose a table, files and all."""
    shutil.rmtree(root / "streams" / "beating")


def without_landed_rows(root: Path) -> None:
    """Lose the end of a landed file."""
    file = first(root / "landed", "*/parcels.parquet")
    file.write_bytes(file.read_bytes()[:-9])


def without_a_sequence(root: Path) -> None:
    """Lose all that landed of an interval, and a file of the commit that ran over it."""
    shutil.rmtree(root / "landed" / "00000001")
    first(root / "streams" / "ordered" / "_written", "c00000001*").unlink()


def without_carry_and_a_sequence(root: Path) -> None:
    """Lose the manifest of the newest interval and the carry that it began from: of neither is the other had alone."""
    (max((root / "landed").glob("0*")) / "manifest.json").unlink()
    for file in (root / "carry").rglob("*.parquet"):
        file.unlink()


def without_landing(root: Path) -> None:
    """Lose all that landed, and a carry."""
    shutil.rmtree(root / "landed")
    first(root / "carry", "*/*.parquet").unlink()


def copied(root: Path) -> None:
    """Put a copy of another table in the place of one."""
    shutil.rmtree(root / "streams" / "punctual")
    shutil.copytree(root / "streams" / "ordered", root / "streams" / "punctual")


def torn(root: Path) -> None:
    """Leave a newest version without bytes, as a power cut does."""
    log = root / "streams" / "beating" / "_delta_log"
    newest = max(log.glob("*.json"))
    newest.with_name(f"{int(newest.stem) + 1:020d}.json").touch()


def torn_within(root: Path) -> None:
    """Leave half of a version that others stand on."""
    version = sorted((root / "streams" / "beating" / "_delta_log").glob("*.json"))[1]
    version.write_bytes(version.read_bytes()[:150])


def widened(root: Path) -> None:
    """Add a column as a user does."""
    DeltaTable(str(root / "streams" / "punctual")).alter.add_columns([Field("note", PrimitiveType("string"))])


HARMS: dict[str, tuple[Callable[[Path], None], str]] = {
    "deleted": (deleted, "foreign    streams/beating: DELETE in version"),
    "appended": (appended, "foreign    streams/punctual: WRITE in version"),
    "a file": (without_a_file, "missing    streams/ordered: 1 files of commits 3"),
    "half a file": (with_half_a_file, "missing    ledger: 1 files of commits 1"),
    "the carry": (without_a_carry, "missing    carry/ordered.state: 1 files of commits 3"),
    "a damaged carry": (with_a_damaged_carry, "missing    carry/ordered.state: 1 files of commits 3"),
    "a log": (without_a_log, "lost       streams/punctual: its log is gone"),
    "a table": (without_a_table, "lost       streams/beating: its log is gone"),
    "landed rows": (without_landed_rows, "landing    landed: sequence 1, which commit 1 ran over, cannot be read"),
    "a sequence": (without_a_sequence, "landing    landed: sequence 1, which commit 1 ran over, cannot be read"),
    "carry and a sequence": (without_carry_and_a_sequence, "landing    landed: sequence 2, which commit "),
    "all that landed": (without_landing, "landing    landed: sequence 1, which commit 1 ran over, cannot be read"),
    "a copy": (copied, "lost       streams/punctual: it names _written/c0000000"),
    "torn within": (torn_within, "lost       streams/beating: its log cannot be read"),
    "widened": (widened, "foreign    streams/punctual: ADD COLUMN in version"),
    "torn": (torn, "torn       streams/beating: its log has 1 files that cannot be read"),
}


@pytest.mark.parametrize("harm", HARMS)
def test_what_is_found_is_had_again_and_gone_on_from(here: Trial, harm: str) -> None:
    called = str(here.base / "flow.yaml")
    root, (do, told) = here.root("days"), HARMS[harm]
    before, hashes = rows_in(root), here.hashes("days", SPANS[:2])
    do(root)

    code, said = doctor(called)
    assert code == Exit.CHECK_FAILED
    assert any(line.startswith(told) for line in said), said
    assert said[-1] == f"nothing was touched; next: pulseline doctor {called} --repair --run days"

    code, said = doctor(called, repair=True)
    assert code == Exit.FINE, said
    assert rows_in(root) == before
    assert here.hashes("days", SPANS[:2]) == hashes
    here.ran("days", SPANS[2:])
    here.ran("new", SPANS)
    assert here.hashes("days", WHOLE) == here.hashes("new", WHOLE)
    assert rows_in(root) == rows_in(here.root("new"))


@pytest.mark.parametrize(
    ("folder", "pattern", "told"),
    [
        ("streams/ordered/_written", "c00000003*", "missing    streams/ordered: 1 files of commits 3"),
        ("landed", "00000001*/parcels.parquet", "landing    landed: sequence 1, which commit 1 ran over, cannot be"),
    ],
)
def test_other_bits_in_a_file_that_no_commit_reads_are_found_where_all_are_read(
    here: Trial, folder: str, pattern: str, told: str
) -> None:
    called, root = str(here.base / "flow.yaml"), here.root("days")
    hashes = here.hashes("days", SPANS[:2])
    flipped(first(root / folder, pattern))

    assert doctor(called)[0] == Exit.FINE
    code, said = doctor(called, deep=True)
    assert code == Exit.CHECK_FAILED
    assert any(line.startswith(told) for line in said), said
    assert said[-1] == f"nothing was touched; next: pulseline doctor {called} --deep --repair --run days"

    code, said = doctor(called, deep=True, repair=True)
    assert code == Exit.FINE, said
    assert said[-1].endswith("stand, with every file that `commits` names, read to its end")
    assert here.hashes("days", SPANS[:2]) == hashes
    here.ran("days", SPANS[2:])
    here.ran("new", SPANS)
    assert here.hashes("days", WHOLE) == here.hashes("new", WHOLE)


@pytest.mark.parametrize("column", ["weight", "commit"])
def test_another_name_of_a_column_in_a_tables_file_is_found_and_had_again(here: Trial, column: str) -> None:
    called, root = str(here.base / "flow.yaml"), here.root("days")
    hashes = here.hashes("days", SPANS[:2])
    with_another_name(first(root / "streams/ordered/_written", "c00000003*"), column)
    code, said = doctor(called, deep=True)
    assert code == Exit.CHECK_FAILED
    assert any(line.startswith("missing    streams/ordered: 1 files of commits 3") for line in said), said
    assert doctor(called, deep=True, repair=True)[0] == Exit.FINE
    assert here.hashes("days", SPANS[:2]) == hashes


CARRIED: dict[str, Callable[[Path], None]] = {
    "name": lambda file: with_another_name(file, "newest"),
    "unit": with_another_unit,
    "page header": with_another_page_header,
}
"""One bit of a file of the carry that no checksum of Parquet is over."""


def beaten(root: Path) -> Path:
    """Give a file of the newest carry of a heartbeat."""
    return max((root / "carry" / "beating.state").glob("c*.parquet"))


def found_and_mended(house: House, harm: str) -> None:
    """Flip a bit of what the third day begins from; see that everything finds it, and that it is had again."""
    house.backfill("2013-01-01", "2013-01-04", run="calm")
    house.backfill("2013-01-01", "2013-01-03")
    home = read_settings().home
    root = home / "tiny" / "main"
    file = beaten(root)
    CARRIED[harm](file)

    with pytest.raises(FileDamagedError, match=f"{file.name} must be as .* others than were written") as met:
        house.backfill("2013-01-03", "2013-01-04")
    assert exit_code_of(met.value)[0] == Exit.RUN_FAILED
    house.printed.clear()

    assert check_flow("tiny", None, None, None, "main", as_json=False, echo=house.tell) == Exit.CHECK_FAILED
    text = house.text
    assert "✗ FAILS  the carry" in text
    assert "problem it cannot be read (its bytes are others than were written)" in text
    assert text.splitlines()[-1] == "next: pulseline doctor tiny --deep --repair"
    assert examine("tiny", "main", False, False, house.tell, deep=True) == Exit.CHECK_FAILED  # noqa: FBT003 - the command's flags
    assert "missing    carry/beating.state: 1 files of commits " in house.text
    assert examine("tiny", "main", True, False, house.tell, deep=True) == Exit.FINE  # noqa: FBT003 - as above
    assert check_flow("tiny", None, None, None, "main", as_json=False, echo=house.tell) == Exit.FINE
    house.backfill("2013-01-03", "2013-01-04")
    for stream in ("beating", "ordered", "punctual"):
        rows = [read_stream(home / "tiny" / run, stream) for run in ("main", "calm")]
        assert len({content_hash(each, leave_out=NOT_HASHED).text for each in rows}) == 1


@pytest.mark.parametrize("harm", CARRIED)
def test_a_flipped_bit_of_the_carry_is_found_and_had_again(house: House, harm: str) -> None:
    found_and_mended(house, harm)


def test_a_flipped_bit_of_a_large_carry_is_found_and_had_again(placed: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.engine.files.small.SMALL", 0)
    found_and_mended(placed, "name")


@pytest.mark.parametrize("harm", CARRIED)
def test_a_flipped_bit_of_what_an_epoch_changed_in_the_carry_is_found_and_had_again(here: Trial, harm: str) -> None:
    called, readings = str(here.base / "flow.yaml"), [BEGIN + minutes * MINUTE for minutes in (20, 59, 61, 62, 180)]
    streamed(here, "calm", BEGIN, readings)
    streamed(here, "live", BEGIN, readings[:-1])
    file = beaten(here.root("live"))
    assert "base" not in pq.read_table(file)["change"].to_pylist()
    CARRIED[harm](file)

    with pytest.raises(FileDamagedError, match=f"{file.name} must be as it was written"):
        streamed(here, "live", readings[-2], readings[-1:])
    for repair, wanted in ((False, Exit.CHECK_FAILED), (True, Exit.FINE)):
        said: list[str] = []
        assert examine(called, "live", repair, as_json=False, echo=said.append, deep=True) == wanted, said
        assert any(line.startswith("missing    carry/beating.state: 1 files of commits ") for line in said), said
    streamed(here, "live", readings[-1], [])
    assert here.hashes("live", WHOLE) == here.hashes("calm", WHOLE)


@pytest.mark.usefixtures("here")
def test_a_run_that_stands_is_said_to_stand() -> None:
    code, said = doctor()
    assert code == Exit.FINE
    whole = "all 2 published commits of run `days` stand, with every file that `commits` names"
    assert said[-1] == f"{whole}, in its size; what is in them --deep reads"
    assert doctor(repair=True)[0] == Exit.FINE


def test_nobody_goes_on_over_what_a_user_wrote(here: Trial) -> None:
    root = here.root("days")
    deleted(root)
    rows, entries = rows_in(root), len(log_state(root).commits)
    with pytest.raises(ForeignWriteError, match=r"DELETE in version \d+.*pulseline doctor FLOW --repair"):
        here.ran("days", SPANS[2:])
    assert (rows_in(root), len(log_state(root).commits)) == (rows, entries), "nothing was begun"


def test_rows_that_would_be_others_are_not_put_in_place(here: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    without_a_file(here.root("days"))
    monkeypatch.setattr("pipelines.engine.live.remaking.commit_hashes", lambda _: {})
    with pytest.raises(Exception, match="commit 3 must give the rows of"):
        doctor(repair=True)
    assert doctor()[0] == Exit.CHECK_FAILED


# --- pulseline tables


def tables(commit: int | None = None, stream: str | None = None) -> list[dict[str, object]]:
    """Call the command and give what it says of each table."""
    said: list[str] = []
    tell_tables(TablesQuery(flow="runs", run="days", stream=stream, commit=commit, as_json=True), said.append)
    return [json.loads(line) for line in said]


def test_the_line_for_pandas_reads_each_table_and_gives_an_empty_frame_of_one_without_rows(
    placed: House,
) -> None:
    placed.backfill("2013-01-03", "2013-01-04")
    tell_tables(TablesQuery(flow="tiny", run="main", stream=None, commit=None, as_json=True), placed.tell)
    counted = {}
    for told in map(json.loads, placed.text.splitlines()):
        names = {"pandas": pd, "DeltaTable": DeltaTable}
        frame = eval(told["readers"]["pandas"], names)  # noqa: S307 - as a user types it
        counted[told["table"]] = len(frame)
        table = snapshot(path_of(told["path"]))
        assert table is not None
        assert len(frame) == sum(file.rows for file in table.files.values()), told["table"]
    assert (counted["beating"] > 0, counted["ledger"]) == (True, 0)


def test_each_recorded_commit_is_one_instant_over_all_tables(here: Trial) -> None:
    counted = {}
    for spans in (SPANS[2:], SPANS[1:2], SPANS[2:]):
        here.ran("days", spans)
        newest = log_state(here.root("days")).newest_published
        assert newest is not None
        counted[newest.commit] = rows_in(here.root("days"))
    for commit, rows in counted.items():
        found = {}
        for each in tables(commit):
            files = DeltaTable(str(each["path"]), version=int(str(each["version"]))).file_uris()
            found[str(each["table"])] = ds.dataset(files).count_rows() if files else 0
        assert found == rows


@pytest.mark.usefixtures("here")
def test_what_cannot_be_had_is_refused_by_name() -> None:
    with pytest.raises(WrongUse, match="no commit 9"):
        tables(9)
    with pytest.raises(WrongUse, match=r"no table `orderd`.*did you mean `ordered`"):
        tables(stream="orderd")
    assert [each["table"] for each in tables(stream="ordered")] == ["ordered"]


def test_a_commit_that_takes_anothers_place_and_is_not_settled_yet_is_no_lost_table(
    here: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("pipelines.engine.commits.driver.Driver._settle", interrupted)
        with pytest.raises(KeyboardInterrupt):
            here.ran("days", SPANS[1:2])

    code, said = doctor()
    assert code == Exit.FINE, said
    assert any(line.startswith("unsettled ") for line in said), said


def interrupted(*_: object) -> None:
    """Be stopped where a commit is published and its tables are to follow."""
    raise KeyboardInterrupt


def test_commits_that_went_back_are_told_and_not_said_to_stand(here: Trial) -> None:
    log = here.root("days") / "commits" / "_delta_log"
    for version in sorted(log.glob("*.json"))[-4:]:
        version.unlink()

    code, said = doctor()
    assert code == Exit.CHECK_FAILED
    assert any(line.startswith("ahead ") and "an older copy of `commits` stands there" in line for line in said), said
    assert said[-1].startswith("no repair makes `commits` anew: put it back out of a copy of the run's folder")
    facts = status_facts()
    assert "`commits` does not have it as published" in facts["damaged"]
    assert facts["next"] == "pulseline doctor runs --run days"
    with pytest.raises(TableAheadError, match="put `commits` back out of a copy"):
        here.ran("days", SPANS[2:])


def status_facts() -> dict[str, Any]:
    """Give what `pulseline status --json` says."""
    told: list[str] = []
    show_status("runs", "days", True, told.append)  # noqa: FBT003 - the command's flag
    facts: dict[str, Any] = json.loads(told[0])
    return facts


def test_what_somebody_took_out_of_commits_is_told_by_everything_that_looks_and_had_again(here: Trial) -> None:
    DeltaTable(str(here.root("days") / "commits")).delete("state = 'published' and commit = 3")
    for look in (status_facts, lambda: here.ran("days", SPANS[2:])):
        with pytest.raises(CommitsChangedError, match="DELETE in version"):
            look()
    assert doctor()[0] == Exit.CHECK_FAILED
    assert doctor(repair=True)[0] == Exit.FINE
    assert status_facts()["damaged"] is None
    here.ran("days", SPANS[2:])
    here.ran("new", SPANS)
    assert here.hashes("days", WHOLE) == here.hashes("new", WHOLE)


@pytest.mark.parametrize("lost", [LOG, "."])
def test_a_log_that_is_gone_is_made_anew_though_what_tells_its_columns_has_to_land_again_first(
    house: House, lost: str
) -> None:
    house.backfill("2013-01-01", "2013-01-03")
    calm = all_rows(house)
    shutil.rmtree(house.root / "streams" / "beating" / lost)
    for file in max((house.root / "landed").glob("0*")).glob("*.parquet"):
        file.write_bytes(file.read_bytes()[:-100])
    assert examine("tiny", "main", True, False, house.tell, deep=True) == Exit.FINE  # noqa: FBT003 - as above
    assert examine("tiny", "main", False, False, house.tell, deep=True) == Exit.FINE  # noqa: FBT003 - as above
    assert all_rows(house) == calm


def test_a_row_of_commits_that_no_version_names_is_told(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-02", gate=hold)
    check_flow("tiny", None, None, 1, "main", as_json=False, echo=house.tell)
    with open_driver(house.root, flow="tiny") as driver:
        driver.reject(1, verdict="no")
    assert examine("tiny", "main", False, False, house.tell) == Exit.FINE  # noqa: FBT003 - as above
    assert "unnamed" not in house.text
    max((commits_path(house.root) / LOG).glob("*.json")).unlink()
    examine("tiny", "main", False, False, house.tell)  # noqa: FBT003 - as above
    told = next(line for line in house.text.splitlines() if line.startswith("unnamed"))
    assert re.search(r"commits: row \d+, `rejected` of commit 1, is in a file that no version of its log names", told)


@pytest.mark.parametrize("which", [min, max])
def test_a_file_of_a_table_that_is_gone_is_told_by_status_and_plan(
    house: House, which: Callable[[Iterable[Path]], Path]
) -> None:
    for day in (1, 2, 3):
        house.backfill(f"2013-01-0{day}", f"2013-01-0{day + 1}")
    which((house.root / "streams" / "ordered" / "_written").glob("*.parquet")).unlink()
    show_status("tiny", "main", False, house.tell)  # noqa: FBT003 - as above
    told = house.text
    assert "1 file of streams/ordered is gone (_written/" in told
    assert told.endswith("next: pulseline doctor tiny")
    show_plan(PlanRequest(flow="tiny", start="2013-01-01", end="2013-01-04"), house.tell)
    assert "damaged: 1 file of streams/ordered is gone" in house.text
    [run] = (run for run in read_home(read_settings(), 0, ["tiny"], lambda _: None).runs if run.flow == "tiny")
    assert "1 file of streams/ordered is gone" in run.needs[0].words
    assert examine("tiny", "main", True, False, house.tell) == Exit.FINE  # noqa: FBT003 - as above


def test_a_version_of_commits_that_says_what_another_did_is_found(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-03")
    version_path(commits_path(house.root), 3).write_bytes(version_path(commits_path(house.root), 4).read_bytes())
    for ask in (lambda: log_state(house.root), lambda: house.backfill("2013-01-03", "2013-01-04")):
        with pytest.raises(CommitsLostError, match="row 3 is gone, and nothing else knows what it said: put it back"):
            ask()


def test_a_version_of_commits_that_is_gone_from_the_middle_is_named(here: Trial) -> None:
    (here.root("days") / "commits" / "_delta_log" / f"{3:020d}.json").unlink()
    with pytest.raises(TornLogError, match=r"version 3 cannot \(its file is gone, and later ones stand\): put it"):
        doctor()


def test_commits_that_are_gone_as_a_whole_are_not_taken_for_a_run_that_never_began(here: Trial) -> None:
    shutil.rmtree(here.root("days") / "commits")
    for look in (lambda: log_state(here.root("days")), lambda: here.ran("days", SPANS[2:])):
        with pytest.raises(CommitsLostError, match="the whole table is gone, and nothing else knows what it said"):
            look()
    assert not (here.root("days") / "commits").exists(), "none is made in its place"


def test_a_folder_that_is_called_like_a_version_is_a_version_that_cannot_be_read(here: Trial) -> None:
    log = here.root("days") / "streams" / "beating" / "_delta_log"
    newest = max(int(file.stem) for file in log.glob("*.json"))
    (log / f"{newest + 1:020d}.json").mkdir()
    code, said = doctor()

    assert code == Exit.CHECK_FAILED
    assert any("streams/beating" in line for line in said), said
    assert doctor(repair=True)[0] == Exit.FINE
    here.ran("days", SPANS[2:])


def test_commits_of_which_a_file_is_gone_are_refused_by_name(here: Trial) -> None:
    min((here.root("days") / "commits").glob("e00000003-*.parquet")).unlink()

    with pytest.raises(CommitsLostError, match=r"e00000003-\w+.parquet is gone"):
        doctor()


def test_commits_of_which_a_file_is_torn_are_refused_by_name_and_no_other_advice_is_given(here: Trial) -> None:
    file = min((here.root("days") / "commits").glob("e00000003-*.parquet"))
    os.truncate(file, 100)

    with pytest.raises(CommitsLostError, match=r"e00000003-\w+.parquet cannot be read") as torn:
        doctor()
    file.unlink()
    with pytest.raises(CommitsLostError) as gone:
        doctor()
    for refused in (torn, gone):
        assert "put it back out of a copy of the run's folder" in exit_code_of(refused.value)[1]


@pytest.mark.parametrize("harm", [b"", b'{"commitInfo": {"opera'], ids=["emptied", "cut"])
def test_a_log_in_a_store_that_somebody_harmed_is_told_and_made_anew(
    house: House, store: StorePath, monkeypatch: pytest.MonkeyPatch, harm: bytes
) -> None:
    """An empty version was one that does nothing, and the rows that it added were gone without a word."""
    monkeypatch.setenv("PULSELINE_HOME", str(store))
    house.backfill("2013-01-01", "2013-01-03")
    root = store / "tiny" / "main"
    calm = content_hash(read_stream(root, "beating"))
    version_path(stream_path(root, "beating"), 1).write_bytes(harm)

    with pytest.raises(TornLogError, match=r"00001\.json cannot"):
        house.backfill("2013-01-03", "2013-01-04")
    assert examine("tiny", "main", False, False, house.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - the command's flags
    assert "lost       streams/beating: its log cannot be read" in house.text
    assert examine("tiny", "main", True, False, house.tell) == Exit.FINE  # noqa: FBT003 - as above
    assert content_hash(read_stream(root, "beating")) == calm
    house.backfill("2013-01-03", "2013-01-04")


def test_a_log_without_its_first_version_is_told_and_made_anew_and_that_of_commits_is_put_back(
    placed: House,
) -> None:
    placed.backfill("2013-01-01", "2013-01-03")
    root = read_settings().home / "tiny" / "main"
    calm = content_hash(read_stream(root, "beating"))
    version_path(stream_path(root, "beating"), 0).unlink()

    with pytest.raises(TornLogError, match=r"No table metadata .*: pulseline doctor FLOW says what stands"):
        read_stream(root, "beating")
    assert examine("tiny", "main", False, False, placed.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - the command's flags
    assert "lost       streams/beating: its log cannot be read" in placed.text
    assert examine("tiny", "main", True, False, placed.tell) == Exit.FINE  # noqa: FBT003 - as above
    assert content_hash(read_stream(root, "beating")) == calm
    placed.backfill("2013-01-03", "2013-01-04")
    version_path(commits_path(root), 0).unlink()
    with pytest.raises(TornLogError, match=r"No table metadata .*: put it back out of a copy of the run's folder"):
        examine("tiny", "main", True, False, placed.tell)  # noqa: FBT003 - as above


@pytest.mark.parametrize("table", ["streams/beating", "commits"])
def test_a_hint_that_leads_nowhere_is_removed_by_a_repair(placed: House, table: str) -> None:
    placed.backfill("2013-01-01", "2013-01-03")
    root = read_settings().home / "tiny" / "main"
    calm = content_hash(read_stream(root, "beating"))
    hint = root / table / LOG / HINT
    hint.write_text('{"version":99,"size":9}')

    assert examine("tiny", "main", False, False, placed.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - the command's flags
    assert f"torn       {table}: its log has 1 files that cannot be read" in placed.text
    assert examine("tiny", "main", True, False, placed.tell) == Exit.FINE  # noqa: FBT003 - as above
    assert not hint.is_file()
    assert content_hash(read_stream(root, "beating")) == calm


def test_what_many_tables_lost_with_one_commit_is_one_line_for_people() -> None:
    lost = [
        Finding(ill=Ill.MISSING, table=f"carry/{name}", sentence="1 files", remedy="work", commits=(3,), files=1)
        for name in "abcde"
    ]
    other = replace(lost[0], table="carry/f", commits=(4,))
    (told, apart) = doctor_command._told([*lost, other], as_json=False)
    assert (told.table, told.sentence) == ("carry/a", "with 4 other tables, 5 files; 1 files")
    assert apart is other
    assert list(doctor_command._told(lost, as_json=True)) == lost


def test_a_disk_that_goes_away_under_a_command_is_no_file_that_is_lost(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.backfill("2013-01-01", "2013-01-02")
    away = house.root.with_name("away")

    def unmounted(*_: object) -> NoReturn:
        house.root.rename(away)
        raise FileNotFoundError

    monkeypatch.setattr(log, "read_whole", unmounted)
    with pytest.raises(RootGoneError, match="is gone: see whether its disk is still mounted; once it is there again"):
        CommitLog(house.root).state()
    monkeypatch.undo()
    away.rename(house.root)
    assert CommitLog(house.root).state().published


@pytest.mark.parametrize("lost", ["a manifest", "a folder"])
def test_a_day_that_can_be_read_no_more_and_whose_feed_has_other_rows_is_led_out_of(house: House, lost: str) -> None:
    """Its feed was archived meanwhile, and so it can not land as it did."""
    house.backfill("2013-01-01", "2013-01-03")
    feed, sequence = house.config / "flows" / "trips.parquet", house.root / "landed" / "00000001"
    rows = pq.read_table(feed)
    pq.write_table(rows.slice(10), feed)
    (sequence / "manifest.json").write_text("") if lost == "a manifest" else shutil.rmtree(sequence)
    assert examine("tiny", "main", False, False, house.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - the command's flags
    with pytest.raises(GivesOthersError, match=r"put the feeds' files back .* or replace the interval .*--accept-loss"):
        examine("tiny", "main", True, False, house.tell)  # noqa: FBT003 - as above
    house.backfill("2013-01-03", "2013-01-04")
    wanted = RunRequest(flow="tiny", start="2013-01-01", end="2013-01-02", engine="core", check=False)
    with pytest.raises(WrongUse, match=r"from which files it landed can no longer be read"):
        run_flow(wanted, house.tell)
    (entry,) = run_flow(replace(wanted, accept_loss=True), house.tell)
    assert entry.supersedes == (1,)
    assert examine("tiny", "main", False, False, house.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - as above
    assert "sequence 1, of a commit that no longer counts, " in house.text
    assert examine("tiny", "main", True, False, house.tell) == Exit.FINE  # noqa: FBT003 - as above
    assert [each.id for each in Landing(house.root / "landed").sequences] == [1, 2, 3, 4]
    run_flow(RunRequest(flow="tiny", start="2013-01-02", end="2013-01-04", engine="core", check=False), house.tell)
    state = log_state(house.root)
    pq.write_table(rows.slice(10), feed)
    anew = {row.span: row.hashes["punctual"] for row in state.published}
    house.backfill("2013-01-01", "2013-01-04", run="anew")
    assert anew == {row.span: row.hashes["punctual"] for row in log_state(house.home / "tiny" / "anew").published}


def without_an_add(log: Path) -> None:
    """Take the last line of a version away, each of which is JSON by itself."""
    version = log / f"{2:020d}.json"
    *lines, last = version.read_text().splitlines(keepends=True)
    assert '"add"' in last
    version.write_text("".join(lines))


def with_another_size(log: Path) -> None:
    version = log / f"{2:020d}.json"
    version.write_text(re.sub(r'"size":\d+', '"size":999', version.read_text(), count=1))


def with_a_letter_changed(log: Path) -> None:
    version = log / f"{0:020d}.json"
    version.write_text(version.read_text().replace("number", "numbed"))


def with_another_type(log: Path) -> None:
    version = log / f"{0:020d}.json"
    name, kind = r"\"name\":\"weight\",\"type\":", r"\"double\""
    assert name + kind in version.read_text()
    version.write_text(version.read_text().replace(name + kind, name + r"\"date\""))


@pytest.mark.parametrize("harm", [without_an_add, with_another_size, with_a_letter_changed, with_another_type])
def test_a_log_that_can_be_read_and_says_something_else_is_found_and_made_anew(
    house: House, harm: Callable[[Path], None]
) -> None:
    for day in range(1, 3):
        house.backfill(f"2013-01-0{day}", f"2013-01-0{day + 1}")
    before = content_hash(read_stream(house.root, "punctual")).text
    harm(house.root / "streams" / "punctual" / "_delta_log")
    known = open_run("tiny", "main")
    with pytest.raises(JobError, match=r"streams/punctual: its log .* doctor tiny --repair puts them back"):
        known.require_own_rows("punctual")
    show_status("tiny", "main", as_json=False, tell=house.tell)
    assert house.text.endswith("next: pulseline doctor tiny")
    assert check_flow("tiny", None, None, None, "main", as_json=False, echo=house.tell) == Exit.CHECK_FAILED
    assert house.text.endswith("next: pulseline doctor tiny --deep --repair")
    assert examine("tiny", "main", False, False, house.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - the command's flags
    assert "lost       streams/punctual: its log " in house.text
    assert examine("tiny", "main", True, False, house.tell, deep=True) == Exit.FINE  # noqa: FBT003 - as above
    assert content_hash(read_stream(house.root, "punctual")).text == before
    assert check_flow("tiny", None, None, None, "main", as_json=False, echo=house.tell) == Exit.FINE
    house.backfill("2013-01-03", "2013-01-04")


def test_a_table_whose_shared_file_gave_way_is_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Days that were worked on in one go share files, and the only rows of one may be those of a day that ran again."""
    monkeypatch.setenv("PULSELINE_HOME", str(tmp_path / "home"))
    flow = tmp_path / "z.yaml"
    flow.write_text(
        "flow: z\nsources:\n  r: {feed: {csv: feed.csv, types: {id: int64, at: timestamp}}, key: pump, time: at, "
        'arrival: at}\nstreams:\n  some: {filter: r, where: "id < 2"}\n'
    )
    wanted = RunRequest(flow=str(flow), start="2026-03-01", end="2026-03-03", engine="core", check=False)
    told: list[str] = []
    for second in (2, 3, 1):
        rows = ["id,pump,at", "1,n,2026-03-01T10:00:00Z", f"{second},n,2026-03-02T10:00:00Z", ""]
        (tmp_path / "feed.csv").write_text("\n".join(rows))
        run_flow(wanted if second == 2 else replace(wanted, start="2026-03-02"), told.append)
        assert [*open_run(str(flow), "main").written_by_others] == []
        assert examine(str(flow), "main", False, False, told.append) == Exit.FINE  # noqa: FBT003 - the command's flags


@pytest.mark.parametrize("lost", ["streams/punctual/_written", "carry/ordered.held", "carry/beating.state"])
def test_a_repair_that_was_cut_short_is_gone_on_with(house: House, lost: str) -> None:
    """One of the commits that shared a file was made again: of the others nothing is had again by that."""
    days = RunRequest(flow="tiny", start="2013-01-01", end="2013-01-03", engine="core", check=False, at_once="2")
    run_flow(days, house.tell)
    kept = house.home.with_name("kept")
    shutil.copytree(house.home, kept)
    next_day = replace(days, start="2013-01-03", end="2013-01-04")
    run_flow(next_day, house.tell)
    wanted = all_rows(house)
    shutil.rmtree(house.home)
    shutil.move(kept, house.home)
    name = lost.removesuffix("/_written")
    file = first(house.root / lost, "c00000001-00000002-*.parquet")
    whole = file.read_bytes()
    file.unlink()
    with open_driver(house.root, flow="tiny") as driver:
        remake(driver, 1, {name}, CoreEngine())
    assert examine("tiny", "main", False, True, house.tell, deep=True) == Exit.CHECK_FAILED  # noqa: FBT003 - as above
    assert [json.loads(line)["commits"] for line in house.text.splitlines() if "missing" in line] == [[2]]
    if "carry" in lost:
        with pytest.raises(TableError):
            run_flow(next_day, house.tell)
    again = house.home.with_name("again")
    shutil.copytree(house.home, again)
    assert examine("tiny", "main", True, False, house.tell) == Exit.FINE  # noqa: FBT003 - as above
    run_flow(next_day, house.tell)
    assert all_rows(house) == wanted
    # The file that they shared may come back instead, and has rows of the commit that was made again.
    shutil.rmtree(house.home)
    shutil.move(again, house.home)
    file.write_bytes(whole)
    shutil.rmtree(house.root / "streams" / "punctual" / LOG)
    assert examine("tiny", "main", True, False, house.tell) == Exit.FINE  # noqa: FBT003 - as above
    run_flow(next_day, house.tell)
    assert all_rows(house) == wanted


def all_rows(house: House) -> dict[str, str]:
    """Give the hash of all that is published, by stream."""
    return hashes_in(house.root)


def hashes_in(root: Path) -> dict[str, str]:
    """Give the hash of all that is published in a run, by stream."""
    return {
        name: content_hash(read_stream(root, name), leave_out=NOT_HASHED | {"commit"}).text
        for name in ("beating", "ordered", "punctual", "punctual.diverted")
    }


@pytest.mark.parametrize("harm", ["gone", "cut", "another letter", "fewer rows"])
def test_a_file_that_somebody_else_put_together_is_looked_at_too(house: House, harm: str) -> None:
    """No commit names it, and readers see its rows alone."""
    for day in (1, 2):
        house.backfill(f"2013-01-0{day}", f"2013-01-0{day + 1}")
    before, table = all_rows(house), house.root / "streams" / "punctual"
    assert DeltaTable(str(table)).optimize.compact()["numFilesAdded"] == 1
    assert examine("tiny", "main", False, False, house.tell, deep=True) == Exit.FINE  # noqa: FBT003 - as above
    file = first(table, "part-*.parquet")
    if harm == "gone":
        file.unlink()
    elif harm == "cut":
        file.write_bytes(file.read_bytes()[:-100])
    elif harm == "another letter":
        version = max((table / LOG).glob("*.json"))
        version.write_text(version.read_text().replace('.parquet"', '.parqwet"'))
    else:
        pq.write_table(pq.read_table(file).slice(3), file)
    assert examine("tiny", "main", False, False, house.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - as above
    assert "foreign    streams/punctual: it names part-" in house.text
    with pytest.raises(TableLostError):
        house.backfill("2013-01-03", "2013-01-04")
    assert examine("tiny", "main", True, False, house.tell) == Exit.FINE  # noqa: FBT003 - as above
    assert all_rows(house) == before
    house.backfill("2013-01-03", "2013-01-04")


@pytest.mark.parametrize("harm", ["gone", "cut", "flipped"])
@pytest.mark.parametrize("table", ["streams/punctual/_written", "carry/ordered.held"])
def test_a_commit_that_waits_and_lost_a_file_is_told_with_the_way_out(house: House, harm: str, table: str) -> None:
    """It held when it was checked, so nobody looks at its rows again before it is published."""
    house.backfill("2013-01-01", "2013-01-02")
    house.backfill("2013-01-02", "2013-01-03", gate=hold)
    assert check_flow("tiny", None, None, 2, "main", as_json=False, echo=house.tell) == Exit.FINE
    file = first(house.root / table, "c00000002-*.parquet")
    if harm == "gone":
        file.unlink()
    elif harm == "cut":
        file.write_bytes(file.read_bytes()[:-100])
    else:
        flipped(file)
    before = all_rows(house)
    assert house.text
    show_status("tiny", "main", False, house.tell)  # noqa: FBT003 - as above
    told = house.text
    if harm != "flipped":
        assert f"{file.name} of commit 2, which waits to be published, is gone or cut short: pulseline doctor" in told
        assert told.endswith("next: pulseline doctor tiny")
    assert examine("tiny", "main", True, False, house.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - as above
    told = house.text
    assert f"missing    {table.removesuffix('/_written')}: 1 files of commit 2, which waits to be published" in told
    assert "pulseline abandon tiny --commit 2 gives it up" in told
    abandon_commit("tiny", 2, "main", as_json=False, echo=house.tell)
    house.backfill("2013-01-02", "2013-01-03")
    assert examine("tiny", "main", False, False, house.tell, deep=True) == Exit.FINE  # noqa: FBT003 - as above
    assert all_rows(house) != before


def test_a_row_that_says_of_another_commit_is_found(house: House) -> None:
    """The number of a commit is in no content hash."""
    house.backfill("2013-01-01", "2013-01-02")
    file = first(house.root / "streams" / "punctual" / "_written", "c00000001-*.parquet")
    rows = pq.read_table(file)
    place = rows.schema.get_field_index("commit")
    other = pa.array([b"\1"] * rows.num_rows)
    pq.write_table(rows.set_column(place, "commit", other), file)
    damaged = NewFile(f"_written/{file.name}", rows.num_rows, file.stat().st_size, first=1, last=1)
    assert not are_as_hashed(rows_of_file(house.root / "streams" / "punctual", damaged, None), damaged)


def _twice(path: str) -> None:
    write_deltalake(path, DeltaTable(path).to_pyarrow_table().slice(2, 2), mode="append")


def _without_steps(path: str) -> None:
    DeltaTable(path).delete("commit = 2 AND state = 'intent'")


def _without_a_day(path: str) -> None:
    rows = DeltaTable(path).to_pyarrow_table()
    write_deltalake(path, rows.filter(pa.array([each != 1 for each in rows["commit"].to_pylist()])), mode="overwrite")


def _without_rows(path: str) -> None:
    DeltaTable(path).delete()


def _other_values(path: str) -> None:
    DeltaTable(path).update({"kind": "'epoch'"}, predicate="commit = 2")


def _another_column(path: str) -> None:
    DeltaTable(path).alter.add_columns(Field("mine", PrimitiveType("string")))


def _other_columns(path: str) -> None:
    write_deltalake(path, pa.table({"a": [1]}), mode="overwrite", schema_mode="overwrite")


def _several_times(path: str) -> None:
    for each in (_twice, _without_rows, _another_column):
        each(path)
    DeltaTable(path).create_checkpoint()


COMMITS_CHANGED = (
    _twice,
    _without_steps,
    _without_a_day,
    _without_rows,
    _other_values,
    _another_column,
    _other_columns,
    _several_times,
)


@pytest.mark.parametrize("change", COMMITS_CHANGED, ids=lambda change: change.__name__[1:])
def test_what_somebody_else_did_to_commits_is_told_by_all_and_taken_back(
    house: House, change: Callable[[str], None]
) -> None:
    house.backfill("2013-01-01", "2013-01-03")
    house.backfill("2013-01-01", "2013-01-04", run="calm")
    path, own = str(commits_path(house.root)), CommitLog(house.root).rows()
    change(path)
    for ask in (
        lambda: show_status("tiny", "main", False, house.tell),  # noqa: FBT003 - as above
        lambda: show_plan(PlanRequest(flow="tiny"), house.tell),
        lambda: house.backfill("2013-01-03", "2013-01-04"),
        lambda: CommitLog(house.root).state(),
    ):
        with pytest.raises(CommitsChangedError, match=r"commits must have the rows .* is not ours and .*--repair"):
            ask()
    house.printed.clear()
    assert examine("tiny", "main", False, False, house.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - as above
    told = house.text
    assert re.search(r"^changed    commits: .* in version \d+ is not ours and .*; repair: take it back", told)
    assert told.endswith("nor looked at beyond that; next: pulseline doctor tiny --repair")
    assert examine("tiny", "main", True, False, house.tell) == Exit.FINE  # noqa: FBT003 - as above
    assert "all 2 published commits of run `main` stand" in house.text
    assert CommitLog(house.root).rows()[: len(own)] == own
    house.backfill("2013-01-03", "2013-01-04")
    assert examine("tiny", "main", False, False, house.tell) == Exit.FINE  # noqa: FBT003 - as above
    assert all_rows(house) == hashes_in(house.root.with_name("calm"))
    # What was taken back once is told no more, nor taken back again.
    change(path)
    assert examine("tiny", "main", True, False, house.tell) == Exit.FINE  # noqa: FBT003 - as above
    assert all_rows(house) == hashes_in(house.root.with_name("calm"))


@pytest.mark.parametrize("change", [_twice, _without_rows], ids=lambda change: change.__name__[1:])
def test_what_somebody_else_did_to_commits_in_a_store_is_taken_back(
    house: House, store: StorePath, monkeypatch: pytest.MonkeyPatch, change: Callable[[str], None]
) -> None:
    monkeypatch.setenv("PULSELINE_HOME", str(store))
    root = store / "tiny" / "main"
    house.backfill("2013-01-01", "2013-01-03")
    before, own = hashes_in(root), CommitLog(root).rows()
    change(str(commits_path(root)))
    with pytest.raises(CommitsChangedError):
        house.backfill("2013-01-03", "2013-01-04")
    assert examine("tiny", "main", True, False, house.tell) == Exit.FINE  # noqa: FBT003 - as above
    assert hashes_in(root) == before
    assert CommitLog(root).rows()[: len(own)] == own


@pytest.mark.parametrize("at", ["commit", "checkpoint"])
def test_taking_back_that_is_cut_short_is_gone_on_with(house: House, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    house.backfill("2013-01-01", "2013-01-03")
    before, own = all_rows(house), CommitLog(house.root).rows()
    _without_rows(str(commits_path(house.root)))

    def cut(*_: object) -> NoReturn:
        raise OSError("the power is gone")

    with monkeypatch.context() as patch:
        patch.setattr(TableLog if at == "commit" else taken_back, at, cut)
        with pytest.raises(OSError, match="power"):
            examine("tiny", "main", True, False, house.tell)  # noqa: FBT003 - as above
    with pytest.raises(CommitsChangedError):
        CommitLog(house.root).state()
    assert examine("tiny", "main", True, False, house.tell) == Exit.FINE  # noqa: FBT003 - as above
    assert all_rows(house) == before
    assert CommitLog(house.root).rows()[: len(own)] == own


def test_commits_are_not_taken_back_from_a_driver_that_is_at_work(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-02")
    with open_driver(house.root, flow="tiny") as driver:
        _twice(str(commits_path(house.root)))
        with pytest.raises(LeaseHeldError):
            examine("tiny", "main", True, False, house.tell)  # noqa: FBT003 - as above
        with pytest.raises(CommitsChangedError):
            driver.state()
    assert examine("tiny", "main", True, False, house.tell) == Exit.FINE  # noqa: FBT003 - as above


def test_rows_of_commits_that_nobody_has_any_more_are_not_made_up(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-03")
    path = str(commits_path(house.root))
    _without_rows(path)
    DeltaTable(path).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    for repair in (False, True):
        assert examine("tiny", "main", repair, False, house.tell) == Exit.CHECK_FAILED  # noqa: FBT003 - as above
        told, *_, last = house.text.splitlines()
        assert "is gone, and nothing else knows what it said: put it back out of a copy of the run's folder" in told
        assert "repair: take it back" not in told
        assert last == "nothing was touched, nor looked at beyond that"


def test_of_a_run_that_published_nothing_no_commits_are_said_to_stand(house: House) -> None:
    wanted = RunRequest(flow="tiny", start="2013-01-01", end="2013-01-02", engine="core", check=False, hold=True)
    run_flow(wanted, house.tell)
    house.printed.clear()
    assert examine("tiny", "main", False, False, house.tell) == Exit.FINE  # noqa: FBT003 - as above
    said = "run `main` has published nothing yet, and nothing is missing of what it has; how it goes on: "
    assert house.text.splitlines() == [f"{said}pulseline status tiny"]
