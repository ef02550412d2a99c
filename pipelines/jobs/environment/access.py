"""Who may read what commands write: rows, the ledger and pages are their owner's unless the settings say otherwise."""

from __future__ import annotations

import os
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING

from pipelines.jobs.environment.errors import JobError
from pipelines.jobs.environment.settings import Access, read_settings, settings_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


UMASKS = MappingProxyType({Access.OWNER: 0o077, Access.GROUP: 0o007, Access.EVERYONE: 0o022})
_users: list[int] = []
"""The user's own umask, the outermost command's first."""


@contextmanager
def kept() -> Iterator[None]:
    """Have all that is made meanwhile, by processes that are started too, be for those whom the settings name."""
    before = os.umask(UMASKS[Access.OWNER])
    _users.append(before)
    try:
        os.umask(UMASKS[_told()])
        yield
    finally:
        _users.pop()
        os.umask(before)


def opened(file: Path) -> None:
    """Give a file that the user asked for by name the rights that their other files have."""
    if _users:
        file.chmod(0o666 & ~_users[0])


def _told() -> Access:
    """Read what the settings say; whatever is wrong with them is told by who needs them."""
    try:
        lines = settings_file().read_text(encoding="utf-8").splitlines()
        # Settings are read as YAML only where the word stands: quick commands answer at once.
        said = any("access" in line for line in lines if not line.lstrip().startswith("#"))
        return read_settings().access if said else Access.OWNER
    except (OSError, UnicodeDecodeError, JobError):
        return Access.OWNER
