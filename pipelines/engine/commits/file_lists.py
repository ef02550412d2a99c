"""Which files a commit wrote, and which files hold its rows now: what `commits` says of it, without asking any table.

A commit's row names its files, by table; a list too long for a row lies beside `commits` as Parquet. Files that were
put together since are named by rows of their own, which say whose rows the new ones hold. So the log of a table can be
made anew from `commits` alone.
"""

from __future__ import annotations

import json
import re
import secrets
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.engine.commits.entry import State
from pipelines.engine.commits.paths import NewFile
from pipelines.engine.files.durable import sync_files
from pipelines.engine.files.parquet import write_table
from pipelines.engine.files.stored import for_arrow

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from pipelines.engine.commits.entry import Entry
    from pipelines.engine.commits.history import LogState

OURS = re.compile(r"[ck]\d{8,}-.*\.parquet")
"""Names of files that tasks and compaction write."""
LISTS = "lists"
"""Folder beside `commits`."""
SHORT = 200
"""Up to so many files are named in the row itself."""
KEPT = 128
"""Lists of commits that are kept in memory: as many as a carry has deltas."""
LIST = "list"
SCHEMA = pa.schema(
    [
        pa.field("commit", pa.int64()),
        pa.field("table", pa.string()),
        pa.field("name", pa.string()),
        pa.field("rows", pa.int64()),
        pa.field("size", pa.int64()),
        pa.field("hash", pa.string()),
        pa.field("first", pa.int64()),
        pa.field("last", pa.int64()),
    ]
)


Lists = dict[str, tuple[NewFile, ...]]
"""By table, named by its folder below the root: `streams/beating`."""


def lists_to_json(root: Path, number: int, lists: Mapping[str, Sequence[NewFile]]) -> str:
    """Give what the row of a commit says of its files; a long list is on disk when this returns.

    Args:
        root: the run's folder.
        number: of the commit.
        lists: its files by table.
    """
    if sum(len(files) for files in lists.values()) <= SHORT:
        return _text({table: [list(file) for file in files] for table, files in lists.items() if files})
    return long_list(root, f"c{number:08d}", ((number, table, file) for table in lists for file in lists[table]))


@dataclass(frozen=True)
class SharedFiles:
    """Files that several commits share, on disk."""

    lists: Mapping[str, Sequence[NewFile]]
    """By table."""
    text: str
    """What the row of each of the commits says of them."""


def shared_files(root: Path, numbers: Sequence[int], lists: Mapping[str, Sequence[NewFile]]) -> SharedFiles:
    """Spell files that several commits share; a long list is on disk when this returns.

    Args:
        root: the run's folder.
        numbers: of the commits.
        lists: the files by table.
    """
    if sum(len(files) for files in lists.values()) <= SHORT:
        return SharedFiles(lists, lists_to_json(root, numbers[0], lists))
    each = ((number, table, file) for number in numbers for table in lists for file in lists[table])
    return SharedFiles(lists, long_list(root, f"c{numbers[0]:08d}", each))


def long_list(root: Path, stem: str, files: Iterable[tuple[int, str, NewFile]]) -> str:
    """Write files of commits beside `commits`, and give what a row says of them.

    Args:
        root: the run's folder.
        stem: begins the list's name.
        files: commit, table and file.
    """
    rows = [{"commit": number, "table": table, **file._asdict()} for number, table, file in files]
    path = root / LISTS / f"{stem}-{secrets.token_hex(4)}.parquet"
    path.parent.mkdir(exist_ok=True)
    write_table(pa.Table.from_pylist(rows, schema=SCHEMA), path)
    sync_files(root, [path])
    return _text({LIST: path.relative_to(root).as_posix()})


def _text(facts: Mapping[str, object]) -> str:
    return json.dumps(facts, separators=(",", ":"), sort_keys=True)


def named_in(root: Path, row: Entry) -> Lists:
    """Give the files that a row of `commits` names: of the commit, or of what was put together."""
    return _named(root, row.files, row.commit)


def _named(root: Path, said: str | None, commit: int) -> Lists:
    if not said:
        return {}
    facts = json.loads(said)
    if LIST in facts:
        return _of_list(root, facts[LIST]).get(commit, {})
    return {table: tuple(NewFile(*file) for file in files) for table, files in facts.items()}


def _of_list(root: Path, name: str) -> dict[int, Lists]:
    found: dict[int, dict[str, list[NewFile]]] = defaultdict(lambda: defaultdict(list))
    for row in pq.read_table(for_arrow(root / name), schema=SCHEMA).to_pylist():
        number, table = row.pop("commit"), row.pop("table")
        found[number][table].append(NewFile(**row))
    return {number: {table: tuple(files) for table, files in lists.items()} for number, lists in found.items()}


class FileLists:
    """The files of the commits of one log; those asked for last are kept, for all tables of a commit need them."""

    def __init__(self, root: Path, state: LogState) -> None:
        """Take the run's folder and what its log says."""
        self._root, self._state = root, state
        self._taken_over: dict[int, Lists] | None = None
        self._named = lru_cache(maxsize=KEPT)(partial(_named, root))

    def of(self, commit: int) -> Lists:
        """Give the files that a commit wrote, by table."""
        row = self._state.commits.get(commit)
        if row is not None and row.files:
            return self._named(row.files, row.commit)
        return self._older.get(commit, {})

    @property
    def _older(self) -> dict[int, Lists]:
        """Give the files of commits from before the run's folder was taken over from an older format."""
        if self._taken_over is None:
            rows = (row for row in self._state.entries[::-1] if row.state is State.FORMAT)
            name = next((json.loads(row.files)[LIST] for row in rows if row.files), None)
            self._taken_over = {} if name is None else _of_list(self._root, name)
        return self._taken_over

    def holder(self, table: str, commit: int) -> tuple[NewFile, ...]:
        """Say which files hold the rows of a commit now, as far as `commits` knows.

        Args:
            table: named by its folder below the root.
            commit: its number.
        """
        own = self.of(commit).get(table, ())
        rows, said = self._state.compactions.get(table, ()), self._state.commits.get(commit)
        # What was put together before it was published has none of its rows.
        since = 0 if said is None else bisect_right(rows, said.entry, key=attrgetter("entry"))
        if since == len(rows):
            return own
        files, counts = {file.name: file for file in own}, commit not in self._state.successors
        for place in range(since, len(rows)):
            row = rows[place]
            moved = any(first <= commit <= last for first, last in _ranges(row))
            # Of a commit's files some may be put together, each for itself, and others left as they are. Where none
            # of the rows in one were its own, it has nothing there any more; one that gave way keeps what it had. What
            # was made again of one commit says nothing of those that shared a file with it.
            if moved or (counts and row.detail["out"]):
                for name in _gone(row, files):
                    del files[name]
            if moved:
                files.update({file.name: file for file in self._named(row.files, row.commit).get(table, ())})
        return tuple(files.values())

    def held(self, table: str, upto: int) -> dict[str, NewFile]:
        """Give the files of a table whose newest settled commit is `upto`, by name.

        Args:
            table: named by its folder below the root.
            upto: number of the commit; later ones, and what they supersede, do not count.
        """
        return {file.name: file for commit in visible_at(self._state, upto) for file in self.holder(table, commit)}


def strangers(names: Iterable[str], held: Collection[str]) -> set[str]:
    """Give files of a log that are named as ours are, and are none of those that its table holds."""
    return {name for name in names if _is_ours(name) and name not in held}


def _is_ours(name: str) -> bool:
    return OURS.fullmatch(name.rpartition("/")[2]) is not None


def counts_at(state: LogState, commit: int, upto: int) -> bool:
    """Say whether a commit counts once `upto` is settled: it was published by then, and not superseded yet."""
    row, successor = state.commits.get(commit), state.successors.get(commit)
    known = row is not None and row.state is State.PUBLISHED and commit <= upto
    return known and (successor is None or successor > upto)


def visible_at(state: LogState, upto: int) -> list[int]:
    """Give the commits that count once `upto` is settled, smallest first."""
    return sorted(number for number in state.commits if counts_at(state, number, upto))


def _ranges(row: Entry) -> list[tuple[int, int]]:
    """Give the commits whose rows a row's new files hold, as ranges, both ends included."""
    return row.detail["covers"]  # type: ignore[return-value]


def _gone(row: Entry, files: Mapping[str, NewFile]) -> list[str]:
    """Say which files a row's new files stand for.

    One that somebody else's compaction made is in no list: it held all rows of the commits that the row covers.
    """
    out, ranges = set(row.detail["out"]), _ranges(row)  # type: ignore[call-overload]
    if out and all(_is_ours(name) for name in out):
        return [name for name in files if name in out]
    return [
        name
        for name, file in files.items()
        if name in out or any(first <= file.last and file.first <= last for first, last in ranges)
    ]


def ranges_of(numbers: Iterable[int]) -> list[list[int]]:
    """Spell numbers as ranges, both ends included.

    >>> ranges_of([5, 1, 2, 3])
    [[1, 3], [5, 5]]
    """
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found
