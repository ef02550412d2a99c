"""Folders that older code wrote are taken over once, with the same rows, and gone on from."""

from __future__ import annotations

import json
import shutil
import tarfile
from typing import TYPE_CHECKING

import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable, write_deltalake

from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.entry import FORMAT, State
from pipelines.engine.commits.errors import NewerHomeError, OlderHomeError
from pipelines.engine.commits.log import CommitLog
from pipelines.engine.commits.paths import CommitsChangedError, commits_path, data_tables
from pipelines.engine.commits.readers import log_state
from pipelines.engine.commits.taken_back import changed_by_others, take_back
from pipelines.engine.commits.upgrade import OLDER, UnfinishedHomeError, upgrade_plan
from pipelines.flows.definition import flow_from_json
from pipelines.jobs.commands.upgrade import upgrade_flow
from pipelines.jobs.drill.older_home import OLDER_HOME
from tests.laws.streamed import streamed
from tests.laws.trials import BEGIN, MINUTE, SPANS, Trial

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.engine.commits.history import LogState

HASHES = {
    "beating": "142:4aced936df1f262229fe02a9518c7fa2",
    "ordered": "110:a0aaf3675feedd748f43fc080985513f",
    "punctual": "112:f6672a0c196fed698a8fee21a40ffee6",
    "punctual.diverted": "2:e3f64ac60c136f6b551431b231e1add0",
    "ledger": "32:a4b94a789dec17d6279f78767e00926a",
    "carry": "15:8946688e146fe22952fe3ad696b8b1ff",
}
"""Of both runs, as the code that wrote them read them."""
RUNS = ("days", "live")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trial:
    """Give what the older code left: its flow as its plans tell it, its feed, and two runs."""
    with tarfile.open(OLDER_HOME) as packed:
        packed.extractall(tmp_path, filter="data")
    base = tmp_path / "older"
    monkeypatch.setenv("PULSELINE_HOME", str(base))
    state = older(base / "runs" / "days")
    return Trial(flow=flow_from_json(json.loads(str(state.commits[3].plan))["flow"]), base=base)


def older(root: Path) -> LogState:
    """Read the log of a folder of the older format."""
    return CommitLog(root, frozenset({OLDER})).state()


def rows_in(root: Path) -> dict[str, int]:
    """Count the rows that any reader of Delta finds in each table."""
    files = {path.name: DeltaTable(str(path)).file_uris() for path in data_tables(root)}
    return {name: ds.dataset(found).count_rows() if found else 0 for name, found in files.items()}


@pytest.mark.parametrize("run", RUNS)
def test_nobody_goes_on_over_an_older_folder(here: Trial, run: str) -> None:
    with pytest.raises(OlderHomeError, match="pulseline upgrade FLOW"):
        log_state(here.root(run))
    with pytest.raises(OlderHomeError), open_driver(here.root(run), flow="parcels"):
        pass


@pytest.mark.parametrize("run", RUNS)
def test_taken_over_every_row_and_hash_is_what_it_was(here: Trial, run: str) -> None:
    before = {name: rows for name, rows in rows_in(here.root(run)).items() if rows}
    said: list[str] = []
    upgrade_flow("runs", run, dry_run=True, echo=said.append)
    assert said[-1].startswith("nothing was done; next: pulseline upgrade")
    assert {name: rows for name, rows in rows_in(here.root(run)).items() if rows} == before
    assert sum(before.values()) > sum(int(text.partition(":")[0]) for text in HASHES.values()) - 15

    upgrade_flow("runs", run, dry_run=False, echo=said.append)

    span = [(BEGIN, BEGIN + 120 * MINUTE)]
    assert {name: content.text for name, content in here.hashes(run, span).items()} == HASHES
    assert rows_in(here.root(run)) == {name: int(HASHES[name].partition(":")[0]) for name in HASHES if name != "carry"}
    assert log_state(here.root(run)).format == FORMAT
    upgrade_flow("runs", run, dry_run=False, echo=said.append)
    assert said[-1].endswith("already; nothing to do")


@pytest.mark.parametrize("run", RUNS)
def test_what_somebody_else_writes_to_commits_is_told_from_old_rows_behind_a_takeover_too(
    here: Trial, run: str
) -> None:
    upgrade_flow("runs", run, dry_run=False, echo=lambda _: None)
    path, before = commits_path(here.root(run)), log_state(here.root(run)).entries
    assert changed_by_others(here.root(run)).by_others == ()
    write_deltalake(str(path), DeltaTable(str(path)).to_pyarrow_table().slice(0, 1), mode="append")
    with pytest.raises(CommitsChangedError, match="is not ours and added rows"):
        log_state(here.root(run))
    take_back(here.root(run), "parcels")
    assert log_state(here.root(run)).entries == before


def test_what_was_taken_over_goes_on_as_what_was_never_older(here: Trial) -> None:
    upgrade_flow("runs", None, dry_run=False, echo=lambda _: None)
    whole = [(BEGIN, SPANS[-1][1])]
    here.ran("days", SPANS[1:])
    here.ran("new", SPANS)
    ends = [BEGIN + minutes * MINUTE for minutes in (7, 20, 21, 59, 60, 61, 100, 120, 150, 180)]
    streamed(here, "live", BEGIN, ends)
    with open_driver(here.root("live"), flow=here.flow.name) as driver:
        driver.keep_house(every=1)
        driver.reset(driver.next_number(), 4, beginning=BEGIN)
    streamed(here, "live", BEGIN, ends)

    assert here.hashes("days", whole) == here.hashes("live", whole) == here.hashes("new", whole)
    assert rows_in(here.root("days")) == rows_in(here.root("live")) == rows_in(here.root("new"))


def test_one_that_was_cut_off_is_taken_over_again(here: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("pipelines.engine.commits.upgrade.long_list", cut)
        with pytest.raises(KeyboardInterrupt):
            upgrade_flow("runs", "live", dry_run=False, echo=lambda _: None)
    assert older(here.root("live")).format == OLDER
    upgrade_flow("runs", "live", dry_run=False, echo=lambda _: None)
    span = [(BEGIN, BEGIN + 120 * MINUTE)]
    assert {name: content.text for name, content in here.hashes("live", span).items()} == HASHES


def test_one_with_a_commit_that_waits_is_refused_by_name(here: Trial) -> None:
    root = here.root("days")
    state = older(root)
    waiting = [*state.entries[:-1], *[row for row in state.entries[-1:] if row.state is not State.PUBLISHED]]
    with pytest.raises(UnfinishedHomeError, match=r"commit 3 is at written.*publish or abandon"):
        upgrade_plan(root, type(state).of(waiting))


def test_one_of_newer_code_is_refused(here: Trial) -> None:
    shutil.rmtree(here.root("days"))
    here.ran("days", SPANS[:1])
    log = CommitLog(here.root("days"))
    row = next(row for row in log.state().entries if row.state is State.FORMAT)
    from dataclasses import replace

    log.append(replace(row, detail={"format": FORMAT + 1}))
    with pytest.raises(NewerHomeError, match="a newer version wrote"):
        log_state(here.root("days"))
