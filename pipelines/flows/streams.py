"""Streams as a flow file declares them: one operator each, what it reads, and its policy."""

from __future__ import annotations

import re
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

ADVANCING = ("every", "delay", "late", "at_end", "late_end", "max_ahead", "max_open")
"""What advance_time can be told, in a stream or, for all streams that bind it, in a source."""
SETTINGS = {
    "heartbeat": ("interval", "slack", "acceleration", "max_ahead", "max_catch_up", "expire", "about"),
    "metronome": ("about",),
    "merge": ("ports_by", "by", "flush_at_end", "max_held", "max_ahead", "ahead", "about"),
    "advance_time": ("import", *ADVANCING, "by", "about"),
    "filter": ("where", "about"),
    "project": ("columns", "about"),
    "shift_time": ("shift", "about"),
    "alter_duration": ("duration", "about"),
    "union": ("about",),
    "join": ("on", "about"),
    "window": ("size", "hop", "group", "measures", "max_windows", "about"),
    "deduplicate": ("on", "within", "max_ahead", "max_kept", "about"),
}
MEETINGS = frozenset({"union", "join"})
"""Operators that several streams go into under CTIs."""
RELATIONS = MEETINGS | {"window"}
"""Operators that let nothing leave before a CTI."""
SETS_ASIDE = {"advance_time": "late", "merge": "ahead"}
"""Operators that may set a stream aside, and the setting whose `divert` says so."""
FORGETFUL = frozenset({"merge", "heartbeat"})
"""Operators whose carry does not say which CTI was the newest that passed."""
LATER = (
    *("replay", "module", "modules", "region", "connection"),
    *("parallel", "instances", "dispatch"),
)
"""What the schema has room for and nobody built yet."""
TIMED = frozenset({"heartbeat", "metronome"})
"""Operators that make timers, whose payload is empty."""
DAY = 86_400_000_000
MAX_OPEN = 1_000_000
"""Open events of one timeline, where the flow does not say."""
MEASURES = ("count", "sum", "min", "max", "mean")
MEASURE = re.compile(r"([a-z]+)(?:\(\s*([A-Za-z_][A-Za-z0-9_]*)\s*\))?")
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
        setting = SETS_ASIDE.get(self.operator, "")
        return isinstance(self.section.tree.entries.get(setting), Scalar) and self.section.text(setting) == "divert"

    @property
    def is_silent(self) -> bool:
        """Say whether it is a merge that says nothing of rows too far ahead."""
        return self.operator == "merge" and not any(map(self.section.has, ("max_ahead", "ahead")))


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
    elif operator in MEETINGS:
        _check_sides(section, operator, inputs)
    elif len(inputs) > 1:
        raise section.wrong(operator, f"{len(inputs)} inputs of `{operator}`", "one source or stream")
    if section.has("import"):
        inputs = (*inputs, section.text("import"))
    return Draft(name, section, operator, inputs)


def build(drafted: Draft, flow: Flow) -> Stream:
    """Make a stream whose inputs are made.

    Args:
        drafted: what was read of it so far.
        flow: the sources, and the streams before this one.

    Raises:
        FlowError: a setting is wrong, or does not go together with what the stream reads.
    """
    shaped = None if drafted.operator in RELATIONS else _same_shape(drafted, flow)
    _check_promises(drafted, flow)
    by = _by(drafted, flow)
    return Stream(
        name=drafted.name,
        operator=drafted.operator,
        inputs=drafted.inputs,
        by=by,
        policy=_policy(drafted, flow),
        ports=_ports_of(drafted, flow),
        shape=_shape(drafted, flow, shaped),
        event_id=None if shaped is None or drafted.operator == "alter_duration" else shaped.event_id,
        event_ids=tuple(flow.owner(name).event_id or "" for name in drafted.inputs)
        if drafted.operator in RELATIONS
        else (),
        about=drafted.section.text("about", ""),
    )


def _shape(drafted: Draft, flow: Flow, shaped: Source | Stream | None) -> Shape:
    """Say what lifetimes the events of a stream have."""
    if drafted.operator == "union":
        return Shape(max(0 if flow.owner(name).shape is Shape.POINT else Shape.INTERVAL for name in drafted.inputs))
    if drafted.operator in {"join", "window", "alter_duration"}:
        return Shape.INTERVAL
    return Shape.POINT if shaped is None else shaped.shape


def _ports_of(drafted: Draft, flow: Flow) -> Ports | None:
    if drafted.operator == "merge":
        return _ports(drafted, flow)
    return Ports(streams=drafted.inputs) if len(drafted.inputs) > 1 else None


def _check_sides(section: Section, operator: str, inputs: tuple[str, ...]) -> None:
    wanted = "two streams" if operator == "join" else "two streams or more"
    if len(inputs) < 2 or (operator == "join" and len(inputs) > 2):  # noqa: PLR2004 - two sides
        came = f"{len(inputs)} input{'s' if len(inputs) > 1 else ''} of `{operator}`"
        raise section.wrong(operator, came, f"{wanted}: `{operator}: [<one>, <other>]`")


def _check_promises(drafted: Draft, flow: Flow) -> None:
    """See that what waits for CTIs, or imports them, can get some."""
    wanting = drafted.inputs if drafted.operator in RELATIONS else drafted.inputs[1:]
    if drafted.operator == "merge":
        return
    for name in wanting:
        if not promises(flow, name):
            key = "import" if drafted.operator == "advance_time" else drafted.operator
            raise drafted.section.wrong(
                key, f"`{name}`, which has no CTIs,", "a stream behind an `advance_time:`, without which nothing leaves"
            )


def promises(flow: Flow, name: str) -> bool:
    """Say whether a source or stream can have CTIs: made, imported, or enqueued with the rows of a source."""
    made = flow.owner(name)
    if isinstance(made, Source):
        return made.edge is not None
    if name.endswith(DIVERTED):
        return False
    return made.operator == "advance_time" or any(promises(flow, read) for read in made.inputs)


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
    read = drafted.inputs[:1] if drafted.operator == "advance_time" else drafted.inputs
    makers = {name: flow.owner(name) for name in read if flow.sources_of(name)}
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
    if drafted.operator not in {"merge", "advance_time", "metronome"}:
        return _common_key(drafted, keys)
    if not section.has("by"):
        return _imported_key(drafted, flow, ()) if drafted.operator == "advance_time" else ()
    named = section.names("by")
    if drafted.operator == "advance_time":
        return _imported_key(drafted, flow, _whole_key(drafted, named, keys[0]))
    for name, key in zip(drafted.inputs, keys, strict=True):
        if tuple(column for column in key if column in named) != named:
            expected = f"columns of the key of `{name}`, in its order ({', '.join(key) or 'it has none'})"
            strange = next((column for column in named if column not in key), named[0])
            raise section.wrong("by", f"`by: {', '.join(named)}`", expected, nearest(strange, set(key) - {strange}))
    return named


def _common_key(drafted: Draft, keys: list[tuple[str, ...]]) -> tuple[str, ...]:
    for name, key in zip(drafted.inputs, keys, strict=True):
        if key != keys[0]:
            one, other = (f"{', '.join(each) or 'the whole stream'}" for each in (keys[0], key))
            came = f"`{drafted.inputs[0]}` with CTIs for {one}, and `{name}` with CTIs for {other},"
            raise drafted.section.wrong(
                drafted.operator, came, "streams of one scope: all under `by: key` with the same key, or none"
            )
    return keys[0]


def _imported_key(drafted: Draft, flow: Flow, own: tuple[str, ...]) -> tuple[str, ...]:
    """See that the CTIs that are imported bind what imports them."""
    for name in drafted.inputs[1:]:
        key = flow.key_of(name)
        if key and not own:
            came = f"`{name}`, whose CTIs each bind one {', '.join(key)} alone,"
            expected = "a stream with CTIs for the whole stream; or write `by: key` here too"
            raise drafted.section.wrong("import", came, expected)
        made = flow.owner(name)
        if own and not key and isinstance(made, Stream) and made.operator in FORGETFUL:
            came = f"`{name}`, a {made.operator}, which does not remember its newest CTI for keys that are heard later,"
            raise drafted.section.wrong("import", came, "the stream before it, which made the CTIs")
        if key and key != own:
            came = f"`{name}` with CTIs for {', '.join(key)}"
            expected = f"CTIs for each {', '.join(own)}, as this stream has them, or for the whole stream"
            raise drafted.section.wrong("import", came, expected)
    return own


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
        "filter": _filter,
        "project": _project,
        "shift_time": _shift_time,
        "alter_duration": _alter_duration,
        "union": _union,
        "join": _join,
        "window": _window,
        "deduplicate": _deduplicate,
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
    settings["max_ahead"] = section.bound("max_ahead", DAY)
    settings |= {"ahead": section.choice("ahead", enum_of("merge", "ahead"))} if section.has("ahead") else {}
    return settings | ({"max_held": section.count("max_held")} if section.has("max_held") else {})


def _advance_time(drafted: Draft, flow: Flow) -> dict[str, Any]:
    made, section = flow.owner(drafted.inputs[0]), drafted.section
    # What the flow says of a source replaces what the source says of itself, as a whole.
    own = any(map(section.has, ("import", *ADVANCING)))
    declared = made.advancing if isinstance(made, Source) and not own else None
    settings = advancing(section) if declared is None else dict(declared)
    generated = settings.pop("every", {})
    if generated or len(drafted.inputs) > 1 or promises(flow, drafted.inputs[0]):
        bounded = {"max_open": MAX_OPEN} if made.shape is Shape.EDGE else {}
        return {"shape": made.shape, **bounded, **generated, **settings}
    expected = (
        "`every: {events: <count>}`, `every: {duration: <duration>}`, or both, or `import: <stream>`: CTIs are "
        "generated, imported, or come with the rows of a source that has an `edge` column"
    )
    raise section.wrong(None, "no `every`", expected)


def advancing(section: Section) -> dict[str, Any]:
    """Read what advance_time can be told, in a stream or a source.

    Raises:
        FlowError: no policy, or a setting that makes no sense.
    """
    if not section.has("late"):
        expected = "`late: drop`, `late: adjust` or `late: divert`: what is done to an event that breaks a promise"
        raise section.wrong(None, "no `late`", expected)
    settings: dict[str, Any] = {
        "late": section.choice("late", enum_of("advance_time", "late")),
        "max_ahead": section.bound("max_ahead", DAY),
    }
    if section.has("max_open"):
        settings["max_open"] = section.count("max_open")
    if section.has("every"):
        settings["every"] = _every(section)
    for key in ("late_end", "at_end"):
        if section.has(key):
            settings[key] = section.choice(key, enum_of("advance_time", key))
    return settings | ({"delay": section.ticks("delay")} if section.has("delay") else {})


def _every(section: Section) -> dict[str, int]:
    inside = section.inner("every", f"`every` of {section.what}")
    inside.only(("events", "duration"))
    if not inside.tree.entries:
        expected = "`every: {events: <count>}`, `every: {duration: <duration>}`, or both"
        raise section.wrong("every", "an empty `every`", expected)
    readers = {"events": inside.count, "duration": inside.ticks}
    return {key: reader(key) for key, reader in readers.items() if inside.has(key)}


def _filter(drafted: Draft, flow: Flow) -> dict[str, Any]:
    where = _expression(drafted.section, "where", drafted.section.text("where"))
    return {"where": where, "shape": flow.owner(drafted.inputs[0]).shape}


def _project(drafted: Draft, flow: Flow) -> dict[str, Any]:
    section = drafted.section
    told = section.words("columns")
    inside = section.inner("columns", f"`columns` of {section.what}")
    read = drafted.inputs[0]
    taken = dict.fromkeys(RESERVED, "every stream has") | {flow.owner(read).event_id: "tells events apart and stays"}
    taken |= dict.fromkeys(flow.key_of(read), "is the key and stays")
    for name, text in told.items():
        if name in taken:
            came = f"`{name}`, a column that {taken[name]},"
            raise inside.wrong(name, came, "another name")
        _expression(inside, name, text)
    return {"columns": tuple(f"{name}={text}" for name, text in told.items())}


def _expression(section: Section, key: str, text: str) -> str:
    from pipelines.flows.expressions import ExpressionError, parse_expression

    try:
        parse_expression(text)
    except ExpressionError as problem:
        came = f"`{key}: {text}` with {problem.came}"
        raise section.wrong(key, came, problem.expected, problem.nearest) from problem
    return text


def _shift_time(drafted: Draft, _: Flow) -> dict[str, Any]:
    return {"shift": drafted.section.ticks("shift")}


def _alter_duration(drafted: Draft, _: Flow) -> dict[str, Any]:
    return {"duration": drafted.section.ticks("duration")}


def _union(drafted: Draft, flow: Flow) -> dict[str, Any]:
    return {"shapes": tuple(flow.owner(name).shape for name in drafted.inputs)}


def _join(drafted: Draft, flow: Flow) -> dict[str, Any]:
    section = drafted.section
    return _union(drafted, flow) | {"on": section.names("on") if section.has("on") else ()}


def _window(drafted: Draft, flow: Flow) -> dict[str, Any]:
    section = drafted.section
    size = section.ticks("size")
    settings: dict[str, Any] = {
        "shape": flow.owner(drafted.inputs[0]).shape,
        "size": size,
        "hop": section.ticks("hop") if section.has("hop") else size,
        "group": section.names("group") if section.has("group") else (),
        "measures": _measures(section),
    }
    return settings | ({"max_windows": section.count("max_windows")} if section.has("max_windows") else {})


def _deduplicate(drafted: Draft, _: Flow) -> dict[str, Any]:
    section = drafted.section
    settings: dict[str, Any] = {
        "on": section.names("on") if section.has("on") else (),
        "within": section.ticks("within"),
        "max_ahead": section.bound("max_ahead", DAY),
    }
    return settings | ({"max_kept": section.count("max_kept")} if section.has("max_kept") else {})


def _measures(section: Section) -> tuple[str, ...]:
    told = section.words("measures")
    inside = section.inner("measures", f"`measures` of {section.what}")
    return tuple(f"{name}={_measure(inside, name, text)}" for name, text in told.items())


def _measure(section: Section, name: str, text: str) -> str:
    expected = "`count`, or " + one_of(f"{function}(<column>)" for function in MEASURES)
    if name in RESERVED:
        raise section.wrong(name, f"`{name}`, a column that every stream has,", "another name")
    found = MEASURE.fullmatch(text.strip())
    if found is None or found[1] not in MEASURES or (found[2] is None and found[1] != "count"):
        near = nearest(text.partition("(")[0].strip(), MEASURES)
        raise section.wrong(name, f"`{name}: {text}`", expected, f"{near}(<column>)" if near else None)
    return found[1] if found[2] is None else f"{found[1]}({found[2]})"


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
