"""What several instances of a module make of its memory: whole, divided or repeated, found operator by operator.

An instance remembers what it got. Where its rows are told apart by columns that an operator's memory goes by, no two
instances know a part of the same; where they are not, each counts a part.

Rules of docs/semantics.md: X14
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import gcd
from typing import TYPE_CHECKING, Any, NamedTuple

from pipelines.flows.expressions import parse_expression
from pipelines.flows.forks import INTERLEAVE, have_a_fork
from pipelines.flows.model import Source, main_of
from pipelines.operators.specs import SPECS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pipelines.flows.model import Flow, ModuleUse, Stream


INSTANCE = re.compile(r"(?<=[A-Za-z_0-9])\.\d+(?=\.[A-Za-z_])")
"""The number of an instance, within the name of one of its streams."""


@dataclass(frozen=True)
class Divided:
    """What is to be said of a flow's instances."""

    notes: tuple[str, ...]
    warnings: tuple[str, ...]


class Dealing(NamedTuple):
    """How rows go to instances by what they say; two inputs that are dealt alike have a value in the same instance."""

    of: tuple[str, ...]
    numeric: str

    @property
    def by(self) -> frozenset[str]:
        """Give the columns that tell the rows of instances apart."""
        return frozenset(self.of or parse_expression(self.numeric).columns)


@dataclass(frozen=True)
class Share:
    """What of a stream one instance has: the whole of it, or a part."""

    whole: bool
    dealing: Dealing | None = None
    """How a part was dealt; None: by nothing that a row says, as in turn, or in more than one way."""
    repeats: bool = False
    """Of a part: other rows of it every instance has, so that those leave once an instance."""

    @property
    def by(self) -> frozenset[str] | None:
        """Give the columns by which rows go to instances; None where there are none."""
        return self.dealing.by if self.dealing else None


WHOLE = Share(whole=True)


def divided(flow: Flow) -> Divided:
    """Say of each reference with several instances what of its memory is divided, and what it repeats.

    Args:
        flow: with all its streams.
    """
    notes: list[str] = []
    warnings: list[str] = []
    for reference in (each for outer in flow.modules for each in outer.all if each.instances > 1):
        parted, again, n = list(_parted(flow, reference)), _repeated(flow, reference), reference.instances
        lost, keyless = _lost(flow, reference), list(_keyless(flow, reference))
        idle = _idle(flow, reference)
        mixed = [
            f"{reference.name}.{out} has rows of inputs that every instance has whole beside rows that are dealt out, "
            f"so those come {n} times; deal out all that meets there, or none"
            for out in again.partly
        ]
        kept = _kept_for_ever(flow, reference)
        lines = [*map(_as_declared, (*parted, *mixed, *kept, *idle)), *keyless]
        warnings += [f"{flow.where(reference.name)}: {line}" for line in lines]
        if not parted:
            same = not again.partly and not again.whole
            told = f"{n} instances {'give the rows of one' if same else 'divide nothing'}"
            told += ", in another order" if same and lost else ""
            told += ", without the columns that are warned of" if same and keyless else ""
            told += ", but for timers" if same and again.timers else ""
            notes.append(f"{reference.name}: nothing that it remembers is divided: {told}")
        notes += [
            f"{reference.name}.{out}: it comes of inputs that every instance has whole, so its rows come {n} times"
            for out in again.whole
        ]
        notes += [
            f"{reference.name}.{out}: every instance gets the timers, which no key of theirs deals out, so they come "
            f"{n} times"
            for out in again.timers
        ]
    # Instances of an instance are alike, so what is said of one is said once; `said_once` sees to it for warnings.
    return Divided(tuple(dict.fromkeys(map(_as_declared, notes))), tuple(warnings))


def _as_declared(text: str) -> str:
    """Give a sentence with streams named as the file does, without the numbers of instances.

    >>> _as_declared("all.0.each.hours counts, and 1.5 of all.1.hours")
    'all.each.hours counts, and 1.5 of all.hours'
    """
    return INSTANCE.sub("", text)


def said_once(warnings: Iterable[str]) -> tuple[str, ...]:
    """Say once what is said of several instances, named as the file does; other warnings stay as they are.

    >>> said_once(["f.yaml:3: r.0.open is odd", "f.yaml:3: r.1.open is odd", "f.yaml:4: r.0.shut is odd"])
    ('f.yaml:3: r.open is odd', 'f.yaml:4: r.0.shut is odd')
    """
    alike: dict[tuple[str, str], list[str]] = {}
    for each in warnings:
        where, _, said = each.partition(": ")
        alike.setdefault((where, _as_declared(said)), []).append(each)
    return tuple(same[0] if len(same) == 1 else ": ".join(told) for told, same in alike.items())


class _Repeated(NamedTuple):
    """Outputs of a reference of which something leaves once an instance."""

    whole: list[str]
    partly: list[str]
    timers: list[str]
    """Timers alone."""


def _repeated(flow: Flow, reference: ModuleUse) -> _Repeated:
    shares, ports = _shares(flow, reference), set(reference.inputs.values())
    found = {out: _share(shares, name) for out, name in reference.outputs.items()}
    whole = [out for out, share in found.items() if share.whole]
    timers = [out for out, name in reference.outputs.items() if _timers_for_all(flow, name, ports) and out not in whole]
    return _Repeated(whole, [out for out, share in found.items() if share.repeats], timers)


def _first(flow: Flow, reference: ModuleUse) -> list[Stream]:
    """Give the streams of the first instance, those of modules within it too."""
    return [each for name, each in flow.streams.items() if name.startswith(f"{reference.name}.0.")]


def _lost(flow: Flow, reference: ModuleUse) -> set[str]:
    """Name the columns of keys that rows lose on their way to the instances, as in turn: so they lose its order."""
    dealt = [each for each in _first(flow, reference) if each.operator == "dispatch"]
    return {column for each in dealt for column in flow.key_of(each.inputs[0]) if column not in flow.key_of(each.name)}


def _keyless(flow: Flow, reference: ModuleUse) -> Iterator[str]:
    """Say which columns a projection leaves out of rows that have lost their key, and would keep of others."""
    lost = _lost(flow, reference)
    for each in _first(flow, reference):
        policy: Any = each.policy
        if SPECS[each.operator].names_columns and not flow.key_of(each.name):
            gone = sorted(lost - {name for name, _ in policy.parsed()})
            if gone:
                told = f"{reference.name}: dealt in turn its rows have no key, so the `project` {each.name} leaves out"
                yield f"{told} `{gone[0]}`: to keep it, name it among `columns`, `{gone[0]}: {gone[0]}`"


def _idle(flow: Flow, reference: ModuleUse) -> Iterator[str]:
    """Say where instances within an instance get no rows, because both are dealt by the same values."""
    shares, ports = _shares(flow, reference), set(reference.inputs.values())
    for each in _inside(flow, reference):
        if each.operator != "dispatch" or each.name in ports:
            continue
        policy: Any = each.policy
        around, dealing = _share(shares, each.inputs[0]).dealing, _dealt(policy).dealing
        shared = gcd(policy.instances, reference.instances)
        if dealing is not None and dealing == around and shared > 1:
            inner, _, port = each.name.rsplit(".", 2)
            told = f"{inner}: `{port}` is dealt by {', '.join(sorted(dealing.by))} as the instances of {reference.name}"
            yield (
                f"{told} around it are, so in each of those {policy.instances // shared} of its {policy.instances} get "
                "rows: deal by another column, or take numbers of instances that have no factor in common"
            )


def dealt_alone(flow: Flow, name: str, key: Sequence[str], within: str) -> Dealing | None:
    """Say how rows were dealt where each key of what instances give comes by one of them alone; None where it does not.

    Args:
        flow: with all that the stream comes from.
        name: what the first instance gives, or sets aside.
        key: by which what all give is numbered.
        within: how names of its streams begin.
    """
    share = _dealt_behind(flow, name, within)
    return share.dealing if share.dealing and not share.repeats and set(share.dealing.by) <= set(key) else None


def _dealt_behind(flow: Flow, name: str, within: str) -> Share:
    """Give what one instance has of a stream, by the dispatches of its own inputs."""
    known: dict[str, Share] = {}

    def look(read: str) -> Share:
        made = flow.owner(read)
        if made.name not in known:
            known[made.name] = asked(made)
        return known[made.name]

    def asked(made: Source | Stream) -> Share:
        if isinstance(made, Source) or not made.name.startswith(within):
            return WHOLE
        if made.operator == "dispatch" and "." not in made.name.removeprefix(within):
            return _dealt(made.policy)
        return _met(made, [look(read) for read in made.feeding])

    return look(name)


def _inside(flow: Flow, reference: ModuleUse) -> Iterator[Stream]:
    """Give the streams of the first instance, in order."""
    prefix = f"{reference.name}.0."
    yield from (stream for name, stream in flow.streams.items() if name.startswith(prefix))


def _share(shares: dict[str, Share], name: str) -> Share:
    return shares.get(main_of(name), WHOLE)


def _shares(flow: Flow, reference: ModuleUse, otherwise: Dealing | None = None) -> dict[str, Share]:
    """Give by stream what the first instance has of it, where inputs are dealt as they are, or otherwise."""
    shares: dict[str, Share] = {}
    ports = set(reference.inputs.values())
    for stream in _inside(flow, reference):
        if stream.name in ports:
            dealt = _dealt(stream.policy)
            shares[stream.name] = dealt if dealt.whole or otherwise is None else replace(dealt, dealing=otherwise)
            continue
        shares[stream.name] = _met(stream, [_share(shares, read) for read in stream.feeding])
    return shares


def _met(stream: Stream, parts: list[Share]) -> Share:
    """Give the share of what a stream makes of several."""
    # A join pairs rows that every instance has with those that one has: each pair is one instance's.
    meets = stream.operator != "join" and _mixes(parts) and not _waits_for_its_own(stream, parts)
    repeats = meets or any(part.repeats for part in parts)
    return replace(_kept(stream, _together(parts)), repeats=repeats)


def _mixes(parts: list[Share]) -> bool:
    return len({part.whole for part in parts}) > 1


def _waits_for_its_own(stream: Stream, parts: list[Share]) -> bool:
    """Say whether rows of a key leave only in the instance that the key is dealt to, though every instance has some.

    A union by key takes what comes of one side for a key that the other never had, and never lets it go.
    """
    if stream.operator != "union" or not _mixes(parts):
        return False
    return all(part.by is not None and part.by <= {*stream.by} for part in parts if not part.whole)


def _kept_for_ever(flow: Flow, reference: ModuleUse) -> Iterator[str]:
    """Say which unions keep rows that every instance has for keys that are dealt to another one."""
    shares = _shares(flow, reference)
    for stream in _inside(flow, reference):
        if _waits_for_its_own(stream, [_share(shares, read) for read in stream.feeding]):
            yield (
                f"{stream.name} has rows of inputs that every instance has whole beside rows that are dealt out by its "
                "key; for keys that are dealt to another instance it keeps them for ever: deal out all that meets "
                "there by its key"
            )


def _dealt(policy: Any) -> Share:  # noqa: ANN401 - of a dispatch
    if policy.style.name == "BROADCAST":
        return WHOLE
    if policy.style.name == "IN_TURN":
        return Share(whole=False)
    return Share(whole=False, dealing=Dealing(policy.of, policy.numeric))


def _timers_for_all(flow: Flow, name: str, ports: set[str]) -> bool:
    """Say whether timers leave in a stream that every instance got: a timer has a key, and nothing else to go by."""
    left, seen = [name], set[str]()
    while left:
        each = left.pop()
        made = flow.owner(each)
        if each in seen or isinstance(made, Source) or SPECS[made.operator].drops_timers:
            continue
        seen.add(each)
        if each not in ports:
            left += made.feeding
            continue
        by = _dealt(made.policy).by
        if flow.has_timers(made.inputs[0]) and (by is None or not by <= set(made.by)):
            return True
    return False


def _together(parts: list[Share]) -> Share:
    """Give what an instance has of several streams at once: by what tells the rows of all of them apart."""
    dealt = [part for part in parts if not part.whole]
    if not dealt:
        return WHOLE
    return dealt[0] if all(part.dealing == dealt[0].dealing for part in dealt) else Share(whole=False)


def _kept(stream: Stream, share: Share) -> Share:
    """Give the share of what a stream makes: columns that it gives another meaning tell nothing apart any more."""
    policy: Any = stream.policy
    if share.whole or share.by is None:
        return share
    if SPECS[stream.operator].names_columns:
        return Share(whole=False, dealing=_renamed(share.dealing, stream))
    if stream.operator == "window":
        return share if share.by <= {*stream.by, *policy.group} else Share(whole=False)
    return share


def _renamed(dealing: Dealing | None, stream: Stream) -> Dealing | None:
    """Say how rows were dealt by the columns that a projection makes; None where a column gets another meaning."""
    policy: Any = stream.policy
    names = {told.strip(): name for name, told in policy.parsed()} | {name: name for name in stream.by}
    if dealing is None or not dealing.by <= names.keys():
        return None
    if dealing.of:
        return Dealing(tuple(names[column] for column in dealing.of), "")
    return dealing if all(names[column] == column for column in dealing.by) else None


def _parted(flow: Flow, reference: ModuleUse) -> Iterator[str]:
    """Say which memories of the module are divided, a sentence a stream."""
    shares = _shares(flow, reference)
    ports = set(reference.inputs.values())
    for stream in _inside(flow, reference):
        if stream.name in ports or not remembers_something(flow, stream):
            continue
        parts = [_share(shares, read) for read in stream.feeding]
        dealt = [part for part in parts if not part.whole]
        scope = _scope(stream)
        if not dealt or (stream.operator == "join" and len(dealt) == 1):
            continue
        if len({part.dealing for part in dealt}) == 1 and all(
            part.by is not None and part.by <= scope for part in dealt
        ):
            continue
        inner = stream.name.removeprefix(f"{reference.name}.0.")
        remedy = _remedy(flow, reference, stream.name, scope)
        yield f"{reference.name}.{inner} {_remembers(stream, scope)}, and {_apart(dealt, scope)}; {remedy}"


def remembers_something(flow: Flow, stream: Stream) -> bool:
    """Say whether rows that an operator got before matter to those that come."""
    if stream.operator == INTERLEAVE:
        # What has no fork in common meets by how far each side's time has come in an arrival.
        return not have_a_fork(flow, stream)
    return bool(SPECS[stream.operator].remembers)


def _scope(stream: Stream) -> frozenset[str]:
    """Give the columns that one memory of an operator goes by."""
    policy: Any = stream.policy
    beside = SPECS[stream.operator].remembers_by
    return frozenset({*stream.by, *(getattr(policy, beside) if beside else ())})


def _remembers(stream: Stream, scope: frozenset[str]) -> str:
    remembers = SPECS[stream.operator].remembers or "puts in order by time, for"
    return f"{remembers} {', '.join(sorted(scope)) or 'all rows together'}"


def _apart(dealt: list[Share], scope: frozenset[str]) -> str:
    if any(part.by is None for part in dealt):
        return "nothing that its rows say tells which instance has them: each has a part of it"
    by = next((part.by for part in dealt if part.by and not part.by <= scope), None)
    if by is None:
        return "its inputs are dealt in different ways: what belongs together comes to different instances"
    *others, last = (f"`{column}`" for column in sorted(by))
    dealing = f"{', '.join(others)} and {last} together deal" if others else f"{last} deals"
    return f"{dealing} its rows to several instances: each has a part of it"


def _remedy(flow: Flow, reference: ModuleUse, name: str, scope: frozenset[str]) -> str:
    """Say which column deals out what belongs together, if one of those that it goes by does so under its own name."""
    for column in sorted(scope):
        shares = _shares(flow, reference, Dealing((column,), ""))
        parts = [_share(shares, read) for read in flow.streams[name].feeding]
        if all(part.whole or (part.by is not None and part.by <= scope) for part in parts):
            return f"dispatch by what it goes by, `{{of: {column}}}`"
    return f"take one instance, or dispatch by `broadcast`: then its rows come {reference.instances} times"
