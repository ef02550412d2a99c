"""The operators: what a command's end means to Airflow. Each case runs in one process, which pays for Airflow once."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).parents[2]
STUB = """\
import json, os, sys, time
code, *words = sys.argv[1:]
print("said", *words, flush=True)
if code == "opens":
    known = ("AWS_", "PULSELINE_HOME", "PULSELINE_CONFIG")
    own = {name: value for name, value in os.environ.items() if name.startswith(known)}
    print(json.dumps({name: value for name, value in own.items() if name != "AWS_CA_BUNDLE"}))
    sys.exit()
if code == "stay":
    time.sleep(100)
print(json.dumps({"code": int(code), "words": words} | ({"sentence": words[0]} if words else {})))
if code != "0":
    print("why it failed", file=sys.stderr)
sys.exit(int(code))
"""
PROGRAM = """\
import json, os, signal, sys, time
import psutil
from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType
from airflow.sdk.execution_time.comms import ErrorResponse
from dags import process
from dags.deployed import Adopted
from dags.process import EachOperator, JobOperator

def outcome(kind=JobOperator, **given):
    operator = kind(task_id="it", module="stub", grace=2, **given)
    try:
        found = ["result", operator.execute({"outlet_events": {}})]
    except BaseException as error:
        found = [type(error).__name__, str(error)]
    left = [process.pid for process in psutil.Process().children(recursive=True)]
    return [*found, left]

def stopped(*_):
    operator.on_kill()

def late(*_):
    raise TimeoutError("the task's time is over")

def opened(home="", store=None, **environment):
    said = {"AIRFLOW_VAR_PULSELINE_HOME": home, "AIRFLOW_CONN_PULSELINE_STORE": json.dumps(store)}
    said = {name: value for name, value in (said | environment).items() if value not in ("", "null")}
    os.environ.update(said)
    try:
        return outcome(commands=[["opens"]])
    finally:
        for name in said:
            del os.environ[name]

def adopted():
    names = ("PULSELINE_HOME", "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN")
    os.environ.update(OTHERS)
    adopt, seen = Adopted(), []
    for more in ({"AIRFLOW_VAR_PULSELINE_HOME": "/kept", "AIRFLOW_CONN_PULSELINE_STORE": json.dumps(KEYS)}, {}):
        os.environ.update(more)
        adopt._until = 0.0
        adopt()
        seen.append([os.environ.get(name) for name in names])
        for name in more:
            del os.environ[name]
    for name in (*OTHERS, "AWS_SECRET_ACCESS_KEY"):
        os.environ.pop(name, None)
    return seen

KEYS = {"conn_type": "aws", "login": "door", "password": "key"}
OTHERS = {"AWS_ACCESS_KEY_ID": "other", "AWS_SESSION_TOKEN": "of other", "PULSELINE_HOME": "/other"}
found = {
    "adopted": adopted(),
    "opened by the services": opened(**OTHERS),
    "opened by Airflow": opened(
        "s3://bucket/home", KEYS | {"extra": {"endpoint_url": "http://store:9000", "allow_http": True}}, **OTHERS
    ),
    "opened by a role": opened(store=KEYS | {"extra": {"role_arn": "arn:aws:iam::1:role/it", "region_name": "eu"}}),
    "opened by a database": opened(store={"conn_type": "postgres", "login": "door", "password": "key"}),
    "of a checkout": outcome(commands=[["opens"]], config="/checkout/config"),
    "fine": outcome(commands=[["0", "a b", "{c}"]]),
    "asked": outcome(commands=[["0", "own"]], asked={"commands": {"it": [["0", "asked"]], "other": [["3"]]}}),
    "answer": outcome(commands=[["0", "own"]], answer=["--accept={{ conf }}", "--by=ann"]),
    "nothing": outcome(commands=[], asked=None),
    "skip": outcome(commands=[["0"]], asked={"skip": {"it": "published already"}}),
    "check": outcome(commands=[["1"]]),
    "told": outcome(commands=[["1", "7 of 9 rows break it"]]),
    "wrong": outcome(commands=[["2"]]),
    "failed": outcome(commands=[["3"], ["0"]]),
    "each": outcome(EachOperator, commands=[["1", "first day"], ["0", "second"], ["1", "third day"]]),
    "each holds": outcome(EachOperator, commands=[["0", "first"], ["0", "second"]]),
    "each until one breaks": outcome(EachOperator, commands=[["1", "first day"], ["3"], ["1", "third day"]]),
}
asked = [ErrorType.PERMISSION_DENIED, ErrorType.API_SERVER_ERROR, ErrorType.API_SERVER_ERROR]

def answer(*_):
    if len(asked) > 1:
        raise AirflowRuntimeError(ErrorResponse(error=asked.pop()))
    return asked[0].name

process.comes_first, process.TURN = answer, 0.01
request = process.RequestOperator(task_id="request", kind="backfill", flow="trips")
found["away"] = [request._first({})]
asked.append(ErrorType.PERMISSION_DENIED)
try:
    request._first({})
except AirflowRuntimeError as error:
    found["refused"] = [str(error)]
signal.signal(signal.SIGALRM, late)
signal.alarm(1)
found["timeout"] = outcome(commands=[["stay"]])
operator = JobOperator(task_id="it", module="stub", grace=2, commands=[["stay"]])
signal.signal(signal.SIGTERM, stopped)
signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGTERM))
signal.alarm(1)
try:
    operator.execute({"outlet_events": {}})
except BaseException as error:
    left = [process.pid for process in psutil.Process().children(recursive=True)]
    found["killed"] = [type(error).__name__, str(error), left]
print("found", json.dumps(found))
"""

Outcome = list[Any]
"""Kind of the end, what was said, processes that are left."""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """Run every case."""
    folder = tmp_path_factory.mktemp("operators")
    (folder / "stub.py").write_text(STUB)
    paths = os.pathsep.join([str(CHECKOUT), str(folder)])
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=folder,
        env={**os.environ, "AIRFLOW_HOME": str(folder / "airflow"), "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in run.stdout.splitlines() if line.startswith("found ")]
    assert lines, run.stdout + run.stderr
    found: dict[str, Outcome] = json.loads(lines[-1].removeprefix("found "))
    return found


def test_the_last_object_is_the_result_and_words_stay_whole(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["fine"][:2] == ["result", {"code": 0, "words": ["a b", "{c}"], "sentence": "a b"}]


def test_commands_that_were_asked_for_come_behind_the_own(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["asked"][:2] == ["result", {"code": 0, "words": ["asked"], "sentence": "asked"}]
    assert outcomes["nothing"][:2] == ["AirflowSkipException", "nothing was begun, so there is nothing to do"]


def test_an_answer_ends_the_own_commands_and_is_no_template(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["answer"][1]["words"] == ["own", "--accept={{ conf }}", "--by=ann"]


def test_what_need_not_be_done_is_skipped_with_its_sentence(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["skip"][:2] == ["AirflowSkipException", "published already"]


def test_what_another_try_cannot_mend_fails_at_once_with_the_last_line(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["check"][:2] == outcomes["wrong"][:2] == ["AirflowFailException", "why it failed"]
    assert outcomes["failed"][:2] == ["AirflowException", "exit code 3: why it failed"]


def test_a_check_that_fails_ends_in_its_sentence(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["told"][:2] == ["AirflowFailException", "7 of 9 rows break it"]


def test_a_day_that_does_not_hold_keeps_no_other_unchecked(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["each"][:2] == ["AirflowFailException", "2 of 3: first day; third day"]
    assert outcomes["each holds"][1]["words"] == ["second"]
    assert outcomes["each until one breaks"][:2] == ["AirflowException", "exit code 3: why it failed"], (
        "what another try may mend is tried again, with all days"
    )


@pytest.mark.parametrize("case", ["timeout", "killed"])
def test_a_task_that_is_stopped_leaves_no_process(outcomes: dict[str, Outcome], case: str) -> None:
    kind, told, left = outcomes[case]
    assert left == []
    assert (kind, told) == {
        "timeout": ("TimeoutError", "the task's time is over"),
        "killed": ("AirflowException", "stopped before it was done; the last that it said: said"),
    }[case]


def test_what_airflow_keeps_of_the_home_goes_before_the_environment(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["opened by the services"][1] == {
        "AWS_ACCESS_KEY_ID": "other",
        "AWS_SESSION_TOKEN": "of other",
        "PULSELINE_HOME": "/other",
    }
    assert outcomes["opened by Airflow"][1] == {
        "AWS_ACCESS_KEY_ID": "door",
        "AWS_SECRET_ACCESS_KEY": "key",
        "AWS_ENDPOINT_URL": "http://store:9000",
        "AWS_ALLOW_HTTP": "true",
        "PULSELINE_HOME": "s3://bucket/home",
    }, "and a session's token of other keys is left out"


def test_a_command_has_the_configuration_of_its_dag(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["of a checkout"][1] == {"PULSELINE_CONFIG": "/checkout/config"}


def test_the_pages_go_by_their_own_environment_again_where_airflow_keeps_nothing_any_more(
    outcomes: dict[str, Outcome],
) -> None:
    assert outcomes["adopted"] == [["/kept", "door", None], ["/other", "other", "of other"]]


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        ("opened by a role", "the extra of the connection pulseline_store may have .*; it has role_arn, which would"),
        ("opened by a database", "the connection pulseline_store must be of type aws, .*; it is of type postgres"),
    ],
)
def test_a_connection_that_is_no_key_fails_at_once(outcomes: dict[str, Outcome], case: str, sentence: str) -> None:
    kind, told, _ = outcomes[case]
    assert kind == "AirflowFailException"
    assert re.match(sentence, told)
    assert "key" not in told.replace("access key as login", "")


def test_an_api_server_that_is_away_is_asked_again_and_a_refusal_is_none(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["away"] == ["PERMISSION_DENIED"]
    assert outcomes["refused"][0].startswith("PERMISSION_DENIED")
