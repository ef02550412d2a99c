"""Under which plan a run stands: the flow of the commit that wrote its carry, and the format that it is written in."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pipelines.engine.entries import START_OF_RUN

if TYPE_CHECKING:
    from pipelines.engine.entries import Entry
    from pipelines.engine.history import LogState
    from pipelines.flows.model import Flow

FIRST_FORMAT = 1
"""Format of a carry whose plan says none."""
CARRY = "carry"


def plan_of(flow: Flow, carry: int) -> dict[str, object]:
    """Give what an intent says of what is to be run.

    Args:
        flow: what runs.
        carry: number of the format in which the carry is written.
    """
    return {"flow": flow.definition(), "given": dict(flow.given), CARRY: carry}


def planned(state: LogState, commit: int) -> Entry | None:
    """Give the commit that wrote the carry which stands at `commit`, with its plan; None where nothing was carried.

    Idle epochs and resets have no plan of their own: theirs is that of the state that they leave as it is.
    """
    while commit != START_OF_RUN:
        row = state.commits[commit]
        if row.plan and not row.leaves_carry:
            return row
        commit = state.parent_of(state.first_idle(commit))
    return None


def definition_of(row: Entry) -> dict[str, Any]:
    """Give the definition of the flow that a commit was made by."""
    found: dict[str, Any] = _read(str(row.plan))["flow"]
    return found


def carry_format(state: LogState, commit: int) -> int | None:
    """Give the number of the format in which the carry at `commit` is written; None where nothing was carried."""
    row = planned(state, commit)
    return None if row is None else int(_read(str(row.plan)).get(CARRY, FIRST_FORMAT))


@lru_cache(maxsize=64)
def _read(plan: str) -> dict[str, Any]:
    return dict(json.loads(plan))
