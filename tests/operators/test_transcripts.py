"""Every transcript holds on the compiled operators, and the documents that must fail do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from pipelines.operators.registry import OPERATORS
from tests.operators.checking import Mismatch, check
from tests.transcripts_model import FOLDER, DocumentError, Transcript, documents, neutral, read, transcripts

if TYPE_CHECKING:
    from pathlib import Path

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
