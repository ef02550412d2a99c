"""How far each leg of a run has come, what waits for it, and which leg waits for whom; as plain values."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pipelines.engine.commits.lease import seems_held
from pipelines.engine.commits.leg_roots import leg_root, noted_legs
from pipelines.engine.commits.readers import log_state
from pipelines.engine.live.crossing import QUEUE, WAITS, tickets_in
from pipelines.flows.legs import MAIN
from pipelines.operators.rows import TICKS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pipelines.engine.commits.history import LogState

    Facts = dict[str, Any]


def legs_facts(root: Path, now: int, known: Mapping[str, LogState] | None = None) -> list[Facts]:
    """Say where each leg of a run stands; nothing of a run in one piece. Instants, whose names end in `_at`, in ticks.

    Args:
        root: the run's folder.
        now: wall time, in ticks.
        known: their states by name, where more is told of them and must agree; what is not given is read.
    """
    noted = noted_legs(root) or {}
    states = {name: (known or {}).get(name) or log_state(leg_root(root, name)) for name in noted}
    driven = bool(noted) and seems_held(root, states[MAIN].lease, now)
    return [_leg(root, name, told["reads"], states, now, driven=driven) for name, told in noted.items()]


def behind(legs: Sequence[Facts]) -> list[str]:
    """Name the legs that rows wait for."""
    return [leg["leg"] for leg in legs if any(each["untold"] or each["rows"] for each in leg["behind"])]


def _leg(  # noqa: PLR0913 - a leg, and what is known of the run
    root: Path, name: str, reads: Sequence[str], states: Mapping[str, LogState], now: int, *, driven: bool
) -> Facts:
    state = states[name]
    upto = state.tip.upto if state.tip else 0
    return {
        "leg": name,
        "sequence": upto,
        "upto_at": state.tip.span.end if state.tip else None,
        "commits": len(state.published),
        "behind": [
            {"leg": other, **_behind(leg_root(root, other) / QUEUE / name, states[other], upto, now)} for other in reads
        ],
        # Where nobody drives the run, nobody waits for anybody.
        "waits_for": _waits(leg_root(root, name)) if driven else None,
    }


def _behind(queue: Path, writer: LogState, upto: int, now: int) -> Facts:
    """Say what waits in the queue from one leg to another."""
    # A ticket of a commit that a reset took back stays until somebody drives the run again.
    waiting = [each for each in tickets_in(queue) if each.upto > upto and each.commit in writer.visible]
    published = {row.commit for row in writer.published if row.sequences and row.upto > upto}
    return {
        "untold": len(published.difference(ticket.commit for ticket in waiting)),
        "rows": sum(ticket.rows for ticket in waiting),
        "bytes": sum(ticket.size for ticket in waiting),
        "seconds": max(0.0, round((now - min(each.at for each in waiting)) / TICKS_PER_SECOND, 1)) if waiting else 0.0,
    }


def _waits(root: Path) -> Facts | None:
    """Say for whom a leg waits, as its driver noted it."""
    try:
        found: Facts = json.loads((root / WAITS).read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    return found
