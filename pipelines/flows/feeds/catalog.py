"""Every kind of feed that a flow can name. What opens one of a kind is listed in `engine.sources.catalog`."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from pipelines.flows.feeds.builtin import BuiltInSpec
from pipelines.flows.feeds.csv import CsvSpec
from pipelines.flows.feeds.delta import CommitsSpec, DeltaSpec
from pipelines.flows.feeds.folder import FolderSpec
from pipelines.flows.feeds.json import JsonSpec
from pipelines.flows.feeds.kafka import KafkaSpec
from pipelines.flows.feeds.parquet import ParquetSpec
from pipelines.flows.feeds.socket import SocketSpec
from pipelines.flows.feeds.spec import Clock

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipelines.flows.feeds.spec import FeedSpec

SPECS: tuple[type[FeedSpec], ...] = (ParquetSpec, CsvSpec, JsonSpec, FolderSpec, SocketSpec, KafkaSpec, DeltaSpec)
"""Those that a flow file names, in the order in which messages list them."""
WRITTEN: Mapping[str, type[FeedSpec]] = MappingProxyType({spec.settings[0]: spec for spec in SPECS})
"""By the key that names one in a flow file."""
ALL: tuple[type[FeedSpec], ...] = (*SPECS, BuiltInSpec, CommitsSpec)
IN_ONE_WORD = BuiltInSpec
"""The kind that a flow file names without a key, by one of its `names`."""
KINDS: Mapping[str, type[FeedSpec]] = MappingProxyType({spec.kind: spec for spec in ALL})
"""By what definitions call them."""


def is_live(kind: str) -> bool:
    """Say whether rows of a kind of feed arrive when they land, by the real clock."""
    return KINDS[kind].clock is Clock.WALL
