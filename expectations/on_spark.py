"""The judge on Spark, for intervals too large for one machine: one query a table, whatever it has of laws."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from math import inf
from sys import float_info
from typing import TYPE_CHECKING, ClassVar

from expectations.given import FARTHEST, SAFE, Given
from expectations.laws import JUDGED, columns_of, marks, quoted
from expectations.views import DROPPED, LANDED, ROWS, STREAM, Counts, kinds_asked, needed_columns, told_by
from pipelines.flows.expressions import is_for_spark, parse_expression

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DecimalType

    from expectations.laws import Law
    from expectations.views import Truth

MICROS_A_DAY = 86_400_000_000


@dataclass(frozen=True, kw_only=True)
class SparkView:
    """One table as a frame."""

    rows: DataFrame
    """All columns of the stream, in any order and partitioning."""
    before: pa.Table | None = None
    truth: Truth | None = None
    """Asked for `where` of a flow's own checks, in Spark's workers."""

    def marks(self, laws: Sequence[Law]) -> DataFrame:
        """As `View` has it."""
        return self._answer(marks(laws, ROWS), columns_of(laws))

    def ask(self, query: str, columns: Sequence[str]) -> pa.Table:
        """As `View` has it."""
        return self._answer(query, columns).toArrow()

    def whole(self, arrivals: Sequence[int]) -> pa.Table:
        """As `View` has it."""
        wanted = ", ".join(str(int(tick)) for tick in arrivals)
        return self.rows.where(f"UNIX_MICROS(`arrival`) IN ({wanted})").toArrow()

    @property
    def schema(self) -> pa.Schema:
        """As `View` has it."""
        from pyspark.sql.pandas.types import to_arrow_schema

        return to_arrow_schema(self.rows.schema, timezone="UTC")

    knows_decimals: ClassVar[bool] = True

    def chosen(
        self,
        columns: Sequence[str] | None,
        where: str,
        key: Sequence[str] = (),
        how: Given = Given.NEAREST,
    ) -> DataFrame:
        """As `View` has it."""
        from pyspark.sql import functions as sql

        wanted = self.rows.columns if columns is None else needed_columns((*columns, *key), where)
        rows = self.rows.select(*(sql.col(quoted(name)) for name in wanted))
        kinds = kinds_asked(where)
        rows = rows if kinds is None else rows.where(sql.col("kind").isin(list(kinds)))
        if where and self.truth is not None:
            rows = self._true(self.truth, where, rows)
        if columns is None:
            return rows
        at, _, *keys = told_by(key)
        copies = {name: sql.col(quoted(column)) for name, column in zip(keys, key, strict=True)}
        asked = {name: _as_asked(rows, name, how) for name in columns if name in rows.columns}
        frame = rows.withColumns({at: sql.unix_micros("arrival"), **copies, **asked})
        return _without_noise(frame, [name for name in asked if name not in key]) if how is Given.FINITE else frame

    def can_choose(self, where: str) -> bool:
        """As `View` has it: Spark itself chooses, and so that it scans the rows once."""
        if not where or self.truth is None or kinds_asked(where) is None or not is_for_spark(parse_expression(where)):
            return False
        self.truth(where, self.schema.empty_table())
        return True

    def _true(self, truth: Truth, where: str, rows: DataFrame) -> DataFrame:
        """Keep the rows of which an expression is true: by Spark where it can be asked, else by workers of Python."""
        if not is_for_spark(parse_expression(where)):
            return rows.mapInArrow(partial(_true, truth, where), rows.schema)
        from pyspark.sql.pandas.types import to_arrow_schema

        # What does not fit the columns is told here, in the same words.
        truth(where, to_arrow_schema(rows.schema, timezone="UTC").empty_table())
        return rows.where(where)

    def _answer(self, query: str, columns: Sequence[str]) -> DataFrame:
        session = self.rows.sparkSession
        self._batch(columns).createOrReplaceTempView(ROWS)
        try:
            return session.sql(query)
        finally:
            session.catalog.dropTempView(ROWS)

    def _batch(self, columns: Sequence[str]) -> DataFrame:
        """Put rows and what binds from before them into one frame, told apart by `__pulseline_judged`."""
        from pyspark.sql import functions as sql

        rows = self.rows.select(*(sql.col(quoted(name)) for name in columns))
        judged = rows.withColumn(JUDGED, sql.lit(True))  # noqa: FBT003 - the value of the column
        if self.before is None:
            return judged
        known = [name for name in columns if name in self.before.column_names]
        before = rows.sparkSession.createDataFrame(self.before.select(known))
        return judged.unionByName(before.withColumn(JUDGED, sql.lit(False)), allowMissingColumns=True)  # noqa: FBT003


def _as_asked(rows: DataFrame, name: str, how: Given) -> Column:
    """Give a column as a check is asked of it."""
    from pyspark.sql import functions as sql
    from pyspark.sql import types

    kind, column = rows.schema[name].dataType, sql.col(quoted(name))
    if how is Given.TICKS and isinstance(kind, types.DateType):
        return sql.unix_date(column).cast("bigint") * sql.lit(MICROS_A_DAY)
    if how is Given.TICKS and isinstance(kind, types.TimestampType):
        return sql.unix_micros(column)
    casts: dict[type[types.DataType], dict[Given, str]] = {
        types.DateType: {Given.INSTANTS: "timestamp"},
        types.DecimalType: {Given.TEXT: "string", Given.FINITE: "double"},
        # Great Expectations know no spread of these.
        types.ByteType: dict.fromkeys(Given, "int"),
        types.ShortType: dict.fromkeys(Given, "int"),
    }
    if how in casts.get(type(kind), {}):
        return column.cast(casts[type(kind)][how])
    if isinstance(kind, types.DecimalType) and how is not Given.DECIMALS:
        return _near(column, kind)
    if how is Given.FINITE and isinstance(kind, types.DoubleType | types.FloatType):
        near = sql.greatest(sql.least(column, sql.lit(FARTHEST)), sql.lit(-FARTHEST))
        return sql.when(sql.abs(column) < sql.lit(inf), near)
    return _as_text(rows, name) if how is Given.TEXT else column


def _without_noise(frame: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Give 0 for values that are all equal, as `given` does: their mean may be another float."""
    from pyspark.sql import functions as sql
    from pyspark.sql.types import NumericType

    numbers = [name for name in columns if isinstance(frame.schema[name].dataType, NumericType)]
    ends = [end(quoted(name)) for name in numbers for end in (sql.min, sql.max)]
    found = frame.agg(*ends).first() if ends else ()
    least, most = (found or ())[::2], (found or ())[1::2]
    alike = [name for name, low, high in zip(numbers, least, most, strict=True) if low == high]
    return frame.withColumns({name: sql.col(quoted(name)) * 0.0 for name in alike})


def _near(column: Column, kind: DecimalType) -> Column:
    """Give the nearest floats of decimals, and of what is not what it is read as one beside it, as `given` does."""
    from pyspark.sql import functions as sql

    near = column.cast("double")
    if kind.precision <= SAFE:
        return near
    # It may be read as more than its type holds.
    said, beside = near.cast("string").try_cast(kind), sql.abs(near) * float_info.epsilon
    return sql.when(said == column, near).when(said < column, near + beside).otherwise(near - beside)


def _as_text(rows: DataFrame, name: str) -> Column:
    """Give a column of instants as Arrow spells them, and others as they are."""
    from pyspark.sql import functions as sql
    from pyspark.sql import types

    kind, column = rows.schema[name].dataType, sql.col(quoted(name))
    if isinstance(kind, types.DateType):
        return column.cast("string")
    if isinstance(kind, types.TimestampType):
        column = sql.convert_timezone(None, sql.lit("UTC"), column.cast("timestamp_ntz"))
    elif not isinstance(kind, types.TimestampNTZType):
        return column
    zone = "'Z'" if isinstance(kind, types.TimestampType) else ""
    return sql.date_format(column, f"yyyy-MM-dd HH:mm:ss.SSSSSS{zone}")


def _true(truth: Truth, where: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Keep the rows of which an expression is true; runs in a worker."""
    import pyarrow as pa

    for batch in batches:
        rows = pa.Table.from_batches([batch])
        yield from rows.filter(truth(where, rows)).to_batches()


def count_on_spark(
    tables: Mapping[str, DataFrame], landed: Mapping[str, DataFrame], ledgers: Sequence[DataFrame]
) -> Counts:
    """Count the rows of all tables in one Spark job, none where there are none; arguments as of `count_plain`."""
    from pyspark.sql import functions as sql

    def told(rows: DataFrame, who: str, where: str) -> DataFrame:
        # Each by its kinds alone: names beside them would be hashed with every row.
        return rows.groupBy("kind").count().select(sql.lit(who), sql.lit(where), "kind", "count")

    def dropped(rows: DataFrame) -> DataFrame:
        some = rows.where(f"action = '{DROPPED}'").groupBy("stream", "kind").count()
        return some.select("stream", sql.lit(DROPPED), "kind", "count")

    parts = [
        *(told(rows, name, STREAM) for name, rows in tables.items()),
        *(told(rows, name, LANDED) for name, rows in landed.items()),
        *(dropped(rows) for rows in ledgers),
    ]
    counts: Counts = Counts()
    for who, where, kind, rows in reduce(lambda one, other: one.unionAll(other), parts).collect() if parts else ():
        counts[who, where, kind] += rows
    return counts
