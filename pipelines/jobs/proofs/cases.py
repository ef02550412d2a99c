"""From a conformance case to a flow and its rows, and from the rows of its streams back to the case's own terms."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pipelines.engine.columnar.columns import TABLE_INFINITY, canonical_json
from pipelines.flows.durations import parse
from pipelines.flows.feeds.parquet import ParquetSpec
from pipelines.flows.model import Flow, Ports, Source, Stream
from pipelines.operators.advance_time import AdvanceTimePolicy, Late, LateEnd, PromiseAtEnd
from pipelines.operators.alter_duration import AlterDurationPolicy
from pipelines.operators.deduplicate import DeduplicatePolicy
from pipelines.operators.filter import FilterPolicy
from pipelines.operators.heartbeat import HeartbeatPolicy
from pipelines.operators.join import JoinPolicy
from pipelines.operators.merge import MergeAtEnd, MergePolicy
from pipelines.operators.rows import INFINITY, PolicyError, Shape
from pipelines.operators.shift_time import ShiftTimePolicy
from pipelines.operators.union import UnionPolicy
from pipelines.operators.window import WindowPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Case = dict[str, Any]
Row = dict[str, Any]
MS = 1000
KEY, GROUP = "case", "group"


class NotBuilt(Exception):  # noqa: N818 - an answer, not a mistake
    """An operator, or a setting of one, that is not built yet."""

    def __str__(self) -> str:
        """Name what is not built, as `conform` answers for its case."""
        return f"not built yet: {self.args[0]}"


@dataclass(frozen=True, kw_only=True)
class PreparedCase:
    """One case, ready to run."""

    case: Case
    flow: Flow
    """Without a feed; cases with the same flow share a run."""
    rows: list[Row]
    """Landed rows: at, time, end, edge, and payload."""
    close: int
    """The closing reading, in ticks."""
    ends: bool
    """Whether the stream ends."""
    read: Callable[[PreparedCase, Mapping[str, list[Row]]], dict[str, Any]]
    """From the rows of each stream, and of `ledger`, to the answer."""
    warnings: tuple[str, ...] = field(default=())


def _known(settings: Mapping[str, Any], *names: str) -> None:
    unknown = sorted(settings.keys() - set(names))
    if unknown:
        raise NotBuilt(f"the setting {', '.join(unknown)}")


def _ratio(value: Any) -> tuple[int, int]:  # noqa: ANN401 - JSON
    from fractions import Fraction

    ratio = Fraction(str(value))
    return ratio.numerator, ratio.denominator


def _time(settings: Mapping[str, Any], name: str, otherwise: int | None) -> int | None:
    """Read `<name>_ms`, or `<name>` in any form a flow takes, as ticks."""
    if f"{name}_ms" in settings and settings[f"{name}_ms"] is not None:
        from decimal import Decimal

        return int(Decimal(str(settings[f"{name}_ms"])) * MS)
    return otherwise if settings.get(name) is None else parse(settings[name])


def _heartbeat_policy(settings: Mapping[str, Any]) -> HeartbeatPolicy:
    catch_up = settings.get("max_catch_up")
    return HeartbeatPolicy(
        interval=_time(settings, "interval", 0) or 0,
        slack=_time(settings, "slack", 0) or 0,
        acceleration=_ratio(settings.get("acceleration") or 1),
        max_ahead=_time(settings, "max_ahead", None),
        expire=_time(settings, "expire", None),
        **({} if catch_up is None else {"max_catch_up": catch_up}),
    )


HEARTBEAT_SETTINGS = (
    "interval_ms", "interval", "slack_ms", "slack", "acceleration", "until_ms", "schema", "timestamp_field",
    "max_ahead_ms", "max_ahead", "max_catch_up", "expire_ms", "expire", "drop_timers",
)  # fmt: skip
SOURCE = Source(name="cases", feed=ParquetSpec(), key=(KEY,), time="time", arrival="at")


def _flow(source: Source, *streams: Stream) -> Flow:
    return Flow(
        name="cases", sources={source.name: source}, streams={stream.name: stream for stream in streams}, buckets=3
    )


def _arrivals(items: list[Row], unit: int) -> list[int]:
    """Give arrivals: `at` where it stands, else one tick after the row before."""
    arrivals: list[int] = []
    for item in items:
        following = arrivals[-1] + 1 if arrivals else 0
        arrivals.append(int(item["at"]) * unit if item.get("at") is not None else following)
    return arrivals


def _close(settings: Mapping[str, Any], arrivals: list[int]) -> int:
    until = settings.get("until_ms")
    return int(until) * MS + 1 if until is not None else max(arrivals, default=0) + 1


def _ms(tick: int) -> int:
    return -(-tick // MS)


def heartbeat(case: Case) -> PreparedCase:
    """Prepare a case of one heartbeat."""
    settings = case["config"]
    _known(settings, *HEARTBEAT_SETTINGS)
    policy = _heartbeat_policy(settings)
    arrivals = _arrivals(case["input"], MS)
    rows = [
        {"at": at, "time": None if item.get("ts") is None else item["ts"] * MS, "item": item}
        for at, item in zip(arrivals, case["input"], strict=True)
    ]
    stream = Stream(name="beating", operator="heartbeat", inputs=("cases",), by=(KEY,), policy=policy)
    return PreparedCase(
        case=case,
        flow=_flow(SOURCE, stream),
        rows=rows,
        close=_close(settings, arrivals),
        ends=False,
        read=_read_heartbeat,
        warnings=policy.warnings(),
    )


def _read_heartbeat(prepared: PreparedCase, streams: Mapping[str, list[Row]]) -> dict[str, Any]:
    settings = prepared.case["config"]
    blank = [name for name in settings.get("schema", ()) if name != settings.get("timestamp_field")]
    output: list[Row] = [{"warning": text} for text in prepared.warnings]
    for row in streams["beating"]:
        at = _ms(row["arrival"])
        if row["kind"] == "timer" and settings.get("drop_timers"):
            continue
        if row["kind"] == "timer":
            timer = {"kind": "timer", "ts": row["event_time"] // MS, "at": at}
            output.append(timer | ({"fields": dict.fromkeys(blank)} if blank else {}))
        else:
            item = row["item"]
            shown = {"kind": "data", "id": item.get("id"), "ts": item.get("ts"), "at": at}
            output.append(shown | ({"fields": item["fields"]} if "fields" in item else {}))
    return {"output": output}


def _ports(settings: Mapping[str, Any]) -> Ports:
    ports = settings.get("ports")
    if not isinstance(ports, list) or not ports:
        raise PolicyError("ports", "a list of at least one port", ports)
    return Ports(column="port", values=tuple(str(port) for port in ports))


def _merge_stream(settings: Mapping[str, Any], given: str) -> Stream:
    """Give the merge of a case; what it groups by is a part of its key, so groups are merged apart."""
    ports = _ports(settings)
    at_end = MergeAtEnd.FLUSH if settings.get("flush_at_end") else MergeAtEnd.HOLD
    policy = MergePolicy(ports=len(ports), at_end=at_end, max_held=settings.get("max_held"))
    return Stream(name="merged", operator="merge", inputs=(given,), by=(KEY, GROUP), policy=policy, ports=ports)


def _group(item: Row, settings: Mapping[str, Any]) -> str:
    """Give the values of an item that a merge groups by, as one text."""
    said = settings.get("group_by") or []
    names = [said] if isinstance(said, str) else said
    known = item.get("fields", {}) | item
    unknown = sorted({*names} - known.keys())
    if unknown:
        raise PolicyError("group_by", "columns of every input", ", ".join(unknown))
    return canonical_json([known[name] for name in names])


def _ends(case: Case) -> tuple[list[Row], bool]:
    items = [item for item in case["input"] if "shutdown" not in item]
    return items, len(items) < len(case["input"])


def _promised_ends(case: Case, advancing: Mapping[str, Mapping[str, Any]]) -> tuple[list[Row], bool]:
    """Give the items of a case, where an end that others come behind is a promise of its streams.

    Args:
        case: whose input may have a `shutdown`.
        advancing: settings by stream; those that advance to infinity promise at the end that nothing more comes.

    Returns:
        The items, and whether the case ends with its last one.
    """
    ended = [place for place, item in enumerate(case["input"]) if "shutdown" in item]
    if not ended or ended[0] == len(case["input"]) - 1:
        return _ends(case)
    promising = [name for name, told in advancing.items() if told.get("advance_to_infinity")]
    items: list[Row] = []
    for item in case["input"]:
        items += [{"cti": "inf", "stream": name, **item} for name in promising] if "shutdown" in item else [item]
    return items, False


def merge(case: Case) -> PreparedCase:
    """Prepare a case of one ordered merge; its values have no unit and are ticks."""
    settings = case["config"]
    _known(settings, "ports", "flush_at_end", "max_held", "until_ms", "group_by")
    items, ends = _ends(case)
    arrivals = _arrivals(items, MS)
    rows = [
        {"at": at, "time": item.get("value"), "port": str(item["port"]), "group": _group(item, settings), "item": item}
        for at, item in zip(arrivals, items, strict=True)
    ]
    return PreparedCase(
        case=case,
        flow=_flow(replace(SOURCE, key=(KEY, GROUP)), _merge_stream(settings, "cases")),
        rows=rows,
        close=_close(settings, arrivals),
        ends=ends,
        read=_read_merge,
    )


def _read_merge(prepared: PreparedCase, streams: Mapping[str, list[Row]]) -> dict[str, Any]:  # noqa: ARG001
    shown = [{"id": row["item"]["id"], "value": row["item"]["value"]} for row in _as_left(streams["merged"])]
    return {"output": shown}


def _as_left(rows: list[Row]) -> list[Row]:
    """Give rows of several groups as they left; those of one instant group by group."""
    return sorted(rows, key=lambda row: int(row["arrival"]))


def heartbeat_merge(case: Case) -> PreparedCase:
    """Prepare a case of a merge with a heartbeat on each port."""
    settings = case["config"]
    _known(settings, "ports", "flush_at_end", "max_held", "heartbeat", "data_only", "drop_timers", "group_by")
    _known(settings["heartbeat"], *HEARTBEAT_SETTINGS)
    items, ends = _ends(case)
    arrivals = _arrivals(items, MS)
    rows = [
        {"at": at, "time": None if item.get("ts") is None else item["ts"] * MS, "port": str(item["port"]),
         "group": _group(item, settings), "item": item}
        for at, item in zip(arrivals, items, strict=True)
    ]  # fmt: skip
    beating = Stream(
        name="beating",
        operator="heartbeat",
        inputs=("cases",),
        by=(KEY, GROUP, "port"),
        policy=_heartbeat_policy(settings["heartbeat"]),
    )
    source = Source(name="cases", feed=ParquetSpec(), key=(KEY, GROUP, "port"), time="time", arrival="at")
    return PreparedCase(
        case=case,
        flow=_flow(source, beating, _merge_stream(settings, "beating")),
        rows=rows,
        close=_close(settings["heartbeat"], arrivals),
        ends=ends,
        read=_read_heartbeat_merge,
    )


def _read_heartbeat_merge(prepared: PreparedCase, streams: Mapping[str, list[Row]]) -> dict[str, Any]:
    settings = prepared.case["config"]
    data_only = any(
        each.get(word) for each in (settings, settings["heartbeat"]) for word in ("data_only", "drop_timers")
    )
    shown = []
    for row in _as_left(streams["merged"]):
        timer = row["kind"] == "timer"
        if timer and data_only:
            continue
        value = row["event_time"] // MS if timer else row["item"]["ts"]
        shown.append({"id": "timer" if timer else row["item"]["id"], "value": value, "at": _ms(row["arrival"])})
    return {"output": shown}


SHAPES = {"point": Shape.POINT, "interval": Shape.INTERVAL, "edge": Shape.EDGE}


def _advance_policy(settings: Mapping[str, Any]) -> AdvanceTimePolicy:
    generation = settings.get("generation") or {}
    _known(generation, "event_count", "duration")
    if "policy" not in settings:
        raise PolicyError("policy", "drop, adjust or divert", None)
    return AdvanceTimePolicy(
        shape=SHAPES[settings["shape"]],
        late=Late[settings["policy"].upper()],
        events=generation.get("event_count"),
        duration=generation.get("duration"),
        delay=settings.get("delay") or 0,
        late_end=LateEnd[(settings.get("late_end") or "stay_open").upper()],
        at_end=PromiseAtEnd.INFINITY if settings.get("advance_to_infinity") else PromiseAtEnd.SILENT,
        max_ahead=settings.get("max_ahead"),
    )


def cti_input(case: Case) -> PreparedCase:
    """Prepare a case of CTIs generated with, or enqueued into, one stream; times are ticks."""
    settings = case["config"]
    names = ("shape", "generation", "delay", "advance_to_infinity", "policy", "late_end", "max_ahead")
    _known(settings, *names)
    items, ends = _promised_ends(case, {"cases": settings})
    arrivals = _arrivals(items, 1)
    edge = settings["shape"] == "edge"
    source = Source(
        name="cases",
        feed=ParquetSpec(),
        key=(KEY,),
        time="time",
        end=None if settings["shape"] == "point" else "end",
        arrival="at",
        shape=SHAPES[settings["shape"]],
        edge="edge",
        event_id="id" if edge else None,
    )
    stream = Stream(
        name="punctual",
        operator="advance_time",
        inputs=("cases",),
        by=(KEY,),
        policy=_advance_policy(settings),
        shape=SHAPES[settings["shape"]],
        event_id="id" if edge else None,
    )
    return PreparedCase(
        case=case,
        flow=_flow(source, stream),
        rows=[_event(at, item, settings["shape"]) for at, item in zip(arrivals, items, strict=True)],
        close=_close(settings, arrivals) + 1,
        ends=ends,
        read=_read_cti_input,
    )


def _event(at: int, item: Row, shape: str) -> Row:
    if "cti" in item:
        time = TABLE_INFINITY if item["cti"] == "inf" else item["cti"]
        return {"at": at, "time": time, "edge": "cti", "id": "", "item": item}
    kind = item.get("edge", "data") if shape == "edge" else "data"
    return {"at": at, "time": item["start"], "end": item.get("end"), "edge": kind, "id": item["id"], "item": item}


def _instant(tick: int) -> int | str:
    return "inf" if tick == INFINITY else tick


def _shown_event(row: Row) -> Row:
    if row["kind"] == "cti":
        return {"cti": _instant(row["event_time"])}
    shown = {"event": row["item"]["id"]}
    shown |= {"edge": row["kind"]} if row["kind"] in {"start", "end"} else {}
    shown["start"] = row["event_time"]
    return shown | ({} if row["event_end"] is None else {"end": row["event_end"]})


def _read_cti_input(prepared: PreparedCase, streams: Mapping[str, list[Row]]) -> dict[str, Any]:  # noqa: ARG001
    return {"output": [_shown_event(row) for row in streams["punctual"]], "dropped": _gone(streams["ledger"])}


def _gone(ledger: list[Row]) -> list[str]:
    gone = [row for row in ledger if row["action"] in {"dropped", "diverted"}]
    return [row["item"]["id"] + ("/end" if row["kind"] == "end" else "") for row in gone if "id" in row["item"]]


def cti_liveliness(case: Case) -> PreparedCase:
    """Prepare a case that asks what is committed after each input."""
    return replace(cti_input(case), read=_read_liveliness)


def _read_liveliness(prepared: PreparedCase, streams: Mapping[str, list[Row]]) -> dict[str, Any]:
    events = [row for row in streams["punctual"] if row["kind"] != "cti"]
    promises = [row for row in streams["punctual"] if row["kind"] == "cti"]
    output = []
    steps = [
        ("shutdown" if "shutdown" in row["item"] else row["item"].get("id"), row["at"])
        for row in prepared.rows
        if "cti" not in row["item"] or "shutdown" in row["item"]
    ]
    for name, at in [*steps, *([("shutdown", INFINITY)] if prepared.ends else [])]:
        cti = max((row["event_time"] for row in promises if row["arrival"] <= at), default=None)
        sure = [row["item"]["id"] for row in events if cti is not None and row["event_time"] < cti]
        output.append({"after": name, "committed": sure})
    return {"output": output}


def cti_import(case: Case) -> PreparedCase:
    """Prepare a case of several streams, some of which import the CTIs of another; times are ticks."""
    settings = case["config"]
    _known(settings, "streams")
    wanted: dict[str, Row] = settings["streams"]
    items, ends = _promised_ends(case, wanted)
    arrivals = _arrivals(items, 1)
    sources = {name: _cti_source(name, told["shape"]) for name, told in wanted.items()}
    streams = {f"{name}_advanced": _importer(name, told, wanted) for name, told in wanted.items()}
    return PreparedCase(
        case=case,
        flow=Flow(name="cases", sources=sources, streams=_behind(streams), buckets=3),
        rows=[
            {**_event(at, item, wanted[item["stream"]]["shape"]), "source": item["stream"]}
            for at, item in zip(arrivals, items, strict=True)
        ],
        close=_close(settings, arrivals) + 1,
        ends=ends,
        read=_read_cti_import,
    )


def _importer(name: str, told: Row, streams: Mapping[str, Row]) -> Stream:
    names = ("shape", "generation", "delay", "advance_to_infinity", "policy", "late_end", "max_ahead", "import")
    if told.get("advance_time") == "both_null" or not (told.get("generation") or told.get("import")):
        raise PolicyError("generation and import", "not both absent: one of them gives the CTIs", None)
    _known(told, *names, "advance_time")
    read = told.get("import")
    if read and read not in streams:
        raise PolicyError("import", f"one of the streams {', '.join(streams)}", read)
    inputs = (name, f"{read}_advanced") if read else (name,)
    return Stream(
        name=f"{name}_advanced",
        operator="advance_time",
        inputs=inputs,
        by=(KEY,),
        policy=_advance_policy(told),
        ports=Ports(streams=inputs) if read else None,
        shape=SHAPES[told["shape"]],
        event_id="id" if told["shape"] == "edge" else None,
    )


def _behind(streams: dict[str, Stream]) -> dict[str, Stream]:
    """Put streams behind those that they import from."""
    done: dict[str, Stream] = {}
    while len(done) < len(streams):
        ready = [s for s in streams.values() if s.name not in done and {*s.inputs[1:]} <= done.keys()]
        if not ready:
            raise PolicyError("import", "from a stream that does not import from this one", ", ".join(streams))
        done |= {stream.name: stream for stream in ready}
    return done


def _read_cti_import(prepared: PreparedCase, streams: Mapping[str, list[Row]]) -> dict[str, Any]:
    order = {f"{name}_advanced": (place, name) for place, name in enumerate(prepared.case["config"]["streams"])}
    rows = [
        (row["arrival"], place, row["place"], {**_shown_event(row), "stream": name})
        for stream, (place, name) in order.items()
        for row in streams[stream]
    ]
    shown = [row for *_, row in sorted(rows, key=lambda row: row[:3])]
    return {"output": shown, "dropped": _gone(streams["ledger"])}


def _cti_source(name: str, shape: str, other: str = "") -> Source:
    edge = shape == "edge"
    return Source(
        name=name,
        feed=ParquetSpec(),
        key=(KEY,),
        time=f"time{other}",
        end=None if shape == "point" else f"end{other}",
        arrival=f"at{other}",
        shape=SHAPES[shape],
        edge=f"edge{other}",
        event_id=f"id{other}" if edge else None,
    )


KEEP = "keep_if_id_in"


def _kept(side: str, case: Case) -> Stream | None:
    """Give the filter that a case has before all else; None where it has none."""
    ids = case["config"].get(KEEP)
    if ids is None:
        return None
    column = "id_right" if side == "right" and case["operator"] == "cti_join" else "id"
    spelled = (re.sub(r"([\\'])", r"\\\1", str(each)) for each in ids)
    where = " or ".join(f"{column} = '{each}'" for each in spelled) or "false"
    return _passing("filter", side, FilterPolicy(where=where), name=f"{side}_kept")


def _meeting(case: Case, *streams: Stream, read: Callable[..., dict[str, Any]], sides: tuple[str, ...]) -> PreparedCase:
    """Prepare a case whose input rows are events and CTIs; times are ticks, and an event without an end is a point."""
    items, ends = _ends(case)
    arrivals = _arrivals(items, 1)
    shape = "edge" if any("edge" in item for item in items) else "interval"
    rows = [
        {**_event(at, item if "cti" in item or "end" in item or "edge" in item else _point(item), shape),
         "port": item.get("key"), "source": item.get("side", sides[0])}
        for at, item in zip(arrivals, items, strict=True)
    ]  # fmt: skip
    known = {SHAPES[shape]}
    kept = {side: each for side in sides if (each := _kept(side, case)) is not None}
    streams = (*kept.values(), *(_behind_kept(stream, kept) for stream in streams))
    suffix = {"right": "_right"} if any(stream.operator == "join" for stream in streams) else {}
    sources = {name: _cti_source(name, shape, suffix.get(name, "")) for name in sides}
    shaped = tuple(
        replace(stream, policy=_of_shape(stream.policy, known.copy().pop(), len(sides))) for stream in streams
    )
    return PreparedCase(
        case=case,
        flow=Flow(name="cases", sources=sources, streams={stream.name: stream for stream in shaped}, buckets=3),
        rows=rows,
        close=_close(case["config"], arrivals) + 1,
        ends=ends,
        read=read,
    )


def _behind_kept(stream: Stream, kept: Mapping[str, Stream]) -> Stream:
    """Have a stream read what a filter lets through, where there is one."""
    inputs = tuple(kept[name].name if name in kept else name for name in stream.inputs)
    return replace(stream, inputs=inputs, ports=Ports(streams=inputs) if stream.ports else None)


def _point(item: Row) -> Row:
    return item | {"end": item["start"] + 1}


def _of_shape(policy: Any, shape: Shape, sides: int) -> Any:  # noqa: ANN401 - any policy
    if hasattr(policy, "shapes"):
        return replace(policy, shapes=(shape,) * sides)
    return replace(policy, shape=shape) if hasattr(policy, "shape") else policy


SIDES = ("left", "right")


def _of_sides(operator: str, policy: Any) -> Stream:  # noqa: ANN401 - any policy
    ids = ("id", "id_right" if operator == "join" else "id")
    return Stream(
        name="released", operator=operator, inputs=SIDES, by=(KEY,), policy=policy, ports=Ports(streams=SIDES),
        shape=Shape.INTERVAL, event_ids=ids,
    )  # fmt: skip


def cti_union(case: Case) -> PreparedCase:
    """Prepare a case of a union of two sides with their CTIs."""
    _known(case["config"], "until_ms", KEEP)
    return _meeting(case, _of_sides("union", UnionPolicy(shapes=PAIR)), read=_read_released, sides=SIDES)


def cti_join(case: Case) -> PreparedCase:
    """Prepare a case of a join of two sides with their CTIs, on the key of the rows."""
    _known(case["config"], "until_ms", KEEP)
    on = ("port",) if any("key" in item for item in case["input"]) else ()
    return _meeting(case, _of_sides("join", JoinPolicy(shapes=PAIR, on=on)), read=_read_released, sides=SIDES)


PAIR = (Shape.INTERVAL, Shape.INTERVAL)


def cti_hopping_window(case: Case) -> PreparedCase:
    """Prepare a case of windows that count."""
    settings = case["config"]
    _known(settings, "size", "hop", "until_ms", KEEP)
    policy = WindowPolicy(
        shape=Shape.INTERVAL, size=settings["size"], hop=settings.get("hop") or settings["size"],
        measures=("number=count",),
    )  # fmt: skip
    stream = Stream(
        name="released", operator="window", inputs=("cases",), by=(KEY,), policy=policy, shape=Shape.INTERVAL,
        event_ids=("id",),
    )  # fmt: skip
    return _meeting(case, stream, read=_read_released, sides=("cases",))


def _read_released(prepared: PreparedCase, streams: Mapping[str, list[Row]]) -> dict[str, Any]:  # noqa: ARG001
    output: list[Row] = []
    released: list[Row] = []
    for row in streams["released"]:
        if row["kind"] == "cti":
            output.append({"cti": _instant(row["event_time"]), "released": released})
            released = []
        else:
            released.append(_shown_result(row))
    return {"output": output}


def _shown_result(row: Row) -> Row:
    times = {"start": row["event_time"], "end": _instant(row["event_end"])}
    if "number" in row:
        return times | {"count": row["number"]}
    names = [side["id"] for side in (row["item"], row.get("other")) if side]
    return {"id": "+".join(names)} | times


def cti_lifetime(case: Case) -> PreparedCase:
    """Prepare a case of events that are kept or not, shifted, or given a length, or any of them."""
    settings = case["config"]
    _known(settings, "shift", "length", "until_ms", KEEP)
    given, streams = "cases", []
    if settings.get("shift") is not None or (settings.get("length") is None and settings.get(KEEP) is None):
        streams.append(_passing("shift_time", given, ShiftTimePolicy(shift=settings.get("shift") or 0)))
        given = "shift_time"
    if settings.get("length") is not None:
        streams.append(_passing("alter_duration", given, AlterDurationPolicy(duration=settings["length"])))
    return _meeting(case, *streams, read=_read_lifetime, sides=("cases",))


def _passing(operator: str, given: str, policy: Any, name: str = "") -> Stream:  # noqa: ANN401 - any policy
    return Stream(
        name=name or operator, operator=operator, inputs=(given,), by=(KEY,), policy=policy, shape=Shape.INTERVAL
    )


def _read_lifetime(prepared: PreparedCase, streams: Mapping[str, list[Row]]) -> dict[str, Any]:
    last = list(prepared.flow.streams)[-1]
    shown = [
        {"cti": _instant(row["event_time"])} if row["kind"] == "cti" else _shown_result(row) for row in streams[last]
    ]
    return {"output": shown}


def deduplicate(case: Case) -> PreparedCase:
    """Prepare a case of rows that come again: `on` names fields of the items, without it all but `id` and `at`."""
    settings = case["config"]
    _known(settings, "on", "within_ms", "within", "max_ahead_ms", "max_ahead", "max_kept", "until_ms")
    kept = settings.get("max_kept")
    policy = DeduplicatePolicy(
        within=_time(settings, "within", 0) or 0,
        on=("port",),
        max_ahead=_time(settings, "max_ahead", None),
        **({} if kept is None else {"max_kept": kept}),
    )
    arrivals = _arrivals(case["input"], MS)
    rows = [
        {"at": at, "time": None if item.get("ts") is None else item["ts"] * MS, "item": item,
         "port": canonical_json(_compared(item, settings.get("on")))}
        for at, item in zip(arrivals, case["input"], strict=True)
    ]  # fmt: skip
    stream = Stream(name="once", operator="deduplicate", inputs=("cases",), by=(KEY,), policy=policy)
    flow, close = _flow(SOURCE, stream), _close(settings, arrivals)
    return PreparedCase(case=case, flow=flow, rows=rows, close=close, ends=False, read=_read_deduplicate)


def _compared(item: Row, on: list[str] | None) -> Row:
    """Give what an item is compared by."""
    return {name: item.get(name) for name in (on or [name for name in item if name not in {"id", "at"}])}


def _read_deduplicate(prepared: PreparedCase, streams: Mapping[str, list[Row]]) -> dict[str, Any]:  # noqa: ARG001
    shown = [
        {"kind": "data", "id": row["item"].get("id"), "ts": row["item"].get("ts"), "at": _ms(row["arrival"])}
        for row in streams["once"]
    ]
    return {"output": shown, "dropped": _gone(streams["ledger"])}


CASES: Mapping[str, Callable[[Case], PreparedCase]] = MappingProxyType(
    {
        "heartbeat": heartbeat,
        "merge": merge,
        "heartbeat_merge": heartbeat_merge,
        "cti_input": cti_input,
        "cti_liveliness": cti_liveliness,
        "cti_import": cti_import,
        "cti_union": cti_union,
        "cti_join": cti_join,
        "cti_hopping_window": cti_hopping_window,
        "cti_lifetime": cti_lifetime,
        "cti_filter": cti_lifetime,
        "deduplicate": deduplicate,
    }
)
