"""Recorded feeds for tests, without a source around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.engine.landing.file_rows import ColumnTerms
from pipelines.engine.landing.undeclared import Names
from pipelines.engine.sources.files import find_files
from pipelines.engine.sources.formats.csv_feed import CsvFeed
from pipelines.engine.sources.formats.json_feed import JsonFeed
from pipelines.engine.sources.formats.parquet_feed import ParquetFeed
from pipelines.flows.feeds.csv import CsvSpec
from pipelines.flows.feeds.json import JsonSpec
from pipelines.flows.feeds.parquet import ParquetSpec

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.engine.sources.rows_feed import Feed
    from pipelines.flows.feeds.spec import FeedSpec


def open_feed(spec: FeedSpec, base: Path) -> Feed:
    """Open files that a feed names, with its own words for columns that are not as declared."""
    files, terms = find_files(spec.paths, base, spec.kind), ColumnTerms(spec.lacking, spec.retyped, Names())
    if spec.kind == CsvSpec.kind:
        return CsvFeed(files, CsvSpec.of(spec), terms, base)
    if spec.kind == JsonSpec.kind:
        return JsonFeed(files, JsonSpec.of(spec), terms, base)
    return ParquetFeed(files, ParquetSpec.of(spec), terms, base)
