"""Graphs of nodes as flows: the trace in their tables is that of a walk that works on one row to its end.

Rules of docs/semantics.md: X1, X2, X3, X5, X10, X13, X15
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from pipelines.jobs.commands import conform
from pipelines.jobs.commands.conform import answers
from pipelines.jobs.proofs import order_graphs
from pipelines.jobs.runs.backfill import run_backfill

Trace = list[list[Any]]


def outputs(told: dict[str, Any], value: Any) -> list[Any]:  # noqa: ANN401 - a text or a number
    """Give what a node makes of one row."""
    if told["type"] == "less_than":
        return [value] if value < told["limit"] else []
    if told["type"] == "dup":
        return [value + suffix for suffix in told["suffixes"]]
    return [value + told["n"] if "n" in told else value]


def walked(nodes: dict[str, Any], edges: dict[str, list[str]], rows: list[list[Any]]) -> Trace:
    """Give what a walk of the graph visits: rows that come to a node on their path wait there, first in, first out."""
    trace: Trace = []
    waiting: dict[str, list[Any]] = {}

    def visit(node: str, value: Any) -> None:  # noqa: ANN401
        waiting[node] = [value]
        while waiting[node]:
            came = waiting[node].pop(0)
            trace.append([node, came])
            told = nodes[node] if isinstance(nodes[node], dict) else {"type": nodes[node]}
            for each in outputs(told, came):
                for place in sorted(place for place in edges if place.rpartition(":")[0] == node):
                    for target in edges[place]:
                        if target in waiting:
                            waiting[target].append(each)
                        else:
                            visit(target, each)
        del waiting[node]

    for node, value in rows:
        visit(node, value)
    return trace


@st.composite
def graphs(draw: st.DrawFn, back: int = 0) -> dict[str, Any]:
    """Draw a graph; nodes have several ways in, also two out of one node, and `back` ways lead to a node before."""
    count = draw(st.integers(2, 5 if back else 6))
    names = ["In", *(f"N{number}" for number in range(1, count))]
    dup = [] if back else [{"type": "dup", "suffixes": ["a", "b"]}]
    kinds = st.sampled_from(["map", "split", "aggregate", "output", *dup])
    nodes: dict[str, Any] = {"In": "input"} | {name: draw(kinds) for name in names[1:]}
    edges: dict[str, list[str]] = {}
    for number, name in enumerate(names[1:], 1):
        for _ in range(draw(st.integers(1, 2))):
            place = f"{draw(st.sampled_from(names[:number]))}:{draw(st.integers(0, 2))}"
            edges.setdefault(place, []).append(name)
    for number in range(back):
        to = draw(st.integers(1, count - 1))
        nodes |= {f"Add{number}": {"type": "add", "n": 1}}
        nodes |= {f"Less{number}": {"type": "less_than", "limit": draw(st.integers(1, 3))}}
        leaves = f"{names[draw(st.integers(to, count - 1))]}:{draw(st.integers(0, 2))}"
        edges.setdefault(leaves, []).append(f"Add{number}")
        edges |= {f"Add{number}:0": [f"Less{number}"], f"Less{number}:0": [names[to]]}
    rows = [["In", number if back else f"t{number}"] for number in range(draw(st.integers(1, 2)))]
    config = {"nodes": nodes, "edges": {place: draw(st.permutations(to)) for place, to in edges.items()}}
    return {"id": "drawn", "operator": "execution_order", "config": config, "input": rows}


def held_to_a_walk(case: dict[str, Any]) -> None:
    (answer,) = answers([case], "core")
    assert answer.get("output") == walked(case["config"]["nodes"], case["config"]["edges"], case["input"])


@settings(max_examples=4, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(graphs())
def test_the_trace_of_a_drawn_graph_is_that_of_a_walk(case: dict[str, Any]) -> None:
    held_to_a_walk(case)


@settings(max_examples=3, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.integers(1, 3).flatmap(graphs))
def test_rows_that_come_back_wait_until_what_lies_behind_is_done(case: dict[str, Any]) -> None:
    held_to_a_walk(case)


ROUND = {
    "In": "input",
    "U": "union",
    "M": {"type": "add", "n": 1},
    "S": "split",
    "F": {"type": "less_than", "limit": 3},
}
AROUND = {"U:0": ["M"], "M:0": ["S"], "S:0": ["F"], "F:0": ["U"]}
GRAPHS: dict[str, tuple[dict[str, Any], dict[str, list[str]]]] = {
    "a loop in a loop": (
        {**ROUND, "V": "union", "G": {"type": "less_than", "limit": 2}, "O": "output"},
        {**AROUND, "In:0": ["U"], "U:0": ["V"], "V:0": ["M"], "F:0": ["V"], "S:1": ["G"], "G:0": ["U"], "S:2": ["O"]},
    ),
    "a loop before the second branch of a fork, which meets what leaves it": (
        {**ROUND, "R": "split", "Z": "map", "O": "output"},
        {**AROUND, "In:0": ["R"], "R:0": ["U"], "R:1": ["Z"], "Z:0": ["O"], "S:1": ["O"]},
    ),
    "a loop that is entered at two nodes": (
        {**ROUND, "Other": "input", "O": "output"},
        {**AROUND, "In:0": ["U"], "Other:0": ["M"], "S:1": ["O"]},
    ),
    "nodes that are called as nobody calls a stream": (
        {"In": "input", "trace": "map", "o'x": "map", "M#0 {a}: [b]": "output"},
        {"In:0": ["o'x", "trace"], "trace:0": ["M#0 {a}: [b]"]},
    ),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_the_trace_is_that_of_a_walk(name: str) -> None:
    nodes, edges = GRAPHS[name]
    rows = [["In", 0], ["Other" if "Other" in nodes else "In", 1]]
    config = {"nodes": nodes, "edges": edges}
    held_to_a_walk({"id": "a", "operator": "execution_order", "config": config, "input": rows})


def test_what_fails_in_one_case_fails_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"nodes": {"In": "input", "A": "map"}, "edges": {"In:0": ["A"]}}
    case = {"operator": "execution_order", "config": config, "input": [["In", "x"]]}
    broken = {**case, "config": {"nodes": {"In": "input", "A": "map", "B": "map"}, "edges": {"In:0": ["A", "B"]}}}

    def failing(wanted: Any, *of: Any, **told: Any) -> None:  # noqa: ANN401
        if "n2" in wanted.flow.streams:
            raise OSError("no space")
        run_backfill(wanted, *of, **told)

    monkeypatch.setattr(conform, "run_backfill", failing)
    first, second = answers([{"id": "a", **broken}, {"id": "b", **case}], "core")
    assert first == {"id": "a", "failed": "OSError: no space"}
    assert second == {"id": "b", "output": [["In", "x"], ["A", "x"]]}


def test_a_row_that_goes_round_too_often_is_not_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order_graphs, "MOST_ROUNDS", 3)
    nodes = {"In": "input", "U": "union", "M": {"type": "add", "n": 1}, "F": {"type": "less_than", "limit": 99}}
    edges = {"In:0": ["U"], "U:0": ["M"], "M:0": ["F"], "F:0": ["U"]}
    case = {"id": "a", "operator": "execution_order", "config": {"nodes": nodes, "edges": edges}, "input": [["In", 0]]}

    assert answers([case], "core") == [{"id": "a", "unsupported": "a row goes round more than 3 times"}]


@pytest.mark.parametrize(
    ("settings", "refused"),
    [
        ({"instances": 2, "exports_query_table": True}, "exports_query_table must be read by its name"),
        ({"instances": 1, "exports_query_table": True}, ""),
        ({"instances": 2, "adapter": "CSV file reader"}, "adapter must be outside of the module"),
        ({"instances": 2, "has_tcp_adapter": True}, "has_tcp_adapter must be outside of the module"),
        ({"instances": 2, "adapters": ["e-mail sender"]}, ""),
        ({"instances": 2, "style": "sideways"}, "style must be one of round_robin, in_turn, numeric, broadcast"),
        ({"instances": 2, "ports": {"orders": "numeric"}}, "port must be one of orders"),
    ],
)
def test_what_several_instances_cannot_have_is_refused(settings: dict[str, Any], refused: str) -> None:
    rows = [{"id": "a", "key": 1}, {"id": "a", "key": 3.0}]
    (answer,) = answers([{"id": "d", "operator": "dispatch", "config": settings, "input": rows}], "core")

    assert (refused in answer["error"]) if refused else [row["instances"] for row in answer["output"]]


def test_dispatch_and_regions_are_answered_of_flows() -> None:
    dealt = {"id": "d", "operator": "dispatch", "config": {"instances": 3, "style": "numeric"},
             "input": [{"id": "a", "key": -1}, {"id": "b", "key": None}, {"id": "c", "key": 4}]}  # fmt: skip
    refused = {"id": "r", "operator": "dispatch", "config": {"instances": 0, "style": "round_robin"}, "input": []}
    inner = {"parallel": False, "instances": 3, "module": {"refs": [{"parallel": True, "module": {}}]}}
    regions = {"id": "g", "operator": "parallel_regions", "config": {"module": {"refs": [inner]}}, "input": []}
    first, second, third = answers([dealt, refused, regions], "core")

    assert [row["instances"] for row in first["output"]] == [[2], [0], [1]]
    assert "instances must be 1 or more; it is 0" in second["error"]
    assert third["output"] == [{"regions": 4}]
