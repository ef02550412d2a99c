"""The states that a run can go back to, as a person names one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from pipelines.engine.commits.resets import newest_state, state_at, state_at_sequence
from pipelines.flows.errors import GridError
from pipelines.flows.grid import instant_of
from pipelines.jobs.environment.errors import WrongUse

if TYPE_CHECKING:
    from pipelines.engine.commits.history import LogState
    from pipelines.jobs.runs.known import KnownRun

SEQUENCE = re.compile(r"(?:sequence:|s)(\d+)", re.IGNORECASE)


class AskedState(NamedTuple):
    """The state that somebody means."""

    commit: int
    beyond: bool = False
    """Whether what was asked for lies behind all that is published; the newest state stands for it then."""


def asked_state(known: KnownRun, state: LogState, to: str | None) -> AskedState:
    """Find the state that somebody means.

    Args:
        known: the run, for its timezone.
        state: its log now.
        to: a commit's number, `sequence:N`, or a date or instant; None for the newest state.

    Raises:
        WrongUse: it is none of these.
        CommitError: no state covers so little.
    """
    if to is None:
        return AskedState(newest_state(state))
    text, tip = to.strip(), state.tip
    sequence = SEQUENCE.fullmatch(text)
    if sequence:
        number = int(sequence[1])
        return AskedState(state_at_sequence(state, number), tip is not None and number > tip.upto)
    if text.isdecimal():
        return AskedState(int(text))
    try:
        tick = instant_of(known.grid, text, "to")
        return AskedState(state_at(state, tick), tip is not None and tick > tip.span.end)
    except GridError as error:
        raise WrongUse(
            f"a state must be the number of a commit, such as 41 (0 is the beginning), `sequence:40`, or a date or "
            f"instant; it is `{text}`"
        ) from error
