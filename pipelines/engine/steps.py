"""The steps of a commit: each is judged against the log's state and gives the row to append, or is refused.

Nothing is written here; `Driver` stamps the row with its place, token and wall time and appends it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pipelines.engine.history import NO_SPAN, OPEN_STATES, START_OF_RUN, CommitKind, Entry, LogState, Span, State
from pipelines.engine.refusals import PendingCommitError, WrongStepError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def intend(  # noqa: PLR0913 - an intent is these facts
    state: LogState,
    number: int,
    span: Span,
    *,
    kind: CommitKind,
    parent: int,
    sequences: Sequence[int],
    plan: str,
    fingerprint: str,
) -> Entry:
    """Begin a commit: fix what will be done before any task starts.

    Args:
        state: the log.
        number: the next commit number.
        span: arrivals that it covers, in ticks.
        kind: interval, epoch or reset.
        parent: the commit whose carry it begins from; must be the one that the log gives.
        sequences: ids of the landing's sequences, in order.
        plan: canonical JSON of flow definition and versions.
        fingerprint: of the plan.

    Returns:
        The row, with the published intervals that it will replace.

    Raises:
        PendingCommitError: another commit is open.
        WrongStepError: number, span or parent is not what the log gives.
        CommitError: what `LogState.parent_for` and `superseded_by` refuse.
    """
    if state.pending:
        raise PendingCommitError(state.pending.commit, state.pending.state)
    _require(number, State.INTENT, "number", state.next_number, number)
    if span.end <= span.start:
        raise WrongStepError(number, State.INTENT, "an end after its start", f"span {span.start} to {span.end}")
    supersedes = state.superseded_by(span)
    _require(number, State.INTENT, "parent", _parent(state, span, kind), parent)
    return Entry(
        commit=number,
        state=State.INTENT,
        kind=kind,
        parent=parent,
        span=span,
        sequences=tuple(sequences),
        plan=plan,
        fingerprint=fingerprint,
        supersedes=supersedes,
    )


def _parent(state: LogState, span: Span, kind: CommitKind) -> int:
    if kind is CommitKind.INTERVAL:
        return state.parent_for(span.start)
    return state.tip.commit if state.tip else START_OF_RUN


def _require(number: int, step: State, name: str, required: int, came: int) -> None:
    if required != came:
        raise WrongStepError(number, step, f"{name} {required}", f"{name} {came}")


def _open(state: LogState, number: int, step: State, wanted: frozenset[State]) -> Entry:
    commit = state.commits.get(number)
    if commit is None or commit.state not in wanted:
        names = " or ".join(sorted(wanted))
        raise WrongStepError(number, step, f"come to {names}", f"come to {commit.state if commit else 'nothing'}")
    return commit


def write(  # noqa: PLR0913 - what is known once files are in their tables
    state: LogState,
    number: int,
    *,
    counts: Mapping[str, object],
    hashes: Mapping[str, str],
    carry_hash: str,
    durations: Mapping[str, object],
) -> Entry:
    """Say that every file of an intent is in its table.

    Args:
        state: the log.
        number: the commit, at intent.
        counts: rows by stream and ledger.
        hashes: text of the content hash by stream and ledger.
        carry_hash: text of the content hash of the carry at this commit.
        durations: milliseconds by stage.

    Raises:
        WrongStepError: the commit is not at intent.
    """
    commit = _open(state, number, State.WRITTEN, frozenset({State.INTENT}))
    return replace(
        commit,
        state=State.WRITTEN,
        plan=None,
        counts=counts,
        hashes=hashes,
        carry_hash=carry_hash,
        durations=durations,
    )


def publish(state: LogState, number: int, *, verdict: str | None) -> Entry:
    """Let readers see a written commit, and no longer what it supersedes: one row does both.

    Raises:
        WrongStepError: the commit is not at written.
    """
    commit = _open(state, number, State.PUBLISHED, frozenset({State.WRITTEN}))
    return replace(commit, state=State.PUBLISHED, plan=None, verdict=verdict)


def reject(state: LogState, number: int, *, verdict: str) -> Entry:
    """Keep a written commit from readers for good; what it would supersede stays.

    Raises:
        WrongStepError: the commit is not at written.
    """
    commit = _open(state, number, State.REJECTED, frozenset({State.WRITTEN}))
    return replace(commit, state=State.REJECTED, plan=None, verdict=verdict)


def abandon(state: LogState, number: int, *, why: str) -> Entry:
    """Give up an open commit; its files are never seen and its number stays used.

    Raises:
        WrongStepError: the commit is not open.
    """
    commit = _open(state, number, State.ABANDONED, OPEN_STATES)
    return replace(commit, state=State.ABANDONED, plan=None, detail={"why": why})


def hold(state: LogState, holder: Mapping[str, object]) -> Entry:
    """Take the lease: raise the token, so that no row of an earlier holder can follow.

    Args:
        state: the log, whose lease was judged.
        holder: facts of the process.
    """
    return Entry(state=State.LEASE, kind=CommitKind.LEASE, span=NO_SPAN, token=state.token + 1, detail=holder)
