"""What opens a source of each kind: a module with a function `open_source`. What a flow says of it: `flows.feeds`."""

from __future__ import annotations

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from pipelines.engine.landing.errors import NotRecordedError
from pipelines.engine.sources.opening import Opening
from pipelines.flows.feeds.spec import Clock

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pipelines.engine.landing.source_feed import SourceFeed
    from pipelines.flows.model import Flow, Source

MODULES: Mapping[str, str] = MappingProxyType(
    {
        "builtin": "builtin",
        "parquet": "formats.parquet_feed",
        "csv": "formats.csv_feed",
        "json": "formats.json_feed",
        "folder": "folder.inbox",
        "socket": "socket.feed",
        "kafka": "kafka.feed",
        "delta": "delta.recorded",
        "commits": "delta.live",
    }
)
"""By kind, in this package. None is loaded before it is needed: a client of Kafka is heavy."""


class OpenSource(Protocol):
    """Opens a source; no row is read, and nobody listens yet."""

    def __call__(self, source: Source, opening: Opening) -> SourceFeed:
        """Open it.

        Raises:
            LandingError: it is missing, or does not have what the flow says of it.
        """


def open_sources(flow: Flow, opening: Opening) -> dict[str, SourceFeed]:
    """Open all sources of a flow, by name; no row is read, and nobody listens yet.

    Args:
        flow: validated.
        opening: where they begin.

    Raises:
        LandingError: a feed is missing, or does not have what its source says of it.
    """
    return {name: _opener(source.feed.kind)(source, opening) for name, source in flow.sources.items()}


def open_recorded(flow: Flow, base: Path) -> dict[str, SourceFeed]:
    """Open all sources of a flow whose rows say when they arrived.

    Args:
        flow: validated.
        base: the folder that relative paths begin in: the flow file's own.

    Raises:
        LandingError: a feed is missing, or does not have what its source says of it, or is no recording.
    """
    for name, source in flow.sources.items():
        if source.clock is not Clock.RECORDED:
            raise NotRecordedError(name)
    return open_sources(flow, Opening(base=base))


def _opener(kind: str) -> OpenSource:
    return import_module(f"pipelines.engine.sources.{MODULES[kind]}").open_source  # type: ignore[no-any-return]
