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
import sys
import threading
import time
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Self

from pipelines.engine.columnar.clock import monotonic_now, wall_now
from pipelines.engine.columnar.columns import instant_text
from pipelines.engine.commits import machine
from pipelines.engine.commits.machine import Life
from pipelines.engine.files import durable
from pipelines.engine.files.stored import StoreFailedError
from pipelines.operators.rows import TICKS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pipelines.engine.commits.history import Entry

RENEW_EVERY = 5 * TICKS_PER_SECOND
LAPSES_AFTER = 30 * TICKS_PER_SECOND
LOOK_EVERY = TICKS_PER_SECOND // 2


class Claim(Enum):
    """How a driver asks for a lease that somebody else may hold."""

    ASK = "ask"
    """Be refused while another driver lives and renews."""
    TAKE_OVER = "take over"
    """Take it whoever holds it; the holder cannot publish from then on."""


class HolderStanding(Enum):
    """What can be seen of a lease at a glance; only watching it can tell more."""

    FREE = "free"
    """Nobody has held one yet."""
    RELEASED = "released"
    """Its driver ended properly."""
    GONE = "gone"
    """Its driver's process is no more."""
    LAPSED = "lapsed"
    """It was last renewed more than 30 s ago, if the two clocks agree."""
    AHEAD = "ahead"
    """It was renewed at an instant that is still to come here, so the two clocks do not agree."""
    HELD = "held"
    """It was renewed within 30 s, as far as one can see."""


@dataclass(frozen=True)
class Holder:
    """A process that holds a lease, so named that a later process with its number is another one."""

    host: str
    machine: str
    """Its process space, see `machine.process_space`: only within one can a process be looked up."""
    pid: int
    started: int
    """As `machine.process_start` gives it, 0 where it gives nothing."""
    machine_id: str = ""
    """See `machine.machine_id`; empty in rows of earlier versions."""

    @classmethod
    def read(cls, facts: Mapping[str, object]) -> Holder:
        """Read a holder from the detail of a lease row."""
        pid, started = int(str(facts["pid"])), int(str(facts["started"]))
        return cls(str(facts["host"]), str(facts["machine"]), pid, started, str(facts.get("machine_id", "")))

    def facts(self) -> dict[str, object]:
        """Give what the detail of a lease row holds."""
        return asdict(self)

    def __str__(self) -> str:
        """Name the process as a person would look for it."""
        return f"process {self.pid} on {self.host}"


def this_process() -> Holder:
    """Name the calling process."""
    started = machine.process_start(os.getpid()) or 0
    return Holder(socket.gethostname(), machine.process_space(), os.getpid(), started, machine.machine_id())


def life(holder: Holder, seen_from: Holder, renewed: int) -> Life:
    """Say what can be told from here about a holder's process.

    In the same process space it is looked up. In another boot of the same machine it is gone; but copied images share
    a machine's id, so that holds only for a lease that was last renewed before this boot. All else cannot be told:
    another machine, another container of this one, another boot whose clock ran ahead.

    Args:
        holder: of the lease.
        seen_from: the calling process.
        renewed: wall time of the newest renewal, in ticks.
    """
    if holder.machine and holder.machine == seen_from.machine:
        return machine.life_of(holder.pid, holder.started)
    if not holder.machine or not seen_from.machine or not holder.machine_id:
        return Life.UNTOLD
    rebooted = machine.boot_of(holder.machine) != machine.boot_of(seen_from.machine)
    same = holder.machine_id == seen_from.machine_id
    return Life.GONE if rebooted and same and renewed < machine.booted_at() else Life.UNTOLD


@dataclass(frozen=True)
class Renewal:
    """What `lease.json` says."""

    token: int
    renewed: int
    """Wall time, in ticks."""
    state: str = "held"
    """`held` or `released`."""
    monotonic: int | None = None
    """The monotonic clock of its boot, in ticks, which nobody else can read; None in those of earlier versions."""


def renewal_path(root: Path) -> Path:
    """Give the path of a root's renewals."""
    return root / "lease.json"


def read_renewal(root: Path) -> Renewal | None:
    """Read the newest renewal; None when there is none that can be read, as after a power cut."""
    return _read_tagged(root)[0]


def _read_tagged(root: Path) -> tuple[Renewal | None, str]:
    """Read the newest renewal, with what `durable.exchange` asks for.

    Raises:
        StoreFailedError: the store does not say; that a disk does not is as good as none.
    """
    try:
        content, tag = durable.read_tagged(renewal_path(root))
    except StoreFailedError:
        raise
    except OSError:
        return None, ""
    return _parsed(content), tag


def _parsed(content: bytes) -> Renewal | None:
    try:
        facts = json.loads(content)
        monotonic = facts.get("monotonic")
        since_boot = None if monotonic is None else int(monotonic)
        return Renewal(int(facts["token"]), int(facts["renewed"]), str(facts["state"]), since_boot)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return None


def write_renewal(root: Path, renewal: Renewal) -> None:
    """Replace `lease.json`, so that a reader sees the old one or the new one, never a half.

    It is not synced: a power cut ends its driver as well, and what the cut leaves of it counts as no renewal. In a
    store it goes in the place of what was read: who was overtaken meanwhile does not write over the newer one.
    """
    _exchange(root, renewal, _read_tagged(root)[1])


def _exchange(root: Path, renewal: Renewal, tag: str) -> None:
    durable.exchange(renewal_path(root), json.dumps(asdict(renewal)).encode(), tag)


@dataclass(frozen=True)
class Sight:
    """A lease, what was last seen of its renewals, and what can be told about its process."""

    lease: Entry
    renewal: Renewal | None
    """Of this lease."""
    life: Life

    @property
    def renewed(self) -> int:
        """Wall time of the newest renewal, in ticks."""
        return max(self.lease.at, self.renewal.renewed if self.renewal else self.lease.at)

    @property
    def ended(self) -> bool:
        """Say whether its driver has given it back or is surely gone."""
        return self.released or self.life is Life.GONE

    @property
    def released(self) -> bool:
        """Say whether its driver has given it back."""
        return self.renewal is not None and self.renewal.state == "released"

    @property
    def renews(self) -> bool:
        """Say whether its process lives here and has renewed in time by the one clock that both go by."""
        if self.ended or self.life is not Life.ALIVE or self.renewal is None or self.renewal.monotonic is None:
            return False
        return 0 <= monotonic_now() - self.renewal.monotonic <= LAPSES_AFTER

    def standing(self, now: int) -> HolderStanding:
        """Judge it at a glance, for people to read: what depends on the clocks of two machines locks nobody out.

        Args:
            now: wall time, in ticks.
        """
        if self.ended:
            return HolderStanding.RELEASED if self.released else HolderStanding.GONE
        if self.renews:
            return HolderStanding.HELD
        age = now - self.renewed
        if age < -LAPSES_AFTER:
            return HolderStanding.AHEAD
        return HolderStanding.LAPSED if age > LAPSES_AFTER else HolderStanding.HELD


def seems_held(root: Path, lease: Entry | None, now: int) -> bool:
    """Say whether somebody is at work on a run, as far as a glance tells; see `Sight.standing`.

    Args:
        root: the run's folder.
        lease: the newest lease row of `commits`, if there is one.
        now: wall time, in ticks.
    """
    return lease is not None and look(root, lease, this_process()).standing(now) is HolderStanding.HELD


def look(root: Path, lease: Entry, seen_from: Holder) -> Sight:
    """Look at a lease, once.

    Args:
        root: the run's folder.
        lease: the newest lease row of `commits`.
        seen_from: the calling process.
    """
    renewal = read_renewal(root)
    mine = renewal if renewal and renewal.token == lease.token else None
    bare = Sight(lease, mine, Life.UNTOLD)
    return replace(bare, life=life(Holder.read(lease.detail), seen_from, bare.renewed))


def is_held(root: Path, lease: Entry, seen_from: Holder, tell: Callable[[str], object]) -> bool:
    """Say whether a lease has a driver that lives, where need be by watching for 30 s whether it is renewed.

    Clocks of two machines are never compared: dead is who does not renew while watched. The time is counted in looks,
    so that a watcher that was stopped and woken has not watched in between.

    Args:
        root: the run's folder.
        lease: the newest lease row of `commits`.
        seen_from: the calling process.
        tell: told that it is watched.
    """
    seen = look(root, lease, seen_from)
    if seen.ended or seen.renews:
        return seen.renews
    tell(
        f"{Holder.read(lease.detail)} holds the lease since {instant_text(lease.at)}; waiting up to "
        f"{LAPSES_AFTER // TICKS_PER_SECOND} s to see whether it still renews"
    )
    renewal = seen.renewal
    for _ in range(LAPSES_AFTER // LOOK_EVERY):
        time.sleep(LOOK_EVERY / TICKS_PER_SECOND)
        seen = look(root, lease, seen_from)
        if seen.ended:
            return False
        if seen.renewal not in {None, renewal}:
            return True
    return False


def say(text: str) -> None:
    """Say a line of progress, beside what a command prints."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


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
        with contextlib.suppress(OSError):
            seen, tag = _read_tagged(self._root)
            if seen and seen.token > self._token:
                self._stop.set()
                return
            _exchange(self._root, Renewal(self._token, wall_now(), state, monotonic_now()), tag)
