"""Where a home lies does not matter: the same content hashes in an object store as in a folder, batch and stream.

Rules of docs/semantics.md: S12
"""

from __future__ import annotations

import datetime as dt
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from pipelines.engine.columnar.clock import wall_now
from pipelines.engine.commits import lease, steps, table_log
from pipelines.engine.commits.driver import Claim, CommitLog, open_driver
from pipelines.engine.commits.entry import CommitKind, Entry, State
from pipelines.engine.commits.errors import LeaseHeldError, LeaseLostError
from pipelines.engine.commits.lease import read_renewal, this_process
from pipelines.engine.commits.paths import ConcurrentAddError, stream_path
from pipelines.engine.commits.readers import log_state
from pipelines.engine.commits.table_log import TableChange, TableLog
from pipelines.engine.files import packed
from pipelines.engine.files.folders import UNNAMED
from pipelines.engine.files.packed import segments_in
from pipelines.engine.landing import retention
from pipelines.engine.landing.manifest import closed_ids
from pipelines.engine.live.examining import Ill, examine_run
from pipelines.engine.live.upkeep import Upkeep
from pipelines.jobs.runs.readings import land_readings, runner_of
from tests.engine.files.test_stored import marked
from tests.laws.drawn import CUTS, END, ROWS, START, Row
from tests.laws.streamed import Restart, streamed
from tests.laws.test_cuts import ANY, examples, placed
from tests.laws.trials import PARCELS, SECOND, SPANS, WHOLE, Trial, cut, parcels, trial

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hypothesis.strategies import SearchStrategy

    from pipelines.engine.files.stored import StorePath
    from pipelines.engine.tasks.stages import Engine
    from tests.conftest import LentSpark

NOW = dt.timedelta(0)


def hold(flows: SearchStrategy[str], store: StorePath, count: int, batch: Engine | None = None) -> None:
    @examples(count)
    @given(flow=flows, rows=ROWS, others=ROWS, cuts=CUTS)
    def equal(flow: str, rows: list[Row], others: list[Row], cuts: list[int]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            here = placed(folder, flow, rows, others)
            there = replace(here, home=store / Path(folder).name)
            whole = here.run("whole", [(START, END)])
            assert there.run("cut", cut(START, END, cuts), buckets=3) == whole
            if batch is not None:
                assert there.run("batch", cut(START, END, cuts), batch, buckets=2) == whole
            streamed(there, "live", START, [*sorted(set(cuts)), END], restart=Restart.EVERY_EPOCH)
            assert there.hashes("live", [(START, END)]) == whole

    equal()


def test_drawn_flows_are_the_same_in_a_store(store: StorePath) -> None:
    hold(ANY, store, 2)


def test_a_home_whose_folders_other_tools_marked_goes_on_the_same(tmp_path: Path, store: StorePath) -> None:
    here = parcel_trial(tmp_path, store)
    assert isinstance(here.root("marked"), type(store))
    here.ran("marked", SPANS[:1])
    folders = {folder for path, _ in store.below() for folder in path.parents if len(folder.parts) > len(store.parts)}
    assert {"streams", "commits", "_delta_log", "_written"} <= {folder.name for folder in folders}
    for folder in folders:
        marked(folder)
    here.ran("marked", SPANS[:1])
    here.ran("marked", SPANS[1:2])
    streamed(here, "marked", SPANS[2][0], [SPANS[2][1]], restart=Restart.EVERY_EPOCH)
    whole = trial(tmp_path / "whole", PARCELS, {"parcels": parcels()})
    assert here.hashes("marked", WHOLE) == whole.run("whole", WHOLE)
    found = {each.ill for each in examine_run(here.root("marked"), log_state(here.root("marked")), deep=True)}
    assert found <= {Ill.STRAY}, "what was replaced is stray"


@pytest.mark.exhaustive
def test_twelve_drawn_flows_are_the_same_in_a_store_on_sparks_workers_too(
    store: StorePath, spark: LentSpark, bucket: Mapping[str, str]
) -> None:
    # Workers have the variables of the process that began Spark, which may be an earlier test's.
    spark.session().sparkContext.environment.update(bucket)
    hold(ANY, store, 12, spark)


def parcel_trial(folder: Path, store: StorePath) -> Trial:
    return replace(trial(folder, PARCELS, {"parcels": parcels()}), home=store)


def test_upkeep_changes_no_row_in_a_store(tmp_path: Path, store: StorePath, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "TOGETHER", 4)
    monkeypatch.setattr(retention, "TOGETHER", 4)
    monkeypatch.setattr(retention, "RECENT", 1)
    here = parcel_trial(tmp_path, store)
    whole = replace(here, home=None).run("whole", WHOLE)
    start, end = WHOLE[0]
    wanted = here.wanted("live")
    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        land_readings(wanted, start, range(start, end + 1, (end - start) // 16)[1:], None)
        runner, upkeep = runner_of(wanted, driver), Upkeep(driver)
        for number in closed_ids(wanted.landing):
            runner.advance(number - 1, number)
            upkeep.keep(every=4, keep=NOW)
        for _ in range(8):
            upkeep.keep(every=0, keep=NOW)
    assert here.hashes("live", WHOLE) == whole
    beating = stream_path(wanted.root, "beating")
    named = TableLog(beating)
    named.look()
    assert len(named.files) < 8, "small files were put together"
    assert len(list((beating / UNNAMED).glob("*.parquet"))) == len(named.files), "and what they were is gone"
    assert len(segments_in(wanted.landing)) > 2
    assert len(list(wanted.landing.iterdir())) < 12


def test_a_driver_that_was_overtaken_publishes_nothing_in_a_store(
    tmp_path: Path, store: StorePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = parcel_trial(tmp_path, store)
    root = here.root("main")
    with open_driver(root, flow="parcels") as old:
        with open_driver(root, flow="parcels", claim=Claim.TAKE_OVER):
            with pytest.raises(ConcurrentAddError):
                # What it saw a moment ago is as good as a look for it, and no better.
                old.log.append(Entry(state=State.SETTLED, kind=CommitKind.HOUSE))
            monkeypatch.setattr(table_log, "FRESH", 0)
            with pytest.raises(LeaseLostError):
                old.state()
            assert read_renewal(root).token == old.token + 1  # type: ignore[union-attr]
        # The newer one gave its lease back.
        with open_driver(root, flow="parcels"), pytest.raises(LeaseHeldError), open_driver(root, flow="parcels"):
            pass
    assert here.run("main", SPANS) == replace(here, home=None).run("whole", SPANS)


def test_a_holder_elsewhere_is_watched_by_what_changes(
    tmp_path: Path, store: StorePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clocks ten minutes apart do not matter: only whether it changes is looked at."""
    root = parcel_trial(tmp_path, store).root("main")
    elsewhere = replace(this_process(), machine="another boot/1", machine_id="another")
    monkeypatch.setattr(lease, "this_process", lambda: elsewhere)
    log = CommitLog(root)
    log.create()
    row = log.append(steps.hold(log.state(), elsewhere.facts()))
    here = replace(elsewhere, machine="this boot/1", machine_id="this")
    monkeypatch.setattr("pipelines.engine.commits.lease.time.sleep", lambda _: None)
    lease.write_renewal(root, lease.Renewal(row.token, wall_now() + 10 * 60 * SECOND))
    assert not lease.is_held(root, row, here, lambda _: None)
    naps = iter(range(100))

    def nap(_: float) -> None:
        if next(naps) == 30:
            lease.write_renewal(root, lease.Renewal(row.token, wall_now() - 10 * 60 * SECOND))

    monkeypatch.setattr("pipelines.engine.commits.lease.time.sleep", nap)
    assert lease.is_held(root, row, here, lambda _: None)


def test_of_two_that_append_one_is_told_so(tmp_path: Path, store: StorePath) -> None:
    here = parcel_trial(tmp_path, store)
    here.ran("main", SPANS[:1])
    one, other = (TableLog(stream_path(here.root("main"), "beating")) for _ in range(2))
    one.look()
    other.look()
    one.commit(TableChange(says="ONE"), {})
    with pytest.raises(ConcurrentAddError):
        other.commit(TableChange(says="OTHER"), {})
