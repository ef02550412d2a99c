"""`pulseline explain --trace`: the way of one landed row through the published tables, each step with its rule."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import TIME, ticks
from pipelines.engine.commits.paths import stream_path
from pipelines.engine.commits.readers import settled_commits
from pipelines.flows.grid import instant_of
from pipelines.flows.model import DIVERTED
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.facts.pages import ledger_pages, stream_pages
from pipelines.jobs.runs.known import KnownRun, offered, open_run
from pipelines.jobs.text.tables import plain
from pipelines.jobs.words.ledger import Accounts
from pipelines.operators.plain_words import counted
from pipelines.operators.specs import SPECS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow.dataset as ds

    Tell = Callable[[str], object]

NAMED = re.compile(r"(?P<source>[^@]+)@(?P<instant>.+?)(?:/(?P<place>[0-9]+))?")
REMAKING = frozenset({"project", "loop"})
"""Operators that give a row other columns, or values, than it had."""
MIXED = ", together with those of another source that landed at the same instant and place"
HIDDEN = frozenset({"kind", "arrival", "place", "commit", "landed_at", "landed_place", "due_at"})
TIMES = frozenset({"event_time", "event_end"})
"""Which an operator may move, while it passes all other columns on."""
PAYLOAD_SHOWN = 4


@dataclass(frozen=True, kw_only=True)
class LandedRow:
    """One row, by where it landed."""

    source: str
    landed_at: int
    """In ticks."""
    landed_place: int

    @property
    def condition(self) -> ds.Expression:
        """Ask for what came of it in a table; rows of another source may have landed at the same place."""
        at = pc.field("landed_at") == pa.scalar(self.landed_at, pa.int64()).cast(TIME)
        return at & (pc.field("landed_place") == self.landed_place)


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


def explain_row(flow: str, trace: str, run: str, tell: Tell, *, as_json: bool) -> None:
    """Tell the way of one row: where it landed, and step by step the streams that it came to, or where it ended.

    Args:
        flow: name of the flow or path of its file.
        trace: the row, as `source@instant/place`.
        run: name of the run.
        tell: prints a text.
        as_json: one JSON object a step instead of words.

    Raises:
        WrongUse: no such flow, run, source or row, or the row is not named as it should be.
    """
    known = open_run(flow, run)
    row = _named(known, trace)
    if not known.state.published:
        tell(known.nothing_yet())
        return
    lines = _lines(known, row)
    steps = list(_steps(known, row, lines))
    if not lines and not any(step.rows for step in steps):
        raise WrongUse(_unknown(known, row, trace))
    if as_json:
        for step in steps:
            tell(json.dumps(asdict(step), ensure_ascii=False))
        return
    tell(f"{row.source}  landed {known.moments.text(row.landed_at)}, place {row.landed_place}{_payload(known, row)}")
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
    return LandedRow(source=source, landed_at=landed, landed_place=int(found["place"] or 1))


def _lines(known: KnownRun, row: LandedRow) -> dict[str, list[str]]:
    """Give what the ledger has of the row, in words, by stream."""
    pages = (
        page
        for part in known.parts
        for page in ledger_pages(part.root, [entry.commit for entry in part.state.published], part.state, row.condition)
    )
    rows = pa.concat_tables(pages)
    told: dict[str, list[str]] = {}
    mine = rows.filter(pc.fill_null(pc.equal(rows["source"], row.source), True))  # noqa: FBT003 - a value
    for stream, text in zip(mine["stream"].to_pylist(), Accounts(known).columns(mine)["what happened"], strict=True):
        told.setdefault(stream, []).append(text)
    return told


def _rows(known: KnownRun, table: str, row: LandedRow) -> pa.Table:
    known = known.of(table)
    commits = settled_commits(known.root, stream_path(known.root, table), known.state)
    order = ("arrival", *known.order_key(table), "place")
    return pa.concat_tables(stream_pages(known.root, table, commits, known.state, order, row.condition))


def _steps(known: KnownRun, row: LandedRow, lines: dict[str, list[str]]) -> Iterator[Step]:
    """Walk the streams that the row can have come to, each behind what it reads."""
    came: dict[str, int] = {row.source: row.landed_at}
    found: dict[str, pa.Table] = {}
    for told in lines.get(row.source, ()):
        yield _ended(row.source, told)
    for name, stream in known.streams.items():
        given = [read for read in _read(stream) if read in came]
        mixed = bool(given) and _is_mixed(known, stream, row, found)
        for table in (table for table in known.tables if table in {name, name + DIVERTED}) if given else ():
            rows = _own(known, stream, table, _rows(known, table, row), [(read, found.get(read)) for read in given])
            if rows.num_rows:
                found[table] = rows
                first = ticks(rows["arrival"])[0]
                came[table] = int(first)
                yield _step(known, name, table, given, rows, came, mixed=mixed)
        for owner in [each for each in lines if given and (each == name or each in _within(stream))]:
            theirs = MIXED if mixed else ""
            for told in dict.fromkeys(lines[owner]):
                times = lines[owner].count(told)
                yield _ended(owner, told + (f" ({times} times{theirs})" if times > 1 else theirs))
        if given and name not in came and name + DIVERTED not in came and name not in lines:
            yield _without(known, name, stream)


def _own(
    known: KnownRun, stream: dict[str, Any], table: str, rows: pa.Table, above: list[tuple[str, pa.Table | None]]
) -> pa.Table:
    """Leave away rows of another source that landed at the same place: those that did not come by what it reads.

    A merge of streams says the port; else a row that was passed on has the columns that it had above. Where neither
    tells them apart, for they are alike or a source is read directly, all stay.
    """
    if len(known.sources_of(table)) < 2 or not rows.num_rows:  # noqa: PLR2004 - one source has no other
        return rows
    if stream["operator"] == "merge" and len(stream["inputs"]) > 1 and "port" in rows.column_names:
        return rows.filter(pc.is_in(rows["port"], pa.array([read for read, _ in above])))
    before = [each for _, each in above if each is not None]
    if len(before) < len(above):
        return rows
    names = [name for name in rows.column_names if name not in HIDDEN | TIMES]
    if stream["operator"] == "loop":
        return rows
    if stream["operator"] == "project":
        names = ["arrival", "place"]
    known_rows = {_values(each, names) for table in before for each in table.to_pylist()}
    return rows.filter(pa.array([_values(each, names) in known_rows for each in rows.to_pylist()]))


def _is_mixed(known: KnownRun, stream: dict[str, Any], row: LandedRow, found: dict[str, pa.Table]) -> bool:
    """Say whether a loop also took in what another source landed at the same place: its results do not tell of whom."""
    if stream["operator"] != "loop":
        return False
    given = [read for read in _read(stream) if read in found]
    return any(_rows(known, read, row).num_rows > found[read].num_rows for read in given)


def _values(row: dict[str, Any], names: list[str]) -> str:
    return repr([row.get(name) for name in names])


def _read(stream: dict[str, Any]) -> list[str]:
    """Name what a stream takes rows from: of what it imports it has the CTIs alone."""
    inputs: list[str] = stream["inputs"]
    return inputs[:1] if stream["operator"] == "advance_time" else inputs


def _step(  # noqa: PLR0913 - what is known of one step
    known: KnownRun, name: str, table: str, given: list[str], rows: pa.Table, came: dict[str, int], *, mixed: bool
) -> Step:
    arrival, place, commit = came[table], rows["place"][0].as_py(), rows["commit"][0].as_py()
    stream, before = known.streams[name], min(came[read] for read in given)
    at = f"{known.moments.text(arrival)} place {place}, commit {commit}"
    told, rule = ("at once", "X1") if arrival <= before else (f"held since {known.moments.text(before)}", "X11")
    told = f"{told}, set aside" if table != name else told
    readers = [each for each, made in known.streams.items() if given[0] in _read(made)]
    if stream["operator"] == "loop":
        told, rule = f"{told}, {counted(rows.num_rows, 'row')} in rounds{MIXED if mixed else ''}", "X5"
    elif stream["operator"] == "dispatch":
        policy = stream["policy"]
        told, rule = f"{told}, to instance {policy['instance']} of {policy['instances']}", "X13"
    elif stream["operator"] == "interleave":
        told, rule = f"{told}, {counted(rows.num_rows, 'row')} where branches meet", "X10"
    elif rows.num_rows > 1:
        told, rule = f"{told}, {rows.num_rows} rows of its turn", "X3"
    elif len(readers) > 1 and rule == "X1":
        told, rule = f"{told}, branch {readers.index(name) + 1} of {len(readers)} behind {given[0]}", "X2"
    return Step(
        stream=table, arrival=arrival, place=place, commit=commit, rows=rows.num_rows, what=f"{at}: {told}", rule=rule
    )


def _within(stream: dict[str, Any]) -> set[str]:
    """Name what the ledger calls the streams of a loop, which are no tables."""
    inner = {name for each in stream.get("body", ()) for name in (each["name"], *_within(each))}
    return {f"{stream['name']}.{name}" for name in inner}


def _ended(stream: str, told: str) -> Step:
    return Step(stream=stream, arrival=None, place=None, commit=None, rows=0, what=f"in the ledger: {told}", rule="S17")


def _without(known: KnownRun, name: str, stream: dict[str, Any]) -> Step:
    """Tell of a stream that reads the row and has none of it."""
    if stream["operator"] == "dispatch":
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


def _payload(known: KnownRun, row: LandedRow) -> str:
    """Show the first columns of the row, as a stream has them: one of its source alone, and as they landed, if any."""
    remade = _remade(known)
    by_worth = sorted(
        known.tables, key=lambda table: (len(known.sources_of(table)) > 1, table.removesuffix(DIVERTED) in remade)
    )
    for name in by_worth:
        if row.source in known.sources_of(name):
            rows = _rows(known, name, row)
            if rows.num_rows:
                told = {each: value for each, value in rows.slice(0, 1).to_pylist()[0].items() if each not in HIDDEN}
                shown = [
                    f"{each} {plain(value)}" for each, value in told.items() if isinstance(value, str | int | float)
                ]
                where = f"in {name} " if name.removesuffix(DIVERTED) in remade else ""
                return f": {where}{', '.join(shown[:PAYLOAD_SHOWN])}"
    return ""


def _remade(known: KnownRun) -> set[str]:
    """Name the streams whose rows have other columns than landed, or other values in them."""
    found: set[str] = set()
    for name, stream in known.streams.items():
        if stream["operator"] in REMAKING or found.intersection(each.removesuffix(DIVERTED) for each in _read(stream)):
            found.add(name)
    return found


def _unknown(known: KnownRun, row: LandedRow, trace: str) -> str:
    stream = next((name for name in known.tables if row.source in known.sources_of(name)), "STREAM")
    how = known.command("show", stream, "--format", "csv")
    return (
        f"no published table has a row that landed at {trace}; `landed_at` and `landed_place` stand in {how}, in UTC; "
        f"an instant without a zone is one of {known.moments.name}, and with `Z` behind it one of UTC"
    )
