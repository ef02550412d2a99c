"""`buckets: auto` changes no row: a run chooses a number when it begins and keeps it, whoever goes on with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.commits.plan import definition_of
from pipelines.engine.commits.readers import log_state
from pipelines.engine.landing.manifest import sequences
from pipelines.engine.tasks.local import CoreEngine
from pipelines.flows.definition import flow_to_json
from pipelines.flows.model import AUTO_BUCKETS
from pipelines.jobs.commands.stream import Live, run_live
from pipelines.jobs.runs import bucketing
from pipelines.jobs.runs.backfill import run_backfill
from tests.laws.trials import BEGIN, PARCELS, SPANS, WHOLE, Trial, parcels, trial

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import LentSpark

AUTO = PARCELS.replace("buckets: 3", "buckets: auto")


@dataclass
class Cores(CoreEngine):
    """Tasks in this process, as if it had more cores."""

    count: int
    asked: int = 0

    def cores(self) -> int:
        """Say what was given."""
        self.asked += 1
        return self.count


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trial:
    """Give a flow that leaves its buckets to runs, over a feed that is worth a hundred of them."""
    made = trial(tmp_path, AUTO, {"parcels": parcels()})
    assert made.flow.buckets == AUTO_BUCKETS
    monkeypatch.setattr(bucketing, "BYTES", (tmp_path / "parcels.parquet").stat().st_size // 100)
    return made


def planned(here: Trial, run: str) -> set[int]:
    """Give the numbers of buckets that a run's commits and sequences have."""
    root = here.root(run)
    rows = log_state(root).commits.values()
    return {definition_of(row)["buckets"] for row in rows} | {each.buckets for each in sequences(landed_path(root))}


def test_rows_and_files_are_those_of_a_flow_that_names_the_number(here: Trial) -> None:
    chosen = here.run("auto", SPANS, Cores(2))
    assert planned(here, "auto") == {8}
    for buckets in (1, 4, 7, 8):
        assert here.run(f"of-{buckets}", SPANS, buckets=buckets) == chosen
    auto, eight = (log_state(here.root(run)).tip for run in ("auto", "of-8"))
    assert auto is not None
    assert eight is not None
    assert (auto.fingerprint, auto.plan) == (eight.fingerprint, eight.plan)


def test_a_run_keeps_its_number_on_another_machine(here: Trial) -> None:
    whole = here.run("whole", SPANS, buckets=4)
    first, other = Cores(1), Cores(16)
    here.ran("moved", SPANS[:1], first)
    assert here.run("moved", SPANS, other) == whole
    assert planned(here, "moved") == {4}
    assert (first.asked, other.asked) == (1, 0)


def test_what_has_landed_keeps_its_number_though_no_commit_was_begun(
    here: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("pipelines.jobs.runs.intervals.begin", dies)
        with pytest.raises(KeyboardInterrupt):
            here.ran("died", SPANS, Cores(2))
    assert not log_state(here.root("died")).commits
    run_backfill(here.wanted("died", Cores(3)), SPANS)
    assert planned(here, "died") == {8}


def test_a_run_of_a_flow_that_named_a_number_keeps_it(here: Trial) -> None:
    here.ran("named", SPANS[:1], buckets=7)
    here.ran("named", SPANS[1:], Cores(2))
    assert planned(here, "named") == {7}


def test_a_stream_chooses_and_keeps_its_number_too(here: Trial, spark: LentSpark) -> None:
    whole = here.run("whole", WHOLE, buckets=1)

    root = here.root("live")
    for _, end in (SPANS[0], SPANS[-1]):
        live = Live(flow=here.flow, root=root, base=here.base, spark=spark, start=BEGIN, end=end, available_now=True)
        run_live(live, lambda _: None)
    assert planned(here, "live") == {8}, "Spark has two threads here"
    assert here.hashes("live", WHOLE) == whole


def test_who_takes_over_a_stream_from_a_backfill_keeps_its_number(here: Trial) -> None:
    here.ran("both", SPANS[:1], buckets=5)
    with open_driver(here.root("both"), flow=here.flow.name) as driver:
        found = bucketing.with_buckets(here.flow, driver.state(), landed_path(here.root("both")), list, Cores(2).cores)
    assert found.buckets == 5
    assert flow_to_json(found) == flow_to_json(here.wanted("both", buckets=5).flow)
