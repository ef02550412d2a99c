"""Every transcript holds on the compiled operators, and the documents that must fail do.

Rules of docs/semantics.md: A12
"""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING

import pytest

from pipelines.operators.advance_time import AdvanceTimePolicy, Late
from pipelines.operators.registry import OPERATORS
from pipelines.operators.rows import Kind, Reason, Shape
from tests.operators.checking import Mismatch, check
from tests.transcripts_model import FOLDER, DocumentError, Transcript, documents, neutral, read, transcripts

if TYPE_CHECKING:
    from pathlib import Path

    from tests.transcripts_model import Left

FAILING = [
    (path.name, line, text) for path in sorted((FOLDER / "failing").glob("*.yaml")) for line, text in documents(path)
]


@pytest.mark.parametrize(
    "transcript", transcripts(), ids=lambda transcript: f"{transcript.operator}: {transcript.name}"
)
def test_transcript(transcript: Transcript) -> None:
    check(transcript)


@pytest.mark.parametrize(("file", "line", "text"), FAILING, ids=[f"{file}:{line}" for file, line, _ in FAILING])
def test_a_document_that_must_fail_fails(file: str, line: int, text: str) -> None:
    said = re.search(r'^fails: "(.*)"$', text, flags=re.MULTILINE)
    assert said is not None

    with pytest.raises((DocumentError, Mismatch)) as failure:
        check(read(text, file, line))

    assert said[1] in str(failure.value)
    assert str(failure.value).startswith(f"{file}:{line}: ")


def test_no_transcript_says_that_it_fails() -> None:
    assert [transcript.name for transcript in transcripts() if transcript.fails] == []


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    document = "name: One\noperator: heartbeat\npolicy: {interval: 0}\nrefused: interval\n"
    (tmp_path / "two.yaml").write_text(f"{document}---\n{document}")

    with pytest.raises(DocumentError, match=r"two.yaml:6: the name 'One' is taken"):
        transcripts(tmp_path)


def test_every_operator_has_transcripts_and_they_are_given_in_neutral_form() -> None:
    given = list(neutral())

    assert {operator for _, operator, *_ in given} == set(OPERATORS)
    assert len({name for name, *_ in given}) == len(given)
    assert all(rows for *_, rows, _ in given)


CASES = {
    Shape.POINT: ("late",),
    Shape.INTERVAL: ("ends past the CTI", "ends by the CTI"),
    Shape.EDGE: ("start", "end"),
}
"""Rows of the table of violations, by the shape of the events."""


def case_of(line: Left, shape: Shape) -> str:
    """Name the row of the table of violations that a ledger line is of."""
    if shape is Shape.EDGE:
        return line.kind.name.lower()
    if shape is Shape.POINT:
        return "late"
    return "ends past the CTI" if line.end > line.cti else "ends by the CTI"


def test_every_cell_of_the_table_of_violations_has_a_transcript() -> None:
    told = {
        (policy.shape, policy.late, case_of(line, policy.shape))
        for transcript in transcripts()
        if isinstance(policy := transcript.policy, AdvanceTimePolicy)
        for line in transcript.expected
        if line.reason in (Reason.LATE, Reason.LATE_END) and line.kind in (Kind.DATA, Kind.START, Kind.END)
    }
    cells = {(shape, late, case) for shape, cases in CASES.items() for late, case in product(Late, cases)}

    assert cells - told == set()
