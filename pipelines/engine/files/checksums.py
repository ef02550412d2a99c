"""Files whose names say the sum of all their bytes: pages of Parquet have sums, footers and headers of pages none."""

from __future__ import annotations

import errno
import io
import os
import re
import zlib
from functools import partial
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Any
from uuid import uuid4

import pyarrow as pa

from pipelines.engine.files.stored import IN_MEMORY, StorePath, for_arrow, path_of

SUMMED = re.compile(r"(?:^|/)[cek]\d{8,}-(?:[^/]*-)?[0-9a-f]{8}([0-9a-f]{8})\.parquet$")
"""A path of a file that was named by `summed_name`; older ones, and those of others, have no sum."""
AT_A_TIME = 1 << 20
"""Bytes that are added up in one go."""


def summed_name(stem: str, content: bytes) -> str:
    """Name a file of ours by its bytes.

    Args:
        stem: how the name begins, up to its random part.
        content: all of it.
    """
    return _named(_begun(stem), zlib.crc32(content))


def _begun(stem: str) -> str:
    return f"{stem}-{uuid4().hex[:8]}"


def _named(begun: str, total: int) -> str:
    return f"{begun}{total:08x}.parquet"


def whole(file: str | Path) -> bytes:
    """Read all of a file.

    Raises:
        FileNotFoundError: it is not there.
        pyarrow.ArrowInvalid: its name says another sum of its bytes.
    """
    content = path_of(file).read_bytes()
    _require(file, zlib.crc32(content))
    return content


def _require(file: str | Path, total: int) -> None:
    told = SUMMED.search(str(file))
    if told is not None and int(told[1], 16) != total:
        raise pa.ArrowInvalid("its bytes are others than were written")


def require_as_written(file: str | Path) -> None:
    """See that a file of this machine has the bytes that its name tells of, if it does; it may be a large one.

    Raises:
        FileNotFoundError: it is not there.
        pyarrow.ArrowInvalid: its name says another sum of its bytes.
    """
    if SUMMED.search(str(file)) is None:
        return
    total = 0
    with Path(file).open("rb") as read:
        for some in iter(partial(read.read, AT_A_TIME), b""):
            total = zlib.crc32(some, total)
    _require(file, total)


def as_written(file: str | Path) -> Any:  # noqa: ANN401 - a path, or a file of Arrow's
    """Give what Arrow reads a stored file by, once; where its name tells a sum, its bytes, which have that.

    Raises:
        FileNotFoundError: there is no such object.
        pyarrow.ArrowInvalid: its name says another sum of its bytes.
    """
    return for_arrow(file) if SUMMED.search(str(file)) is None else pa.BufferReader(whole(file))


class SummedFile(io.RawIOBase):
    """A new file that is only written to, and has the name that says the sum of its bytes when it is finished.

    The sum is of the bytes that were handed over: where the disk holds others, whoever reads them finds that out.

    Args:
        folder: where it comes; it is there.
        stem: how its name begins, up to its random part.
    """

    def __init__(self, folder: Path, stem: str) -> None:
        super().__init__()
        self._folder, self._begun, self._sum = folder, _begun(stem), 0
        self.size = 0
        """In bytes."""
        self._draft = folder / f"{self._begun}.parquet"
        """Its name until then: nothing names it, and the sweep takes what a crash leaves of it."""
        stored = isinstance(folder, StorePath)
        self._file: IO[bytes] = SpooledTemporaryFile(IN_MEMORY) if stored else self._draft.open("wb")  # noqa: SIM115 - closed below

    def writable(self) -> bool:
        """Say that it is written to."""
        return True

    def write(self, data: object) -> int:
        """Take bytes behind those that were written before.

        Raises:
            OSError: the disk does not take them.
        """
        if self._file.closed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), str(self._draft))
        view = memoryview(data).cast("B")  # type: ignore[arg-type]
        self._sum = zlib.crc32(view, self._sum)
        self._file.write(view)
        self.size += len(view)
        return len(view)

    def tell(self) -> int:
        """Say where the next byte goes."""
        return self.size

    def finish(self) -> str:
        """Give the file its name, and tell it; it is not synced.

        Raises:
            OSError: the disk or the store does not take it.
        """
        name = _named(self._begun, self._sum)
        target = self._folder / name
        if isinstance(target, StorePath):
            self._file.seek(0)
            target.upload(self._file)
        else:
            self._file.close()
            self._draft.rename(target)
        self.close()
        return name

    def close(self) -> None:
        """Leave it, finished or not."""
        self._file.close()
        super().close()
