"""Great Expectations at work: a context, a checkpoint a table, their results, and Data Docs in a folder.

The context lives as long as one judgement, and everything in it is made from the flow again: nothing of an older flow
can stay behind. What lasts is what it wrote: results as JSON, and the pages of its Data Docs.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

# Before the import: GX reports its use to its makers unless told not to.
os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")

import great_expectations as gx
import pandas as pd
from great_expectations.core.run_identifier import RunIdentifier
from great_expectations.data_context.types.base import (
    DataContextConfig,
    InMemoryStoreBackendDefaults,
    ProgressBarsConfig,
)

from pipelines.errors import PulselineError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from great_expectations.core import ExpectationSuiteValidationResult
    from great_expectations.data_context.data_context.ephemeral_data_context import EphemeralDataContext
    from great_expectations.datasource.fluent.pandas_datasource import PandasDatasource
    from great_expectations.datasource.fluent.spark_datasource import SparkDatasource
    from pyspark.sql import DataFrame

SITE = "docs"
HEAVY = ("static/fonts", "static/images")
"""What GX copies beside each site, 4 MB of it; pages are read as well without."""


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
        self._results: dict[str, dict[str, Any]] = {}

    def run(self, suite: gx.ExpectationSuite, rows: pd.DataFrame | DataFrame) -> Mapping[tuple[str, str], int]:
        """Run a suite over a frame, as a checkpoint.

        Returns:
            By law and table, how many rows break it.
        """
        asset = self._source_of(rows).add_dataframe_asset(suite.name)
        batch = asset.add_batch_definition_whole_dataframe("span")
        held = self._context.suites.add(suite)
        definition = gx.ValidationDefinition(name=suite.name, data=batch, suite=held)
        checkpoint = gx.Checkpoint(
            name=suite.name,
            validation_definitions=[self._context.validation_definitions.add(definition)],
            result_format="BASIC",
        )
        ran = self._context.checkpoints.add(checkpoint).run(
            batch_parameters={"dataframe": rows}, run_id=RunIdentifier(run_name=self._name)
        )
        (result,) = ran.run_results.values()
        self._results[suite.name] = result.to_json_dict()  # type: ignore[no-untyped-call]
        return dict(_found(each) for each in _whole(result))

    def _source_of(self, rows: pd.DataFrame | DataFrame) -> PandasDatasource | SparkDatasource:
        if isinstance(rows, pd.DataFrame):
            return self._pandas
        if self._spark is None:
            self._spark = self._context.data_sources.add_spark("spark", persist=False)
        return self._spark

    def publish(self) -> Path | None:
        """Write results and Data Docs.

        Returns:
            The page to begin with; None where nothing is written.
        """
        if self._docs is None:
            return None
        shutil.rmtree(self._docs, ignore_errors=True)
        self._context.build_data_docs()
        for folder in HEAVY:
            shutil.rmtree(self._docs / folder, ignore_errors=True)
        for name, result in self._results.items():
            (self._docs / f"{name}.json").write_text(json.dumps(result, indent=1, ensure_ascii=False))
        return self._docs / "index.html"


def _project(docs: Path | None) -> DataContextConfig:
    """Keep everything in memory but the pages."""
    site = {
        "class_name": "SiteBuilder",
        "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
        "store_backend": {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(docs)},
    }
    return DataContextConfig(
        store_backend_defaults=InMemoryStoreBackendDefaults(init_temp_docs_sites=False),
        data_docs_sites={SITE: site} if docs else {},
        progress_bars=ProgressBarsConfig(globally=False),
        analytics_enabled=False,
    )


def _whole(result: ExpectationSuiteValidationResult) -> list[Any]:
    """Give the results of the expectations, all of which could be asked."""
    for each in result.results:
        failed = (each.exception_info or {}).get("exception_message")
        if failed or "observed_value" not in each.result:
            raise CheckFailedError(_sentence(each), str(failed or each.exception_info))
    return list(result.results)


def _sentence(result: Any) -> str:  # noqa: ANN401 - GX's result
    return str(result.expectation_config.description)


def _found(result: Any) -> tuple[tuple[str, str], int]:  # noqa: ANN401 - GX's result
    meta = result.expectation_config.meta
    return (meta["law"], meta["table"]), int(result.result["observed_value"])


@dataclass(eq=False)
class CheckFailedError(PulselineError, RuntimeError):
    """An expectation could not be asked; says which, and why."""

    sentence: str
    reason: str
    says = "it must be possible to ask whether `{sentence}`: {reason}; see the log"
