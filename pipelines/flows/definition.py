"""A flow as JSON and back again. Enums are spelled by name in lower case, tuples are lists, policies are objects."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from enum import Enum
from typing import Any

from pipelines.flows.errors import DefinitionError
from pipelines.flows.feeds.catalog import KINDS
from pipelines.flows.feeds.reads import SPOOL_BYTES
from pipelines.flows.feeds.spec import FeedSpec
from pipelines.flows.model import Definition, Flow, Ports, Source, Stream
from pipelines.flows.policies import enum_of, new_policy
from pipelines.operators.replay import ReplayPolicy, Trigger
from pipelines.operators.rows import PolicyError, Shape
from pipelines.operators.specs import SPECS

SILENT = frozenset({"about", "region"}).union(*(kind.silent for kind in KINDS.values()))
"""What changes no row: where and how often landed rows lie, and how a feed is read."""
CHOICES = ("shape", "late", "late_end", "at_end", "ahead")
"""Settings of policies that are enums."""
BESIDE = frozenset({"warnings", "file", "starts", "ends", "given", "advancing", "unsaid", "keep_versions"})
"""What a flow says that changes no result of itself."""
SINCE_PLANS = ("max_ahead", "ahead")
"""Settings that merges have had only since plans were written without them: who has none is not judged by them."""

UNSAID = frozenset({"history"})
"""What stands in a definition only where it is said: flows without it are what they were before it was known."""

FEED: Definition = {
    "name": None,
    "paths": [],
    "format": "",
    "types": {},
    "delimiter": ",",
    "nulls": [""],
    "timezone": None,
    "landing": "copy",
    "brokers": [],
    "client": "",
    "start": "earliest",
    "max_bytes": SPOOL_BYTES,
    "missing": None,
    "retyped": "ledger",
}
"""What a definition says of each feed, of whatever kind: fingerprints are of all of it. A kind that was added since
says its own settings behind it."""


def flow_to_json(flow: Flow) -> Definition:
    """Give all that decides what a flow means, as JSON; `flow_from_json` reads it back.

    It leaves out the file that the flow came from, its warnings, and the span that its sources hold. Sources and
    streams are lists, so that their order survives JSON whose keys are sorted.
    """
    parts = {name: part for name, part in _fields(flow) if name not in BESIDE}
    spelled: Definition = {name: _plain(part) for name, part in parts.items() if name not in {"sources", "streams"}}
    spelled["sources"] = [_plain(source) for source in flow.sources.values()]
    spelled["streams"] = [_spelled(flow, stream) for stream in flow.streams.values()]
    return spelled


def _spelled(flow: Flow, stream: Stream) -> Definition:
    told: Definition = _plain(stream)
    if stream.name in flow.unsaid and told["policy"]["max_ahead"] is None:
        told["policy"] = {name: part for name, part in told["policy"].items() if name not in SINCE_PLANS}
    return told


def _says_nothing(part: Definition) -> bool:
    """Say whether a stream's definition is of a merge that was planned before it had `max_ahead`."""
    return part["operator"] == "merge" and "max_ahead" not in part["policy"]


def flow_from_json(definition: Definition) -> Flow:
    """Make the flow that `flow_to_json` gave.

    Raises:
        DefinitionError: another version wrote it: a part is missing, unknown, or no longer allowed.
    """
    try:
        sources = [_source(part) for part in definition["sources"]]
        streams = [_stream(part) for part in definition["streams"]]
        rest = {name: part for name, part in definition.items() if name not in {"sources", "streams", "region"}}
        return Flow(
            **rest,
            region=_region(definition.get("region")),
            sources={source.name: source for source in sources},
            streams={stream.name: stream for stream in streams},
            unsaid=frozenset(part["name"] for part in definition["streams"] if _says_nothing(part)),
        )
    except (KeyError, TypeError, AttributeError, PolicyError) as problem:
        raise DefinitionError(f"{type(problem).__name__}: {problem}") from problem


def fingerprint_of(flow: Flow) -> str:
    """Give 64 hex digits that change when a flow or the meaning of one of its operators does.

    What the flow says `about` itself changes nothing, nor where landed rows lie.
    """
    operators = sorted({stream.operator for stream in flow.streams.values()})
    versions = {operator: SPECS[operator].version for operator in operators}
    parts = [_silent(flow_to_json(flow)), versions]
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _region(parts: Definition | None) -> ReplayPolicy | None:
    return None if parts is None else ReplayPolicy(**parts | {"trigger": Trigger[parts["trigger"].upper()]})


def _fields(value: Any) -> list[tuple[str, Any]]:  # noqa: ANN401 - any dataclass
    return [(part.name, getattr(value, part.name)) for part in dataclasses.fields(value)]


def _plain(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, FeedSpec):
        return {"kind": value.kind, **FEED, **{name: _plain(part) for name, part in _fields(value)}}
    if dataclasses.is_dataclass(value):
        said = {name: part for name, part in _fields(value) if name not in BESIDE}
        return {name: _plain(part) for name, part in said.items() if part is not None or name not in UNSAID}
    if isinstance(value, Enum):
        return value.name.lower()
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, tuple) else value


def _tuples(parts: Definition) -> Definition:
    return {name: tuple(part) if isinstance(part, list) else part for name, part in parts.items()}


def _source(parts: Definition) -> Source:
    known = _tuples(parts) | {"feed": _feed(parts["feed"]), "shape": Shape[parts["shape"].upper()]}
    return Source(**known)


def _feed(parts: Definition) -> FeedSpec:
    kind = KINDS[parts["kind"]]
    own = {field.name for field in dataclasses.fields(kind)}
    unknown = parts.keys() - own - FEED.keys() - {"kind"}
    if unknown:
        raise TypeError(f"a feed of kind {kind.kind} must have settings of its own; it has {sorted(unknown)}")
    return kind.from_json(parts)


def _stream(parts: Definition) -> Stream:
    operator = parts["operator"]
    ports = parts["ports"] and Ports(**_tuples(parts["ports"]))
    policy = {name: _setting(operator, name, part) for name, part in _tuples(parts["policy"]).items()}
    known = _tuples(parts) | {
        "ports": ports,
        "policy": new_policy(operator, policy),
        "shape": Shape[parts["shape"].upper()],
    }
    return Stream(**known)


def _setting(operator: str, name: str, part: Any) -> Any:  # noqa: ANN401 - JSON
    if name == "shapes":
        return tuple(Shape[each.upper()] for each in part)
    return enum_of(operator, name)[part.upper()] if name in CHOICES and isinstance(part, str) else part


def _silent(value: Definition) -> Definition:
    """Leave out every `about`, where and how often landed rows lie, and how a live feed is read."""
    parts = {name: part for name, part in value.items() if name not in SILENT}
    parts |= {"buffers": 1} if "buffers" in parts else {}
    for name in ("sources", "streams"):
        if name in parts:
            parts[name] = [_silent(part) for part in parts[name]]
    parts |= {name: _silent(parts[name]) for name in ("feed", "table") if name in parts}
    return parts
