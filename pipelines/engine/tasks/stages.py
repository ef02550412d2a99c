"""One commit's work: the stages of a flow over a span, as tasks for any engine, and what came of them.

A stage's tasks read what stages before it wrote, so it waits for those, and stages that read nothing of each other run
at the same time. The tasks that run at one time know nothing of each other and run wherever the engine puts them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Protocol

from pipelines.engine.columnar.columns import LEDGER_SCHEMA, stream_schema
from pipelines.engine.commits.carry_format import require_current
from pipelines.engine.commits.delta_log import check_columns, create, exists
from pipelines.engine.commits.entry import LEDGER, START_OF_RUN
from pipelines.engine.commits.file_lists import FileLists
from pipelines.engine.commits.log_held import unlike
from pipelines.engine.commits.paths import (
    LOG,
    NewFile,
    SchemaChangedError,
    TableLostError,
    TornLogError,
    ledger_path,
    stream_path,
    table_name,
)
from pipelines.engine.commits.readers import log_state
from pipelines.engine.commits.table_log import TableLog
from pipelines.engine.files.folders import CARRY
from pipelines.engine.files.writing import Layout, Written
from pipelines.engine.tasks.carry import Writes
from pipelines.engine.tasks.link_catalogue import link_of
from pipelines.engine.tasks.own_carry import carry_of, of_bucket
from pipelines.engine.tasks.task import CommitShare, Done, Input, Task, flow_of, payloads
from pipelines.flows.plan import cut, parts_of
from pipelines.operators.rows import INFINITY
from pipelines.operators.scan import NO_BLIND

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from pipelines.engine.commits.history import LogState
    from pipelines.engine.landing.sequence import Chain
    from pipelines.flows.model import Flow
    from pipelines.flows.plan import Plan, Stage


FEW = 50_000
"""Rows taken in, made by the commit before and standing in the carry, up to which a stage is one task."""


class Engine(Protocol):
    """Whoever runs the tasks of a stage; the same tasks everywhere."""

    name: str

    def run(self, tasks: Sequence[Task]) -> list[Done]:
        """Run tasks, in any order and anywhere that sees the root, and give what each wrote."""

    def cores(self) -> int:
        """Say how many tasks run at once; an engine that has to start for that does."""

    def close(self) -> None:
        """Give back what running took."""


class Landed(Protocol):
    """Where the rows of a span lie: one or more closed sequences of the landing."""

    @property
    def buckets(self) -> int:
        """Give the number of buckets that the landing lays rows out in."""

    def inputs(self, source: str, bucket: int) -> Sequence[Chain]:
        """Give the readers of a source's bucket: chains of pieces, in order within a chain."""


class Queued(Protocol):
    """Where the rows of a span lie that other legs have published."""

    def inputs(self, stream: str, bucket: int) -> Sequence[Chain]:
        """Give the readers of a stream's bucket, as `Landed` does; rows from before the span may be there."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """What one commit does: which flow, over which span, from which carry."""

    root: Path
    definition: str
    schemas: Mapping[str, pa.Schema]
    commit: int
    parent: int
    start: int
    close: int
    landed: Landed
    state: LogState
    blind: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    final: int | None = None
    writes: Writes = Writes.BASE
    session: str = ""
    kept: int = 0
    cuts: tuple[tuple[int, int], ...] = ()
    leg: str = ""
    """The leg that works, where the flow has legs: only its stages run."""
    queued: Queued | None = None
    """What crosses to it from other legs."""
    rows: int | None = None
    """Rows that it takes in, where they were counted."""
    into: Path | None = None
    """Folder that takes the files where the run is not to have them."""

    @property
    def target(self) -> Path:
        """Give the folder below which files are written."""
        return self.into or self.root

    @cached_property
    def lists(self) -> FileLists:
        """Give the files of the commits before it."""
        return FileLists(self.root, self.state)

    @cached_property
    def few(self) -> bool:
        """Say whether there is probably so little to do that cutting it into tasks costs more; that changes no row.

        Nobody knows beforehand what timers it brings: as many as the commit before it did, for a guess.
        """
        before = self.state.commits.get(self.parent)
        if self.rows is None or before is None:
            return False
        made = sum(int(n) for counted in before.counts.values() if isinstance(counted, dict) for n in counted.values())
        base = self.state.carry_line(self.parent).base
        tables = self.lists.of(base).items() if base else ()
        kept = sum(file.rows for table, files in tables if table.startswith(CARRY) for file in files)
        return self.rows + max(1, len(self.cuts)) * made + kept <= FEW


@dataclass
class Outcome:
    """What the tasks of a commit, or of several in one go, wrote, by table."""

    files: dict[str, list[Written]] = field(default_factory=lambda: defaultdict(list))
    shares: dict[int, CommitShare] = field(default_factory=lambda: defaultdict(CommitShare))
    """By commit."""
    next_due: int = INFINITY
    newest: dict[str, dict[str, int]] = field(default_factory=dict)
    due: list[npt.NDArray[np.int64]] = field(default_factory=list)

    def add(self, done: Done) -> None:
        """Take in one task."""
        for file in done.files:
            self.files[file.table].append(file)
        for number, share in done.shares.items():
            self.shares[number] = self.shares[number] + share
        self.next_due = min(self.next_due, done.next_due)
        self.due.append(done.due)
        for name, found in done.newest.items():
            known = self.newest.setdefault(name, {})
            known.update({what: max(tick, known.get(what, tick)) for what, tick in found.items()})

    def new_files(self) -> dict[str, list[NewFile]]:
        """Give the files of each table as the driver adds them."""
        return {
            table: [NewFile(name=file.name, rows=file.rows, size=file.size, hash=file.hash) for file in files]
            for table, files in self.files.items()
        }


def run_stages(work: Work, engine: Engine, progress: Callable[[str], None] = lambda _: None) -> Outcome:
    """Run every stage of a flow over a span.

    Args:
        work: the commit.
        engine: who runs the tasks.
        progress: told in a few words what runs now.

    Raises:
        CommitError: the carry to begin from is not of the format that is written now.
    """
    require_current(work.state, work.parent)
    flow, plan = flow_of(work.definition)
    outcome = Outcome()
    for wave in plan.waves(work.leg):
        by_stage = [_tasks(work, flow, plan, stage, outcome) for stage in _spread(work, flow, wave, engine)]
        for tasks in by_stage:
            progress(f"{', '.join(tasks[0].streams)}: {len(tasks)} {'task' if len(tasks) == 1 else 'tasks'}")
        for done in engine.run([task for tasks in by_stage for task in tasks]):
            outcome.add(done)
    return outcome


def _spread(work: Work, flow: Flow, wave: Sequence[Stage], engine: Engine) -> Sequence[Stage]:
    """Cut stages into parts where their tasks are fewer than run at once; each part then reads by itself."""
    if work.few or all(len(parts_of(flow, stage)) == 1 for stage in wave):
        return wave
    most = max(1, engine.cores() // sum(_buckets(work, stage) for stage in wave))
    return [part for stage in wave for part in cut(flow, stage, most)]


def _buckets(work: Work, stage: Stage) -> int:
    return work.landed.buckets if stage.key and not work.few else 1


def _tasks(work: Work, flow: Flow, plan: Plan, stage: Stage, before: Outcome) -> list[Task]:
    buckets = _buckets(work, stage)
    line = work.state.carry_line(work.parent)
    carry = carry_of(work, flow, stage, line)
    layouts = {name: layout_of(plan, stage, name, work.landed.buckets) for name in (*stage.streams, *stage.sides)}
    return [
        Task(
            root=str(work.target),
            definition=work.definition,
            schemas=work.schemas,
            stage=stage.index,
            streams=stage.streams,
            bucket=bucket,
            buckets=buckets,
            commit=work.commit,
            line=line,
            start=work.start,
            close=work.close,
            inputs=tuple(_input(work, flow, plan, stage, bucket, name, before) for name in stage.reads),
            carry=of_bucket(carry, stage, bucket, buckets),
            layouts=layouts,
            blind=work.blind,
            final=work.final,
            writes=work.writes,
            session=work.session,
            kept=work.kept,
            cuts=work.cuts,
        )
        for bucket in range(buckets)
    ]


def layout_of(plan: Plan, stage: Stage, name: str, buckets: int) -> Layout:
    """Lay a stream out for the first later stage that reads it by a key of its own; one without a key has only CTIs."""
    for later in plan.stages[stage.index + 1 :]:
        if name in later.reads and later.key and stage.key:
            return Layout(key=later.key, buckets=buckets)
    return Layout()


def _input(  # noqa: PLR0913 - one input of one task
    work: Work, flow: Flow, plan: Plan, stage: Stage, bucket: int, name: str, before: Outcome
) -> Input:
    """Give what one task reads of a source or stream: its own bucket's row groups where they are laid out by its key.

    Rows are in order only inside the buckets that a file was laid out by, so each of those is a reader of its own.
    """
    crosses = False
    if name in flow.sources:
        key, buckets = flow.sources[name].key, work.landed.buckets
        files: Callable[[str, int], Sequence[Chain]] = work.landed.inputs
    else:
        maker = plan.stage_of(name)
        layout = layout_of(plan, maker, name, work.landed.buckets)
        key, buckets = layout.key, layout.buckets
        crosses = work.queued is not None and maker.leg != work.leg
        files = work.queued.inputs if work.queued and crosses else partial(_written_files, work.target, before)
    shared = bool(stage.key) and not work.few
    own = shared and key == stage.key
    wanted = [bucket] if own else range(buckets)
    readers = [reader for each in wanted for reader in files(name, each)]
    # CTIs for a whole stream bind every key, so every bucket takes them all.
    mixed = shared and not own and bool(flow.key_of(name))
    return Input(name=name, readers=tuple(readers), mixed=mixed, crosses=crosses)


def _written_files(root: Path, before: Outcome, name: str, bucket: int) -> list[Chain]:
    readers: list[Chain] = []
    for file in before.files.get(f"streams/{name}", []):
        groups = tuple(i for i, of in enumerate(file.groups) if of == bucket)
        if groups:
            readers.append(((str(root / file.table / file.name), groups),))
    return readers


def carry_schemas(flow: Flow, schemas: Mapping[str, pa.Schema]) -> dict[str, dict[str, pa.Schema]]:
    """Give the schema of each carry table of a flow, by stream and part."""
    known = payloads(flow, schemas)
    return {
        name: link_of(stream, [known[given] for given in stream.inputs], None, 0, {}, NO_BLIND).part_schemas()
        for name, stream in flow.streams.items()
    }


class ColumnsSeen:
    """The columns that tables were seen to have under one lease: nobody else may write, so each is looked at once.

    Opening a table costs what its log holds, and a year of days asks for the same nine tables again and again. What
    others do to columns all the same is found when a commit is begun (`settling.Tables.agree`).
    """

    def __init__(self) -> None:
        """Have seen none."""
        self._seen: dict[Path, pa.Schema] = {}

    def check(self, path: Path, schema: pa.Schema) -> None:
        """See that a table, where there is one, has these columns.

        Raises:
            SchemaChangedError: it has others.
        """
        if self._seen.get(path) == schema:
            return
        check_columns(path, schema)
        if exists(path):
            self._seen[path] = schema


def create_tables(
    root: Path, flow: Flow, schemas: Mapping[str, pa.Schema], seen: ColumnsSeen | None = None, leg: str = ""
) -> None:
    """Create the tables that a flow writes, or a leg of it, those that are not there.

    Args:
        root: the run's folder.
        flow: the model.
        schemas: payload of each source.
        seen: what is known of tables under the caller's lease.
        leg: the leg that writes, where the flow has legs.

    Raises:
        SchemaChangedError: a table is there with other columns.
        TableLostError: a table, or the carry to begin from, is not there, though published commits wrote it.
    """
    state = log_state(root)
    require_carry(root, state, state.tip.commit if state.tip else START_OF_RUN)
    wanted = table_schemas(root, flow, schemas, leg)
    missing = [path for path in wanted if not exists(path)]
    if missing:
        _refuse_lost(root, state, missing)
    known = seen or ColumnsSeen()
    for path, schema in wanted.items():
        if path in missing:
            create(path, schema)
        _check_own(root, path, schema, known)


def check_tables(root: Path, flow: Flow, schemas: Mapping[str, pa.Schema], seen: ColumnsSeen | None = None) -> None:
    """See that the tables that are there have the columns that a flow writes; nothing is made.

    Args:
        root: the run's folder.
        flow: the model.
        schemas: payload of each source.
        seen: what is known of tables under the caller's lease.

    Raises:
        SchemaChangedError: one has others.
    """
    known = seen or ColumnsSeen()
    for path, schema in table_schemas(root, flow, schemas).items():
        _check_own(root, path, schema, known)


def _check_own(root: Path, path: Path, schema: pa.Schema, seen: ColumnsSeen) -> None:
    """See that a table has its columns; of one that somebody else gave others that is said, and not the flow's name.

    Raises:
        SchemaChangedError: the flow writes others.
        ForeignWriteError: somebody else changed them.
        TornLogError: its log has others than its files.
    """
    try:
        seen.check(path, schema)
    except SchemaChangedError:
        log, state = TableLog(path), log_state(root)
        log.look(state.recorded.versions.get(table_name(root, path)))
        log.refuse_foreign()
        if said := unlike(root, path, state):
            raise TornLogError(str(path), LOG, said) from None
        raise


def table_schemas(root: Path, flow: Flow, schemas: Mapping[str, pa.Schema], leg: str = "") -> dict[Path, pa.Schema]:
    """Give the columns of each table that a flow writes, or a leg of it, by its folder."""
    known = payloads(flow, schemas)
    names = (name for name in flow.tables() if flow.legs.get(flow.owner(name).name, "") == leg)
    wanted = {stream_path(root, name): stream_schema(known[name]) for name in names}
    wanted[ledger_path(root)] = LEDGER_SCHEMA
    return wanted


def require_carry(root: Path, state: LogState, commit: int) -> None:
    """See that the files are there that hold the carry at a commit.

    Args:
        root: the run's folder.
        state: the log.
        commit: a commit's number; 0 for the empty carry.

    Raises:
        TableLostError: one is not there.
    """
    lists, line = FileLists(root, state), state.carry_line(commit)
    for each in (*([line.base] if line.base else []), *line.deltas):
        for table in lists.of(each):
            if table.startswith(CARRY):
                for file in lists.holder(table, each):
                    if not (root / table / file.name).exists():
                        raise TableLostError(str(root / table), each)


def _refuse_lost(root: Path, state: LogState, missing: Sequence[Path]) -> None:
    """Refuse to make a table anew whose rows are published."""
    written: dict[Path, int] = {}
    for entry in state.published:
        named = [name for name in entry.counts if entry.rows_of(name)]
        written |= {ledger_path(root) if name == LEDGER else stream_path(root, name): entry.commit for name in named}
    for path in missing:
        if path in written:
            raise TableLostError(str(path), written[path])
