"""Where the rows of recorded files lie once they have landed."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipelines.flows.section import Section


class Placing(IntEnum):
    """Where the rows of a feed lie once they have landed."""

    COPY = 0
    """In files of the landing's own."""
    REFERENCE = 1
    """In the feed's files, which never change: where their rows stand in order, nothing is copied."""


def read_placing(feed: Section) -> Placing:
    """Give where rows lie that may stand in their files."""
    return feed.choice("landing", Placing, Placing.COPY)


def check_copied(feed: Section, kind: str) -> None:
    """See that nobody wants files to stand for rows that are read out of text.

    Raises:
        FlowError: somebody does.
    """
    if read_placing(feed) is Placing.REFERENCE:
        came = f"`landing: reference` under `{kind}`, whose rows land as what they are read as,"
        raise feed.wrong("landing", came, "it under `parquet` only; these are copied")
