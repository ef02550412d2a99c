"""Copies of closed sequences in another folder of them: the manifest last, and never a damaged byte."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from pipelines.engine.files import durable
from pipelines.engine.landing.errors import SequenceBrokenError
from pipelines.engine.landing.manifest import MANIFEST, closed_in, name_once, new_sequence

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.engine.landing.sequence import LandedSequence

COPIED = 1 << 20
"""Bytes that are copied at once."""


def close_copy(sequence: LandedSequence, shelf: Path) -> None:
    """Copy a closed sequence into another folder of sequences, the manifest last; one that is closed there stays.

    Safe because bytes are hashed as they are copied: damage is never copied.

    Raises:
        SequenceBrokenError: a file does not hold the bytes that landed.
        OSError: one of the two storages does not do its part.
    """
    if closed_in(shelf, sequence.id):
        return
    with new_sequence(shelf, sequence.id) as folder:
        for landed in sequence.files:
            _copy_file(sequence.folder / landed.file, folder / landed.file, landed.sha256)
        name_once(folder, sequence.id, (sequence.folder / MANIFEST).read_bytes())


def _copy_file(source: Path, target: Path, sha256: str) -> None:
    digest = hashlib.sha256()
    with source.open("rb") as read, target.open("wb") as written:
        while block := read.read(COPIED):
            digest.update(block)
            written.write(block)
        durable.secure(written)
    if digest.hexdigest() != sha256:
        raise SequenceBrokenError(str(source.parent), f"a {source.name} with other bytes than landed")
