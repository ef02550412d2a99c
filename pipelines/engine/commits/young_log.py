"""The log of a table that no checkpoint shortened yet, read from its first version on.

delta-rs takes some 15 ms to open a log and to answer what is asked of it, whatever it holds; a run has a table for each
stream, and opens each more than once. What a few small files say is read here in one millisecond. Only what our own
transactions do is understood: a log with anything else in it is delta-rs's.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import Schema

from pipelines.engine.commits.paths import COMMIT, LOG, MOST, ActiveFile, version_lines, version_path
from pipelines.engine.files.stored import StorePath, each_at_once, is_stored

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

WRITERS = "pulseline/writers"
"""Application that every transaction of ours has, whatever it does: what lacks it is somebody else's."""
YOUNG = 64
"""Versions up to which reading them one by one costs less than delta-rs does."""
YOUNG_IN_STORE = 512
"""The same in a store, where versions are read beside each other, once a process."""
KNOWN_FEATURES = frozenset({"appendOnly", "invariants", "timestampNtz"})
"""Features of a table under which what is read and written here is right."""
Actions = list[dict[str, Any]]


@dataclass
class Snapshot:
    """One version of a table."""

    path: Path
    """The table's folder."""
    version: int
    schema: pa.Schema
    applications: dict[str, int] = field(default_factory=dict)
    files: dict[str, ActiveFile] = field(default_factory=dict)
    """By path below the folder."""
    others: list[tuple[int, Sequence[Mapping[str, Any]]]] | None = None
    """What others did since our first transaction, by version; None where not all of the log was read."""

    def apply(self, actions: Sequence[Mapping[str, Any]]) -> None:
        """Bring this to the next version.

        Args:
            actions: of its transaction; those that change columns are not among them.
        """
        self.version += 1
        # Before our first one that is marked stand those of older code, which marked none.
        if self.others is not None and WRITERS in self.applications and is_of_others(actions):
            self.others.append((self.version, actions))
        for action in actions:
            if "txn" in action:
                self.applications[action["txn"]["appId"]] = action["txn"]["version"]
            if "remove" in action:
                self.files.pop(unquote(action["remove"]["path"]), None)
        for action in actions:
            if "add" in action:
                file = _active(self.path, action["add"])
                self.files[file.path.relative_to(self.path).as_posix()] = file


def is_of_others(actions: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether a transaction is somebody else's."""
    return not any(action.get("txn", {}).get("appId") == WRITERS for action in actions)


def _active(path: Path, add: Mapping[str, Any]) -> ActiveFile:
    stats = json.loads(add.get("stats") or "{}")
    low, high = (stats.get(name, {}).get(COMMIT) for name in ("minValues", "maxValues"))
    first, last = (0, MOST) if low is None or high is None else (low, high)
    return ActiveFile(path / unquote(add["path"]), stats.get("numRecords", 0), add["size"], first, last)


def read_young(path: Path) -> Snapshot | None:
    """Read the newest version of a table whose log is young and holds nothing but what is understood here.

    Args:
        path: the table's folder.

    Returns:
        None where delta-rs has to be asked, for whatever reason: no log, an old one, a torn one, a stranger's.
    """
    try:
        names = _names(path / LOG)
        count = sum(name.endswith(".json") for name in names)
        known = {version_path(path, version).name for version in range(count)}
        most = YOUNG_IN_STORE if is_stored(path) else YOUNG
        strange = not known <= names.keys() or any(".checkpoint" in name for name in names)
        if not known or count > most or strange:
            return None
        tags = [names[version_path(path, version).name] for version in range(count)]
        read = partial(_actions, path)
        first, *later = each_at_once(read, list(enumerate(tags)), stored=is_stored(path))
        return _replayed(path, first, later)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _names(log: Path) -> dict[str, str]:
    """Name the files of a log; those in a store with their tags."""
    if isinstance(log, StorePath):
        return {file.name: tag for file, tag in log.listed().items()}
    return dict.fromkeys((file.name for file in log.iterdir()), "")


def _actions(path: Path, named: tuple[int, str]) -> Actions:
    version, tag = named
    file = version_path(path, version)
    return [json.loads(line) for line in (_kept_lines(file, tag) if tag else version_lines(file))]


@lru_cache(maxsize=4_096)
def _kept_lines(file: Path, tag: str) -> list[str]:  # noqa: ARG001 - another tag is another content
    return version_lines(file)


def _replayed(path: Path, first: Actions, later: Sequence[Actions]) -> Snapshot | None:
    meta = [action["metaData"] for action in first if "metaData" in action]
    features = {name for action in first for name in action.get("protocol", {}).get("readerFeatures") or ()}
    strange = any(_is_strange(action) for actions in later for action in actions)
    if len(meta) != 1 or meta[0].get("partitionColumns") or features - KNOWN_FEATURES or strange or not all(later):
        return None
    found = Snapshot(path, -1, pa.schema(Schema.from_json(meta[0]["schemaString"]).to_arrow()), others=[])
    for actions in (first, *later):
        found.apply(actions)
    return found


def _is_strange(action: Mapping[str, Any]) -> bool:
    add = action.get("add", {})
    return "metaData" in action or "protocol" in action or "deletionVector" in add or "://" in add.get("path", "")
