"""The feeds of a flow, opened for a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.engine.sources.catalog import open_sources
from pipelines.engine.sources.opening import Loss, Opening
from pipelines.jobs.runs.fitting import fitting_payloads

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pipelines.engine.landing.index import Landing
    from pipelines.engine.landing.source_feed import SourceFeed
    from pipelines.flows.model import Flow


def open_feeds(  # noqa: PLR0913 - what feeds are made of
    flow: Flow,
    base: Path,
    root: Path,
    landing: Landing,
    tell: Callable[[str], None] = lambda _: None,
    loss: Loss = Loss.STOP,
) -> Mapping[str, SourceFeed]:
    """Open the feeds of a flow: live ones under the wall clock, recordings under a simulated one.

    Args:
        flow: validated.
        base: the folder that the feeds' paths are relative to.
        root: the run's folder.
        landing: what is landed already.
        tell: told a line when a connection changes.
        loss: what is done where a source does not have any more what comes next.

    Raises:
        WrongUse: the streams do not go together with the feeds' columns.
    """
    payloads = {name: found for name in flow.sources if (found := landing.payload(name)) is not None}
    feeds = open_sources(flow, Opening(base=base, root=root, payloads=payloads, tell=tell, loss=loss))
    fitting_payloads(flow, {name: feed.schema for name, feed in feeds.items()})
    return feeds
