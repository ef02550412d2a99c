"""Syncs that are left out, each in turn: what a drill that cannot fail would not find."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.jobs.drill.loops import KINDS, OLDER_FLOW, Here, folder_of, prepare
from pipelines.jobs.drill.older_home import unpack
from pipelines.jobs.drill.processes import answer
from pipelines.jobs.drill.witness import SYNCED, Witness

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.engine.commits.entry import Entry


class Noting(Witness):
    """Notes the points that ask for syncs, and cuts nothing."""

    def __init__(self) -> None:
        """Note nothing yet."""
        self.points: set[str] = set()

    def tell(self, entry: Entry) -> None:
        """Let it pass."""

    def know(self, entry: Entry) -> None:
        """Let it pass, too."""

    def step(self, name: str) -> None:
        """Note the point."""
        when, _, point = name.partition(" ")
        self.points |= {point} if when == SYNCED else set()


def points(base: Path) -> dict[str, tuple[str, ...]]:
    """Give the points at which the product syncs, each with the kinds of loops that come by it."""
    found: dict[str, list[str]] = {}
    base.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        for point in answer(base / "log", 120, noted, kind, base / kind):
            found.setdefault(point, []).append(kind)
    return {point: tuple(kinds) for point, kinds in sorted(found.items())}


def noted(kind: str, base: Path) -> list[str]:
    """Run a loop to its end, and give the points that it came by."""
    drawn = KINDS[kind]
    prepare(base, [drawn])
    here = Here(folder_of(base, drawn) / "flow.yaml", base / "home", span=drawn.span)
    if drawn.every == OLDER_FLOW:
        unpack(here.root)
    noting = Noting()
    noting.watch()
    drawn.loop(here, noting)
    return sorted(noting.points)
