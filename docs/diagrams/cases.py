"""The cases of the operators' pages: a flow, its files, and when somebody read the clock.

A case is one YAML document. Its flow and its files are what a person would write; nothing in it says what comes out.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML

if TYPE_CHECKING:
    from collections.abc import Mapping

PAGES = Path(__file__).parents[1] / "operators"
FOLDER = PAGES / "cases"
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
TICK = dt.timedelta(microseconds=1)
Span = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One case; instants are ticks (µs since 1970-01-01 UTC)."""

    name: str
    title: str
    about: str
    """One or two sentences; they stand under the title, and describe the picture to whoever cannot see it."""
    draws: tuple[str, ...]
    """The streams that the picture shows, from above; none where there is no picture."""
    flow: str
    """The flow's file, as a person writes it."""
    files: Mapping[str, str]
    """The feeds' files, by name."""
    day: str
    readings: tuple[int, ...]
    """When the clock was read; the first is where the run begins."""
    blind: tuple[Span, ...]
    """Spans in which nobody listened to any source."""
    kind: str = "lanes"
    """What is drawn: `lanes` over the clock of arrivals, a `story` of lifetimes over event time, or the `account`."""
    axis: Span | None = None
    """The event times that a story shows."""


def cases(folder: Path = FOLDER) -> tuple[Case, ...]:
    """Read every case, in the order of their names.

    Raises:
        KeyError, TypeError: a case lacks a part, or has one that is unknown.
    """
    return tuple(read(path) for path in sorted(folder.glob("*.yaml")))


def read(path: Path) -> Case:
    """Read one case; it has the name of its file."""
    parts: dict[str, Any] = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    day = parts["day"] = str(parts["day"])
    parts["draws"] = tuple(parts.get("draws", ()))
    parts["readings"] = tuple(instant(day, text) for text in parts["readings"])
    parts["blind"] = tuple((instant(day, start), instant(day, end)) for start, end in parts.get("blind", ()))
    if "axis" in parts:
        start, end = parts["axis"]
        parts["axis"] = (instant(day, start), instant(day, end))
    return Case(name=path.stem, **parts)


def instant(day: str, time: str) -> int:
    """Give the tick of a time of a day, in UTC.

    >>> instant("1970-01-01", "00:01:00.5")
    60500000
    """
    return (dt.datetime.fromisoformat(f"{day}T{time}+00:00") - EPOCH) // TICK


def spoken(tick: int | None, day: str) -> str:
    """Write a tick as the time of the day, with its date where that is another.

    >>> spoken(60_500_000, "1970-01-01"), spoken(60_000_000, "1970-01-02"), spoken(None, "1970-01-01")
    ('00:01:00.5', '1970-01-01 00:01:00', '')
    """
    if tick is None:
        return ""
    moment = EPOCH + tick * TICK
    text = f"{moment:%H:%M:%S}" + (f".{moment.microsecond:06}".rstrip("0") if moment.microsecond else "")
    return text if f"{moment:%Y-%m-%d}" == day else f"{moment:%Y-%m-%d} {text}".lstrip("0")
