"""A table that was removed, or put back from an older copy: refused by whoever writes or reads it, with its name."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

from pipelines.engine.columnar.content import content_hash
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.paths import CommitsLostError, TableLostError, TornLogError, commits_path
from pipelines.engine.commits.readers import log_state, read_ledger, read_stream, settled_commits
from pipelines.engine.files.parquet import FileDamagedError
from pipelines.jobs.commands.check import check_commit
from pipelines.jobs.commands.doctor import examine
from pipelines.jobs.commands.run import RunRequest, run_flow
from pipelines.jobs.commands.show import show_stream
from pipelines.jobs.commands.status import show_status
from pipelines.jobs.commands.tables import TablesQuery, tell_tables
from pipelines.jobs.environment.exits import exit_code_of
from pipelines.jobs.environment.settings import load_flow, read_settings
from pipelines.jobs.runs.gate import hold
from pipelines.jobs.runs.readings import land_readings, runner_of
from tests.jobs.commands.test_stream import READINGS
from tests.laws.streamed import streamed
from tests.laws.test_kills import assert_nothing_twice
from tests.laws.trials import BEGIN, PARCELS, SPANS, WHOLE, Trial, parcels, trial

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.jobs.conftest import House

LOST = ("streams/beating", "streams/ordered", "streams/punctual.diverted", "ledger", "carry/beating.state")
READ = tuple(name for name in LOST if not name.startswith("carry"))
WHAT_TO_DO = "put it back, or make a run of its own anew (--run NAME)"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """Give the parcels, with the run `whole`: one interval on core."""
    made = trial(tmp_path_factory.mktemp("lost"), PARCELS, {"parcels": parcels()})
    made.ran("whole", WHOLE)
    return made


def test_what_a_plain_reader_would_see_of_a_lost_table_is_not_nothing(here: Trial) -> None:
    root = here.root("whole")
    path = root / "streams" / "beating"
    shutil.move(path, here.base / "looked at aside")
    with pytest.raises(TableLostError) as refused:
        settled_commits(root, path, log_state(root))
    shutil.move(here.base / "looked at aside", path)

    assert_named(refused.value, path)


def begun(here: Trial, run: str, table: str) -> Path:
    """Stream the first readings and take a table away; give where it lies now."""
    streamed(here, run, BEGIN, READINGS[:5])
    aside = here.base / f"{run} aside"
    shutil.move(here.root(run) / table, aside)
    return aside


def assert_named(error: TableLostError, path: Path) -> None:
    """See that an error names a table and what to do, and ends a command as it should."""
    code, line = exit_code_of(error)
    assert code == 3
    assert line.startswith(f"{path} must hold what commit {error.commit} wrote")
    assert line.endswith(WHAT_TO_DO)


@pytest.mark.parametrize("table", LOST)
def test_a_stream_does_not_go_on_without_a_table_and_does_once_it_is_back(here: Trial, table: str) -> None:
    run = f"stream {table.replace('/', ' ')}"
    aside = begun(here, run, table)
    before = log_state(here.root(run)).commits
    with pytest.raises(TableLostError) as refused:
        streamed(here, run, BEGIN, READINGS)
    assert_named(refused.value, here.root(run) / table)
    assert not (here.root(run) / table).exists()
    assert log_state(here.root(run)).commits == before, "refused before anything is begun"
    shutil.move(aside, here.root(run) / table)
    streamed(here, run, BEGIN, READINGS)
    assert here.hashes(run, WHOLE) == here.hashes("whole", WHOLE)
    assert_nothing_twice(here.root(run))


@pytest.mark.parametrize("table", LOST)
def test_a_backfill_does_not_go_on_without_a_table(here: Trial, table: str) -> None:
    run = f"backfill {table.replace('/', ' ')}"
    here.ran(run, SPANS[:1])
    aside = here.base / f"{run} aside"
    shutil.move(here.root(run) / table, aside)
    with pytest.raises(TableLostError) as refused:
        here.ran(run, SPANS[1:])
    assert_named(refused.value, here.root(run) / table)
    shutil.move(aside, here.root(run) / table)
    here.ran(run, SPANS[1:])
    assert here.hashes(run, WHOLE) == here.hashes("whole", WHOLE)
    assert_nothing_twice(here.root(run))


@pytest.mark.parametrize("table", READ)
def test_nobody_reads_a_lost_table_as_empty(here: Trial, table: str) -> None:
    run = f"read {table.replace('/', ' ')}"
    begun(here, run, table)
    with pytest.raises(TableLostError) as refused:
        read_ledger(here.root(run)) if table == "ledger" else read_stream(here.root(run), table.partition("/")[2])
    assert_named(refused.value, here.root(run) / table)


def test_nobody_reads_an_older_copy_of_a_table_as_the_whole(here: Trial) -> None:
    streamed(here, "older", BEGIN, READINGS[:5])
    table, copy = here.root("older") / "streams" / "beating", here.base / "copy"
    shutil.copytree(table, copy)
    streamed(here, "older", BEGIN, READINGS)
    shutil.rmtree(table)
    shutil.copytree(copy, table)
    with pytest.raises(TableLostError) as refused:
        read_stream(here.root("older"), "beating")
    assert refused.value.commit > 5


def test_a_pending_commit_is_not_finished_without_a_table(here: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = here.wanted("pending")
    streamed(here, "pending", BEGIN, READINGS[:5])
    with open_driver(wanted.root, flow=wanted.flow.name) as driver, monkeypatch.context() as patch:
        land_readings(wanted, BEGIN, READINGS)
        patch.setattr("pipelines.engine.tasks.commit_work.run_stages", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            runner_of(wanted, driver).advance(5, 6)
    shutil.rmtree(wanted.root / "streams" / "ordered")
    with open_driver(wanted.root, flow=wanted.flow.name) as driver, pytest.raises(TableLostError, match="ordered"):
        runner_of(wanted, driver)


def test_a_table_that_never_had_a_row_is_made_anew(here: Trial) -> None:
    streamed(here, "no row", BEGIN, READINGS[:1])
    assert log_state(here.root("no row")).published[0].rows_of("punctual.diverted") == 0
    shutil.rmtree(here.root("no row") / "streams" / "punctual.diverted")
    streamed(here, "no row", BEGIN, READINGS)
    assert here.hashes("no row", WHOLE) == here.hashes("whole", WHOLE)


@pytest.mark.parametrize("most", [1, 10])
def test_tables_without_their_commits_are_refused(here: Trial, most: int) -> None:
    run = f"no commits {most}"
    streamed(here, run, BEGIN, READINGS, most=most)
    shutil.rmtree(commits_path(here.root(run)))
    for look in (lambda: streamed(here, run, BEGIN, READINGS, most=3), lambda: log_state(here.root(run))):
        with pytest.raises(CommitsLostError, match="the whole table is gone, and nothing else knows what it said"):
            look()
    assert not commits_path(here.root(run)).exists(), "none is made in its place"


def test_a_carry_that_is_not_as_it_was_written_is_named(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-02")
    file = next((house.root / "carry" / "punctual.state").glob("*.parquet"))
    whole = bytearray(file.read_bytes())
    for place in range(4, len(whole) // 2):
        whole[place] ^= 0xFF
    file.write_bytes(whole)
    with pytest.raises(FileDamagedError, match=rf"{re.escape(str(file))} must be as it was written.*pulseline doctor"):
        house.backfill("2013-01-02", "2013-01-03")


@pytest.mark.parametrize("lost", [1, 2])
def test_a_table_whose_newest_versions_are_gone_is_told_by_whoever_reads_it(house: House, lost: int) -> None:
    for day in range(1, 5):
        house.backfill(f"2013-01-0{day}", f"2013-01-0{day + 1}")
    path = house.root / "streams" / "punctual"
    wanted = read_stream(house.root, "punctual")
    for version in sorted((path / "_delta_log").glob("0*.json"))[-lost:]:
        version.unlink()
    looks: tuple[Callable[[], object], ...] = (
        lambda: show_stream("tiny", "punctual", None, None, 0, "csv", "main", house.tell),
        lambda: tell_tables(TablesQuery(flow="tiny", run="main", stream=None, commit=None, as_json=False), house.tell),
    )
    for look in looks:
        with pytest.raises(TableLostError) as refused:
            look()
        assert_named(refused.value, path)
    show_status("tiny", "main", False, house.tell)  # noqa: FBT003 - the flag of the command
    told = house.text
    assert "streams/punctual is an older copy of itself, or its newest versions are gone: pulseline doctor tiny" in told
    assert told.endswith("next: pulseline doctor tiny")
    assert examine("tiny", "main", True, False, house.tell) == 0  # noqa: FBT003 - the flags of the command
    assert "making the log of streams/punctual anew" in house.text
    show_status("tiny", "main", False, house.tell)  # noqa: FBT003 - the flag of the command
    assert "older copy" not in house.text
    assert content_hash(read_stream(house.root, "punctual")) == content_hash(wanted)


@pytest.mark.parametrize("repaired", [False, True])
@pytest.mark.parametrize("harm", ["emptied", "gone"])
def test_logs_that_are_damaged_before_anything_is_published_are_made_anew(
    house: House, harm: str, *, repaired: bool
) -> None:
    house.backfill("2013-01-01", "2013-01-02", run="calm")
    house.backfill("2013-01-01", "2013-01-02", gate=hold)
    for name in ("beating", "punctual"):
        (log,) = (house.root / "streams" / name / "_delta_log").glob("0*.json")
        log.write_bytes(b"") if harm == "emptied" else shutil.rmtree(log.parent)
    with pytest.raises((TornLogError, TableLostError), match="streams/beating must h"):
        check_commit(load_flow(read_settings(), "tiny"), house.root, 1)
    if repaired:
        assert examine("tiny", "main", True, False, house.tell) == 0  # noqa: FBT003 - the flags of the command
    run_flow(RunRequest(flow="tiny", start="2013-01-01", end="2013-01-02", engine="core"), house.tell)
    assert "expectations hold" in house.text
    for name in ("beating", "ordered", "punctual"):
        calm = read_stream(house.root.with_name("calm"), name)
        assert content_hash(read_stream(house.root, name)) == content_hash(calm)
    assert examine("tiny", "main", False, False, house.tell) == 0  # noqa: FBT003 - as above
