"""Where the legs of a run lie, and which files each keeps for those that have not read them yet.

A run that went live in parallel regions has a root for each leg: its own folder for `main`, `regions/<leg>` for the
others, each with commits, carry, lease and tables. Which legs there are stands in one file, written before any of them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from pipelines.engine.commits.delta_log import exists
from pipelines.engine.commits.entry import LEDGER
from pipelines.engine.commits.errors import LegMixedError, LegsLostError
from pipelines.engine.commits.log import CommitLog
from pipelines.engine.commits.paths import FILE, REGIONS, commits_path, run_root
from pipelines.engine.files import durable
from pipelines.engine.files.sums import with_sum, without_sum
from pipelines.flows.legs import MAIN
from pipelines.flows.model import main_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from pipelines.engine.commits.history import LogState
    from pipelines.flows.legs import Leg

LEGS = "legs"
LANDED = "landed"
"""What a commit counts beside its streams: rows that it took in."""
Noted = dict[str, dict[str, list[str]]]
"""By leg: its `streams`, and the legs that it `reads`."""


def leg_root(root: Path, leg: str) -> Path:
    """Give the root of a leg of a run."""
    return root if leg == MAIN else root / REGIONS / leg


def leg_of(root: Path) -> str:
    """Name the leg whose root it is; empty where it is that of a run in one piece."""
    if run_root(root) != root:
        return root.name
    return "" if noted_legs(root) is None else MAIN


def note_legs(root: Path, legs: Iterable[Leg]) -> Noted:
    """Say on disk which legs a run has, unless it is said; give what is said."""
    told = told_of(legs)
    if (known := noted_legs(root)) is None:
        durable.make_folder(root / REGIONS)
        durable.write_new(root / REGIONS / FILE, _text(told))
        return told
    return known


def note_legs_anew(root: Path, legs: Iterable[Leg]) -> None:
    """Say on disk which legs a run has, in place of what cannot be read."""
    durable.make_folder(root / REGIONS)
    durable.replace(root / REGIONS / FILE, _text(told_of(legs)))


def _text(told: Noted) -> bytes:
    return json.dumps(with_sum({LEGS: told}), indent=1).encode()


def told_of(legs: Iterable[Leg]) -> Noted:
    """Spell what is noted of legs."""
    return {leg.name: {"streams": list(leg.streams), "reads": list(leg.reads)} for leg in legs}


def noted_legs(root: Path) -> Noted | None:
    """Read which legs a run has; None where it runs in one piece.

    Raises:
        LegsLostError: it has some, and which they are cannot be read.
    """
    file = root / REGIONS / FILE
    try:
        said = without_sum(json.loads(file.read_bytes()))
        # Older code noted the legs alone, with no sum over them.
        found: Noted = said if MAIN in said else said[LEGS]
        _ = [(told["streams"], told["reads"]) for told in found.values()]
    except FileNotFoundError:
        if legs_begun(root):
            raise LegsLostError(str(file), "is gone") from None
        return None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise LegsLostError(str(file), "cannot be read") from None
    return found


def planned_legs(root: Path, state: LogState) -> Noted | None:
    """Read which legs a run has, and see that one whose commits were made in legs still says so.

    Args:
        root: the run's folder.
        state: its log, whose plans name the legs.

    Raises:
        LegsLostError: it has some, and nothing says any more which.
    """
    noted = noted_legs(root)
    if noted is None and run_root(root) == root and is_planned_in_legs(state):
        raise LegsLostError(str(root / REGIONS / FILE), "is gone")
    return noted


def is_planned_in_legs(state: LogState) -> bool:
    """Say whether the newest plan of a log is of a flow in legs."""
    plan = json.loads(state.newest_plan or "{}")
    return bool(plan.get("flow", {}).get("legs"))


def require_own(root: Path, leg: str, streams: Iterable[str], state: LogState) -> None:
    """See that the commits in a leg's root are that leg's: folders of legs look alike.

    Args:
        root: of the leg.
        leg: its name.
        streams: what it makes.
        state: the log that lies there.

    Raises:
        LegMixedError: they are of another.
    """
    own = set(streams)
    told = next((row.counts for row in reversed(state.in_order) if row.counts), {})
    others = sorted({main_of(name) for name in told} - own - {LANDED, LEDGER})
    if others:
        raise LegMixedError(str(root), leg, next(iter(sorted(own)), "no stream"), others[0])


def gone_legs(root: Path, state: LogState) -> Noted:
    """Give the legs of a run of which no log is left, though it has published: each has one before any commit.

    Args:
        root: the run's folder.
        state: its log.
    """
    noted = noted_legs(root) if state.published else None
    if noted is None:
        return {}
    begun = legs_begun(root)
    return {leg: told for leg, told in noted.items() if leg not in begun and leg != MAIN}


def put_gone_aside(root: Path, state: LogState) -> tuple[str, ...]:
    """Put what is left of legs whose log is gone out of the way of those that begin there anew; give their names.

    Under the run's lease alone.

    Args:
        root: the run's folder.
        state: its log.
    """
    gone = tuple(gone_legs(root, state))
    for leg in gone:
        if leg_root(root, leg).is_dir():
            durable.put_aside(leg_root(root, leg))
    return gone


def is_taken_from(root: Path, leg: str) -> bool:
    """Say whether another leg of a run, which is there, has taken something of one."""
    begun = {MAIN, *legs_begun(root)}
    readers = (name for name, told in (noted_legs(root) or {}).items() if leg in told["reads"] and name in begun)
    return any(_upto(leg_root(root, name)) for name in readers)


class Overtaken(NamedTuple):
    """A leg that ends before what another has read of it."""

    leg: str
    upto: int
    """Its last sequence."""
    reader: str
    taken: int
    """Up to which sequence that one has read it."""

    def __str__(self) -> str:
        """Say what it means."""
        return (
            f"leg {self.leg} ends at sequence {self.upto}, and {self.reader} has read it up to {self.taken}: what it "
            "had published is gone"
        )


def overtaken(root: Path) -> Iterator[Overtaken]:
    """Find the legs of a run that end before what another has read of them; nobody streams on from there."""
    noted, begun = noted_legs(root) or {}, {MAIN, *legs_begun(root)}
    # Of which no log is left is told otherwise.
    for reader in (name for name in noted if name in begun):
        for leg in (name for name in noted[reader]["reads"] if name in begun):
            # What reads it first: a driver at work goes on meanwhile.
            taken = _upto(leg_root(root, reader))
            if taken > (upto := _upto(leg_root(root, leg))):
                yield Overtaken(leg, upto, reader, taken)


def legs_begun(root: Path) -> set[str]:
    """Name the legs of a run that have a log of commits, beside that of the run's own folder."""
    folder = root / REGIONS
    return {leg.name for leg in folder.iterdir() if exists(commits_path(leg))} if folder.is_dir() else set()


def roots_of(root: Path) -> tuple[Path, ...]:
    """Give the roots of a run, its own first; that one alone where it runs in one piece."""
    return tuple(leg_root(root, leg) for leg in noted_legs(root) or (MAIN,))


def root_of(root: Path, stream: str) -> Path:
    """Give the root in which a stream of a run has its table."""
    name = main_of(stream)
    made_by = (leg for leg, told in (noted_legs(root) or {}).items() if name in told["streams"])
    return leg_root(root, next(made_by, MAIN))


def held_from(root: Path, state: LogState) -> int | None:
    """Give the first commit of a root of which some leg has not read all yet; None where there is none.

    How far a leg has read stands in its own commits, so this holds whatever became of the queue.
    """
    run = run_root(root)
    noted = noted_legs(run)
    if noted is None:
        return None
    own = leg_of(root)
    behind = [_upto(leg_root(run, leg)) for leg, told in noted.items() if own in told["reads"]]
    if not behind:
        return None
    return next((row.commit for row in state.in_order if row.upto > min(behind)), None)


def _upto(root: Path) -> int:
    tip = CommitLog(root).state().tip
    return tip.upto if tip else 0


def covered_by_all(root: Path, upto: int) -> int:
    """Give the last sequence that every leg of a run has taken in; `upto`, how far its own root is, in one piece."""
    noted: Mapping[str, object] = noted_legs(root) or {}
    return min([upto, *(_upto(leg_root(root, leg)) for leg in noted if leg != MAIN)])
