"""What the published rows of a stream are like, as checks that they all keep: bounds, sets of values, no nulls."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from expectations.laws import EVENTS
from pipelines.flows.checks import EXACT
from pipelines.flows.model import RESERVED

if TYPE_CHECKING:
    from collections.abc import Iterator

FEW = 20
"""Different texts of a column that are a set of values; more are names."""
REPEATED = 5
"""How many times each of them stands there on average, or they are no set."""
DIGITS, EVERY_DIGIT = 4, 100
"""Of a bound, which stands for a guess; and more than any decimal has."""
WIDER = 10
"""Of the spread that was seen, one part in so many is added to both ends: the next day is never the same."""
TIMES = 2
"""How many times fewer, or more, rows than ever an interval may have."""


@dataclass(frozen=True)
class Proposed:
    """A check that all that is published keeps, and why it is proposed."""

    name: str
    arguments: dict[str, Any] = field(hash=False)
    seen: str


def proposals(rows: pa.Table, commits: int = 0) -> Iterator[Proposed]:
    """Propose checks of the events of a stream.

    Args:
        rows: published rows with `kind`, `commit` and the payload.
        commits: how many were published, those without a row among them.
    """
    events = rows.filter(pc.is_in(rows["kind"], pa.array(EVENTS)))
    if not events.num_rows:
        return
    yield _how_many(events, commits)
    for name in events.column_names:
        if name not in RESERVED and not pa.types.is_nested(events.schema.field(name).type):
            yield from _column(name, events[name])


def unbounded(rows: pa.Table) -> Iterator[tuple[str, str]]:
    """Name the columns of the events whose values could be bounded, but for which no bounds are proposed, and why."""
    events = rows.filter(pc.is_in(rows["kind"], pa.array(EVENTS)))
    for name in events.column_names:
        values = events[name].drop_null()
        if name in RESERVED or not len(values):
            continue
        if pa.types.is_temporal(values.type):
            yield name, "days go on"
        elif pa.types.is_floating(values.type) and not pc.all(pc.is_finite(values)).as_py():
            yield name, "not all are numbers"
        elif (pa.types.is_integer(values.type) or pa.types.is_decimal(values.type)) and _is_wide(values):
            yield name, "too large for a bound"


def _is_wide(values: pa.ChunkedArray) -> bool:
    return any(abs(each) > EXACT for each in pc.min_max(values).as_py().values())


def _how_many(events: pa.Table, commits: int) -> Proposed:
    counts = events["commit"].value_counts().field("counts").to_pylist()
    low, high = min(counts) if len(counts) >= commits else 0, max(counts)
    bounds = {"min_value": low // TIMES, "max_value": high * TIMES}
    none = max(commits - len(counts), 0)
    were = "one was" if none == 1 else f"{none:,} were"
    empty = f"; {were} empty, so none is too few: raise min_value to be told of such" if none else ""
    return Proposed("expect_table_row_count_to_be_between", bounds, f"{low:,} to {high:,} an interval{empty}")


def _column(name: str, values: pa.ChunkedArray) -> Iterator[Proposed]:
    known = values.drop_null()
    if not values.null_count:
        yield Proposed("expect_column_values_to_not_be_null", {"column": name}, "none is null")
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        yield from _numbers(name, known)
    elif pa.types.is_decimal(values.type):
        yield from _decimals(name, known)
    elif pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        yield from _texts(name, known)


def _numbers(name: str, known: pa.ChunkedArray) -> Iterator[Proposed]:
    # A value that is no number lies between no two, so a column that has some would break its own bounds.
    if not len(known) or not (pa.types.is_integer(known.type) or pc.all(pc.is_finite(known)).as_py()):
        return
    low, high = (pc.min_max(known)[end].as_py() for end in ("min", "max"))
    is_whole = pa.types.is_integer(known.type)
    more = (high - low) / WIDER
    bounds = (low - more, high + more)
    # Four digits of a large number may lie within what was seen.
    near = (min(_short(bounds[0]), low), max(_short(bounds[1]), high))
    first, last = (math.floor(bounds[0]), math.ceil(bounds[1])) if is_whole else near
    if is_whole and not -EXACT <= first <= last <= EXACT:
        return
    arguments = {"column": name, "min_value": first, "max_value": last}
    yield Proposed("expect_column_values_to_be_between", arguments, f"{_told(low)} to {_told(high)}")


def _decimals(name: str, known: pa.ChunkedArray) -> Iterator[Proposed]:
    if not len(known):
        return
    low, high = (pc.min_max(known)[end].as_py() for end in ("min", "max"))
    with localcontext(prec=EVERY_DIGIT):
        more = (high - low) / WIDER
        bounds = [_outwards(low - more, ROUND_FLOOR), _outwards(high + more, ROUND_CEILING)]
    if _is_wide(known) or any(abs(each) > EXACT for each in bounds):
        return
    arguments = {"column": name, "min_value": bounds[0], "max_value": bounds[1]}
    yield Proposed("expect_column_values_to_be_between", arguments, f"{low:,f} to {high:,f}")


def _outwards(bound: Decimal, rounding: str) -> int | float:
    """Spell a bound with four digits that does not cut off what it bounds."""
    with localcontext(prec=DIGITS, rounding=rounding):
        short = +bound
    return int(short) if short == short.to_integral_value() else float(short)


def _short(bound: float) -> float:
    return float(f"{bound:.{DIGITS}g}")


def _told(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _texts(name: str, known: pa.ChunkedArray) -> Iterator[Proposed]:
    values = sorted(known.unique().to_pylist())
    if values and len(values) <= FEW and len(known) >= len(values) * REPEATED:
        arguments = {"column": name, "value_set": values}
        yield Proposed("expect_column_values_to_be_in_set", arguments, f"{len(values)} different values")
