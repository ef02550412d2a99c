"""Holds an operator against a document, however the rows are cut."""

from __future__ import annotations

from enum import Enum
from itertools import zip_longest
from typing import TYPE_CHECKING

from pipelines.operators.rows import INFINITY, NULL, OUT_CAPACITY
from tests.operators.driving import Drive, Job, Unreadable, by_stream

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.transcripts_model import Given, Left, Step, Transcript

CAPACITIES = (1, 2, 3, OUT_CAPACITY)
ABSENT = (NULL, "")


class Cut(Enum):
    """How the rows of a document reach the operator."""

    UNCUT = "in one block"
    STEPS = "cut at every step"
    ROWS = "cut at every row"
    RESTARTS = "restarted at every step"
    ROW_RESTARTS = "restarted at every row"


class Mismatch(AssertionError):  # noqa: N818 - a finding of the harness
    """What an operator did is not what a document says."""


def check(transcript: Transcript) -> None:
    """Run a document in every way of cutting it and with every capacity.

    Raises:
        Mismatch: something else left than is to leave, or other rows are held; says which document, way and row.
    """
    if transcript.policy is None:
        return  # its refusal was read, and held
    if transcript.warns and not any(transcript.warns in text for text in transcript.policy.warnings()):
        raise Mismatch(f"{_title(transcript)}: no warning says {transcript.warns!r}")
    if not transcript.warns and transcript.policy.warnings():
        raise Mismatch(f"{_title(transcript)}: an unexpected warning: {transcript.policy.warnings()}")
    for capacity in CAPACITIES if transcript.steps else ():
        for way in Cut:
            try:
                _run(transcript, way, capacity)
            except (Mismatch, Unreadable) as found:
                said = f"{_title(transcript)}: {way.value}, capacity {capacity}: {found}"
                raise Mismatch(said) from found


def _title(transcript: Transcript) -> str:
    return f"{transcript.file}:{transcript.line}: {transcript.name}"


def _run(transcript: Transcript, way: Cut, capacity: int) -> None:
    drive = Drive(Job.of(transcript), capacity)
    if way is Cut.UNCUT:
        if transcript.stops:
            _must_stop(drive, [transcript.rows], transcript.stops)
            return
        _compare(transcript.expected, drive.feed(transcript.rows), 0)
        _compare_held(transcript.steps[-1], drive, 0)
        return
    for number, step in enumerate(transcript.steps, start=1):
        blocks = [step.rows] if way in (Cut.STEPS, Cut.RESTARTS) else [(row,) for row in step.rows]
        if transcript.stops and number == len(transcript.steps):
            _must_stop(drive, blocks, transcript.stops)
            return
        left: list[Left] = []
        for block in blocks:
            left += drive.feed(block)
            if way in (Cut.RESTARTS, Cut.ROW_RESTARTS):
                drive.restart()
        _compare(step.left, left, number)
        _compare_held(step, drive, number)


def _must_stop(drive: Drive, blocks: Sequence[Sequence[Given]], said: str) -> None:
    try:
        for block in blocks:
            drive.feed(block)
    except RuntimeError as error:
        if said not in str(error):
            raise Mismatch(f"it stopped with {str(error)!r}, and not with {said!r}") from error
    else:
        raise Mismatch(f"it did not stop with {said!r}")


def _compare(wanted: Sequence[Left], came: Sequence[Left], step: int) -> None:
    if list(by_stream(wanted).items()) == list(by_stream(came).items()):
        return
    lines = "\n".join(_differences(by_stream(wanted), by_stream(came)))
    raise Mismatch((f"step {step}: " if step else "") + f"another output\n{lines}")


def _differences(wanted: dict[tuple[str, str], list[Left]], came: dict[tuple[str, str], list[Left]]) -> Iterator[str]:
    for stream in sorted({*wanted, *came}):
        for want, got in zip_longest(wanted.get(stream, ()), came.get(stream, ())):
            if want != got:
                yield f"  want {shown(want)}\n  got  {shown(got)}"


def shown(left: Left | None) -> str:
    """Spell a row that leaves, without the fields that are empty."""
    if left is None:
        return "nothing"
    facts = {name: value for name, value in left._asdict().items() if value not in ABSENT}
    spelled = {name: getattr(value, "name", "inf" if value == INFINITY else value) for name, value in facts.items()}
    return " ".join(f"{name}={str(value).lower()}" for name, value in spelled.items() if value != "NONE")


def _compare_held(step: Step, drive: Drive, number: int) -> None:
    held = tuple(row.id for row in drive.waiting)
    if held != step.held:
        raise Mismatch((f"step {number}: " if number else "") + f"held are {held}, and not {step.held}")
