"""What the processes of the drill `power` do: every loop of the product that writes, small, without Spark.

Each is a command that is typed again after a cut, word for word, and then comes to the same end.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.history import CommitKind
from pipelines.engine.commits.lease import Claim
from pipelines.engine.commits.readers import log_state
from pipelines.engine.live import epochs
from pipelines.engine.live.upkeep import Upkeep
from pipelines.engine.tasks.local import CoreEngine
from pipelines.flows.reading import read_flow
from pipelines.jobs.commands.reset import ResetRequest, reset_run
from pipelines.jobs.commands.upgrade import upgrade_flow
from pipelines.jobs.drill.drilled import live, tell
from pipelines.jobs.drill.fed import SMALL, SPAN, feed, readings
from pipelines.jobs.drill.older_home import older_state, unpack, write_flow
from pipelines.jobs.proofs.parity import table_hashes
from pipelines.jobs.runs.backfill import Backfill, run_backfill
from pipelines.operators.rows import TICKS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pipelines.engine.columnar.content import ContentHash
    from pipelines.engine.commits.driver import Driver
    from pipelines.jobs.drill.witness import Witness

READINGS = 8
AT = readings(READINGS)
SPANS = list(pairwise(readings(4)))
HOUSE_EVERY = 3
FOLD_EVERY = 3
BACK_TO, BACK_FROM = 3, 6
"""The reset: from behind the one reading to behind the other."""
AT_ONCE = dt.timedelta(0)
OLDER_FLOW = "older"
"""Stands for the flow of a home that older code wrote, which is there before the loop begins."""


@dataclass(frozen=True)
class Here:
    """Where a loop runs."""

    file: Path
    """Of the flow, on a disk of its own."""
    home: Path
    """On the disk that loses its power."""
    claim: Claim = Claim.ASK
    pause: float = 0.0
    """Seconds between two readings."""
    span: tuple[int, int] = SPAN
    """Of what it is held against a calm run, in ticks."""

    @property
    def root(self) -> Path:
        """Give the run's folder."""
        return self.home / "drilled" / "main"

    def wanted(self) -> Backfill:
        """Give what is run."""
        flow = read_flow(self.file, {})
        return Backfill(flow=flow, root=self.root, base=self.file.parent, engine=CoreEngine(), claim=self.claim)


Loop = Callable[[Here, "Witness"], None]


def backfill(here: Here, witness: Witness) -> None:
    """Run the flow over its intervals; again means all of them again, superseding."""
    wanted = here.wanted()
    run_backfill(wanted, SPANS, done=lambda ran: witness.tell(ran.entry))


def rerun(here: Here, witness: Witness) -> None:
    """Run it, run a part of it again, and sweep what was superseded."""
    wanted = here.wanted()
    for part in (SPANS, SPANS[:2]):
        run_backfill(wanted, part, done=lambda ran: witness.tell(ran.entry))
        with open_driver(wanted.root, flow=wanted.flow.name, claim=here.claim) as driver:
            Upkeep(driver).keep(every=1, keep=AT_ONCE)


def stream(here: Here, witness: Witness) -> None:
    """Land readings, an epoch after each."""
    live(here.wanted(), AT, pause=here.pause, published=witness.tell)


def house(here: Here, witness: Witness) -> None:
    """Stream, and keep house every few epochs: compaction, sweep, and logs cleaned behind checkpoints."""

    def keep(driver: Driver) -> None:
        Upkeep(driver).keep(every=HOUSE_EVERY, keep=AT_ONCE)

    live(here.wanted(), AT, pause=here.pause, published=witness.tell, between=keep)


def fold(here: Here, witness: Witness) -> None:
    """Stream, and fold the carry every few epochs."""
    epochs.FOLD_EVERY = FOLD_EVERY
    live(here.wanted(), AT, pause=here.pause, published=witness.tell)


def reset(here: Here, witness: Witness) -> None:
    """Stream a part, take the run back once, and stream to the end."""
    live(here.wanted(), AT[: BACK_FROM + 1], pause=here.pause, published=witness.tell)
    if not any(row.kind is CommitKind.RESET for row in log_state(here.root).commits.values()):
        os.environ["PULSELINE_HOME"] = str(here.home)
        reset_run(
            ResetRequest(flow=str(here.file), to=f"sequence:{BACK_TO}", take_over=here.claim is Claim.TAKE_OVER), tell
        )
        witness.tell(max(log_state(here.root).commits.values(), key=lambda row: row.commit))
    live(here.wanted(), AT, pause=here.pause, published=witness.tell)


def landing(here: Here, witness: Witness) -> None:
    """Land into three buffers, and publish out of them."""
    live(here.wanted(), AT, pause=here.pause, published=witness.tell)


def upgrade(here: Here, witness: Witness) -> None:
    """Take a home of the older format over."""
    state = older_state(here.root)
    for row in state.published if state else ():
        witness.know(row)
    os.environ["PULSELINE_HOME"] = str(here.home)
    upgrade_flow(str(here.file), None, False, tell)  # noqa: FBT003 - the command's flag


def upgraded(here: Here) -> dict[str, ContentHash]:
    """Unpack a home of the older format, take it over undisturbed, and hash it."""
    unpack(here.root)
    os.environ["PULSELINE_HOME"] = str(here.home)
    upgrade_flow(str(here.file), None, False, tell)  # noqa: FBT003 - the command's flag
    return table_hashes(here.root, here.wanted().flow, *here.span)


@dataclass(frozen=True)
class LoopKind:
    """A loop, and the flow that it runs."""

    loop: Loop
    commits: int
    """That it tells in a calm run."""
    every: str = "10m"
    """How long the flow's intervals are."""
    buffers: int = 1
    span: tuple[int, int] = SPAN
    """Of its feed, in ticks."""


KINDS = {
    "backfill": LoopKind(backfill, 4, every="150s"),
    "stream": LoopKind(stream, READINGS),
    "housekeeping": LoopKind(house, READINGS),
    "landing by three buffers": LoopKind(landing, READINGS, buffers=3),
    "reset": LoopKind(reset, READINGS + BACK_FROM - BACK_TO + 1),
    "folding": LoopKind(fold, READINGS),
    "rerun and sweep": LoopKind(rerun, 6, every="150s"),
    "upgrade": LoopKind(upgrade, 0, every=OLDER_FLOW, span=(SPAN[0], SPAN[0] + 2 * 3_600 * TICKS_PER_SECOND)),
}
"""Whatever writes."""


def folder_of(base: Path, kind: LoopKind) -> Path:
    """Give the folder of a kind's flow and feed."""
    return base / f"{kind.every}-{kind.buffers}"


def prepare(base: Path, kinds: Iterable[LoopKind]) -> None:
    """Write the flow of each kind, and its feed where it has one."""
    for kind in kinds:
        if kind.every == OLDER_FLOW:
            write_flow(folder_of(base, kind) / "flow.yaml", "drilled")
        else:
            feed(folder_of(base, kind), SMALL, kind.every, kind.buffers)


FED = {name: kind for name, kind in KINDS.items() if kind.every != OLDER_FLOW}
"""Those that run over the drill's own feed, and so end like its calm run."""
