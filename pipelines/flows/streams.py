"""Streams as a flow file declares them: one operator each, what it reads, and its policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipelines.flows.document import Listing, Scalar
from pipelines.flows.errors import nearest, one_of
from pipelines.flows.model import DIVERTED, RESERVED, Flow, Ports, Source, Stream
from pipelines.flows.policies import CLASSES, enum_of, new_policy
from pipelines.operators.rows import PolicyError, Shape

if TYPE_CHECKING:
    from pipelines.flows.policies import Policy
    from pipelines.flows.section import Section

SETTINGS = {
    "heartbeat": ("interval", "slack", "acceleration", "max_ahead", "max_catch_up", "expire", "about"),
    "metronome": ("about",),
    "merge": ("ports_by", "by", "flush_at_end", "max_held", "about"),
    "advance_time": ("every", "delay", "late", "by", "at_end", "late_end", "max_ahead", "about"),
}
LATER = (
    *("join", "union", "filter", "project", "window", "windows", "tumbling", "hopping", "on", "import"),
    *("shift_event_time", "alter_event_lifetime", "replay", "module", "modules", "region", "connection"),
    *("parallel", "instances", "dispatch"),
)
"""What the schema has room for and nobody built yet."""
TIMED = frozenset({"heartbeat", "metronome"})
"""Operators that make timers, whose payload is empty."""
DAY = 86_400_000_000
WHOLE_KEY = "key"
"""`by: key`: one timeline for each key of the input."""


@dataclass(frozen=True)
class Draft:
    """A stream whose operator and inputs are read, and nothing else."""

    name: str
    section: Section
    operator: str
    inputs: tuple[str, ...]

    @property
    def diverts(self) -> bool:
        """Say whether the operator sets a stream aside."""
        late = self.section.tree.entries.get("late")
        return self.operator == "advance_time" and isinstance(late, Scalar) and self.section.text("late") == "divert"


def draft(section: Section, name: str) -> Draft:
    """Read which operator makes a stream, and from what.

    Raises:
        FlowError: no operator, two, one that is not built yet, or a setting that it does not have.
    """
    operator = _operator(section)
    section.only((operator, *SETTINGS[operator]), LATER)
    inputs = () if operator == "metronome" else section.names(operator)
    if operator == "merge":
        _check_ports(section, inputs)
    elif len(inputs) > 1:
        raise section.wrong(operator, f"{len(inputs)} inputs of `{operator}`", "one source or stream")
    return Draft(name, section, operator, inputs)


def build(drafted: Draft, flow: Flow) -> Stream:
    """Make a stream whose inputs are made.

    Args:
        drafted: what was read of it so far.
        flow: the sources, and the streams before this one.

    Raises:
        FlowError: a setting is wrong, or does not go together with what the stream reads.
    """
    shaped = _same_shape(drafted, flow)
    return Stream(
        name=drafted.name,
        operator=drafted.operator,
        inputs=drafted.inputs,
        by=_by(drafted, flow),
        policy=_policy(drafted, flow),
        ports=_ports(drafted, flow) if drafted.operator == "merge" else None,
        shape=Shape.POINT if shaped is None else shaped.shape,
        event_id=None if shaped is None else shaped.event_id,
        about=drafted.section.text("about", ""),
    )


def _operator(section: Section) -> str:
    found = [key for key in section.tree.entries if key in CLASSES]
    if len(found) == 1:
        return found[0]
    if found:
        raise section.wrong(
            found[1], f"both `{found[0]}` and `{found[1]}`", "one operator; give each a stream of its own"
        )
    planned = [key for key in section.tree.entries if key in LATER]
    if planned:
        raise section.wrong(planned[0], f"`{planned[0]}`, which is not built yet,", one_of(CLASSES))
    for key in section.tree.entries:
        if near := nearest(key, CLASSES):
            raise section.wrong(key, f"unknown key `{key}`", one_of(CLASSES), near)
    raise section.wrong(None, "no operator", one_of(CLASSES))


def _check_ports(section: Section, inputs: tuple[str, ...]) -> None:
    is_list = isinstance(section.tree.entries["merge"], Listing)
    if is_list and section.has("ports_by"):
        raise section.wrong("ports_by", "`ports_by` beside a list of streams", "one of the two: each stream is a port")
    if is_list and len(inputs) == 1:
        raise section.wrong("merge", "a list of one stream", f"several streams, or `merge: {inputs[0]}` and `ports_by`")
    if not is_list and not section.has("ports_by"):
        expected = "`ports_by: {<column>: [<values>]}`, or a list of streams under `merge`"
        raise section.wrong("merge", "no `ports_by`", expected)


def _ports(drafted: Draft, flow: Flow) -> Ports:
    section = drafted.section
    if not section.has("ports_by"):
        return Ports(streams=drafted.inputs)
    inside = section.inner("ports_by", f"`ports_by` of {section.what}")
    if len(inside.tree.entries) != 1:
        came = f"{len(inside.tree.entries)} columns under `ports_by`"
        raise section.wrong("ports_by", came, "one: `ports_by: {<column>: [<values>]}`")
    column = next(iter(inside.tree.entries))
    if column in RESERVED:
        raise inside.wrong(column, f"`{column}`, a column that every stream has,", "a column of your own")
    key = flow.key_of(drafted.inputs[0])
    if column not in key and not TIMED.isdisjoint(_passed(flow, drafted.inputs[0])):
        came = f"`{column}`, which the timers of `{drafted.inputs[0]}` leave empty,"
        raise inside.wrong(
            column, came, f"a column of its key ({', '.join(key) or 'it has none'})", nearest(column, key)
        )
    return Ports(column=column, values=inside.values(column))


def _passed(flow: Flow, name: str) -> set[str]:
    """Name the operators that rows have passed before they are rows of `name`."""
    made = flow.owner(name)
    if isinstance(made, Source):
        return set()
    return {made.operator}.union(*(_passed(flow, read) for read in made.inputs))


def _same_shape(drafted: Draft, flow: Flow) -> Source | Stream | None:
    """Give an input whose shape all others have; None where no input has events, only timers."""
    makers = {name: flow.owner(name) for name in drafted.inputs if flow.sources_of(name)}
    first = next(iter(makers), "")
    for name, maker in makers.items():
        if (maker.shape, maker.event_id) != (makers[first].shape, makers[first].event_id):
            came = f"`{name}` of another shape than `{first}`"
            raise drafted.section.wrong(drafted.operator, came, "streams of one shape (and one `event_id`)")
    return makers.get(first)


def _by(drafted: Draft, flow: Flow) -> tuple[str, ...]:
    section, keys = drafted.section, [flow.key_of(name) for name in drafted.inputs]
    if drafted.operator == "heartbeat":
        return _beating_key(drafted, flow)
    if not section.has("by"):
        return ()
    named = section.names("by")
    if drafted.operator == "advance_time":
        return _whole_key(drafted, named, keys[0])
    for name, key in zip(drafted.inputs, keys, strict=True):
        if tuple(column for column in key if column in named) != named:
            expected = f"columns of the key of `{name}`, in its order ({', '.join(key) or 'it has none'})"
            strange = next((column for column in named if column not in key), named[0])
            raise section.wrong("by", f"`by: {', '.join(named)}`", expected, nearest(strange, set(key) - {strange}))
    return named


def _beating_key(drafted: Draft, flow: Flow) -> tuple[str, ...]:
    read = drafted.inputs[0]
    if not flow.sources_of(read):
        came = f"a heartbeat of `{read}`, which has timers and no rows of data,"
        raise drafted.section.wrong("heartbeat", came, "a stream that comes from a source")
    return flow.key_of(read)


def _whole_key(drafted: Draft, named: tuple[str, ...], key: tuple[str, ...]) -> tuple[str, ...]:
    read = drafted.inputs[0]
    if not key:
        raise drafted.section.wrong("by", f"`by` over `{read}`, which has no key", "no `by`: one timeline for all")
    if named not in {(WHOLE_KEY,), key}:
        expected = f"`by: key`, the whole key of `{read}` ({', '.join(key)})"
        raise drafted.section.wrong("by", f"`by: {', '.join(named)}`", expected, nearest(named[0], (WHOLE_KEY, *key)))
    return key


def _policy(drafted: Draft, flow: Flow) -> Policy:
    settings = {
        "heartbeat": _heartbeat,
        "metronome": _metronome,
        "merge": _merge,
        "advance_time": _advance_time,
    }[drafted.operator](drafted, flow)
    try:
        return new_policy(drafted.operator, settings)
    except PolicyError as problem:
        raise _refused(drafted, problem) from problem


def _heartbeat(drafted: Draft, _: Flow) -> dict[str, Any]:
    section = drafted.section
    settings: dict[str, Any] = {"interval": section.ticks("interval"), "max_ahead": section.bound("max_ahead", DAY)}
    readers = {"slack": section.ticks, "acceleration": section.ratio, "max_catch_up": section.count}
    settings |= {key: reader(key) for key, reader in readers.items() if section.has(key)}
    return settings | {"expire": section.bound("expire", None)}


def _metronome(drafted: Draft, _: Flow) -> dict[str, Any]:
    return {"interval": drafted.section.ticks("metronome")}


def _merge(drafted: Draft, flow: Flow) -> dict[str, Any]:
    section, ends = drafted.section, enum_of("merge", "at_end")
    settings: dict[str, Any] = {"ports": len(_ports(drafted, flow))}
    settings["at_end"] = section.flag("flush_at_end", yes=ends["FLUSH"], no=ends["HOLD"])
    return settings | ({"max_held": section.count("max_held")} if section.has("max_held") else {})


def _advance_time(drafted: Draft, flow: Flow) -> dict[str, Any]:
    section = drafted.section
    settings: dict[str, Any] = {
        "shape": flow.owner(drafted.inputs[0]).shape,
        "late": section.choice("late", enum_of("advance_time", "late")),
        "max_ahead": section.bound("max_ahead", DAY),
        **_every(drafted, flow),
    }
    chosen = {
        key: section.choice(key, enum_of("advance_time", key)) for key in ("late_end", "at_end") if section.has(key)
    }
    return settings | chosen | ({"delay": section.ticks("delay")} if section.has("delay") else {})


def _every(drafted: Draft, flow: Flow) -> dict[str, int]:
    section = drafted.section
    if not section.has("every") and "advance_time" in _passed(flow, drafted.inputs[0]):
        return {}
    expected = "`every: {events: <count>}`, `every: {duration: <duration>}`, or both"
    if not section.has("every"):
        raise section.wrong(None, "no `every`", expected)
    inside = section.inner("every", f"`every` of {section.what}")
    inside.only(("events", "duration"))
    if not inside.tree.entries:
        raise section.wrong("every", "an empty `every`", expected)
    readers = {"events": inside.count, "duration": inside.ticks}
    return {key: reader(key) for key, reader in readers.items() if inside.has(key)}


def _refused(drafted: Draft, problem: PolicyError) -> Exception:
    outer, _, inner = problem.setting.partition(".")
    section, key = drafted.section, outer if drafted.section.has(outer) else drafted.operator
    if inner and section.has(outer):
        section, key = section.inner(outer, f"`{outer}` of {section.what}"), inner
    tree = section.tree.entries.get(key)
    came = f"`{key}: {section.text(key)}`" if isinstance(tree, Scalar) else f"{problem.setting} {problem.came!r}"
    return section.wrong(key, came, problem.required)


def known_names(sources: dict[str, Source], drafts: dict[str, Draft]) -> tuple[str, ...]:
    """Name all that a stream may read."""
    sides = tuple(name + DIVERTED for name, drafted in drafts.items() if drafted.diverts)
    return (*sources, *drafts, *sides)
