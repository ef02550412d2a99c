"""Who may write to a root: one driver, named by host, process and start time, which renews its lease while it lives.

The truth is the lease row in `commits`, whose token every later row must carry; it keeps a driver that was stopped and
woken from publishing. `lease.json` holds renewals only: losing it, or a late write to it by a driver that was
overtaken, can make somebody wait or take over too early, and never makes two drivers publish.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pipelines.operators.rows import TICKS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pipelines.engine.history import Entry

RENEW_EVERY = 5 * TICKS_PER_SECOND
LAPSES_AFTER = 30 * TICKS_PER_SECOND
DEAD = frozenset("ZXx")


def wall_ticks() -> int:
    """Read the wall clock, in ticks: the only place in the engine's tables and commits that does."""
    return time.time_ns() // 1_000


class Claim(Enum):
    """How a driver asks for a lease that somebody else may hold."""

    ASK = "ask"
    """Be refused while another driver lives and renews."""
    TAKE_OVER = "take over"
    """Take it whoever holds it; the holder cannot publish from then on."""


class Standing(Enum):
    """What has become of a lease."""

    FREE = "free"
    """Nobody has held one yet."""
    RELEASED = "released"
    """Its driver ended properly."""
    GONE = "gone"
    """Its driver's process is no more."""
    LAPSED = "lapsed"
    """It was not renewed in time."""
    HELD = "held"
    """Its driver lives and renews, as far as one can see."""


@dataclass(frozen=True)
class Holder:
    """A process that holds a lease, so named that a later process with its number is another one."""

    host: str
    machine: str
    """Boot and process namespace: only within one can a process be looked up; empty where there is no /proc."""
    pid: int
    started: int
    """Start of the process in clock ticks since boot, 0 where there is no /proc."""

    @classmethod
    def read(cls, facts: Mapping[str, object]) -> Holder:
        """Read a holder from the detail of a lease row."""
        pid, started = int(str(facts["pid"])), int(str(facts["started"]))
        return cls(str(facts["host"]), str(facts["machine"]), pid, started)

    def facts(self) -> dict[str, object]:
        """Give what the detail of a lease row holds."""
        return asdict(self)

    def __str__(self) -> str:
        """Name the process as a person would look for it."""
        return f"process {self.pid} on {self.host}"


def process_start(pid: int) -> int | None:
    """Give the start of a living process in clock ticks since boot; None when it is gone, or dead and not yet reaped.

    Source: proc(5), /proc/pid/stat, fields 3 and 22; the name in field 2 may hold blanks and brackets.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in DEAD else int(fields[19])


def _machine() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return ""


def this_process() -> Holder:
    """Name the calling process."""
    return Holder(socket.gethostname(), _machine(), os.getpid(), process_start(os.getpid()) or 0)


def is_gone(holder: Holder, seen_from: Holder) -> bool:
    """Say whether a holder's process has surely ended; False when that cannot be told from here."""
    if not holder.machine or holder.machine != seen_from.machine:
        return False
    return process_start(holder.pid) != holder.started


@dataclass(frozen=True)
class Renewal:
    """What `lease.json` says."""

    token: int
    renewed: int
    """Wall time, in ticks."""
    state: str = "held"
    """`held` or `released`."""


def renewal_path(root: Path) -> Path:
    """Give the path of a root's renewals."""
    return root / "lease.json"


def read_renewal(root: Path) -> Renewal | None:
    """Read the newest renewal; None when there is none that can be read."""
    try:
        facts = json.loads(renewal_path(root).read_text(encoding="utf-8"))
        return Renewal(int(facts["token"]), int(facts["renewed"]), str(facts["state"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_renewal(root: Path, renewal: Renewal) -> None:
    """Replace `lease.json`, so that a reader sees the old one or the new one, never a half."""
    draft = root / f".lease-{os.getpid()}-{renewal.token}.json"
    draft.write_text(json.dumps(asdict(renewal)), encoding="utf-8")
    draft.replace(renewal_path(root))


def standing(lease: Entry | None, renewal: Renewal | None, gone: Callable[[Holder], bool], now: int) -> Standing:
    """Judge a lease.

    Args:
        lease: the newest lease row of `commits`.
        renewal: what `lease.json` says; counts only when it is of this lease.
        gone: whether a holder's process has surely ended.
        now: wall time, in ticks.
    """
    if lease is None:
        return Standing.FREE
    mine = renewal if renewal and renewal.token == lease.token else Renewal(lease.token, lease.at)
    if mine.state == "released":
        return Standing.RELEASED
    if gone(Holder.read(lease.detail)):
        return Standing.GONE
    return Standing.LAPSED if now - max(mine.renewed, lease.at) > LAPSES_AFTER else Standing.HELD


class Renewals:
    """Renew a lease from a thread until stopped, or until a later lease shows in `lease.json`."""

    def __init__(self, root: Path, token: int, *, every: int = RENEW_EVERY) -> None:
        """Take the root, the token of the lease and the time between renewals in ticks."""
        self._root, self._token, self._every = root, token, every
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"lease-{token}", daemon=True)

    def __enter__(self) -> Self:
        self._renew("held")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._renew("released")

    def _run(self) -> None:
        while not self._stop.wait(self._every / TICKS_PER_SECOND):
            self._renew("held")

    def _renew(self, state: str) -> None:
        seen = read_renewal(self._root)
        if seen and seen.token > self._token:
            self._stop.set()
            return
        with contextlib.suppress(OSError):
            write_renewal(self._root, Renewal(self._token, wall_ticks(), state))
