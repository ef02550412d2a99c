"""What must hold of a stream's rows, as sentences, parameters and SQL; no engine, no Great Expectations.

A law marks each row with the time of what governs it: the newest timer or promise before it, in stream order. It
partitions and orders by columns, so it gives the same answer however the rows are distributed. The SQL is Spark's;
`expectations.plain` has it translated for DuckDB.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from expectations.scopes import promise_scope, timer_scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.flows.model import Flow

BLOCKING, WARNING = "blocking", "warning"
JUDGED = "__judged"
"""True on rows that are judged, false on timers and promises taken along from before them."""
BOUND = "__bound"
"""Event time of the governor; null where there is none yet."""
GOVERNED = "__governed"
"""The governor itself, of a row that is shown."""
ACCOUNT_HOLDS, FEW_HELD = "account_holds", "few_held"
OF_ACCOUNTS = frozenset({ACCOUNT_HOLDS, FEW_HELD})
"""Laws of the account of an operator; all others are of the rows of a table."""
HELD_PERCENT = 20
"""How many of a hundred rows that came into a merge may stay held in it, on balance, before that is worth a warning."""
HELD_LEAST = 100
"""Fewer held rows than these are no sign of anything: an interval of few rows ends while some wait."""
EVENT_TIME = "`event_time`"
GOVERNOR = "STRUCT(`event_time`, `arrival`, `place`, `commit`)"
ORDER = ("kind", "arrival", "place", "event_time", "event_end", "commit")
"""Columns that a law may ask for, beside its scope."""
MAX, LAST = "MAX", "LAST_VALUE"


@dataclass(frozen=True, kw_only=True)
class Law:
    """One expectation of one table."""

    name: str
    table: str
    sentence: str
    remedy: str
    severity: str = BLOCKING
    scope: tuple[str, ...] = ()
    """Columns that rows share which bind each other; () is the whole stream."""
    governor: str = ""
    """Kind of the rows that bind: `timer` or `cti`."""
    governed: tuple[str, ...] = ()
    """Kinds of the rows that are bound."""
    newest: str = MAX
    """Which of the governors before a row binds it: `MAX`, the largest, or `LAST_VALUE`, the one before."""
    broken: str = ""
    """SQL: what is true of a row that breaks the law, given `__bound`."""

    def newest_of(self, what: str) -> str:
        """Spell the expression that finds, for a row, the governor before it.

        Args:
            what: of the governor is wanted, `EVENT_TIME` or `GOVERNOR`; one without an event time binds nothing.
        """
        ignore = " IGNORE NULLS" if self.newest == LAST else ""
        over = f"{_partition(self.scope)}ORDER BY `arrival`, `place` ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
        binds = f"`kind` = '{self.governor}' AND {EVENT_TIME} IS NOT NULL"
        return f"{self.newest}(CASE WHEN {binds} THEN {what} END){ignore} OVER ({over})"

    def is_broken(self, bound: str = BOUND) -> str:
        """Spell what is true of a row that breaks the law, and false of all others; `bound` names the column."""
        return f"COALESCE({self.broken.replace(BOUND, bound)}, FALSE)"


def marks(laws: Sequence[Law], rows: str) -> str:
    """Spell the query that says of each judged row which laws it keeps: a boolean column a law, by its name.

    Args:
        laws: of one table.
        rows: a view with the columns of a stream and `__judged`. Rows that neither bind nor are bound are left out.
    """
    bounds = [f"{law.newest_of(EVENT_TIME)} AS `{BOUND}_{law.name}`" for law in laws]
    kept = [f"NOT {law.is_broken(f'{BOUND}_{law.name}')} AS `{law.name}`" for law in laws]
    kinds = ", ".join(f"'{kind}'" for kind in kinds_of(laws))
    bound = f"SELECT *, {', '.join(bounds)} FROM {rows} WHERE `kind` IN ({kinds})"  # noqa: S608 - names are quoted
    return f"SELECT {', '.join(kept)} FROM ({bound}) WHERE `{JUDGED}`"  # noqa: S608 - as above


def kinds_of(laws: Sequence[Law]) -> tuple[str, ...]:
    """Name the kinds of rows that bind or are bound."""
    return tuple(dict.fromkeys(kind for law in laws for kind in (*law.governed, law.governor)))


def columns_of(laws: Sequence[Law]) -> tuple[str, ...]:
    """Name the columns that laws ask for."""
    return tuple(dict.fromkeys((*ORDER, *(name for law in laws for name in law.scope))))


def quoted(name: str) -> str:
    """Spell a column's name in SQL.

    >>> quoted("origin"), quoted("a`b")
    ('`origin`', '`a``b`')
    """
    doubled = name.replace("`", "``")
    return f"`{doubled}`"


def _partition(columns: Sequence[str]) -> str:
    return f"PARTITION BY {', '.join(quoted(name) for name in columns)} " if columns else ""


def timers_increase(table: str, scope: tuple[str, ...], *, merged: bool = False) -> Law:
    """Give the law of timers.

    Rules of docs/semantics.md: H5

    Args:
        table: the stream.
        scope: columns that tell the timers of one heartbeat and key from others.
        merged: whether the stream lies behind a merge.
    """
    each = "for each " + ("port: " if merged else "") + ", ".join(scope) if scope else "in the whole stream"
    return Law(
        name="timers_increase",
        table=table,
        sentence=f"Timer timestamps of {table} strictly increase in stream order, {each}.",
        remedy="A timer that has left is never sent again, so a task or a carry has gone wrong: run the interval again "
        "with the other engine (--engine core, --engine batch) and compare with `pulseline parity`.",
        scope=scope,
        governor="timer",
        governed=("timer",),
        newest=LAST,
        broken=f"`kind` = 'timer' AND (`event_time` IS NULL OR `event_time` <= `{BOUND}`)",
    )


def no_event_behind_cti(table: str, scope: tuple[str, ...]) -> Law:
    """Give the law of promises: no event behind one; `scope` as the flow's `by`.

    Rules of docs/semantics.md: A8
    """
    starts = f"`kind` IN ('data', 'start') AND `event_time` < `{BOUND}`"
    return Law(
        name="no_event_behind_cti",
        table=table,
        sentence=f"No event of {table} starts (an end edge: ends) before a CTI sent before it, {_timeline(scope)}.",
        remedy="Whoever trusted the promise has results without these rows: do not publish; run the interval again, "
        "and where it stays so compare the engines with `pulseline parity`.",
        scope=scope,
        governor="cti",
        governed=("data", "start", "end"),
        broken=f"({starts}) OR (`kind` = 'end' AND `event_end` < `{BOUND}`)",
    )


def ctis_increase(table: str, scope: tuple[str, ...]) -> Law:
    """Give the law of promises: each goes beyond all before it; `scope` as the flow's `by`.

    Rules of docs/semantics.md: A4
    """
    return Law(
        name="ctis_increase",
        table=table,
        sentence=f"CTIs of {table} strictly increase in stream order, {_timeline(scope)}.",
        remedy="A promise that does not move time forward is never sent, so the newest CTI was lost on the way: run "
        "the interval again, and where it stays so compare the engines with `pulseline parity`.",
        scope=scope,
        governor="cti",
        governed=("cti",),
        broken=f"`kind` = 'cti' AND (`event_time` IS NULL OR `event_time` <= `{BOUND}`)",
    )


def account_holds(stream: str) -> Law:
    """Give the law of the account.

    Rules of docs/semantics.md: S17
    """
    return Law(
        name=ACCOUNT_HOLDS,
        table=stream,
        sentence=f"Every row that came into {stream} left in it, was set aside, is in the ledger as dropped, "
        "or is held.",
        remedy="Rows were lost or made twice: do not publish; run the interval again, and where it stays so look at "
        f"the files of its commit in streams/{stream} and at the ledger.",
        governed=("data", "start", "end", "timer", "cti"),
        broken="`missing` <> 0",
    )


def few_held(stream: str) -> Law:
    """Give the law of a merge that lets rows go: what it holds does not grow by a large share of what comes in."""
    return Law(
        name=FEW_HELD,
        table=stream,
        sentence=f"Of the rows that came into {stream} at most {HELD_PERCENT} % stayed held in it, or fewer than "
        f"{HELD_LEAST} did.",
        remedy="Rows wait for a port that is silent, or in one that a row far ahead leads: `pulseline status` says "
        "which, since when, and what lets them go.",
        severity=WARNING,
        governed=("data", "start", "end", "timer", "cti"),
        broken=f"`held` >= {HELD_LEAST} AND `held` * 100 > `rows_in` * {HELD_PERCENT}",
    )


def account_laws(flow: Flow, stream: str) -> tuple[Law, ...]:
    """Name what must hold of the account of an operator that passes rows on."""
    merges = flow.streams[stream].operator == "merge"
    return (account_holds(stream), *([few_held(stream)] if merges else []))


def _timeline(scope: Sequence[str]) -> str:
    return f"for each {', '.join(scope)}" if scope else "in the whole stream"


def laws_of(flow: Flow, table: str) -> tuple[Law, ...]:
    """Name what must hold of the rows of a stream or side stream; the account is apart."""
    laws: list[Law] = []
    timers, promises = timer_scope(flow, table), promise_scope(flow, table)
    if timers is not None:
        laws.append(timers_increase(table, timers, merged=_merged(flow, table)))
    if promises is not None:
        laws += [no_event_behind_cti(table, promises), ctis_increase(table, promises)]
    return tuple(laws)


def _merged(flow: Flow, name: str) -> bool:
    stream = flow.streams.get(name)
    return stream is not None and (stream.operator == "merge" or any(_merged(flow, read) for read in stream.inputs))
