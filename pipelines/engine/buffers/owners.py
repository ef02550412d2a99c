"""Whose buffer a folder is: a run has an id, made once, and marks its buffers with it.

The id lies in the run's folder and moves along with it, so a home that was moved, or restored from a backup, finds its
buffers again. Another home whose flow and run have the same names has another id: it does not take rows of this one for
its own, wherever its environment says that buffers stand.
"""

from __future__ import annotations

import json
import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pipelines.engine.files import durable
from pipelines.engine.files.stored import path_of
from pipelines.engine.landing.errors import LandingError
from pipelines.engine.landing.manifest import BUFFERS_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FORMAT = 2
MARK = "buffer.json"
"""A file that says whose buffer a folder is; a folder without it has been emptied or was never one."""
ID_FILE = "run.id"
"""In the run's folder."""
GONE = "its folder has been removed or emptied"
FOREIGN = "it is the buffer of another run"


@dataclass(eq=False)
class NotOursError(LandingError):
    """A folder is the buffer of another run.

    Facts: the buffer, where it stands, whose it is, and who asks for it.
    """

    name: str
    place: str
    theirs: str
    ours: str
    says = (
        "a buffer belongs to one run; {name} in {place} is that of {theirs}, and {ours} is another: give this home "
        "`buffers: places:` of its own, or the run another name (--run). Where it is the same run, in a home that was "
        "moved or restored from a backup: pulseline adopt-buffers FLOW"
    )


class Owner(NamedTuple):
    """Who owns a buffer."""

    id: str
    """Of the run; in marks of before, the folder of its history."""
    landed: str
    """The folder of its history when the mark was written; for people, and to find a copy by."""


def owner_of(landed: Path) -> Owner:
    """Give the run of a folder of history; its id is made here, where it has none. Only who holds the lease may ask.

    Raises:
        OSError: the run's folder does not take the id.
    """
    known = run_id(landed)
    if not known:
        known = uuid.uuid4().hex
        durable.make_folder(landed.parent)
        durable.replace(landed.parent / ID_FILE, known.encode())
    return Owner(known, str(landed))


def run_id(landed: Path) -> str:
    """Give the id of a run; nothing where it has none.

    Raises:
        OSError: it cannot be read.
    """
    try:
        return (landed.parent / ID_FILE).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""


def mark(place: Path, owner: Owner) -> None:
    """Make a folder a buffer of a run.

    Args:
        place: the folder; made when it is not there.
        owner: the run.

    Raises:
        OSError: the folder cannot be made or written.
    """
    durable.make_folder(place)
    said = {"format": FORMAT, "owner": owner.id, "landed": owner.landed}
    durable.replace(place / MARK, json.dumps(said).encode())


def marked_by(place: Path) -> Owner | None:
    """Say whose buffer a folder is; None where it is nobody's.

    Raises:
        OSError: its storage does not say.
    """
    try:
        said = json.loads((place / MARK).read_text(encoding="utf-8"))
        return Owner(str(said["owner"]), str(said.get("landed", said["owner"])))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, TypeError, AttributeError):
        return Owner("", f"nobody who could be read ({MARK})")


def problem_of(place: Path, owner: str) -> str:
    """Say why a folder is not, or not any more, a buffer of a run; nothing where it is.

    Args:
        place: the folder.
        owner: id of the run; whoever does not know it takes every mark.
    """
    try:
        found = marked_by(place)
    except OSError as problem:
        return problem.strerror or str(problem)
    if found is None:
        return GONE
    return "" if not owner or found.id in {owner, ""} or not _is_id(found.id) else FOREIGN


def claim(places: Mapping[str, Path], owner: Owner, *, known: Mapping[str, str]) -> None:
    """See that no buffer is another run's; what this one marked before it had an id, or where it stood, is marked anew.

    A buffer whose storage does not answer is left to whoever looks after it.

    Args:
        places: folder of each buffer, by name.
        owner: the run.
        known: where the run's own record says that they stand; nothing where it has none.

    Raises:
        NotOursError: one is another run's.
    """
    for name, place in places.items():
        with suppress(OSError):
            found = marked_by(place)
            if found is None or found == owner:
                continue
            if not _is_ours(found, owner, has_record=bool(known)):
                # The same folder: its run lost its id, or is another one in its place.
                same = f"a run of another id ({ID_FILE}) in {found.landed}"
                theirs = same if found.landed == owner.landed else found.landed
                raise NotOursError(name, str(place), theirs, owner.landed)
            mark(place, owner)


def adopt(places: Mapping[str, Path], owner: Owner) -> dict[str, Owner]:
    """Mark buffers as those of a run, whosever they were; give what others said, by name.

    Args:
        places: folder of each buffer, by name.
        owner: the run.

    Raises:
        OSError: one cannot be read or written.
    """
    marks = {name: marked_by(place) for name, place in places.items()}
    found = {name: theirs for name, theirs in marks.items() if theirs is not None and theirs != owner}
    for name in found:
        mark(places[name], owner)
    return found


def _is_ours(found: Owner, owner: Owner, *, has_record: bool) -> bool:
    if not found.id:
        return has_record
    if _is_id(found.id) and found.id != owner.id:
        return False
    # Where it says that another folder is its run's, that run must be gone from there: else this one is a copy of it.
    elsewhere = path_of(found.landed)
    stands = found.landed != owner.landed and _stands(elsewhere, owner)
    return not stands and (found.id == owner.id or found.landed == owner.landed or has_record)


def _stands(landed: Path, owner: Owner) -> bool:
    try:
        return (landed / BUFFERS_FILE).exists() and not landed.samefile(owner.landed)
    except OSError:
        return False


def _is_id(said: str) -> bool:
    """Tell an id from what marks of before said, the folder of a run's history."""
    return "/" not in said
