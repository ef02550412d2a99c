"""Turns: which row of a fork each row comes from, carried beside the rows up to the interleave that they order.

They are columns of tables in a task, and of files between two stages. They are in no table of Delta, in no content hash
and in no carry: a row that was held belongs to the turn of the row that let it go.

Rules of docs/semantics.md: X10, X11
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import longs, ticks
from pipelines.engine.files.ordered import key_ranks
from pipelines.engine.tasks.by_time import DAY, highest_times, numbering
from pipelines.flows.forks import is_wide, meetings, stands_before, turns
from pipelines.operators.rows import INFINITY, NULL

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from pipelines.flows.forks import MeetingOfTurns
    from pipelines.flows.model import Flow, Stream
    from pipelines.operators.rows import Longs

    Bools = npt.NDArray[np.bool_]

BEFORE, AFTER = NULL, INFINITY
"""Turns before and behind all rows of a fork."""
MARK = "turn"


@dataclass(frozen=True)
class TurnColumns:
    """The columns that say which turn of one fork a row belongs to.

    Names have a bracket, which no column of a flow has that expressions can name.
    """

    fork: str
    key: tuple[pa.Field, ...] = ()
    """Key of the fork, where its rows are numbered by it and meet under a shorter one."""
    outer: tuple[str, ...] = ()
    """Forks that its rows come out of."""

    @property
    def turn(self) -> str:
        """Name the column of the place of the fork's row."""
        return f"{MARK}({self.fork})"

    @property
    def branch(self) -> str:
        """Name the column that says by which stream the row left the fork, as its number among the flow's streams."""
        return f"{MARK}({self.fork}) branch"

    @property
    def time(self) -> str:
        """Name the column of how far time had come in the fork's key."""
        return f"{MARK}({self.fork}) time"

    @property
    def keys(self) -> tuple[str, ...]:
        """Name the columns of the fork's key."""
        return tuple(f"{MARK}({self.fork}) {field.name}" for field in self.key)

    @property
    def fields(self) -> list[pa.Field]:
        """Give all of them."""
        wide = [pa.field(self.time, pa.int64())] if self.key else []
        named = [field.with_name(name) for field, name in zip(self.key, self.keys, strict=True)]
        return [pa.field(self.turn, pa.int64()), pa.field(self.branch, pa.int64()), *wide, *named]

    def constant(self, rows: int, turn: int) -> dict[str, pa.Array]:
        """Give them for rows of no turn, before or behind all."""
        number = pa.array(np.full(rows, turn, dtype=np.int64))
        return {
            field.name: number if field.name in {self.turn, self.time} else pa.nulls(rows, field.type)
            for field in self.fields
        } | {self.branch: pa.array(np.full(rows, -1, dtype=np.int64))}


def is_turn(name: str) -> bool:
    """Say whether a column of a table in a task says which turn a row belongs to."""
    return name.startswith(f"{MARK}(")


class TurnsOfFlow:
    """What all tasks know of the turns of a flow.

    Args:
        flow: the model.
        known: payload of each source, stream and side stream.
    """

    def __init__(self, flow: Flow, known: Mapping[str, pa.Schema]) -> None:
        self.flow = flow
        self.meetings = meetings(flow)
        self._of = turns(flow, self.meetings)
        forks = dict.fromkeys(fork for each in self._of.values() for fork in (*each.carried, *each.needed))
        wide = {fork for fork in forks if is_wide(flow, fork, self.meetings)}
        keys = {fork: tuple(known[fork].field(name) for name in flow.key_of(fork)) for fork in wide}
        outer = {fork: {made.name for made in flow.behind(fork)} - {flow.owner(fork).name} for fork in forks}
        self._columns = {
            fork: TurnColumns(
                fork, keys.get(fork, ()), tuple(each for each in forks if flow.owner(each).name in behind)
            )
            for fork, behind in outer.items()
        }
        self._number = {name: number for number, name in enumerate(flow.streams)}

    def carried(self, name: str) -> list[TurnColumns]:
        """Give the turns that rows of a source, stream or side stream carry."""
        if name in self.flow.sources or not self._columns:
            return []
        return [self._columns[fork] for fork in self._of[self.flow.owner(name).name].carried]

    def fields(self, name: str) -> list[pa.Field]:
        """Give the columns of these."""
        return [field for columns in self.carried(name) for field in columns.fields]

    def number(self, name: str) -> int:
        """Give the number by which a stream is known as the first of a branch."""
        return self._number[name]

    def columns(self, fork: str) -> TurnColumns:
        """Give the columns of a fork's turns."""
        return self._columns[fork]

    def handed(self, reader: Stream, given: str, rows: pa.Table) -> pa.Table:
        """Give rows of an input with the turns that the stream that reads them has to do with.

        Args:
            reader: which reads them.
            given: the source, stream or side stream that they are rows of.
            rows: in its order, with the turns that it carries.
        """
        mine = self._of[reader.name]
        wanted = [self._columns[fork] for fork in dict.fromkeys((*mine.carried, *mine.needed))]
        if not wanted and not self.carried(given):
            return rows
        there = {columns.fork for columns in self.carried(given)}
        plain = rows.drop_columns([field.name for field in self.fields(given)])
        for columns in wanted:
            if columns.fork == given:
                made = self._begun(reader, columns, plain)
            elif columns.fork in there:
                made = {field.name: rows[field.name] for field in columns.fields}
            else:
                first = stands_before(self.flow, given, columns.fork)
                made = columns.constant(rows.num_rows, BEFORE if first else AFTER)
            for field in columns.fields:
                plain = plain.append_column(field, made[field.name])
        return plain

    def _begun(self, reader: Stream, columns: TurnColumns, rows: pa.Table) -> dict[str, pa.Array]:
        """Begin a turn with each row of a fork, in the branch of who reads it."""
        made = {
            columns.turn: rows["place"],
            columns.branch: pa.array(np.full(rows.num_rows, self.number(reader.name), dtype=np.int64)),
        }
        if columns.key:
            key = numbering(self.flow, columns.fork)
            made[columns.time] = pa.array(highest_times(rows, key, DAY))
            made |= {name: rows[field.name] for name, field in zip(columns.keys, columns.key, strict=True)}
        return made


def released(table: pa.Table, columns: list[TurnColumns], at: Longs, end: int) -> dict[str, pa.Array]:
    """Give the turns of rows that leave: those of the rows that let them go.

    Args:
        table: the rows of a block, with their turns.
        columns: of the turns.
        at: for each row that leaves, the row of the block that let it go; below 0 where the clock did.
        end: from which number on it was the end of the stream.
    """
    came, ended = (at >= 0) & (at < table.num_rows), at >= end
    index = pa.array(np.where(came, at, 0), mask=~came)
    found: dict[str, pa.Array] = {}
    for each in columns:
        taken = {field.name: table[field.name].take(index) for field in each.fields}
        for name in (each.turn, *((each.time,) if each.key else ())):
            edge = pa.array(np.where(ended, AFTER, BEFORE))
            taken[name] = pc.coalesce(taken[name], edge)
        taken[each.branch] = pc.fill_null(taken[each.branch], -1)
        found |= taken
    return found


def raised(turns: dict[str, pa.Array], columns: list[TurnColumns], arrival: Longs, key: Longs) -> dict[str, pa.Array]:
    """Have a turn that is below one of an earlier row of its stream, key and arrival count as that one, there and on.

    Where rows of two sources meet otherwise than the file has them, what reads the stream goes by how they stand.

    Args:
        turns: of the rows of a stream, in its order.
        columns: of these.
        arrival: of each row.
        key: a number of each row's key.
    """
    later, found = np.diff(arrival), dict(turns)
    wrong = [each for each in columns if not _ascends(longs(turns[each.turn]), later, each)]
    if not wrong:
        return found
    own = np.lexsort((np.arange(len(arrival)), arrival, key))
    begins = _begins(own, (key, arrival))
    came = {each.fork: longs(turns[each.branch]) >= 0 for each in columns}
    for each in wrong:
        names = [each.turn, *([each.time, *each.keys] if each.key else [])]
        told = pa.table({name: turns[name] for name in names})
        ranks = _ranks([*_wide(told, each), longs(told[each.turn])])
        # Rows that went by the fork on another way of what it comes from are told apart by that.
        passed = ~came[each.fork] & np.any([came[name] for name in each.outer if name in came], axis=0)
        highest = _lifted(np.where(passed, -1, ranks), own, begins)
        counts_as = np.where(passed, np.arange(len(own)), _last_itself(passed | (ranks != highest), own))
        taken = told.take(pa.array(counts_as))
        found |= {name: taken[name] for name in names}
    return found


def _ascends(turn: Longs, later: Longs, columns: TurnColumns) -> bool:
    """See at a glance that no turn is below one of its arrival; of turns that are told by time and key nothing is seen.

    Args:
        turn: of the rows.
        later: by how much each row but the first came later than the one before it.
        columns: of the turn.
    """
    return not columns.key and bool((later >= 0).all()) and not bool(((later == 0) & (turn[1:] < turn[:-1])).any())


def _begins(own: Longs, by: tuple[Longs, ...]) -> Longs:
    """Say with 1 where in an order another group of rows begins, else 0."""
    told = np.stack([each[own] for each in by])
    begins = np.ones(len(own), dtype=np.int64)
    begins[1:] = (np.diff(told, axis=1) != 0).any(axis=0)
    return begins


def in_turn(table: pa.Table, meeting: MeetingOfTurns, of: TurnsOfFlow, side: Longs, key: Longs) -> Longs:
    """Give the order in which rows of several inputs meet in an interleave.

    Args:
        table: rows of all inputs, those of each in its order, with the turns that are needed.
        meeting: how the inputs meet.
        of: the turns of the flow.
        side: the port of each row.
        key: a number of each row's key.
    """
    arrival = ticks(table["arrival"])
    if meeting.fork:
        rows = np.arange(table.num_rows)
        return _by_turns(table, rows, meeting, of, (arrival, side, key))
    parts = []
    for number, branch in enumerate(meeting.branches):
        rows = np.flatnonzero(np.isin(side, branch.inputs))
        if branch.inner is not None:
            rows = _by_turns(table, rows, branch.inner, of, (arrival, side, key))
        # By key first, as whoever counts in an arrival and a key wants rows of both together.
        counted = rows[np.lexsort((np.arange(len(rows)), key[rows], arrival[rows]))]
        highest = np.empty(table.num_rows, dtype=np.int64)
        highest[counted] = _highest(table.take(pa.array(counted)), key[counted])
        parts.append((rows, highest[rows], np.full(len(rows), number), np.arange(len(rows))))
    together, times, numbers, own = (np.concatenate(each) for each in zip(*parts, strict=True))
    order: Longs = together[np.lexsort((own, numbers, times, arrival[together]))]
    return order


def _highest(rows: pa.Table, key: Longs) -> Longs:
    keyed = rows.select(["kind", "arrival", "event_time", "event_end"]).append_column("key", pa.array(key))
    return highest_times(keyed, ("key",), DAY)


def _by_turns(
    table: pa.Table, rows: Longs, meeting: MeetingOfTurns, of: TurnsOfFlow, by: tuple[Longs, Longs, Longs]
) -> Longs:
    """Order some rows by the turns of a fork, branch by branch, then as each branch says."""
    arrival, side, key = by
    levels, taken = _Levels(len(rows)), _Rows(table, rows, side[rows], of)
    _levels(taken, meeting, levels, 0, np.arange(len(rows)))
    arrived, ports = arrival[rows], taken.ports
    own = np.lexsort((rows, arrived, key[rows], ports))
    begins = _begins(rows[own], (side, key, arrival))
    ranks = _ranks(levels.numbers)
    if (_lifted(ranks, own, begins) != ranks).any():
        ranks = np.zeros(len(rows), dtype=np.int64)
        for depth, level in enumerate(levels.numbers):
            before = _ranks([ranks, level])
            ranks = _lifted(before, own, begins)
            moved = ranks != before
            levels.take_over(depth, moved, _last_itself(moved, own))
    order: Longs = rows[np.lexsort((rows, ports, ranks, arrived))]
    return order


def _last_itself(moved: Bools, own: Longs) -> Longs:
    """Give of each row the last one up to it, in its own order, that counts as itself."""
    found = np.empty(len(own), dtype=np.int64)
    found[own] = own[np.maximum.accumulate(np.where(moved[own], 0, np.arange(len(own))))]
    return found


class _Turn(NamedTuple):
    """What rows say of the turns of one fork."""

    turn: Longs
    branch: Longs
    whole: Longs
    """The turn with time and key where it has these, as one number: a row that counts as one of another turn has all of
    it."""


class _Rows:
    """Rows that are to be ordered, and what they say of the turns of each fork, made out once.

    Args:
        table: that they are of.
        rows: which.
        ports: the port of each of them.
        of: the turns of the flow.
    """

    def __init__(self, table: pa.Table, rows: Longs, ports: Longs, of: TurnsOfFlow) -> None:
        self.ports = ports
        self.of = of
        self._table = table
        self._at = None if len(rows) == table.num_rows else pa.array(rows)
        self._known: dict[str, _Turn] = {}

    def turn(self, fork: str) -> _Turn:
        """Give what they say of a fork's turns, numbered over all of them: several branches may part again by one."""
        if fork not in self._known:
            columns = self.of.columns(fork)
            told = self._table.select([field.name for field in columns.fields])
            told = told if self._at is None else told.take(self._at)
            turn, branch = longs(told[columns.turn]), longs(told[columns.branch])
            whole = _ranks([*_wide(told, columns), turn]) if columns.key else turn
            self._known[fork] = _Turn(turn, branch, whole)
        return self._known[fork]


class _Levels:
    """What rows are compared by, level behind level, as numbers.

    Args:
        rows: how many there are.
    """

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self.numbers: list[Longs] = []
        self._meetings: list[Longs] = []
        """By level, of each row, which meeting's levels begin there; 0 where none does."""
        self._known: dict[tuple[str, ...], int] = {}

    def compare(self, depth: int, mine: Longs, level: Longs, begins: MeetingOfTurns | None) -> None:
        """Compare some rows by numbers at a depth, which may be the first of a meeting; the others are alike there."""
        # All rows at once need no place looked up.
        at = slice(None) if len(mine) == self._rows else mine
        if len(self.numbers) == depth:
            self.numbers.append(np.zeros(self._rows, dtype=np.int64))
            self._meetings.append(np.zeros(self._rows, dtype=np.int64))
        self.numbers[depth][at] = level
        if begins is not None:
            alike = (begins.fork, *(branch.first for branch in begins.branches))
            self._meetings[depth][at] = self._known.setdefault(alike, len(self._known) + 1)

    def take_over(self, depth: int, moved: Bools, of: Longs) -> None:
        """Have rows that count as of another branch stand in it as others do, unless both part again in one way.

        The fork within a branch puts its rows in order, and no others.

        Args:
            depth: of the level that is compared.
            moved: which rows count there as another one.
            of: by row, the one that it counts as.
        """
        begins = self._meetings[depth + 1] if depth + 1 < len(self.numbers) else None
        if begins is None or not (taken := moved & (begins != begins[of])).any():
            return
        for each in (*self.numbers[depth + 1 :], *self._meetings[depth + 1 :]):
            each[taken] = each[of[taken]]


def _lifted(ranks: Longs, own: Longs, begins: Longs) -> Longs:
    """Have no branch reordered: what stands below an earlier row of its input, arrival and key counts as that one.

    Args:
        ranks: of the rows.
        own: the rows by input, key and arrival, each in its order.
        begins: 1 where another one of these begins in `own`, else 0.
    """
    before = np.cumsum(begins) * (len(ranks) + 1)
    lifted = np.empty_like(ranks)
    lifted[own] = np.maximum.accumulate(before + ranks[own]) - before
    return lifted


def _levels(rows: _Rows, meeting: MeetingOfTurns, levels: _Levels, depth: int, mine: Longs) -> int:
    """Lay out what `mine`, numbers among `rows`, are compared by: turns fork by fork, then branches, then within these.

    A row has a turn of the fork that it came out of, and of those before it in the chain. Branches, and what orders
    rows within them, stand at one depth for all forks, so that a row that counts as one of another fork's turn stays in
    order.

    Returns:
        The number of levels there are now.
    """
    first_depth = depth

    def compare(level: Longs) -> None:
        nonlocal depth
        levels.compare(depth, mine, level, meeting if depth == first_depth else None)
        depth += 1

    ports = rows.ports[mine]
    chain = [meeting, *meeting.others()]
    # What came out of none of them is of the first.
    whose, place = np.full(len(mine), -1), _first_of(ports, meeting)[ports]
    left = np.ones(len(mine), dtype=bool)
    for number, each in enumerate(chain if meeting.fork else ()):
        there = np.flatnonzero(left)
        turn, branch, whole = rows.turn(each.fork)
        if len(there) < len(branch):
            turn, branch, whole = (told[mine[there]] for told in (turn, branch, whole))
        # What is told apart already stands before all turns of the others, as what came before their forks does.
        every = np.full(len(mine), BEFORE, dtype=np.int64)
        every[there] = whole
        compare(every)
        own = (branch >= 0) & (whose[there] < 0)
        came = there[own]
        whose[came] = number
        place[came] = _branches(branch[own], ports[came], each, rows.of)
        # What counts as behind all its fork's rows is told from others by the row of another fork that it is behind.
        left[came] = turn[own] == AFTER
    # What counts as a row of another fork than its own stands behind all of that row, whatever branch they came by.
    compare((left & (whose >= 0)).astype(np.int64))
    whose = np.maximum(whose, 0)
    compare(ports if meeting.rounds else place)
    deepest = depth
    for number, each in enumerate(chain):
        for first, parted in enumerate(each.branches):
            if parted.inner is not None:
                within = mine[(whose == number) & (place == first) & np.isin(ports, parted.inputs)]
                deepest = max(deepest, _levels(rows, parted.inner, levels, depth, within))
    return deepest


def _branches(branch: Longs, side: Longs, meeting: MeetingOfTurns, of: TurnsOfFlow) -> Longs:
    """Say which branch of a fork rows are of; what did not come out of it is of the first that its port is in."""
    places = _places(branch, [of.number(each.first) for each in meeting.branches])
    found: Longs = np.where(places < 0, _first_of(side, meeting)[side], places)
    return found


def _first_of(side: Longs, meeting: MeetingOfTurns) -> Longs:
    """Give by port the first branch that it is in."""
    first = np.full(int(side.max(initial=0)) + 1, -1)
    for number, each in reversed([*enumerate(meeting.branches)]):
        first[[port for port in each.inputs if port < len(first)]] = number
    return first


def _places(numbers: Longs, named: list[int]) -> Longs:
    """Give the place of each number among those named; -1 where it is not among them."""
    by_number = np.argsort(np.array(named, dtype=np.int64), kind="stable")
    ascending = np.array(named, dtype=np.int64)[by_number]
    at = np.minimum(np.searchsorted(ascending, numbers), len(ascending) - 1)
    places: Longs = np.where(ascending[at] == numbers, by_number[at], -1)
    return places


def _wide(rows: pa.Table, columns: TurnColumns) -> list[Longs]:
    """Give time and key of the fork's rows, as numbers that compare as they do."""
    if not columns.key:
        return []
    time = longs(rows[columns.time])
    # No key is null but that of what did not come out of the fork; in a key that no time has come to yet, time is.
    known = np.flatnonzero(np.asarray(pc.is_valid(rows[columns.keys[0]])))
    rank = np.where(time == AFTER, AFTER, BEFORE)
    rank[known] = key_ranks(rows.take(pa.array(known)).select(list(columns.keys)), columns.keys)
    return [time, rank]


def _ranks(levels: list[Longs]) -> Longs:
    """Number rows so that numbers compare as rows of columns do, the first column first; equal rows have one number."""
    order = np.lexsort(tuple(reversed(levels)))
    changes = np.zeros(len(order), dtype=np.int64)
    for each in levels:
        changes[1:] |= each[order][1:] != each[order][:-1]
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.cumsum(changes)
    return ranks
