"""The feeds of a flow under the real clock, opened by their kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.engine.columnar.clock import SteadyClock
from pipelines.engine.sources.folder.inbox import Inbox
from pipelines.engine.sources.live import Loss, landed_payload
from pipelines.engine.sources.socket.feed import SocketFeed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import pyarrow as pa

    from pipelines.engine.landing.source_feed import SourceFeed
    from pipelines.flows.model import Flow, Source


def open_live(  # noqa: PLR0913 - what feeds are made of
    flow: Flow,
    base: Path,
    root: Path,
    payloads: Mapping[str, pa.Schema],
    tell: Callable[[str], None] = lambda _: None,
    loss: Loss = Loss.STOP,
) -> dict[str, SourceFeed]:
    """Open the feeds of all sources of a flow under the real clock, by source; nobody listens yet.

    Args:
        flow: validated.
        base: the folder that relative paths begin in: the flow file's own.
        root: the run's folder, where what a source cannot send again is kept.
        payloads: with which sources landed before.
        tell: told a line when a connection changes.
        loss: what is done where a source does not have any more what comes next.

    Raises:
        LandingError: a feed is missing, or does not have what its source says of it.
    """

    def opened(name: str, source: Source) -> SourceFeed:
        if source.feed.kind == "socket":
            return SocketFeed(source, root, tell, loss, SteadyClock())
        if source.feed.kind == "kafka":
            from pipelines.engine.sources.kafka.feed import KafkaFeed

            return KafkaFeed(source, root, tell, loss, base)
        if source.feed.kind == "commits":
            from pipelines.engine.sources.delta.live import CommitsFeed

            return CommitsFeed(source, base, root, payloads.get(name), tell, loss)
        declared = landed_payload(source) if source.feed.types else None
        return Inbox(source, base, payloads.get(name, declared), tell)

    return {name: opened(name, source) for name, source in flow.sources.items()}
