"""What somebody else did to `commits`, taken back: all else is put right by its rows, and they by nothing else.

Every version of ours says which files came and went with it, so what the table should hold is what these say together.
Nobody goes on over a `commits` that somebody else changed, so behind such a version there is mostly none of ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pipelines.engine.commits import lease as leases
from pipelines.engine.commits.delta_log import at_version, checkpoint, mend
from pipelines.engine.commits.driver import LOCK
from pipelines.engine.commits.errors import LeaseHeldError
from pipelines.engine.commits.history import LogState
from pipelines.engine.commits.lease import Holder
from pipelines.engine.commits.log import SCHEMA, UNREADABLE, from_table
from pipelines.engine.commits.paths import CommitsLostError, NewFile, TornLogError, commits_path, version_path
from pipelines.engine.commits.table_log import Foreign, TableChange, TableLog
from pipelines.engine.commits.young_log import is_of_others
from pipelines.engine.files import durable
from pipelines.engine.files.small import read_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pipelines.engine.commits.paths import ActiveFile


TAKEN_BACK = "RESTORE"
"""What the log's history calls it."""


class Changed(NamedTuple):
    """What others did to the `commits` of a root."""

    by_others: tuple[Foreign, ...]
    lasts: str = ""
    """Why it cannot be taken back; nothing where it can."""


def changed_by_others(root: Path) -> Changed:
    """Give what others did to rows or columns of the `commits` of a root; what cannot be read is told elsewhere."""
    log = TableLog(commits_path(root), watched=True)
    try:
        log.look()
    except TornLogError:
        return Changed(())
    found = tuple(each for each in log.foreign if each.harm)
    try:
        if found:
            _own_rows(root, _of_us(log))
    except (CommitsLostError, TornLogError) as why:
        return Changed(found, str(why))
    return Changed(found)


def take_back(root: Path, flow: str, tell: Callable[[str], object] = leases.say) -> None:
    """Have `commits` hold what the run's own versions say together; on disk when this returns.

    Args:
        root: the run's folder, or of one of its legs.
        flow: name of the flow.
        tell: told when somebody who may be at work is watched.

    Raises:
        CommitsLostError: what the run wrote is no longer all there, or not by itself.
        LeaseHeldError: a driver is at work on the run.
        TornLogError: what the table was before cannot be read any more.
        ConcurrentAddError: somebody wrote meanwhile; nothing was changed.
    """
    with durable.locked(root / LOCK):
        mend(commits_path(root))
    log = TableLog(commits_path(root), watched=True)
    log.look()
    ours = _of_us(log)
    if ours is None:
        # A repair that was cut short behind its last step but one.
        checkpoint(log.path)
        return
    state, me = _own_rows(root, ours), leases.this_process()
    if state.lease and leases.is_held(root, state.lease, me, tell):
        raise LeaseHeldError(flow, str(Holder.read(state.lease.detail)), state.lease.at)
    change = TableChange(
        adds=[NewFile(name, file.rows, file.size) for name, file in ours.files.items() if _other(log, name, file)],
        removes=[file for name, file in log.files.items() if name not in ours.files],
        says=TAKEN_BACK,
        shape=ours.shape,
    )
    log.commit(change, {})
    # What was before it is looked at no more.
    checkpoint(log.path)


class _Ours(NamedTuple):
    """What our versions say together."""

    files: Mapping[str, ActiveFile]
    shape: Mapping[str, Any] | None
    """What the table was, where others changed that."""
    lasts: str
    """What of others no later version takes back."""


def _of_us(log: TableLog) -> _Ours | None:
    """Give what our versions say together; None where it was taken back already.

    Raises:
        TornLogError: what the table was before cannot be read any more.
    """
    every = TableLog(log.path, watched=True)
    # A checkpoint that somebody else made has what they wrote before it.
    every.look(0)
    since = _taken_back(every)
    harm = [each for each in every.foreign if each.harm and each.version > since]
    if not harm:
        return None
    own, shape = at_version(log.path, harm[0].version - 1)
    for version in range(harm[0].version, every.version + 1):
        actions = every.read(version)
        if not is_of_others(actions):
            own.apply(actions)
    lasts = next((each.words for each in harm if each.is_lasting), "")
    return _Ours(own.files, shape if any(each.reshapes for each in harm) else None, lasts)


def _taken_back(log: TableLog) -> int:
    """Give the version of ours that took back all before it, 0 where there is none."""
    for version in range(log.version, 0, -1):
        if not version_path(log.path, version).exists():
            break
        actions = log.read(version)
        if not is_of_others(actions) and any(
            action.get("commitInfo", {}).get("operation") == TAKEN_BACK for action in actions
        ):
            return version
    return 0


def _other(log: TableLog, name: str, file: ActiveFile) -> bool:
    stands = log.files.get(name)
    return stands is None or stands.size != file.size


def _own_rows(root: Path, ours: _Ours | None) -> LogState:
    """Read what the run wrote.

    Raises:
        CommitsLostError: not every row of it is there, once.
    """
    path = commits_path(root)
    if ours is None:
        return LogState.of([])
    if ours.lasts:
        raise CommitsLostError(str(path), ours.lasts, "for good")
    try:
        entries = from_table(read_whole([str(file.path) for file in ours.files.values()], SCHEMA))
    except FileNotFoundError as gone:
        raise CommitsLostError(str(path), gone.filename or str(gone)) from None
    except UNREADABLE as problem:
        if isinstance(problem, OSError) and problem.errno is not None:
            raise
        raise CommitsLostError(str(path), "one of its files", f"cannot be read ({problem})") from None
    state = LogState.of(entries)
    if [each.entry for each in state.entries] != list(range(1, len(entries) + 1)):
        went_on = "are gone or twice there, for the run went on over what somebody else wrote"
        raise CommitsLostError(str(path), "some", went_on)
    return state
