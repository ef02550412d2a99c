"""How the parts of the drill come to their end: a calm run, seeds beside each other, each held against it."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Protocol

from pipelines.engine.commits.paths import TableError
from pipelines.engine.tasks.local import CoreEngine
from pipelines.jobs.drill.disk import DiskError
from pipelines.jobs.drill.fed import SMALL, SPAN, feed
from pipelines.jobs.drill.telling import Drilled, Undone
from pipelines.jobs.proofs.parity import table_hashes
from pipelines.jobs.runs.backfill import Backfill, run_backfill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pipelines.engine.columnar.content import ContentHash
    from pipelines.flows.model import Flow

Hashes = dict[str, "ContentHash"]


class Ending(Protocol):
    """What comes to an end, well or not."""

    done: Drilled

    def end(self) -> None:
        """Leave nothing behind: no process, no mount."""


class Seed(Ending, Protocol):
    """A run that is disturbed, as one seed draws it."""

    def run(self, wanted: Mapping[str, ContentHash]) -> None:
        """Disturb it until it has come to its end, and note where that is not the calm one."""


def calm(flow: Flow, root: Path, base: Path) -> Hashes:
    """Run a drill's flow undisturbed, and hash what it gives.

    Args:
        flow: over the drill's feed.
        root: the run's folder.
        base: the feed's.
    """
    run_backfill(Backfill(flow=flow, root=root, base=base, engine=CoreEngine()), [SPAN])
    return table_hashes(root, flow, *SPAN)


def small_calm(base: Path) -> Hashes:
    """Run the small feed undisturbed, in a folder of its own below `base`, and hash what it gives."""
    return calm(feed(base / "calm", SMALL), base / "calm" / "run", base / "calm")


def to_their_ends(seeds: Sequence[Seed], at_once: int, wanted: Mapping[str, ContentHash]) -> Iterator[Drilled]:
    """Run seeds beside each other; give each in its turn.

    Args:
        seeds: in folders of their own.
        at_once: how many run at the same time.
        wanted: the hashes of a calm run.
    """
    with ThreadPoolExecutor(at_once) as pool:
        yield from pool.map(lambda seed: one(seed, partial(seed.run, wanted)), seeds)


def one(seed: Ending, run: Callable[[], None]) -> Drilled:
    """Run one seed to its end and say what was wrong."""
    begun, done = time.monotonic(), seed.done
    try:
        run()
    except TableError as problem:
        done.differences, done.told = [*done.differences, "a table"], f"{done.told} {problem}".lstrip()
    except (Undone, DiskError, EOFError, TimeoutError) as problem:
        done.differences, done.told = [*done.differences, "not done"], f"{done.told} {problem}".lstrip()
    finally:
        seed.end()
    done.seconds = time.monotonic() - begun
    return done
