"""What a run takes the place of: published rows of a day, and days that another flow, or another file's, has made.

A day that runs again replaces what it published. So a file that was moved away, a flow that was changed for one day, or
a second flow file with the name of the first would each take published rows from their readers without a word.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pipelines.engine.columnar.content import ContentHash
from pipelines.engine.commits.history import CommitKind
from pipelines.engine.files import durable
from pipelines.engine.files.stored import is_stored
from pipelines.engine.landing.errors import SequenceBrokenError
from pipelines.engine.landing.manifest import load_manifest
from pipelines.engine.sources.files import called
from pipelines.flows.document import Scalar, load
from pipelines.flows.errors import FlowError
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.settings import config_folder
from pipelines.jobs.runs.counts import counted
from pipelines.operators.plain_words import counted as number_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipelines.engine.commits.history import Entry, LogState, Span
    from pipelines.engine.landing.sequence import LandedSequence, LandedSource
    from pipelines.flows.model import Flow
    from pipelines.jobs.text.moments import Moments

MOST_NAMED = 3
"""Files that are gone and named; the rest are counted."""
FILE = "flow_file.json"
"""In a run's folder: the flow's file that made it last, by its path and by the way from that folder to it."""


def landed_before(state: LogState, span: Span) -> dict[str, int]:
    """Count, by source, the rows that landed for what is published of a span.

    Args:
        state: the log.
        span: of a new commit; it replaces whole intervals.
    """
    found: dict[str, int] = {}
    for number in state.superseded_by(span):
        for source, rows in counted(state.commits[number], "landed").items():
            found[source] = found.get(source, 0) + rows
    return found


def require_arrivals(before: Mapping[str, int], sequence: LandedSequence, interval: str) -> None:
    """Refuse to replace rows of a source, published or held, by none at all.

    Args:
        before: rows that landed for what would be replaced, by source.
        sequence: what lands now.
        interval: how a user calls it.

    Raises:
        WrongUse: nothing of a source arrives any more, neither rows nor anything to tell of them.
    """
    told = set(sequence.ledger_rows()["source"].to_pylist())
    gone = [
        f"{number_of(rows, 'row')} of `{name}`"
        for name, rows in before.items()
        if rows and name in sequence.sources and not sequence.sources[name].rows and name not in told
    ]
    if gone:
        raise WrongUse(
            f"{interval} landed with {' and '.join(gone)}, and nothing of that arrives any more: put back the files "
            "that were moved or removed, or add --accept-loss to replace the interval without them; what is there "
            "stays as it is"
        )


def sequences_before(landing: Path, state: LogState, span: Span, interval: str) -> list[LandedSequence]:
    """Give what landed for what is published of a span.

    Args:
        landing: the folder of the run's sequences.
        state: the log.
        span: of a new commit; it replaces whole intervals.
        interval: how a user calls it.

    Raises:
        WrongUse: the manifest of one is gone or damaged, so nobody knows of which files its rows were.
    """
    numbers = (each for number in state.superseded_by(span) for each in state.commits[number].sequences)
    try:
        return [load_manifest(landing, number) for number in numbers]
    except SequenceBrokenError as broken:
        raise WrongUse(
            f"{interval} is published, and from which files it landed can no longer be read ({broken.folder} has "
            f"{broken.problem}): pulseline doctor FLOW --repair lands it again where its files are as they were; "
            "--accept-loss replaces the interval by what arrives now"
        ) from None


class FromFile(NamedTuple):
    """What rows of an interval came from one file."""

    rows: int
    mark: str
    """The same for a file of another name that has the same rows."""


def require_files(before: Sequence[LandedSequence], sequence: LandedSequence, base: Path, interval: str) -> None:
    """Refuse to replace rows, published or held, whose file is gone, whatever else arrives in their interval.

    A file that was given another name is not gone, nor is one that holds other rows now. What landed before files were
    noted names none.

    Args:
        before: what landed for what would be replaced.
        sequence: what lands now.
        base: the folder that the feeds' paths are relative to.
        interval: how a user calls it.

    Raises:
        WrongUse: names the files that are gone.
    """
    if any(each.id == sequence.id for each in before):
        return
    for name, landed in sequence.sources.items():
        known = [each.sources[name] for each in before if name in each.sources]
        if any(each.referenced for each in (*known, landed)) and landed.rows >= sum(each.rows for each in known):
            # By reference a file is known by all its bytes, and as a copy by the rows that arrived: the two are not
            # held against each other.
            continue
        gone = _gone(known, landed, base.absolute())
        if gone:
            told = " and ".join(f"{number_of(came.rows, 'row')} of {path}" for path, came in gone[:MOST_NAMED])
            more = f" and of {number_of(len(gone) - MOST_NAMED, 'more file')}" if gone[MOST_NAMED:] else ""
            raise WrongUse(
                f"{interval} landed with {told}{more}, which `{name}` no longer has: put back the files that were "
                "moved or removed, or add --accept-loss to replace the interval without them; what is there stays as "
                "it is"
            )


def files_gone(sequence: LandedSequence, base: Path) -> list[str]:
    """Name the files that something landed from and that are no longer there; one may have another name now.

    Args:
        sequence: what landed.
        base: the folder that the feeds' paths are relative to.
    """
    at = base.absolute()
    return [path for each in sequence.sources.values() for path in _files_of([each], at) if not (at / path).is_file()]


def _gone(before: Sequence[LandedSource], landed: LandedSource, base: Path) -> list[tuple[str, FromFile]]:
    now = _files_of([landed], base)
    marks = {came.mark for came in now.values()}
    found = ((path, came) for path, came in _files_of(before, base).items() if came.mark not in marks)
    return [(path, came) for path, came in found if path not in now and not (base / path).is_file()]


def _files_of(landed: Sequence[LandedSource], base: Path) -> dict[str, FromFile]:
    """Give, by path, what came from each file; none of a source that does not say so."""
    contents: dict[str, ContentHash] = {}
    for file in (file for each in landed for file in each.came):
        contents[file.path] = contents.get(file.path, ContentHash()) + file.content
    found = {path: FromFile(content.rows, content.text) for path, content in contents.items()}
    for part in (part for each in landed if each.referenced is not None for part in each.referenced.files):
        path = called(Path(part.path), base)
        found[path] = FromFile(part.rows + (found[path].rows if path in found else 0), part.sha256)
    return found


def under_another_flow(state: LogState) -> list[list[Entry]]:
    """Give runs of published intervals, that follow one another, of another flow than the one that ran last.

    Where a changed flow was taken into use (`apply`), intervals before it belong to the flow of their time.
    """
    parts: list[list[Entry]] = [[]]
    for row in state.in_order:
        if row.kind is CommitKind.ADOPT:
            parts.append([])
        elif row.kind is CommitKind.INTERVAL:
            parts[-1].append(row)
    return [spell for rows in parts if rows for spell in _others(rows)]


def _others(rows: list[Entry]) -> list[list[Entry]]:
    last = max(rows, key=lambda row: row.commit).fingerprint
    found: list[list[Entry]] = []
    for row in rows:
        if row.fingerprint == last:
            continue
        if found and found[-1][-1].span.end == row.span.start:
            found[-1].append(row)
        else:
            found.append([row])
    return found


def others_text(rows: list[list[Entry]], moments: Moments) -> str:
    """Spell spans that were made by another flow than the one that ran last; none where there are none."""
    spans = ", ".join(moments.span(spell[0].span.start, spell[-1].span.end) for spell in rows)
    return f"{spans} made by another flow than the one that ran last; run again, all are by one" if rows else ""


def require_own_file(root: Path, flow: Flow) -> None:
    """See that no other file of the same flow name made this run.

    A file that is gone, or whose flow was given another name, claims nothing; a copy says the same. One of the same
    file name among the flows of the configuration is the other, moved: a deployment may keep a folder a version, and
    tells by its configuration which is meant.

    Args:
        root: the run's folder.
        flow: with the file that it was read from.

    Raises:
        WrongUse: another file that is still there calls its flow the same, and says something else.
    """
    own, other = Path(flow.file).resolve(), own_file(root)
    if other is None or not flow.file or other == own or _is_deployed(own, other):
        return
    if _claims(other, own, flow.name):
        raise WrongUse(
            f"a flow's name is of one file; {other} and {own} both say `flow: {flow.name}`, and the first made run "
            f"`{root.name}`: give one of them another name, --run NAME for a run of its own, or remove the one that is "
            "no longer meant"
        )


def keep_own_file(root: Path, flow: Flow) -> None:
    """Keep which file makes a run, once the run goes on with it.

    Args:
        root: the run's folder; made when it is not there.
        flow: with the file that it was read from.
    """
    own = Path(flow.file).resolve()
    if flow.file and own_file(root) != own:
        durable.make_folder(root)
        told = {"file": str(own)} | ({} if is_stored(root) else {"from_here": os.path.relpath(own, root.resolve())})
        durable.replace(root / FILE, json.dumps(told).encode())


def own_file(root: Path) -> Path | None:
    """Give the flow's file that a run was made by last; None where that is not known.

    In a copy of a whole project that is the copy's: a home and its flows that went elsewhere together are still as far
    from each other.
    """
    try:
        told = json.loads((root / FILE).read_text(encoding="utf-8"))
        if isinstance(told, str):
            return Path(told)
        copied = (root.resolve() / told["from_here"]).resolve() if "from_here" in told else None
        return copied if copied is not None and copied.is_file() else Path(told["file"])
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _is_deployed(own: Path, other: Path) -> bool:
    return own.name == other.name and own.parent == (config_folder() / "flows").resolve()


def _claims(other: Path, own: Path, name: str) -> bool:
    try:
        said = load(other).entries.get("flow")
        return isinstance(said, Scalar) and said.text == name and other.read_bytes() != own.read_bytes()
    except (FlowError, OSError):
        return False
