"""Conformance cases: those of the project where they are at hand, a few of our own everywhere.

Rules of docs/semantics.md: S22
"""

from __future__ import annotations

import importlib.util
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipelines.jobs.commands.conform import answers, conform_file

if TYPE_CHECKING:
    from types import ModuleType

    from tests.conftest import LentSpark

    Case = dict[str, Any]

SHARED = Path(__file__).parents[4] / "shared" / "conformance"
HEARTBEAT = {"interval_ms": 1000, "slack_ms": 200}


def data(name: str, ts: int | None, at: int) -> Case:
    """Give a tuple as a heartbeat's case has it."""
    return {"kind": "data", "id": name, "ts": ts, "at": at}


def timer(ts: int, at: int) -> Case:
    """Give a timer as a heartbeat's case has it."""
    return {"kind": "timer", "ts": ts, "at": at}


OWN: list[Case] = [
    {
        "id": "a timer for each second that a tuple crosses, before the tuple",
        "operator": "heartbeat",
        "config": HEARTBEAT | {"until_ms": 60},
        "input": [{"id": "a", "ts": 500, "at": 0}, {"id": "b", "ts": 2000, "at": 50}],
        "expected": [data("a", 500, 0), timer(1000, 50), timer(2000, 50), data("b", 2000, 50)],
    },
    {
        "id": "silence: the rest of the second and the slack, then a second each",
        "operator": "heartbeat",
        "config": HEARTBEAT | {"until_ms": 1700},
        "input": [{"id": "a", "ts": 500, "at": 0}],
        "expected": [data("a", 500, 0), timer(1000, 700), timer(2000, 1700)],
    },
    {
        "id": "an earlier time and none move nothing",
        "operator": "heartbeat",
        "config": HEARTBEAT | {"until_ms": 700},
        "input": [{"id": "a", "ts": 500, "at": 0}, {"id": "b", "ts": 100, "at": 5}, {"id": "c", "ts": None, "at": 6}],
        "expected": [data("a", 500, 0), data("b", 100, 5), data("c", None, 6), timer(1000, 700)],
    },
    {
        "id": "no interval",
        "operator": "heartbeat",
        "config": {"interval_ms": -1, "slack_ms": 0, "until_ms": 0},
        "input": [],
        "expected": [{"error": ""}],
    },
    {
        "id": "the smallest head of all ports leaves while each holds something",
        "operator": "merge",
        "config": {"ports": ["x", "y"]},
        "input": [
            {"port": "x", "id": "a", "value": 3},
            {"port": "x", "id": "b", "value": 9},
            {"port": "y", "id": "c", "value": 3},
            {"port": "y", "id": "d", "value": 5},
        ],
        "expected": [{"id": "a", "value": 3}, {"id": "c", "value": 3}, {"id": "d", "value": 5}],
    },
    {
        "id": "at the end all leave where a flush is asked for",
        "operator": "merge",
        "config": {"ports": ["x", "y"], "flush_at_end": True},
        "input": [{"port": "x", "id": "a", "value": 7}, {"port": "x", "id": "b", "value": 6}, {"shutdown": True}],
        "expected": [{"id": "a", "value": 7}, {"id": "b", "value": 6}],
    },
    {
        "id": "a heartbeat on each port lets a silent one go on",
        "operator": "heartbeat_merge",
        "config": {"ports": ["x", "y"], "data_only": True, "heartbeat": HEARTBEAT | {"until_ms": 2300}},
        "input": [
            {"port": "x", "id": "a", "ts": 500, "at": 0},
            {"port": "y", "id": "b", "ts": 400, "at": 1},
            {"port": "x", "id": "c", "ts": 900, "at": 300},
        ],
        "expected": [
            {"id": "b", "value": 400, "at": 1},
            {"id": "a", "value": 500, "at": 801},
            {"id": "c", "value": 900, "at": 801},
        ],
    },
    {
        "id": "a promise after every second event, and what breaks it goes",
        "operator": "cti_input",
        "config": {"shape": "point", "generation": {"event_count": 2}, "delay": 1, "policy": "drop"},
        "input": [{"id": "a", "start": 5}, {"id": "b", "start": 8}, {"id": "c", "start": 6}, {"id": "d", "start": 7}],
        "expected": [{"event": "a", "start": 5}, {"event": "b", "start": 8}, {"cti": 7}, {"event": "d", "start": 7}],
        "expected_dropped": ["c"],
    },
    {
        "id": "of rows that are the same on a field the first leaves, within a second and no longer",
        "operator": "deduplicate",
        "config": {"on": ["order"], "within_ms": 1000},
        "input": [
            {"id": "a", "ts": 0, "at": 0, "order": 7},
            {"id": "b", "ts": 1000, "at": 1, "order": 7},
            {"id": "c", "ts": 500, "at": 2, "order": None},
            {"id": "d", "ts": 600, "at": 3},
            {"id": "e", "ts": 1001, "at": 4, "order": 7},
        ],
        "expected": [data("a", 0, 0), data("c", 500, 2), data("e", 1001, 4)],
        "expected_dropped": ["b", "d"],
    },
    {
        "id": "without fields rows are the same that are equal in all of them and in time",
        "operator": "deduplicate",
        "config": {"within": "1m"},
        "input": [
            {"id": "a", "ts": 5, "at": 0, "order": 7},
            {"id": "b", "ts": 5, "at": 1, "order": 7},
            {"id": "c", "ts": 6, "at": 2, "order": 7},
        ],
        "expected": [data("a", 5, 0), data("c", 6, 2)],
        "expected_dropped": ["b"],
    },
    {
        "id": "groups are merged apart",
        "operator": "merge",
        "config": {"ports": [1, 2], "group_by": "symbol"},
        "input": [
            {"port": 1, "id": "a", "value": 4, "symbol": "X"},
            {"port": 2, "id": "b", "value": 5, "symbol": "Y"},
            {"port": 2, "id": "c", "value": 6, "symbol": "X"},
        ],
        "expected": [{"id": "a", "value": 4}],
    },
    {
        "id": "timers that are dropped behind a heartbeat",
        "operator": "heartbeat",
        "config": HEARTBEAT | {"until_ms": 9_000, "drop_timers": True},
        "input": [{"id": "a", "ts": 0, "at": 0}],
        "expected": [data("a", 0, 0)],
    },
    {
        "id": "a filter keeps some events and every promise",
        "operator": "cti_filter",
        "config": {"keep_if_id_in": ["a", "o'b"]},
        "input": [
            {"id": "a", "start": 0, "end": 10},
            {"id": "b", "start": 1, "end": 10},
            {"cti": 100},
            {"id": "o'b", "start": 101, "end": 110},
            {"id": "b", "start": 101, "end": 110},
            {"cti": 200},
        ],
        "expected": [
            {"id": "a", "start": 0, "end": 10},
            {"cti": 100},
            {"id": "o'b", "start": 101, "end": 110},
            {"cti": 200},
        ],
    },
    {
        "id": "a filter before a join",
        "operator": "cti_join",
        "config": {"keep_if_id_in": ["l", "r"]},
        "input": [
            {"side": "left", "id": "l", "start": 100, "end": 110, "key": "k"},
            {"side": "right", "id": "r", "start": 100, "end": 105, "key": "k"},
            {"side": "right", "id": "s", "start": 100, "end": 105, "key": "k"},
            {"side": "left", "cti": 120},
            {"side": "right", "cti": 120},
        ],
        "expected": [{"cti": 120, "released": [{"id": "l+r", "start": 100, "end": 105}]}],
    },
    {
        "id": "an event behind the end breaks the promise that the end has made",
        "operator": "cti_input",
        "config": {"shape": "point", "generation": {"event_count": 9}, "advance_to_infinity": True, "policy": "adjust"},
        "input": [{"id": "a", "start": 5}, {"shutdown": True}, {"id": "b", "start": 8}],
        "expected": [{"event": "a", "start": 5}, {"cti": "inf"}],
        "expected_dropped": ["b"],
    },
    {
        "id": "an event behind the end where nothing was promised",
        "operator": "cti_input",
        "config": {"shape": "point", "generation": {"event_count": 1}, "policy": "drop"},
        "input": [{"id": "a", "start": 5}, {"shutdown": True}, {"id": "b", "start": 8}],
        "expected": [{"event": "a", "start": 5}, {"cti": 5}, {"event": "b", "start": 8}, {"cti": 8}],
        "expected_dropped": [],
    },
]
ENGINES = pytest.mark.parametrize("engine", ["core", "batch"])


def holds(case: Case, answer: Case) -> bool:
    """Compare an answer with what a case of our own expects."""
    assert answer["id"] == case["id"]
    if case["expected"] == [{"error": ""}]:
        return "error" in answer and "output" not in answer
    dropped = answer.get("dropped") == case["expected_dropped"] if "expected_dropped" in case else True
    return answer.get("output") == case["expected"] and dropped


@ENGINES
def test_our_own_cases_hold(engine: str, lent: LentSpark) -> None:
    before = lent.tasks
    found = answers(OWN, engine)
    assert [answer for case, answer in zip(OWN, found, strict=True) if not holds(case, answer)] == []
    assert (lent.tasks > before) == (engine == "batch")


REGIONS: list[Case] = [
    {
        "id": "only the final punctuation drains",
        "operator": "replay",
        "config": {"trigger": "operatorDriven", "drain_on": "final"},
        "input": [{"tuple": 1}, {"punct": "window"}, {"punct": "final"}],
        "expected": [{"tuple": 1}, {"punct": "window"}, {"punct": "final"}, {"drained": 1}],
    },
    {
        "id": "a drain behind a punctuation that fails",
        "operator": "replay",
        "config": {"trigger": "operatorDriven"},
        "input": [{"tuple": 1}, {"punct": "window", "drain_fails": True}, {"tuple": 2}],
        "expected": [
            {"tuple": 1},
            {"punct": "window"},
            {"reset_to": 0},
            {"tuple": 1},
            {"punct": "window"},
            {"tuple": 2},
        ],
    },
    {
        "id": "a periodic drain has its time, counted from the last state or reset",
        "operator": "replay",
        "config": {"trigger": "periodic", "period_ms": 1000},
        "input": [
            {"tuple": 1, "at": 0},
            {"drain": True, "at": 1000},
            {"tuple": 2, "at": 1500},
            {"reset": True, "at": 1700},
            {"drain": True, "at": 2000},
            {"drain": True, "at": 2700, "drain_fails": True},
            {"drain": True, "at": 3700},
        ],
        "expected": [
            *({"tuple": 1}, {"drained": 1}, {"tuple": 2}, {"reset_to": 1}, {"tuple": 2}),
            *({"reset_to": 1}, {"tuple": 2}, {"drained": 4}),
        ],
    },
]


EACH = pytest.mark.parametrize("case", REGIONS, ids=lambda case: str(case["id"]))


@EACH
def test_our_own_cases_of_replay_hold(case: Case) -> None:
    (answer,) = answers([case], "core")
    assert holds(case, answer), answer


@pytest.mark.exhaustive
@EACH
def test_our_own_cases_of_replay_hold_on_spark(case: Case, lent: LentSpark) -> None:  # noqa: ARG001 - jobs find it
    (answer,) = answers([case], "stream")
    assert holds(case, answer), answer


def test_a_case_of_replay_is_answered_by_spark(lent: LentSpark) -> None:  # noqa: ARG001 - jobs find it
    (answer,) = answers([REGIONS[-2]], "stream")
    assert holds(REGIONS[-2], answer), answer


def test_each_case_is_a_key_so_that_neighbours_change_nothing() -> None:
    together = answers(OWN, "core")
    assert [answers([case], "core")[0] for case in OWN] == together


def shared_check() -> ModuleType:
    """Load the script that alone compares answers with the project's cases."""
    spec = importlib.util.spec_from_file_location("check", SHARED / "check.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(not (SHARED / "cases").is_dir(), reason="the project's cases are not beside this checkout")
@ENGINES
@pytest.mark.parametrize("name", ["heartbeat", "merge"])
def test_the_projects_cases_hold(name: str, engine: str, lent: LentSpark) -> None:  # noqa: ARG001 - jobs find it
    file, out = SHARED / "cases" / f"{name}.json", io.StringIO()
    conform_file(file, engine, out)
    found = {answer["id"]: answer for answer in map(json.loads, out.getvalue().splitlines())}
    cases = [case for case in json.loads(file.read_text()) if case.get("compare") != "statement"]
    same = shared_check().same
    assert [(case["id"], found[case["id"]]) for case in cases if not same(case, found[case["id"]])] == []


def test_answers_come_in_the_order_of_the_file_and_statements_have_none(tmp_path: Path) -> None:
    statement = {"id": "said", "operator": "heartbeat", "compare": "statement", "config": {}, "input": []}
    file, out = tmp_path / "cases.json", io.StringIO()
    file.write_text(json.dumps([OWN[4], statement, OWN[0], OWN[3]]))
    conform_file(file, "core", out)
    ids = [json.loads(line)["id"] for line in out.getvalue().splitlines()]
    assert ids == [OWN[4]["id"], OWN[0]["id"], OWN[3]["id"]]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"operator": "teleport"}, "teleport"),
        ({"config": HEARTBEAT | {"until_ms": 60, "colour": "red"}}, "colour"),
    ],
)
def test_what_is_not_built_says_so(change: Case, word: str) -> None:
    (answer,) = answers([OWN[0] | change], "core")
    assert set(answer) == {"id", "unsupported"}
    assert word in answer["unsupported"]
