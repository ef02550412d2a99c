"""A run's three buffers as the environment wants them: where they stand, how far apart, how much they take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipelines.engine.buffers.buffers import Buffers, buffers_of
from pipelines.engine.buffers.places import BufferDrain, require_apart
from pipelines.engine.commits.driver import CommitLog
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.commits.resets import newest_drain
from pipelines.engine.files.stored import NotOnStoreError, is_stored
from pipelines.flows.apart import MARGIN, MAX_BYTES, Apart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pipelines.engine.commits.history import LogState
    from pipelines.jobs.environment.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Buffering:
    """What the environment says of buffers."""

    places: tuple[Path, ...] = ()
    apart: Apart = Apart.FOLDER
    max_bytes: int = MAX_BYTES
    margin: int = MARGIN

    @classmethod
    def of(cls, settings: Settings) -> Buffering:
        """Take it out of the environment's settings."""
        return cls(places=settings.places, apart=settings.apart, max_bytes=settings.max_bytes, margin=settings.margin)

    def require_apart(self, root: Path) -> None:
        """See that the buffers of a run stand as far apart as demanded.

        Raises:
            NotApartError: they do not.
        """
        require_apart(_places(root, self.places), self.apart)

    def warnings(self, root: Path) -> Iterator[str]:
        """Say what the buffers of a run do not survive."""
        if self.apart is Apart.FOLDER:
            places = ", ".join(str(place) for place in buffers_of(root, self.places).values())
            yield (
                f"the three buffers are only apart by folder ({places}): that survives a folder that is lost or "
                "damaged, not the loss of the disk; `buffers: {places: [...], apart: device}` in the environment does"
            )


def open_buffers(
    root: Path, wanted: Buffering, tell: Callable[[str], None], held: Callable[[], object] = lambda: None
) -> Buffers:
    """Open the buffers of a run, for whoever holds its lease; nothing is read of them yet.

    Args:
        root: the run's folder.
        wanted: what the environment says.
        tell: told of everything that goes wrong and comes right again.
        held: raises where the lease of the run is lost; in the landing's thread a driver's `state` of its own.

    Raises:
        NotApartError: they do not stand as far apart as demanded.
    """
    places = _places(root, wanted.places)
    require_apart(places, wanted.apart)
    log = CommitLog(root)
    return Buffers(
        landed_path(root),
        places,
        lambda: consistent_state(log.state()),
        tell,
        held,
        margin=wanted.margin,
        max_bytes=wanted.max_bytes,
    )


def _places(root: Path, places: tuple[Path, ...]) -> dict[str, Path]:
    """Give the folder of each buffer.

    Raises:
        NotOnStoreError: they would lie in an object store, which keeps copies of its own.
    """
    if is_stored(root) and not places:
        raise NotOnStoreError(str(root), "`buffers: 3` without `buffers: {places: [...]}` in the environment")
    return buffers_of(root, places)


def consistent_state(state: LogState) -> BufferDrain:
    """Say where a run's region stands.

    A reset, and a carry that is taken over, cover nothing: no buffer counts again because of one.
    """
    tip = state.tip
    return BufferDrain(newest_drain(state, tip.commit), tip.upto, tip.commit) if tip else BufferDrain(0, 0, 0)
