"""Commits that take rows away: what was read before cannot be taken back, so they are refused, or told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.engine.columnar.columns import canonical_json
from pipelines.engine.landing.file_rows import DROPPED, Line
from pipelines.engine.sources.delta.errors import RowsTakenAwayError

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.engine.sources.delta.log import Commit, TableShape


def taken_away(
    source: str, path: Path, commit: Commit, shape: TableShape, *, recorded: bool = False
) -> RowsTakenAwayError:
    """Give the refusal of a commit that takes rows away; a recorded span of commits begins where the flow says."""
    known = (source, str(path), commit.version, commit.operation, commit.removed, shape.is_ours)
    return RowsTakenAwayError(*known, recorded=recorded)


def told_commit(commit: Commit) -> Line:
    """Give the ledger's line of a commit that takes rows away and whose rows do not land."""
    facts = {
        "version": commit.version,
        "operation": commit.operation,
        "files_added": [file.name for file in commit.adds],
        "files_removed": commit.removed,
    }
    problem = (
        f"version {commit.version} ({commit.operation}) takes rows of {commit.removed} of its files away; none of "
        f"those that it adds in {len(commit.adds)} others lands"
    )
    raw = canonical_json(facts).encode()
    where = f"version {commit.version}"
    return Line(number=1, reason="rows_removed", action=DROPPED, raw=raw, problem=problem, where=where)
