"""A live process with a bug in it: what a drill that cannot fail would not find."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pipelines.engine.landing.index import Landing
from pipelines.engine.live.landing import LiveLanding
from pipelines.engine.sources.folder.feed import FolderFeed
from pipelines.engine.sources.socket.spool import Spool
from pipelines.engine.tasks import task as tasks
from pipelines.jobs.drill.listening import listening
from pipelines.operators.rows import MAX_TIME

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection
    from pathlib import Path

    from pipelines.engine.landing.shelves import Shelves
    from pipelines.engine.sources.folder.feed import Arrivals
    from pipelines.engine.sources.socket.spool import SpoolPart
    from pipelines.jobs.drill.listening import Pace
    from pipelines.jobs.drill.loops import Here
    from pipelines.jobs.drill.witness import CutAt


def early(pipe: Connection, here: Here, pace: Pace, at: CutAt | None, over: Path) -> None:
    """Land what came after a reading was planned under that reading."""
    LiveLanding._closing = lambda self, planned: planned  # type: ignore[method-assign]  # noqa: ARG005
    arrivals, parts = FolderFeed.arrivals, Spool.parts

    def all_files(feed: FolderFeed, *facts: Any, **named: Any) -> Arrivals:  # noqa: ANN401 - what it takes
        return arrivals(feed, *facts, **{**named, "before": MAX_TIME})

    def all_bytes(spool: Spool, offset: int, number: int, before: int = MAX_TIME) -> Iterator[SpoolPart]:
        return parts(spool, offset, number, max(before, MAX_TIME))

    FolderFeed.arrivals = all_files  # type: ignore[method-assign, assignment]
    Spool.parts = all_bytes  # type: ignore[method-assign, assignment]
    listening(pipe, here, pace, at, over)


def forgetful(pipe: Connection, here: Here, pace: Pace, at: CutAt | None, over: Path) -> None:
    """Begin, after a start, with what the last sequence has landed already."""
    begin = Landing.__init__

    def earlier(landing: Landing, path: Path, buffers: Shelves | None = None) -> None:
        begin(landing, path, buffers)
        for sequence in landing.sequences[-3:]:
            for name, source in sequence.sources.items():
                known = landing.known(name)
                known.ends.update({each.name: each.start for each in source.positions})
                for file in source.files:
                    known.files._by_path.pop(file.path, None)
                    known.files._by_content.pop(file.sha256, None)

    Landing.__init__ = earlier  # type: ignore[method-assign, assignment]
    listening(pipe, here, pace, at, over)


def by_key(pipe: Connection, here: Here, pace: Pace, at: CutAt | None, over: Path) -> None:
    """Read the rows of one reading key by key."""
    pytest.MonkeyPatch().setattr(tasks, "met_by_time", lambda *_: None)
    listening(pipe, here, pace, at, over)
