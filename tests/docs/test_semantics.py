"""The page of meanings: every rule has its name once, and code, laws and transcripts cite rules that are there."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.operators.test_replay import TRANSCRIPTS
from tests.transcripts_model import FOLDER, transcripts

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "semantics.md"
RULE = re.compile(r"^### ([A-Z]\d+) (.+)$", re.MULTILINE)
WORDS = "Rules of docs/semantics.md:"
CITATION = re.compile(rf"{re.escape(WORDS)} ([A-Z]\d+(?:, [A-Z]\d+)*)\.?$", re.MULTILINE)
UNBUILT = "none, not built"
UNPROVEN: set[str] = set()
"""Rules that no law and no transcript proves, none of them built. This set only shrinks."""
NOT_OPERATORS = {"__init__", "code_folder", "compiled", "plain_words", "registry", "specs"}


@cache
def rules() -> dict[str, str]:
    """Give the text of each rule, up to the next heading."""
    text = PAGE.read_text(encoding="utf-8")
    return {
        found[1]: re.split(r"^##", text[found.end() :], maxsplit=1, flags=re.MULTILINE)[0]
        for found in RULE.finditer(text)
    }


def proofs(text: str) -> list[str]:
    """Give what proves a rule, as the page spells it: transcripts in quotes, functions as code; none where none can."""
    (told,) = re.findall(r"^Proof: (.+)$", text, re.MULTILINE)
    if told == UNBUILT:
        return []
    found = re.findall(r'"[^"]+"|`\w+`', told)
    assert told == "; ".join(found), told
    return found


def cited(path: Path) -> set[str]:
    """Name the rules that a file cites."""
    return {rule for found in CITATION.findall(path.read_text(encoding="utf-8")) for rule in found.split(", ")}


def provers() -> list[Path]:
    """List what proves: laws, tests and transcripts, this test aside."""
    tests = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
    return [*tests, *FOLDER.glob("*.yaml"), ROOT / "expectations" / "laws.py"]


@cache
def functions() -> dict[str, set[Path]]:
    """Give the files in which each law or test stands."""
    found: dict[str, set[Path]] = {}
    for path in provers():
        for name in re.findall(r"^def (\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE):
            found.setdefault(name, set()).add(path)
    return found


@cache
def sentences() -> dict[str, Path]:
    """Give the file in which each transcript stands."""
    replayed = ROOT / "tests" / "operators" / "test_replay.py"
    named = {transcript.name: FOLDER / transcript.file for transcript in transcripts()}
    return named | {transcript.name: replayed for transcript in TRANSCRIPTS}


def test_a_rule_has_one_name_and_the_numbers_of_a_letter_have_no_gap() -> None:
    names = [found[1] for found in RULE.finditer(PAGE.read_text(encoding="utf-8"))]
    numbers: dict[str, list[int]] = {}
    for name in names:
        numbers.setdefault(name[0], []).append(int(name[1:]))

    assert {letter: each for letter, each in numbers.items() if each != list(range(1, len(each) + 1))} == {}


def test_every_rule_says_where_it_comes_from() -> None:
    assert [rule for rule, text in rules().items() if not re.search(r"\[(?:[SPD]\b[^\]]*)\]", text)] == []


def test_every_citation_names_a_rule_that_is_there() -> None:
    files = [path for room in ("pipelines", "expectations", "dags") for path in (ROOT / room).rglob("*.py")]
    missing = {
        f"{path.relative_to(ROOT)}: {rule}" for path in [*files, *provers()] for rule in cited(path) - rules().keys()
    }

    assert missing == set()


def test_every_citation_is_written_so_that_it_is_found() -> None:
    files = [path for room in ("pipelines", "expectations") for path in (ROOT / room).rglob("*.py")]
    misspelt = {
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in [*files, *provers()]
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r"semantics\.md|semantics,? section|section \d of the semantics", line)
        and not CITATION.search(line)
    }

    assert misspelt == set()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("Rules of docs/semantics.md: H1, H2", {"H1", "H2"}),
        ("# Rules of docs/semantics.md: H14.", {"H14"}),
        ("Rules of docs/semantics.md: H1 to H7", set()),
    ],
)
def test_a_citation_names_each_rule(tmp_path: Path, line: str, found: set[str]) -> None:
    (tmp_path / "file").write_text(f"{line}\n")

    assert cited(tmp_path / "file") == found


def test_every_operator_cites_its_rules() -> None:
    modules = [path for path in (ROOT / "pipelines" / "operators").glob("*.py") if path.stem not in NOT_OPERATORS]

    assert modules
    assert [path.stem for path in modules if not cited(path)] == []


def test_every_file_of_transcripts_cites_its_rules() -> None:
    assert [path.name for path in sorted(FOLDER.glob("*.yaml")) if not cited(path)] == []


def test_every_proof_is_there_and_its_file_cites_the_rule() -> None:
    wrong = []
    for rule, text in rules().items():
        for proven in proofs(text):
            name = proven.strip('`"')
            files = functions().get(name, set()) if proven[0] == "`" else {sentences().get(name, Path("nowhere"))}
            if not any(path.is_file() and rule in cited(path) for path in files):
                wrong.append(f"{rule}: {proven}")

    assert wrong == []


def test_every_rule_that_is_built_is_proven() -> None:
    proven = {rule for path in provers() for rule in cited(path)}

    assert rules().keys() - proven == UNPROVEN
    assert {rule for rule, text in rules().items() if not proofs(text)} == UNPROVEN
