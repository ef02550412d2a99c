"""Whether what is published still is what was published: content of files against what their commits said of it.

A commit says the content hash of the rows it wrote, by table, and of each file. Whoever changes a value afterwards, or
a disk that does, leaves another hash, whatever the change was. What a footer says of them, by which readers leave rows
out, is held against the rows. Landed files have a hash of their bytes in the manifest.
The carry has none of its content: the name of each file tells the sum of its bytes, and its rows and bytes are held
against those that its commit counted.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from expectations.laws import as_published
from expectations.reckoned import Reckoned
from pipelines.engine.columnar.columns import NOT_HASHED
from pipelines.engine.columnar.content import NOTHING, ContentHash, content_hash
from pipelines.engine.commits.delta_log import snapshot
from pipelines.engine.commits.entry import LEDGER
from pipelines.engine.commits.file_lists import FileLists
from pipelines.engine.commits.log_held import unlike
from pipelines.engine.commits.paths import COMMIT, TableLostError, landed_path, ledger_path, stream_path, table_name
from pipelines.engine.commits.readers import are_as_hashed, require_not_older, rows_of_file
from pipelines.engine.commits.table_log import harmful
from pipelines.engine.files.folders import CARRY
from pipelines.engine.files.parquet import FileDamagedError, damage_of, false_bounds
from pipelines.engine.files.stored import for_arrow
from pipelines.engine.landing.errors import ReferenceBrokenError, RowsRemovedError, SequenceBrokenError
from pipelines.engine.landing.manifest import check_files, load_manifest, verify
from pipelines.flows.legs import MAIN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from pipelines.engine.commits.entry import Entry
    from pipelines.engine.commits.history import LogState
    from pipelines.engine.commits.paths import NewFile
    from pipelines.engine.landing.sequence import LandedSequence
    from pipelines.flows.model import Flow
    from pipelines.jobs.facts.views import JudgedCommits, Parts

Row = dict[str, Any]
LANDING, STATE = "landed", "carry"
PUT_BACK = "pulseline doctor FLOW --repair puts the rows of the run back"
FOREIGN = "written_by"
"""In what is told of a table that somebody else wrote to: the operation."""


def unchanged(flow: Flow, root: Path, judged: JudgedCommits, state: LogState) -> tuple[Reckoned, ...]:
    """Hold what lies on disk for some published commits against what they said of it.

    Args:
        flow: the model.
        root: the run's folder.
        judged: the commits.
        state: the log.

    Returns:
        One outcome a stream, one for the ledger, one a source, and one for the carry.
    """
    lists = FileLists(root, state)
    found = [_table(root, name, judged.entries, lists, state) for name in (*flow.tables(), LEDGER)]
    return (*found, *_landed(flow, root, judged.entries), _carry(root, judged.entries, lists, state))


def unchanged_in(flow: Flow, parts: Parts) -> tuple[Reckoned, ...]:
    """Hold what lies on disk of each leg of a run against what its commits said; each has a ledger and a carry."""
    found: dict[tuple[str, str], Reckoned] = {}
    for leg, part in parts.items():
        own = {name: stream for name, stream in flow.streams.items() if flow.legs.get(name, MAIN) == leg}
        sources = flow.sources if leg == MAIN else {}
        for each in unchanged(replace(flow, streams=own, sources=sources), part.root, part.judged, part.state):
            about = (each.law.name, each.law.table)
            found[about] = _both(found[about], each) if about in found else each
    return tuple(found.values())


def _both(one: Reckoned, other: Reckoned) -> Reckoned:
    return replace(
        one,
        looked_at=one.looked_at + other.looked_at,
        unexpected=one.unexpected + other.unexpected,
        rows=(*one.rows, *other.rows),
    )


def _table(root: Path, name: str, entries: Sequence[Entry], lists: FileLists, state: LogState) -> Reckoned:
    """Hold the rows of each commit, and each file by itself: two that were swapped have all rows between them.

    Raises:
        TableLostError: a file is gone, or the table has lost its newest versions.
    """
    path = ledger_path(root) if name == LEDGER else stream_path(root, name)
    said = {entry.commit: entry.hashes[name] for entry in entries if name in entry.hashes}
    files: dict[str, NewFile] = {}
    wanted_by: dict[str, list[int]] = defaultdict(list)
    for commit in said:
        for file in lists.holder(table_name(root, path), commit):
            files[file.name] = file
            wanted_by[file.name].append(commit)
    came: dict[int, ContentHash] = defaultdict(lambda: NOTHING)
    others: list[tuple[NewFile, Row, set[int]]] = []
    table = snapshot(path)
    if table is not None:
        require_not_older(root, path, table.version, state)
    # One that somebody overwrote with other columns is told by that: its own files hold what they held.
    columns = frozenset(table.schema.names) if table is not None and COMMIT in table.schema.names else None
    for file in files.values():
        found, changed = _examined(path, file, columns, said)
        for commit, content in found.items():
            came[commit] += content
        if changed:
            others.append((file, changed, {*found, *wanted_by[file.name]}))
    wrong = {commit for commit, text in said.items() if came[commit].text != text}
    odd: dict[int, list[Row]] = defaultdict(list)
    beside = _CommitsBeside(root, path, columns, lists, state)
    for file, changed, commits in others:
        # Of a file that several share those are changed whose rows are others, nobody asked of them or not; of files
        # that were swapped all are.
        is_of_rows = changed.keys().isdisjoint({"problem", "bounds"})
        is_beside = is_of_rows and not commits & wrong and beside.has_changed(file, name, said)
        for commit in () if is_beside else commits & wrong or commits:
            odd[commit].append(changed)
    offenders = [_offender(commit, said[commit], came[commit], odd[commit]) for commit in sorted({*odd, *wrong})]
    offenders += _by_others(root, path, lists, state)
    looked_at = sum(content.rows for content in came.values())
    return Reckoned(law=as_published(name), looked_at=looked_at, unexpected=_rows_in(offenders), rows=tuple(offenders))


@dataclass(frozen=True)
class _CommitsBeside:
    """Commits whose rows stand in a file beside those of others that are asked of."""

    root: Path
    path: Path
    """The table's folder."""
    columns: frozenset[str] | None
    lists: FileLists
    state: LogState

    def has_changed(self, file: NewFile, name: str, asked: Collection[int]) -> bool:
        """Say whether a file has rows of a commit that nobody asks of, and whose content is another now."""
        commits = rows_of_file(self.path, file, self.columns)[COMMIT].unique().to_pylist()
        return any(self._is_another(name, commit) for commit in commits if commit not in asked)

    def _is_another(self, name: str, commit: int) -> bool:
        entry = self.state.commits.get(commit)
        if entry is None or name not in entry.hashes:
            return True
        came, said = NOTHING, {commit: entry.hashes[name]}
        try:
            for file in self.lists.holder(table_name(self.root, self.path), commit):
                found = dict(_by_commit(rows_of_file(self.path, file, self.columns), said))
                came += found.get(commit, NOTHING)
        except (FileDamagedError, TableLostError):
            return True
        return came.text != said[commit]


def _by_others(root: Path, path: Path, lists: FileLists, state: LogState) -> list[Row]:
    """Tell what others wrote to a table: files of commits may be as they were, and readers see other rows."""
    name, newest = table_name(root, path), state.newest_published
    held = lists.held(name, newest.commit if newest else 0)
    harm = harmful(path, state.recorded.versions.get(name))
    if not harm and (said := unlike(root, path, state)):
        return [{"file": str(path), "rows": 0, FOREIGN: "", "problem": f"{said}: {PUT_BACK}"}]
    return [
        {
            "file": str(path),
            "rows": sum(held[file].rows for file in each.gone if file in held),
            FOREIGN: each.operation,
            "problem": f"{each.words}: {PUT_BACK}",
        }
        for each in harm
    ]


def _examined(
    path: Path, file: NewFile, columns: frozenset[str] | None, wanted: dict[int, str]
) -> tuple[dict[int, ContentHash], Row | None]:
    """Give what a file holds of each wanted commit, and what of it is other than its commit said, if anything."""
    try:
        rows = rows_of_file(path, file, columns)
    except FileDamagedError as damaged:
        return {}, _told(path, file, file.rows) | {"problem": f"it cannot be read ({damaged.problem})"}
    found, told = dict(_by_commit(rows, wanted)), _told(path, file, rows.num_rows)
    if not are_as_hashed(rows, file):
        return found, told
    column = false_bounds(path / file.name, rows)
    return found, None if column is None else told | {"bounds": column}


def _by_commit(rows: pa.Table, wanted: dict[int, str]) -> Iterator[tuple[int, ContentHash]]:
    """Hash the rows of each wanted commit that a file holds; one that was put together holds others too."""
    for commit in rows[COMMIT].unique().to_pylist():
        if commit in wanted:
            yield commit, content_hash(rows.filter(pc.field(COMMIT) == commit), leave_out=NOT_HASHED)


def _told(path: Path, file: NewFile, rows: int) -> Row:
    return {"file": str(path / file.name), "rows": rows, "published_rows": file.rows}


def _offender(commit: int, said: str, came: ContentHash, odd: Sequence[Row]) -> Row:
    """Say of which commit the content is another, and in which files."""
    files = ", ".join(each["file"] for each in odd) or "one of its files"
    found = came.text if came.text != said else "its rows, but not in the files that it wrote them into"
    if problem := next((each["problem"] for each in odd if "problem" in each), None):
        return {"commit": commit, "file": files, "rows": sum(each["rows"] for each in odd), "problem": problem}
    if column := next((each["bounds"] for each in odd if "bounds" in each), None):
        found = f"its rows, but the file says other bounds of {column}, by which readers leave rows out"
    return {"commit": commit, "file": files, "rows": came.rows, "published": said, "found": found}


def _rows_in(offenders: Sequence[Row]) -> int:
    """Count the rows of the commits of which something has changed; one that has lost all its rows counts as one."""
    return sum(max(each["rows"], 1) for each in offenders)


def _landed(flow: Flow, root: Path, entries: Sequence[Entry]) -> Iterator[Reckoned]:
    """Hold the bytes of what landed, of each source with the lines that its landing wrote, against their manifests."""
    taken = entries if flow.sources else ()
    numbers = sorted({(number, entry.commit) for entry in taken for number in entry.sequences})
    sequences = [(commit, load_manifest(landed_path(root), number)) for number, commit in numbers]
    for name in flow.sources:
        of = [(commit, sequence) for commit, sequence in sequences if name in sequence.sources]
        offenders = [odd for commit, sequence in of if (odd := _broken(sequence, name, commit))]
        rows = sum(sequence.sources[name].rows for _, sequence in of)
        law = as_published(name, LANDING)
        yield Reckoned(law=law, looked_at=rows, unexpected=_rows_in(offenders), rows=tuple(offenders))


def _broken(sequence: LandedSequence, source: str, commit: int) -> Row | None:
    alone = replace(sequence, sources={source: sequence.sources[source]})
    try:
        verify(check_files(alone))
    except RowsRemovedError:
        # What is no longer kept cannot have changed.
        return None
    except SequenceBrokenError as problem:
        # What it refers to is the feed's: that the next run lands as it is now.
        of_feed = isinstance(problem, ReferenceBrokenError)
        told = {"commit": commit, "sequence": sequence.id, "rows": alone.sources[source].rows}
        return told | {"changed" if of_feed else "problem": str(problem)}
    return None


def _carry(root: Path, entries: Sequence[Entry], lists: FileLists, state: LogState) -> Reckoned:
    """Read the carry's files, and hold them against the bytes and rows that their commits counted."""
    offenders: list[Row] = []
    looked_at = 0
    for entry in entries:
        for table in (name for name in lists.of(entry.commit) if name.startswith(CARRY)):
            # What was made again or put together lies there until the sweep, and nobody reads it.
            held = lists.holder(table, entry.commit)
            problems = [*_others(root / table, held)]
            if entry.commit in state.carried:
                problems += _lost(root / table, held)
            looked_at += sum(file.rows for file in lists.of(entry.commit)[table])
            offenders += [
                {
                    "commit": entry.commit,
                    "file": str(root / table / file.name),
                    "rows": file.rows,
                    "problem": problem,
                }
                for file, problem in problems
            ]
    return Reckoned(
        law=as_published("the carry", STATE), looked_at=looked_at, unexpected=_rows_in(offenders), rows=tuple(offenders)
    )


def _others(folder: Path, files: Iterable[NewFile]) -> Iterator[tuple[NewFile, str]]:
    yield from ((file, problem) for file in files if (problem := _other_file(folder / file.name, file)))


def _lost(folder: Path, files: Iterable[NewFile]) -> Iterator[tuple[NewFile, str]]:
    """Give the files that are gone of a commit that others may begin from: nobody has swept these."""
    gone = "it is gone, and what is run next begins from it"
    yield from ((file, gone) for file in files if not (folder / file.name).exists())


def _other_file(path: Path, file: NewFile) -> str:
    """Say what of a file of the carry is other than its commit said; nothing of one that was swept since."""
    if not path.exists():
        return ""
    size = path.stat().st_size
    if size != file.size:
        return f"{size:,} bytes, and its commit wrote {file.size:,}"
    if damage := damage_of(path):
        return f"it cannot be read ({damage})"
    rows = pq.read_metadata(for_arrow(path)).num_rows
    return f"{rows:,} rows, and its commit wrote {file.rows:,}" if rows != file.rows else ""
