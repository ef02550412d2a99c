"""Who stands beside a process that is about to lose its power: hears what it tells, counts its steps, and cuts.

A step is a sync or a step of the driver, before and after, or a commit that is told as published. The process cuts its
own power at a step, so that nothing of it happens later; what it told stands in a pipe, which no power cut reaches.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipelines.engine.commits.driver import Driver
from pipelines.engine.files import durable
from pipelines.jobs.drill.disk import cut

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from pathlib import Path
    from types import FrameType

    from pipelines.engine.commits.entry import Entry

DURABLE = durable.__name__
LANDING = frozenset({"manifests", "hashed_file", "landing_files", "copies", "places"})
"""Modules whose syncs are the landing's."""
SYNCED = "synced"
"""How a step behind a sync begins."""
STEPS = frozenset(
    {"intent", "add_files", "written", "written_and_published", "publish", "idle", "fold", "settle", "reset"}
)
"""Of a driver."""


@dataclass(frozen=True)
class CutAt:
    """When a process cuts its power."""

    told: int
    """After it has told so many commits."""
    steps: int
    """And has gone so many steps since; the next commit that it tells ends the wait."""


class Witness:
    """Of one process, inside it."""

    def __init__(self, disk: Path, pipe: Connection, at: CutAt | None) -> None:
        """Take the place of the disk, where to tell, and when to cut; None for not at all."""
        self._disk, self._pipe, self._at = disk, pipe, at
        self._told = self._steps = 0

    def tell(self, entry: Entry) -> None:
        """Tell a commit as published: from here on it has to be there, whatever happens."""
        self._pipe.send((entry.commit, content_of(entry)))
        over = self._at is not None and self._told >= self._at.told
        self._told, self._steps = self._told + 1, 0
        if over or (self._at is not None and self._at.steps == 0 and self._told == self._at.told):
            self._come()

    def know(self, entry: Entry) -> None:
        """Tell a commit that was published before the process began."""
        self._pipe.send((entry.commit, content_of(entry)))

    def step(self, name: str) -> None:  # noqa: ARG002 - for those who choose among steps
        """Count a step, and cut when it is the one."""
        self._steps += 1
        if self._at is not None and self._told >= self._at.told and self._steps >= self._at.steps:
            self._come()

    def end(self) -> None:
        """Do nothing at the end: who started the process cuts the power then."""

    def _come(self) -> None:
        """Do what was to come at this step: cut the power."""
        cut(self._disk)
        os.kill(os.getpid(), signal.SIGKILL)

    def watch(self, without: frozenset[str] = frozenset()) -> None:
        """See every sync of this process, and every step of its driver.

        Args:
            without: points whose syncs are left out: a planted bug.
        """
        sync, whole = os.fsync, durable._syncfs()  # noqa: SLF001 - the one other way to sync

        def around(call: Callable[[], object]) -> None:
            point = point_of(sys._getframe(2))  # noqa: SLF001 - who asks for the sync
            self.step(f"before {point}")
            if point not in without:
                call()
            self.step(f"{SYNCED} {point}")

        os.fsync = lambda fd: around(lambda: sync(fd))
        if whole is not None:
            durable._syncfs = lambda: lambda root: around(lambda: whole(root))  # type: ignore[assignment] # noqa: SLF001
        for name in sorted(STEPS.intersection(vars(Driver))):
            setattr(Driver, name, self._stepping(name, getattr(Driver, name)))

    def _stepping(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(*facts: Any, **named: Any) -> Any:  # noqa: ANN401 - what the step takes and gives
            self.step(f"before {name}")
            done = work(*facts, **named)
            self.step(f"behind {name}")
            return done

        return stepped


class Sleeper(Witness):
    """Stops the process at a step of a commit instead, once, until somebody wakes it."""

    def step(self, name: str) -> None:
        """Count a step of a commit: the landing is held to its own rules, by the drill `replay`."""
        if name.split(" ", 1)[1].partition(".")[0] not in LANDING:
            super().step(name)

    def _come(self) -> None:
        self._at = None
        os.kill(os.getpid(), signal.SIGSTOP)


class Killer(Witness):
    """Kills the process at a step instead: what reached the page cache stays."""

    def _come(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def point_of(frame: FrameType | None) -> str:
    """Name the place that asks for a sync: the first that is not of `durable`, and the ways through that.

    Args:
        frame: the one that syncs.
    """
    through: list[str] = []
    while frame is not None and frame.f_globals.get("__name__") == DURABLE:
        name = frame.f_code.co_name
        through += [] if name.startswith("_sync") else [name]
        frame = frame.f_back
    if frame is None:
        return ">".join(reversed(through))
    asks = f"{str(frame.f_globals.get('__name__')).rpartition('.')[2]}.{frame.f_code.co_name}"
    return ">".join([asks, *reversed(through)])


def content_of(entry: Entry) -> str:
    """Give what must never stand under a commit's number twice: its span, rows and carry, and what it supersedes."""
    facts = [entry.span, entry.sequences, dict(entry.hashes), entry.carry_hash, entry.supersedes]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
