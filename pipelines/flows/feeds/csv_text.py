"""What CSV needs to be told, in files and wherever else it comes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipelines.flows.feeds.spec import FeedSpec

if TYPE_CHECKING:
    from pipelines.flows.section import Section


@dataclass(frozen=True, kw_only=True)
class CsvText(FeedSpec):
    """A feed whose rows may be CSV."""

    delimiter: str = ","
    """CSV: the one character between two fields."""
    nulls: tuple[str, ...] = ("",)
    """CSV: what stands for null."""


@dataclass(frozen=True, kw_only=True)
class LiveText(CsvText):
    """A feed whose rows arrive in one of several formats.

    `types` are all its columns; of CSV over a socket or a topic, which has no header, in this order.
    """

    format: str = ""
    """`csv` or `json`; of files that arrive `parquet`, too."""

    @property
    def text(self) -> str:
        """Say what text the rows are read out of."""
        return self.format if self.format in {"csv", "json"} else ""


def read_delimiter(feed: Section) -> str:
    """Give the character between two fields.

    Raises:
        FlowError: it is no single one, or one that CSV needs for something else.
    """
    delimiter = feed.text("delimiter", ",")
    if len(delimiter.encode()) != 1 or delimiter in '"\n\r':
        raise feed.wrong("delimiter", f"`delimiter: {delimiter}`", 'one character, such as ";" or "\\t"')
    return delimiter


def read_nulls(feed: Section) -> tuple[str, ...]:
    """Give what stands for null."""
    return feed.names("nulls") if feed.has("nulls") else ("",)
