"""Great Expectations at work: a context, a suite a table, their results, and Data Docs in a folder.

The context lives as long as one judgement, and everything in it is made from the flow again: nothing of an older flow
can stay behind. What lasts is what it wrote: results as JSON, and the pages of its Data Docs.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

# Before the import: GX reports its use to its makers unless told not to.
os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")

import great_expectations as gx
import pandas as pd
from great_expectations.constants import DATAFRAME_REPLACEMENT_STR
from great_expectations.core.run_identifier import RunIdentifier
from great_expectations.data_context.types.base import (
    DataContextConfig,
    InMemoryStoreBackendDefaults,
    ProgressBarsConfig,
)
from great_expectations.data_context.types.resource_identifiers import (
    ExpectationSuiteIdentifier,
    ValidationResultIdentifier,
)
from great_expectations.expectations.registry import get_expectation_impl

from expectations.given import OF_SPREAD
from expectations.laws import quoted
from pipelines.errors import PulselineError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from great_expectations.core import ExpectationSuiteValidationResult
    from great_expectations.core.batch_definition import BatchDefinition
    from great_expectations.data_context.data_context.ephemeral_data_context import EphemeralDataContext
    from great_expectations.datasource.fluent.interfaces import Batch
    from great_expectations.datasource.fluent.pandas_datasource import PandasDatasource
    from great_expectations.datasource.fluent.spark_datasource import SparkDatasource
    from pyspark.sql import DataFrame

SITE = "docs"
MOST_ROWS = 1_000_000
"""Rows that break a check and are gathered: more would not fit into memory, and nobody reads them."""
COUNTED = {"result_format": "BASIC"}
COUNTED_ON_SPARK = {**COUNTED, "partial_unexpected_count": 0}
"""Without a sample of values, for which Spark would scan all rows once more for each check; `Checkpoints` asks for the
rows of those that are broken."""
OF_VALUES = {"unexpected": "not in the set", "missing": "missing"}
"""What of a set of values is counted, by how Great Expectations call it, and how we do."""
MOST_VALUES = 20
"""Values of a set that are named."""
ASSET = "span"
"""What the context calls whatever rows are judged; results name each by its suite."""
AS_FRAME = {"dataframe": DATAFRAME_REPLACEMENT_STR}
"""What results say of the rows that they are about, which are given and not named."""
STATIC = "static"
"""What GX copies beside each site, 4 MB of it; our pages have all that they need within."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What came of one of a team's own checks."""

    held: bool
    sentence: str
    looked_at: int
    unexpected: int = 0
    """Rows that break it; 0 where it speaks of a column or table as a whole."""
    observed: Any = None
    """What was seen of that."""
    rows: tuple[tuple[Any, ...], ...] = ()
    """Of each row that breaks it: the columns that tell it apart; in stream order."""


class Checkpoints:
    """Runs suites over frames.

    Args:
        name: of the run, such as `commit 5`.
        docs: folder that takes results and pages, replaced as a whole; None writes nothing.
    """

    def __init__(self, name: str, docs: Path | None) -> None:
        """Make a context that holds nothing yet."""
        self._name, self._docs = name, docs
        self._context: EphemeralDataContext = gx.get_context(mode="ephemeral", project_config=_project(docs))
        self._pandas = self._context.data_sources.add_pandas("rows")
        self._spark: SparkDatasource | None = None
        self._spans: dict[str, BatchDefinition[Any]] = {}
        self._judged: dict[str, tuple[gx.ExpectationSuite, ExpectationSuiteValidationResult]] = {}

    def run(self, suite: gx.ExpectationSuite, rows: pd.DataFrame | DataFrame) -> Mapping[tuple[str, str], int]:
        """Run a suite over a frame.

        Returns:
            By law and table, how many rows break it.
        """
        return dict(_found(_required(each, "observed_value")) for each in self._validated(suite, rows).results)

    def ask(
        self,
        suite: gx.ExpectationSuite,
        rows: pd.DataFrame | DataFrame,
        index: Sequence[str],
        known: int | None = None,
    ) -> Mapping[str, Asked]:
        """Run a suite of a team's own checks over a frame.

        Args:
            suite: each expectation has the check's label as `check` in its `meta`.
            rows: the frame.
            index: columns that tell rows apart, given of rows that break a check.
            known: how many rows the frame has, where that has been counted: Spark would count them again.
        """
        results = self._validated(suite, rows, known).results
        size = lru_cache(lambda: size_of(rows) if known is None else known)
        return {
            _check_of(each): Asked(held=True, sentence=_sentence(each), looked_at=size())
            if _failed(each) and _kind_of(each) in OF_SPREAD and _has_one_value(each, rows)
            else self._asked(_required(each, ""), rows, index, size)
            for each in results
        }

    def _asked(
        self,
        result: Any,  # noqa: ANN401 - GX's result
        rows: pd.DataFrame | DataFrame,
        index: Sequence[str],
        size: Callable[[], int],
    ) -> Asked:
        found, observed = result.result, _plain(result.result.get("observed_value"))
        unexpected, counted = int(found.get("unexpected_count") or 0), found.get("element_count")
        if counted is None and any(found.get(f"{kind}_count") for kind in OF_VALUES):
            # Of a set of values Great Expectations count values where of all else they count rows.
            observed, unexpected = self._values(result, rows), 0
        told: tuple[tuple[Any, ...], ...] = ()
        if not result.success and 0 < unexpected <= MOST_ROWS:
            told = self._rows(result, rows, index)
        return Asked(
            held=bool(result.success),
            sentence=_sentence(result),
            # A row without a value keeps a check of values, and is none of those by which a share goes.
            looked_at=size() if counted is None else int(counted) - int(found.get("missing_count") or 0),
            unexpected=unexpected,
            observed=observed,
            rows=told,
        )

    def _rows(self, result: Any, rows: pd.DataFrame | DataFrame, index: Sequence[str]) -> tuple[tuple[Any, ...], ...]:  # noqa: ANN401 - as above
        """Say which rows break a check, in stream order."""
        given = rows if isinstance(rows, pd.DataFrame) else _collectable(rows, index)
        wanted = {"result_format": "COMPLETE", "unexpected_index_column_names": list(index)}
        again = self._batch(given).validate(result.expectation_config.to_domain_obj(), result_format=wanted)
        found = again.result.get("unexpected_index_list") or []
        return tuple(sorted({tuple(_plain(each[name]) for name in index) for each in found}, key=_in_order))

    def _values(self, result: Any, rows: pd.DataFrame | DataFrame) -> str:  # noqa: ANN401 - as above
        """Name the values that should not be there, and those that should, the first of them by their texts."""
        most = max(int(result.result.get(f"{kind}_count") or 0) for kind in OF_VALUES)
        wanted = {"result_format": "BASIC", "partial_unexpected_count": min(most, MOST_ROWS)}
        again = self._batch(rows).validate(result.expectation_config.to_domain_obj(), result_format=wanted)
        told = []
        for kind, words in OF_VALUES.items():
            values = sorted(str(_plain(each)) for each in again.result.get(f"partial_{kind}_list") or ())
            if values:
                more = f" and {len(values) - MOST_VALUES:,} more" if values[MOST_VALUES:] else ""
                told.append(f"{words}: {', '.join(values[:MOST_VALUES])}{more}")
        return "; ".join(told)

    def _validated(
        self, suite: gx.ExpectationSuite, rows: pd.DataFrame | DataFrame, known: int | None = None
    ) -> ExpectationSuiteValidationResult:
        source = self._source_of(rows)
        if source is self._spark:
            source.get_execution_engine().begin(known)  # type: ignore[attr-defined]
        wanted = COUNTED if isinstance(rows, pd.DataFrame) else COUNTED_ON_SPARK
        try:
            result = self._batch(rows).validate(suite, result_format=wanted)
        except (Exception, KeyboardInterrupt):
            raise
        except BaseException as problem:
            # A package may end its process, whose code would say that all is well; GX catch what is an error alone.
            said = " and ".join(str(each.description) for each in suite.expectations)
            raise CheckFailedError(said, f"it raised {type(problem).__name__}") from problem
        self._judged[suite.name] = (suite, result)
        return result

    def _batch(self, rows: pd.DataFrame | DataFrame) -> Batch:
        """Give rows as GX have them: all of one asset, for a context writes itself anew with each that is added."""
        source = self._source_of(rows)
        if source.name not in self._spans:
            asset = source.add_dataframe_asset(ASSET)
            self._spans[source.name] = asset.add_batch_definition_whole_dataframe(ASSET)
        return self._spans[source.name].get_batch({"dataframe": rows})

    def _source_of(self, rows: pd.DataFrame | DataFrame) -> PandasDatasource | SparkDatasource:
        if isinstance(rows, pd.DataFrame):
            return self._pandas
        if self._spark is None:
            self._spark = _counting_in_one_scan(self._context)
        return self._spark

    def publish(self) -> Path | None:
        """Write results and Data Docs.

        Returns:
            The page to begin with; None where nothing is written.
        """
        if self._docs is None:
            return None
        self.withdraw()
        run = RunIdentifier(run_name=self._name)
        for suite, result in self._judged.values():
            self._context.suites.add(suite)
            result.meta["active_batch_definition"]["data_asset_name"] = suite.name
            result.meta |= {"run_id": run, "validation_time": run.run_time, "batch_parameters": AS_FRAME}
            at = ValidationResultIdentifier(ExpectationSuiteIdentifier(suite.name), run, result.batch_id)
            self._context.validation_results_store.store_validation_results(result, at)
        self._context.build_data_docs()
        shutil.rmtree(self._docs / STATIC, ignore_errors=True)
        for name, (_, result) in self._judged.items():
            told = json.dumps(result.to_json_dict(), indent=1, ensure_ascii=False)  # type: ignore[no-untyped-call]
            (self._docs / f"{name}.json").write_text(told)
        return self._docs / "index.html"

    def withdraw(self) -> None:
        """Remove what was written of an earlier judgement."""
        if self._docs is not None:
            shutil.rmtree(self._docs, ignore_errors=True)


def _counting_in_one_scan(context: EphemeralDataContext) -> SparkDatasource:
    from great_expectations.datasource.fluent.spark_datasource import SparkDatasource

    from expectations.one_scan import OneScan

    # A datasource of our own would need a type of its own, in the pages too; this is the door that theirs has.
    SparkDatasource.execution_engine_override = OneScan  # type: ignore[misc]
    return context.data_sources.add_spark("spark", persist=False)


def size_of(rows: pd.DataFrame | DataFrame) -> int:
    """Count the rows of a frame of pandas or of Spark."""
    return len(rows) if isinstance(rows, pd.DataFrame) else rows.count()


def _collectable(rows: DataFrame, index: Sequence[str]) -> DataFrame:
    """Give instants without their zone: with one, Spark's client has no first day of the year 1."""
    from pyspark.sql.types import TimestampType

    of_time = [each.name for each in rows.schema if isinstance(each.dataType, TimestampType) and each.name not in index]
    return rows.withColumns({name: rows[quoted(name)].cast("timestamp_ntz") for name in of_time})


def _project(docs: Path | None) -> DataContextConfig:
    """Keep everything in memory but the pages."""
    site = {
        "class_name": "SiteBuilder",
        "site_index_builder": {"class_name": "DefaultSiteIndexBuilder", "view": _view("IndexView")},
        "site_section_builders": {section: {"view": _view("PageView")} for section in ("expectations", "validations")},
        "store_backend": {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(docs)},
    }
    return DataContextConfig(
        store_backend_defaults=InMemoryStoreBackendDefaults(init_temp_docs_sites=False),
        data_docs_sites={SITE: site} if docs else {},
        progress_bars=ProgressBarsConfig(globally=False),
        analytics_enabled=False,
    )


def _view(name: str) -> dict[str, str]:
    return {"module_name": "expectations.data_docs", "class_name": name}


def _required(result: Any, needed: str) -> Any:  # noqa: ANN401 - GX's result
    """Give the result of an expectation, which could be asked.

    Args:
        result: of one.
        needed: a part that it must have; empty for none.
    """
    failed = _failed(result)
    if failed or (needed and needed not in result.result):
        raise CheckFailedError(_sentence(result), str(failed or result.exception_info))
    return result


def _failed(result: Any) -> str | None:  # noqa: ANN401 - GX's result
    """Give why an expectation could not be asked; None where it could."""
    return _exception_of(result.exception_info or {})


def _has_one_value(result: Any, rows: pd.DataFrame | DataFrame) -> bool:  # noqa: ANN401 - GX's result
    """Say whether a column has no two values, so that none can be far from the others: GX fail at their spread."""
    column = result.expectation_config.kwargs["column"]
    if isinstance(rows, pd.DataFrame):
        return int(rows[column].count()) < 2  # noqa: PLR2004 - no spread without two
    return rows.select(column).dropna().limit(2).count() < 2  # noqa: PLR2004 - as above


def _exception_of(info: Mapping[str, Any]) -> str | None:
    """Give what went wrong: GX tell it flat, or by metric."""
    told = [info, *(each for each in info.values() if isinstance(each, dict))]
    raised = [each for each in told if each.get("raised_exception")]
    # Some say nothing of themselves but where they were raised.
    return next((_said(each) for each in raised), None)


def _said(raised: Mapping[str, Any]) -> str:
    lines = [
        str(raised.get("exception_message") or ""),
        *str(raised.get("exception_traceback") or "").splitlines()[::-1],
    ]
    return next((line for line in lines if line.strip()), "it says nothing of why")


def _kind_of(result: Any) -> str:  # noqa: ANN401 - GX's result
    return str(result.expectation_config.type)


def _check_of(result: Any) -> str:  # noqa: ANN401 - GX's result
    return str(result.expectation_config.meta["check"])


def _in_order(found: tuple[Any, ...]) -> tuple[Any, ...]:
    at, place, *key = found
    return (at, *(str(each) for each in key), place)


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever GX saw
    """Give a value as JSON has it."""
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(each) for each in value]
    if hasattr(value, "item"):
        return _plain(value.item())
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def _sentence(result: Any) -> str:  # noqa: ANN401 - GX's result
    asked = result.expectation_config
    # GX leave out of a configuration what the class says by itself.
    return str(asked.description or get_expectation_impl(asked.type).__fields__["description"].default)


def _found(result: Any) -> tuple[tuple[str, str], int]:  # noqa: ANN401 - GX's result
    meta = result.expectation_config.meta
    return (meta["law"], meta["table"]), int(result.result["observed_value"])


@dataclass(eq=False)
class CheckFailedError(PulselineError, RuntimeError):
    """An expectation could not be asked; says which, and why."""

    sentence: str
    reason: str
    says = "it must be possible to ask whether `{sentence}`: {reason}; once that is mended, run the same command again"
