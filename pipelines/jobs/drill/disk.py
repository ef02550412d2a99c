"""A disk whose power can be cut: ext4 in a file, on a loop device.

The cut is ext4's own shutdown without a flush: from then on every call fails, and what was neither synced nor written
back is gone once the file system is mounted again, as after a power cut of a disk without a cache of its own.
"""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import tempfile
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

SHUTDOWN = 0x8004587D
"""EXT4_IOC_SHUTDOWN."""
NO_FLUSH = 2
"""EXT4_GOING_FLAGS_NOLOGFLUSH: neither the journal nor the data."""
SIZE = 400_000_000
MEMORY = Path("/dev/shm")  # noqa: S108 - memory that is mounted as a disk: an image there is written in no time
TRIES = 50
"""Times that an unmount is tried, 0.1 s apart: the last process may still be going."""


class DiskKind(StrEnum):
    """Whose power is cut."""

    EXT4 = "ext4"
    """An ext4 on a loop device: what a real file system keeps."""
    STRICT = "strict"
    """A model that keeps nothing but what was synced: see `drill.strict`."""


class DiskError(OSError):
    """A disk cannot be made, mounted or unmounted here."""


@dataclass(frozen=True)
class Disk:
    """An ext4 of its own, in a file of a folder."""

    folder: Path
    seconds: int = 300
    """How often ext4 commits its journal by itself: rarely, or each second."""
    more: str = ""
    """More options of the mount, such as `sync,dirsync`: a disk that loses nothing."""

    @property
    def place(self) -> Path:
        """Give where it is mounted."""
        return self.folder / "disk"

    @property
    def _image(self) -> Path:
        memory = MEMORY / f"pulseline-{os.getpid()}-{self.folder.name}.img"
        return memory if os.access(MEMORY, os.W_OK) else self.folder / "disk.img"

    def make(self) -> None:
        """Make it, and mount it.

        Raises:
            DiskError: that is not possible here; says why.
        """
        self.place.mkdir(parents=True)
        with self._image.open("wb") as file:
            file.truncate(SIZE)
        _run("mkfs.ext4", "-q", "-F", str(self._image))
        self.mount()

    def mount(self) -> None:
        """Mount it; its journal is played first."""
        options = ("loop", f"commit={self.seconds}", "nobarrier", "noatime", self.more)
        _run("mount", "-o", ",".join(filter(None, options)), str(self._image), str(self.place))

    def cut(self) -> None:
        """Cut its power, from outside of whoever writes."""
        cut(self.place)

    def recover(self) -> None:
        """Bring the power back after a cut: unmount and mount again."""
        self._unmount()
        self.mount()

    def _unmount(self) -> None:
        for _ in range(TRIES):
            try:
                _run("umount", str(self.place))
            except DiskError as problem:
                if "busy" not in str(problem):
                    raise
                time.sleep(0.1)
            else:
                return
        raise DiskError(f"{self.place} stays busy")

    def remove(self) -> None:
        """Leave nothing mounted and no image."""
        if self.place.is_mount():
            self._unmount()
        self._image.unlink(missing_ok=True)


def cut(place: Path) -> None:
    """Cut the power of the file system that is mounted at a place; a second cut changes nothing."""
    handle = os.open(place, os.O_RDONLY)
    try:
        fcntl.ioctl(handle, SHUTDOWN, struct.pack("I", NO_FLUSH))
    finally:
        os.close(handle)


def why_no_cuts() -> str:
    """Say why no power can be cut here; nothing where it can."""
    with tempfile.TemporaryDirectory(prefix="pulseline-disk-") as folder:
        disk = Disk(Path(folder))
        try:
            disk.make()
            cut(disk.place)
        except OSError as problem:
            return str(problem)
        finally:
            disk.remove()
    return ""


def _run(*words: str) -> None:
    try:
        subprocess.run(words, check=True, capture_output=True)  # noqa: S603 - the system's own
    except FileNotFoundError as error:
        raise DiskError(f"there is no {words[0]} here") from error
    except subprocess.CalledProcessError as error:
        raise DiskError(f"{words[0]}: {error.stderr.decode(errors='replace').strip()}") from error
