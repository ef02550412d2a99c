"""Great Expectations' engine on Spark, made to scan a table once for all that a suite asks of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
from great_expectations.expectations.registry import get_metric_provider

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from great_expectations.validator.metric_configuration import MetricConfiguration

VALUES = ".unexpected_values"
"""How metrics end that give a sample of what breaks a check."""


class OneScan(SparkDFExecutionEngine):
    """Counts once nothing is left that can be had without a scan.

    Great Expectations resolve what is ready, round by round, and count what is ready of each round in a scan of its
    own: nulls and bounds, then what hangs on the length of a text. Here what can be counted waits until a round has
    nothing else, and is ready again in the next. A sample of no values is empty without a job of Spark's.
    """

    def resolve_metrics(
        self,
        metrics_to_resolve: Iterable[MetricConfiguration],
        metrics: dict[Any, Any] | None = None,
        runtime_configuration: dict[Any, Any] | None = None,
    ) -> dict[Any, Any]:
        """Resolve what needs no counting or, where all that is left does, all of it."""
        ready = list(metrics_to_resolve)
        empty: dict[Any, Any] = {each.id: [] for each in ready if _is_of_none(each)}
        left = [each for each in ready if each.id not in empty]
        uncounted = [each for each in left if not self._is_counted(each)]
        now = uncounted or ([] if empty else left)
        return {**super().resolve_metrics(now, metrics, runtime_configuration), **empty}

    def _is_counted(self, metric: MetricConfiguration) -> bool:
        """Say whether a metric has no function of its own, but a part of a query with others."""
        _, computed = get_metric_provider(metric.metric_name, self)
        return computed is None


def _is_of_none(metric: MetricConfiguration) -> bool:
    """Say whether a metric is a sample of no values."""
    arguments: Mapping[str, Any] = metric.metric_value_kwargs or {}
    asked = arguments.get("result_format")
    if not metric.metric_name.endswith(VALUES) or not isinstance(asked, dict):
        return False
    return asked.get("partial_unexpected_count") == 0 and asked.get("result_format") != "COMPLETE"
