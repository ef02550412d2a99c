"""The gate: an interval is published only when its blocking expectations hold, and what was published before stays."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.history import LogState, State
from pipelines.engine.commits.quality import Quality, write_quality
from pipelines.engine.commits.readers import log_state
from pipelines.engine.live.epochs import PendingIntervalError
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.runs.backfill import run_backfill
from pipelines.jobs.runs.gate import Checked, RejectedError, hold, settle
from pipelines.jobs.runs.readings import runner_of
from pipelines.operators.heartbeat import HeartbeatPolicy
from tests.laws.trials import MINUTE, PARCELS, SPANS, WHOLE, Trial, parcels, trial

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a judge found of one expectation."""

    held: bool
    severity: str = "blocking"
    table: str = "punctual"
    sentence: str = "No event is behind a CTI"
    remedy: str = "Look at the rows."
    unexpected: int = 1


class Judge:
    """Finds what it was told to, and remembers which commits it was asked about."""

    def __init__(self, *findings: Finding) -> None:
        """Take what it is to find."""
        self.findings, self.asked = findings, list[int]()

    def __call__(self, number: int, state: LogState) -> tuple[Finding, ...]:
        """Answer."""
        assert state.commits[number].state is State.WRITTEN
        self.asked.append(number)
        return self.findings


@pytest.fixture
def here(tmp_path: Path) -> Trial:
    """Give the parcels."""
    return trial(tmp_path / "parcels", PARCELS, {"parcels": parcels()})


def states(here: Trial, run: str) -> list[State]:
    return [entry.state for entry in log_state(here.root(run)).commits.values()]


def test_an_interval_whose_expectations_hold_is_published_with_the_verdict(here: Trial) -> None:
    judge = Judge(Finding(held=True), Finding(held=False, severity="warning"))
    ran = run_backfill(replace(here.wanted("gated"), gate=Checked(judge)), SPANS)
    assert judge.asked == [1, 2, 3]
    assert {each.entry.verdict for each in ran} == {"1 of 2 expectations hold"}


def test_a_rejected_interval_leaves_what_was_published_before_and_stops_the_run(here: Trial) -> None:
    before = here.run("gated", SPANS)
    bad = Judge(Finding(held=False, unexpected=2))
    with pytest.raises(RejectedError, match="punctual: 2 rows break `No event is behind a CTI`") as raised:
        run_backfill(replace(here.wanted("gated"), gate=Checked(bad)), SPANS)
    assert bad.asked == [4], "those after it were not begun"
    assert raised.value.code == 1
    assert here.hashes("gated", WHOLE) == before
    assert states(here, "gated") == [State.PUBLISHED] * 3 + [State.REJECTED]


def test_a_rejected_interval_can_be_run_again(here: Trial) -> None:
    with pytest.raises(RejectedError):
        run_backfill(replace(here.wanted("gated"), gate=Checked(Judge(Finding(held=False)))), SPANS)
    assert here.run("gated", SPANS) == here.run("plain", SPANS)


def test_the_last_interval_can_be_held_for_somebody_else_to_publish(here: Trial) -> None:
    judge = Judge(Finding(held=True))
    wanted = replace(here.wanted("held"), gate=Checked(judge), last_gate=hold)
    ran = run_backfill(wanted, SPANS)
    assert judge.asked == [1, 2]
    assert [each.entry.state for each in ran] == [State.PUBLISHED, State.PUBLISHED, State.WRITTEN]
    again = run_backfill(wanted, [SPANS[-1]])
    assert [each.entry.commit for each in again] == [3], "held once is held: the same commit waits"
    with open_driver(here.root("held"), flow="parcels") as driver:
        settle(driver, again[0].entry, [Finding(held=True)])
    assert here.hashes("held", WHOLE) == here.run("plain", SPANS)


def test_what_an_earlier_run_left_to_be_checked_goes_through_the_gate_first(here: Trial) -> None:
    run_backfill(replace(here.wanted("left"), last_gate=hold), SPANS[:1])
    judge = Judge(Finding(held=True))
    run_backfill(replace(here.wanted("left"), gate=Checked(judge)), SPANS[1:2])
    assert judge.asked == [1, 2]
    with pytest.raises(RejectedError):
        run_backfill(replace(here.wanted("left"), last_gate=Checked(Judge(Finding(held=False)))), SPANS[2:])
    assert states(here, "left") == [State.PUBLISHED, State.PUBLISHED, State.REJECTED]


def test_the_refusal_survives_pickling() -> None:
    error = RejectedError(7, "ordered: 1 row breaks `x`", "Look.")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def checked(here: Trial, run: str, commit: int, *, held: bool) -> None:
    """Keep what a check found of a commit."""
    span = log_state(here.root(run)).commits[commit].span
    found = Quality(
        expectation="no_event_behind_cti",
        table="punctual",
        severity="blocking",
        sentence="No event is behind a CTI",
        remedy="Look.",
        held=held,
        looked_at=3,
        unexpected=0 if held else 1,
        rows=(),
        start=span.start,
        end=span.end,
        commit=commit,
        at=1,
    )
    write_quality(here.root(run), [found])


@pytest.mark.parametrize("spans", [SPANS[:1], SPANS[1:2]])
def test_a_commit_that_failed_its_check_is_never_published_by_a_later_run(
    here: Trial, spans: list[tuple[int, int]]
) -> None:
    run_backfill(replace(here.wanted("failed"), last_gate=hold), SPANS[:1])
    checked(here, "failed", 1, held=False)
    if spans == SPANS[:1]:
        assert here.run("failed", spans) == here.run("plain", spans), "the interval is run anew"
        assert states(here, "failed")[0] is State.REJECTED
    else:
        with pytest.raises(WrongUse, match="must be decided of before another interval is run"):
            run_backfill(here.wanted("failed"), spans)
        assert states(here, "failed") == [State.WRITTEN], "whoever was asked is not overtaken"


def test_a_held_interval_that_would_be_another_now_is_run_anew(here: Trial) -> None:
    run_backfill(replace(here.wanted("held"), last_gate=hold), SPANS[:1])
    slower = replace(here.flow.streams["beating"], policy=HeartbeatPolicy(interval=MINUTE))
    edited = replace(here.flow, streams={**here.flow.streams, "beating": slower})
    wanted = replace(here.wanted("held"), flow=edited, last_gate=hold)
    assert [each.entry.commit for each in run_backfill(wanted, SPANS[:1])] == [2]
    assert states(here, "held") == [State.ABANDONED, State.WRITTEN]
    add_rows(here)
    assert [each.entry.commit for each in run_backfill(wanted, SPANS[:1])] == [3], "a row more has arrived"
    assert [each.entry.commit for each in run_backfill(wanted, SPANS[:1])] == [3]


def add_rows(here: Trial) -> None:
    """Let one parcel more arrive in the first hour."""
    rows = pq.read_table(here.base / "parcels.parquet")
    seen = rows.filter(pc.and_(pc.is_valid(rows["seen"]), pc.is_valid(rows["sent"])))
    pq.write_table(pa.concat_tables([rows, seen.slice(0, 1)]), here.base / "parcels.parquet")


def test_a_stream_publishes_no_interval_that_waits_for_its_check(here: Trial) -> None:
    run_backfill(replace(here.wanted("held"), last_gate=hold), SPANS[:1])
    wanted = here.wanted("held")
    refused = pytest.raises(PendingIntervalError, match="pulseline check FLOW --commit 1, then publish it")
    with open_driver(wanted.root, flow="parcels") as driver, refused:
        runner_of(wanted, driver).finish_pending()
    assert states(here, "held") == [State.WRITTEN]
