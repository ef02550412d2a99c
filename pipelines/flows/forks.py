"""Where the branches of a flow part and meet again: the forks of each interleave, and who carries their turns.

A *fork* is a stream that all inputs of an interleave come from. A row that comes out of it begins a turn, and each
stream that reads it a branch; where the branches meet, rows stand turn by turn and in each turn branch by branch.

Rules of docs/semantics.md: X2, X10
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipelines.flows.model import Source, main_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipelines.flows.model import Flow, Stream

INTERLEAVE = "interleave"


@dataclass(frozen=True)
class Branch:
    """A part of what meets.

    `first` is the stream that reads the fork, the interleave itself where the fork is an input of it; empty where the
    inputs have no fork in common.
    """

    first: str
    inputs: tuple[int, ...]
    """Ports of the interleave that its rows come by."""
    inner: MeetingOfTurns | None
    """How these stand among themselves, where they are several and have a fork of their own."""


@dataclass(frozen=True)
class MeetingOfTurns:
    """Inputs of an interleave that meet."""

    fork: str
    """The stream that all come from; empty where there is none, as of what comes by several outputs of one operator."""
    branches: tuple[Branch, ...]
    """In the order in which the file declares them."""
    rounds: bool = False
    """The inputs are rounds of a loop: in a turn they stand one behind the other, whatever branch they came by."""
    beside: MeetingOfTurns | None = None
    """How rows stand that did not come out of the fork: by one that some inputs share besides, of another source."""

    def others(self) -> Iterator[MeetingOfTurns]:
        """Give those beside it, one behind the other."""
        if self.beside is not None:
            yield self.beside
            yield from self.beside.others()

    def forks(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Give its fork and those within it, each with the ports whose rows it orders."""
        if self.fork:
            yield self.fork, tuple(dict.fromkeys(port for branch in self.branches for port in branch.inputs))
        if self.beside is not None:
            yield from self.beside.forks()
        for branch in self.branches:
            if branch.inner is not None:
                yield from branch.inner.forks()


class _FlowGraph:
    """What comes from what, along rows."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self._behind: dict[str, frozenset[str]] = {}

    def reads(self, name: str) -> tuple[str, ...]:
        made = self.flow.owner(name)
        return () if isinstance(made, Source) else made.feeding

    def behind(self, name: str) -> frozenset[str]:
        """Name all that rows of a stream come from, itself among them."""
        if name not in self._behind:
            found = frozenset({name}).union(*(self.behind(read) for read in self.reads(name)))
            self._behind[name] = found
        return self._behind[name]

    def through(self, name: str, stream: str) -> frozenset[str]:
        """Name what rows of `name` come from that itself comes out of the operator of a stream; all without one."""
        behind = self.behind(name)
        return frozenset(each for each in behind if self.comes_through(each, stream)) if stream else behind

    def apart(self, names: frozenset[str], forks: frozenset[str]) -> frozenset[str]:
        """Keep the names of what has nothing to do with some forks: rows of neither come from the other."""
        related = ({name for name in names if fork in self.behind(name) or name in self.behind(fork)} for fork in forks)
        return names.difference(*related)

    def comes_through(self, name: str, stream: str) -> bool:
        """Say whether rows of `name` come out of the operator of a stream."""
        return not {stream, *self.flow.streams[stream].sides}.isdisjoint(self.behind(name))


def meetings(flow: Flow) -> dict[str, MeetingOfTurns]:
    """Say how the inputs of each interleave of a flow meet."""
    graph = _FlowGraph(flow)
    return {name: _inputs(graph, made) for name, made in flow.streams.items() if made.operator == INTERLEAVE}


def have_a_fork(flow: Flow, stream: Stream) -> bool:
    """Say whether all inputs of an interleave come from one stream, so that turns alone put them in order."""
    return bool(_inputs(_FlowGraph(flow), stream).fork)


def _inputs(graph: _FlowGraph, stream: Stream) -> MeetingOfTurns:
    """Say how the inputs of an interleave meet; its policy has the order of the file."""
    if stream.policy.rounds:  # type: ignore[attr-defined]
        rounds = (Branch(name, (port,), None) for port, name in enumerate(stream.inputs))
        return MeetingOfTurns(stream.policy.rounds, tuple(rounds), rounds=True)  # type: ignore[attr-defined]
    order = {name: place for place, name in enumerate((*graph.flow.sources, *stream.policy.declared))}  # type: ignore[attr-defined]
    parting, ports = _Parting(graph, stream, order), tuple(range(len(stream.inputs)))
    groups = parting.connected(ports, "")
    if len(groups) == 1:
        found = parting.meeting(ports, "")
        if found is not None:
            return found
        groups = [(port,) for port in ports]
    return MeetingOfTurns("", tuple(Branch("", group, parting.meeting(group, "")) for group in groups))


def _groups(behind: Mapping[int, frozenset[str]]) -> list[tuple[int, ...]]:
    """Part ports by what is behind them; where all share one thing they are one group."""
    if frozenset.intersection(*behind.values()):
        return [tuple(behind)]
    groups: list[tuple[set[int], frozenset[str]]] = []
    for port, mine in behind.items():
        group = next((group for group in groups if group[1] & mine), None)
        if group is None:
            groups.append(({port}, mine))
        else:
            groups[groups.index(group)] = (group[0] | {port}, group[1] & mine)
    return sorted(tuple(sorted(group)) for group, _ in groups)


@dataclass(frozen=True)
class _Parting:
    """Where the ways to the ports of one interleave part.

    Wherever a function has `through`, only what comes out of the operator of that stream is looked at; all where it is
    empty.
    """

    graph: _FlowGraph
    stream: Stream
    order: Mapping[str, int]
    """Where the file declares what is behind the interleave."""

    def place(self, name: str) -> int:
        return self.order.get(main_of(name), -1)

    def behind(self, port: int, through: str) -> frozenset[str]:
        """Name what rows of an input come from."""
        return self.graph.through(self.stream.inputs[port], through)

    def connected(self, ports: Sequence[int], through: str) -> list[tuple[int, ...]]:
        """Part inputs that have nothing behind them in common, not over others either."""
        groups: list[tuple[set[int], frozenset[str]]] = []
        for port in ports:
            mine = self.behind(port, through)
            near = [group for group in groups if group[1] & mine]
            groups = [group for group in groups if not group[1] & mine]
            groups.append(({port}.union(*(of for of, _ in near)), mine.union(*(names for _, names in near))))
        return sorted(tuple(sorted(group)) for group, _ in groups)

    def meeting(self, ports: tuple[int, ...], through: str) -> MeetingOfTurns | None:
        """Say how some inputs meet; None where they share nothing."""
        found = self.by_fork(ports, through, frozenset())
        if found is None and len(ports) > 1:
            # None is shared by all, as of two sources, or two outputs, and a stream of both.
            found = self.other_fork(ports, through, frozenset())
        if found is None or not found.fork:
            return found
        chain, taken = [found], frozenset({found.fork})
        while (other := self.other_fork(ports, through, taken)) is not None:
            chain.append(other)
            taken |= {other.fork}
        beside = None
        for each in reversed(chain):
            beside = replace(each, beside=beside)
        return beside

    def other_fork(self, ports: tuple[int, ...], through: str, taken: frozenset[str]) -> MeetingOfTurns | None:
        """Say how some of the inputs meet by another fork, that has nothing to do with those which are taken."""
        behind = {port: self.graph.apart(self.behind(port, through), taken) for port in ports}
        sharing = {port: names for port, names in behind.items() if names}
        met = (self.by_fork(group, through, taken) for group in (_groups(sharing) if sharing else ()))
        forks = {each.fork for each in met if each is not None and each.fork}
        if not forks:
            return None
        fork = min(forks, key=lambda name: (self.place(name), name))
        return self.by_fork(tuple(port for port in ports if fork in behind[port]), through, taken)

    def by_fork(self, ports: tuple[int, ...], through: str, taken: frozenset[str]) -> MeetingOfTurns | None:
        """Say how some inputs meet by their nearest fork that has nothing to do with those which are taken."""
        if len(ports) == 1:
            return None
        graph = self.graph
        common = graph.apart(frozenset.intersection(*(self.behind(port, through) for port in ports)), taken)
        if through and not common and not taken:
            return self.outputs(ports, through)
        # A stream that rows of an input pass by is no fork of it: they would have no turn. By another output of its
        # operator they may: which of these comes first is no matter of turns.
        met = frozenset(name for name in common if not self.passed_by(ports, name, common))
        common = met or frozenset(name for name in common if through and main_of(name) == through)
        nearest = [name for name in common if not any(name in graph.behind(other) - {other} for other in common)]
        if not nearest:
            return None
        fork = min(nearest, key=lambda name: (self.place(name), name))
        return MeetingOfTurns(fork, tuple(self.branches(ports, fork)))

    def branches(self, ports: tuple[int, ...], fork: str) -> list[Branch]:
        """Give the ways from a fork to some ports, in the order of the file."""
        streams = self.graph.flow.streams
        firsts = [name for name, made in streams.items() if fork in made.feeding and name != self.stream.name]
        found = []
        for first in sorted(firsts, key=self.place):
            mine = tuple(port for port in ports if self.graph.comes_through(self.stream.inputs[port], first))
            if mine:
                found.append(Branch(first, mine, self.meeting(mine, first)))
        own = tuple(port for port in ports if self.stream.inputs[port] == fork)
        if own:
            found.append(Branch(self.stream.name, own, None))
        return sorted(found, key=lambda branch: self.place(branch.first))

    def outputs(self, ports: tuple[int, ...], through: str) -> MeetingOfTurns | None:
        """Say how inputs meet that come by several outputs of one operator; None where none of these parts again."""
        groups = self.connected(ports, through)
        if len(groups) == 1:
            return None
        parted = [Branch("", group, self.meeting(group, through)) for group in groups]
        return None if all(branch.inner is None for branch in parted) else MeetingOfTurns("", tuple(parted))

    def passed_by(self, ports: tuple[int, ...], name: str, common: frozenset[str]) -> bool:
        """Say whether rows of what all inputs come from reach one of them by a way on which `name` does not lie."""
        above = (common & self.graph.behind(name)) - {name}

        def reached(each: str, seen: set[str]) -> bool:
            if each == name or each in seen:
                return False
            seen.add(each)
            return each in above or any(reached(read, seen) for read in self.graph.reads(each))

        return any(reached(self.stream.inputs[port], set()) for port in ports)


def declared_behind(flow: Flow, name: str, inputs: Sequence[str]) -> tuple[str, ...]:
    """Name the streams that come to an interleave, and itself, in the order of the file.

    Args:
        flow: with all of them, and the order of its file.
        name: of the interleave.
        inputs: what it reads.
    """
    graph = _FlowGraph(flow)
    behind = frozenset().union(*(graph.behind(read) for read in inputs))
    owners = {main_of(each) for each in behind} | {name}
    return tuple(each for each in flow.file_order if each in owners)


@dataclass(frozen=True)
class CarriedTurns:
    """Which turns a stream of a flow hands on, and which it is ordered by."""

    carried: tuple[str, ...]
    """Forks whose turn its rows carry."""
    needed: tuple[str, ...]
    """Forks that order it, of an interleave."""


def turns(flow: Flow, meet: Mapping[str, MeetingOfTurns]) -> dict[str, CarriedTurns]:
    """Give for each stream which turns it has to do with; a flow without an interleave has none.

    Args:
        flow: the model.
        meet: how the inputs of each interleave meet.
    """
    graph = _FlowGraph(flow)
    carried: dict[str, list[str]] = {name: [] for name in flow.streams}
    needed: dict[str, tuple[str, ...]] = {}
    for met, how in meet.items():
        stream, forks = flow.streams[met], list(how.forks())
        needed[met] = tuple(dict.fromkeys(fork for fork, _ in forks))
        for fork, ports in forks:
            before = {source for source in flow.sources if stands_before(flow, source, fork)}
            for port, read in enumerate(stream.inputs):
                for name in graph.behind(read):
                    owner = main_of(name)
                    if owner not in carried or fork in carried[owner]:
                        continue
                    comes = port in ports and name != fork and fork in graph.behind(name)
                    sources = graph.behind(name) & flow.sources.keys()
                    # Rows that come from elsewhere have no turn; some stand before those of the fork, some after.
                    if comes or (sources & before and sources - before):
                        carried[owner].append(fork)
    order = {name: place for place, name in enumerate((*flow.sources, *flow.tables()))}
    return {
        name: CarriedTurns(tuple(sorted(forks, key=order.__getitem__)), needed.get(name, ()))
        for name, forks in carried.items()
    }


def is_wide(flow: Flow, fork: str, meet: Mapping[str, MeetingOfTurns]) -> bool:
    """Say whether a turn of a fork needs time and key beside the place: numbered per key, it meets under a shorter one.

    Args:
        flow: of both.
        fork: a source, stream or side stream.
        meet: how the inputs of each interleave meet.
    """
    made = flow.owner(fork)
    if isinstance(made, Source) or not made.by:
        return False
    there = (flow.streams[name] for name, how in meet.items() if fork in dict(how.forks()))
    return any(not set(made.by) <= set(stream.by) for stream in there)


def stands_before(flow: Flow, name: str, fork: str) -> bool:
    """Say whether rows that come from elsewhere come before a fork's rows of their arrival: their source stands first.

    Args:
        flow: of both.
        name: a source, stream or side stream that does not come from the fork.
        fork: a source, stream or side stream.
    """
    places = {source: place for place, source in enumerate(flow.sources)}
    first = [min((places[source] for source in flow.sources_of(each)), default=len(places)) for each in (name, fork)]
    return first[0] < first[1]
