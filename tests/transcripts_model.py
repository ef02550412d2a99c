"""Transcripts: behaviour as documents, read into rows and expectations that any engine can run.

`tests/transcripts/README.md` says how a document is written. What comes out of here is neutral: integers, names, policy
objects; no operator, no engine. `neutral()` gives (name, operator, policy, rows, expected) of every document.
"""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from pipelines.operators import advance_time, dispatch, merge, quarantine
from pipelines.operators.registry import OPERATORS
from pipelines.operators.rows import PolicyError, Shape
from tests.transcripts_rows import (
    IMPORTED,
    LEDGER,
    MAIN,
    REFUSED,
    SIDE,
    TOO_OFTEN,
    Given,
    Left,
    Step,
    Transcript,
    Value,
)
from tests.transcripts_steps import Item, Reader, only, ticks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from enum import IntEnum

    from pipelines.operators.rows import Policy

__all__ = [
    "IMPORTED",
    "LEDGER",
    "MAIN",
    "REFUSED",
    "SIDE",
    "TOO_OFTEN",
    "DocumentError",
    "Given",
    "Left",
    "Step",
    "Transcript",
    "Value",
    "documents",
    "neutral",
    "read",
    "transcripts",
]

FOLDER = Path(__file__).parent / "transcripts"
UNITS = {"tick": 1, "ms": 1_000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
CHOICES: dict[tuple[str, str], type[IntEnum]] = {
    ("merge", "at_end"): merge.MergeAtEnd,
    ("merge", "ahead"): merge.Ahead,
    ("merge", "ctis"): merge.MergedCtis,
    ("advance_time", "at_end"): advance_time.PromiseAtEnd,
    ("advance_time", "late"): advance_time.Late,
    ("advance_time", "late_end"): advance_time.LateEnd,
    ("advance_time", "shape"): Shape,
    ("window", "shape"): Shape,
    ("dispatch", "style"): dispatch.DispatchStyle,
}
SPANS = {"interval", "slack", "max_ahead", "expire", "duration", "delay", "shift", "size", "hop", "within"}
DOCUMENT = {"name", "operator", "unit", "policy", "blind", "steps", "refused", "warns", "stops", "fails"}


class DocumentError(ValueError):
    """A document that cannot be run: file, line where it begins, and what is wrong."""

    def __init__(self, file: str, line: int, wrong: str) -> None:
        """Keep the facts as attributes."""
        super().__init__(file, line, wrong)
        self.file, self.line, self.wrong = file, line, wrong

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.wrong}"


def neutral(folder: Path = FOLDER) -> Iterator[tuple[str, str, Policy, tuple[Given, ...], tuple[Left, ...]]]:
    """Give (name, operator, policy, rows, expected) of every document that has rows and runs to its end.

    Documents of one policy, blind spans and end may share a flow: put the name before the key.
    """
    for transcript in transcripts(folder):
        if transcript.policy is not None and transcript.steps and not transcript.stops:
            yield transcript.name, transcript.operator, transcript.policy, transcript.rows, transcript.expected


@lru_cache
def transcripts(folder: Path = FOLDER) -> tuple[Transcript, ...]:
    """Read every document of a folder, not of its subfolders.

    Raises:
        DocumentError: a document is not as the README says, or two have one name.
    """
    found: dict[str, Transcript] = {}
    for path in sorted(folder.glob("*.yaml")):
        for line, text in documents(path):
            transcript = read(text, path.name, line)
            if transcript.name in found:
                raise DocumentError(path.name, line, f"the name {transcript.name!r} is taken")
            found[transcript.name] = transcript
    return tuple(found.values())


def documents(path: Path) -> Iterator[tuple[int, str]]:
    """Give each document of a file with the number of its first line."""
    line = 1
    for text in re.split(r"^---\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE):
        if re.search(r"^[^#\s]", text, flags=re.MULTILINE):
            yield line, text
        line += text.count("\n") + 1


def read(text: str, file: str, line: int) -> Transcript:
    """Read one document.

    Raises:
        DocumentError: it is not as the README says.
    """
    try:
        document = YAML(typ="safe").load(text)
        only(document, DOCUMENT, "document")
        return _transcript(document, file, line)
    except (YAMLError, KeyError, TypeError, ValueError) as problem:
        wrong = f"{problem} is missing" if isinstance(problem, KeyError) else str(problem)
        raise DocumentError(file, line, wrong) from problem


def _transcript(document: Item, file: str, line: int) -> Transcript:
    operator, unit = document["operator"], UNITS[document.get("unit", "tick")]
    settings = document.get("policy") or {}
    ports = tuple(settings.get("ports", settings.get("sides", ())))
    blank = Transcript(
        name=document["name"],
        file=file,
        line=line,
        operator=operator,
        policy=None,
        ports=ports,
        blind=tuple((ticks(start, unit), ticks(end, unit)) for start, end in document.get("blind", ())),
        refused=document.get("refused", ""),
        warns=document.get("warns", ""),
        stops=document.get("stops", ""),
        fails=document.get("fails", ""),
    )
    if "steps" not in document and not blank.refused and not blank.warns:
        raise ValueError("a document has steps, or says what is refused or warned of")
    try:
        blank = replace(blank, policy=_policy(operator, settings, unit))
    except PolicyError as error:
        if blank.refused and blank.refused in str(error):
            return blank
        raise
    if blank.refused:
        raise ValueError(f"expected a refusal with {blank.refused!r}, and the policy is allowed")
    reader = Reader(operator, unit, ports)
    return replace(blank, steps=tuple(reader.step(step) for step in document.get("steps", ())))


def _policy(operator: str, settings: Item, unit: int) -> Policy:
    values: dict[str, Any] = {}
    for name, value in settings.items():
        if (operator, name) in CHOICES:
            values[name] = CHOICES[operator, name][value.upper()]
        elif name == "ports":
            values[name] = len(value)
        elif name == "sides":
            values["shapes"] = tuple(Shape[shape.upper()] for shape in value.values())
        elif name in {"acceleration", "measures", "columns", "on"}:
            values[name] = tuple(value)
        elif name == "rules":
            values[name] = tuple(quarantine.Rule(check, keeps) for check, keeps in value.items())
        else:
            values[name] = None if value == "off" else ticks(value, unit) if name in SPANS else value
    kind = OPERATORS[operator]
    policy: Policy = getattr(sys.modules[kind.__module__], f"{kind.__name__}Policy")(**values)
    return policy
