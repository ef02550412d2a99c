"""A flow as JSON and back again. Enums are spelled by name in lower case, tuples are lists, policies are objects."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields

from pipelines.flows.codec import Codec, Spelling, same
from pipelines.flows.errors import DefinitionError
from pipelines.flows.feeds.catalog import KINDS
from pipelines.flows.feeds.reads import SPOOL_BYTES
from pipelines.flows.feeds.spec import FeedSpec
from pipelines.flows.model import Definition, Flow, Source, Stream
from pipelines.flows.policies import policy_of
from pipelines.operators.rows import Policy
from pipelines.operators.specs import SPECS

SILENT = frozenset({"about", "region", "expect", "volume", "legs"}).union(*(kind.silent for kind in KINDS.values()))
"""What changes no row: where and how often landed rows lie, and how a feed is read."""
BESIDE = frozenset(
    {
        "warnings",
        "file",
        "starts",
        "ends",
        "asked",
        "on_silence",
        "given",
        "advancing",
        "unsaid",
        "keep_versions",
        "modules",
        "notes",
        "said_at",
        "file_order",
    }
)
"""What a flow says that changes no result of itself."""
SINCE_PLANS = ("max_ahead", "ahead")
"""Settings that merges have had only since plans were written without them: who has none is not judged by them."""

UNSAID = frozenset({"history", "volume", "body", "expect", "legs", "ctis", "dealt_of", "dealt_numeric"})
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
    told = FLOWS.to_json(flow)
    for stream in told["streams"]:
        if stream["name"] in flow.unsaid and stream["policy"]["max_ahead"] is None:
            stream["policy"] = {name: part for name, part in stream["policy"].items() if name not in SINCE_PLANS}
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
        streams = [_with_policy(part) for part in definition["streams"]]
        unsaid = frozenset(part["name"] for part in definition["streams"] if _says_nothing(part))
        return FLOWS.from_json(Flow, definition | {"streams": streams, "unsaid": unsaid})
    except (KeyError, TypeError, AttributeError, ValueError) as problem:  # a PolicyError is a ValueError
        raise DefinitionError(f"{type(problem).__name__}: {problem}") from problem


def fingerprint_of(flow: Flow) -> str:
    """Give 64 hex digits that change when a flow or the meaning of one of its operators does.

    What the flow says `about` itself changes nothing, nor where landed rows lie.
    """
    operators = sorted(_operators(flow.streams))
    versions = {operator: SPECS[operator].version for operator in operators}
    parts = [_silent(flow_to_json(flow)), versions]
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _operators(streams: Mapping[str, Stream]) -> set[str]:
    """Name the operators of streams, those within loops too."""
    return {each.operator for each in streams.values()}.union(*(_operators(each.body) for each in streams.values()))


def _with_policy(part: Definition) -> Definition:
    body = {"body": [_with_policy(each) for each in part["body"]]} if "body" in part else {}
    return part | {"policy": RECORDS.from_json(policy_of(part["operator"]), part["policy"])} | body


def _feed_to_json(feed: FeedSpec) -> Definition:
    return {"kind": feed.kind, **FEED, **RECORDS.to_json(feed)}


def feed_from_json(parts: Definition) -> FeedSpec:
    """Make the feed of a source of a definition."""
    kind = KINDS[parts["kind"]]
    of_others = FEED.keys() - {part.name for part in fields(kind)} | {"kind"}
    return RECORDS.from_json(kind, {name: part for name, part in parts.items() if name not in of_others})


def _by_name(kind: type[Source | Stream]) -> Spelling:
    """Spell what a flow has by name as a list."""
    return Spelling(
        lambda named: [FLOWS.to_json(each) for each in named.values()],
        lambda said: {part.name: part for part in (FLOWS.from_json(kind, each) for each in said)},
    )


RECORDS = Codec(unsaid=UNSAID, beside=BESIDE)
FLOWS = Codec(
    unsaid=UNSAID,
    beside=BESIDE,
    needed={"shape", "ports"},
    spelled={
        FeedSpec: Spelling(_feed_to_json, feed_from_json),
        Policy: Spelling(RECORDS.to_json, same),
        Mapping[str, Source]: _by_name(Source),
        Mapping[str, Stream]: _by_name(Stream),
    },
)


def _silent(value: Definition) -> Definition:
    """Leave out every `about`, where and how often landed rows lie, and how a live feed is read."""
    parts = {name: part for name, part in value.items() if name not in SILENT}
    parts |= {"buffers": 1} if "buffers" in parts else {}
    for name in ("sources", "streams", "body"):
        if name in parts:
            parts[name] = [_silent(part) for part in parts[name]]
    parts |= {name: _silent(parts[name]) for name in ("feed", "table") if name in parts}
    return parts
