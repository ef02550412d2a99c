"""A file that is hashed on its way to the disk: what is known of it is what was meant, not what the disk gave back."""

from __future__ import annotations

import hashlib
import io
from typing import TYPE_CHECKING, Self

from pipelines.engine.files.durable import secure

if TYPE_CHECKING:
    from pathlib import Path


class HashedFile(io.RawIOBase):
    """A new file that is only written to, from its begin to its end, and is on disk when it is closed.

    Safe because the digest is of the bytes that were handed over: where the disk holds others, also where they changed
    before anybody looked, whoever compares finds that out.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._file, self._hash = path.open("wb"), hashlib.sha256()
        self.size = 0
        """In bytes."""

    @property
    def sha256(self) -> str:
        """Give the digest of all that was written so far, in hex."""
        return self._hash.hexdigest()

    def writable(self) -> bool:
        """Say that it is written to."""
        return True

    def write(self, data: object) -> int:
        """Take bytes behind those that were written before."""
        view = memoryview(data).cast("B")  # type: ignore[arg-type]
        self._hash.update(view)
        self._file.write(view)
        self.size += len(view)
        return len(view)

    def tell(self) -> int:
        """Say where the next byte goes."""
        return self.size

    def close(self) -> None:
        """Have it on disk."""
        if not self.closed:
            with self._file as file:
                secure(file)
        super().close()

    def __enter__(self) -> Self:
        return self
