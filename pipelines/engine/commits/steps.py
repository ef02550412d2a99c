"""The steps of a commit: each is judged against the log's state and gives the row to append, or is refused.

Nothing is written here; `Driver` stamps the row with its place, token and wall time and appends it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipelines.engine.commits.entry import (
    NO_SPAN,
    NOTHING,
    OPEN_STATES,
    START_OF_RUN,
    TOGETHER,
    CommitKind,
    Entry,
    Span,
    State,
)
from pipelines.engine.commits.errors import PendingCommitError, WrongStepError
from pipelines.engine.commits.incremental import Following
from pipelines.engine.commits.resets import way_back

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipelines.engine.commits.history import LogState


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
        plan: JSON of flow definition and versions, as `plan.plan_text` spells it.
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
    if span.end < span.start or (span.end == span.start and kind is not CommitKind.ADOPT):
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
    files: str | None = None,
    detail: Mapping[str, object] = NOTHING,
) -> Entry:
    """Say that every file of an intent is written.

    Args:
        state: the log.
        number: the commit, at intent.
        counts: rows by stream and ledger.
        hashes: text of the content hash by stream and ledger.
        carry_hash: text of the content hash of the carry at this commit.
        durations: milliseconds by stage.
        files: what the row says of its files, from `file_lists.spelled`.
        detail: what else is to be known; beside what the intent has.

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
        files=files,
        detail={**commit.detail, **detail},
    )


def publish(
    state: LogState,
    number: int,
    *,
    verdict: str | None,
    detail: Mapping[str, object] = NOTHING,
    durations: Mapping[str, object] = NOTHING,
) -> Entry:
    """Let readers see a written commit, and no longer what it supersedes: one row does both.

    Args:
        state: the log.
        number: the commit, at written.
        verdict: of the gate.
        detail: what else is to be known; beside what the commit has.
        durations: milliseconds by stage; beside those the commit has.

    Raises:
        WrongStepError: the commit is not at written.
    """
    commit = _open(state, number, State.PUBLISHED, frozenset({State.WRITTEN}))
    return replace(
        commit,
        state=State.PUBLISHED,
        plan=None,
        verdict=verdict,
        detail={**commit.detail, **detail},
        durations={**commit.durations, **durations},
    )


@dataclass(frozen=True, kw_only=True)
class Finished:
    """What is known of an interval once it was worked on, together with others, and all its files are on disk."""

    span: Span
    sequences: Sequence[int]
    counts: Mapping[str, object]
    hashes: Mapping[str, str]
    carry_hash: str
    durations: Mapping[str, object]
    verdict: str | None = None


def publish_together(state: LogState, number: int, finished: Sequence[Finished], files: str) -> list[Entry]:
    """Publish intervals that follow one another and were worked on in one go, under the intent of the first.

    Each is a commit like any other, with its own number, parent, counts and hashes; they name the same files. Those
    behind the first have no row before: whoever dies before these rows leaves one intent, which is run again alone.

    Args:
        state: the log.
        number: of the first, at intent.
        finished: what is known of each, in order.
        files: what each row says of the files, from `file_lists.shared_files`.

    Returns:
        The rows, to be appended behind the state all at once.

    Raises:
        WrongStepError: the first is not at intent, is no interval, or has another span.
        CommitError: what `intend` refuses.
    """
    intent = _open(state, number, State.PUBLISHED, frozenset({State.INTENT}))
    if intent.kind is not CommitKind.INTERVAL or intent.span != finished[0].span:
        raise WrongStepError(number, State.PUBLISHED, f"an interval of {finished[0].span}", f"{intent.span}")
    known = Following.of(state.entries)
    rows: list[Entry] = []
    detail = {TOGETHER: [number, number + len(finished) - 1]}
    for place, each in enumerate(finished):
        begun = intent if not rows else _next_of(known, number + place, intent, each)
        told = {"counts": each.counts, "hashes": each.hashes, "carry_hash": each.carry_hash, "files": files}
        row = replace(
            begun,
            entry=state.newest_entry + 1 + place,
            state=State.PUBLISHED,
            plan=begun.plan if rows else None,
            verdict=each.verdict,
            durations=each.durations,
            detail={**begun.detail, **detail},
            **told,  # type: ignore[arg-type]
        )
        known = known.then([row])
        rows.append(row)
    return rows


def _next_of(state: LogState, number: int, intent: Entry, finished: Finished) -> Entry:
    """Begin the commit of an interval that was worked on under the intent of another."""
    return intend(
        state,
        number,
        finished.span,
        kind=CommitKind.INTERVAL,
        parent=state.parent_for(finished.span.start),
        sequences=finished.sequences,
        plan=str(intent.plan),
        fingerprint=str(intent.fingerprint),
    )


def publish_epoch(written: Entry) -> Entry:
    """Make of an epoch's written row the published one, which stands for both: an epoch has no gate to wait for.

    A driver that dies before the row leaves the intent, which is run again; one that dies after it, a whole commit.

    Args:
        written: from `write`.

    Raises:
        WrongStepError: the commit is neither an epoch nor a carry that was taken over.
    """
    if written.kind not in {CommitKind.EPOCH, CommitKind.ADOPT}:
        raise WrongStepError(written.commit, State.PUBLISHED, f"kind {CommitKind.EPOCH}", f"kind {written.kind}")
    return replace(written, state=State.PUBLISHED)


def idle(state: LogState, number: int, span: Span, *, sequences: Sequence[int], counts: Mapping[str, object]) -> Entry:
    """Publish an epoch that had no row and nothing due, in one row; its carry is its parent's.

    Args:
        state: the log.
        number: the next commit number.
        span: arrivals that it covers, in ticks.
        sequences: ids of the landing's sequences, in order.
        counts: what was counted though nothing came.

    Raises:
        PendingCommitError: another commit is open.
        WrongStepError: number or span is not what the log gives, or something published would be replaced.
        CommitError: what `LogState.superseded_by` refuses.
    """
    tip = state.tip
    parent = tip.commit if tip else START_OF_RUN
    facts = {"kind": CommitKind.EPOCH, "parent": parent, "sequences": sequences, "plan": "", "fingerprint": ""}
    begun = intend(state, number, span, **facts)  # type: ignore[arg-type]
    if begun.supersedes:
        raise WrongStepError(number, State.PUBLISHED, "a span of its own", f"a span that replaces {begun.supersedes}")
    carry = tip.carry_hash if tip else None
    return replace(begun, state=State.PUBLISHED, plan=None, fingerprint=None, counts=counts, carry_hash=carry)


def reset(
    state: LogState,
    number: int,
    target: int,
    *,
    detail: Mapping[str, object] = NOTHING,
    beginning: int | None = None,
) -> Entry:
    """Go back to a published state in one row: it supersedes all that came behind, and the next epoch begins from it.

    The row spans nothing; carry and last sequence are those of the state.

    Args:
        state: the log.
        number: the next commit number.
        target: number of the state, or `START_OF_RUN`.
        detail: what else is to be known.
        beginning: where the landing of a run begins that never began a commit, in ticks.

    Raises:
        PendingCommitError: a commit is open; it is to be given up first.
        WrongStepError: the number is not what the log gives.
        CommitError: what `resets.way_back` refuses.
    """
    if state.pending:
        raise PendingCommitError(state.pending.commit, state.pending.state)
    _require(number, State.PUBLISHED, "number", state.next_number, number)
    way = way_back(state, target, beginning)
    return Entry(
        commit=number,
        state=State.PUBLISHED,
        kind=CommitKind.RESET,
        parent=way.target,
        span=Span(way.start, way.start),
        carry_hash=way.ground.carry_hash if way.ground else None,
        supersedes=tuple(row.commit for row in way.superseded),
        detail={**detail, "sequence": way.sequence},
    )


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
