"""The log of somebody else's Delta table: its commits one by one, and what a whole version consists of.

Source: the Delta transaction protocol. A commit counts with what it adds under `dataChange`; a compaction moves rows
and changes none. When a row was committed is what the commit says of itself, which copies of the table keep.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from deltalake import DeltaTable, Schema

from pipelines.engine.columnar.columns import RESERVED
from pipelines.engine.commits.paths import LOG, version_lines, version_path
from pipelines.engine.sources.delta.errors import CommitUnreadableError, DeltaTableMissingError, TableFeatureError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

VERSION_NAME = len("00000000000000000000.json")
FEATURES = frozenset(
    {"timestampNtz", "deletionVectors", "columnMapping", "v2Checkpoint", "vacuumProtocolCheck", "typeWidening"}
)
"""Reader features under which rows are read right here; of column mapping only where it is off."""
OURS = "pulseline.writer"
"""A property of every table that a flow writes."""
MAPPING = "delta.columnMapping.mode"


class TableShape(NamedTuple):
    """What the rows of a version look like."""

    id: str
    schema: pa.Schema
    partitions: tuple[str, ...]
    is_ours: bool
    """Whether a flow of Pulseline writes the table."""

    def named(self, kept: Sequence[str]) -> pa.Schema:
        """Give the columns that land: of a flow's table its bookkeeping only where a source names it.

        Args:
            kept: what the source calls by name.
        """
        return pa.schema(
            [field for field in self.schema if not self.is_ours or field.name not in RESERVED or field.name in kept]
        )


class DataFile(NamedTuple):
    """A file of rows, as a version names it."""

    path: Path
    name: str
    partition: Mapping[str, str | None]
    keep: pa.Array | None = None
    """Of each row whether it is still there; None where all are."""


@dataclass(frozen=True, kw_only=True)
class Commit:
    """What one version changed."""

    version: int
    at: int
    """When it was committed, in ticks."""
    operation: str
    adds: tuple[DataFile, ...]
    """Of new rows, in the log's order."""
    removed: int
    """How many files it took away with their rows."""
    shape: TableShape | None
    """None where the columns stay."""


class Log:
    """The log of one table.

    Args:
        source: whose feed it is, for errors.
        path: the table's folder.
    """

    def __init__(self, source: str, path: Path) -> None:
        """Read nothing."""
        self._source, self.path = source, Path(os.path.normpath(path))

    def versions(self) -> list[int]:
        """Give the versions whose commits the log holds, ascending.

        Raises:
            OSError: the folder cannot be read.
        """
        names = [entry.name for entry in (self.path / LOG).iterdir()]
        found = (name for name in names if len(name) == VERSION_NAME and name.endswith(".json"))
        return sorted(int(name[:20]) for name in found if name[:20].isdigit())

    def opened(self, version: int | None = None) -> DeltaTable:
        """Open a version; the newest, unless one is named.

        Raises:
            TableMissingError: no table that can be opened lies there.
            TableFeatureError: its rows cannot be read as they stand.
        """
        try:
            table = DeltaTable(str(self.path), version=version)
            protocol = table.protocol()
        except Exception as problem:  # noqa: BLE001 - delta-rs raises its own errors, and others
            raise DeltaTableMissingError(self._source, str(self.path), str(problem).partition("\n")[0]) from None
        self._check(set(protocol.reader_features or ()), table.metadata().configuration)
        return table

    def shape(self, table: DeltaTable) -> TableShape:
        """Give the columns of an opened version."""
        said = table.metadata()
        schema = pa.schema(table.schema().to_arrow())
        return TableShape(str(said.id), schema, tuple(said.partition_columns), OURS in said.configuration)

    def files(self, table: DeltaTable) -> list[DataFile]:
        """Give the files of an opened version, in the order in which they were written."""
        actions = pa.table(table.get_add_actions())
        named = zip(actions["modification_time"].to_pylist(), actions["path"].to_pylist(), strict=True)
        parts = actions["partition"].to_pylist() if "partition" in actions.column_names else [{}] * actions.num_rows
        order = sorted(zip(named, parts, strict=True), key=lambda each: each[0])
        masks = self._masks(table)
        return [
            DataFile(
                path := self._below(name),
                name,
                {column: None if value is None else str(value) for column, value in (part or {}).items()},
                masks.get(path.as_posix()),
            )
            for (_, name), part in order
        ]

    def _masks(self, table: DeltaTable) -> dict[str, pa.Array]:
        if "deletionVectors" not in (table.protocol().reader_features or ()):
            return {}
        found = pa.table(table.deletion_vectors())
        masks = zip(found["filepath"].to_pylist(), found["selection_vector"].to_pylist(), strict=True)
        return {self._below(path).as_posix(): pa.array(keep, pa.bool_()) for path, keep in masks}

    def commit(self, version: int) -> Commit:
        """Read what a version changed.

        Raises:
            FileNotFoundError: the log does not hold it.
            CommitUnreadableError: it makes no sense.
            TableFeatureError: from here on rows cannot be read as they stand.
        """
        file = version_path(self.path, version)
        try:
            return self._commit(version, [json.loads(line) for line in version_lines(file)], file)
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            if isinstance(problem, TableFeatureError):
                raise
            raise CommitUnreadableError(self._source, str(self.path), version, str(problem)) from problem

    def _commit(self, version: int, actions: Sequence[Mapping[str, Any]], file: Path) -> Commit:
        def all_of(kind: str) -> list[Mapping[str, Any]]:
            return [action[kind] for action in actions if kind in action]

        if not actions:
            raise ValueError("it is empty")
        for protocol in all_of("protocol"):
            self._check(set(protocol.get("readerFeatures") or ()), {})
        for said in all_of("metaData"):
            self._check(set(), said.get("configuration") or {})
        info = next(iter(all_of("commitInfo")), {})
        at = info.get("inCommitTimestamp") or info.get("timestamp") or file.stat().st_mtime_ns // 1_000_000
        adds = [add for add in all_of("add") if add.get("dataChange", True)]
        removes = [remove for remove in all_of("remove") if remove.get("dataChange", True)]
        if not removes and any(add.get("deletionVector") for add in adds):
            raise self._feature("files with deletion vectors in a commit that takes nothing away", "land `version: N`")
        return Commit(
            version=version,
            at=int(at) * 1_000,
            operation=str(info.get("operation", "no operation named")),
            adds=tuple(DataFile(self._below(add["path"]), add["path"], add["partitionValues"]) for add in adds),
            removed=len(removes),
            shape=next((_shape(said) for said in all_of("metaData")), None),
        )

    def _below(self, name: str) -> Path:
        """Give the path of a file as the log names it."""
        parts = urlsplit(name) if "://" in name or name.startswith("file:") else None
        if parts is not None and parts.scheme != "file":
            raise self._feature(f"a file in an object store, {name}", "copy the table below one folder")
        return self.path / unquote(name if parts is None else parts.path)

    def _check(self, features: set[str], configuration: Mapping[str, str | None]) -> None:
        unknown = sorted(features - FEATURES)
        if unknown:
            raise self._feature(f"the reader feature `{unknown[0]}`", "drop it there, or read a copy without it")
        mode = configuration.get(MAPPING) or "none"
        if mode != "none":
            remedy = f"set `{MAPPING}` to `none` there, or read a copy without it"
            raise self._feature(f"column mapping (`{MAPPING}` is `{mode}`)", remedy)

    def _feature(self, feature: str, remedy: str) -> TableFeatureError:
        return TableFeatureError(self._source, str(self.path), feature, remedy)


def _shape(said: Mapping[str, Any]) -> TableShape:
    schema = pa.schema(Schema.from_json(said["schemaString"]).to_arrow())
    return TableShape(said["id"], schema, tuple(said["partitionColumns"]), OURS in (said.get("configuration") or {}))


def partition_value(text: str | None, kind: pa.DataType) -> pa.Scalar:
    """Give the value of a partition column; the log spells it as text, and an empty one is null.

    >>> from pipelines.engine.columnar.columns import TIME
    >>> partition_value("2024-01-01 00:00:00", TIME).as_py().isoformat()
    '2024-01-01T00:00:00+00:00'
    """
    if not text:
        return pa.scalar(None, kind)
    if pa.types.is_timestamp(kind):
        return (
            pa.scalar(text.replace("T", " ").removesuffix("Z").removesuffix("+00:00"))
            .cast(pa.timestamp("us"))
            .cast(kind)
        )
    if pa.types.is_boolean(kind):
        return pa.scalar(text.lower() == "true")
    return pa.scalar(text).cast(kind)
