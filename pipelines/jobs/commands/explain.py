"""`pulseline explain --trace`: the way of one landed row through the published tables, each step with its rule."""

from __future__ import annotations

import datetime as dt
import json
import re
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import ticks
from pipelines.engine.commits.entry import State
from pipelines.engine.commits.plan import definition_of, planned
from pipelines.flows.grid import instant_of
from pipelines.flows.model import main_of
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.facts.crossings import crossing
from pipelines.jobs.facts.live import Tail
from pipelines.jobs.facts.owners import LandedThere, read_by
from pipelines.jobs.facts.pages import ledger_pages
from pipelines.jobs.runs.known import KnownRun, offered, open_run
from pipelines.jobs.text.tables import plain
from pipelines.jobs.words.ledger import Accounts
from pipelines.jobs.words.live import milliseconds
from pipelines.operators.plain_words import counted
from pipelines.operators.specs import SPECS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from pipelines.jobs.facts.crossings import CrossedQueue
    from pipelines.jobs.facts.owners import Owners

    Tell = Callable[[str], object]

NAMED = re.compile(r"(?P<source>[^@]+)@(?P<instant>.+?)(?:/(?P<place>[0-9]+))?")
HIDDEN = frozenset({"kind", "arrival", "place", "commit", "landed_at", "landed_place", "due_at"})
SHOWN = {str, bool, int, float, Decimal, dt.date}
"""What a row is known by: no instants, for when it landed stands before them."""
PAYLOAD_SHOWN = 4


@dataclass(frozen=True, kw_only=True)
class LandedRow:
    """One row, by where it landed."""

    source: str
    landed_at: int
    """In ticks."""
    landed_place: int


@dataclass(frozen=True, kw_only=True)
class Step:
    """What became of the row in one stream."""

    stream: str
    arrival: int | None
    """In ticks, of the first row that came of it there; none where no row did."""
    place: int | None
    commit: int | None
    rows: int
    what: str
    """In words."""
    rule: str
    """Which rule of the page of meanings put it there."""
    waits: bool = False
    """Whether it waits in a queue for a leg that has not taken it yet."""


def explain_row(flow: str, trace: str, run: str, tell: Tell, *, as_json: bool) -> None:
    """Tell the way of one row: where it landed, and step by step the streams that it came to, or where it ended.

    Args:
        flow: name of the flow or path of its file.
        trace: the row, as `source@instant/place`.
        run: name of the run.
        tell: prints a text.
        as_json: one JSON object a step instead of words.

    Raises:
        WrongUse: no such flow, run, source or row, the row is not named as it should be, or nothing is published.
    """
    known = open_run(flow, run)
    row = _named(known, trace)
    if not known.stands:
        raise WrongUse(known.nothing_yet())
    known.require_own_rows()
    known = _as_made(known, row)
    there = LandedThere(known, row.landed_at, row.landed_place)
    lines = _lines(known, row, there)
    steps = list(_steps(known, row, there, lines))
    # Where no stream has it yet, what waits in a queue for a leg is only of a row that landed.
    waits = any(step.waits for step in steps) and bool(there.landed(row.source))
    if not lines and not waits and not any(step.rows for step in steps):
        raise WrongUse(_unknown(known, row, trace))
    if as_json:
        for step in steps:
            tell(json.dumps(asdict(step), ensure_ascii=False))
        return
    landed = f"{row.source}  landed {known.moments.text(row.landed_at)}, place {row.landed_place}"
    tell(f"{landed}{_payload(known, row, there)}")
    wide = max((len(step.stream) for step in steps), default=0)
    tell(f" {'0':>2}  {'landed':<{wide}}  the landing chose its place; no later step chooses again  (rule X6)")
    for number, step in enumerate(steps, 1):
        tell(f" {number:>2}  {step.stream:<{wide}}  {step.what}  (rule {step.rule})")


def _named(known: KnownRun, trace: str) -> LandedRow:
    found = NAMED.fullmatch(trace.strip())
    if found is None:
        first = next(iter(known.sources))
        raise WrongUse(f"--trace must be SOURCE@INSTANT/PLACE, as {first}@2013-01-02T02:40:00/1; it is `{trace}`")
    source = found["source"]
    if source not in known.sources:
        raise WrongUse(f"no source `{source}` in {known.name}{offered(source, list(known.sources))}")
    landed = instant_of(known.grid, found["instant"], "the instant of --trace")
    _see_which(known, found["instant"], landed)
    return LandedRow(source=source, landed_at=landed, landed_place=int(found["place"] or 1))


def _as_made(known: KnownRun, row: LandedRow) -> KnownRun:
    """Give the run with the flow by which a row was worked on, which an `apply` behind it has not changed."""
    commit = next((each.commit for each in known.state.published if each.span.holds(row.landed_at)), None)
    made = None if commit is None else planned(known.state, commit)
    return known if made is None else replace(known, definition=definition_of(made))


def _see_which(known: KnownRun, said: str, landed: int) -> None:
    """See that an instant is one: when clocks are set back they read an hour twice."""
    local = known.moments.at(landed).replace(fold=1)
    later = instant_of(known.grid, local.replace(tzinfo=None), "the instant of --trace")
    if later != landed and dt.datetime.fromisoformat(said.strip()).tzinfo is None:
        both = " or ".join(known.moments.at(each).isoformat() for each in (landed, later))
        raise WrongUse(f"--trace must say which instant is meant, for the clock read {said} twice that day: {both}")


def _lines(known: KnownRun, row: LandedRow, there: LandedThere) -> dict[str, list[tuple[str, Owners | None]]]:
    """Give what the ledger has of the row, in words, by stream, and of whom each line may be where it does not say."""
    pages = (
        page
        for part in known.parts
        for page in ledger_pages(
            part.root, [entry.commit for entry in part.state.published], part.state, there.condition
        )
    )
    rows = pa.concat_tables(pages)
    told: dict[str, list[tuple[str, Owners | None]]] = {}
    mine = rows.filter(pc.fill_null(pc.equal(rows["source"], row.source), True))  # noqa: FBT003 - a value
    texts = Accounts(known).columns(mine)["what happened"]
    for line, text in zip(mine.select(["stream", "source", "row"]).to_pylist(), texts, strict=True):
        owner = known.stream_of(line["stream"])
        whose = there.of_line(owner, line["row"]) if line["source"] is None and owner is not None else None
        if whose is None or row.source in whose.sources:
            told.setdefault(line["stream"], []).append((text, whose))
    return told


def _steps(
    known: KnownRun, row: LandedRow, there: LandedThere, lines: dict[str, list[tuple[str, Owners | None]]]
) -> Iterator[Step]:
    """Walk the streams that the row can have come to, each behind what it reads."""
    came: dict[str, int] = {row.source: row.landed_at}
    queues: dict[tuple[str, Path], Step | None] = {}
    for told, _ in lines.get(row.source, ()):
        yield _ended(row.source, told)
    if row.source in lines and _is_dropped(known, row, there):
        return
    for name, stream in known.streams.items():
        given = [read for read in read_by(stream) if read in came]
        to = known.of(name)
        for read in given:
            # Several streams of a leg may read it, and it crosses once.
            if (read, to.root) not in queues:
                rows = None if read in known.sources else there.own(read, row.source)[0]
                found = crossing(known, read, to, rows, came[read])
                queues[read, to.root] = step = None if found is None else _crossed(found, _named_apart(known, read, to))
                yield from () if step is None else (step,)
        outputs = (name, *known.sides(name))
        for table in outputs if given else ():
            rows, mixed = there.own(table, row.source)
            if rows.num_rows:
                first = ticks(rows["arrival"])[0]
                came[table] = int(first)
                yield _step(known, name, table, given, rows, came, mixed)
        owners = [each for each in lines if given and (each == name or each in _within(stream))]
        for owner in owners:
            yield from _told(owner, lines[owner], there)
        waits = any(step is not None and step.waits for step in (queues[read, to.root] for read in given))
        if given and not waits and came.keys().isdisjoint(outputs) and not owners:
            yield _without(known, name, stream, there.landed(row.source))


def _told(owner: str, lines: list[tuple[str, Owners | None]], there: LandedThere) -> Iterator[Step]:
    """Tell what the ledger says under a name, each sentence once."""
    for told in dict.fromkeys(told for told, _ in lines):
        whose = [each for text, each in lines if text == told]
        mixed = there.words([each for each in whose if each is not None])
        yield _ended(owner, told + (f" ({len(whose)} times{mixed})" if len(whose) > 1 else mixed))


def _named_apart(known: KnownRun, read: str, to: KnownRun) -> str:
    """Name what a leg reads, where it reads more from the same leg; empty where it is all."""

    def writer(each: str) -> Path:
        return known.root if each in known.sources else known.of(each).root

    own = (stream for name, stream in known.streams.items() if known.of(name).root == to.root)
    others = {each for stream in own for each in read_by(stream) if each != read and writer(each) == writer(read)}
    return f" ({read})" if others and writer(read) != to.root else ""


def _crossed(found: CrossedQueue, which: str) -> Step:
    """Tell of the queue between two legs."""
    told = f"{'passed' if found.lands else 'published'} in commit {found.commit} of {found.writer}"
    if found.taken is None:
        told += f", not taken by {found.reader} yet"
    else:
        behind = f" behind {counted(found.before, 'row')}" if found.before else ""
        later = milliseconds(found.seconds * 1_000)
        told += f", taken{behind} by commit {found.taken} of {found.reader}, which was published {later} later"
    return Step(
        stream=f"{found.writer} ▷ {found.reader}{which}",
        arrival=None,
        place=None,
        commit=found.commit,
        rows=0,
        what=told,
        rule="X7, X8",
        waits=found.taken is None,
    )


def _step(  # noqa: PLR0913 - what is known of one step
    known: KnownRun, name: str, table: str, given: list[str], rows: pa.Table, came: dict[str, int], mixed: str
) -> Step:
    arrival, place, commit = came[table], rows["place"][0].as_py(), rows["commit"][0].as_py()
    stream, before = known.streams[name], min(came[read] for read in given)
    now = int(pc.sum(pc.equal(rows["arrival"], rows["arrival"][0])).as_py())
    at = f"{known.moments.text(arrival)} place {place}, commit {commit}"
    told, rule = ("at once", "X1") if arrival <= before else (f"held since {known.moments.text(before)}", "X11")
    told = f"{told}, set aside" if table != name else told
    readers = [each for each, made in known.streams.items() if given[0] in read_by(made)]
    if stream["operator"] == "loop":
        told, rule = f"{told}, {counted(rows.num_rows, 'row')} in rounds", "X5"
    elif stream["operator"] == "dispatch":
        policy = stream["policy"]
        told, rule = f"{told}, to instance {policy['instance']} of 0 to {policy['instances'] - 1}", "X13"
    elif stream["operator"] == "interleave":
        told, rule = f"{told}, {counted(now, 'row')} where branches meet{_later(known, rows, now)}", "X10"
    elif now < rows.num_rows:
        told, rule = f"{told}, {counted(now, 'row')}{_later(known, rows, now)}", "X11"
    elif now > 1:
        told, rule = f"{told}, {now} rows of its turn", "X3"
    elif len(readers) > 1 and rule == "X1":
        among = f"one of {len(readers)} that read {given[0]}"
        told, rule = f"{told}, {_branch(known, table, given[0], readers) or among}", "X2"
    return Step(
        stream=table,
        arrival=arrival,
        place=place,
        commit=commit,
        rows=rows.num_rows,
        what=f"{at}: {told}{mixed}",
        rule=rule,
    )


def _later(known: KnownRun, rows: pa.Table, now: int) -> str:
    """Say how many of the rows came later than the first of them; nothing where none did."""
    if now == rows.num_rows:
        return ""
    last = known.moments.text(int(ticks(rows["arrival"])[-1]))
    return f"; {rows.num_rows - now} more held, the last until {last}"


def _branch(known: KnownRun, table: str, fork: str, readers: list[str]) -> str:
    """Say which of the branches behind a stream one is; empty where they do not meet, and have no order to speak of.

    What is set aside may go another way than its stream, so each is a branch of what it comes to alone.
    """
    name, meet = main_of(table), dict[str, list[str]]()
    for met, stream in known.streams.items():
        # What comes to an interleave stands there in the order of the file; streams come in one that works them out.
        branches = [each for each in stream["policy"].get("declared", ()) if each in readers]
        if name not in branches or (name != met and table not in _behind(known, read_by(stream))):
            continue
        # What has met before comes as one, however often it parts again.
        if len(_behind(known, read_by(stream), {*branches, *meet}) & {fork, *branches, *meet}) > 1:
            meet[met] = branches
    within = {each for met in meet for each in _behind(known, read_by(known.streams[met]))}
    last = [
        f"{meet[met].index(name) + 1} of {len(meet[met])} between {fork} and {met}" for met in meet if met not in within
    ]
    return f"branch {', '.join(last)}" if last else ""


def _behind(known: KnownRun, tables: list[str], until: AbstractSet[str] = frozenset()) -> set[str]:
    """Name what rows of some tables come from, themselves among them; and streams to go no further than, as such."""
    found, left = set[str](), list(tables)
    while left:
        table = left.pop()
        name = main_of(table)
        if name in until:
            found.add(name)
        elif table not in found:
            found.add(table)
            made = known.streams.get(name)
            left += read_by(made) if made else []
    return found


def _within(stream: dict[str, Any]) -> set[str]:
    """Name what the ledger calls the streams of a loop, which are no tables."""
    inner = {name for each in stream.get("body", ()) for name in (each["name"], *_within(each))}
    return {f"{stream['name']}.{name}" for name in inner}


def _ended(stream: str, told: str) -> Step:
    return Step(stream=stream, arrival=None, place=None, commit=None, rows=0, what=f"in the ledger: {told}", rule="S17")


def _is_dropped(known: KnownRun, row: LandedRow, there: LandedThere) -> bool:
    """Say whether a row that the landing has a line of did not land, and so comes to no stream."""
    landed = there.landed(row.source)
    if landed is not None and landed.num_rows:
        return False
    return not any(there.own(table, row.source)[0].num_rows for table in known.tables)


def _without(known: KnownRun, name: str, stream: dict[str, Any], landed: pa.Table | None) -> Step:
    """Tell of a stream that reads the row and has none of it."""
    if landed is not None and landed["kind"].to_pylist() == ["cti"]:
        told, rule = f"a CTI: its promise goes into those of {name}, which are of no one row", "A8"
    elif stream["operator"] == "dispatch":
        told, rule = "not to this instance", "X13"
    elif SPECS[stream["operator"]].remakes_rows:
        show = known.command("show", name)
        told, rule = (
            f"its results are of several rows and have no place of their own; the trace ends here: {show}",
            "X1",
        )
    else:
        told, rule = "nothing of it has left yet: it is held, or waits for a promise", "X11"
    return Step(stream=name, arrival=None, place=None, commit=None, rows=0, what=told, rule=rule)


def _payload(known: KnownRun, row: LandedRow, there: LandedThere) -> str:
    """Show the first columns of the row as it landed; where that is no longer there, as a stream has them.

    Of its source alone, and with the columns that landed, if there is one.
    """
    landed = there.landed(row.source)
    if landed is not None and landed.num_rows:
        return f": {_shown(landed)}"
    remade = _remade(known)
    by_worth = sorted(known.tables, key=lambda table: (len(known.sources_of(table)) > 1, main_of(table) in remade))
    for name in by_worth:
        if row.source in known.sources_of(name):
            rows, mixed = there.own(name, row.source)
            if rows.num_rows:
                where = f"in {name} " if main_of(name) in remade else ""
                return f": {where}{_shown(rows)}{mixed}"
    return ""


def _shown(rows: pa.Table) -> str:
    told = {each: value for each, value in rows.slice(0, 1).to_pylist()[0].items() if each not in HIDDEN}
    shown = [f"{each} {plain(value)}" for each, value in told.items() if type(value) in SHOWN]
    return ", ".join(shown[:PAYLOAD_SHOWN])


def _remade(known: KnownRun) -> set[str]:
    """Name the streams whose rows have other columns than landed, or other values in them."""
    found: set[str] = set()
    for name, stream in known.streams.items():
        # A row has other columns, or values, than it had behind one that names them, and behind a loop.
        if (
            SPECS[stream["operator"]].names_columns
            or stream["operator"] == "loop"
            or found.intersection(main_of(each) for each in read_by(stream))
        ):
            found.add(name)
    return found


UNSEEN = {
    State.INTENT: "has begun and is not published",
    State.WRITTEN: "is written and not published",
    State.REJECTED: "was rejected",
    State.ABANDONED: "was given up",
}
"""Why readers do not see what a commit has, by its state."""


def _unpublished(known: KnownRun, at: int) -> str:
    """Say what covers an instant and is seen by nobody, a commit or what landed; nothing where none does."""
    covering = [row for row in known.state.commits.values() if row.span.start <= at < row.span.end]
    newest = max(covering, key=lambda row: row.commit, default=None)
    if newest is None:
        waiting = next((each.id for each in Tail(known, []).waiting if each.start <= at < each.end), None)
        told = "" if waiting is None else f"sequence {waiting}, which covers that instant, landed and is not published"
    else:
        state = UNSEEN.get(newest.state)
        told = "" if state is None else f"commit {newest.commit}, which covers that instant, {state}"
    return told and f"{told} ({known.command('status')}); "


def _unknown(known: KnownRun, row: LandedRow, trace: str) -> str:
    stream = next((name for name in known.tables if row.source in known.sources_of(name)), "STREAM")
    how = known.command("show", stream, "--format", "csv")
    zulu = "" if known.moments.name == "UTC" else ", and with `Z` behind it one of UTC"
    return (
        f"{_unpublished(known, row.landed_at)}no published table has a row that landed at {trace}; "
        f"`landed_at` and `landed_place` stand in {how}, in UTC; "
        f"an instant without a zone is one of {known.moments.name}{zulu}"
    )
