"""What differs between two flows, stream by stream, and whether the carry of an operator can stand under the newer."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeGuard

from pipelines.flows import definition
from pipelines.flows.dividing import remembers_something
from pipelines.flows.durations import spell
from pipelines.flows.forks import INTERLEAVE
from pipelines.operators.specs import SPECS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipelines.flows.model import Flow, Source, Stream
    from pipelines.operators.quarantine import Rule
    from pipelines.operators.rows import Policy

TICKS = frozenset({"interval", "slack", "delay", "duration", "max_ahead", "expire", "size", "hop", "shift", "within"})
"""Settings that are spans of time."""
SILENT = definition.SILENT | {"buffers", "advancing"}
"""What changes no row."""
LIMITS = frozenset({"max_held", "max_open", "max_kept"})
"""Settings that only say when a run stops."""
OF_INPUTS = frozenset({"ports", "declared"})
"""What follows from the inputs of a stream, and is not told beside them."""
NOTHING = "nothing"


class StreamFate(StrEnum):
    """What becomes of a stream when a changed flow is taken into use."""

    KEPT = "kept"
    """It and all that it reads are what they were: its rows are those that the older flow would have given."""
    FOLLOWS = "follows"
    """It is what it was, and what it reads is not: it goes on from what it remembers, with other rows."""
    CHANGED = "changed"
    """Its settings differ, and it goes on from what it remembers."""
    RESET = "reset"
    """What it remembers cannot stand under its settings: it begins anew."""
    NEW = "new"
    """It was not there."""
    GONE = "gone"
    """It is no longer there; its rows stay readable."""

    @property
    def remembers(self) -> bool:
        """Say whether the carry of the older flow stands."""
        return self in {StreamFate.KEPT, StreamFate.FOLLOWS, StreamFate.CHANGED}


SAID: Mapping[StreamFate, str] = MappingProxyType(
    {
        StreamFate.FOLLOWS: "changes too",
        StreamFate.CHANGED: "has changed",
        StreamFate.RESET: "begins anew",
        StreamFate.NEW: "is new",
    }
)
"""What is said of a stream to those that read it."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """What becomes of one stream, and why."""

    stream: str
    fate: StreamFate
    why: tuple[str, ...] = ()
    fed: tuple[str, ...] = ()
    """What of it differs in the sources that it reads."""

    def __str__(self) -> str:
        return f"{self.stream}: {', '.join(self.why)}" if self.why else self.stream


def changes(older: Flow, newer: Flow) -> tuple[Change, ...]:
    """Say what becomes of every stream of two flows, in the order of the newer; those that are gone come last.

    Args:
        older: the flow that a run was made by.
        newer: the flow that it is to be made by.
    """
    found: dict[str, Change] = {}
    dealt = _dealt_otherwise(older, newer)
    for name, stream in newer.streams.items():
        found[name] = _change(older, newer, stream, found, dealt.get(name, ""))
    gone = (name for name in older.streams if name not in newer.streams)
    return (*found.values(), *(Change(stream=name, fate=StreamFate.GONE) for name in gone))


def as_it_was(older: Flow, newer: Flow) -> Flow:
    """Give a flow as a run goes on with it: where it is what it was, what says nothing of a newer setting has none.

    Args:
        older: the flow that the run was made by, out of its plan.
        newer: the flow as its file has it now.

    Returns:
        `newer` without the bound `max_ahead` of merges that neither flow speaks of, where nothing else has changed;
        `newer` itself where something has, or nothing was left unsaid.
    """
    silent = [newer.streams[name] for name in newer.unsaid & older.unsaid]
    streams = {stream.name: dataclasses.replace(stream, policy=_unbounded(stream)) for stream in silent}
    same = dataclasses.replace(newer, streams={**newer.streams, **streams})
    return same if all(each.fate is StreamFate.KEPT for each in changes(older, same)) else newer


def _unbounded(stream: Stream) -> Policy:
    policy: Any = stream.policy
    bare: Policy = dataclasses.replace(policy, max_ahead=None)
    return bare


def _dealt_otherwise(older: Flow, newer: Flow) -> dict[str, str]:
    """Say of streams within instances that other rows are dealt to them, where they remember rows of before.

    What a row says decides which instance remembers something of it; by another dispatch that is another instance.
    """
    found: dict[str, tuple[str, str]] = {}
    for name, stream in newer.streams.items():
        was = older.streams.get(name)
        if stream.operator == "dispatch" and was is not None and (told := _other_dealing(was.policy, stream.policy)):
            found[name] = (f"{name.rpartition('.')[0]}.", told)
            continue
        behind = (found.get(newer.owner(read).name, ("", "")) for read in stream.inputs)
        found[name] = next(((within, told) for within, told in behind if within and name.startswith(within)), ("", ""))
    return {name: told for name, (_, told) in found.items() if told and remembers_something(newer, newer.streams[name])}


def _other_dealing(was: Any, now: Any) -> str:  # noqa: ANN401 - of dispatches
    """Say how a dispatch deals its rows otherwise; nothing where what a row says decides nothing."""
    if not (was.numeric or was.of or now.numeric or now.of):
        return ""
    told = ", ".join(_differing(was, now, ["style", "numeric", "of", "instances"]))
    return f"dealt otherwise: {told}" if told else ""


def _change(older: Flow, newer: Flow, stream: Stream, before: Mapping[str, Change], dealt: str) -> Change:
    was = older.streams.get(stream.name)
    if was is None:
        return Change(stream=stream.name, fate=StreamFate.NEW)
    lasting, passing = _own(was, stream)
    elsewhere = (*_otherwise_declared(older, newer, stream), *_otherwise_ordered(older, newer, stream))
    lasting = (*lasting, *elsewhere, *([dealt] if dealt else []))
    fed = tuple(_otherwise_fed(older, newer, stream))
    behind = tuple(_upstream(older, newer, stream, before))
    if lasting:
        fate = StreamFate.RESET
    elif passing:
        fate = StreamFate.CHANGED
    else:
        fate = StreamFate.FOLLOWS if behind else StreamFate.KEPT
    return Change(stream=stream.name, fate=fate, why=(*lasting, *passing, *behind), fed=fed)


def _own(was: Stream, now: Stream) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Give what differs in a stream itself: under which its carry cannot stand, and under which it can."""
    parts = [field.name for field in dataclasses.fields(now) if field.name not in {"policy", "body", *SILENT}]
    if was.inputs != now.inputs:
        parts = [name for name in parts if name not in OF_INPUTS]
    lasting = tuple(_differing(was, now, parts))
    inside = () if was.body == now.body else ("what goes round in it",)
    if was.operator != now.operator:
        return lasting, ()
    stands = SPECS[now.operator].stands
    settings = [field.name for field in dataclasses.fields(now.policy) if field.name not in LIMITS]
    if now.operator == INTERLEAVE and was.inputs != now.inputs:
        settings = [name for name in settings if name not in OF_INPUTS]
    may, must_not = ([name for name in settings if (name in stands) is wanted] for wanted in (True, False))
    passing = (*_differing(was.policy, now.policy, may), *inside)
    return (*lasting, *_differing(was.policy, now.policy, must_not)), passing


def _otherwise_declared(older: Flow, newer: Flow, stream: Stream) -> Iterator[str]:
    """Say what differs in what the flow says of the sources that a stream reads: times of another column are others."""
    for name in stream.inputs:
        if name in older.sources and name in newer.sources:
            yield from (f"source {name}: {each}" for each in _declaration(older.sources[name], newer.sources[name]))


def _otherwise_ordered(older: Flow, newer: Flow, stream: Stream) -> Iterator[str]:
    """Say that sources whose rows meet have changed places in the file, which order rows of one arrival (X6, X10)."""
    if stream.operator != INTERLEAVE:
        return
    both = {*older.sources_of(stream.name)} & {*newer.sources_of(stream.name)}
    was, now = (tuple(name for name in flow.sources if name in both) for flow in (older, newer))
    if was != now:
        yield f"sources in the file {', '.join(was)} → {', '.join(now)}"


def _declaration(was: Source, now: Source) -> Iterator[str]:
    parts = [field.name for field in dataclasses.fields(now) if field.name not in {"feed", *SILENT}]
    return _differing(was, now, parts)


def _otherwise_fed(older: Flow, newer: Flow, stream: Stream) -> Iterator[str]:
    """Say what differs in where the rows of a stream's sources come from."""
    for name in stream.inputs:
        if name in newer.sources:
            yield from _feed_changes(older.sources.get(name), newer.sources[name])


def _upstream(older: Flow, newer: Flow, stream: Stream, before: Mapping[str, Change]) -> Iterator[str]:
    """Say what differs in what a stream reads."""
    for name in stream.inputs:
        if name in newer.sources:
            yield from _feed_changes(older.sources.get(name), newer.sources[name])
        elif before[newer.owner(name).name].fate is not StreamFate.KEPT:
            yield f"reads {name}, which {SAID[before[newer.owner(name).name].fate]}"


def _feed_changes(was: Source | None, now: Source) -> Iterator[str]:
    """Say what differs in where the rows of a source come from."""
    if was is None:
        yield f"reads {now.name}, which is new"
        return
    feed = ["kind", *(field.name for field in dataclasses.fields(now.feed) if field.name not in SILENT)]
    yield from (f"source {now.name}: {each}" for each in _differing(was.feed, now.feed, feed))


def _differing(was: object, now: object, names: list[str]) -> Iterator[str]:
    for name in names:
        before, after = getattr(was, name, None), getattr(now, name)
        if before == after or _spelled(name, before) == _spelled(name, after) == NOTHING:
            continue
        if _is_names(before) and _is_names(after) and max(len(before), len(after)) > LONG:
            yield f"{name} {_moved(before, after)}"
        elif name == "rules":
            yield f"expect {_other_rules(before or (), after)}"
        else:
            yield f"{name} {_spelled(name, before)} → {_spelled(name, after)}"


LONG = 4
"""Names in a row of which what differs is told, and no longer all."""


def _other_rules(before: tuple[Rule, ...], after: tuple[Rule, ...]) -> str:
    """Say which checks of a quarantine went and which came, each with what it keeps."""
    told = (("no longer", before, after), ("now", after, before))
    words = [
        (what, [f"{each.check}: {each.keeps}" for each in some if each not in others]) for what, some, others in told
    ]
    return "; ".join(f"{what} {' and '.join(rules)}" for what, rules in words if rules) or "in another order"


def _is_names(value: object) -> TypeGuard[tuple[str, ...]]:
    return isinstance(value, tuple) and all(isinstance(part, str) for part in value)


def _moved(before: tuple[str, ...], after: tuple[str, ...]) -> str:
    """Say which names went and which came; where the same are there, that their order is another."""
    gone, new = ", ".join(sorted({*before} - {*after})), ", ".join(sorted({*after} - {*before}))
    told = [*([f"without {gone}"] if gone else []), *([f"with {new}"] if new else [])]
    return " and ".join(told) or "in another order"


def _spelled(name: str, value: Any) -> str:  # noqa: ANN401 - of any setting
    if isinstance(value, Enum):
        return value.name.lower()
    if hasattr(value, "words"):
        return str(value.words())
    if dataclasses.is_dataclass(value):
        parts = (getattr(value, field.name) for field in dataclasses.fields(value))
        return " ".join(_spelled("", part) for part in parts if part not in ((), None)) or NOTHING
    if isinstance(value, Mapping | tuple):
        named = value.items() if isinstance(value, Mapping) else (("", part) for part in value)
        return ", ".join(f"{key} {_spelled('', part)}".lstrip() for key, part in named) or NOTHING
    if value is None or value == "":
        return NOTHING
    return spell(value) if name in TICKS and isinstance(value, int) else str(value)
