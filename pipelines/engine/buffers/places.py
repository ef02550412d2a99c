"""Where the three buffers stand, how far apart, and what is known of each: a record in the run's folder of history.

The record is written in one step and on disk before it counts. Only the holder of the run's lease writes it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pipelines.engine.files import durable
from pipelines.engine.landing.errors import LandingError, RecordBrokenError
from pipelines.engine.landing.manifest import BUFFERS_FILE
from pipelines.engine.landing.shelves import Gap
from pipelines.flows.apart import Apart
from pipelines.operators.replay import counts

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMAT = 1
LAST = "buffers.last"
"""A file that says which sequence closed last."""
MOUNTS = Path("/proc/self/mounts")
REMOTE = ("nfs", "nfs4", "cifs", "smb3", "ceph", "glusterfs", "fuse.sshfs")


@dataclass(eq=False)
class NotApartError(LandingError):
    """Two buffers stand closer together than the environment demands."""

    one: str
    other: str
    apart: Apart
    shared: str

    def __str__(self) -> str:
        return (
            f"three buffers must stand apart by {self.apart.value}; {self.one} and {self.other} share {self.shared}: "
            "give `buffers: places:` of the environment other folders, or ask for less with `apart:`"
        )


@dataclass(frozen=True, kw_only=True)
class Health:
    """What is known of one buffer."""

    restarted: int | None = None
    """The newest published commit when it had been rebuilt; None where it never failed, or counts again."""
    rebuilt: bool = True
    """Whether it holds all that no consistent state covers."""
    why: str = ""
    """What was found when it was last quarantined."""
    since: int = 0
    """When that was, in ticks."""
    times: int = 0
    """How often it was quarantined."""

    def speaks(self, consistent: int) -> bool:
        """Say whether what it holds may be read: see `operators.replay.counts`."""
        return self.rebuilt and counts(self.restarted, consistent)


class BufferDrain(NamedTuple):
    """Where a region stands."""

    drain: int
    """The newest commit that took sequences in, seen by readers or taken back by a reset; 0 for none."""
    covered: int
    """The last sequence that the commits which readers see cover; 0 for none."""
    commit: int
    """The newest commit that readers see, the last consistent state; 0 for none."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """The buffers of a run: where each stands, by name, what is known of it, and which sequences are gone for ever."""

    places: Mapping[str, str]
    health: Mapping[str, Health] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
    """Losses that somebody accepted."""

    def of(self, name: str) -> Health:
        """Give what is known of a buffer."""
        return self.health.get(name, Health())

    def with_health(self, name: str, health: Health) -> Record:
        """Give the record with other knowledge of one buffer."""
        return replace(self, health={**self.health, name: health})


def read_record(landed: Path) -> Record | None:
    """Read the record of a run's buffers; None where it has none.

    Raises:
        RecordBrokenError: it cannot be read.
    """
    path = landed / BUFFERS_FILE
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise RecordBrokenError(str(path), f"it cannot be read ({error})") from error
    if not isinstance(said, dict) or not {"format", "places", "health", "gaps"} <= said.keys():
        raise RecordBrokenError(str(path), "it says something else")
    if said["format"] != FORMAT:
        raise RecordBrokenError(str(path), f"it has format {said['format']}")
    try:
        return Record(
            places=said["places"],
            health={name: Health(**each) for name, each in said["health"].items()},
            gaps=tuple(Gap(*gap) for gap in said["gaps"]),
        )
    except (TypeError, AttributeError) as error:
        raise RecordBrokenError(str(path), f"it says something else ({error})") from None


def write_record(landed: Path, record: Record) -> None:
    """Have a record on disk, in one step."""
    said: dict[str, Any] = {
        "format": FORMAT,
        "places": dict(record.places),
        "health": {name: asdict(each) for name, each in record.health.items()},
        "gaps": [list(gap) for gap in record.gaps],
    }
    durable.make_folder(landed)
    durable.replace(landed / BUFFERS_FILE, json.dumps(said, indent=1).encode())


def note_last(landed: Path, number: int) -> None:
    """Note how far the landing has come: what is lost can then be named. No promise rests on it."""
    with durable.whole(landed / LAST) as draft:
        draft.write_text(str(number))


def last_noted(landed: Path) -> int:
    """Give how far the landing had come when somebody last noted it; 0 where nobody did."""
    try:
        return int((landed / LAST).read_text())
    except (OSError, ValueError):
        return 0


def require_apart(places: Mapping[str, Path], apart: Apart) -> None:
    """See before anything starts that buffers stand as far apart as demanded.

    Args:
        places: folder of each buffer; they need not be there yet.
        apart: how far.

    Raises:
        NotApartError: two of them share a folder, a device or a host.
    """
    seen: dict[str, Path] = {}
    for place in places.values():
        shared = _ground(place, apart)
        if shared in seen:
            raise NotApartError(str(seen[shared]), str(place), apart, shared)
        seen[shared] = place


def _ground(place: Path, apart: Apart) -> str:
    if apart is Apart.FOLDER:
        return f"the folder {place.resolve()}"
    try:
        there = next(folder for folder in (place.resolve(), *place.resolve().parents) if folder.exists())
        return f"the device {there.stat().st_dev}" if apart is Apart.DEVICE else f"the host {_host(there)}"
    except OSError:
        # Storage that does not answer is on nobody else's disk; the buffer will be quarantined.
        return f"nothing ({place})"


def _host(folder: Path) -> str:
    """Give the host that keeps a folder, out of the machine's mounts; `this machine` where no other does."""
    mounted = [line.split()[:3] for line in MOUNTS.read_text().splitlines()] if MOUNTS.exists() else []
    over = [each for each in mounted if folder.is_relative_to(each[1])]
    what, _, kind = max(over, key=lambda each: len(each[1]), default=("", "/", ""))
    if kind not in REMOTE:
        return "this machine"
    return what.removeprefix("//").partition("/")[0].partition(":")[0].rpartition("@")[2]
