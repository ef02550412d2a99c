"""What the parts of the drill `input` share: a count of what was tried, what was wrong, and what a sentence is."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipelines.jobs.environment.exits import DEBUG, exit_code_of

if TYPE_CHECKING:
    from pathlib import Path

FEW = 3
"""Findings of one seed that are told."""
SHOWN = 200
"""Characters of an input that are told."""
ODD = (
    "\x00",
    "\x1b[31m",
    "\u202e",
    "\ufeff",
    "\u2028",
    "'",
    '"',
    "\\",
    "`",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "-",
    "#",
    "%",
)
ODD_WORDS = (
    *(
        "",
        "~",
        "null",
        "NaN",
        ".inf",
        "-.inf",
        "1e400000000",
        "-1",
        "0",
        "99999999999999999999",
        "0x1F",
        "1_000",
        "yes",
    ),
    *(
        "2013-02-30",
        "2013-01-01",
        "25:61",
        "[]",
        "{}",
        "[[[[",
        "&a",
        "*a",
        "<<",
        "!!python/none",
        "!x y",
        "${x}",
        "é" * 300,
    ),
    *(
        "a" * 5_000,
        "9" * 5_000,
        "((((((((((",
        "1e308",
        "-0.0",
        "P1D",
        "10m",
        "1e3s",
        "true",
        "../../etc",
        "|",
        ">",
        "\t",
    ),
)


@dataclass
class Tried:
    """How many inputs were tried, and what was wrong with which."""

    inputs: int = 0
    wrong: list[str] = field(default_factory=list)

    def find(self, what: str, given: object) -> None:
        """Take up a finding: what is wrong, and the input."""
        if len(self.wrong) < FEW:
            self.wrong.append(f"{what}: {str(given)[:SHOWN]!r}")

    def raised(self, error: Exception, given: object) -> None:
        """Take up what an input was refused with; a finding where that is no sentence of the product's own."""
        line = exit_code_of(error)[1]
        if DEBUG in line or not line.strip():
            self.find(line, given)


@dataclass(frozen=True)
class FuzzedPlace:
    """Where inputs of one seed are tried."""

    folder: Path
    """Of its own."""
    number: int
    """The seed."""
    count: int
    """About how many inputs."""

    def drawn(self) -> random.Random:
        """Give where inputs are drawn from."""
        return random.Random(self.number)  # noqa: S311 - to be drawn again


def mangled(drawn: random.Random, text: str) -> str:
    """Change a text in a few places: characters, words and lines come, go, are doubled and change places."""
    for _ in range(drawn.choice((1, 1, 1, 2, 4))):
        text = drawn.choice((_cut, _odd, _word, _line_twice, _line_gone, _lines_change, _odd_word))(drawn, text)
    return text


def _span(drawn: random.Random, text: str, most: int) -> tuple[int, int]:
    at = drawn.randrange(len(text) + 1)
    return at, min(len(text), at + drawn.randrange(most))


def _cut(drawn: random.Random, text: str) -> str:
    at, end = _span(drawn, text, 6)
    return text[:at] + text[end:]


def _odd(drawn: random.Random, text: str) -> str:
    at, end = _span(drawn, text, 2)
    return text[:at] + drawn.choice(ODD) + text[end:]


def _words(text: str) -> list[str]:
    """Cut a text into words and what stands between them."""
    parts, word = [""], False
    for each in text:
        if (each.isalnum() or each == "_") != word:
            word = not word
            parts.append("")
        parts[-1] += each
    return parts


def _word(drawn: random.Random, text: str) -> str:
    parts = _words(text)
    parts[drawn.randrange(len(parts))] = drawn.choice(parts)
    return "".join(parts)


def _odd_word(drawn: random.Random, text: str) -> str:
    parts = _words(text)
    parts[drawn.randrange(len(parts))] = drawn.choice(ODD_WORDS)
    return "".join(parts)


def _line_twice(drawn: random.Random, text: str) -> str:
    lines = text.split("\n")
    at = drawn.randrange(len(lines))
    return "\n".join([*lines[:at], lines[at], *lines[at:]])


def _line_gone(drawn: random.Random, text: str) -> str:
    lines = text.split("\n")
    del lines[drawn.randrange(len(lines))]
    return "\n".join(lines)


def _lines_change(drawn: random.Random, text: str) -> str:
    lines = text.split("\n")
    one, other = drawn.randrange(len(lines)), drawn.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return "\n".join(lines)
