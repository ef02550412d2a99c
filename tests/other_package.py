"""A package with expectations of a team's own, as somebody would write it for Great Expectations; for tests."""

from __future__ import annotations

import importlib
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from expectations.others import KINDS, METRICS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACKAGE = "team_checks"
MULTIPLES = f"{PACKAGE}.numbers.ExpectColumnValuesToBeMultiples"
ODD, SMALL, EVEN = (f"{PACKAGE}.numbers.{name}" for name in ("ExpectOdd", "ExpectSmallNumbers", "ExpectEvenMax"))
"""For pandas alone, of a class of Great Expectations, of a column as a whole."""
FEW, ENDS = (f"{PACKAGE}.numbers.{name}" for name in ("ExpectFewNumbers", "ExpectNoEnd"))
"""With words of its own; one that ends its process when it is asked."""
FILES = {
    "__init__.py": "",
    "numbers.py": """\
import great_expectations.expectations as gxe
from great_expectations.execution_engine import PandasExecutionEngine, SparkDFExecutionEngine
from great_expectations.expectations.expectation import ColumnAggregateExpectation, ColumnMapExpectation
from great_expectations.expectations.metrics import ColumnMapMetricProvider, column_condition_partial


class Multiples(ColumnMapMetricProvider):
    condition_metric_name = "column_values.team_multiples"
    condition_value_keys = ("of",)

    @column_condition_partial(engine=PandasExecutionEngine)
    def _pandas(cls, column, of, **kwargs):
        return column.map(lambda value: value % of == 0)

    @column_condition_partial(engine=SparkDFExecutionEngine)
    def _spark(cls, column, of, **kwargs):
        return column % of == 0


class ExpectColumnValuesToBeMultiples(ColumnMapExpectation):
    map_metric = "column_values.team_multiples"
    success_keys = ("mostly", "of")
    of: int


class Odd(ColumnMapMetricProvider):
    condition_metric_name = "column_values.team_odd"

    @column_condition_partial(engine=PandasExecutionEngine)
    def _pandas(cls, column, **kwargs):
        return column % 2 == 1


class ExpectOdd(ColumnMapExpectation):
    map_metric = "column_values.team_odd"


class ExpectSmallNumbers(gxe.ExpectColumnValuesToBeBetween):
    column: str = "number"
    max_value: float = 20
    description: str = "Numbers are **small**."


class ExpectFewNumbers(gxe.ExpectTableRowCountToBeBetween):
    max_value: int = 3
    description: str = "There are few numbers."


class ExpectNoEnd(ColumnAggregateExpectation):
    metric_dependencies = ("column.max",)

    def _validate(self, metrics, runtime_configuration=None, execution_engine=None):
        raise SystemExit(0)


class ExpectEvenMax(ColumnAggregateExpectation):
    metric_dependencies = ("column.max",)

    def _validate(self, metrics, runtime_configuration=None, execution_engine=None):
        found = metrics["column.max"]
        return {"success": found % 2 == 0, "result": {"observed_value": found}}
""",
    "broken.py": 'raise RuntimeError("no licence on this machine")\n',
    "needy.py": "import a_package_that_nobody_has\n",
    "taking.py": """\
from great_expectations.expectations.expectation import ColumnMapExpectation


class ExpectColumnValuesToBeBetween(ColumnMapExpectation):
    map_metric = "column_values.between"
""",
}


@contextmanager
def installed(folder: Path) -> Iterator[None]:
    """Have the package where Python imports from; afterwards nobody knows of it."""
    (folder / PACKAGE).mkdir()
    for name, text in FILES.items():
        (folder / PACKAGE / name).write_text(text)
    kinds, metrics = {*KINDS}, {*METRICS}
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        try:
            yield
        finally:
            for known, before in ((KINDS, kinds), (METRICS, metrics)):
                for name in {*known} - before:
                    del known[name]
            for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
                del sys.modules[name]
    importlib.invalidate_caches()
