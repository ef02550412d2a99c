"""The gate: an interval is published only when its blocking expectations hold, and what was published before stays."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from pipelines.engine.commits import open_driver
from pipelines.engine.history import LogState, State
from pipelines.engine.readers import log_state
from pipelines.jobs.backfill import run_backfill
from pipelines.jobs.gate import Checked, RejectedError, hold, settle
from tests.jobs.trials import PARCELS, SPANS, WHOLE, Trial, parcels, trial

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
