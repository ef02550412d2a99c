"""On which machine, since which boot and among which processes this process runs: what is needed to look up another.

A process can be looked up only where its number means the same: in one boot of one kernel and one process namespace.
The boot's id alone tells that, for no two boots share one. The machine's id tells a reboot from another machine, but
images are copied with the id in them, so whoever goes by it needs a second sign.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import uuid
from enum import Enum
from pathlib import Path

import psutil

from pipelines.engine.files.durable import whole
from pipelines.operators.rows import TICKS_PER_SECOND

MACHINE_IDS = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
DEAD = frozenset("ZXx")


class Life(Enum):
    """What can be told from here about a process."""

    ALIVE = "alive"
    """It runs, or is stopped and may wake."""
    GONE = "gone"
    """It has surely ended."""
    UNTOLD = "untold"
    """It cannot be looked up from here."""


def machine_id() -> str:
    """Give what names this machine over its reboots; empty where nothing can be kept.

    Where the system has no id of its own, one is made once and kept in the user's state folder; such folders are
    shared between machines, so the host's name stands beside it.
    """
    for path in MACHINE_IDS:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            if found := path.read_text(encoding="ascii").strip():
                return found
    kept = _kept_id(_state_folder() / "machine-id")
    return f"{kept}@{socket.gethostname()}" if kept else ""


def _state_folder() -> Path:
    named = os.environ.get("XDG_STATE_HOME", "")
    return Path(named or os.path.expanduser("~/.local/state")) / "pulseline"  # noqa: PTH111 - never raises


def _kept_id(path: Path) -> str:
    """Read an id, made where there is none or an empty one; of two that make it at once, both may keep their own."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if not path.is_file() or not path.read_text(encoding="ascii").strip():
            path.parent.mkdir(parents=True, exist_ok=True)
            with whole(path) as draft:
                draft.write_text(uuid.uuid4().hex, encoding="ascii")
        return path.read_text(encoding="ascii").strip()
    return ""


def boot_id() -> str:
    """Give what names this boot of this kernel; empty where it cannot be had."""
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    if sys.platform != "darwin":
        return ""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        command = ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"]
        asked = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)  # noqa: S603 - fixed
        return asked.stdout.strip()
    return ""


def process_space() -> str:
    """Name the boot and the process namespace; empty where processes cannot be looked up."""
    boot = boot_id()
    if not boot or sys.platform == "darwin":
        return boot
    with contextlib.suppress(OSError):
        return f"{boot}/{Path('/proc/self/ns/pid').stat().st_ino}"
    return ""


def boot_of(space: str) -> str:
    """Give the boot of a process space."""
    return space.partition("/")[0]


def booted_at() -> int:
    """Give the wall time of this boot, in ticks."""
    return int(psutil.boot_time() * TICKS_PER_SECOND)


def process_start(pid: int) -> int | None:
    """Give the start of a living process; None when it is gone, dead and not yet reaped, or hidden from this user.

    In clock ticks since boot where there is /proc, else in µs of wall time: equal means the same process.

    Source: proc(5), /proc/pid/stat, fields 3 and 22; the name in field 2 may hold blanks and brackets.
    """
    if not Path("/proc/self/stat").exists():
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            if process.status() != psutil.STATUS_ZOMBIE:
                return round(process.create_time() * TICKS_PER_SECOND)
        return None
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in DEAD else int(fields[19])


def life_of(pid: int, started: int) -> Life:
    """Look up a process of this process space.

    Args:
        pid: its number.
        started: its start, as `process_start` gave it.
    """
    found = process_start(pid)
    if found is not None:
        return Life.ALIVE if found == started else Life.GONE
    try:
        os.kill(pid, 0)
    except PermissionError:
        # Another user's, where /proc hides those: there is a process, and nobody can say which.
        return Life.UNTOLD
    except (OSError, OverflowError):
        return Life.GONE
    return Life.GONE
