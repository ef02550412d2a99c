"""Why a query of Spark's ended, out of an error whose text buries it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

TRACEBACK = "Traceback (most recent call last)"
RAISED = re.compile(r"^(?:\w+\.)*[A-Z]\w*: .+$", re.MULTILINE)
"""The last line of a Python traceback."""
CAUSED = re.compile(r"^Caused by: (.+)$", re.MULTILINE)
"""A line of a Java trace."""
TAILS = ("=== Streaming Query ===", "JVM stacktrace:", "\n\tat ")
"""Where Spark goes on to tell its plan and its trace."""
STATE = re.compile(r"\s*SQLSTATE: \w+\s*$")


def why_ended(error: BaseException) -> str:
    """Give what began it all: the last line of the innermost Python traceback, else of the innermost cause.

    Args:
        error: Spark's own, whose text buries the cause under a query's identifier, offsets and plan.
    """
    texts = [str(link) for link in _causes(error)]
    for text in reversed(texts):
        raised = RAISED.findall(_head(text).partition(TRACEBACK)[2])
        if raised:
            return STATE.sub("", raised[-1])
    caused = CAUSED.findall(texts[-1])
    lines = [line.strip() for line in _head(texts[-1]).splitlines() if line.strip()]
    return STATE.sub("", caused[-1] if caused else (lines or [type(error).__name__])[-1])


def _causes(error: BaseException) -> Iterator[BaseException]:
    link: BaseException | None = error
    while link is not None:
        yield link
        # Spark keeps the Java cause beside Python's.
        link = link.__cause__ or getattr(link, "_cause", None)


def _head(text: str) -> str:
    for tail in TAILS:
        text = text.partition(tail)[0]
    return text
