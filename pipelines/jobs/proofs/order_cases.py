"""Cases of execution order: their graph becomes a flow, and the trace is read out of one of its tables.

Each node has a stream, and a second one, `<node>_at`, with the rows that come to it; an interleave of all of these is
the trace. So what is asked is what interleaves, modules and loops do, and nothing walks but the flow.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pipelines.flows.feeds.parquet import ParquetSpec
from pipelines.flows.model import Flow, Ports, Source, Stream
from pipelines.flows.reading import read_flow
from pipelines.jobs.proofs.cases import KEY, NotBuilt, PreparedCase
from pipelines.operators.dispatch import DispatchPolicy, DispatchStyle
from pipelines.operators.filter import FilterPolicy
from pipelines.operators.interleave import InterleavePolicy
from pipelines.operators.project import ProjectPolicy
from pipelines.operators.rows import PolicyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pipelines.operators.rows import Policy

Case = dict[str, Any]
Row = dict[str, Any]
SOURCE = Source(name="cases", feed=ParquetSpec(), key=(KEY,), time="time", arrival="at")
TRACE = "trace"
SAME = {"id": "id", "port": "port"}
ROUNDS, MOST_ROUNDS = 8, 40
"""How often a row may go round where the graph does not say it, and at most; of more there is no answer."""
NUMBER = "CAST(id AS BIGINT)"
PASSING = frozenset({"input", "map", "output", "split", "union", "aggregate"})
"""Nodes whose rows leave as they came."""


class _Graph:
    """The graph of a case as it becomes a flow.

    Args:
        nodes: by name, each with its `type`.
        edges: from each node to others, in the order of its ports.
        around: the graph of which this is one round; its streams stand in the same flow.
    """

    def __init__(self, nodes: Mapping[str, Row], edges: Mapping[str, list[str]], around: _Graph | None = None) -> None:
        self.rounds = ROUNDS
        self.nodes, self.edges, self.is_round = nodes, edges, around is not None
        self.streams: dict[str, Stream] = {} if around is None else around.streams
        self.order: list[str] = [] if around is None else around.order
        self.into = {name: [one for one in nodes for to in edges[one] if to == name] for name in nodes}

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> _Graph:
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
            edges[place.rpartition(":")[0]] += targets
        return cls(nodes, edges)

    def flow(self) -> Flow:
        """Give the flow."""
        for name, told in self.nodes.items():
            if told["type"] == "input":
                where = "port = '" + name.replace("'", "''") + "'"
                self._add(f"{name}_from", "filter", ("cases",), FilterPolicy(where=where))
                self._arrive(name, f"{name}_from")
        waiting = {name: len(into) for name, into in self.into.items()}
        ready = [name for name, left in waiting.items() if not left]
        done: list[str] = []
        while ready:
            done.append(node := ready.pop(0))
            self._branches(node)
            for target in self.edges[node]:
                waiting[target] -= 1
                if not waiting[target]:
                    ready.append(target)
        traces = [f"{name}_at" for name in done]
        if len(done) < len(self.nodes):
            traces.append(self._go_round(done))
        self._meet(TRACE, tuple(traces))
        return Flow(name="cases", sources={"cases": SOURCE}, streams=self.streams, buckets=3)

    def _go_round(self, done: list[str]) -> str:
        """Declare what lies in a loop and behind it, a copy a round; give the stream that has the trace of all rounds.

        A row that comes back waits where the loop is entered, so a round begins when all that lies behind that node is
        done: the rounds of a row stand one behind the other.
        """
        left = {name: node for name, node in self.nodes.items() if name not in done}
        entries = [(one, name) for one in done for name in self.edges[one] if name in left]
        if len(entries) != 1 or any(name in left and name != entries[0][1] for one in done for name in self.edges[one]):
            raise NotBuilt(f"a loop that is entered at several places ({', '.join(sorted(left))})")
        (above, entry), given = entries[0], f"{entries[0][0]}_in_{entries[0][1]}"
        self._project(given, above, SAME)
        fork, rounds = given, []
        edges = {name: [to for to in self.edges[name] if to != entry] for name in left}
        back = [name for name in left for to in self.edges[name] if to == entry]
        for number in range(1, self.rounds + 1):
            nodes = {f"{name}.{number}": told for name, told in left.items()}
            inner = _Graph(nodes, {f"{name}.{number}": [f"{to}.{number}" for to in edges[name]] for name in left}, self)
            inner.walk(f"{entry}.{number}", given)
            self._meet(f"round_{number}", tuple(f"{name}.{number}_at" for name in left))
            rounds.append(f"round_{number}")
            returning = []
            for place, name in enumerate(back):
                returning.append(f"back_{number}_{place}")
                self._project(returning[-1], f"{name}.{number}", SAME)
            given = f"round_{number}_back"
            self._meet(given, tuple(returning))
        policy = InterleavePolicy(ports=len(rounds), rounds=fork)
        self.order.append("rounds")
        self.streams["rounds"] = Stream(
            name="rounds", operator="interleave", inputs=tuple(rounds), by=(KEY,), policy=policy,
            ports=Ports(streams=tuple(rounds)),
        )  # fmt: skip
        return "rounds"

    def walk(self, entry: str, given: str) -> None:
        """Declare all nodes, entered by one that reads a stream.

        Raises:
            NotBuilt: there is a loop in them.
        """
        self._arrive(entry, given)
        waiting = {name: len(into) for name, into in self.into.items()}
        ready, done = [entry], 0
        while ready:
            node, done = ready.pop(0), done + 1
            self._branches(node)
            for target in self.edges[node]:
                waiting[target] -= 1
                if not waiting[target]:
                    ready.append(target)
        if done < len(self.nodes):
            raise NotBuilt("a loop in a loop")

    def _branches(self, node: str) -> None:
        """Declare what a node's rows come to, in the order of its ports."""
        for number, target in enumerate(self.edges[node]):
            if len(self.into[target]) == 1:
                self._arrive(target, node)
            else:
                self._project(f"{node}_{number}_{target}", node, SAME)
                done = [f"{one}_{place}_{target}" for one in self.nodes for place, to in enumerate(self.edges[one])
                        if to == target]  # fmt: skip
                if all(each in self.streams for each in done):
                    self._meet(f"{target}_in", tuple(done))
                    self._arrive(target, f"{target}_in")

    def _arrive(self, node: str, given: str) -> None:
        """Declare the trace of a node and then the node, over the stream that comes to it."""
        told = self.nodes[node]
        name = node.rpartition(".")[0] if self.is_round else node
        self._project(f"{node}_at", given, {"id": "id", "port": "'" + name.replace("'", "''") + "'"})
        if told["type"] == "dup":
            copies = [f"{node}_copy_{number}" for number in range(len(told["suffixes"]))]
            for copy, suffix in zip(copies, told["suffixes"], strict=True):
                self._project(copy, given, SAME | {"id": f"CONCAT(id, '{suffix}')"})
            self._meet(node, tuple(copies))
        elif told["type"] == "add":
            self._project(node, given, SAME | {"id": f"CAST({NUMBER} + {int(told['n'])} AS STRING)"})
        elif told["type"] == "less_than":
            self._add(node, "filter", (given,), FilterPolicy(where=f"{NUMBER} < {int(told['limit'])}"))
        elif told["type"] in PASSING:
            self._project(node, given, SAME)
        else:
            raise NotBuilt(f"a node {told['type']}")

    def _project(self, name: str, given: str, columns: Mapping[str, str]) -> None:
        told = tuple(f"{column}={expression}" for column, expression in columns.items())
        self._add(name, "project", (given,), ProjectPolicy(columns=told))

    def _meet(self, name: str, given: tuple[str, ...]) -> None:
        if len(given) == 1:
            self._project(name, given[0], SAME)
            return
        self.order.append(name)
        policy = InterleavePolicy(ports=len(given), declared=tuple(self.order))
        made = Stream(
            name=name, operator="interleave", inputs=given, by=(KEY,), policy=policy, ports=Ports(streams=given)
        )
        self.streams[name] = made

    def _add(self, name: str, operator: str, given: tuple[str, ...], policy: Policy) -> None:
        self.order.append(name)
        self.streams[name] = Stream(name=name, operator=operator, inputs=given, by=(KEY,), policy=policy)


def _port(edge: str) -> tuple[str, int]:
    node, _, port = edge.rpartition(":")
    return node, int(port)


def execution_order(case: Case) -> PreparedCase:
    """Prepare a case of a graph of nodes."""
    graph = _Graph.of(case["config"])
    graph.rounds = _rounds(graph.nodes, [value for _, value in case["input"]])
    flow = graph.flow()
    rows = [
        {"at": place, "time": place, "port": node, "id": str(value), "item": {"number": isinstance(value, int)}}
        for place, (node, value) in enumerate(case["input"])
    ]
    return PreparedCase(case=case, flow=flow, rows=rows, close=len(rows) + 1, ends=False, read=_read_trace)


def _rounds(nodes: Mapping[str, Row], came: list[Any]) -> int:
    """Say how many rounds to lay out: those in which the smallest number passes the last bound, and one more."""
    limits = [int(told["limit"]) for told in nodes.values() if told["type"] == "less_than"]
    steps = [int(told["n"]) for told in nodes.values() if told["type"] == "add"]
    if not limits or min(steps, default=0) < 1 or not all(isinstance(value, int) for value in came):
        return ROUNDS
    return min(MOST_ROUNDS, max(1, (max(limits) - min(came, default=0)) // min(steps) + 2))


def _read_trace(prepared: PreparedCase, streams: Mapping[str, list[Row]]) -> dict[str, Any]:
    last = sum(name.startswith("round_") and name.endswith("_back") for name in streams)
    if streams.get(f"round_{last}_back"):
        return {"unsupported": f"a row goes round more than {last} times"}
    number = all(row["item"]["number"] for row in prepared.rows)
    return {"output": [[row["port"], int(row["id"]) if number else row["id"]] for row in streams[TRACE]]}


STYLES: Mapping[str, Mapping[str, Any]] = {
    "round_robin": {"style": DispatchStyle.IN_TURN},
    "numeric": {"style": DispatchStyle.NUMERIC, "numeric": NUMBER},
    "broadcast": {"style": DispatchStyle.BROADCAST},
}


def dispatch(case: Case) -> PreparedCase:
    """Prepare a case of rows that go to instances; each has a flow of its own, for who deals in turn counts all."""
    settings = case["config"]
    unknown = sorted(settings.keys() - {"instances", "style", "ports", "exports_query_table"})
    if unknown:
        raise NotBuilt(f"the setting {', '.join(unknown)}")
    if settings.get("exports_query_table"):
        required = "read by its name: a carry table is each instance's own, so several can export none together"
        raise PolicyError("exports_query_table", required, f"{settings['instances']} instances")
    streams = [stream for port in _styles(settings) for stream in _dealt(settings, port)]
    flow = Flow(
        name=f"cases_{case['id']}", sources={"cases": SOURCE}, streams={each.name: each for each in streams}, buckets=3
    )
    rows = [
        {"at": place, "time": place, "port": item.get("port", ""), "item": item,
         "id": None if item.get("key") is None else str(item["key"])}
        for place, item in enumerate(case["input"])
    ]  # fmt: skip
    read = _read_totals if case["operator"] == "dispatch_sum" else _read_dispatch
    return PreparedCase(case=case, flow=flow, rows=rows, close=len(rows) + 1, ends=False, read=read)


def _styles(settings: Mapping[str, Any]) -> Mapping[str, str]:
    """Give the style of each port; one without a name where the case has no ports. Without a style it is broadcast."""
    return settings.get("ports") or {"": settings.get("style", "broadcast")}


def _dealt(settings: Mapping[str, Any], port: str) -> Iterator[Stream]:
    style = _styles(settings)[port]
    if style not in STYLES:
        raise NotBuilt(f"the style {style}")
    given, instances = "cases", int(settings["instances"])
    if port:
        where = "port = '" + port.replace("'", "''") + "'"
        yield Stream(name=port, operator="filter", inputs=(given,), by=(KEY,), policy=FilterPolicy(where=where))
        given = port
    for number in range(max(1, instances)):
        told: dict[str, Any] = {**STYLES[style], "instances": instances, "instance": number}
        policy = DispatchPolicy(**told)
        by = () if policy.style is DispatchStyle.IN_TURN else (KEY,)
        yield Stream(name=f"{port}_{number}", operator="dispatch", inputs=(given,), by=by, policy=policy)


def _got(prepared: PreparedCase, streams: Mapping[str, list[Row]]) -> list[list[Row]]:
    """Give the items that each instance got."""
    settings = prepared.case["config"]
    return [
        [row["item"] for port in _styles(settings) for row in streams[f"{port}_{number}"]]
        for number in range(settings["instances"])
    ]


def _read_dispatch(prepared: PreparedCase, streams: Mapping[str, list[Row]]) -> dict[str, Any]:
    got = [{item["id"] for item in items} for items in _got(prepared, streams)]
    shown = [
        {"id": item["id"], "instances": [number for number, ids in enumerate(got) if item["id"] in ids]}
        for item in prepared.case["input"]
    ]
    return {"output": shown}


def _read_totals(prepared: PreparedCase, streams: Mapping[str, list[Row]]) -> dict[str, Any]:
    shown = []
    for number, items in enumerate(_got(prepared, streams)):
        totals: dict[str, int] = {}
        for item in items:
            totals[item["symbol"]] = totals.get(item["symbol"], 0) + item["shares"]
        shown.append({"instance": number, "totals": totals})
    return {"output": shown}


SHARED = frozenset({"lock", "unlock", "sequence", "query on query table", "query on materialized window"})
"""Components of StreamBase that share what they know with others, so they may not have a region of their own."""


def parallel_regions(case: Case) -> Row:
    """Answer a case of regions: how many a flow of such modules has, or which components may have one.

    The count is read of a flow that has the modules. Components are StreamBase's; of ours all may, for none shares
    anything, so the answer is that of its page.
    """
    settings = case["config"]
    if "components" in settings:
        return {"output": [{name: name.lower() not in SHARED} for name in settings["components"]]}
    if set(settings) != {"module"}:
        return {"unsupported": str(NotBuilt(f"the setting {', '.join(sorted(settings.keys() - {'module'}))}"))}
    modules: list[str] = []
    streams = _referring(settings["module"], modules, "cases")
    text = (
        "flow: cases\nsources:\n  cases: {feed: nycflights13.departures, key: origin, time: scheduled, "
        f"arrival: departed}}\nmodules:\n{''.join(modules)}streams:\n{streams}"
    )
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "cases.yaml").write_text(text if modules else text.replace("modules:\n", ""), encoding="utf-8")
        return {"output": [{"regions": read_flow(Path(folder) / "cases.yaml").regions}]}


def _referring(module: Mapping[str, Any], modules: list[str], given: str) -> str:
    """Write the streams of a module, or of the flow, and before them the modules that they refer to."""
    lines = [f"      s: {{filter: {given}, where: 'true'}}\n"]
    for number, each in enumerate(module.get("refs", ())):
        inner = _referring(each["module"], modules, "x")
        name = f"m{len(modules)}"
        modules.append(f"  {name}:\n    inputs: [x]\n    streams:\n{inner}    outputs: {{out: s}}\n")
        asked = f"parallel: {str(bool(each.get('parallel'))).lower()}, instances: {each.get('instances', 1)}"
        lines.append(f"      r{number}: {{module: {name}, inputs: {{x: {given}}}, {asked}}}\n")
    return "".join(lines)


ORDER_CASES: Mapping[str, Callable[[Case], PreparedCase]] = MappingProxyType(
    {"execution_order": execution_order, "dispatch": dispatch, "dispatch_sum": dispatch}
)
ANSWERED: Mapping[str, Callable[[Case], Row]] = MappingProxyType({"parallel_regions": parallel_regions})
"""What is answered of a flow without a run of it."""
