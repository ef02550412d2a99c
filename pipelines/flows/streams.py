"""Streams as a flow file declares them: one operator each, what it reads, and its policy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pipelines.flows.dividing import dealt_alone
from pipelines.flows.document import Listing, Scalar
from pipelines.flows.errors import nearest, one_of
from pipelines.flows.forks import declared_behind
from pipelines.flows.loops import loop_body
from pipelines.flows.model import RESERVED, Flow, Ports, Source, Stream, sides_of
from pipelines.flows.policies import enum_of, policy_of
from pipelines.flows.promising import merged_ctis, of_one_key, why_no_promise
from pipelines.flows.quarantining import rules_of
from pipelines.flows.section import BESIDE_MODULE
from pipelines.flows.settings import read_settings
from pipelines.operators.rows import Policy, PolicyError, Shape
from pipelines.operators.specs import ADVANCING, DAY, SPECS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pipelines.flows.section import Section
    from pipelines.operators.specs import OperatorSpec

LATER = ("replay", "modules", "region")
"""What the schema has room for and nobody built yet."""
ADVANCING_KEYS = tuple(setting.key for setting in ADVANCING)
WRITTEN = tuple(name for name, spec in SPECS.items() if spec.written)
"""The operators that a stream may name."""
MAX_OPEN = 1_000_000
"""Open events of one timeline, where the flow does not say."""
CHECKED = ("expect", "sides")
"""Under every operator: what must hold of its rows, and of those that it sets aside. See `checks`."""
WHOLE_KEY = "key"
"""`by: key`: one timeline for each key of the input."""


@dataclass(frozen=True)
class Draft:
    """A stream whose operator and inputs are read, and nothing else."""

    name: str
    section: Section
    operator: str
    inputs: tuple[str, ...]
    made: Mapping[str, Any] = field(default_factory=dict)
    """Fields of its policy that no text of its own says: what a module makes of its ports."""
    body: tuple[Draft, ...] = ()
    """Of a loop: the streams of its module."""

    @property
    def spec(self) -> OperatorSpec:
        """Give what is known of the operator."""
        return SPECS[self.operator]

    @property
    def aside(self) -> str:
        """Say what the name of the stream that the operator sets aside ends in; empty where it sets none aside."""
        setting = self.spec.sets_aside
        chosen = self.section.text(setting) if isinstance(self.section.tree.entries.get(setting), Scalar) else ""
        return "".join(sides_of("", self.operator, {setting: chosen}))

    @property
    def is_bound(self) -> bool:
        """Say whether it is an advance_time that says nothing of its own: what its source says of CTIs holds for it."""
        return self.operator == "advance_time" and not any(map(self.section.has, ("import", *ADVANCING_KEYS)))

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
    spec = SPECS[operator]
    section.only((operator, *spec.keys, *CHECKED), LATER)
    inputs = () if spec.inputs == "none" else section.names(operator)
    if spec.inputs == "ports":
        _check_ports(section, inputs)
    elif spec.inputs in {"two", "two or more"}:
        _check_sides(section, spec, inputs)
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
    shaped = None if drafted.spec.awaits_promises else _same_shape(drafted, flow)
    _check_promises(drafted, flow)
    by = _by(drafted, flow)
    body = loop_body(drafted, flow, build) if drafted.body else {}
    return Stream(
        body=body,
        name=drafted.name,
        operator=drafted.operator,
        inputs=drafted.inputs,
        by=by,
        policy=_policy(drafted, flow),
        ports=_ports_of(drafted, flow),
        shape=_shape(drafted, flow, shaped),
        event_id=None if shaped is None or drafted.spec.lasting else shaped.event_id,
        event_ids=tuple(flow.owner(name).event_id or "" for name in drafted.inputs)
        if drafted.spec.awaits_promises
        else (),
        about=drafted.section.text("about", ""),
    )


def _shape(drafted: Draft, flow: Flow, shaped: Source | Stream | None) -> Shape:
    """Say what lifetimes the events of a stream have."""
    if drafted.spec.joins_edges:
        return Shape(max(0 if flow.owner(name).shape is Shape.POINT else Shape.INTERVAL for name in drafted.inputs))
    if drafted.spec.lasting:
        return Shape.INTERVAL
    return Shape.POINT if shaped is None else shaped.shape


def _ports_of(drafted: Draft, flow: Flow) -> Ports | None:
    if drafted.spec.inputs == "ports":
        return _ports(drafted, flow)
    return Ports(streams=drafted.inputs) if len(drafted.inputs) > 1 else None


def _check_sides(section: Section, spec: OperatorSpec, inputs: tuple[str, ...]) -> None:
    wanted = "two streams" if spec.inputs == "two" else "two streams or more"
    if len(inputs) < 2 or (spec.inputs == "two" and len(inputs) > 2):  # noqa: PLR2004 - two sides
        came = f"{len(inputs)} input{'s' if len(inputs) > 1 else ''} of `{spec.name}`"
        raise section.wrong(spec.name, came, f"{wanted}: `{spec.name}: [<one>, <other>]`")


def _check_promises(drafted: Draft, flow: Flow) -> None:
    """See that what waits for CTIs, or imports them, can get some."""
    wanting = drafted.inputs if drafted.spec.awaits_promises else drafted.inputs[1:]
    if drafted.spec.inputs == "ports" or drafted.spec.all_promise:
        return
    for name in wanting:
        if not flow.promises(name):
            key = "import" if drafted.operator == "advance_time" else drafted.operator
            raise drafted.section.wrong(key, *why_no_promise(flow, name))


def _operator(section: Section) -> str:
    found = [key for key in section.tree.entries if key in WRITTEN]
    if len(found) == 1:
        return found[0]
    if found:
        raise section.wrong(
            found[1], f"both `{found[0]}` and `{found[1]}`", "one operator; give each a stream of its own"
        )
    if any(key in LATER or key in BESIDE_MODULE for key in section.tree.entries):
        section.only(WRITTEN, LATER)
    settings = {key for spec in SPECS.values() for key in spec.keys}
    for key in section.tree.entries:
        if key not in settings and (near := nearest(key, WRITTEN)):
            raise section.wrong(key, f"unknown key `{key}`", one_of(WRITTEN), near)
    raise section.wrong(None, "no operator", one_of(WRITTEN))


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
        as_one = tuple(_without_instances(flow, name) for name in drafted.inputs)
        return Ports(streams=as_one if len(set(as_one)) == len(as_one) else drafted.inputs)
    inside = section.inner("ports_by", f"`ports_by` of {section.what}")
    if len(inside.tree.entries) != 1:
        came = f"{len(inside.tree.entries)} columns under `ports_by`"
        raise section.wrong("ports_by", came, "one: `ports_by: {<column>: [<values>]}`")
    column = next(iter(inside.tree.entries))
    if column in RESERVED:
        raise inside.wrong(column, f"`{column}`, a column that every stream has,", "a column of your own")
    key = flow.key_of(drafted.inputs[0])
    if column not in key and flow.has_timers(drafted.inputs[0]):
        came = f"`{column}`, which the timers of `{drafted.inputs[0]}` leave empty,"
        raise inside.wrong(
            column, came, f"a column of its key ({', '.join(key) or 'it has none'})", nearest(column, key)
        )
    return Ports(column=column, values=inside.values(column))


def _without_instances(flow: Flow, name: str) -> str:
    """Name a stream as a flow names it whose module has one instance: rows say their port, and are to be the same."""
    made = flow.owner(name)
    if isinstance(made, Stream) and made.operator == "dispatch":
        return _without_instances(flow, made.inputs[0])
    return ".".join(part for part in name.split(".") if not part.isdecimal())


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
    if not drafted.spec.own_scope or not drafted.spec.written:
        return _followed_key(drafted, flow, keys)
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


def _followed_key(drafted: Draft, flow: Flow, keys: list[tuple[str, ...]]) -> tuple[str, ...]:
    """Give the key that follows from what a stream reads."""
    if drafted.operator == "dispatch":
        # In turn counts the rows of all keys, so it needs them in one order.
        return () if _deals_in_turn(drafted) else keys[0]
    if drafted.spec.all_promise and not any(flow.promises(name) for name in drafted.inputs):
        return tuple(column for column in keys[0] if all(column in key for key in keys))
    return _common_key(drafted, flow, keys)


def _common_key(drafted: Draft, flow: Flow, keys: list[tuple[str, ...]]) -> tuple[str, ...]:
    for name, key in zip(drafted.inputs, keys, strict=True):
        if key != keys[0]:
            (one, first), (two, other) = ((drafted.inputs[0], keys[0]), (name, key))
            came = f"{_scoped(flow, one, first)}, and {_scoped(flow, two, other)},"
            raise drafted.section.wrong(
                drafted.operator, came, "streams of one scope: all under `by: key` with the same key, or none"
            )
    return keys[0]


def _scoped(flow: Flow, name: str, key: tuple[str, ...]) -> str:
    """Say of what the order of a stream, and what it promises, holds."""
    told = "with CTIs" if flow.promises(name) else "in an order"
    return f"`{name}` {told} for {', '.join(key) or 'the whole stream'}"


def _imported_key(drafted: Draft, flow: Flow, own: tuple[str, ...]) -> tuple[str, ...]:
    """See that the CTIs that are imported bind what imports them."""
    for name in drafted.inputs[1:]:
        key, came = flow.key_of(name), of_one_key(flow, name)
        if came and not own:
            expected = "a stream with CTIs for the whole stream; or write `by: key` here too"
            raise drafted.section.wrong("import", came, expected)
        made = flow.owner(name)
        if own and not key and isinstance(made, Stream) and SPECS[made.operator].forgets_promises:
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
    if drafted.operator == "advance_time":
        settings = _advance_time(drafted, flow)
    else:
        read = read_settings(drafted.section, drafted.spec, _taken(drafted, flow))
        settings = read | _given(drafted, flow) | dict(drafted.made)
        if settings.pop("gathers", False):
            first = f"{drafted.name.rpartition('.')[0]}.0."
            dealing = dealt_alone(flow, drafted.inputs[0], _by(drafted, flow), first)
            if dealing:
                settings |= {"alone": True, "dealt_of": dealing.of, "dealt_numeric": dealing.numeric}
        _check_dispatch(drafted, flow)
    try:
        return policy_of(drafted.operator)(**settings)
    except PolicyError as problem:
        raise _refused(drafted, problem) from problem


def _check_dispatch(drafted: Draft, flow: Flow) -> None:
    """See that both edges of an event go to one instance, and that CTIs bind behind it what they were made for."""
    owner, numeric = flow.owner(drafted.inputs[0]) if drafted.inputs else None, drafted.made.get("numeric")
    asked = (*drafted.made.get("of", ()), *(_columns_of(numeric) if numeric else ()))
    if drafted.operator != "dispatch" or owner is None:
        return
    if owner.shape is not Shape.EDGE:
        came = of_one_key(flow, drafted.inputs[0]) if _deals_in_turn(drafted) else None
        if came:
            expected = f"`of: {', '.join(flow.key_of(drafted.inputs[0]))}`, or CTIs for the whole stream"
            raise drafted.section.wrong("dispatch", f"{came} dealt in turn", expected)
        return
    known = {*flow.key_of(drafted.inputs[0]), owner.event_id}
    strange = [column for column in asked if column not in known]
    if strange:
        came = f"edges of `{drafted.inputs[0]}` dispatched by `{strange[0]}`, which a start and its end may differ in,"
        raise drafted.section.wrong("dispatch", came, "columns of the key, the `event_id`, or broadcast")


def _deals_in_turn(drafted: Draft) -> bool:
    return drafted.operator == "dispatch" and drafted.made["style"] is enum_of("dispatch", "style")["IN_TURN"]


def _columns_of(expression: str) -> tuple[str, ...]:
    from pipelines.flows.expressions import parse_expression

    return parse_expression(expression).columns


def _given(drafted: Draft, flow: Flow) -> dict[str, Any]:
    """Give what follows from what a stream reads."""
    facts: dict[str, Callable[[], Any]] = {
        "shape": lambda: flow.owner(drafted.inputs[0]).shape,
        "shapes": lambda: tuple(flow.owner(name).shape for name in drafted.inputs),
        "ports": lambda: len(_ports(drafted, flow)),
        "ctis": lambda: merged_ctis(flow, drafted.inputs, _by(drafted, flow), _ports(drafted, flow)),
        "rules": lambda: rules_of(drafted.section, drafted.inputs[0], flow),
        "declared": lambda: declared_behind(flow, drafted.name, drafted.inputs),
    }
    return {name: facts[name]() for name in drafted.spec.given}


def _taken(drafted: Draft, flow: Flow) -> dict[str, str]:
    """Say which names a column that is made may not have, and why."""
    taken = dict.fromkeys(RESERVED, "every stream has")
    for read in drafted.inputs:
        taken |= {flow.owner(read).event_id or "": "tells events apart and stays"}
        taken |= dict.fromkeys(flow.key_of(read), "is the key and stays")
    return taken


def _advance_time(drafted: Draft, flow: Flow) -> dict[str, Any]:
    made, section = flow.owner(drafted.inputs[0]), drafted.section
    # What the flow says of a source replaces what the source says of itself, as a whole.
    declared = made.advancing if isinstance(made, Source) and drafted.is_bound else None
    dealt = flow.sources.get(made.inputs[0]) if isinstance(made, Stream) and made.operator == "dispatch" else None
    if drafted.is_bound and dealt is not None and dealt.advancing is not None:
        came = f"no `late` of its own (what source `{dealt.name}` says of CTIs does not go through instances)"
        raise section.wrong(None, came, "`late`, `every` and the rest in the module's stream")
    settings = advancing(section) if declared is None else dict(declared)
    generated = settings.pop("every", {})
    if generated or len(drafted.inputs) > 1 or flow.promises(drafted.inputs[0]):
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


def _refused(drafted: Draft, problem: PolicyError) -> Exception:
    outer, _, inner = problem.setting.partition(".")
    section, key = drafted.section, outer if drafted.section.has(outer) else drafted.operator
    if inner and section.has(outer):
        section, key = section.inner(outer, f"`{outer}` of {section.what}"), inner
    tree = section.tree.entries.get(key)
    came = f"`{key}: {section.text(key)}`" if isinstance(tree, Scalar) else f"{problem.setting} {problem.came!r}"
    return section.wrong(key, came, problem.required)
