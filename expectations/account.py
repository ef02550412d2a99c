"""The account of rows, counted in the tables; what commits say is not asked.

Rules of docs/semantics.md: S17
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from expectations.laws import EVENTS, account_laws
from expectations.on_duckdb import answer, as_pandas
from expectations.report.facts import Account
from expectations.views import DROPPED, LANDED, ROWS, STREAM, crossed_to
from pipelines.flows.expressions import parse_expression
from pipelines.flows.legs import MAIN
from pipelines.operators.specs import SPECS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

    from expectations.laws import Law
    from expectations.views import Counts, Views
    from pipelines.flows.model import Flow, Stream

ALIKE = ("BROADCAST", "IN_TURN")
"""Styles of dispatch that do not look at what a row says."""
FIGURES = ("stream", "rows_in", "main", "side", "dropped", "held", "missing")


@dataclass(frozen=True)
class Dealt:
    """One input of several instances of a module, which have one account: what one of them got, no other got."""

    given: str
    """The source or stream whose rows are dealt out."""
    streams: tuple[str, ...]
    """What each instance got of it, by the number of the instance."""
    to_all: frozenset[str]
    """Kinds of rows that each of them gets."""


def dealings(flow: Flow) -> Iterator[Dealt]:
    """Find what is dealt out to instances.

    Rules of docs/semantics.md: X13
    """
    found: dict[tuple[str, str, str], list[Stream]] = {}
    for stream in flow.streams.values():
        if stream.operator == "dispatch":
            reference, _, port = stream.name.rsplit(".", 2)
            found.setdefault((reference, port, stream.inputs[0]), []).append(stream)
    for (_, _, given), streams in found.items():
        policy: Any = streams[0].policy
        style = policy.style.name
        asked = parse_expression(policy.numeric).columns if policy.numeric else policy.of
        # A timer has a key and nothing else that it could be dealt by.
        by_key = style not in ALIKE and {*asked} <= {*streams[0].by}
        to_all = frozenset({"cti", *(() if by_key else ("timer",)), *(EVENTS if style == "BROADCAST" else ())})
        yield Dealt(given, tuple(each.name for each in streams), to_all)


def accounted(flow: Flow) -> tuple[str, ...]:
    """Name the streams that have an account; of what is dealt to instances, what the first one got."""
    dealt = {each.streams[0] for each in dealings(flow)}
    return tuple(name for name, made in flow.streams.items() if made.accountable or name in dealt)


def accounts(flow: Flow, views: Views, counts: Counts) -> tuple[Account, ...]:
    """Draw up the account of each operator that passes rows on.

    Args:
        flow: the model.
        views: tell what the carry holds.
        counts: from `count_rows`.
    """
    dealt = {each.streams[0]: each for each in dealings(flow)}
    return tuple(
        _dealt(flow, dealt[name], counts) if name in dealt else _account(flow, flow.streams[name], views, counts)
        for name in accounted(flow)
    )


def _dealt(flow: Flow, dealt: Dealt, counts: Counts) -> Account:
    """Draw up the account of what is dealt: each row went to one instance, or to all; they run in one leg."""
    first, n = flow.streams[dealt.streams[0]], len(dealt.streams)

    def rows(who: str, where: str, *, times: int = 1) -> int:
        return sum(
            count * (times if kind in dealt.to_all else 1)
            for (name, place, kind), count in counts.items()
            if (name, place) == (who, where)
        )

    return Account(
        stream=first.name,
        rows_in=rows(dealt.given, _place(flow, first, dealt.given), times=n),
        main=sum(rows(name, STREAM) for name in dealt.streams),
        side=0,
        dropped=sum(rows(name, DROPPED) for name in dealt.streams),
        held=0,
    )


def _account(flow: Flow, stream: Stream, views: Views, counts: Counts) -> Account:
    # Those that came in look the same, so what the operator makes itself is left out.
    made = SPECS[stream.operator].makes or None

    def rows(who: str, where: str) -> int:
        return sum(
            count for (name, place, kind), count in counts.items() if (name, place) == (who, where) and kind != made
        )

    held = views.held.get(stream.name, {})
    return Account(
        stream=stream.name,
        rows_in=sum(rows(name, _place(flow, stream, name)) for name in stream.feeding),
        main=rows(stream.name, STREAM),
        side=sum(rows(name, STREAM) for name in stream.sides),
        dropped=rows(stream.name, DROPPED),
        held=sum(count for kind, count in held.items() if kind != made),
    )


def _place(flow: Flow, stream: Stream, given: str) -> str:
    """Say where the rows of an input are counted: of another leg's as far as this one has come."""
    landed = given in flow.sources
    own = flow.legs.get(stream.name, MAIN)
    if own != (MAIN if landed else flow.legs.get(flow.owner(given).name, MAIN)):
        return crossed_to(own)
    return LANDED if landed else STREAM


def account_marks(flow: Flow, drawn: Sequence[Account]) -> pd.DataFrame:
    """Give a frame for Great Expectations: one row, a boolean column a law of an account, true where it is kept."""
    rows = pa.Table.from_pylist([{name: getattr(each, name) for name in FIGURES} for each in drawn])
    laws = [law for each in drawn for law in account_laws(flow, each.stream)]
    return as_pandas(pa.table({column_of(law): answer(_kept(law), rows)["kept"] for law in laws}))


def column_of(law: Law) -> str:
    """Name the column of a law of an account."""
    return f"{law.name} of {law.table}"


def _kept(law: Law) -> str:
    return f"SELECT NOT {law.is_broken()} AS `kept` FROM {ROWS} WHERE `stream` = '{law.table}'"  # noqa: S608 - a stream's name is a word
