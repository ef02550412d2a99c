"""The version of the timezones stands in the plan; another one is noted, and refuses nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from pipelines.engine.commits import plan as plans
from pipelines.engine.commits.readers import log_state
from pipelines.flows.definition import fingerprint_of
from pipelines.flows.zones import VERSION
from pipelines.jobs.commands.run import RunRequest, run_flow
from pipelines.jobs.environment.settings import load_flow, read_settings
from pipelines.jobs.runs.in_use import require_in_use

if TYPE_CHECKING:
    import pytest

    from tests.jobs.conftest import House


def test_the_plan_says_it_and_the_fingerprint_does_not(house: House) -> None:
    flow = load_flow(read_settings(), "tiny")
    before = fingerprint_of(flow)
    house.backfill("2013-01-01", "2013-01-02")
    [row] = log_state(house.root).published
    assert json.loads(str(row.plan))["tzdata"] == VERSION
    assert (plans.zones_version(row), row.fingerprint) == (VERSION, before)


def test_a_run_of_other_timezones_goes_on_and_says_so(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr(plans, "VERSION", "2012a")
        house.backfill("2013-01-01", "2013-01-02")
    run_flow(RunRequest(flow="tiny", start="2013-01-02", end="2013-01-03", engine="core", check=False), house.tell)
    said = f"run `main` was made with the timezones of tzdata 2012a and goes on with those of {VERSION}"
    assert said in house.text
    assert len(log_state(house.root).published) == 2


def test_a_plan_that_says_none_is_no_news(house: House) -> None:
    house.backfill("2013-01-01", "2013-01-02")
    state = log_state(house.root)
    [row] = state.published
    plan = json.loads(str(row.plan))
    del plan["tzdata"]
    assert plans.zones_version(replace(row, plan=json.dumps(plan))) is None
    require_in_use(state, row.commit, load_flow(read_settings(), "tiny"), "main", house.tell)
    assert house.text == ""
