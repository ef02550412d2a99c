"""The feeds of a flow, opened for a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.engine.sources.live import Loss
from pipelines.engine.sources.live_feeds import open_live
from pipelines.engine.sources.recorded_feed import open_recorded
from pipelines.flows.model import Clock
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
    feeds: Mapping[str, SourceFeed]
    if flow.clock is Clock.RECORDED:
        feeds = open_recorded(flow, base)
    else:
        payloads = {name: found for name in flow.sources if (found := landing.payload(name)) is not None}
        feeds = open_live(flow, base, root, payloads, tell, loss)
    fitting_payloads(flow, {name: feed.schema for name, feed in feeds.items()})
    return feeds
