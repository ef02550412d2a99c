"""`pulseline tables`: where a run's tables lie, which version holds what, and a ready line for each reader."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

import pyarrow.parquet as pq

from pipelines.engine.commits.delta_log import snapshot
from pipelines.engine.commits.entry import LEDGER
from pipelines.engine.commits.instants import newest_settled, versions_at, versions_now
from pipelines.engine.commits.readers import require_not_older
from pipelines.engine.files.stored import for_arrow, is_stored
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.runs.known import offered, open_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipelines.jobs.runs.known import KnownRun


@dataclass(frozen=True, kw_only=True)
class TablesQuery:
    """What is asked of the tables of a run."""

    flow: str
    """Name of the flow, or the path of its file."""
    run: str
    stream: str | None
    """Name of a stream, or `ledger`; None for all."""
    commit: int | None
    """The instant, as the number of a commit; None for the tables as they stand."""
    as_json: bool
    """One JSON object a table instead of words."""


def tell_tables(asked: TablesQuery, tell: Callable[[str], None]) -> None:
    """Print path and version of a run's tables, and how to read each.

    Raises:
        WrongUse: no such flow, run, commit or stream.
        NoInstantError: the tables as they were at the commit cannot be had.
    """
    known = open_run(asked.flow, asked.run)
    known.require_whole_log()
    if not known.state.published:
        tell(known.nothing_yet())
        return
    named = {
        _short(known, part, name): (part.root / name, version)
        for part in known.parts
        for name, version in _versions(known, part, asked.commit).items()
    }
    if asked.stream is not None and asked.stream not in named:
        raise WrongUse(f"no table `{asked.stream}` in {known.name}{offered(asked.stream, sorted(named))}")
    for short, (path, version) in sorted(named.items()):
        if asked.stream in {None, short}:
            lines = reader_lines(path, None if asked.commit is None else version, alone=_has_more(path))
            facts = {"table": short, "path": str(path), "version": version, "readers": lines}
            tell(json.dumps(facts) if asked.as_json else _words(facts))
    if not asked.as_json:
        tell("; ".join(known.written_by_others) or _closing(known, asked.commit))


def _short(known: KnownRun, part: KnownRun, name: str) -> str:
    """Name a table; each leg of a run but the first has a ledger of its own, which has the leg's name before it."""
    return name.removeprefix("streams/") if part is known or name != LEDGER else f"{part.root.name}.{LEDGER}"


def _versions(known: KnownRun, part: KnownRun, commit: int | None) -> dict[str, int]:
    """Give the versions of a part's tables: now, or at its newest state that covers no more than a commit of the run.

    What a leg publishes lies behind what it reads, so at one instant it stands there or before, and never beyond.

    Raises:
        TableLostError: a table has lost its newest versions.
    """
    if commit is None:
        now = versions_now(part.root)
        for name, version in now.items():
            require_not_older(part.root, part.root / name, version, part.state)
        return now
    entry = known.commit(commit)
    if part is known:
        return versions_at(part.root, part.state, commit)
    own = (row.commit for row in reversed(part.state.in_order) if row.upto <= entry.upto)
    at = next(own, None)
    return {} if at is None else versions_at(part.root, part.state, at)


def _words(facts: dict[str, object]) -> str:
    readers: dict[str, str] = facts["readers"]  # type: ignore[assignment]
    head = f"{facts['table']}  version {facts['version']}  {facts['path']}"
    first = ["  first   import urllib.parse"] if any("urllib" in line for line in readers.values()) else []
    return "\n".join([head, *first, *(f"  {reader:<7} {line}" for reader, line in readers.items())])


def _has_more(path: Path) -> bool:
    """Say whether files of a table hold more than its columns: turns, for a stage or leg that reads them later."""
    table = snapshot(path)
    if table is None or not table.files:
        return False
    files = [*table.files.values()]
    # Somebody may have put the older ones together, as columns alone. In a store each look is a call.
    some = (files[0], files[-1]) if is_stored(path) else files
    return any(not set(table.schema.names).issuperset(pq.read_schema(for_arrow(each.path)).names) for each in some)


def reader_lines(path: Path, version: int | None, *, alone: bool = False) -> dict[str, str]:
    """Give a line of Python for each reader.

    Args:
        path: the table's folder.
        version: which one to read; None for the newest.
        alone: name the table's columns to who reads files, which hold others beside them.
    """
    at = "" if version is None else f", version={version}"
    option = "" if version is None else f'.option("versionAsOf", {version})'
    files = f"DeltaTable({str(path)!r}{at}).file_uris()"
    if not is_stored(path) and quote(str(path)) != str(path):
        # delta-rs spells signs of a folder's name as in an address, and readers of files take names as they are.
        files = f"[urllib.parse.unquote(each) for each in {files}]"
    whole = f"delta_scan({str(path)!r})"
    names = f"[each.name for each in DeltaTable({str(path)!r}{at}).schema().fields]"
    of_table, selected = (
        (f", columns={names}", f".select(*map(duckdb.ColumnExpression, {names}))") if alone else ("", "")
    )
    # With a frame of nothing before them, for nothing alone cannot be put together.
    each = f"pandas.concat([pandas.DataFrame(), *(pandas.read_parquet(each{of_table}) for each in {files})])"
    # Spark reads by Hadoop's file systems, of which the one for S3 has a name of its own.
    by_hadoop = re.sub("^s3:", "s3a:", str(path)) if is_stored(path) else str(path)
    return {
        # Of several files at once pandas reads those of this machine alone.
        "pandas": each if is_stored(path) else f"pandas.read_parquet({files}{of_table})",
        "duckdb": f'duckdb.sql("FROM {whole}")' if version is None else f"duckdb.read_parquet({files}){selected}",
        "spark": f'spark.read.format("delta"){option}.load({by_hadoop!r})',
    }


def _closing(known: KnownRun, commit: int | None) -> str:
    if commit is not None and len(known.parts) > 1:
        upto = known.commit(commit).upto
        return (
            f"these versions are one instant of each leg: what it had settled of the sequences up to {upto}, the last "
            f"of commit {commit}, and nothing later"
        )
    if commit is not None:
        return f"these versions are one instant: all that was settled at commit {commit}, and nothing later"
    if len(known.parts) > 1:
        return (
            "each table holds what is settled and nothing else; the legs of the run go on apart, so what one of them "
            f"has may be on its way to another: {known.command('status')}"
        )
    newest = str(newest_settled(known.root, known.state))
    return (
        "each table holds what is settled and nothing else; they follow a commit one after the other, so for one "
        f"instant over all of them: {known.command('tables', '--commit', newest)}"
    )
