"""What is found on a disk after its power was cut, before anybody writes there again."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from pipelines.engine.commits.entry import LEDGER, State
from pipelines.engine.commits.instants import NoInstantError, versions_at
from pipelines.engine.commits.readers import log_state, read_ledger, read_stream
from pipelines.flows.reading import read_flow
from pipelines.jobs.commands.status import show_status
from pipelines.jobs.drill.looking import TableLook, look, looks_now, wrong
from pipelines.jobs.drill.older_home import older_state
from pipelines.jobs.drill.witness import content_of
from pipelines.jobs.proofs.parity import table_hashes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipelines.engine.commits.history import LogState
    from pipelines.jobs.drill.loops import Here


def lost(here: Here, told: Mapping[int, str]) -> list[str]:
    """Say what is not there any more, or cannot be read, of what was told as published.

    Args:
        here: the run.
        told: the content of each commit that was told, by its number.
    """
    try:
        older = older_state(here.root)
        if older is not None:
            return list(_commits(older, told))
        state = log_state(here.root)
        return [*_commits(state, told), *_rows(here, state), *_status(here, state), *wrong(looks_now(here.root), state)]
    except Exception as problem:  # noqa: BLE001 - whatever keeps a reader from reading is the finding
        said = " ".join(str(problem).split())[:200]
        return [f"{len(told)} told, and reading ends in {type(problem).__name__}: {said}"]


def _commits(state: LogState, told: Mapping[int, str]) -> Iterator[str]:
    there = {number: row for number, row in state.commits.items() if row.state is State.PUBLISHED}
    gone = sorted(told.keys() - there.keys())
    if gone:
        yield f"{len(gone)} of {len(told)} told commits are not published: {', '.join(map(str, gone))}"
    yield from (
        f"commit {number} is another than was told"
        for number in sorted(told.keys() & there.keys())
        if content_of(there[number]) != told[number]
    )


def _rows(place: Here, state: LogState) -> Iterator[str]:
    """Hold the rows of each table against what the published commits counted."""
    for name in (*read_flow(place.file, {}).tables(), LEDGER):
        rows = read_ledger(place.root, state=state) if name == LEDGER else read_stream(place.root, name, state=state)
        found = {} if not rows.num_rows else {each["values"]: each["counts"] for each in counted(rows["commit"])}
        wanted = {row.commit: row.rows_of(name) for row in state.published if row.rows_of(name)}
        if found != wanted:
            here, there = (f"{sum(each.values())} rows of {len(each)} commits" for each in (found, wanted))
            yield f"{name} has {here}, and not {there}"


def counted(commits: object) -> list[dict[str, int]]:
    """Count the rows of each commit."""
    return pc.value_counts(commits).to_pylist()  # type: ignore[no-any-return]


def _status(here: Here, state: LogState) -> Iterator[str]:
    """Ask `pulseline status`; a run of which nothing is known has none."""
    if not state.entries:
        return
    os.environ["PULSELINE_HOME"] = str(here.home)
    told: list[str] = []
    show_status(str(here.file), "main", True, told.append)  # noqa: FBT003 - the command's flag
    commits = json.loads(told[0])["published"]["commits"]
    if commits != len(state.published):
        yield f"status says that {commits} commits are published; the log has {len(state.published)}"


def hashed(here: Here) -> dict[str, str]:
    """Hash every table of a run, and its carry."""
    return {name: found.text for name, found in table_hashes(here.root, here.wanted().flow, *here.span).items()}


def instants(here: Here) -> list[str]:
    """Say at which commits the recorded versions of the tables are not one instant."""
    root = here.root
    state, found = log_state(root), list[TableLook]()
    for commit in state.commits:
        with suppress(NoInstantError):
            versions = versions_at(root, state, commit)
            looks = (look("pyarrow", root / name, name, version) for name, version in versions.items())
            found += [each._replace(settled=commit, reader=f"commit {commit}") for each in looks if each is not None]
    return list(wrong(found, state))
