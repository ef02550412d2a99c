"""One instant over all tables of a run: which version of each holds exactly what was settled at a commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from pipelines.engine.commits.entry import State
from pipelines.engine.commits.errors import CommitError
from pipelines.engine.commits.history import settled_of
from pipelines.engine.commits.paths import data_tables, table_name
from pipelines.engine.commits.settling import is_settled
from pipelines.engine.commits.table_log import TableLog

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.engine.commits.history import LogState


@dataclass(eq=False)
class NoInstantError(CommitError):
    """Nobody knows, or keeps, the tables' versions at a commit.

    Facts: what was asked, why it cannot be had, and the newest settled commit.
    """

    commit: int
    why: str
    newest: int
    says = (
        "the tables as they were at commit {commit} cannot be had: {why}; the newest commit that is settled is {newest}"
    )


def versions_now(root: Path) -> dict[str, int]:
    """Give the version of each table as it stands."""
    logs = {table_name(root, path): TableLog(path) for path in data_tables(root)}
    return {name: log.version for name, log in logs.items() if log.look()}


def versions_at(root: Path, state: LogState, commit: int) -> dict[str, int]:
    """Give the version of each table that holds what was settled at a commit, and nothing later.

    Args:
        root: the run's folder.
        state: its log.
        commit: its number.

    Raises:
        NoInstantError: it was never settled, its versions were not recorded, or are no longer kept.
    """
    newest = newest_settled(root, state)
    row = next((row for row in state.entries if row.settled and settled_of(row).commit == commit), None)
    if row is None and commit == newest:
        return versions_now(root)
    if row is None:
        known = state.commits.get(commit)
        why = "it was never begun" if known is None else f"it is at {known.state}"
        if known is not None and known.state is State.PUBLISHED:
            recorded = (settled_of(row).commit for row in state.entries if row.settled)
            later = min((each for each in recorded if each > commit), default=None)
            why = "their versions were not recorded, as of commits from before an upgrade"
            if newest < commit:
                why = "not every table has followed it yet: whoever drives next sees to that, as does doctor --repair"
            if later is not None:
                why = f"they followed it together with commit {later}, as of days that ran in one go: ask for that one"
        raise NoInstantError(commit, why, newest)
    versions = dict(settled_of(row).versions)
    for name, version in versions.items():
        _require_kept(root, state, name, version, commit, newest)
    return versions


def newest_settled(root: Path, state: LogState) -> int:
    """Give the newest commit that every table has."""
    published = state.newest_published
    if published is None or published.commit <= state.recorded.commit:
        return state.recorded.commit
    return published.commit if is_settled(state, root) else state.recorded.commit


def _require_kept(  # noqa: PLR0913 - one version, and what was asked
    root: Path, state: LogState, name: str, version: int, commit: int, newest: int
) -> None:
    for row in state.entries:
        if row.state is State.REBUILT and row.detail["table"] == name and int(str(row.detail["past"])) >= version:
            raise NoInstantError(commit, f"the log of {name} was made anew since", newest)
    try:
        DeltaTable(str(root / name), version=version)
    except Exception:  # noqa: BLE001 - delta-rs has no one error for a version that is gone
        raise NoInstantError(
            commit, f"version {version} of {name} is older than the flow's keep_versions", newest
        ) from None
