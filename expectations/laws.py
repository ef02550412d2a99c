"""What must hold of a stream's rows, as sentences, parameters and SQL; no engine, no Great Expectations.

A law marks each row with the time of what governs it: the newest timer or promise before it, in stream order. It
partitions and orders by columns, so it gives the same answer however the rows are distributed. The SQL is Spark's;
`expectations.plain` has it translated for DuckDB.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from expectations.scopes import awaits_promises, has_lifetimes, promise_scope, timer_interval, timer_scope
from pipelines.flows.durations import spell
from pipelines.operators.rows import MIN_TIME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.flows.check import Check
    from pipelines.flows.model import Flow

BLOCKING, WARNING = "blocking", "warning"
EVENTS = ("data", "start", "end")
"""Kinds of rows that carry what a source sent; timers and CTIs are made."""
JUDGED = "__pulseline_judged"
"""True on rows that are judged, false on timers and promises taken along from before them."""
BOUND = "__pulseline_bound"
"""Event time of the governor; null where there is none yet."""
GOVERNED = "__pulseline_governed"
"""The governor itself, of a row that is shown."""
ACCOUNT_HOLDS, FEW_HELD = "account_holds", "few_held"
AS_PUBLISHED, TOLD_AT_LANDING, AS_RECOMPUTED = "as_published", "told_at_landing", "as_recomputed"
INTERVALS_TOUCH, ROWS_LAND = "intervals_touch", "rows_land"
USUAL_VOLUME, USUAL_LEDGER, USUAL_NULLS = "usual_volume", "usual_ledger", "usual_nulls"
USUAL_LATE, USUAL_LEFT_OUT = "usual_late", "usual_left_out"
USUAL_HELD, USUAL_LATENESS = "usual_held", "usual_lateness"
KEYS_SPEAK, PORTS_SPEAK = "keys_speak", "ports_speak"
OF_INTERVALS = frozenset(
    {
        *(INTERVALS_TOUCH, ROWS_LAND, KEYS_SPEAK, PORTS_SPEAK),
        *(USUAL_VOLUME, USUAL_NULLS, USUAL_LEDGER, USUAL_LATE, USUAL_LEFT_OUT, USUAL_HELD, USUAL_LATENESS),
    }
)
"""Laws that count intervals or keys, not rows."""
OF_FILES = frozenset({AS_PUBLISHED, AS_RECOMPUTED})
"""Laws whose cases are files and intervals, each with rows."""
OF_ACCOUNTS = frozenset({ACCOUNT_HOLDS, FEW_HELD})
"""Laws of the account of an operator; all others are of the rows of a table."""
HELD_PERCENT = 20
"""How many of a hundred rows that came into a merge may stay held in it, on balance, before that is worth a warning."""
HELD_LEAST = 100
"""Fewer held rows than these are no sign of anything: an interval of few rows ends while some wait."""
GOVERNOR = ("kind", "event_time", "arrival", "place", "commit")
"""What is told of a governor, beside what is held against it."""
ORDER = ("kind", "arrival", "place", "event_time", "event_end", "commit")
"""Columns that a law may ask for, beside its scope."""
MAX, LAST = "MAX", "LAST_VALUE"
BEGUN_ANEW = (
    " Where `pulseline apply` began the stream anew in between, that is why: in a backfill `pulseline run FLOW --plan` "
    "makes what stands before it anew as well, in a live run `pulseline reset FLOW --to 0` and then `pulseline stream "
    "FLOW`."
)
"""Why a stream may break what it said itself, though nothing went wrong."""


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
    governors: tuple[str, ...] = ()
    """Kinds of the rows that bind: `timer`, `cti`, or events."""
    measured: str = "event_time"
    """The column that is held against the governor's."""
    governed: tuple[str, ...] = ()
    """Kinds of the rows that are bound."""
    newest: str = MAX
    """Which of the governors before a row binds it: `MAX`, the largest, or `LAST_VALUE`, the one before."""
    same_arrival: bool = False
    """Whether those that came at the instant of a row bind it too, also behind it."""
    broken: str = ""
    """SQL: what is true of a row that breaks the law, given `__pulseline_bound`."""

    @property
    def of_rows(self) -> bool:
        """Say whether it is asked of each row of a table; others are of sums that somebody else did."""
        return bool(self.governed) and self.name not in OF_ACCOUNTS

    def newest_of(self, what: str) -> str:
        """Spell the expression that finds, for a row, the governor before it.

        Args:
            what: of the governor is wanted, `value` or `governor`; one without a value binds nothing.
        """
        if not self.governors:
            # A row that is held against nothing but itself; the type is that of what would bind.
            return f"CASE WHEN FALSE THEN {what} END"
        ignore = " IGNORE NULLS" if self.newest == LAST else ""
        upto = "`arrival` RANGE" if self.same_arrival else "`arrival`, `place` ROWS"
        last = "CURRENT ROW" if self.same_arrival else "1 PRECEDING"
        over = f"{_partition(self.scope)}ORDER BY {upto} BETWEEN UNBOUNDED PRECEDING AND {last}"
        binds = f"`kind` IN ({spelled(self.governors)}) AND {self.value} IS NOT NULL"
        return f"{self.newest}(CASE WHEN {binds} THEN {what} END){ignore} OVER ({over})"

    @property
    def value(self) -> str:
        """Spell the column that is held against the governor's."""
        return quoted(self.measured)

    @property
    def governor(self) -> str:
        """Spell what is told of a governor."""
        columns = dict.fromkeys((*GOVERNOR, self.measured))
        return f"STRUCT({', '.join(quoted(name) for name in columns)})"

    def is_broken(self, bound: str = f"`{BOUND}`") -> str:
        """Spell what is true of a row that breaks the law, and false of all others; `bound` spells the column."""
        return f"COALESCE({self.broken.replace(quoted(BOUND), bound)}, FALSE)"


def marks(laws: Sequence[Law], rows: str) -> str:
    """Spell the query that says of each judged row which laws it keeps: a boolean column a law, by its name.

    Args:
        laws: of one table.
        rows: a view with the columns of a stream and `JUDGED`. Rows that neither bind nor are bound are left out.
    """
    bounds = [f"{law.newest_of(law.value)} AS {quoted(f'{BOUND}_{law.name}')}" for law in laws]
    kept = [f"NOT {law.is_broken(quoted(f'{BOUND}_{law.name}'))} AS {quoted(law.name)}" for law in laws]
    kinds = spelled(kinds_of(laws))
    bound = f"SELECT *, {', '.join(bounds)} FROM {rows} WHERE `kind` IN ({kinds})"  # noqa: S608 - names are quoted
    return f"SELECT {', '.join(kept)} FROM ({bound}) WHERE `{JUDGED}`"  # noqa: S608 - as above


def kinds_of(laws: Sequence[Law]) -> tuple[str, ...]:
    """Name the kinds of rows that bind or are bound."""
    return tuple(dict.fromkeys(kind for law in laws for kind in (*law.governed, *law.governors)))


def columns_of(laws: Sequence[Law]) -> tuple[str, ...]:
    """Name the columns that laws ask for."""
    return tuple(dict.fromkeys((*ORDER, *(name for law in laws for name in (*law.scope, law.measured)))))


def spelled(kinds: Sequence[str]) -> str:
    """Spell kinds of rows as SQL has a list.

    >>> spelled(("data", "end"))
    "'data', 'end'"
    """
    return ", ".join(f"'{kind}'" for kind in kinds)


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
        f"with the other engine (--engine core, --engine batch) and compare with `pulseline parity`.{BEGUN_ANEW}",
        scope=scope,
        governors=("timer",),
        governed=("timer",),
        newest=LAST,
        broken=f"`kind` = 'timer' AND (`event_time` IS NULL OR `event_time` <= `{BOUND}`)",
    )


def timers_on_multiples(table: str, interval: int) -> Law:
    """Give the law of what timers say; the interval in ticks.

    Rules of docs/semantics.md: H5
    """
    return Law(
        name="timers_on_multiples",
        table=table,
        sentence=f"Timer timestamps of {table} are multiples of its interval, {spell(interval)}.",
        remedy="Nothing was due at such an instant: the flow that made it had another interval, or the row was "
        "changed. Run the interval again, and where it stays so compare the engines with `pulseline parity`.",
        governed=("timer",),
        broken=f"`kind` = 'timer' AND UNIX_MICROS(`event_time`) % {interval} <> 0",
    )


def lifetimes_last(table: str) -> Law:
    """Give the law of lifetimes: an event that came whole lasts; a point has no end.

    Rules of docs/semantics.md: A20
    """
    return Law(
        name="lifetimes_last",
        table=table,
        sentence=f"No event of {table} has an empty lifetime: each ends after it starts.",
        remedy="Such an event lies in no window and pairs with nothing, so it should be in the ledger as `empty`: run "
        "the interval again, and where it stays so compare the engines with `pulseline parity`.",
        governed=("data",),
        broken="`kind` = 'data' AND `event_end` <= `event_time`",
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
        f"and where it stays so compare the engines with `pulseline parity`.{BEGUN_ANEW}",
        scope=scope,
        governors=("cti",),
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
        f"the interval again, and where it stays so compare the engines with `pulseline parity`.{BEGUN_ANEW}",
        scope=scope,
        governors=("cti",),
        governed=("cti",),
        broken=f"`kind` = 'cti' AND (`event_time` IS NULL OR `event_time` <= `{BOUND}`)",
    )


def rows_leave_promised(table: str, scope: tuple[str, ...]) -> Law:
    """Give the law of results: none leaves before what it comes of was promised; `scope` as the flow's `by`.

    A stream's own CTI is the older of its inputs', a window's at most its input's, and it is sent at the instant in
    which what it lets go leaves. A window from before the year 1 starts with it, and so does the CTI behind it.

    Rules of docs/semantics.md: U2, J1, W3
    """
    unpromised = f"`{BOUND}` IS NULL OR `event_time` >= `{BOUND}`"
    return Law(
        name="rows_leave_promised",
        table=table,
        sentence=f"Every event of {table} starts before a CTI that it had sent by the instant in which the event left, "
        f"{_timeline(scope)}.",
        remedy="It left before all that it comes of was promised, so it may lack some: do not publish; run the "
        "interval again, and where it stays so compare the engines with `pulseline parity`.",
        scope=scope,
        governors=("cti",),
        governed=("data",),
        same_arrival=True,
        broken=f"`kind` = 'data' AND UNIX_MICROS(`event_time`) > {MIN_TIME} AND ({unpromised})",
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


def dealt_out(stream: str, given: str) -> Law:
    """Give the law of the account of what is dealt to instances.

    Rules of docs/semantics.md: S17, X13

    Args:
        stream: what the first instance got.
        given: what is dealt out.
    """
    reference = stream.rsplit(".", 2)[0]
    return replace(
        account_holds(stream),
        sentence=f"Every row of {given} went to one instance of {reference}, or to all where each gets it.",
        remedy="Rows were lost or dealt twice: do not publish; run the interval again, and where it stays so look at "
        f"what each instance got, streams/{reference}.….{stream.rsplit('.', 1)[1]}.",
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


def as_published(table: str, what: str = "") -> Law:
    """Give the law of what lies on disk: it is what its commits wrote.

    Args:
        table: a stream, the ledger, a source, or the carry.
        what: `landed`, or `carry`; nothing of rows that readers see.
    """
    rows = f"The rows of {table} that landed" if what == "landed" else f"Rows of {table}"
    said = "their manifests say" if what == "landed" else "their commits say"
    sentence = f"{rows} are what {said}: nothing has been changed since."
    remedy = "then have it made again (pulseline doctor --deep --repair), or run the interval again (pulseline run)."
    if what == "carry":
        sentence = (
            "The carry's files can be read, have the rows and bytes that their commits say, and the sum of bytes that "
            "their names tell."
        )
    if what:
        goes_on = "a run goes on from it as it is" if what == "landed" else "what is run next begins from it"
        remedy = f"then have it made again (pulseline doctor --deep --repair): {goes_on}."
    return Law(
        name=AS_PUBLISHED,
        table=table,
        sentence=sentence,
        remedy=f"Somebody or a disk changed a file after it was written: find out who, {remedy}",
        broken="FALSE",
    )


def as_recomputed(asked: str) -> Law:
    """Give the law of intervals that are computed again.

    Args:
        asked: of which commits it was asked, and of which it cannot be.
    """
    return Law(
        name=AS_RECOMPUTED,
        table="intervals",
        sentence="An interval that is computed again, from what landed and the carry before it, gives the rows, the "
        f"ledger and the carry that its commit said ({asked}).",
        remedy="An operator, a library, what landed or the carry is not what it was when the commit was made: find out "
        "which (`pulseline doctor` looks at files), then run the interval again, which writes it anew.",
        broken="FALSE",
    )


def told_at_landing(source: str) -> Law:
    """Give the law of rows that did not land: each has its line in the ledger.

    Rules of docs/semantics.md: S17
    """
    return Law(
        name=TOLD_AT_LANDING,
        table=source,
        sentence=f"Every row of {source} that its landing dropped or noted has its line in the ledger.",
        remedy="A line of the ledger is missing, so somebody would not know that a row never came in: run the interval "
        "again, and where it stays so compare the engines with `pulseline parity`.",
        broken="FALSE",
    )


def intervals_touch() -> Law:
    """Give the law of a calendar without holes."""
    return Law(
        name=INTERVALS_TOUCH,
        table="intervals",
        sentence="Each interval begins where the one before it ended: none between them was never run.",
        remedy="Run the missing ones: `pulseline run` with their start and end.",
        severity=WARNING,
        broken="FALSE",
    )


def rows_land(source: str, *, told_before: bool) -> Law:
    """Give the law of intervals that are not empty.

    Args:
        source: its name.
        told_before: what arrived before the run landed with its first interval, and may be all that ever comes.
    """
    where = "the first interval, and in each from the next one on that has some" if told_before else "each interval"
    return Law(
        name=ROWS_LAND,
        table=source,
        sentence=f"Rows of {source} landed in {where}.",
        remedy="Look whether the files of that time are there and not empty; once they are, run the interval again.",
        severity=WARNING,
        broken="FALSE",
    )


def usual_volume(source: str, asked: int, every: int, least: int, given: str = "") -> Law:
    """Give the law of intervals that have as many rows as is usual.

    Args:
        source: its name.
        asked: intervals that have a history.
        every: intervals in all.
        least: how many of the same weekday before one make a history.
        given: how many rows an interval has where the flow says it, in words; what is usual says it otherwise.
    """
    if given:
        return Law(
            name=USUAL_VOLUME,
            table=source,
            sentence=f"Each interval has {given} rows of {source}, as the flow says under `volume`.",
            remedy="Ask whoever sends the rows; where so many are right, correct `volume` in the flow.",
            severity=WARNING,
            broken="FALSE",
        )
    return Law(
        name=USUAL_VOLUME,
        table=source,
        sentence=f"Each interval has at least half the fewest and at most twice the most rows of {source} "
        f"that the same weekday had before ({_history(asked, every, f'{least} such days')}).",
        remedy="Ask whoever sends the rows; a holiday is no mistake.",
        severity=WARNING,
        broken="FALSE",
    )


def _history(asked: int, every: int, least: str, *, unread: int = 0) -> str:
    """Say of how many intervals something is asked that needs those before them; what is the least of these."""
    if unread:
        return _not_read(unread)
    if asked:
        return f"{asked:,} of {every:,} intervals have {least} before them"
    return f"no interval has {least} before it yet, so none was asked"


def _not_read(pieces: int) -> str:
    return f"not asked: what would be read for it landed in {pieces:,} pieces"


def usual_ledger(asked: int, every: int, least: int, looked: int) -> Law:
    """Give the law of lines of the ledger that are no more than is usual, of rows that were neither late nor left out.

    Args:
        asked: intervals that have a history.
        every: intervals in all.
        least: how many before one make a history.
        looked: how many are looked at.
    """
    return Law(
        name=USUAL_LEDGER,
        table="ledger",
        sentence="No stream has, for the rows that landed, more than twice the lines of one reason in the ledger that "
        f"it had in any of the {looked} intervals before ({_history(asked, every, f'{least} intervals')}); late rows "
        "and those that were left out are asked of by themselves.",
        remedy="More rows than ever have something noted or changed: `pulseline ledger` shows which; ask whoever sends "
        "them.",
        severity=WARNING,
        broken="FALSE",
    )


def usual_late(asked: int, every: int, least: int, looked: int) -> Law:
    """Give the law of late rows that are no more than is usual; arguments as those of `usual_ledger`."""
    return Law(
        name=USUAL_LATE,
        table="ledger",
        sentence="In no stream were, of the rows that landed, more than twice as many late as in any of the "
        f"{looked} intervals before ({_history(asked, every, f'{least} intervals')}).",
        remedy="More rows than ever start or end before a promise: `pulseline advise` says which delay they would have "
        "needed; ask whoever sends them what holds them up.",
        severity=WARNING,
        broken="FALSE",
    )


def usual_left_out(asked: int, every: int, least: int, looked: int) -> Law:
    """Give the law of rows that were dropped, diverted or quarantined; arguments as those of `usual_ledger`."""
    return Law(
        name=USUAL_LEFT_OUT,
        table="ledger",
        sentence="Of the rows that landed no stream dropped or set aside, for one reason other than lateness, more "
        f"than twice as many as in any of the {looked} intervals before "
        f"({_history(asked, every, f'{least} intervals')}).",
        remedy="More rows than ever are missing from what is published: `pulseline ledger` shows which, and why; ask "
        "whoever sends them.",
        severity=WARNING,
        broken="FALSE",
    )


def usual_held(merge: str, asked: int, every: int, least: int, looked: int) -> Law:
    """Give the law of a merge that ends an interval with as few waiting rows as is usual.

    Args:
        merge: its name.
        asked: as those of `usual_ledger`.
        every: as above.
        least: as above.
        looked: as above.
    """
    return Law(
        name=USUAL_HELD,
        table=merge,
        sentence=f"At the end of no interval did {merge} hold, for the rows that landed, more than twice as many rows "
        f"as at the end of any of the {looked} intervals before ({_history(asked, every, f'{least} intervals')}); "
        f"fewer than {HELD_LEAST} say nothing.",
        remedy="Rows wait for a port that is silent, or in one that a row far ahead leads: `pulseline status` says "
        "which, since when, and what lets them go.",
        severity=WARNING,
        broken="FALSE",
    )


def usual_lateness(asked: int, every: int, least: int, looked: int) -> Law:
    """Give the law of heartbeats that are published as soon after they are due as is usual.

    Args:
        asked: as those of `usual_ledger`.
        every: how many intervals streams made.
        least: as above.
        looked: as above.
    """
    return Law(
        name=USUAL_LATENESS,
        table="intervals",
        sentence="99 of 100 heartbeats of an interval were published within a second of when they were due, or within "
        f"twice the longest that this took in any of the {looked} intervals before "
        f"({_history(asked, every, f'{least} intervals')}).",
        remedy="The stream takes longer than ever: `pulseline status` says how late it is and what it waits for; give "
        "it more cores, or find out what else the machine does.",
        severity=WARNING,
        broken="FALSE",
    )


def usual_nulls(source: str, asked: int, every: int, least: int, looked: int, *, unread: int = 0) -> Law:  # noqa: PLR0913
    """Give the law of columns that are filled as often as is usual; arguments as those of `usual_ledger`.

    Where it landed in too many pieces, `unread` says in how many: nothing is asked then.
    """
    return Law(
        name=USUAL_NULLS,
        table=source,
        sentence=f"No column of {source} is null more than twice as often, or filled less than half as often, as in "
        f"any of the {looked} intervals before ({_history(asked, every, f'{least} intervals', unread=unread)}).",
        remedy="Ask whoever sends the rows whether the column was renamed, or is no longer sent.",
        severity=WARNING,
        broken="FALSE",
    )


def ports_speak(merge: str, column: str, looked: int) -> Law:
    """Give the law of ports that are there.

    Args:
        merge: the stream that declares them.
        column: whose values they are.
        looked: how many intervals before the judged ones are looked at.
    """
    return Law(
        name=PORTS_SPEAK,
        table=merge,
        sentence=f"Rows of every {column} that is a port of {merge} landed, in the judged intervals or the {looked} "
        "before.",
        remedy="A port that never spoke holds all others back: correct `ports_by`, or ask whoever should send.",
        severity=WARNING,
        broken="FALSE",
    )


def keys_speak(source: str, least: int, looked: int, remembered: int, *, unread: int = 0) -> Law:
    """Give the law of keys that go on.

    Args:
        source: its name.
        least: how many intervals before one make a history.
        looked: how many are looked at.
        remembered: in how many intervals a key that fell silent is told, the first one among them.
        unread: in how many pieces the rows landed, where they are too many to be read.
    """
    unasked = f" ({_not_read(unread)})" if unread else ""
    return Law(
        name=KEYS_SPEAK,
        table=source,
        sentence=f"No key of {source} is silent that had rows in each of the {least} to {looked} intervals before it "
        f"fell silent; one that is silent for more than {remembered} counts as gone{unasked}.",
        remedy="A sensor, a shop or a gate fell silent: ask whoever runs it.",
        severity=WARNING,
        broken="FALSE",
    )


def account_laws(flow: Flow, stream: str) -> tuple[Law, ...]:
    """Name what must hold of the account of an operator that passes rows on."""
    made = flow.streams[stream]
    if made.operator == "dispatch":
        return (dealt_out(stream, made.inputs[0]),)
    merges = made.operator == "merge"
    return (account_holds(stream), *([few_held(stream)] if merges else []))


def values_in_order(flow: Flow, table: str, check: Check) -> Law:
    """Give the law of values that only increase, or only decrease, in stream order, each key for itself."""
    (column,), key = check.columns, flow.key_of(table)
    strictly, up = bool(check.arguments.get("strictly")), check.name.endswith("increasing")
    wrong = ("<=" if strictly else "<") if up else (">=" if strictly else ">")
    return Law(
        name=check.label,
        table=table,
        sentence=f"Values of {column} in {table} {'strictly ' if strictly else ''}{'increase' if up else 'decrease'} "
        f"in stream order, {_timeline(key)}.",
        remedy=remedy_of(check),
        severity=check.severity,
        scope=key,
        governors=EVENTS,
        governed=EVENTS,
        newest=LAST,
        measured=column,
        broken=f"`kind` IN ({spelled(EVENTS)}) AND {quoted(column)} {wrong} `{BOUND}`",
    )


def remedy_of(check: Check) -> str:
    """Say what to do where a check of a flow's own does not hold, and whom to ask."""
    todo = check.remedy or "Look at the rows, and at what has changed in where they come from"
    return f"{todo.rstrip('.')}. Owner: {check.owner}." if check.owner else f"{todo.rstrip('.')}."


def _timeline(scope: Sequence[str]) -> str:
    return f"for each {', '.join(scope)}" if scope else "in the whole stream"


def laws_of(flow: Flow, table: str) -> tuple[Law, ...]:
    """Name what must hold of the rows of a stream or side stream; the account is apart."""
    laws: list[Law] = []
    timers, promises = timer_scope(flow, table), promise_scope(flow, table)
    if timers is not None:
        laws.append(timers_increase(table, timers, merged=_merged(flow, table)))
    if (interval := timer_interval(flow, table)) is not None:
        laws.append(timers_on_multiples(table, interval))
    if has_lifetimes(flow, table):
        laws.append(lifetimes_last(table))
    if promises is not None:
        laws += [no_event_behind_cti(table, promises), ctis_increase(table, promises)]
        laws += [rows_leave_promised(table, promises)] if awaits_promises(flow, table) else []
    laws += [values_in_order(flow, table, check) for check in flow.expect.get(table, ()) if check.in_order]
    return tuple(laws)


def _merged(flow: Flow, name: str) -> bool:
    return any(getattr(made, "operator", None) == "merge" for made in flow.behind(name))
