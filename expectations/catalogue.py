"""What Great Expectations offer, written down for those who may not import it: `python -m expectations.catalogue`.

A flow is checked in milliseconds and without Great Expectations, so its reader goes by a list: the names, the arguments
and what each takes, and why one is not offered. A test holds the list to what is installed.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")

from great_expectations.exceptions.exceptions import GreatExpectationsError
from great_expectations.execution_engine.pandas_execution_engine import PandasExecutionEngine
from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
from great_expectations.expectations.expectation import (
    ColumnMapExpectation,
    ColumnPairMapExpectation,
    Expectation,
    MulticolumnMapExpectation,
)
from great_expectations.expectations.registry import get_expectation_impl, get_metric_provider

from pipelines.flows import offered
from pipelines.flows.checks import BOUNDS, IGNORED, ignored_if

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PATH = Path(offered.__file__).with_name(offered.FILE)
JUDGES = {"pandas": PandasExecutionEngine, "Spark": SparkDFExecutionEngine}
OURS = {"batch_id", "row_condition", "condition_parser", "library_metadata", *Expectation.__fields__}
"""What an expectation takes that is no argument: `where:` is the flow's own way to choose rows."""
ROWS = (ColumnMapExpectation, ColumnPairMapExpectation, MulticolumnMapExpectation)
"""Kinds that say of each row whether it fits."""
IN_ORDER = ("expect_column_values_to_be_increasing", "expect_column_values_to_be_decreasing")
"""Asked by ours, in stream order: Great Expectations' own know no order."""
NAMED_BY_JUDGE = "a type has another name for each judge; a feed's `types` say what a column is"
REFUSED = {
    "expect_column_type_to_be": NAMED_BY_JUDGE,
    "expect_column_values_to_be_of_type": NAMED_BY_JUDGE,
    "expect_column_values_to_be_in_type_list": NAMED_BY_JUDGE,
    "expect_column_kl_divergence_to_be_less_than": "it has not been shown that both judges give the same for it",
    "expect_column_quantile_values_to_be_between": "Great Expectations cannot keep its result, a truth value of NumPy",
    "expect_column_values_to_match_json_schema": "one value that is no JSON ends it with an error, for all rows",
    "expect_table_row_count_to_equal_other_table": "the account of rows holds streams against each other",
}
"""What is not offered although both judges have it, and why."""
TEXT = ("length", "regex", "like", "dateutil", "json", "strftime")
NUMBER = ("mean", "median", "stdev", "sum", "z_scores", "outliers", "quantile")
TAKES = {
    "column": "column",
    "column_A": "column",
    "column_B": "column",
    "column_list": "columns",
    "column_set": "columns",
    "mostly": "share",
    "value_pairs_set": "pairs",
    "quantile_ranges": "ranges",
}
"""What arguments take that their type does not say."""
COUNTED = ("expect_table_row_count", "expect_table_column_count")
"""Beginnings of expectations whose bounds are of a count, and no instants."""
DATES = "datetime.datetime"


def made() -> dict[str, dict[str, Any]]:
    """Say what is offered, by name."""
    names = sorted(name for name in _core() if name.startswith("expect_"))
    return {name: _told(name, get_expectation_impl(name)) for name in names}


def _core() -> Iterator[str]:
    from great_expectations.expectations import registry

    for name in registry.list_registered_expectation_implementations():
        if get_expectation_impl(name).__module__.startswith("great_expectations.expectations.core"):
            yield name


def _told(name: str, kind: type[Expectation]) -> dict[str, Any]:
    arguments = {
        argument: {"takes": _takes(name, argument, field), "required": _is_required(argument, field)}
        for argument, field in kind.__fields__.items()
        if argument not in OURS
    }
    return {
        "says": _first_sentence(kind),
        "rows": issubclass(kind, ROWS),
        "needs": _needs(name),
        "arguments": arguments,
        "refused": REFUSED.get(name) or _lacking(name, kind),
    }


def _first_sentence(kind: type[Expectation]) -> str:
    said = " ".join((kind.__doc__ or "").strip().split("\n\n")[0].split())
    return said.split(". ")[0].rstrip(".") + "."


def _needs(name: str) -> str:
    """Say what a column must be to be asked: `text`, `number`, or empty for anything."""
    if "proportion" in name or "unique_value" in name:
        return ""
    if any(word in name for word in TEXT):
        return "text"
    return "number" if any(word in name for word in NUMBER) else ""


def _takes(name: str, argument: str, field: Any) -> str | list[str]:  # noqa: ANN401 - a field of pydantic
    ignored = ignored_if(name)
    if argument == IGNORED and ignored is not None:
        return [ignored]
    if name.startswith(COUNTED) and argument in BOUNDS:
        return "number"
    if argument in TAKES:
        return TAKES[argument]
    spelled = str(field.outer_type_)
    words = _words(field.outer_type_)
    if words:
        return words
    if argument == IGNORED:
        return ["all_values_are_missing", "any_value_is_missing", "never"]
    kinds = {
        DATES: "value",
        "bool": "truth",
        "ConstrainedFloat": "number",
        "float": "number",
        "int": "whole number",
        "List[str]": "texts",
        "List": "values",
        "list": "values",
        "str": "text",
        "dict": "object",
    }
    return next(takes for word, takes in kinds.items() if word in spelled)


def _words(kind: Any) -> list[str]:  # noqa: ANN401 - a type
    """Give the words of a Literal, also within a union."""
    if "Literal" in str(kind).partition("[")[0]:
        return [str(word) for word in get_args(kind)]
    return next((words for part in get_args(kind) if (words := _words(part))), [])


def _is_required(argument: str, field: Any) -> bool:  # noqa: ANN401 - as above
    return bool(field.required) or argument in {"column", "column_list", "column_set", "regex"}


def _lacking(name: str, kind: type[Expectation]) -> str:
    """Say which judge cannot ask an expectation, from what each has registered."""
    if name in IN_ORDER:
        return ""
    mapped = next((value for value in (getattr(kind, at, None) for at in ("map_metric",)) if value), None)
    metrics = [f"{mapped}.unexpected_count"] if mapped else list(getattr(kind, "metric_dependencies", ()))
    without = [judge for judge, engine in JUDGES.items() if not all(has_metric(metric, engine) for metric in metrics)]
    return f"the judge on {' and the one on '.join(without)} cannot ask it" if without else ""


def has_metric(metric: str, engine: Any) -> bool:  # noqa: ANN401 - a class of GX
    """Say whether a judge has a metric registered."""
    try:
        # Its class is all that counts: one that is made would start Spark.
        get_metric_provider(metric, engine.__new__(engine))
    except (GreatExpectationsError, KeyError):
        return False
    return True


def spelled(catalogue: Mapping[str, Any]) -> str:
    """Spell the list as its file has it."""
    return json.dumps(catalogue, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    PATH.write_text(spelled(made()), encoding="utf-8")
    sys.stdout.write(f"{PATH.name}: {len(json.loads(PATH.read_text()))} expectations\n")
