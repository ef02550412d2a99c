"""Links of the operators that events go through under CTIs: what each lays out for its scan, and takes back from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import RESERVED, TIME, kinds, longs, ticks, times
from pipelines.engine.columnar.keys import canonical_keys
from pipelines.engine.tasks.carry import CHANGE, COMMIT, CarryChange, stamped
from pipelines.engine.tasks.deduplicating import DeduplicateLink
from pipelines.engine.tasks.link import Delta, Link
from pipelines.engine.tasks.numbered import KnownNumbers, Values, changes
from pipelines.engine.tasks.payload import SIDE, readable
from pipelines.operators.passing import REFUSED
from pipelines.operators.rows import NULL, Kind
from pipelines.operators.window import Measure, Sums, sums
from pipelines.operators.window import Values as Measured

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipelines.flows.model import Stream
    from pipelines.operators.leaving import Leaving
    from pipelines.operators.rows import Longs
    from pipelines.operators.scan import Blind

NOBODY = -1


def link_of(  # noqa: PLR0913 - as a link is built
    stream: Stream,
    payload: Sequence[pa.Schema],
    source: str | None,
    commit: int,
    carry: Mapping[str, pa.Table],
    blind: Blind,
) -> Link:
    """Make the link that a stream's operator needs; arguments as of `Link`."""
    kind = ImportLink if stream.operator == "advance_time" and len(stream.inputs) > 1 else LINKS.get(stream.operator)
    return (kind or Link)(stream, payload, source, commit, carry, blind)


class ImportLink(Link):
    """Advance time under the CTIs of another stream; of that one nothing else is taken, nor accounted for."""

    def _of_side(self, table: pa.Table, port: int) -> pa.Table:
        if port == 0:
            return table
        promises = table.filter(pc.equal(table["kind"], "cti"))
        return promises.select([name for name in promises.column_names if name in {*RESERVED, *self.stream.by}])

    def _taken_in(self, fresh: pa.Table) -> int:
        return int((longs(fresh[SIDE]) == 0).sum())

    def _key_ids(self, table: pa.Table) -> Longs:
        """Give the id of each row's key; CTIs that bind every key have none."""
        if not self.everywhere:
            return self.keys.ids(table)
        own = longs(table[SIDE]) == 0
        ids = np.full(table.num_rows, NOBODY, dtype=np.int64)
        ids[own] = self.keys.ids(table.filter(pa.array(own)))
        return ids

    everywhere = False
    """Whether the CTIs that are imported bind every key."""

    def bind(self, sent: pa.Table | None) -> None:
        """Know the newest CTI of a whole stream that was imported before the span.

        Args:
            sent: the carry of the stream that sends them; None where it has none.
        """
        self.everywhere = True
        if sent is not None and sent.num_rows:
            self.operator.bound[0] = ticks(sent["promised" if "promised" in sent.column_names else "cti"])[0]


class ExpressionLink(Link):
    """An operator that asks expressions of its events; timers and CTIs are none."""

    def _said(self, told: str, table: pa.Table) -> pa.Array | pa.ChunkedArray:
        """Give what an expression gives for rows."""
        from pipelines.engine.tasks.expressions import evaluate
        from pipelines.flows.expressions import parse_expression

        payload = pa.schema([table.schema.field(name) for name in self._payload])
        return evaluate(parse_expression(told), table.select(readable(payload).names))

    def _are_events(self, table: pa.Table) -> pa.ChunkedArray:
        return pc.invert(pc.is_in(table["kind"], pa.array(["timer", "cti"])))


class FilterLink(ExpressionLink):
    """Refuse the events of which the condition is not true; what is no event passes."""

    def _ports(self, table: pa.Table) -> Longs:
        condition: Any = self.stream.policy
        held = pc.fill_null(self._said(condition.where, table), False)  # noqa: FBT003 - a value
        refused = pc.and_(self._are_events(table), pc.invert(held))
        return np.where(np.asarray(refused, dtype=bool), REFUSED, 0)


class ProjectLink(ExpressionLink):
    """Compute the columns of events; timers and CTIs have none."""

    def _columns(self, names: Sequence[str], out: Leaving, table: pa.Table) -> pa.Table:
        policy: Any = self.stream.policy
        columns = {name: table[name] for name in names if name in table.column_names}
        for name, told in policy.parsed():
            none = pa.scalar(None, self.schema.field(name).type)
            columns[name] = pc.if_else(self._are_events(table), self._said(told, table), none)
        return self._taken(pa.table({name: columns[name] for name in names}), out.src)


class MeetingLink(Link):
    """Rows of several sides; event ids are of one block, for what is open is among the held rows."""

    def _taken_in(self, fresh: pa.Table) -> int:
        return int(pc.sum(pc.not_equal(fresh["kind"], "cti")).as_py() or 0)

    def _event_ids(self, table: pa.Table) -> Longs:
        ids = np.zeros(table.num_rows, dtype=np.int64)
        edges = np.flatnonzero(np.isin(kinds(table["kind"]), (Kind.START, Kind.END)))
        if not len(edges):
            return ids
        taken, first = table.take(pa.array(edges)), 1
        port = self._ports(taken)
        for side, column in enumerate(self.stream.event_ids):
            mine = np.flatnonzero(port == side)
            if column and len(mine):
                found = self._named(taken.take(pa.array(mine)), column)
                ids[edges[mine]] = first + found
                first += int(found.max(initial=-1)) + 1
        return ids

    def _named(self, edges: pa.Table, column: str) -> Longs:
        """Number edges by scope and event id; a null is an id like any other."""
        found = _codes(edges, (*self.stream.by, column))
        if (found >= 0).all():
            return found
        scopes = _codes(edges, self.stream.by) if self.stream.by else np.zeros(len(found), dtype=np.int64)
        return np.where(found < 0, found.max() + 1 + scopes, found)


class ResultLink(MeetingLink):
    """Results that are rows of nobody's: under `due_at` the scan says what else they were made of."""

    def _due(self, out: Leaving, table: pa.Table) -> pa.Array:  # noqa: ARG002 - as every link is asked
        return pa.nulls(len(out.src), TIME)

    def _made_of(self, out: Leaving) -> Longs:
        """Give what the scan says of each row that leaves; NOBODY where it is no result."""
        return np.where(out.due_at == NULL, NOBODY, out.due_at)

    def _without_identity(self, rows: int) -> dict[str, pa.Array]:
        """Give the columns that say which landed row a row is."""
        return {"landed_at": pa.nulls(rows, TIME), "landed_place": pa.nulls(rows, pa.int64())}


class JoinLink(ResultLink):
    """A join: rows are matched by scope and the columns under `on`, results are a left row and a right row."""

    def _lay(self, table: pa.Table, key: Longs) -> None:
        on = tuple(dict.fromkeys((*self.stream.by, *self.operator.policy.on)))
        steering = np.full(len(key) + 2, NOBODY, dtype=np.int64)
        by_key = on == tuple(self.stream.by) and not any(table[name].null_count for name in on)
        steering[: len(key)] = key if by_key else _codes(table, on)
        self.operator.match = steering

    def _columns(self, names: Sequence[str], out: Leaving, table: pa.Table) -> pa.Table:
        left, right = self._sides
        mine = [name for name in names if name in left]
        others = [name for name in names if name not in left and name in right]
        taken = {
            **dict(zip(mine, self._taken(table.select(mine), out.src).columns, strict=True)),
            **dict(zip(others, self._taken(table.select(others), self._made_of(out)).columns, strict=True)),
            **self._without_identity(len(out.src)),
        }
        return pa.table({name: taken[name] for name in names})

    @property
    def _sides(self) -> tuple[frozenset[str], frozenset[str]]:
        """Name the payload columns that are taken from the left row, and those from the right one."""
        left, right = (frozenset(schema.names) for schema in self.payload)
        return left, right - left


class WindowLink(ResultLink):
    """Windows: what is measured goes in by row, what is known of each window and group comes out by accumulator."""

    def _resume(self, carry: Mapping[str, pa.Table]) -> None:
        policy = self.operator.policy
        self.measures = policy.parsed()
        self._is_real = [self._counts_in_floats(measure, column) for _, measure, column in self.measures]
        self.group = [self.inner.field(name) for name in policy.group if name not in self.stream.by]
        self.groups = Values([*self.keys.schema, *self.group]) if self.group else None
        carried = carry.get("windows")
        if carried is not None:
            self._take_up(carried)

    def renew(self, commit: int, blind: Blind) -> None:
        """Begin another commit with the carry as it stands."""
        super().renew(commit, blind)
        self._windows_before = self._windows(), self._known()

    def _take_up(self, carried: pa.Table) -> None:
        ordered = carried.take(pc.sort_indices(carried, sort_keys=[("age", "ascending")]))
        laid = sums(ordered.num_rows, len(self.measures))
        laid.of["scope"][:] = self.keys.ids(ordered)
        laid.of["group"][:] = self._group_ids(ordered, laid.of["scope"])
        laid.of["at"][:] = ticks(ordered["window_start"]) // self.operator.policy.hop
        laid.of["age"][:] = longs(ordered["age"])
        for m, (name, _, _) in enumerate(self.measures):
            laid.counted[:, m] = longs(ordered[f"{name}_count"])
            target = laid.real if self._is_real[m] else laid.whole
            target[:, m] = np.asarray(ordered[f"{name}_value"])
        self.operator.resume(laid)

    def _counts_in_floats(self, measure: Measure, column: str | None) -> bool:
        if measure is Measure.COUNT or column is None:
            return False
        return bool(pa.types.is_floating(self.inner.field(column).type))

    def _group_ids(self, table: pa.Table, key: Longs) -> Longs:
        """Give the dense id of each row's scope and group."""
        return key if self.groups is None else self.groups.ids(table)

    def _group_columns(self, groups: pa.Array) -> dict[str, pa.ChunkedArray]:
        """Give the columns of groups by their ids, null for none."""
        if self.groups is None:
            return {}
        rows = self.groups.rows
        return {field.name: rows[field.name].take(groups) for field in self.group}

    def _lay(self, table: pa.Table, key: Longs) -> None:
        rows, wide = len(key) + 2, len(self.measures)
        group = np.zeros(rows, dtype=np.int64)
        group[: len(key)] = self._group_ids(table, key)
        whole, real = np.zeros((wide, rows), dtype=np.int64), np.zeros((wide, rows))
        given = np.zeros((wide, rows), dtype=np.bool_)
        for m, (_, measure, column) in enumerate(self.measures):
            given[m, : len(key)] = True if column is None else np.asarray(pc.is_valid(table[column]))
            if column is not None and measure is not Measure.COUNT:
                target = real if self._is_real[m] else whole
                target[m, : len(key)] = _numbers(table[column])
        measured = np.array([int(measure) for _, measure, _ in self.measures], dtype=np.int64)
        is_real = np.array(self._is_real, dtype=np.bool_)
        self.operator.values = Measured(group, measured, is_real, whole, real, given)

    def _columns(self, names: Sequence[str], out: Leaving, table: pa.Table) -> pa.Table:  # noqa: ARG002 - as every link is asked
        made, known = self._made_of(out), self.operator.sums
        taken = self._without_identity(len(made))
        groups = pa.array(known.of["group"][made], mask=made < 0)
        taken |= self._group_columns(groups)
        for m, (name, measure, _) in enumerate(self.measures):
            taken[name] = _measured(known, m, measure, made, self.schema.field(name).type, self._is_real[m])
        return pa.table({name: taken[name] for name in names})

    def base(self) -> dict[str, pa.Table]:
        """Give the whole carry as tables, a base for whoever comes next."""
        return super().base() | {"windows": stamped(self._windows(), self._commit, CarryChange.BASE)}

    def delta(self) -> Delta:
        """Give what of the carry changed since the commit began."""
        known = super().delta()
        rows, came, went = changes((self._windows(), self._known()), self._windows_before, self._commit)
        return Delta(known.tables | {"windows": pa.concat_tables(rows)}, known.content + came - went)

    def part_schemas(self) -> dict[str, pa.Schema]:
        """Give the schema of each carry table that this stream may have."""
        return super().part_schemas() | {"windows": pa.schema([COMMIT, CHANGE, *self._windows_schema()])}

    def _windows_schema(self) -> pa.Schema:
        fields = [*self.keys.schema, pa.field("age", pa.int64()), pa.field("window_start", TIME), *self.group]
        for (name, _, _), is_real in zip(self.measures, self._is_real, strict=True):
            value = pa.float64() if is_real else pa.int64()
            fields += [pa.field(f"{name}_count", pa.int64()), pa.field(f"{name}_value", value)]
        return pa.schema(fields)

    def _windows(self) -> pa.Table:
        """Give the accumulators of open windows, a row each."""
        which, known = self.operator.open_windows(), self.operator.sums
        groups = pa.array(known.of["group"][which])
        columns: list[pa.Array | pa.ChunkedArray] = list(
            self.keys.table().take(pa.array(known.of["scope"][which])).columns
        )
        columns = columns if self.stream.by else []
        columns += [pa.array(known.of["age"][which]), times(known.of["at"][which] * self.operator.policy.hop)]
        columns += self._group_columns(groups).values()
        for m, is_real in enumerate(self._is_real):
            value = known.real if is_real else known.whole
            columns += [pa.array(known.counted[which, m]), pa.array(value[which, m])]
        return pa.table(columns, schema=self._windows_schema())

    def _known(self) -> KnownNumbers:
        """Give what is known of open windows, rows as those of `_windows`."""
        which, known = self.operator.open_windows(), self.operator.sums
        of = known.of[which]
        parts = known.counted[which], known.whole[which], known.real[which].view(np.int64)
        return KnownNumbers(of["scope"], of["age"], np.concatenate(parts, axis=1))


def _codes(table: pa.Table, names: Sequence[str]) -> Longs:
    """Number rows by the values of some columns, densely; -1 where one of them is null."""
    spelled = canonical_keys([table[name].combine_chunks() for name in names])
    encoded = (
        spelled.dictionary_encode() if isinstance(spelled, pa.Array) else spelled.combine_chunks().dictionary_encode()
    )
    return np.asarray(pc.fill_null(encoded.indices.cast(pa.int64()), -1), dtype=np.int64)


def _numbers(column: pa.ChunkedArray) -> Any:  # noqa: ANN401 - an array of int64 or float64
    if pa.types.is_floating(column.type):
        return np.asarray(pc.fill_null(column.cast(pa.float64()), 0.0))
    whole = column.cast(pa.int32()).cast(pa.int64()) if pa.types.is_date32(column.type) else column.cast(pa.int64())
    return np.asarray(pc.fill_null(whole, 0), dtype=np.int64)


def _measured(  # noqa: PLR0913 - one column of a result
    known: Sums,
    m: int,
    measure: Measure,
    made: Longs,
    kind: pa.DataType,
    is_real: bool,  # noqa: FBT001 - a fact
) -> pa.Array:
    count = known.counted[made, m]
    absent = made < 0
    if measure is Measure.COUNT:
        return pa.array(count, mask=absent)
    value = known.real[made, m] if is_real else known.whole[made, m]
    absent = absent | (count <= 0)
    if measure is Measure.MEAN:
        return pa.array(value / np.where(absent, 1, count), mask=absent)
    if pa.types.is_date32(kind):
        return pa.array(value.astype(np.int32), mask=absent).cast(kind)
    return pa.array(value, mask=absent).cast(kind)


LINKS: dict[str, type[Link]] = {
    "filter": FilterLink,
    "project": ProjectLink,
    "union": MeetingLink,
    "join": JoinLink,
    "window": WindowLink,
    "deduplicate": DeduplicateLink,
}
