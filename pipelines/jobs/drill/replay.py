"""`pulseline drill replay`: real processes killed and stopped, real buffers destroyed, against the undisturbed run."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.engine.buffers.places import read_record
from pipelines.engine.commits.lease import Claim, Holder
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.commits.readers import log_state
from pipelines.engine.landing.manifest import numbers_in
from pipelines.jobs.drill.drilled import drilled, logged
from pipelines.jobs.drill.fed import ROWS, SPAN, feed, readings
from pipelines.jobs.drill.processes import signalled
from pipelines.jobs.drill.seeds import calm, to_their_ends
from pipelines.jobs.drill.telling import Drilled, Telling, Undone, drilling
from pipelines.jobs.environment.buffer_settings import consistent_state
from pipelines.jobs.proofs.parity import table_hashes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from multiprocessing.process import BaseProcess

    from pipelines.engine.columnar.content import ContentHash
    from pipelines.flows.model import Flow

Work = Callable[[Path, Path, Sequence[int], float, Claim], None]
READINGS = 30
PAUSE = 0.1
"""Seconds between two readings of the disturbed process."""
PATIENCE = 120.0
"""Seconds that one seed may take."""
TAKES_OVER = 20.0
"""Seconds that a second process has to take the lease of one that is stopped."""
AT = readings(READINGS)
QUIET = (0.0, 1.5)
"""Seconds from the first sign that a process lands to the next fault: it comes at any moment of its work."""
FAULTS = 8
"""Faults of one seed at most."""
SMALL = "size=160k"
"""A device that is full before the feed has landed."""


@dataclass
class ReplaySeed:
    """A run that is disturbed while it goes on, as one seed draws it."""

    number: int
    base: Path
    flow: Flow
    mounts: bool
    done: Drilled = field(init=False)
    drawn: random.Random = field(init=False)
    work: Work = drilled
    """What the disturbed process does."""
    only: tuple[str, ...] = ()
    """Kinds of faults; all that can be had here unless given."""
    child: BaseProcess | None = None
    asleep: BaseProcess | None = None
    harmed: dict[str, int] = field(default_factory=dict)
    """Buffers that were harmed and have not been seen to count again, with how often they had been quarantined."""
    mounted: list[Path] = field(default_factory=list)
    landed: int = 0
    """The newest sequence that was seen in a buffer."""

    def __post_init__(self) -> None:
        self.done, self.drawn = Drilled(self.number), random.Random(self.number)  # noqa: S311 - to be drawn again

    @property
    def root(self) -> Path:
        """Give the run's folder."""
        return self.base / "runs" / f"seed-{self.number}"

    def place(self, name: str) -> Path:
        """Give a buffer's folder."""
        return self.root / "landing" / name

    def run(self, wanted: Mapping[str, ContentHash]) -> None:
        """Disturb the process until all is published, and hold that against a calm run.

        Raises:
            Undone: it ended with an error, or not in time.
            TableError: a table cannot be read.
        """
        self._disturbed()
        found = table_hashes(self.root, self.flow, *SPAN)
        self.done.differences = [name for name in wanted if found[name] != wanted[name]]

    def _disturbed(self) -> None:
        """Let the process run, disturb it now and then, start it again where it died, until all is published."""
        until = time.monotonic() + PATIENCE
        self._start()
        left, moved, quiet = self.drawn.randint(2, FAULTS), False, 0.0
        while True:
            time.sleep(0.02)
            code = self._child.exitcode
            if code == 0:
                return
            if code is not None and code != -signal.SIGKILL:
                raise Undone(f"the process ended with {code}: {self._log()[-1_500:]}")
            if time.monotonic() > until:
                raise Undone(f"not done after {PATIENCE:.0f} s: {self._log()[-1_500:]}")
            if code is not None:
                self._start()
                moved = False
            elif left and not moved:
                moved = self._has_moved()
                quiet = time.monotonic() + self.drawn.uniform(*QUIET)
            elif left and time.monotonic() > quiet and self._disturb():
                left, moved = left - 1, False

    @property
    def _child(self) -> BaseProcess:
        if self.child is None:
            raise Undone("no process was started")
        return self.child

    def _start(self) -> None:
        sleeper = self.asleep is not None and self.asleep.exitcode is None
        claim = Claim.TAKE_OVER if sleeper else Claim.ASK
        # A server that has imported everything forks them, so that a start takes no seconds.
        context = get_context("forkserver")
        context.set_forkserver_preload([drilled.__module__])
        arguments = (self.work, self._logged, self.base / "flow.yaml", self.root, AT, PAUSE, claim)
        self.child = context.Process(target=logged, args=arguments)
        self.child.start()

    def _has_moved(self) -> bool:
        """Say whether a sequence has landed since the last fault: a process that only starts shows nothing new."""
        landed = max((number for name in "abc" for number in numbers_in(self.place(name))), default=0)
        moved, self.landed = landed > self.landed, max(landed, self.landed)
        return moved

    @property
    def _logged(self) -> Path:
        return self.base / f"seed-{self.number}.log"

    def _log(self) -> str:
        return self._logged.read_text(errors="replace") if self._logged.exists() else ""

    def _disturb(self) -> bool:
        """Do one thing to the process or to its buffers; say whether there was something to do it to."""
        kinds: dict[str, Callable[[], bool]] = {
            "killed": self._kill,
            "stopped, overtaken and woken": self._overtake,
            "buffer removed": lambda: self._harm(shutil.rmtree),
            "buffer emptied": lambda: self._harm(_empty),
            "file truncated": lambda: self._harm(_truncate),
            "bit flipped": lambda: self._harm(_flip),
            "manifest removed": lambda: self._harm(_forget),
            "folder replaced by a file": lambda: self._harm(_replace),
        }
        if self.mounts and not self.mounted:
            kinds |= {"made read-only": lambda: self._harm(self._freeze), "device full": lambda: self._harm(self._fill)}
        kind = self.drawn.choice(sorted(set(self.only or kinds) & set(kinds)))
        if not kinds[kind]():
            return False
        self.done.faults[kind] += 1
        return True

    def _kill(self) -> bool:
        self._child.kill()
        self._child.join()
        return True

    def _overtake(self) -> bool:
        """Stop the process, let another take its lease and go on, and wake it: it must not publish any more."""
        if self.asleep is not None or not (self.root / "commits").exists():
            return False
        self.asleep = self._child
        signalled(self.asleep, signal.SIGSTOP)
        self._start()
        until = time.monotonic() + TAKES_OVER
        while self._child.exitcode is None and self._holder() != self._child.pid and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(self.drawn.uniform(0.0, 0.5))
        signalled(self.asleep, signal.SIGCONT)
        return True

    def _holder(self) -> int:
        lease = log_state(self.root).lease
        return Holder.read(lease.detail).pid if lease else 0

    def _harm(self, how: Callable[[Path], object]) -> bool:
        """Harm one or two buffers, as long as one is left that may speak and was not harmed."""
        whole = self._whole()
        names = whole[: self.drawn.randint(1, 2)] if self.drawn.random() < 0.5 else whole[-1:]  # noqa: PLR2004 - a coin
        if len(whole) - len(names) < 1:
            return False
        done = False
        for name in names:
            with suppress(OSError, ValueError):
                how(self.place(name))
                done = True
            self.harmed[name] = self._times(name)
        return done

    def _whole(self) -> list[str]:
        """Name the buffers that may speak and that nothing was done to since they were last rebuilt."""
        record = read_record(landed_path(self.root))
        if record is None:
            return []
        commit = consistent_state(log_state(self.root)).drain
        for name, times_before in list(self.harmed.items()):
            if record.of(name).times > times_before and record.of(name).speaks(commit):
                del self.harmed[name]
        return [name for name in record.places if name not in self.harmed and record.of(name).speaks(commit)]

    def _times(self, name: str) -> int:
        record = read_record(landed_path(self.root))
        return record.of(name).times if record else 0

    def _freeze(self, place: Path) -> None:
        _mount("--bind", str(place), str(place))
        self.mounted.append(place)
        _mount("-o", "remount,bind,ro", str(place))

    def _fill(self, place: Path) -> None:
        """Have a small device where the buffer stood, with what was in it: it is full before long."""
        kept = self.base / f"kept-{self.number}-{place.name}"
        shutil.copytree(place, kept, dirs_exist_ok=True)
        _mount("-t", "tmpfs", "-o", SMALL, "tmpfs", str(place))
        self.mounted.append(place)
        shutil.copytree(kept, place, dirs_exist_ok=True)

    def end(self) -> None:
        """Leave nothing behind: no process, no mount."""
        for process in (self.child, self.asleep):
            if process is not None and process.exitcode is None:
                process.kill()
                process.join()
        for place in reversed(self.mounted):
            subprocess.run(["umount", "-l", str(place)], check=False, capture_output=True)  # noqa: S603, S607 - what was mounted


def _empty(place: Path) -> None:
    for each in place.iterdir():
        shutil.rmtree(each) if each.is_dir() else each.unlink()


def _newest(place: Path, what: str) -> Path:
    return max(place.glob(f"[0-9]*/{what}"))


def _truncate(place: Path) -> None:
    file = _newest(place, "*.parquet")
    os.truncate(file, file.stat().st_size // 2)


def _flip(place: Path) -> None:
    file = _newest(place, "*.parquet")
    with file.open("r+b") as opened:
        opened.seek(file.stat().st_size // 2)
        byte = opened.read(1)
        opened.seek(-1, os.SEEK_CUR)
        opened.write(bytes([byte[0] ^ 1]))


def _forget(place: Path) -> None:
    _newest(place, "manifest.json").unlink()


def _replace(place: Path) -> None:
    shutil.rmtree(place)
    place.write_text("a file where a folder was")


def _mount(*arguments: str) -> None:
    try:
        subprocess.run(["mount", *arguments], check=True, capture_output=True)  # noqa: S603, S607 - the system's own
    except subprocess.CalledProcessError as error:
        raise OSError(error.stderr.decode(errors="replace")) from error


def mounts_here() -> bool:
    """Say whether this process may mount: without, no device is full and none read-only."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            _mount("-t", "tmpfs", "-o", SMALL, "tmpfs", folder)
        except OSError:
            return False
        subprocess.run(["umount", folder], check=False, capture_output=True)  # noqa: S603, S607 - what was mounted
        return True


def drill_replay(
    seeds: Sequence[int],
    base: Path | None,
    at_once: int,
    as_json: bool,  # noqa: FBT001 - the command's flag
    echo: Callable[[str], None],
) -> int:
    """Disturb a run for each seed and hold its streams, ledger and carry against those of the undisturbed run.

    Args:
        seeds: which.
        base: where runs are kept; nowhere unless given.
        at_once: how many run at the same time: each mostly waits.
        as_json: one object a line instead of words.
        echo: where lines go.

    Returns:
        0, or 1 where a seed differs or did not end.
    """
    mounts = mounts_here()
    telling = Telling("replay", as_json, echo)
    here = "" if mounts else "; no device is full and none read-only, for nothing can be mounted here"
    telling.begin(f"{len(seeds)} seeds: {ROWS:,} rows in {READINGS} sequences, three buffers, real processes{here}")
    with drilling(base) as folder:
        flow = feed(folder)
        return telling.through(disturbed([ReplaySeed(number, folder, flow, mounts) for number in seeds], at_once))


def disturbed(seeds: Sequence[ReplaySeed], at_once: int) -> Iterator[Drilled]:
    """Run seeds of one feed to their ends and hold each against the undisturbed run, which is made first.

    Args:
        seeds: in folders of their own under one base.
        at_once: how many run at the same time.
    """
    base, flow = seeds[0].base, seeds[0].flow
    yield from to_their_ends(seeds, at_once, calm(flow, base / "runs" / "calm", base))
