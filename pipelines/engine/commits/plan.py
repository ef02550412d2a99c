"""Under which plan a run stands: the flow of the commit that wrote its carry, and the format that it is written in."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pipelines.engine.commits.entry import START_OF_RUN
from pipelines.flows.definition import flow_to_json
from pipelines.flows.zones import VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipelines.engine.commits.entry import Entry
    from pipelines.engine.commits.history import LogState
    from pipelines.flows.model import Flow

FIRST_FORMAT = 1
"""Format of a carry whose plan says none."""
CARRY = "carry"
ZONES = "tzdata"
ADDRESS = "asked_by"


def plan_of(flow: Flow, carry: int, address: str = "") -> dict[str, object]:
    """Give what an intent says of what is to be run.

    Args:
        flow: what runs.
        carry: number of the format in which the carry is written.
        address: of the scheduler's run that asked for it; empty where none did.
    """
    asked = {ADDRESS: address} if address else {}
    return {"flow": flow_to_json(flow), "given": dict(flow.given), CARRY: carry, ZONES: VERSION, **asked}


def plan_text(plan: Mapping[str, object]) -> str:
    """Spell a plan as JSON, all in its own order: that of a source's columns is that of its streams' tables.

    A fingerprint is made from sorted keys, and so does not depend on how a plan is spelled.
    """
    return json.dumps(plan, separators=(",", ":"), ensure_ascii=False)


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


def zones_version(row: Entry) -> str | None:
    """Give the version of the timezones that a commit was made with; None where its plan does not say."""
    found = _read(str(row.plan)).get(ZONES)
    return None if found is None else str(found)


def address_of(row: Entry) -> str:
    """Give the address of the scheduler's run that asked for a commit; empty where its plan names none."""
    return str(_read(row.plan).get(ADDRESS, "")) if row.plan else ""


@lru_cache(maxsize=64)
def _read(plan: str) -> dict[str, Any]:
    return dict(json.loads(plan))
