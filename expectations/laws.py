"""What must hold of a stream's rows, as sentences, parameters and SQL; no engine, no Great Expectations.

A law marks each row with the row that governs it: the newest timer or promise before it, in stream order. It partitions
and orders by columns, so it gives the same answer however Spark has distributed the rows.
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
GOVERNED = "__governed"
ACCOUNT_HOLDS, FEW_HELD = "account_holds", "few_held"
OF_ACCOUNTS = frozenset({ACCOUNT_HOLDS, FEW_HELD})
"""Laws of the account of an operator; all others are of the rows of a table."""
HELD_PERCENT = 20
"""How many of a hundred rows that came into a merge may stay held in it, on balance, before that is worth a warning."""
HELD_LEAST = 100
"""Fewer held rows than these are no sign of anything: an interval of few rows ends while some wait."""
GOVERNING = "STRUCT(`event_time`, `arrival`, `place`, `commit`)"


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
    newest: str = "MAX"
    """Which of the governors before a row binds it: `MAX`, the largest, or `LAST`, the one before."""
    broken: str = ""
    """SQL: what is true of a row that breaks the law, given `__governed`."""

    def marked(self, rows: str, *, slim: bool = True) -> str:
        """Spell the query that gives each row what governs it.

        Args:
            rows: a view with the columns of a stream and `__judged`, or what stands for it.
            slim: leave out rows that neither bind nor are bound.
        """
        ignore = ", TRUE" if self.newest == "LAST" else ""
        over = f"{_partition(self.scope)}ORDER BY `arrival`, `place` ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
        newest = f"{self.newest}(CASE WHEN `kind` = '{self.governor}' THEN {GOVERNING} END{ignore})"
        kinds = ", ".join(f"'{kind}'" for kind in dict.fromkeys((*self.governed, self.governor)))
        where = f" WHERE `kind` IN ({kinds})" if slim else ""
        return f"SELECT *, {newest} OVER ({over}) AS {GOVERNED} FROM {rows}{where}"  # noqa: S608 - names are quoted

    def query(self, rows: str = "{batch}") -> str:
        """Spell the query that gives the rows which break the law; braces in names are doubled, as GX wants them."""
        marked = self.marked("\0").replace("{", "{{").replace("}", "}}").replace("\0", rows)
        return f"SELECT * FROM ({marked}) WHERE {self.bad}"  # noqa: S608 - names are quoted

    @property
    def bad(self) -> str:
        """Spell what is true of a judged row that breaks the law."""
        return f"`{JUDGED}` AND ({self.broken})"


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
        newest="LAST",
        broken=f"`kind` = 'timer' AND (`event_time` IS NULL OR `event_time` <= {GOVERNED}.`event_time`)",
    )


def no_event_behind_cti(table: str, scope: tuple[str, ...]) -> Law:
    """Give the law of promises: no event behind one; `scope` as the flow's `by`.

    Rules of docs/semantics.md: A8
    """
    bound = f"{GOVERNED}.`event_time`"
    starts = f"`kind` IN ('data', 'start') AND `event_time` < {bound}"
    return Law(
        name="no_event_behind_cti",
        table=table,
        sentence=f"No event of {table} starts (an end edge: ends) before a CTI sent before it, {_timeline(scope)}.",
        remedy="Whoever trusted the promise has results without these rows: do not publish; run the interval again, "
        "and where it stays so compare the engines with `pulseline parity`.",
        scope=scope,
        governor="cti",
        governed=("data", "start", "end"),
        broken=f"({starts}) OR (`kind` = 'end' AND `event_end` < {bound})",
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
        broken=f"`kind` = 'cti' AND (`event_time` IS NULL OR `event_time` <= {GOVERNED}.`event_time`)",
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
