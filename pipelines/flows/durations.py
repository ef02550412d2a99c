"""Spans of time between what people write (`1m30s`) and whole ticks (µs), exactly: no float is ever involved."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from types import MappingProxyType
from typing import TYPE_CHECKING

from pipelines.flows.errors import DurationError, nearest
from pipelines.operators.rows import MAX_TIME, MIN_TIME, TICKS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Mapping

UNITS = MappingProxyType(
    {
        "d": 86_400 * TICKS_PER_SECOND,
        "h": 3_600 * TICKS_PER_SECOND,
        "m": 60 * TICKS_PER_SECOND,
        "s": TICKS_PER_SECOND,
        "ms": 1_000,
        "us": 1,
    }
)
"""Ticks in each unit, longest first; a day is 24 hours."""

WORDS = MappingProxyType(
    {
        **dict.fromkeys(("day", "days"), "d"),
        **dict.fromkeys(("hour", "hours", "hr", "hrs"), "h"),
        **dict.fromkeys(("minute", "minutes", "min", "mins"), "m"),
        **dict.fromkeys(("second", "seconds", "sec", "secs"), "s"),
        **dict.fromkeys(("millisecond", "milliseconds", "msec"), "ms"),
        **dict.fromkeys(("microsecond", "microseconds", "usec", "µs"), "us"),
    }
)
"""What people write for a unit, and the unit to offer them."""

LONGEST = MAX_TIME - MIN_TIME
EXPECTED = "a duration such as `90s`, `1m30s`, `10ms`, `1d`, or a number of seconds"

_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)")
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([^\W\d_]+)\s*")
_PARAMETER = re.compile(r"\$\{([^}]*)\}")


def parse(text: str | int | Decimal, parameters: Mapping[str, str] = MappingProxyType({})) -> int:
    """Read a duration as ticks, exactly.

    A bare number is seconds. Units follow one another from long to short, each at most once; a minus stands before
    all of it. `${name}` stands for the parameter of that name.

    >>> parse("1m30s"), parse("0.25"), parse("-1us"), parse("${gap}", {"gap": "10ms"})
    (90000000, 250000, -1, 10000)

    Args:
        text: what somebody wrote.
        parameters: durations by name; one does not refer to another.

    Returns:
        Ticks (µs), negative where a minus stands.

    Raises:
        DurationError: not readable, finer than a tick, longer than all readable time, or an unknown parameter.
    """
    written = replaced(str(text).strip(), parameters)
    seconds = _seconds(written)
    exact = seconds if seconds is not None else _with_units(written)
    if exact != exact.to_integral_value():
        raise DurationError(f"`{written}`", "a whole number of microseconds")
    if abs(exact) > LONGEST:
        raise DurationError(f"`{written}`", "a duration of less than 9,999 years")
    return int(exact)


def spell(ticks: int) -> str:
    """Spell ticks as `parse` reads them, shortest way first.

    >>> spell(90_000_000), spell(0), spell(-1), spell(86_400_000_000)
    ('1m30s', '0s', '-1us', '1d')
    """
    rest, said = abs(ticks), ""
    for unit, size in UNITS.items():
        count, rest = divmod(rest, size)
        said += f"{count}{unit}" if count else ""
    return ("-" if ticks < 0 else "") + (said or "0s")


def replaced(text: str, parameters: Mapping[str, str]) -> str:
    """Put parameters' values where `${name}` stands; within a longer text, such as an expression, where they are known.

    Raises:
        DurationError: it is all of `text`, and nobody gave that parameter.
    """
    found = _PARAMETER.fullmatch(text)
    if not found:
        return _PARAMETER.sub(lambda one: parameters.get(one[1].strip(), one[0]), text)
    name = found[1].strip()
    if name not in parameters:
        expected = f"a value for the parameter `{name}`"
        raise DurationError(f"`{text}`", expected, nearest(name, parameters))
    return parameters[name].strip()


def parameters_in(text: str) -> list[str]:
    """Name the parameters that stand in a text.

    >>> parameters_in("delay > ${least} or delay < ${most}")
    ['least', 'most']
    """
    return [found[1].strip() for found in _PARAMETER.finditer(text)]


def unfilled(text: str) -> str | None:
    """Name the first parameter that still stands in a text, and that nobody gave; None where there is none."""
    return next(iter(parameters_in(text)), None)


def _seconds(text: str) -> Decimal | None:
    if not _NUMBER.fullmatch(text) or len(text) > len(str(LONGEST)) + 2:
        return None
    try:
        return Decimal(text) * TICKS_PER_SECOND
    except InvalidOperation:
        return None


def _with_units(text: str) -> Decimal:
    """Add up `1d2h…`; the longest unit stands first, and none twice."""
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text)
    total, allowed, at = Decimal(0), list(UNITS), 0
    while part := _PART.match(rest, at):
        unit = _unit(text, part[2])
        if unit not in allowed:
            raise DurationError(f"`{text}`", "units from long to short, each at most once")
        allowed = allowed[allowed.index(unit) + 1 :]
        total += Decimal(part[1]) * UNITS[unit]
        at = part.end()
    if at == 0 or at < len(rest):
        raise DurationError(f"`{text}`", EXPECTED)
    return sign * total


def _unit(text: str, unit: str) -> str:
    if unit not in UNITS:
        meant = WORDS.get(unit.lower()) or (unit.lower() if unit.lower() in UNITS else None)
        offered = text.replace(unit, meant).replace(" ", "") if meant else None
        raise DurationError(f"`{text}`", f"a duration in {', '.join(UNITS)}", offered)
    return unit
