"""A region on Spark that drains at punctuations, by period, or because its buffers are full: the same rows."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipelines.engine.columnar.columns import times
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.history import CommitKind
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.commits.readers import log_state
from pipelines.engine.commits.resets import newest_state
from pipelines.engine.landing.manifest import closed_ids, load_manifest
from pipelines.flows.definition import fingerprint_of
from pipelines.flows.feeds.spec import Clock
from pipelines.jobs.commands.stream import Live, Session, run_live
from pipelines.jobs.environment.buffer_settings import Buffering
from pipelines.jobs.runs.readings import land_readings, stream_readings
from pipelines.operators.replay import ReplayPolicy, Trigger
from tests.laws.trials import BEGIN, HOUR, MINUTE, PARCELS, WHOLE, Trial, parcels, trial

if TYPE_CHECKING:
    from tests.conftest import LentSpark

MARKED = PARCELS.replace("arrival: seen}", "arrival: seen, edge: what, buffers: 3}").replace(
    "sources:", "region: {drain: punctuation}\nsources:"
)
READINGS = [BEGIN + minutes * MINUTE for minutes in range(10, 181, 10)]
MARKS = [BEGIN + minutes * MINUTE for minutes in (35, 38, 95, 150)]
DRAINED = [4, 10, 16]
"""The sequences that close behind the marks; two lie in one."""


def marked() -> pa.Table:
    """Give the parcels, with window punctuations that have no key and no time."""
    rows = parcels()
    data = rows.append_column("what", pa.repeat("data", rows.num_rows))
    marks = pa.table({"seen": times(pa.array(MARKS).to_numpy()), "what": ["punctuation"] * len(MARKS)})
    return pa.concat_tables([data, marks], promote_options="default").sort_by("seen")


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """Give the parcels, with the run `whole`: one interval on core."""
    made = trial(tmp_path_factory.mktemp("drains"), MARKED, {"parcels": marked()})
    made.ran("whole", WHOLE)
    return made


def drains(here: Trial, run: str) -> list[int]:
    return [entry.upto for entry in log_state(here.root(run)).in_order if entry.kind is CommitKind.EPOCH]


def test_where_a_region_drains_is_no_part_of_what_a_flow_means(here: Trial) -> None:
    assert here.flow.region == ReplayPolicy(trigger=Trigger.OPERATOR)
    assert fingerprint_of(replace(here.flow, region=None)) == fingerprint_of(here.flow)


def test_a_punctuation_is_told_in_the_ledger_and_is_no_row(here: Trial) -> None:
    told = here.table("whole", "ledger").filter(pc.field("reason") == "punctuation").to_pylist()
    assert [(line["action"], line["stream"]) for line in told] == [("noted", "parcels")] * len(MARKS)
    assert "punctuation" not in here.table("whole", "beating")["kind"].to_pylist()


def test_it_publishes_behind_each_punctuation_and_the_rest_at_the_end(here: Trial, spark: LentSpark) -> None:
    wanted = replace(here.wanted("marks"), engine=spark)
    stream_readings(wanted, BEGIN, READINGS)
    assert drains(here, "marks") == DRAINED
    assert [load_manifest(wanted.landing, number).punctuations for number in DRAINED] == [2, 1, 1]

    end = WHOLE[0][1]
    stream_readings(wanted, BEGIN, [*READINGS, end + MINUTE], final=end + 1)
    assert drains(here, "marks") == [*DRAINED, len(READINGS) + 1]
    longer = [(BEGIN, end + MINUTE)]
    assert here.hashes("marks", longer) == here.run("ended", longer, final=end + 1)


def test_a_punctuation_that_is_replayed_does_not_drain_again(here: Trial, spark: LentSpark) -> None:
    wanted = replace(here.wanted("again"), engine=spark)
    stream_readings(wanted, BEGIN, READINGS[:12])
    with open_driver(wanted.root, flow=wanted.flow.name) as driver:
        state = driver.state()
        first = state.in_order[0].commit
        assert newest_state(state) > first
        driver.reset(driver.next_number(), first, detail={"landed": 12})
    stream_readings(wanted, BEGIN, READINGS)

    assert drains(here, "again") == [DRAINED[0], DRAINED[2]], "the second punctuation came before the reset"


def test_by_period_it_publishes_when_a_reading_lies_a_period_behind_the_last_state(
    here: Trial, spark: LentSpark
) -> None:
    hourly = replace(here.flow, region=ReplayPolicy(trigger=Trigger.PERIODIC, period=HOUR))
    wanted = replace(here.wanted("hourly"), engine=spark, flow=hourly)
    stream_readings(wanted, BEGIN, READINGS)

    assert drains(here, "hourly") == [6, 12, 18]
    assert here.hashes("hourly", WHOLE) == here.hashes("whole", WHOLE)


def live(here: Trial, run: str, spark: LentSpark, **changes: object) -> Live:
    wanted = Live(
        flow=here.flow, root=here.root(run), base=here.base, spark=spark, start=BEGIN, end=WHOLE[0][1], speed=3_600
    )
    return replace(wanted, **changes)  # type: ignore[arg-type]


def test_where_the_buffers_are_full_it_publishes_without_a_punctuation(here: Trial, spark: LentSpark) -> None:
    with open_driver(here.root("full"), flow=here.flow.name):
        land_readings(here.wanted("full"), BEGIN, READINGS[:2])
    never = replace(here.flow, region=ReplayPolicy(trigger=Trigger.PERIODIC, period=24 * HOUR))
    told: list[str] = []
    run_live(live(here, "full", spark, flow=never, available_now=True, buffering=Buffering(max_bytes=1)), told.append)

    assert any("the buffers are full: sequences up to 2 are published" in line for line in told)
    assert drains(here, "full")[0] == 2
    assert load_manifest(landed_path(here.root("full")), 3).end == WHOLE[0][1]


@pytest.mark.parametrize("unheard", [0, len(READINGS) - DRAINED[0] + 1], ids=["two wait", "none drained"])
def test_a_stream_has_caught_up_where_the_region_waits_for_more(here: Trial, spark: LentSpark, unheard: int) -> None:
    run, readings = f"caught-{unheard}", READINGS[: len(READINGS) - unheard]
    with open_driver(here.root(run), flow=here.flow.name):
        land_readings(here.wanted(run), BEGIN, readings)
    told: list[str] = []
    run_live(live(here, run, spark, end=readings[-1], trigger=100_000, until_caught_up=True), told.append)

    drained = [upto for upto in DRAINED if upto <= len(readings)]
    assert drains(here, run) == drained
    assert closed_ids(landed_path(here.root(run)))[-1] == len(readings), "what is behind waits for a punctuation"
    waiting = len(readings) - max(drained, default=0)
    assert f"{waiting} sequences wait until the region drains, and no reader sees them before" in "".join(told)


@pytest.mark.parametrize(
    ("drained", "slowest", "done"),
    [(6, 6, True), (6, 5, False), (5, 5, False), (0, 0, False), (9, 8, True)],
    ids=["two wait", "a leg is behind", "one more drains", "nothing drained", "later ones are published too"],
)
def test_all_legs_catch_up_with_what_the_region_has_drained(drained: int, slowest: int, done: bool) -> None:  # noqa: FBT001
    stands = SimpleNamespace(
        live=SimpleNamespace(end=None, flow=SimpleNamespace(clock=Clock.RECORDED)),
        runner=SimpleNamespace(upto=drained),
        legs=SimpleNamespace(upto=slowest),
        lander=SimpleNamespace(backlog=0),
        landing=SimpleNamespace(last_id=8),
        _all_landed=None,
        _drains=SimpleNamespace(next=lambda after, _: max(after, 6)),
    )
    assert Session.caught_up(cast("Session", stands)) is done, "no more of it is asked"
