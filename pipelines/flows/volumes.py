"""How many rows of a source an interval has, where its team says so itself: `volume:`, in place of what is usual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipelines.flows.section import Section

KEY = "volume"
LEAST, MOST = "at_least", "at_most"
EXPECTED = f"`{LEAST}`, `{MOST}` or both, as in `{KEY}: {{{LEAST}: 100, {MOST}: 5000}}`"


@dataclass(frozen=True, kw_only=True)
class VolumeBand:
    """How many rows an interval has; an end that is not said binds nothing."""

    at_least: int | None = None
    at_most: int | None = None

    @property
    def words(self) -> str:
        """Say it.

        >>> VolumeBand(at_least=1000).words, VolumeBand(at_least=0, at_most=20).words
        ('at least 1,000', 'at least 0 and at most 20')
        """
        ends = (("at least", self.at_least), ("at most", self.at_most))
        return " and ".join(f"{what} {rows:,}" for what, rows in ends if rows is not None)

    def holds(self, rows: int) -> bool:
        """Say whether so many rows lie within it."""
        return (self.at_least is None or rows >= self.at_least) and (self.at_most is None or rows <= self.at_most)


def read_volume(section: Section) -> VolumeBand | None:
    """Read what a source says of how many rows an interval has; None where it says nothing.

    Raises:
        FlowError: it says no end, one that is no number of rows, or a least above the most.
    """
    if not section.has(KEY):
        return None
    inside = section.inner(KEY, f"`{KEY}` of {section.what}", EXPECTED)
    inside.only((LEAST, MOST))
    if not inside.tree.entries:
        raise section.wrong(KEY, f"an empty `{KEY}`", EXPECTED)
    least, most = (_rows(inside, key) for key in (LEAST, MOST))
    if least is not None and most is not None and least > most:
        raise inside.wrong(LEAST, f"`{LEAST}: {least}`, above `{MOST}: {most}`,", f"at most {most}")
    return VolumeBand(at_least=least, at_most=most)


def _rows(section: Section, key: str) -> int | None:
    if not section.has(key):
        return None
    expected = "a number of rows, 0 or more" if key == LEAST else "a number of rows, 1 or more"
    rows = section.count(key, expected)
    if rows < (0 if key == LEAST else 1):
        raise section.wrong(key, f"`{key}: {rows}`", expected)
    return rows
