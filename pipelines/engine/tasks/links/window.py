"""The link of windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import TIME, longs, ticks, times
from pipelines.engine.tasks.carry import CHANGE, COMMIT, CarryChange, stamped
from pipelines.engine.tasks.link import Delta
from pipelines.engine.tasks.links.meeting import ResultLink
from pipelines.engine.tasks.numbered import KnownNumbers, NumberedValues, changes
from pipelines.engine.tasks.payload import PayloadError, column_of, require_comparable
from pipelines.operators.window import Measure, Measured, Sums, sums

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipelines.flows.model import Stream
    from pipelines.operators.leaving import Leaving
    from pipelines.operators.rows import Longs
    from pipelines.operators.scan import Blind

OWN = frozenset({"age", "window_start"})
"""Columns by which the carry tells open windows apart."""
MOST_DIGITS, WHOLE_DIGITS = 18, 19
"""Of a decimal that is measured, which is added as a whole number of its last digit, and of any that 64 bits hold."""
SUM_DIGITS = 28
"""Of a sum of decimals, as Spark has it of the longest ones: whatever 64 bits hold fits."""


class WindowLink(ResultLink):
    """Windows: what is measured goes in by row, what is known of each window and group comes out by accumulator."""

    def _resume(self, carry: Mapping[str, pa.Table]) -> None:
        policy = self.operator.policy
        self.measures = policy.parsed()
        self._is_real = [self._counts_in_floats(measure, column) for _, measure, column in self.measures]
        self._scales = [self._scale(measure, column) for _, measure, column in self.measures]
        self.group = [self.inner.field(name) for name in policy.group if name not in self.stream.by]
        self.groups = NumberedValues([*self.keys.schema, *self.group]) if self.group else None
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
            value = ordered[f"{name}_value"]
            target[:, m] = _units(value) if pa.types.is_decimal(value.type) else np.asarray(value)
        self.operator.resume(laid)

    def _counts_in_floats(self, measure: Measure, column: str | None) -> bool:
        if measure is Measure.COUNT or column is None:
            return False
        return bool(pa.types.is_floating(self.inner.field(column).type))

    def _scale(self, measure: Measure, column: str | None) -> int | None:
        """Give the digits behind the point of a decimal that is measured; None of what is none."""
        kind = None if measure is Measure.COUNT or column is None else self.inner.field(column).type
        return kind.scale if kind is not None and pa.types.is_decimal(kind) else None

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
            kind, scale = self.schema.field(name).type, self._scales[m]
            taken[name] = _measured(known, m, measure, made, kind, scale, self._is_real[m])
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
        for (name, _, _), value in zip(self.measures, self._kinds(), strict=True):
            fields += [pa.field(f"{name}_count", pa.int64()), pa.field(f"{name}_value", value)]
        return pa.schema(fields)

    def _kinds(self) -> Iterator[pa.DataType]:
        """Give the type of each accumulator in the carry; a decimal says by how much its whole number counts."""
        for is_real, scale in zip(self._is_real, self._scales, strict=True):
            whole = pa.int64() if scale is None else pa.decimal128(WHOLE_DIGITS, scale)
            yield pa.float64() if is_real else whole

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
        for m, kind in enumerate(self._kinds()):
            value = (known.real if self._is_real[m] else known.whole)[which, m]
            columns += [pa.array(known.counted[which, m]), _of_units(value, kind)]
        return pa.table(columns, schema=self._windows_schema())

    def _known(self) -> KnownNumbers:
        """Give what is known of open windows, rows as those of `_windows`."""
        which, known = self.operator.open_windows(), self.operator.sums
        of = known.of[which]
        parts = known.counted[which], known.whole[which], known.real[which].view(np.int64)
        return KnownNumbers(of["scope"], of["age"], np.concatenate(parts, axis=1))

    @staticmethod
    def made(stream: Stream, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """Give its payload columns; see `Link.made`."""
        policy: Any = stream.policy
        fields = {name: inputs[0].field(name) for name in stream.by}
        for name in policy.group:
            fields[name] = column_of(stream, inputs[0], name, "`group` names columns of its input, which")
            require_comparable(stream, "group", fields[name])
        for name, measure, column in policy.parsed():
            if name in fields:
                raise PayloadError(
                    stream.name, f"`{name}` is a column of its group already", "call the measure otherwise"
                )
            fields[name] = pa.field(name, _measured_type(stream, inputs[0], measure, column))
        return pa.schema(list(fields.values()))

    @staticmethod
    def own_columns(stream: Stream) -> Sequence[str]:
        """Name those by which windows are told apart; see `Link.own_columns`."""
        return [name for name in stream.policy.group if name in OWN]  # type: ignore[attr-defined]


def _measured_type(stream: Stream, schema: pa.Schema, measure: Measure, column: str | None) -> pa.DataType:
    if column is None or measure is Measure.COUNT:
        if column is not None:
            column_of(stream, schema, column, "`measures` name columns of its input, which")
        return pa.int64()
    came = column_of(stream, schema, column, "`measures` name columns of its input, which").type
    number = pa.types.is_integer(came) or pa.types.is_floating(came) or pa.types.is_decimal(came)
    ordered = number or pa.types.is_date32(came) or pa.types.is_timestamp(came)
    if not (ordered if measure in (Measure.MIN, Measure.MAX) else number):
        wanted = "a whole number, a float, a date or a time" if measure in (Measure.MIN, Measure.MAX) else "a number"
        problem = f"{measure.name.lower()}({column}) needs {wanted}; `{column}` is {came}"
        raise PayloadError(stream.name, problem, "`project:` it with a CAST first")
    if pa.types.is_decimal(came) and came.precision > MOST_DIGITS:
        problem = (
            f"{measure.name.lower()}({column}) needs at most {MOST_DIGITS} digits of a decimal; `{column}` is {came}"
        )
        raise PayloadError(stream.name, problem, "`project:` it with a CAST first")
    if measure in (Measure.MIN, Measure.MAX):
        return came
    if measure is Measure.SUM and pa.types.is_decimal(came):
        return pa.decimal128(SUM_DIGITS, came.scale)
    return pa.int64() if measure is Measure.SUM and pa.types.is_integer(came) else pa.float64()


def _numbers(column: pa.ChunkedArray) -> Any:  # noqa: ANN401 - an array of int64 or float64
    if pa.types.is_floating(column.type):
        return np.asarray(pc.fill_null(column.cast(pa.float64()), 0.0))
    if pa.types.is_decimal(column.type):
        return _units(column)
    whole = column.cast(pa.int32()).cast(pa.int64()) if pa.types.is_date32(column.type) else column.cast(pa.int64())
    return np.asarray(pc.fill_null(whole, 0), dtype=np.int64)


def _units(column: pa.ChunkedArray) -> Longs:
    """Give decimals as whole numbers of their last digit, 0 for null: of 128 bits the lower 64 hold all of so few."""
    wide = pc.fill_null(column.cast(pa.decimal128(38, column.type.scale)), 0).combine_chunks()
    words = np.frombuffer(wide.buffers()[1], dtype=np.int64) if len(wide) else np.zeros(0, dtype=np.int64)
    return words[2 * wide.offset : 2 * (wide.offset + len(wide)) : 2]


def _of_units(value: np.ndarray, kind: pa.DataType) -> pa.Array:
    """Give numbers their type: whole ones as decimals whose last digit they count, where it is that."""
    if not pa.types.is_decimal(kind):
        return pa.array(value)
    words = pa.py_buffer(np.stack([value, value >> 63], axis=1))
    return pa.Array.from_buffers(kind, len(value), [None, words])


def _measured(  # noqa: PLR0913 - one column of a result
    known: Sums,
    m: int,
    measure: Measure,
    made: Longs,
    kind: pa.DataType,
    scale: int | None,
    is_real: bool,  # noqa: FBT001 - a fact
) -> pa.Array:
    count = known.counted[made, m]
    absent = made < 0
    if measure is Measure.COUNT:
        return pa.array(count, mask=absent)
    value = known.real[made, m] if is_real else known.whole[made, m]
    absent = absent | (count <= 0)
    if measure is Measure.MEAN:
        return pa.array(value / np.where(absent, 1, count) / 10 ** (scale or 0), mask=absent)
    if pa.types.is_decimal(kind):
        return pc.if_else(pa.array(absent), None, _of_units(value, kind))
    if pa.types.is_date32(kind):
        return pa.array(value.astype(np.int32), mask=absent).cast(kind)
    return pa.array(value, mask=absent).cast(kind)
