"""The driver: takes commits through their steps, under a lease.

intent, written, published, settled: a commit is one row of `commits`, on disk when it is told, and the tables follow it
one by one. Every row is appended to a log that has just shown this driver's token as the newest, and refused when
anybody appended since, so a driver that was stopped, overtaken and woken cannot publish.
"""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pipelines.engine.columnar.clock import wall_now
from pipelines.engine.commits import lease as leases
from pipelines.engine.commits import steps
from pipelines.engine.commits.delta_log import mend
from pipelines.engine.commits.entry import NOTHING, CommitKind, Entry, Span, State
from pipelines.engine.commits.errors import LeaseHeldError, LeaseLostError
from pipelines.engine.commits.file_lists import FileLists, lists_to_json, shared_files
from pipelines.engine.commits.history import settled_text
from pipelines.engine.commits.housekeeping import EVERY, KEEP, House
from pipelines.engine.commits.incremental import Following
from pipelines.engine.commits.lease import Claim, Holder
from pipelines.engine.commits.log import FORMATS, CommitLog
from pipelines.engine.commits.paths import (
    ConcurrentAddError,
    NewFile,
    RootGoneError,
    TableError,
    commits_path,
    require_files,
    table_path,
)
from pipelines.engine.commits.plan import plan_text
from pipelines.engine.commits.settling import Tables
from pipelines.engine.files import durable

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pipelines.engine.commits.file_lists import SharedFiles
    from pipelines.engine.commits.history import LogState
    from pipelines.engine.commits.steps import Finished

LOGGER = logging.getLogger(__name__)
__all__ = ["Claim", "CommitLog", "Driver", "open_driver"]

LOCK = ".mending"
"""File below the root that keeps two from mending the table `commits`, which holds the lease, at the same time."""


class Driver:
    """The one writer of a root: begins, writes, publishes and settles commits while its token is the newest.

    Made by `open_driver`. Every step reads the log first; a step that does not follow from it is refused and leaves
    nothing behind.
    """

    def __init__(self, root: Path, flow: str, log: CommitLog, token: int) -> None:
        """Take a lease that is held already."""
        self.root, self.flow, self.log, self.token = root, flow, log, token
        self.tables = Tables(root, self.state, self._append)
        self._settled: str | None = None
        """What the next row says of the tables' versions; None where a row says it already."""
        self._house = House(root, self.tables)

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

    def agree(self, number: int | None = None) -> None:
        """See that no table has a commit or a later one, and that nobody else changed its rows.

        Args:
            number: the commit; without it the next one.

        Raises:
            TableAheadError: one has a commit that `commits` does not know.
            ForeignWriteError: somebody else wrote to one.
        """
        self.tables.agree(self.next_number() if number is None else number)

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
            ForeignWriteError: somebody else wrote to a table.
        """
        self.tables.agree(n)
        return self._step(
            partial(
                steps.intend,
                number=n,
                span=Span(*span),
                kind=kind,
                parent=parent,
                sequences=sequences,
                plan=plan_text(plan),
                fingerprint=fingerprint,
            )
        )

    def written(  # noqa: PLR0913 - what is known once files are written
        self,
        n: int,
        files: Mapping[str, Sequence[NewFile]],
        counts: Mapping[str, object],
        hashes: Mapping[str, str],
        carry_hash: str,
        durations: Mapping[str, object],
        *,
        detail: Mapping[str, object] = NOTHING,
    ) -> Entry:
        """Say that all files of commit `n` are written: they are on disk, and named, when this returns.

        Args:
            n: the commit, at intent.
            files: what its tasks wrote, by table.
            counts: rows by stream and ledger.
            hashes: text of the content hash by stream and ledger.
            carry_hash: text of the content hash of the carry at this commit.
            durations: milliseconds by stage.
            detail: what else is to be known.

        Raises:
            FileMissingError: a file is not there, or not whole.
            WrongStepError: the commit is not at intent.
            LeaseLostError: another driver has taken the lease.
        """
        told = self._secured(n, files)
        facts = {"counts": counts, "hashes": hashes, "carry_hash": carry_hash, "durations": durations, "files": told}
        return self._step(partial(steps.write, number=n, detail=detail, **facts))  # type: ignore[arg-type]

    def written_and_published(  # noqa: PLR0913 - what is known once files are written
        self,
        n: int,
        files: Mapping[str, Sequence[NewFile]],
        counts: Mapping[str, object],
        hashes: Mapping[str, str],
        carry_hash: str,
        durations: Mapping[str, object],
        *,
        detail: Mapping[str, object] = NOTHING,
    ) -> Entry:
        """Publish epoch `n` in one row and settle it; see `written` and `steps.publish_epoch`."""
        told = self._secured(n, files)
        facts = {"counts": counts, "hashes": hashes, "carry_hash": carry_hash, "durations": durations, "files": told}

        def step(state: LogState) -> Entry:
            return steps.publish_epoch(steps.write(state, n, detail=detail, **facts))  # type: ignore[arg-type]

        done = self._step(step)
        self._settle(n)
        return done

    def secure_together(self, n: int, count: int, files: Mapping[str, Sequence[NewFile]]) -> SharedFiles:
        """Have the files on disk that `count` commits share, the first of which is `n`, at intent.

        Raises:
            FileMissingError: a file is not there, or not whole.
        """
        last = n + count - 1
        return shared_files(self.root, range(n, last + 1), self._on_disk(n, last, files))

    def would_publish(self, n: int, finished: Sequence[Finished], files: SharedFiles) -> LogState:
        """Give the log as `publish_together` would leave it: by this, commits are judged before they count."""
        state = self.state()
        return Following.of([*state.entries, *steps.publish_together(state, n, finished, files.text)])

    def publish_together(self, n: int, finished: Sequence[Finished], files: SharedFiles) -> list[Entry]:
        """Publish intervals that share their files, all of them or none; see `steps`.

        Args:
            n: number of the first, at intent.
            finished: what is known of each, in order.
            files: from `secure_together`.

        Raises:
            FileMissingError: a file is gone since; nothing was published.
            ForeignWriteError: somebody else wrote to a table; nothing was published.
            LeaseLostError: another driver has taken the lease.
        """
        self.tables.agree(n)
        for name, listed in files.lists.items():
            require_files(table_path(self.root, name), listed)
        done = self._append_all(steps.publish_together(self.state(), n, finished, files.text))
        self._settle(done[-1].commit)
        return done

    def _secured(self, n: int, files: Mapping[str, Sequence[NewFile]]) -> str:
        """Have the files of a commit on disk, and spell their list."""
        return lists_to_json(self.root, n, self._on_disk(n, n, files))

    def _on_disk(self, first: int, last: int, files: Mapping[str, Sequence[NewFile]]) -> dict[str, list[NewFile]]:
        """Have files on disk that hold rows of the commits from one to another."""
        named = {name: [file._replace(first=first, last=last) for file in listed] for name, listed in files.items()}
        for name, listed in named.items():
            require_files(table_path(self.root, name), listed)
        paths = [table_path(self.root, name) / file.name for name, listed in named.items() for file in listed]
        durable.sync_files(self.root, paths)
        return named

    def publish(
        self,
        n: int,
        *,
        verdict: str | None = None,
        detail: Mapping[str, object] = NOTHING,
        durations: Mapping[str, object] = NOTHING,
    ) -> Entry:
        """Publish commit `n`, and let its tables follow; see `steps.publish`.

        Raises:
            FileMissingError: a file of it is gone since it was written; nothing was published.
            ForeignWriteError: somebody else wrote to a table; nothing was published.
        """
        self.tables.agree(n)
        for name, listed in FileLists(self.root, self.state()).of(n).items():
            require_files(table_path(self.root, name), listed)
        done = self._step(partial(steps.publish, number=n, verdict=verdict, detail=detail, durations=durations))
        self._settle(n)
        return done

    def settle(self) -> None:
        """Do what an earlier driver left undone: mend logs, carry compactions out, let the tables follow.

        Raises:
            TableError: a table cannot follow; says what repairs it.
        """
        self.tables.mend()
        self.tables.finish_compactions()
        newest = self.state().newest_published
        if newest is not None and newest.commit > self.state().recorded.commit:
            self._settle(newest.commit)

    def restore(self, path: Path) -> None:
        """Make a table hold what `commits` says, whatever it holds; see `settling.Tables.restore`."""
        newest = self.state().newest_published
        if newest is not None:
            self.tables.restore(path, newest.commit)
            self._settled = settled_text(self.state().recorded.commit, self.tables.versions(), 0)

    def _settle(self, n: int) -> None:
        begun = time.perf_counter()
        versions = self.tables.settle(n)
        self._settled = settled_text(n, versions, round((time.perf_counter() - begun) * 1_000))

    def close(self) -> None:
        """Have the versions of the tables recorded, where no row came behind the last commit."""
        if self._settled is not None:
            self._append(Entry(state=State.SETTLED, kind=CommitKind.HOUSE))

    def idle(self, n: int, span: Span, sequences: Sequence[int], counts: Mapping[str, object]) -> Entry:
        """Publish epoch `n`, which had no row and nothing due, without an intent; see `steps.idle`."""
        done = self._step(partial(steps.idle, number=n, span=Span(*span), sequences=sequences, counts=counts))
        self._settled = settled_text(n, self.tables.versions(), 0)
        return done

    def reset(
        self, n: int, target: int, *, detail: Mapping[str, object] = NOTHING, beginning: int | None = None
    ) -> Entry:
        """Take the run back to a published state, as commit `n`, in one row; see `steps.reset`.

        What had been begun must be given up before. The tables lose what came behind that state.
        """
        self.tables.agree(n)
        done = self._step(partial(steps.reset, number=n, target=target, detail=detail, beginning=beginning))
        self._settle(n)
        return done

    def keep_house(self, *, every: int = EVERY, keep: dt.timedelta = KEEP) -> bool:
        """Put tables in order once every so many commits, between two of them.

        See `housekeeping.House`. Nothing is done while a commit is open. Killed anywhere, tables read the same, and
        the next call goes on.

        Args:
            every: commits from one time to the next.
            keep: how long versions of tables stay readable, with all files that they name.

        Returns:
            Whether it was done now.

        Raises:
            LeaseLostError: another driver has taken the lease.
        """
        state = self.state()
        if state.pending or not self._house.is_due(state, every):
            return False
        try:
            self._house.keep(self.log, self.state, keep)
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
        return self._append(step(self.state()))

    def _append(self, row: Entry) -> Entry:
        return self._append_all([row])[0]

    def _append_all(self, rows: Sequence[Entry]) -> list[Entry]:
        self.state()
        stamped = [replace(row, token=self.token, at=wall_now()) for row in rows]
        stamped[0] = replace(stamped[0], settled=self._settled)
        try:
            done = self.log.append_all(stamped)
        except ConcurrentAddError:
            self.state()
            raise
        self._settled = None
        for row in done:
            LOGGER.info("commit %d of %s: %s, %s, token %d", row.commit, self.root, row.kind, row.state, row.token)
        return done


@contextmanager
def open_driver(
    root: Path,
    *,
    flow: str,
    claim: Claim = Claim.ASK,
    under: Callable[[], object] | None = None,
    tell: Callable[[str], object] = leases.say,
) -> Iterator[Driver]:
    """Hold the lease of a root while the block runs, and give it back at its end.

    A holder whose process is gone is succeeded at once, one that lives here and renews refuses at once. Any other is
    watched: refused as soon as it renews, succeeded when it has not done so for 30 s.

    Args:
        root: folder of the flow's run; made when it is not there.
        flow: name of the flow.
        claim: whether to take the lease from a holder that lives.
        under: of a leg of a run: sees that the run's lease is held, as `held_log` has it.
        tell: told when a holder is watched.

    Raises:
        LeaseHeldError: another driver holds the lease; says who, and since when.
        LeaseLostError: another driver has taken the run's lease, and this one with it.
    """
    with held_log(root, flow, claim, under=under, tell=tell) as (log, token):
        log.compact()
        driver = Driver(root, flow, log, token)
        driver.settle()
        try:
            yield driver
        finally:
            with suppress(LeaseLostError, TableError):
                driver.close()


@contextmanager
def held_log(  # noqa: PLR0913 - how a lease is asked for
    root: Path,
    flow: str,
    claim: Claim = Claim.ASK,
    *,
    under: Callable[[], object] | None = None,
    formats: frozenset[int] = FORMATS,
    tell: Callable[[str], object] = leases.say,
) -> Iterator[tuple[CommitLog, int]]:
    """Hold the lease of a root while the block runs, without a look at its tables.

    Args:
        root: folder of the flow's run; made when it is not there.
        flow: name of the flow.
        claim: whether to take the lease from a holder that lives.
        under: of a leg of a run: sees that the run's lease is still held, which this one follows, as `Driver.state` of
            the run does. Nobody is asked or watched: who has the run's has this, and who was overtaken in the run,
            stopped before this and woken, does not get it.
        formats: of the folder that are not refused.
        tell: told when a holder is watched.

    Returns:
        The log, and the token of the lease.

    Raises:
        LeaseHeldError: another driver holds the lease; says who, and since when.
        LeaseLostError: another driver has taken the run's lease, and this one with it.
        RootGoneError: the folder went away while the block ran, as a disk that is no longer mounted takes it.
    """
    durable.make_folder(root)
    place = durable.place_of(root)
    with durable.locked(root / LOCK):
        mend(commits_path(root))
        log = CommitLog(root, formats)
        log.create()
    token = _take(root, log, flow, claim, tell) if under is None else _follow(log, under)
    LOGGER.info("lease of %s taken, token %d", root, token)
    with leases.Renewals(root, token):
        try:
            yield log, token
        except Exception as error:
            # Whatever was met first is not why, where the whole folder went away meanwhile.
            if durable.place_of(root) != place:
                raise RootGoneError(str(root)) from error
            raise


def _take(root: Path, log: CommitLog, flow: str, claim: Claim, tell: Callable[[str], object]) -> int:
    me = leases.this_process()
    while True:
        state = log.state()
        if claim is Claim.ASK and state.lease and leases.is_held(root, state.lease, me, tell):
            raise LeaseHeldError(flow, str(Holder.read(state.lease.detail)), state.lease.at)
        try:
            return log.append(replace(steps.hold(state, me.facts()), at=wall_now())).token
        except ConcurrentAddError:
            # Somebody was faster and has a fresh lease, which is not what was to be taken over.
            claim = claim if log.state().token == state.token else Claim.ASK


def _follow(log: CommitLog, under: Callable[[], object]) -> int:
    """Take the lease of a leg as long as that of its run is held.

    Whoever takes the run's meanwhile has the last word: this row is refused behind theirs, or theirs follows it.
    """
    me = leases.this_process()
    while True:
        state = log.state()
        under()
        with suppress(ConcurrentAddError):
            return log.append(replace(steps.hold(state, me.facts()), at=wall_now())).token
