"""Great Expectations' engine on Spark, made to scan a table once for all that a suite asks of it.

Great Expectations resolve what is ready, round by round, and count what is ready of each round in a scan of its own,
and what is asked of some rows in one more. Here what can be counted waits until a round has nothing else, is of all
rows with the choice of some within, and is ready again in the next.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from great_expectations.core.metric_function_types import MetricPartialFunctionTypes
from great_expectations.exceptions.exceptions import MetricResolutionError
from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
from great_expectations.expectations.registry import get_metric_provider
from great_expectations.expectations.row_conditions import PassThroughCondition, deserialize_row_condition
from pyspark.sql import functions as sql
from pyspark.sql.types import DoubleType, FloatType, TimestampType

from expectations.laws import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from great_expectations.validator.metric_configuration import MetricConfiguration
    from pyspark.sql.types import DataType

ROWS = "table.row_count"
VALUES = ".unexpected_values"
"""How metrics end that give a sample of what breaks a check."""
UNEXPECTED = ".unexpected_count"
PARTIAL = ".aggregate_fn"
"""How metrics end that are the part of a query by which another is counted."""
CONDITION, CONDITIONS = "row_condition", "filter_conditions"
SOME = (CONDITION, CONDITIONS, "condition_parser")
"""What a metric has that is of some rows of its table."""
BOUNDS = "column_values.between.condition"
"""Of what is no number Spark says that it is above all numbers; it lies between no two."""
SUM = f"column.sum{PARTIAL}"
"""Of no values 0, as in a process without Spark."""
EXTREMES = {"column.max": sql.max, "column.min": sql.min}
FLOATS, INSTANTS = (DoubleType, FloatType), (TimestampType,)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
OWED = object()
"""How many rows there are, until they are counted."""


class OneScan(SparkDFExecutionEngine):
    """Counts once nothing is left that can be had without a scan.

    A sample of no values is empty without a job of Spark's. Rows that somebody has counted are not counted again, and
    others with all the rest: nearly everything waits for their number, and little is made of it.
    """

    rows: int | None = None
    owed: Sequence[MetricConfiguration] = ()

    def begin(self, rows: int | None) -> None:
        """Prepare for a suite.

        Args:
            rows: of the table that is asked about, where they have been counted.
        """
        self.rows, self.owed = rows, ()

    def resolve_metrics(
        self,
        metrics_to_resolve: Iterable[MetricConfiguration],
        metrics: dict[Any, Any] | None = None,
        runtime_configuration: dict[Any, Any] | None = None,
    ) -> dict[Any, Any]:
        """Resolve what needs no counting or, where all that is left does, all of it."""
        # They come as a set: in another order Spark would compile another query.
        ready = sorted(metrics_to_resolve, key=lambda metric: str(metric.id))
        found = {each.id: known for each in ready if (known := self._known(each)) is not None}
        rows = [each for each in ready if each.metric_name == ROWS and each.id not in found]
        self.owed = [*self.owed, *rows]
        found |= dict.fromkeys((each.id for each in rows), OWED)
        left = [each for each in ready if each.id not in found]
        free = [each for each in left if not self._is_counted(each)]
        now: Sequence[MetricConfiguration] = free or ([] if found else left)
        if any(self._uses_owed(each) for each in free):
            now = self.owed
        elif not free and not found:
            # All that is left is counted; or nothing is, and these are the last to be.
            now = [*now, *self.owed]
        try:
            made = super().resolve_metrics(now, metrics, runtime_configuration) if now else {}
        except MetricResolutionError as problem:
            if {each.id for each in problem.failed_metrics} & {each.id for each in ready}:
                raise
            # What was owed is no longer waited for: unless what waits for it fails in its place, nothing ever ends.
            raise MetricResolutionError(str(problem), ready) from problem
        self.owed = [each for each in self.owed if each.id not in made]
        for each in now:
            found[each.id] = self._alike(each, of_all_rows(each, made[each.id], metrics or {}))
        return found

    def _alike(self, metric: MetricConfiguration, made: Any) -> Any:  # noqa: ANN401, PLR0911 - as GX has it; one a metric
        """Have a metric say what it says in a process without Spark, of what is no number and of instants."""
        name, column = metric.metric_name, metric.metric_domain_kwargs.get("column")
        if name == BOUNDS and isinstance(column, str) and self._is(column, FLOATS):
            broken, *others = made
            return (broken | sql.isnan(quoted(column)), *others)
        if name == SUM:
            count, *others = made
            return (sql.coalesce(count, sql.lit(0)), *others)
        if name.removesuffix(PARTIAL) not in EXTREMES or not isinstance(column, str):
            return made
        if self._is(column, INSTANTS):
            if name.endswith(PARTIAL):
                count, *others = made
                return (sql.unix_micros(count), *others)
            return None if made is None else EPOCH + timedelta(microseconds=made)
        if name.endswith(PARTIAL) and self._is(column, FLOATS):
            _, *others = made
            numbers = sql.when(~sql.isnan(quoted(column)), sql.col(quoted(column)))
            return (EXTREMES[name.removesuffix(PARTIAL)](numbers), *others)
        return made

    def _is(self, column: str, kinds: tuple[type[DataType], ...]) -> bool:
        """Say whether a column of the table that is asked about is of one of some types."""
        rows = self.batch_manager.active_batch_data.dataframe  # type: ignore[union-attr]
        return column in rows.columns and isinstance(rows.schema[column].dataType, kinds)

    def _known(self, metric: MetricConfiguration) -> Any:  # noqa: ANN401 - whatever is counted
        """Give what needs no look at the table; None where it does."""
        if metric.metric_name == ROWS and not any(metric.metric_domain_kwargs.get(each) for each in SOME):
            return self.rows
        arguments: Mapping[str, Any] = metric.metric_value_kwargs or {}
        asked = arguments.get("result_format")
        if metric.metric_name.endswith(VALUES) and isinstance(asked, dict):
            return (
                [] if asked.get("partial_unexpected_count") == 0 and asked.get("result_format") != "COMPLETE" else None
            )
        return None

    def _is_counted(self, metric: MetricConfiguration) -> bool:
        """Say whether a metric has no function of its own, but a part of a query with others."""
        _, computed = get_metric_provider(metric.metric_name, self)
        return computed is None

    def _uses_owed(self, metric: MetricConfiguration) -> bool:
        """Say whether a metric is a value, no part of a query, and may be made of how many rows there are."""
        _, computed = get_metric_provider(metric.metric_name, self)
        owed = {each.id for each in self.owed}
        asks = any(each.id in owed for each in metric.metric_dependencies.values())
        return asks and not isinstance(getattr(computed, "metric_fn_type", None), MetricPartialFunctionTypes)


def of_all_rows(metric: MetricConfiguration, part: Any, metrics: Mapping[Any, Any]) -> Any:  # noqa: ANN401 - as GX has it
    """Make what counts some rows of a table, chosen before, one that counts all and chooses itself.

    Args:
        metric: what is resolved.
        part: how it is counted, and of what; other metrics have other values, and keep them.
        metrics: what was resolved before.
    """
    counted = metric.metric_name.removesuffix(PARTIAL)
    if counted == metric.metric_name:
        return part
    count, domain, accessor = part
    # What is said to be nothing and what is not said are the same rows, and two scans.
    domain = {name: each for name, each in domain.items() if each is not None}
    condition = domain.get(CONDITION)
    condition = deserialize_row_condition(condition) if isinstance(condition, dict) else condition
    if isinstance(condition, PassThroughCondition) and not domain.get(CONDITIONS):
        chosen, domain = sql.expr(condition.pass_through_filter), {name: domain[name] for name in {*domain} - {*SOME}}
        if counted == ROWS:
            count = sql.count_if(chosen)
        elif counted.endswith(UNEXPECTED):
            broken, *_ = metrics[metric.metric_dependencies["unexpected_condition"].id]
            count = sql.count_if(chosen & broken)
        else:
            return part
    return count, domain, accessor
