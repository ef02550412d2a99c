"""A process among neighbours with a bug in it: what a drill that cannot fail would not find."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from pipelines.engine.commits.settling import Tables
from pipelines.engine.commits.table_log import TableChange, TableLog
from pipelines.jobs.drill.neighbours import working

if TYPE_CHECKING:
    from collections.abc import Mapping
    from multiprocessing.connection import Connection

    from pipelines.jobs.drill.loops import Here
    from pipelines.jobs.drill.witness import CutAt


def halved(pipe: Connection, kind: str, here: Here, at: CutAt | None) -> None:
    """Let tables follow a commit in two transactions: first what comes, then what goes."""
    commit = TableLog.commit

    def twice(log: TableLog, change: TableChange, applications: Mapping[str, int]) -> int:
        if change.adds and change.removes:
            commit(log, replace(change, removes=()), applications)
            time.sleep(0.5)
            change = replace(change, adds=())
        return commit(log, change, applications)

    TableLog.commit = twice  # type: ignore[assignment,method-assign]
    working(pipe, kind, here, at)


def trusting(pipe: Connection, kind: str, here: Here, at: CutAt | None) -> None:
    """Go on over whatever others wrote."""
    TableLog.refuse_foreign = lambda _: None  # type: ignore[assignment,method-assign]
    working(pipe, kind, here, at)


def hasty(pipe: Connection, kind: str, here: Here, at: CutAt | None) -> None:
    """Let the tables follow one commit late, and say that they have."""
    settle = Tables.settle

    def late(tables: Tables, number: int) -> dict[str, int]:
        return settle(tables, number) if number % 2 else tables.versions()

    Tables.settle = late  # type: ignore[assignment,method-assign]
    working(pipe, kind, here, at)
