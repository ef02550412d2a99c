"""Graphs of nodes as flows: the trace in their tables is that of a walk that works on one row to its end.

Rules of docs/semantics.md: X1, X2, X3, X10
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from pipelines.jobs.commands.conform import answers
from pipelines.jobs.proofs import order_cases

if TYPE_CHECKING:
    import pytest

Trace = list[list[Any]]


def walked(nodes: dict[str, Any], edges: dict[str, list[str]], rows: list[list[Any]]) -> Trace:
    """Give what a walk of the graph visits."""
    trace: Trace = []

    def visit(node: str, value: str) -> None:
        trace.append([node, value])
        told = nodes[node] if isinstance(nodes[node], dict) else {}
        for each in [value + suffix for suffix in told["suffixes"]] if "suffixes" in told else [value]:
            for place in sorted(place for place in edges if place.rpartition(":")[0] == node):
                for target in edges[place]:
                    visit(target, each)

    for node, value in rows:
        visit(node, value)
    return trace


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a graph without a circle; nodes have several ways in, also two out of one node."""
    count = draw(st.integers(2, 6))
    names = ["In", *(f"N{number}" for number in range(1, count))]
    kinds = st.sampled_from(["map", "split", "aggregate", "output", {"type": "dup", "suffixes": ["a", "b"]}])
    nodes: dict[str, Any] = {"In": "input"} | {name: draw(kinds) for name in names[1:]}
    edges: dict[str, list[str]] = {}
    for number, name in enumerate(names[1:], 1):
        for _ in range(draw(st.integers(1, 2))):
            place = f"{draw(st.sampled_from(names[:number]))}:{draw(st.integers(0, 2))}"
            edges.setdefault(place, []).append(name)
    rows = [["In", f"t{number}"] for number in range(draw(st.integers(1, 2)))]
    config = {"nodes": nodes, "edges": {place: draw(st.permutations(to)) for place, to in edges.items()}}
    return {"id": "drawn", "operator": "execution_order", "config": config, "input": rows}


@settings(max_examples=6, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(graphs())
def test_the_trace_of_a_drawn_graph_is_that_of_a_walk(case: dict[str, Any]) -> None:
    (answer,) = answers([case], "core")

    assert answer.get("output") == walked(case["config"]["nodes"], case["config"]["edges"], case["input"])


def looped(limits: list[int], rows: list[int]) -> Trace:
    """Give what a walk of a loop visits: rows that come back wait at `U`, first in, first out."""
    trace: Trace = []
    for row in rows:
        trace.append(["In", row])
        waiting = [row]
        while waiting:
            value = waiting.pop(0)
            trace += [["U", value], ["M", value], ["S", value + 1]]
            for number, limit in enumerate(limits):
                trace.append([f"F{number}", value + 1])
                waiting += [value + 1] if value + 1 < limit else []
            trace += [["A", value + 1], ["O", value + 1]]
    return trace


@settings(max_examples=2, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.lists(st.integers(0, 4), min_size=1, max_size=2), st.lists(st.integers(0, 3), min_size=1, max_size=2))
def test_rows_that_come_back_wait_until_what_lies_behind_is_done(limits: list[int], rows: list[int]) -> None:
    nodes: dict[str, Any] = {"In": "input", "U": "union", "M": {"type": "add", "n": 1}, "S": "split"}
    edges = {"In:0": ["U"], "U:0": ["M"], "M:0": ["S"]}
    for number, limit in enumerate(limits):
        nodes[f"F{number}"] = {"type": "less_than", "limit": limit}
        edges |= {f"S:{number}": [f"F{number}"], f"F{number}:0": ["U"]}
    nodes |= {"A": "aggregate", "O": "output"}
    edges |= {f"S:{len(limits)}": ["A"], "A:0": ["O"]}
    config = {"nodes": nodes, "edges": edges}
    case = {"id": "drawn", "operator": "execution_order", "config": config, "input": [["In", row] for row in rows]}
    (answer,) = answers([case], "core")

    assert answer.get("output") == looped(limits, rows)


def test_a_row_that_goes_round_too_often_is_not_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order_cases, "MOST_ROUNDS", 3)
    nodes = {"In": "input", "U": "union", "M": {"type": "add", "n": 1}, "F": {"type": "less_than", "limit": 99}}
    edges = {"In:0": ["U"], "U:0": ["M"], "M:0": ["F"], "F:0": ["U"]}
    case = {"id": "a", "operator": "execution_order", "config": {"nodes": nodes, "edges": edges}, "input": [["In", 0]]}

    assert answers([case], "core") == [{"id": "a", "unsupported": "a row goes round more than 3 times"}]


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
