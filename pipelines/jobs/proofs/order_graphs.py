"""Cases of execution order: their graph becomes the text of a flow, and the trace is read out of one of its tables.

Each node has a stream, and a second one with the rows that come to it; an interleave of all of these is the trace. A
node to which its rows can come back is a `loop`, of all that lies behind it: its rows wait until that is done. So what
is asked is what interleaves, modules and loops do, and nothing walks but the flow.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pipelines.flows.reading import read_flow
from pipelines.jobs.proofs.cases import NotBuilt, PreparedCase

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pipelines.flows.model import Flow

Case = dict[str, Any]
Row = dict[str, Any]
HEAD = """\
flow: cases
buckets: 3
sources:
  cases: {feed: {parquet: cases.parquet}, key: case, time: time, arrival: at}
"""
TRACE = "trace"
SAME = MappingProxyType({"id": "id", "port": "port", "item": "item"})
"""What each row has: its value as text, the node that it came to or that it goes back to, and what kind of value."""
TEXT = "'{\"text\": true}'"
MOST_ROUNDS = 500
PASSING = frozenset({"input", "map", "output", "split", "union", "aggregate"})
"""Nodes whose rows leave as they came."""


@dataclass(frozen=True, kw_only=True)
class _Graph:
    """The graph of a case: nodes by name, and from each to which it goes, in the order of ports."""

    nodes: Mapping[str, Row]
    edges: Mapping[str, tuple[str, ...]]

    def behind(self, node: str, cut: frozenset[str]) -> set[str]:
        """Name what a row may come to from a node, where none goes on into `cut`."""
        found: set[str] = set()
        waiting = [node]
        while waiting:
            new = {to for to in self.edges[waiting.pop()] if to not in cut} - found
            found |= new
            waiting += new
        return found

    def goes_round(self, node: str, cut: frozenset[str]) -> bool:
        """Say whether a row may come back to a node."""
        return node in self.behind(node, cut)

    def number(self, node: str) -> int:
        """Give the place of a node among all, by which streams are named: a node may be called anything."""
        return list(self.nodes).index(node)


@dataclass(kw_only=True)
class _Written:
    """A flow, or the module of a loop, as its streams are written down.

    A row that goes back to a node on its path leaves under that node's mark, and who holds the loop takes it up.
    """

    graph: _Graph
    modules: list[str]
    """The text of each module that a loop goes through."""
    cut: frozenset[str] = frozenset()
    """Nodes on the path, which wait for their rows."""
    lines: list[str] = field(default_factory=list)
    traces: list[str] = field(default_factory=list)

    def walk(self, given: Mapping[str, str]) -> None:
        """Write down all that lies behind nodes, each in the order of the graph.

        Args:
            given: the stream that comes to each node where the part begins.
        """
        waiting = self._ways_in(given)
        come = {node: [stream] for node, stream in given.items()}
        ready = [node for node, left in waiting.items() if left == len(come.get(node, ()))]
        while ready:
            node = ready.pop(0)
            if self.graph.goes_round(node, self.cut):
                self._go_round(node, self._meet(f"n{self.graph.number(node)}_in", come[node]))
                continue
            self._arrive(node, self._meet(f"n{self.graph.number(node)}_in", come[node]))
            for place, target in enumerate(self.graph.edges[node]):
                self._hand_on(node, place, target, come)
                if target not in self.cut and waiting[target] == len(come[target]):
                    ready.append(target)

    def _ways_in(self, given: Mapping[str, str]) -> dict[str, int]:
        """Count how many ways lead to each node of the part; what lies behind a loop is the loop's."""
        ways = dict.fromkeys(given, 1)
        waiting = list(given)
        while waiting:
            node = waiting.pop(0)
            for target in () if self.graph.goes_round(node, self.cut) else self.graph.edges[node]:
                if target not in self.cut:
                    waiting += [] if target in ways else [target]
                    ways[target] = ways.get(target, 0) + 1
        return ways

    def _hand_on(self, node: str, place: int, target: str, come: dict[str, list[str]]) -> None:
        """Write down the branch of a node that leads to another, or back to one on the path."""
        number = self.graph.number(target)
        branch = f"n{self.graph.number(node)}_{place}"
        if target in self.cut:
            self.project(branch, f"n{self.graph.number(node)}", {**SAME, "port": f"'back {number}'"})
            self.traces.append(branch)
        else:
            self.project(branch, f"n{self.graph.number(node)}", SAME)
            come.setdefault(target, []).append(branch)

    def _arrive(self, node: str, given: str) -> None:
        """Write down the trace of a node and then the node, over the stream that comes to it."""
        told, number = self.graph.nodes[node], self.graph.number(node)
        name = f"n{number}"
        self.project(f"{name}_at", given, {**SAME, "port": f"'at {number}'"})
        self.traces.append(f"{name}_at")
        if told["type"] == "dup":
            copies = [f"{name}_copy_{place}" for place in range(len(told["suffixes"]))]
            for copy, suffix in zip(copies, told["suffixes"], strict=True):
                self.project(copy, given, {**SAME, "id": f"CONCAT(id, {quoted(suffix)})", "item": TEXT})
            self.project(name, self._meet(f"{name}_copies", copies), SAME)
        elif told["type"] == "add":
            kind = _kind_of(told["n"])
            self.project(name, given, {**SAME, "id": f"CAST(CAST(id AS {kind}) + {told['n']} AS STRING)"})
        elif told["type"] == "less_than":
            where = f"CAST(id AS {_kind_of(told['limit'])}) < {told['limit']}"
            self.lines.append(f"{name}: {{filter: {given}, where: {json.dumps(where)}}}")
        elif told["type"] in PASSING:
            self.project(name, given, SAME)
        else:
            raise NotBuilt(f"a node {told['type']}")

    def _go_round(self, node: str, given: str) -> None:
        """Write down a loop: all that lies behind a node to which rows come back."""
        name, number = f"n{self.graph.number(node)}", self.graph.number(node)
        inner = _Written(graph=self.graph, modules=self.modules, cut=self.cut | {node})
        inner.walk({node: "came"})
        inner.project("all", inner.trace(), SAME)
        inner.lines += [
            f"out: {{filter: all, where: \"port <> 'back {number}'\"}}",
            f"back: {{filter: all, where: \"port = 'back {number}'\"}}",
        ]
        module = f"m{len(self.modules)}"
        streams = "".join(f"      {line}\n" for line in inner.lines)
        self.modules.append(
            f"  {module}:\n    inputs: [came]\n    streams:\n{streams}    outputs: {{out: out, back: back}}\n"
        )
        self.lines.append(f"{name}: {{loop: {given}, module: {module}, most_rounds: {MOST_ROUNDS}}}")
        self.traces.append(name)

    def trace(self) -> str:
        """Name the stream with all that is to be seen, in order."""
        return self._meet("traces", self.traces)

    def project(self, name: str, given: str, columns: Mapping[str, str]) -> None:
        """Write down a stream with other columns."""
        self.lines.append(f"{name}: {{project: {given}, columns: {json.dumps(dict(columns))}}}")

    def _meet(self, name: str, given: Iterable[str]) -> str:
        """Name the stream in which streams meet."""
        streams = list(given)
        if len(streams) > 1:
            self.lines.append(f"{name}: {{interleave: [{', '.join(streams)}]}}")
        return name if len(streams) > 1 else streams[0]


def quoted(text: str) -> str:
    """Write a text as an expression has it."""
    return "'" + str(text).replace("\\", "\\\\").replace("'", "\\'") + "'"


def _kind_of(number: object) -> str:
    return "BIGINT" if isinstance(number, int) else "DOUBLE"


def _graph_of(settings: Mapping[str, Any]) -> _Graph:
    """Read the graph of a case: `nodes` by name, `edges` from `<node>:<port>` to nodes.

    Raises:
        NotBuilt: it has other settings, or no edges.
    """
    unknown = sorted(settings.keys() - {"nodes", "edges", "parallel"})
    if unknown or "edges" not in settings:
        raise NotBuilt(f"the setting {', '.join(unknown) or 'nodes without edges'}")
    nodes = {name: told if isinstance(told, dict) else {"type": told} for name, told in settings["nodes"].items()}
    edges: dict[str, list[str]] = {name: [] for name in nodes}
    for place, targets in sorted(settings["edges"].items(), key=lambda edge: _port(edge[0])):
        edges[place.rpartition(":")[0]] += [targets] if isinstance(targets, str) else targets
    return _Graph(nodes=nodes, edges={name: tuple(targets) for name, targets in edges.items()})


def _port(edge: str) -> tuple[str, int]:
    node, _, port = edge.rpartition(":")
    return node, int(port)


def flow_of(settings: Mapping[str, Any]) -> str:
    """Write the flow of a case's graph."""
    graph = _graph_of(settings)
    part = _Written(graph=graph, modules=[])
    inputs = {name: graph.number(name) for name, told in graph.nodes.items() if told["type"] == "input"}
    for number in inputs.values():
        part.lines.append(f"n{number}_from: {{filter: cases, where: \"port = 'to {number}'\"}}")
    part.walk({name: f"n{number}_from" for name, number in inputs.items()})
    part.project(TRACE, part.trace(), SAME)
    modules = f"modules:\n{''.join(part.modules)}" if part.modules else ""
    return f"{HEAD}{modules}streams:\n{''.join(f'  {line}{chr(10)}' for line in part.lines)}"


def _read(text: str) -> Flow:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "cases.yaml").write_text(text, encoding="utf-8")
        return read_flow(Path(folder) / "cases.yaml")


def execution_order(case: Case) -> PreparedCase:
    """Prepare a case of a graph of nodes."""
    numbers = {name: number for number, name in enumerate(case["config"]["nodes"])}
    rows = [
        {"at": place, "time": place, "port": f"to {numbers[node]}", "item": {"text": isinstance(value, str)},
         "id": value if isinstance(value, str) else json.dumps(value)}
        for place, (node, value) in enumerate(case["input"])
    ]  # fmt: skip
    flow = _read(flow_of(case["config"]))
    return PreparedCase(case=case, flow=flow, rows=rows, close=len(rows) + 1, ends=False, read=_read_trace)


def _read_trace(prepared: PreparedCase, streams: Mapping[str, list[Row]]) -> dict[str, Any]:
    if any(line["reason"] == "loop_limit" for line in streams["ledger"]):
        return {"unsupported": f"a row goes round more than {MOST_ROUNDS} times"}
    nodes = list(prepared.case["config"]["nodes"])
    return {
        "output": [
            [nodes[int(row["port"].removeprefix("at "))], row["id"] if row["item"]["text"] else json.loads(row["id"])]
            for row in streams[TRACE]
        ]
    }
