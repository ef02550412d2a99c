"""Whether intervals are as usual: none missing or empty, rows, nulls and lines of the ledger no more than ever before.

Nor did a key fall silent, or a port that a merge declares never speak. A stream's intervals are the whole days of its
epochs (`days`), so a day is judged alike whether a stream or a backfill made it.

Nothing here is wrong by itself, so all of it warns. What is usual comes from what the run has published, or, of rows,
from the flow (`volume`); where too little was published nothing is asked, and the sentence says for how many intervals.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import pendulum
import pyarrow as pa
import pyarrow.compute as pc

from expectations.laws import (
    EVENTS,
    HELD_LEAST,
    intervals_touch,
    keys_speak,
    ports_speak,
    rows_land,
    usual_held,
    usual_late,
    usual_lateness,
    usual_ledger,
    usual_left_out,
    usual_nulls,
    usual_volume,
)
from expectations.reckoned import Reckoned
from pipelines.engine.columnar.columns import arrived_within, instant_text
from pipelines.engine.commits.entry import LEDGER, CommitKind
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.files.packed import opened
from pipelines.engine.files.parquet import naming_the_damaged
from pipelines.engine.landing.errors import RowsRemovedError
from pipelines.engine.landing.manifest import read_sequence
from pipelines.flows.model import Source
from pipelines.jobs.facts.days import days_of
from pipelines.jobs.facts.live import heartbeats
from pipelines.jobs.runs.counts import counted
from pipelines.operators.specs import SPECS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow.parquet as pq

    from expectations.laws import Law
    from pipelines.engine.commits.entry import Entry, Span
    from pipelines.engine.commits.history import LogState
    from pipelines.engine.landing.sequence import LandedSequence
    from pipelines.flows.model import Flow
    from pipelines.flows.volumes import VolumeBand
    from pipelines.jobs.facts.days import WholeDay
    from pipelines.jobs.facts.views import JudgedCommits

LEAST = 3
"""Intervals before one from which on there is a usual."""
WEEKS = 8
"""Intervals of the same weekday before one that are looked at."""
LOOKED, REMEMBERED = 7, 14
"""Intervals in which a key had rows before it fell silent, at most; for how many it is told from then on."""
NEEDED, PAST = 7, 14
"""Intervals before one that nulls and lines of the ledger are held against: at least, and at most. Against seven, one
day in ten of a year of weather has a column that is null unusually often; against fourteen, one in thirty."""
APART = 2
"""How many times fewer, or more, than ever is not usual."""
FEWEST, SMALLEST = 10, 0.01
"""Rows, and their share, below which more lines of the ledger or more nulls say nothing."""
LATE = frozenset({"late", "late_end", "start_dropped", "start_moved", "start_diverted"})
"""Reasons of late rows: ends whose start was late go with it."""
LEFT_OUT = frozenset({"dropped", "diverted"})
"""What becomes of rows that are missing from their stream; quarantined ones are diverted."""
OF_LINES = (usual_late, usual_left_out, usual_ledger)
"""The laws of lines of the ledger; each line is one's alone."""
PROMPT_MS = 1_000.0
"""Heartbeats that are published this soon are not late, whatever is usual."""
MOST_KEYS = 100_000
"""Keys of an interval beyond which silence is not asked: one of so many says nothing."""
MOST_PIECES = 20_000
"""Landings of the days that are looked at beyond which none is read for keys and nulls: that would take minutes."""
Keys = frozenset[tuple[Any, ...]]
Row = dict[str, Any]
Shares = dict[str, float]


class Volume(NamedTuple):
    """How many rows of a source landed in an interval."""

    commit: int
    start: int
    end: int
    rows: int


class LandedInterval(NamedTuple):
    """What landed of a source in an interval."""

    keys: Keys | None
    """None where they are too many."""
    rows: int
    nulls: Mapping[str, int]
    """By column of the payload."""


class Silence(NamedTuple):
    """A key that fell silent, as one interval tells it."""

    key: tuple[Any, ...]
    commit: int
    """Of the interval."""
    since: int
    """Commit of the first interval without it."""
    heard_before: int
    """In how many intervals before that it had rows, each that was looked at in which somebody had."""


def usual(flow: Flow, root: Path, judged: JudgedCommits, state: LogState) -> tuple[Reckoned, ...]:
    """Hold intervals against those before them; a day of a stream is judged with the epoch that completes it.

    Args:
        flow: the model.
        root: the run's folder.
        judged: the commits.
        state: the log.
    """
    before = [state.commits[number] for number in reversed(judged.earlier)]
    days = days_of(flow, root, (*before, *judged.entries), state)
    wanted = {day.entry.commit for day in days if day.commit in judged.commits}
    if not wanted:
        return ()
    every = [day.entry for day in days]
    first = next(at for at, entry in enumerate(every) if entry.commit in wanted)
    looked = every[max(0, first - PAST) :]
    further = every[max(0, first - REMEMBERED - LOOKED) :]
    pieces = sum(len(entry.sequences) for entry in further)
    unread = pieces if pieces > MOST_PIECES else 0
    heard = {name: {} if unread else _heard(root, name, source.key, further) for name, source in flow.sources.items()}
    starts = {entry.commit: entry.span.start for entry in every}
    found = [gaps(_spans(judged)), *(more_lines(looked, wanted, law) for law in OF_LINES)]
    merges = [name for name, made in flow.streams.items() if made.operator == "merge"]
    # Of a run in legs those of others stand in their commits.
    mine = [name for name in merges if any("held" in counted(entry, name) for entry in looked)]
    found += [more_held(name, looked, wanted) for name in mine]
    if any(day.streamed and day.entry.commit in wanted for day in days) and any(map(flow.has_timers, flow.streams)):
        found.append(later_timers(days[max(0, first - PAST) :], wanted))
    for name, source in flow.sources.items():
        volumes = [Volume(entry.commit, *entry.span, counted(entry, "landed").get(name, 0)) for entry in every]
        told_before = source.history is not None
        if source.volume is None or source.volume.at_least != 0:
            found.append(empty(name, volumes, wanted, told_before=told_before))
        found.append(
            odd(name, volumes, wanted, flow.timezone)
            if source.volume is None
            else beyond_given(name, volumes, wanted, source.volume)
        )
        silent = _silent(source, heard[name], wanted, starts, unread=unread)
        found += [silent, more_nulls(name, heard[name], wanted, unread=unread)]
    recent = {entry.commit for entry in looked}
    near = {name: {at: each for at, each in found.items() if at in recent} for name, found in heard.items()}
    return tuple(_by_commit(each, days) for each in (*found, *_never_spoke(flow, near)))


def _spans(judged: JudgedCommits) -> list[Volume]:
    kinds = {CommitKind.INTERVAL, CommitKind.EPOCH}
    return [Volume(entry.commit, *entry.span, 0) for entry in judged.entries if entry.kind in kinds]


def _by_commit(found: Reckoned, days: Sequence[WholeDay]) -> Reckoned:
    """Name days of a stream by the epoch that completed them, and by when they were."""
    told = {day.entry.commit: (day.commit, *map(instant_text, day.entry.span)) for day in days if day.streamed}
    rows = tuple(
        {**row, **dict(zip(("commit", "start", "end"), told[row["commit"]], strict=True))}
        if row.get("commit") in told
        else row
        for row in found.rows
    )
    return replace(found, rows=rows)


def gaps(volumes: Sequence[Volume]) -> Reckoned:
    """Find the times between intervals that were never run."""
    rows = tuple(
        {"start": instant_text(one.end), "end": instant_text(other.start), "commit": other.commit}
        for one, other in pairwise(volumes)
        if one.end < other.start
    )
    return Reckoned(law=intervals_touch(), looked_at=len(volumes), unexpected=len(rows), rows=rows)


def empty(source: str, volumes: Sequence[Volume], wanted: set[int], *, told_before: bool = False) -> Reckoned:
    """Find the intervals in which nothing of a source landed.

    Args:
        source: its name.
        volumes: the judged intervals and all before them.
        wanted: the judged commits.
        told_before: what arrived before the run landed with its first interval; reference data that is told so, once,
            is asked of no other, unless more of it came.
    """
    since = 0
    if told_before:
        since = next((place for place, volume in enumerate(volumes) if place and volume.rows), len(volumes))
    asked = [
        volume for place, volume in enumerate(volumes) if volume.commit in wanted and (not place or place >= since)
    ]
    rows = tuple(_told(volume) for volume in asked if not volume.rows)
    looked_at = sum(volume.rows for volume in asked)
    law = rows_land(source, told_before=told_before)
    return Reckoned(law=law, looked_at=looked_at, unexpected=len(rows), rows=rows)


def odd(source: str, volumes: Sequence[Volume], wanted: set[int], timezone: str) -> Reckoned:
    """Find the intervals that have far fewer, or far more, rows than those of the same weekday and hour before."""
    before: dict[tuple[int, str], list[int]] = defaultdict(list)
    rows: list[Row] = []
    asked = 0
    for volume in volumes:
        moment = pendulum.from_timestamp(volume.start / 1_000_000, tz=timezone)
        past = before[moment.weekday(), moment.time().isoformat()]
        known = _as_a_rule(past[-WEEKS:])
        past.append(volume.rows)
        if volume.commit not in wanted or len(known) < LEAST:
            continue
        asked += 1
        low, high = min(known) / APART, max(known) * APART
        # That nothing landed is said once, by the law about that.
        if volume.rows and not low <= volume.rows <= high:
            rows.append({**_told(volume), "least": low, "most": high, "before": len(known)})
    law, looked_at = usual_volume(source, asked, len(wanted), LEAST), sum(v.rows for v in volumes if v.commit in wanted)
    return Reckoned(law=law, looked_at=looked_at, unexpected=len(rows), rows=tuple(rows))


def beyond_given(source: str, volumes: Sequence[Volume], wanted: set[int], band: VolumeBand) -> Reckoned:
    """Find the intervals that have fewer, or more, rows than the flow says; that nothing landed is said by `empty`."""
    asked = [volume for volume in volumes if volume.commit in wanted]
    said = {what: rows for what, rows in (("least", band.at_least), ("most", band.at_most)) if rows is not None}
    rows = tuple({**_told(volume), **said} for volume in asked if volume.rows and not band.holds(volume.rows))
    law = usual_volume(source, len(asked), len(asked), 0, band.words)
    return Reckoned(law=law, looked_at=sum(volume.rows for volume in asked), unexpected=len(rows), rows=rows)


def _as_a_rule(past: Sequence[int]) -> Sequence[int]:
    """Leave out days on which nothing landed, which say nothing of the others: where they are the rule all count.

    >>> _as_a_rule([40, 0, 41]), _as_a_rule([0, 3, 0])
    ([40, 41], [0, 3, 0])
    """
    spoken = [rows for rows in past if rows]
    return spoken if 2 * len(spoken) > len(past) else past


def _told(volume: Volume) -> Row:
    return {
        "commit": volume.commit,
        "start": instant_text(volume.start),
        "end": instant_text(volume.end),
        "rows": volume.rows,
    }


def more_lines(
    entries: Sequence[Entry], wanted: set[int], law: Callable[[int, int, int, int], Law] = usual_ledger
) -> Reckoned:
    """Find the lines of the ledger of which an interval has far more, for the rows that landed, than any before it.

    Args:
        entries: the judged commits and those before them, in the order of their spans; what they counted is asked.
        wanted: the judged commits.
        law: that asks; each line is asked of by one alone.
    """
    rows: list[Row] = []
    before: list[Shares] = []
    asked = looked_at = 0
    for entry in entries:
        landed = sum(counted(entry, "landed").values())
        if not landed:
            continue
        lines = {line: number for line, number in counted(entry, LEDGER).items() if _law_of(line) is law}
        known = before[-PAST:]
        before.append({line: number / landed for line, number in lines.items()})
        if entry.commit not in wanted:
            continue
        looked_at += sum(lines.values()) if law is usual_ledger else landed
        if len(known) < NEEDED:
            continue
        asked += 1
        for line, number in sorted(lines.items()):
            most = _most(shares.get(line, 0.0) for shares in known)
            if number >= FEWEST and number / landed > most:
                stream, reason, action = line.rsplit(" ", 2)
                told = {"stream": stream, "reason": reason, "action": action}
                rows.append({"commit": entry.commit, **told, **_share(number, landed, most)})
    said = law(asked, len(wanted), NEEDED, PAST)
    return Reckoned(law=said, looked_at=looked_at, unexpected=len(rows), rows=tuple(rows))


def _most(shares: Iterable[float]) -> float:
    return max(APART * max(shares), SMALLEST)


def _law_of(line: str) -> Callable[[int, int, int, int], Law]:
    """Say which law asks of a line of the ledger, by its reason and what became of the row."""
    _, reason, action = line.rsplit(" ", 2)
    if reason in LATE:
        return usual_late
    return usual_left_out if action in LEFT_OUT else usual_ledger


def more_held(merge: str, entries: Sequence[Entry], wanted: set[int]) -> Reckoned:
    """Find the intervals at whose end a merge holds far more rows, for those that landed, than at any before.

    Args:
        merge: its name.
        entries: as `more_lines` has them.
        wanted: the judged commits.
    """
    rows: list[Row] = []
    before: list[float] = []
    asked = looked_at = 0
    for entry in entries:
        landed, held = sum(counted(entry, "landed").values()), counted(entry, merge).get("held")
        if not landed or held is None:
            continue
        known = before[-PAST:]
        before.append(held / landed)
        if entry.commit not in wanted:
            continue
        looked_at += held
        if len(known) < NEEDED:
            continue
        asked += 1
        most = _most(known)
        if held >= HELD_LEAST and held / landed > most:
            rows.append({"commit": entry.commit, **_share(held, landed, most)})
    law = usual_held(merge, asked, len(wanted), NEEDED, PAST)
    return Reckoned(law=law, looked_at=looked_at, unexpected=len(rows), rows=tuple(rows))


def later_timers(days: Sequence[WholeDay], wanted: set[int]) -> Reckoned:
    """Find the days of a stream on which heartbeats were published far later than on any before.

    Args:
        days: the judged days and those before them, in order; one without a timer whose lateness is known is none.
        wanted: the judged ones, as their entries are numbered.
    """
    rows: list[Row] = []
    before: list[float] = []
    asked = looked_at = 0
    for day in days:
        late = heartbeats(day.epochs)
        if late is None:
            continue
        known = before[-PAST:]
        before.append(late["p99_ms"])
        if day.entry.commit not in wanted:
            continue
        looked_at += late["timers"]
        if len(known) < NEEDED:
            continue
        asked += 1
        most = max(APART * max(known), PROMPT_MS)
        if late["p99_ms"] > most:
            told = {"timers": late["timers"], "p99_ms": late["p99_ms"], "most_ms": most}
            rows.append({"commit": day.entry.commit, **told})
    streamed = sum(day.streamed and day.entry.commit in wanted for day in days)
    law = usual_lateness(asked, streamed, NEEDED, PAST)
    return Reckoned(law=law, looked_at=looked_at, unexpected=len(rows), rows=tuple(rows))


def more_nulls(source: str, heard: Mapping[int, LandedInterval], wanted: set[int], *, unread: int = 0) -> Reckoned:
    """Find the columns that are null far more often, or filled far less often, than in any interval before.

    Args:
        source: its name.
        heard: by commit, in the order of their spans: what landed.
        wanted: the judged commits.
        unread: in how many pieces it landed, where they are too many to be read.
    """
    rows: list[Row] = []
    before: list[Shares] = []
    asked = 0
    for commit, found in heard.items():
        if not found.rows:
            continue
        known = before[-PAST:]
        before.append({column: nulls / found.rows for column, nulls in found.nulls.items()})
        if commit not in wanted or len(known) < NEEDED:
            continue
        asked += 1
        for column, nulls in found.nulls.items():
            most = max((shares[column] for shares in known if column in shares), default=1.0)
            # Where most was null before, twice as much cannot be: there half as many values are not usual.
            most = max(min(APART * most, 1 - (1 - most) / APART), SMALLEST)
            if nulls >= FEWEST and nulls / found.rows > most:
                rows.append({"commit": commit, "column": column, **_share(nulls, found.rows, most)})
    looked_at = sum(found.rows for commit, found in heard.items() if commit in wanted)
    law = usual_nulls(source, asked, len(wanted), NEEDED, PAST, unread=unread)
    return Reckoned(law=law, looked_at=looked_at, unexpected=len(rows), rows=tuple(rows))


def _share(number: int, every: int, most: float) -> Row:
    return {"rows": number, "share": round(number / every, 4), "most": round(most, 4)}


def _silent(
    source: Source,
    heard: Mapping[int, LandedInterval],
    wanted: set[int],
    starts: Mapping[int, int],
    *,
    unread: int = 0,
) -> Reckoned:
    """Find the keys that had rows in each of the intervals before one, and have none from it on."""
    keys = {commit: found.keys for commit, found in heard.items() if found.keys is not None}
    rows = tuple(
        {
            "commit": silence.commit,
            **dict(zip(source.key, silence.key, strict=True)),
            "silent_since": instant_text(starts[silence.since]),
            "heard_before": silence.heard_before,
        }
        for silence in fell_silent(keys, wanted)
    )
    asked = sum(len(some) for commit, some in keys.items() if commit in wanted)
    law = keys_speak(source.name, LEAST, LOOKED, REMEMBERED, unread=unread)
    return Reckoned(law=law, looked_at=asked, unexpected=len(rows), rows=rows)


def _never_spoke(flow: Flow, heard: Mapping[str, Mapping[int, LandedInterval]]) -> Iterator[Reckoned]:
    """Find the ports that a merge declares, by values of a column of its sources' key, of which nothing landed."""
    for name, stream in flow.streams.items():
        ports, sources = stream.ports, [flow.sources[source] for source in flow.sources_of(name)]
        column = ports.column if ports else None
        if ports is None or column is None or not all(column in source.key for source in sources):
            continue
        known = [(source.key.index(column), found.keys) for source in sources for found in heard[source.name].values()]
        if known and all(keys is not None for _, keys in known) and _as_landed(flow, stream.inputs[0]):
            spoke = {key[at] for at, keys in known for key in keys or ()}
            yield never_spoke(name, column, ports.values, spoke)


def _as_landed(flow: Flow, name: str) -> bool:
    """Say whether the columns of a stream are those that landed: a projection may give their names to others."""
    behind = flow.behind(name, along_rows=True)
    return all(isinstance(made, Source) or SPECS[made.operator].same_columns for made in behind)


def never_spoke(merge: str, column: str, declared: Sequence[object], spoke: Collection[object]) -> Reckoned:
    """Find the declared values of a column of which no row was heard; those are compared as they are spelled.

    Args:
        merge: name of the stream that declares them.
        column: that names its ports.
        declared: the values.
        spoke: those of which rows landed in the judged intervals, or those before them that are looked at.
    """
    spelled = {str(value) for value in spoke}
    rows = tuple({column: value} for value in declared if str(value) not in spelled)
    law = ports_speak(merge, column, PAST)
    return Reckoned(law=law, looked_at=len(declared), unexpected=len(rows), rows=rows)


def fell_silent(heard: Mapping[int, Keys], wanted: set[int]) -> Iterator[Silence]:
    """Give the keys that were heard in each interval before one, and not in it, until they are heard again.

    In an interval in which nobody spoke none falls silent: that is said once, by the law about it.

    Args:
        heard: by commit, in the order of their spans: the keys that had rows.
        wanted: the judged commits.
    """
    silent: dict[tuple[Any, ...], tuple[int, Silence]] = {}
    before: deque[Keys] = deque(maxlen=LOOKED)
    for place, (commit, keys) in enumerate(heard.items()):
        known = [some for some in before if some]
        silent = {
            key: (fell, silence)
            for key, (fell, silence) in silent.items()
            if key not in keys and place - fell < REMEMBERED
        }
        usually = frozenset.intersection(*known) if len(known) >= LEAST else frozenset[tuple[Any, ...]]()
        if keys:
            # Behind an outage who fell silent in it is still usual: it goes by when that was.
            fallen = usually - keys - silent.keys()
            silent |= {key: (place, Silence(key, commit, commit, len(known))) for key in fallen}
        # An interval in which most were silent is told, and says nothing of who speaks as a rule.
        is_outage = 2 * len(usually & keys) < len(usually)
        before.append(frozenset() if is_outage else keys)
        if commit in wanted:
            told = (silence._replace(commit=commit) for _, silence in silent.values())
            yield from sorted(told, key=lambda each: str(each.key))


def _heard(root: Path, source: str, key: Sequence[str], entries: Sequence[Entry]) -> dict[int, LandedInterval]:
    """Read what landed of a source, by commit; nothing of those whose rows are no longer kept."""
    found: dict[int, LandedInterval] = {}
    for entry in entries:
        with suppress(RowsRemovedError):
            found[entry.commit] = _heard_in(root, source, key, entry)
    return found


def _heard_in(root: Path, source: str, key: Sequence[str], entry: Entry) -> LandedInterval:
    keys: set[tuple[Any, ...]] = set()
    rows, nulls = 0, Counter[str]()
    for number in entry.sequences:
        within = entry.span if entry.kind is CommitKind.EPOCH else None
        found = heard_of(read_sequence(landed_path(root), number), source, key, within)
        rows += found.rows
        nulls.update(found.nulls)
        keys.update(found.keys or ())
    return LandedInterval(frozenset(keys) if len(keys) <= MOST_KEYS else None, rows, nulls)


def heard_of(sequence: LandedSequence, source: str, key: Sequence[str], within: Span | None = None) -> LandedInterval:
    """Say what landed of a source in a sequence; of a file whose footer says its rows and nulls the key alone is read.

    Args:
        sequence: that is kept.
        source: its name.
        key: columns of its key.
        within: of a sequence that reaches beyond it only what arrived in it counts.

    Raises:
        FileDamagedError: its file is not as it was written.
    """
    landed, payload = sequence.sources[source], sequence.payload(source).names
    beyond = within is not None and not (within.start <= sequence.start and sequence.end <= within.end)
    groups = () if landed.referenced is not None else landed.groups(lambda _: True)
    if groups and not beyond:
        path = sequence.path(landed)
        with naming_the_damaged([path]), opened(path) as file:
            told = _footer(file, groups, payload)
            if told is not None:
                keys = _keys(file.iter_batches(row_groups=list(groups), columns=list(key)), key)
                return LandedInterval(keys, *told)
    batches = [_events(batch, within if beyond else None) for batch in sequence.open(source)]
    nulls = Counter({name: sum(events[name].null_count for events in batches) for name in payload} if batches else {})
    keys = _keys((batch for events in batches for batch in events.to_batches()), key)
    return LandedInterval(keys, sum(events.num_rows for events in batches), nulls)


def _events(batch: pa.RecordBatch, within: Span | None = None) -> pa.Table:
    wanted = pc.field("kind").isin(list(EVENTS))
    return pa.Table.from_batches([batch]).filter(wanted if within is None else wanted & arrived_within(*within))


def _keys(batches: Iterable[pa.RecordBatch], key: Sequence[str]) -> Keys:
    said = (pa.Table.from_batches([batch]).select(list(key)).group_by(list(key)).aggregate([]) for batch in batches)
    return frozenset(tuple(row.values()) for rows in said for row in rows.to_pylist())


def _footer(file: pq.ParquetFile, groups: Sequence[int], columns: Sequence[str]) -> tuple[int, dict[str, int]] | None:
    """Give the rows of some row groups and the nulls of each column; None where the footer does not say them.

    It does not of columns within columns, nor where there may be other rows than events.
    """
    at = {file.schema.column(place).path: place for place in range(len(file.schema))}
    if not all(name in at for name in ("kind", *columns)):
        return None
    parts = [file.metadata.row_group(group) for group in groups]
    kinds = [part.column(at["kind"]).statistics for part in parts]
    if not all(each and each.has_min_max and min(EVENTS) <= each.min and each.max <= max(EVENTS) for each in kinds):
        return None
    found = {name: [part.column(at[name]).statistics for part in parts] for name in columns}
    if not all(each and each.has_null_count for some in found.values() for each in some):
        return None
    nulls = {name: sum(each.null_count for each in some) for name, some in found.items()}
    return sum(part.num_rows for part in parts), nulls
