"""The files of a feed: which they are, in what order, and whether they may have changed."""

from __future__ import annotations

import glob
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.engine.landing_errors import FeedMissingError

if TYPE_CHECKING:
    from collections.abc import Sequence

ALSO = {"json": (".jsonl", ".ndjson")}
"""Further endings of files of a kind."""


def find_files(paths: Sequence[str], base: Path, kind: str) -> list[Path]:
    """Find the files of a feed: paths in their order, a pattern's or folder's files by name, no file twice.

    Raises:
        FeedMissingError: a path leads to nothing.
    """
    found: dict[Path, None] = {}
    for path in paths:
        files = _matching(base / path, kind)
        if not files:
            raise FeedMissingError(path, str(base))
        found |= dict.fromkeys(files)
    return list(found)


def _matching(path: Path, kind: str) -> list[Path]:
    if path.is_dir():
        inside = sorted(path.iterdir(), key=str)
        endings = {f".{kind}", *ALSO.get(kind, ())}
        return [file for file in inside if file.is_file() and endings.intersection(file.suffixes)]
    if path.exists():
        return [path]
    return [Path(name) for name in sorted(glob.glob(str(path), recursive=True)) if Path(name).is_file()]  # noqa: PTH207 - a pattern may begin with /


def files_fingerprint(files: Sequence[Path], declared: object) -> str:
    """Give hex digits that change with the names, sizes and times of change of files, and with how they are read."""
    seen = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return hashlib.sha256(json.dumps([seen, declared], sort_keys=True, default=str).encode()).hexdigest()
