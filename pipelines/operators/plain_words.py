"""Numbers and spans of time in the words that people read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.operators.rows import TICKS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Sequence

UNITS = ((86_400 * TICKS_PER_SECOND, "d"), (3_600 * TICKS_PER_SECOND, "h"), (60 * TICKS_PER_SECOND, "m"))


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Spell a number of things.

    >>> counted(1, "row"), counted(6063, "row"), counted(2, "key is", "keys are")
    ('1 row', '6,063 rows', '2 keys are')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def spoken(ticks: int) -> str:
    """Say a span of time in its two largest units.

    >>> spoken(11_520_000_000), spoken(90_000_000), spoken(0), spoken(2_500), spoken(-60_000_000)
    ('3 h 12 m', '1 m 30 s', '0 s', '0.0025 s', '-1 m')
    """
    sign, rest = ("-" if ticks < 0 else ""), abs(ticks)
    parts: list[str] = []
    for size, unit in UNITS:
        whole, rest = divmod(rest, size)
        parts += [f"{whole} {unit}"] if whole or parts else []
    seconds = f"{rest / TICKS_PER_SECOND:.6f}".rstrip("0").rstrip(".")
    parts.append(f"{seconds} s" if not parts else f"{rest // TICKS_PER_SECOND} s")
    shown = [part for part in parts[:2] if not part.startswith("0 ")] or parts[-1:]
    return sign + " ".join(shown)


def some_of(names: Sequence[str], most: int = 5) -> str:
    """Name the first of some names, and say that there are more.

    >>> some_of(["a", "b"]), some_of("abcdef")
    ('a, b', 'a, b, c, d, e …')
    """
    return f"{', '.join(names[:most])}{' …' if names[most:] else ''}"
