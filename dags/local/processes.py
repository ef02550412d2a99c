"""Processes known for certain: a number alone is used again, by a stranger after a restart of the machine too."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Iterable

NEARLY = 1.0
"""Seconds by which two readings of one process's start may differ, where only a wall clock tells it."""


@cache
def boot() -> str:
    """Name this run of the machine; empty where it has no name, as on macOS."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return ""


@dataclass(frozen=True, kw_only=True)
class KnownProcess:
    """A process, so named that a later one with its number is another."""

    pid: int
    born: float
    """When it started, in seconds since 1970, by a clock that may have been set since."""
    boot: str = ""
    start: int = 0
    """When it started, in clock ticks since the machine did; 0 where there is no /proc."""

    @classmethod
    def read(cls, pid: int) -> KnownProcess:
        """Learn to know a living process.

        Raises:
            psutil.NoSuchProcess: it has ended.
        """
        return KnownProcess(pid=pid, born=psutil.Process(pid).create_time(), boot=boot(), start=_ticks(pid))

    @property
    def alive(self) -> bool:
        """Say whether it runs."""
        with suppress(psutil.Error):
            process = psutil.Process(self.pid)
            if process.status() == psutil.STATUS_ZOMBIE:
                return False
            if self.start:
                return (self.boot, self.start) == (boot(), _ticks(self.pid))
            return abs(process.create_time() - self.born) < NEARLY
        return False

    def facts(self) -> dict[str, object]:
        """Give what a file holds of it."""
        return asdict(self)


def _ticks(pid: int) -> int:
    """Give field 22 of proc(5)'s stat; the name in field 2 may hold blanks and brackets."""
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[19])
    return 0


def pids(session: int) -> set[int]:
    """Give the numbers of all processes of a session, whoever their parent is now."""
    found = set()
    for pid in psutil.pids():
        with suppress(ProcessLookupError, PermissionError):
            if os.getsid(pid) == session:
                found.add(pid)
    return found


def members(session: int) -> list[psutil.Process]:
    """List the living processes of a session."""
    found = []
    for pid in pids(session):
        with suppress(psutil.Error):
            process = psutil.Process(pid)
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def left_of(session: int, seen: Iterable[KnownProcess]) -> tuple[list[psutil.Process], list[psutil.Process]]:
    """Tell what is left of a session from strangers who have its number by now.

    A session keeps its number until its last process has ended. So if one that was seen in it still is in it, all who
    are in it are its own, seen or not; if none is, it has ended and whoever is there now is a stranger.

    Args:
        session: its number.
        seen: processes that were in it.

    Returns:
        Living processes of that session, and of another one with its number; one of the two is empty.
    """
    found = members(session)
    here = {process.pid for process in found}
    ours = any(each.alive for each in seen if each.pid in here)
    return (found, []) if ours else ([], found)
