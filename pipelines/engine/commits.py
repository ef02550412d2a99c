"""The driver: takes commits through their steps, under a lease.

A commit is one row: `published` makes streams, ledger and carry change together. Every row is appended to a log that
has just shown this driver's token as the newest, and refused when anybody appended since, so a driver that was
stopped, overtaken and woken cannot publish.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pipelines.engine import lease as leases
from pipelines.engine import steps
from pipelines.engine.columns import canonical_json
from pipelines.engine.entries import NOTHING, CommitKind, Entry, Span, State
from pipelines.engine.handles import Handle
from pipelines.engine.housekeeping import EVERY, KEEP, House
from pipelines.engine.keeping import Keeper
from pipelines.engine.lease import Claim, Holder, Standing
from pipelines.engine.log import CommitLog
from pipelines.engine.refusals import AddedTwiceError, LeaseHeldError, LeaseLostError, WrongStepError
from pipelines.engine.tables import (
    ConcurrentAddError,
    NewFile,
    TableAheadError,
    add_to,
    application,
    data_tables,
    landed_path,
    newest_version,
)

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pipelines.engine.history import LogState

__all__ = ["Claim", "CommitLog", "Driver", "open_driver"]


class Driver:
    """The one writer of a root: begins, writes and publishes commits while its token is the newest.

    Made by `open_driver`. Every step reads the log first; a step that does not follow from it is refused and leaves
    nothing behind.
    """

    def __init__(self, root: Path, flow: str, log: CommitLog, token: int) -> None:
        """Take a lease that is held already."""
        self.root, self.flow, self.log, self.token = root, flow, log, token
        self._handles: dict[Path, Handle] = {}
        self._added: dict[Path, tuple[int, bool]] = {}
        """By table: the last commit that this driver added, and whether its files were the ones taken."""
        self._house = House(root, flow, token)
        self._keeper = Keeper(landed_path(root), self.state)
        self._agreed = False

    def state(self) -> LogState:
        """Read the log, making sure that this driver may still write.

        Raises:
            LeaseLostError: another driver has taken the lease.
        """
        state = self.log.state()
        if state.token != self.token:
            holder = str(Holder.read(state.lease.detail)) if state.lease else "nobody"
            raise LeaseLostError(self.flow, self.token, state.token, holder, state.lease.at if state.lease else 0)
        return state

    def pending(self) -> Entry | None:
        """Give the commit to finish before any other: at intent (run its tasks again) or written (publish it)."""
        return self.state().pending

    def next_number(self) -> int:
        """Give the number of the next commit."""
        return self.state().next_number

    def intent(  # noqa: PLR0913 - an intent is these facts
        self,
        n: int,
        span: Span,
        parent: int,
        sequences: Sequence[int],
        plan: Mapping[str, object],
        fingerprint: str,
        *,
        kind: CommitKind = CommitKind.INTERVAL,
    ) -> Entry:
        """Begin commit `n`; see `steps.intend` for what is refused. Write it before any task starts.

        Raises:
            TableAheadError: a table has this number already, though the log never had it.
        """
        self._agree(n)
        return self._step(
            partial(
                steps.intend,
                number=n,
                span=Span(*span),
                kind=kind,
                parent=parent,
                sequences=sequences,
                plan=canonical_json(dict(plan)),
                fingerprint=fingerprint,
            )
        )

    def _agree(self, n: int) -> None:
        """See once that no table has a commit which the log does not know: its files would count as this one's."""
        for path in () if self._agreed else data_tables(self.root):
            table = self._handles.setdefault(path, Handle(path)).look()
            newest = newest_version(table, application(self.root, self.flow, path)) if table else 0
            if newest >= n:
                raise TableAheadError(str(path), n - 1, newest)
        self._agreed = True

    def add_files(self, n: int, table: Path, files: Sequence[NewFile]) -> bool:
        """Add what the tasks of commit `n` wrote to a table, all of it at once; a table that has `n` is skipped.

        Args:
            n: the pending commit.
            table: folder of a stream, the ledger or a part of the carry.
            files: lie directly in that folder.

        Returns:
            Whether files were added now; False when an earlier attempt of the commit had added its own.

        Raises:
            WrongStepError: `n` is not at intent.
            AddedTwiceError: this driver has added to this table under `n`.
            LeaseLostError: another driver has taken the lease.
            TableError: what `tables.add_files` refuses.
        """
        pending = self.state().pending
        if pending is None or pending.commit != n or pending.state is not State.INTENT:
            came = f"commit {pending.commit} at {pending.state}" if pending else "no pending commit"
            raise WrongStepError(n, "adding files", "its intent pending", came)
        if self._added.get(table, (0, False))[0] == n:
            raise AddedTwiceError(n, str(table))
        handle, name = self._handles.setdefault(table, Handle(table)), application(self.root, self.flow, table)
        try:
            added = add_to(handle.keep_young(), table, name, n, files)
        except ConcurrentAddError:
            self.state()
            raise
        seen = handle.look()
        self._added[table] = n, added or seen is None or newest_version(seen, name) != n
        return added

    def written(  # noqa: PLR0913 - what is known once files are in their tables
        self,
        n: int,
        counts: Mapping[str, object],
        hashes: Mapping[str, str],
        carry_hash: str,
        durations: Mapping[str, object],
        *,
        detail: Mapping[str, object] = NOTHING,
    ) -> Entry:
        """Say that all files of commit `n` are in their tables; see `steps.write`."""
        facts = {"counts": counts, "hashes": hashes, "carry_hash": carry_hash, "durations": durations}
        return self._step(partial(steps.write, number=n, detail=detail, **facts))  # type: ignore[arg-type]

    def written_and_published(  # noqa: PLR0913 - what is known once files are in their tables
        self,
        n: int,
        counts: Mapping[str, object],
        hashes: Mapping[str, str],
        carry_hash: str,
        durations: Mapping[str, object],
        *,
        detail: Mapping[str, object] = NOTHING,
    ) -> Entry:
        """Publish epoch `n`, whose files are all in their tables, in one row; see `steps.publish_epoch`."""
        facts = {"counts": counts, "hashes": hashes, "carry_hash": carry_hash, "durations": durations}

        def step(state: LogState) -> Entry:
            return steps.publish_epoch(steps.write(state, n, detail=detail, **facts))  # type: ignore[arg-type]

        return self._step(step)

    def publish(
        self,
        n: int,
        *,
        verdict: str | None = None,
        detail: Mapping[str, object] = NOTHING,
        durations: Mapping[str, object] = NOTHING,
    ) -> Entry:
        """Let readers see commit `n`; see `steps.publish`."""
        return self._step(partial(steps.publish, number=n, verdict=verdict, detail=detail, durations=durations))

    def idle(self, n: int, span: Span, sequences: Sequence[int], counts: Mapping[str, object]) -> Entry:
        """Publish epoch `n`, which had no row and nothing due, without an intent; see `steps.idle`."""
        return self._step(partial(steps.idle, number=n, span=Span(*span), sequences=sequences, counts=counts))

    def reset(
        self, n: int, target: int, *, detail: Mapping[str, object] = NOTHING, beginning: int | None = None
    ) -> Entry:
        """Take the run back to a published state, as commit `n`, in one row; see `steps.reset`.

        What had been begun must be given up before. No table is touched.
        """
        return self._step(partial(steps.reset, number=n, target=target, detail=detail, beginning=beginning))

    def fold(self, n: int) -> bool:
        """Make commit `n` a base of the carry: every part of it was added with its whole carry beside its deltas.

        Call it between the last `add_files` and `written`. Where an earlier attempt of `n` had added to a table, nobody
        knows whether it wrote bases there: then `n` is left as deltas, which is always right, unless that attempt
        had come to fold it, after all its files.

        Returns:
            Whether `n` is a base.

        Raises:
            WrongStepError: `n` is not at intent, or no epoch.
        """
        row = steps.fold(self.state(), n)
        if self.state().is_folded(n):
            return True
        if any(commit == n and not mine for commit, mine in self._added.values()):
            return False
        self._step(lambda _: row)
        return True

    def keep_house(self, *, every: int = EVERY, keep: dt.timedelta = KEEP, rows: int | None = None) -> bool:
        """Put tables and history in order once every so many commits, between two of them.

        See `housekeeping.House` and `keeping.Keeper`. Nothing is done while a commit is open. Killed anywhere, tables
        and history read the same, and the next call goes on.

        Args:
            every: commits from one time to the next.
            keep: how long replaced and superseded files stay for readers that still have them open.
            rows: how long landed rows stay, in ticks; None for ever.

        Returns:
            Whether it was done now.

        Raises:
            LeaseLostError: another driver has taken the lease.
        """
        state = self.state()
        if state.pending or not self._house.is_due(state, every):
            return False
        try:
            self._house.keep(self.log, state, keep)
            self._keeper.keep(state.tip.upto if state.tip else 0, keep, rows)
        except ConcurrentAddError:
            self.state()
            raise
        return True

    def reject(self, n: int, *, verdict: str) -> Entry:
        """Keep commit `n` from readers; see `steps.reject`."""
        return self._step(partial(steps.reject, number=n, verdict=verdict))

    def abandon(self, n: int, *, why: str) -> Entry:
        """Give up commit `n`, whose plan cannot be had any more; see `steps.abandon`."""
        return self._step(partial(steps.abandon, number=n, why=why))

    def _step(self, step: Callable[[LogState], Entry]) -> Entry:
        self.log.keep_young()
        row = replace(step(self.state()), token=self.token, at=leases.wall_ticks())
        try:
            return self.log.append(row)
        except ConcurrentAddError:
            self.state()
            raise


@contextmanager
def open_driver(root: Path, *, flow: str, claim: Claim = Claim.ASK) -> Iterator[Driver]:
    """Hold the lease of a root while the block runs, and give it back at its end.

    A holder whose process is gone, or that has not renewed for 30 s, is succeeded at once.

    Args:
        root: folder of the flow's run; made when it is not there.
        flow: name of the flow.
        claim: whether to take the lease from a holder that lives.

    Raises:
        LeaseHeldError: another driver holds the lease; says who, and since when.
    """
    root.mkdir(parents=True, exist_ok=True)
    log = CommitLog(root)
    log.create()
    token = _take(root, log, flow, claim)
    log.compact()
    with leases.Renewals(root, token):
        yield Driver(root, flow, log, token)


def _take(root: Path, log: CommitLog, flow: str, claim: Claim) -> int:
    me = leases.this_process()
    while True:
        state = log.state()
        _judge(root, state, me, flow, claim)
        try:
            return log.append(replace(steps.hold(state, me.facts()), at=leases.wall_ticks())).token
        except ConcurrentAddError:
            # Somebody was faster and has a fresh lease, which is not what was to be taken over.
            claim = claim if log.state().token == state.token else Claim.ASK


def _judge(root: Path, state: LogState, me: Holder, flow: str, claim: Claim) -> None:
    gone = partial(leases.is_gone, seen_from=me)
    found = leases.standing(state.lease, leases.read_renewal(root), gone, leases.wall_ticks())
    if found is Standing.HELD and state.lease and claim is Claim.ASK:
        raise LeaseHeldError(flow, str(Holder.read(state.lease.detail)), state.lease.at)
