"""`--param`: a parameter of one run, before what the flow's file says; part of its commits' plan."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from pipelines.cli import app
from pipelines.engine.commits.readers import log_state
from pipelines.flows.definition import fingerprint_of, flow_from_json, flow_to_json
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.parameters import parameters_of
from pipelines.jobs.environment.settings import load_flow, read_settings
from pipelines.jobs.runs.known import open_run
from pipelines.operators.heartbeat import HeartbeatPolicy

if TYPE_CHECKING:
    from pipelines.flows.model import Flow
    from tests.jobs.conftest import House

HOUR = 3_600_000_000


@pytest.fixture
def paced(house: House) -> House:
    """Give a house whose flow has a parameter."""
    file = house.config / "flows" / "tiny.yaml"
    text = file.read_text().replace("interval: 6h", "interval: '${pace}'")
    file.write_text(text.replace("sources:\n", "parameters: {pace: 6h}\nsources:\n"))
    return house


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(words))
    return result.exit_code, " ".join(result.output.split())


def interval(flow: Flow) -> int:
    policy = flow.streams["beating"].policy
    assert isinstance(policy, HeartbeatPolicy)
    return policy.interval


@pytest.mark.parametrize("word", ["pace", "=3h", "pace=", "pa ce=3h", ""])
def test_a_word_that_is_no_name_and_value_is_refused(word: str) -> None:
    with pytest.raises(WrongUse, match="--param must be name=value"):
        parameters_of([word])


def test_a_value_may_hold_anything_and_a_name_comes_once() -> None:
    assert parameters_of(["a=b=c", "d= e "]) == {"a": "b=c", "d": "e"}
    with pytest.raises(WrongUse, match="`a` came twice"):
        parameters_of(["a=1", "a=1"])


@pytest.mark.usefixtures("paced")
def test_a_parameter_of_the_command_goes_before_the_files() -> None:
    assert interval(load_flow(read_settings(), "tiny")) == 6 * HOUR
    assert interval(load_flow(read_settings(), "tiny", {"pace": "90m"})) == 1.5 * HOUR


@pytest.mark.usefixtures("paced")
def test_flows_show_and_validate_take_parameters_and_hand_them_on() -> None:
    code, told = run("flows", "show", "tiny", "--param", "pace=90m")
    assert (code, "each multiple of 1 h 30 m" in told) == (0, True)
    assert told.endswith("next: pulseline flows validate tiny --param pace=90m")
    code, told = run("flows", "validate", "tiny", "--param", "pace=90m")
    assert (code, told.rpartition("next: ")[2]) == (
        0,
        "pulseline run tiny --start 2013-01-01 --end 2013-01-04 --param pace=90m",
    )


@pytest.mark.usefixtures("paced")
def test_a_run_keeps_its_parameters_in_its_plan_and_status_spells_them_again() -> None:
    days = ("--start", "2013-01-01", "--end", "2013-01-02")
    code, told = run("run", "tiny", *days, "--no-check", "--param", "pace=90m")
    assert code == 0, told
    known = open_run("tiny", "main")
    assert json.loads(known.state.commits[1].plan or "")["given"] == {"pace": "90m"}
    assert interval(flow_from_json(known.definition)) == 1.5 * HOUR
    told = run("status", "tiny")[1]
    assert told.endswith("next: pulseline run tiny --start 2013-01-02 --end 2013-01-03 --param pace=90m")


def test_the_plan_is_of_values_so_how_they_were_given_changes_no_fingerprint(paced: House) -> None:
    given = load_flow(read_settings(), "tiny", {"pace": "6h"})
    assert given.given == {"pace": "6h"}
    assert fingerprint_of(given) == fingerprint_of(load_flow(read_settings(), "tiny"))
    assert "given" not in flow_to_json(given)
    paced.backfill("2013-01-01", "2013-01-02")
    assert log_state(paced.root).commits[1].fingerprint == fingerprint_of(given)


@pytest.mark.usefixtures("paced")
@pytest.mark.parametrize(
    ("param", "said"),
    [
        ("pase=1h", "a value for the parameter `pase`, which the flow does not have"),
        ("pace=soon", "tiny.yaml:9: `interval: soon` in stream `beating`"),
        ("pace=0", "`interval: 0` in stream `beating`, expected greater than zero"),
        ("pace", "--param must be name=value, such as --param interval=10s; it is `pace`"),
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        ("flows", "show", "tiny"),
        ("flows", "validate", "tiny"),
        ("run", "tiny", "--start", "2013-01-01", "--end", "2013-01-02"),
        ("parity", "tiny", "--start", "2013-01-01", "--end", "2013-01-02"),
        ("stream", "tiny", "--start", "2013-01-01", "--end", "2013-01-02"),
        ("finish", "tiny"),
    ],
)
def test_a_wrong_parameter_is_wrong_use_of_every_command_that_takes_one(
    command: tuple[str, ...], param: str, said: str
) -> None:
    code, told = run(*command, "--param", param)
    assert code == 2
    assert said in told
