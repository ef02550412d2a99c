"""Whether intervals give again what they gave: some are computed anew, from what landed and from the carry before.

The tasks run in this process, under the plan of the commit, and write into a folder that is nobody's: the run is only
read. What comes is held against the content hashes that the commit said, not against tables, which `unchanged` looks
at; so what differs is an operator, a version of Python or a library, what landed, or the carry.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from expectations.laws import as_recomputed
from expectations.reckoned import Reckoned
from pipelines.engine.columnar.columns import NOT_HASHED, instant_text
from pipelines.engine.columnar.content import ContentHash, row_hashes
from pipelines.engine.commits.carry_format import UPGRADES
from pipelines.engine.commits.entry import LEDGER, START_OF_RUN
from pipelines.engine.commits.file_lists import FileLists
from pipelines.engine.commits.paths import COMMIT, landed_path, run_root, stream_path, table_name
from pipelines.engine.commits.plan import carry_format
from pipelines.engine.files.folders import CARRY
from pipelines.engine.files.parquet import FileDamagedError, read_rows
from pipelines.engine.landing.manifest import read_sequence
from pipelines.engine.landing.segments import removed_among
from pipelines.engine.live.crossed import TurnsLostError
from pipelines.engine.live.remaking import can_be_remade, worked_aside
from pipelines.engine.tasks.carry import NOT_HASHED as CARRY_NOT_HASHED
from pipelines.engine.tasks.local import CoreEngine
from pipelines.errors import PulselineError
from pipelines.flows.definition import fingerprint_of, flow_from_json
from pipelines.flows.legs import MAIN
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.runs.counts import numbered

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from pipelines.engine.commits.entry import Entry
    from pipelines.engine.commits.history import LogState
    from pipelines.engine.live.remaking import Unlike
    from pipelines.engine.tasks.stages import Outcome
    from pipelines.jobs.facts.views import JudgedPart, Parts

FEW = 3
"""Intervals that are computed again unless as many are asked for."""
FIRST = 2
"""Rows of each side that are told of a table that differs."""
AGAIN = np.uint64(0x9E3779B97F4A7C15)
WITHOUT_TURNS = "out of rows whose files somebody has put together without their turns"
Row = dict[str, Any]


@dataclass(frozen=True)
class ComputedCommit:
    """A commit that tasks made of what landed, in one of the legs of a run."""

    leg: str
    part: JudgedPart
    entry: Entry


@dataclass(frozen=True, kw_only=True)
class DeepSample:
    """Which intervals are computed again."""

    seed: int
    most: int | None = FEW
    """How many; None for all that can be."""

    def of(self, every: Sequence[ComputedCommit]) -> list[ComputedCommit]:
        """Choose some, which stay in their order."""
        if self.most is None or self.most >= len(every):
            return list(every)
        places = random.Random(self.seed).sample(range(len(every)), self.most)  # noqa: S311 - no secret
        return [every[place] for place in sorted(places)]


def sample_of(most: str | None, seed: int | None, *, deep: bool) -> DeepSample | None:
    """Read how many intervals are to be computed again, and by which seed they are chosen; a new one unless given.

    >>> sample_of("all", 7, deep=True)
    DeepSample(seed=7, most=None)

    Args:
        most: a number, or `all`; a few unless given.
        seed: of a sample before, to have the same one.
        deep: whether any are.

    Raises:
        WrongUse: it is no number, or nothing is to be computed.
    """
    if not deep:
        if most is not None or seed is not None:
            raise WrongUse("--sample and --seed say which intervals --deep computes again: give --deep with them")
        return None
    if most not in {None, "all"} and not (str(most).isdecimal() and int(str(most))):
        raise WrongUse(f"--sample must be a number of intervals from 1 on, or all; it is `{most}`")
    known = random.SystemRandom().randrange(1_000_000) if seed is None else seed
    return DeepSample(seed=known, most=None if most == "all" else int(most or FEW))


def recomputed(parts: Parts, sample: DeepSample) -> Reckoned:
    """Compute some of the judged intervals, or of a stream's epochs, again and hold them against what was said.

    Args:
        parts: what is judged, by leg; only read.
        sample: how many, and which.

    Returns:
        The outcome. A row of it is a table of a commit that came out otherwise, or a commit that could not be computed
        though nothing was known to hinder it; what was known to stands in its sentence.
    """
    free, hindered = _sorted_out(parts)
    chosen, rows = sample.of(free), list[Row]()
    for each in tuple(chosen):
        try:
            rows += _again(each)
        except TurnsLostError:
            hindered[WITHOUT_TURNS].append(each)
            chosen.remove(each)
            free.remove(each)
    asked = f"{len(chosen):,} of {len(free) + sum(map(len, hindered.values())):,}, chosen by seed {sample.seed}"
    told = [f"asked of {asked}: {_named(chosen)}" if chosen else "asked of none"]
    told += [f"cannot be recomputed: {_named(some)}, {why}" for why, some in hindered.items()]
    return Reckoned(
        law=as_recomputed("; ".join(told)),
        looked_at=sum(ContentHash.from_text(text).rows for each in chosen for text in each.entry.hashes.values()),
        unexpected=sum(max(int(row.get("rows", 0)), 1) for row in rows),
        rows=tuple(rows),
    )


def _sorted_out(parts: Parts) -> tuple[list[ComputedCommit], dict[str, list[ComputedCommit]]]:
    """Give the commits that can be computed again, and by reason those that cannot."""
    free: list[ComputedCommit] = []
    hindered: dict[str, list[ComputedCommit]] = defaultdict(list)
    for leg, part in parts.items():
        entries = [entry for entry in part.judged.entries if can_be_remade(part.state, entry.commit)]
        numbers = sorted({number for entry in entries for number in entry.sequences})
        gone = frozenset(sequence.id for sequence in removed_among(landed_path(run_root(part.root)), numbers))
        for entry in entries:
            why = _hindrance(part.state, entry, gone)
            (hindered[why] if why else free).append(ComputedCommit(leg, part, entry))
    return free, hindered


def _hindrance(state: LogState, entry: Entry, gone: frozenset[int]) -> str:
    """Say why a commit cannot be computed again; nothing where it can."""
    if not gone.isdisjoint(entry.sequences):
        return "whose landed rows are no longer kept"
    ground = state.parent_of(entry.commit)
    if ground != START_OF_RUN and ground not in state.visible:
        return "which began from a carry that has been replaced since"
    formats = {carry_format(state, each) for each in (ground, entry.commit)} - {None, UPGRADES.current}
    if formats or _fingerprint_now(str(entry.plan)) != entry.fingerprint:
        return "which another version of an operator made"
    return ""


@lru_cache(maxsize=64)
def _fingerprint_now(plan: str) -> str | None:
    """Give the fingerprint that a plan's flow has with the operators that are installed; None where it has none."""
    try:
        return fingerprint_of(flow_from_json(json.loads(plan)["flow"]))
    except PulselineError:
        return None


def _named(some: Iterable[ComputedCommit]) -> str:
    """Name commits as commands do: 8, or of another leg timed:8."""
    legs: dict[str, list[int]] = defaultdict(list)
    for each in some:
        legs[each.leg].append(each.entry.commit)
    spelled = [("" if leg == MAIN else f"{leg}:") + numbered(sorted(commits)) for leg, commits in legs.items()]
    return ("commits " if sum(map(len, legs.values())) > 1 else "commit ") + "; ".join(spelled)


def _again(made: ComputedCommit) -> list[Row]:
    """Compute a commit again, and give a row for each table that came out otherwise.

    Raises:
        TurnsLostError: of what crossed to its leg the turns are gone.
    """
    part, entry = made.part, made.entry
    about = {
        "commit": entry.commit,
        **({} if made.leg == MAIN else {"leg": made.leg}),
        "start": instant_text(entry.span.start),
        "end": instant_text(entry.span.end),
    }
    try:
        landing = landed_path(run_root(part.root))
        sequences = tuple(read_sequence(landing, number) for number in entry.sequences)
        with TemporaryDirectory(prefix="pulseline-deep-") as name:
            folder = Path(name)
            outcome, unlike = worked_aside(part.root, part.state, entry, sequences, CoreEngine(), folder)
            return [about | _difference(part, entry, each, outcome, folder) for each in unlike]
    except TurnsLostError:
        raise
    except FileDamagedError as damaged:
        problem = f"it cannot be read ({damaged.problem}): pulseline doctor FLOW --deep --repair has it again"
        return [about | {"file": damaged.file, "problem": problem}]
    except (PulselineError, OSError, pa.ArrowException) as error:
        return [about | {"problem": str(error)}]


def _difference(part: JudgedPart, entry: Entry, unlike: Unlike, outcome: Outcome, folder: Path) -> Row:
    """Say how a table differs: both hashes, and the first rows that only one side has."""
    names = _tables(part, entry, unlike.table, outcome)
    leave_out = CARRY_NOT_HASHED if unlike.table == CARRY else NOT_HASHED
    lists = FileLists(part.root, part.state)
    only_published, only_recomputed = _Rest(), _Rest()
    for name in names:
        stood = _rows([part.root / name / file.name for file in lists.holder(name, entry.commit)], entry.commit)
        came = _rows([folder / name / file.name for file in outcome.files.get(name, ())], entry.commit)
        only_published.add(_only(stood, came, leave_out))
        only_recomputed.add(_only(came, stood, leave_out))
    return {
        "table": unlike.table,
        "rows": max(only_published.count, only_recomputed.count),
        "published": unlike.stands,
        "recomputed": unlike.came,
        "only_published": str(only_published),
        "only_recomputed": str(only_recomputed),
    }


def _tables(part: JudgedPart, entry: Entry, table: str, outcome: Outcome) -> list[str]:
    """Name the folders of what a commit said one hash of: a stream, the ledger, or all parts of the carry."""
    if table == CARRY:
        wrote = {*FileLists(part.root, part.state).of(entry.commit), *outcome.files}
        return sorted(name for name in wrote if name.startswith(f"{CARRY}/"))
    return [LEDGER if table == LEDGER else table_name(part.root, stream_path(part.root, table))]


@dataclass
class _Rest:
    """Rows that one side alone has: how many, and the first."""

    count: int = 0
    first: list[Row] = field(default_factory=list)

    def add(self, rows: pa.Table) -> None:
        self.count += rows.num_rows
        self.first += rows.slice(0, FIRST - len(self.first)).to_pylist()

    def __str__(self) -> str:
        told = [", ".join(f"{name} {value}" for name, value in row.items() if value is not None) for row in self.first]
        return " | ".join(told) or "none"


def _rows(files: Sequence[Path], commit: int) -> pa.Table:
    """Read the rows of a commit, in the order of arrival."""
    there = [file for file in files if file.exists()]
    if not there:
        return pa.table({})
    rows = read_rows(there, where=pc.field(COMMIT) == commit)
    names = [name for name in ("arrival", "landed_at", "place") if name in rows.column_names]
    return rows.sort_by([(name, "ascending") for name in names]) if names else rows


def _only(side: pa.Table, other: pa.Table, leave_out: frozenset[str]) -> pa.Table:
    """Give the rows that one side has and the other has not, or has fewer times."""
    if not other.num_rows or not side.num_rows:
        return side
    names = [name for name in side.column_names if name in other.column_names and name not in leave_out]
    mine, others = (_each_once(row_hashes(rows.select(names))) for rows in (side, other))
    return side.select(names).filter(pa.array(~np.isin(mine, others)))


def _each_once(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Tell rows that say the same apart: the first of them, the second, and so on."""
    order = np.argsort(words, kind="stable")
    laid = words[order]
    firsts = np.flatnonzero(np.concatenate([[True], laid[1:] != laid[:-1]]))
    times = np.arange(len(laid)) - np.repeat(firsts, np.diff(np.append(firsts, len(laid))))
    told = np.empty_like(words)
    told[order] = laid + times.astype(np.uint64) * AGAIN
    return told
