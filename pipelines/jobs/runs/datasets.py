"""What catalogues call the places that rows come from and lie in, by the naming rules of OpenLineage."""

from __future__ import annotations

import os
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pipelines.engine.files.stored import without_user

if TYPE_CHECKING:
    from pipelines.flows.model import Source

PATTERN = frozenset("*?[")


class DatasetName(NamedTuple):
    """A dataset by the place that holds it and its name there."""

    namespace: str
    name: str


def of_path(path: Path) -> DatasetName:
    """Name a file, a folder or a Delta table, of this machine or in an object store.

    >>> of_path(Path("/srv/runs/flights/main/streams/beating"))
    DatasetName(namespace='file', name='/srv/runs/flights/main/streams/beating')
    """
    scheme, stored, rest = str(path).partition("://")
    if not stored:
        return DatasetName("file", str(path))
    bucket, _, key = rest.partition("/")
    account = os.environ.get("AZURE_STORAGE_ACCOUNT_NAME")
    if scheme == "az" and account:
        return DatasetName(f"abfss://{bucket}@{account}.dfs.core.windows.net", key)
    return DatasetName(f"{scheme}://{bucket}", key)


def of_source(source: Source, base: Path) -> DatasetName:
    """Name what a source reads; of several files, or a pattern, the folder that holds all of them.

    Args:
        source: of a flow.
        base: folder that paths of its feed are relative to.
    """
    feed = source.feed
    named = feed.dataset(source.name)
    if named is not None:
        namespace, name = named
        return DatasetName(without_user(namespace), name)
    fixed = [_fixed(base / path) for path in feed.paths]
    return of_path(Path(os.path.commonpath([os.path.normpath(path) for path in fixed])))


def _fixed(path: Path) -> Path:
    """Leave out of a path what stands from its first pattern on."""
    return Path(*takewhile(lambda part: not PATTERN & set(part), path.parts))
