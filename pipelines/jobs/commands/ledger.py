"""`pulseline ledger`: what happened to the rows that did not simply pass, counted, filtered and told in words."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.engine.columnar.columns import LEDGER_SCHEMA, TIME, canonical_json
from pipelines.engine.commits.entry import LEDGER
from pipelines.engine.commits.paths import ledger_path
from pipelines.engine.commits.readers import LEDGER_ORDER, rows_of
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.facts.pages import ledger_pages
from pipelines.jobs.runs.counts import ledger_counts
from pipelines.jobs.runs.known import KnownRun, offered, open_run
from pipelines.jobs.text.tables import print_pages, table_text, times_note
from pipelines.jobs.words.ledger import ACTIONS, KNOWN_REASONS, NOTES, REASONS, Accounts
from pipelines.operators.plain_words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow.dataset as ds

    Tell = Callable[[str], object]
    Counts = Counter[tuple[str, str, str]]

COUNTED = ("stream", "reason", "action")
WORDS, CAUSE = pa.field("words", pa.string()), pa.field("cause", pa.string())


@dataclass(frozen=True, kw_only=True)
class LedgerQuery:
    """Which lines are wanted, as it was typed; None asks for nothing."""

    reason: str | None = None
    stream: str | None = None
    action: str | None = None
    source: str | None = None
    key: str | None = None
    """Values of the key's columns, between commas."""
    start: str | None = None
    end: str | None = None

    @property
    def told(self) -> str:
        """Say what the lines have in common; nothing where all are wanted."""
        named = {"reason": self.reason, "stream": self.stream, "action": self.action, "source": self.source}
        said = [f"the {name} {value}" for name, value in (*named.items(), ("key", self.key)) if value is not None]
        span = [f" {name} {value}" for name, value in (("from", self.start), ("before", self.end)) if value is not None]
        return (f" with {', '.join(said)}" if said else "") + "".join(span)


def show_ledger(  # noqa: PLR0913 - the options of the command
    flow: str, asked: LedgerQuery, limit: int, shape: str, run: str, tell: Tell, *, explain: bool = False
) -> None:
    """Count what the ledger holds, and say in words what happened to each row.

    Args:
        flow: name of the flow or path of its file.
        asked: which lines.
        limit: at most so many lines; 0 for all.
        shape: `table` in words and local time, or `csv`, `raw` (csv as it is) and `jsonl` in UTC with every column.
        run: name of the run.
        tell: prints a text.
        explain: tell each line at length, with the row that caused the promise it broke.

    Raises:
        WrongUse: no such flow, run, reason, stream, action or source, or a negative limit.
        GridError: the span is none.
    """
    known = open_run(flow, run)
    known.require_whole_log()
    known.require_own_rows(LEDGER)
    if limit < 0:
        raise WrongUse(f"--limit must be 0 (all) or more; it is {limit}")
    every = ledger_counts(known)
    _check(known, asked, every)
    where = _condition(known, asked)
    pages = _pages(known, where, asked, limit)
    if shape != "table":
        print_pages(_explained(known, pages) if explain else pages, shape, tell)
    elif not known.stands:
        tell(known.nothing_yet())
    elif not every:
        tell(f"the ledger of {known.name} is empty: every row that landed is in a stream")
    else:
        counts = _counts(known, asked, where, every)
        _print_counts(known, counts, tell)
        _print_lines(known, asked, counts.total(), pages, tell, explain=explain)
        if nameless := _behind_several(known, asked, every):
            tell(
                f"{counted(nameless, 'more line')} of streams that {asked.source} and more lead to, which name no "
                "source: leave out --source, or follow one row (pulseline explain FLOW --trace)"
            )


def _check(known: KnownRun, asked: LedgerQuery, counts: Counts) -> None:
    """See that what is asked for could be there."""
    there = [sorted({words[place] for words in counts}) for place in range(len(COUNTED))]
    choices = (
        ("reason", asked.reason, there[1], {*KNOWN_REASONS, *there[1]}),
        ("stream", asked.stream, [*known.sources, *known.tables], {*known.tables, *known.sources, *there[0]}),
        ("action", asked.action, list(ACTIONS), {*ACTIONS, *there[2]}),
        ("source", asked.source, list(known.sources), set(known.sources)),
    )
    for name, value, offer, allowed in choices:
        if value is not None and value not in allowed:
            raise WrongUse(f"no {name} `{value}`{offered(value, offer or sorted(allowed))}")


def _condition(known: KnownRun, asked: LedgerQuery) -> ds.Expression | None:
    """Say what can be asked of a line's columns; `_of_key` asks the rest."""
    wanted = [pc.field(name) == value for name in (*COUNTED, "source") if (value := getattr(asked, name)) is not None]
    if asked.start is not None or asked.end is not None:
        wanted += _within(known, asked)
    if asked.key is not None:
        wanted += [_mentions(part) for part in asked.key.split(",")]
    condition = None
    for each in wanted:
        condition = each if condition is None else condition & each
    return condition


def _within(known: KnownRun, asked: LedgerQuery) -> list[ds.Expression]:
    from pipelines.flows.grid import cut_at

    when = pc.coalesce(pc.field("landed_at"), pc.field("arrival"))
    first, last = (
        None if text is None else pa.scalar(cut_at(known.grid, text, name), pa.int64()).cast(TIME)
        for text, name in ((asked.start, "start"), (asked.end, "end"))
    )
    return [*([] if first is None else [when >= first]), *([] if last is None else [when < last])]


def _mentions(part: str) -> ds.Expression:
    """Ask for lines that could have a value in their key: most others need not be read."""
    text = canonical_json(part.strip())[1:-1]
    return pc.match_substring(pc.field("key"), text) | pc.match_substring(pc.field("row"), text)


def _pages(known: KnownRun, where: ds.Expression | None, asked: LedgerQuery, limit: int) -> Iterator[pa.Table]:
    if asked.key is None:
        yield from _lines(known, where, limit or None)
        return
    accounts, left = Accounts(known), limit or None
    for page in _lines(known, where, None):
        mine = _of_key(accounts, page, asked.key)
        mine = mine if left is None else mine.slice(0, left)
        left = None if left is None else left - mine.num_rows
        yield mine
        if left == 0:
            return


def _lines(known: KnownRun, where: ds.Expression | None, limit: int | None) -> Iterator[pa.Table]:
    """Give the lines of a run in their order; those of one in legs are all read, for each leg has its own."""
    parts = [(part, [row.commit for row in part.state.published]) for part in known.parts]
    if len(parts) == 1:
        [(_, commits)] = parts
        yield from ledger_pages(known.root, commits, known.state, where, limit)
        return
    pages = [page for part, commits in parts for page in ledger_pages(part.root, commits, part.state, where, limit)]
    rows = pa.concat_tables(pages).sort_by([(name, "ascending") for name in LEDGER_ORDER])
    yield rows if limit is None else rows.slice(0, limit)


def _of_key(accounts: Accounts, rows: pa.Table, key: str) -> pa.Table:
    lines = rows.select(["stream", "key", "row", "source"]).to_pylist()
    return rows.filter(pa.array([accounts.is_of(line, key) for line in lines], pa.bool_()))


def _counts(known: KnownRun, asked: LedgerQuery, where: ds.Expression | None, every: Counts) -> Counts:
    """Count the lines that are asked for; only what commits did not count is read."""
    if asked.source is None and asked.key is None and asked.start is None and asked.end is None:
        wanted = (asked.stream, asked.reason, asked.action)
        return Counter(
            {
                words: lines
                for words, lines in every.items()
                if all(mine in {None, its} for mine, its in zip(wanted, words, strict=True))
            }
        )
    rows = pa.concat_tables(
        rows_of(
            part.root,
            ledger_path(part.root),
            [row.commit for row in part.state.published],
            LEDGER_SCHEMA,
            part.state,
        ).scan((*COUNTED, "key", "row", "source"), where)
        for part in known.parts
    )
    if asked.key is not None:
        rows = _of_key(Accounts(known), rows, asked.key)
    grouped = rows.group_by(list(COUNTED)).aggregate([([], "count_all")]).to_pylist()
    return Counter({(row["stream"], row["reason"], row["action"]): row["count_all"] for row in grouped})


def _explained(known: KnownRun, pages: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Add to each line its sentence, and the row that caused the promise it broke, in canonical JSON."""
    accounts = Accounts(known)
    for page in pages:
        words, found = accounts.explained(page)
        yield page.append_column(WORDS, pa.array(words, pa.string())).append_column(CAUSE, pa.array(found, pa.string()))


def _behind_several(known: KnownRun, asked: LedgerQuery, every: Counts) -> int:
    """Count the lines that may be of the source that was asked for, and that have no source, for they have several."""
    owners = {told: known.stream_of(told) for told, _, _ in every}
    behind = {told: known.sources_of(owner) for told, owner in owners.items() if owner is not None}
    mine = {told for told, sources in behind.items() if len(sources) > 1 and asked.source in sources}
    return sum(lines for (stream, _, _), lines in every.items() if stream in mine and asked.stream in {None, stream})


def _print_counts(known: KnownRun, counts: Counts, tell: Tell) -> None:
    if not counts:
        return
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    tell(
        table_text(
            {
                "rows": [f"{count:,}" for _, count in ranked],
                "where": [stream for (stream, _, _), _ in ranked],
                "reason": [reason for (_, reason, _), _ in ranked],
                "action": [action for (_, _, action), _ in ranked],
                "in words": [_meaning(known, *words) for words, _ in ranked],
            },
            ["rows"],
            wraps="in words",
        )
    )
    tell("")


def _meaning(known: KnownRun, stream: str, reason: str, action: str) -> str:
    why = REASONS.get(reason, reason.replace("_", " "))
    done = "" if reason in NOTES else f"; {ACTIONS.get(action, action).format(side=known.aside(stream))}"
    return f"{why}{done}".format(arrival=known.sources.get(stream, {}).get("arrival", "arrival"))


def _print_lines(  # noqa: PLR0913 - what was asked for, and what is there
    known: KnownRun, asked: LedgerQuery, total: int, pages: Iterator[pa.Table], tell: Tell, *, explain: bool
) -> None:
    rows = pa.concat_tables(pages)
    if not rows.num_rows:
        tell(f"no line{asked.told or ' is there'}")
        return
    accounts = Accounts(known)
    if explain:
        for text in accounts.told_at_length(rows):
            tell(text)
            tell("")
    else:
        tell(table_text(accounts.columns(rows), wraps="what happened"))
        tell("")
    shown = (
        f"all {counted(total, 'line')}{asked.told}"
        if rows.num_rows >= total
        else f"the first {rows.num_rows:,} of {counted(total, 'line')}{asked.told}; --limit 0 shows all"
    )
    tell(f"{shown} · {times_note(rows, known.moments)}")
