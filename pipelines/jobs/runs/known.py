"""What is known of a run without building its operators: where it lies, what its log says, its streams and their keys.

A published run is read by the flow that made it, which stands in its commits; the file may have changed since, or be
gone. Nothing here loads the compiler, so looking at a run stays quick.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.engine.columnar.clock import wall_now
from pipelines.engine.commits.entry import CommitKind
from pipelines.engine.commits.errors import LegGoneError
from pipelines.engine.commits.file_lists import FileLists
from pipelines.engine.commits.history import LogState, State
from pipelines.engine.commits.instants import versions_now
from pipelines.engine.commits.lease import seems_held
from pipelines.engine.commits.leg_roots import (
    gone_legs,
    is_planned_in_legs,
    is_taken_from,
    leg_root,
    noted_legs,
    overtaken,
    planned_legs,
    require_own,
    root_of,
)
from pipelines.engine.commits.log import CommitLog
from pipelines.engine.commits.log_held import unlike
from pipelines.engine.commits.paths import (
    FileMissingError,
    TableError,
    data_tables,
    lands_elsewhere,
    require_files,
    table_name,
)
from pipelines.engine.commits.readers import log_state
from pipelines.engine.commits.sweep import opened
from pipelines.engine.commits.table_log import NO_VERSION, harmful
from pipelines.engine.files.stored import path_of
from pipelines.errors import PulselineError
from pipelines.flows.definition import flow_from_json, flow_to_json
from pipelines.flows.errors import nearest
from pipelines.flows.feeds.catalog import is_live
from pipelines.flows.legs import MAIN, in_legs, legs_of
from pipelines.flows.model import DIVERTED, Flow, main_of, sides_of
from pipelines.jobs.environment.errors import JobError, WrongUse
from pipelines.jobs.environment.parameters import parameter_words
from pipelines.jobs.environment.settings import MAIN_RUN, command, flow_files, load_flow, read_settings
from pipelines.jobs.runs.played import read_range
from pipelines.jobs.runs.replaced import own_file
from pipelines.jobs.text.moments import Moments
from pipelines.operators.plain_words import counted, some_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pipelines.engine.commits.history import Entry
    from pipelines.flows.legs import Leg
    from pipelines.jobs.environment.settings import Settings

Definition = dict[str, Any]
SUFFIXES = (".yaml", ".yml")
WITH_PARAMETERS = frozenset({"run", "stream", "finish", "parity", "replay", "apply"})
"""Commands that read the flow's file, so must be told the parameters of the run again."""
REGIONS_OFF = ("--regions", "off")
ANY_START, ANY_END = "YYYY-MM-DD", "YYYY-MM-DD"
FIRST_DAYS = {"nycflights13.departures": ("2013-01-01", "2013-01-08")}
"""For built-in feeds, a span in which they have rows."""


@dataclass(frozen=True, kw_only=True)
class KnownRun:
    """A flow's run, as its tables and its file tell."""

    called: str
    """What the user called the flow: its name or its file."""
    name: str
    run: str
    root: Path
    state: LogState
    definition: Definition
    """Of the flow that made the newest commit; of the file where there is none."""
    given: dict[str, str] = field(default_factory=dict)
    """Parameters that the newest commit's run was given."""

    @cached_property
    def parts(self) -> tuple[KnownRun, ...]:
        """Give the run by its legs, the one that takes what lands first; itself alone where it is in one piece.

        Raises:
            LegsLostError: nothing says any more which legs it has.
            LegMixedError: the folder of one holds another.
            LegGoneError: nothing is left of one.
        """
        for leg, told in gone_legs(self.root, self.state).items():
            folder = leg_root(self.root, leg)
            left = "its `commits` is gone" if folder.is_dir() else "nothing is there"
            raise LegGoneError(str(folder), leg, some_of(told["streams"]), left, self.rows_again(leg))
        return self.folders

    @cached_property
    def folders(self) -> tuple[KnownRun, ...]:
        """Give the same of a run of which a leg may be gone: of that one nothing is published.

        Raises:
            LegsLostError: nothing says any more which legs it has.
            LegMixedError: the folder of one holds another.
        """
        noted = planned_legs(self.root, self.state) or {}
        roots = {leg: leg_root(self.root, leg) for leg in noted if leg != MAIN}
        # Tables that are left of one do not make it one that has lost some of its log.
        gone = gone_legs(self.root, self.state)
        states = {leg: LogState.of([]) if leg in gone else log_state(root) for leg, root in roots.items()}
        found = {MAIN: self, **{leg: replace(self, root=root, state=states[leg]) for leg, root in roots.items()}}
        for leg, told in noted.items():
            require_own(found[leg].root, leg, told["streams"], found[leg].state)
        return tuple(found.values())

    @property
    def legs(self) -> tuple[Leg, ...]:
        """Give the legs of the flow of the newest plan, also where a reset took its commit back: a run keeps them."""
        plan = self.state.newest_plan
        return legs_of(flow_from_json(json.loads(plan)["flow"] if plan else self.definition))

    @property
    def by_leg(self) -> dict[str, KnownRun]:
        """Give the run by the names of its legs, the one that takes what lands first; in one piece it is that alone."""
        return {MAIN: self, **{part.root.name: part for part in self.parts[1:]}}

    @property
    def by_folder(self) -> dict[str, KnownRun]:
        """Give the same of a run of which a leg may be gone."""
        return {MAIN: self, **{part.root.name: part for part in self.folders[1:]}}

    @property
    def states(self) -> dict[str, LogState]:
        """Give what the logs of its legs say, by their names, as they were when this was opened."""
        return {leg: part.state for leg, part in self.by_leg.items()}

    def of(self, table: str) -> KnownRun:
        """Give the part of the run that makes a stream."""
        parts, own = self.parts, root_of(self.root, table)
        return next(part for part in parts if part.root == own)

    @cached_property
    def moments(self) -> Moments:
        """Say instants in the flow's timezone."""
        return Moments(str(self.definition["timezone"]))

    @property
    def grid(self) -> Flow:
        """Give the flow without sources and streams, for its grid."""
        return Flow(
            name=self.name,
            sources={},
            streams={},
            every=self.definition["every"],
            timezone=self.definition["timezone"],
        )

    @cached_property
    def sources(self) -> dict[str, Definition]:
        """Give the sources by name."""
        return {source["name"]: source for source in self.definition["sources"]}

    @cached_property
    def streams(self) -> dict[str, Definition]:
        """Give the streams by name, inputs before what reads them."""
        return {stream["name"]: stream for stream in self.definition["streams"]}

    @cached_property
    def tables(self) -> tuple[str, ...]:
        """Name every stream that is written, side streams right behind their own."""
        return tuple(table for name in self.streams for table in (name, *self.sides(name)))

    def sides(self, name: str) -> tuple[str, ...]:
        """Name the streams that the operator of a stream sets aside."""
        stream = self.streams[name]
        return sides_of(name, stream["operator"], stream["policy"])

    def aside(self, told: str) -> str:
        """Name what is set aside where the ledger says a stream; of one that the flow no longer has, too."""
        sides = self.sides(told) if told in self.streams else ()
        return next(iter(sides), told + DIVERTED)

    def order_key(self, table: str) -> tuple[str, ...]:
        """Name the columns by which a stream is numbered; none where it is stream-wide."""
        return tuple(self.streams[main_of(table)]["by"])

    def asked_key(self, table: str) -> tuple[str, ...]:
        """Name the columns that a user means by the key of a stream: its own, or of what leads to it."""
        known: dict[str, tuple[str, ...]] = {name: tuple(source["key"]) for name, source in self.sources.items()}

        def look(read: str) -> tuple[str, ...]:
            name = main_of(read)
            if name not in known:
                own = self.order_key(name)
                behind = set() if own else {look(given) for given in self.streams[name]["inputs"]}
                known[name] = own or (behind.pop() if len(behind) == 1 else ())
            return known[name]

        return look(table)

    def stream_of(self, told: str) -> str | None:
        """Name the stream that the ledger's name is of: of one within a loop, the loop; None of a source."""
        while told not in self.streams:
            told, dot, _ = told.rpartition(".")
            if not dot:
                return None
        return told

    def sources_of(self, table: str) -> tuple[str, ...]:
        """Name the sources whose rows can come out of a stream, in the order of the ports that lead to them."""
        return tuple(name for name in self.behind(table) if name in self.sources)

    def behind(self, table: str) -> Iterator[str]:
        """Name the source or stream of a table and all that lead to it, each once, in the order of ports."""
        left, seen = [table], set[str]()
        while left:
            name = main_of(left.pop())
            if name not in seen:
                seen.add(name)
                yield name
                left += () if name in self.sources else reversed(self.streams[name]["inputs"])

    def rows_again(self, leg: str) -> str:
        """Say what makes the rows of a leg again of which nothing is left: no leg may stand beyond what it reads."""
        if is_taken_from(self.root, leg):
            return (
                f"type {self.command('reset')}, which takes back what read it, then {self.command('stream')}, which "
                "makes their rows again"
            )
        return f"have {self.command('stream')} make its rows again"

    @property
    def is_applied(self) -> bool:
        """Say whether an `apply` stands in it: the flow of before may have promised what the one of now breaks.

        The same interval again is rejected again then, and a plan says what is to be made anew before it.
        """
        return any(row.kind is CommitKind.ADOPT for row in self.state.published)

    @property
    def out_of_step(self) -> tuple[str, ...]:
        """Say of each leg that ends before what another has read of it, which no rows can be counted by."""
        told = f"or a reset was cut short: {self.command('doctor')} says more"
        return tuple(f"{each}, {told}" for each in overtaken(self.root))

    @cached_property
    def damaged(self) -> tuple[str, ...]:
        """Say what is published and no reader sees: `commits`, or a table, has lost its newest versions."""
        doctor = self.command("doctor")
        return (
            *(f"{each}: {doctor} says more" for each in self._ahead()),
            *self.written_by_others,
            *(
                f"{name} is an older copy of itself, or its newest versions are gone: {doctor} says more"
                for name in self._older()
            ),
            *(f"{each}: {doctor} says how it is given up" for each in self._waiting_without_files()),
            *(f"{each}: {doctor} says what can be had again" for each in self._without_files()),
        )

    def _ahead(self) -> Iterator[str]:
        """Say whether a table follows a commit that `commits` does not have as published."""
        held = max((opened(path).settled() for path in data_tables(self.root)), default=0)
        # What was published since the run was opened is in the log as it is now.
        if held > _newest(self.state) and held > _newest(log_state(self.root)):
            yield f"tables hold commit {held}, and `commits` does not have it as published"

    @property
    def written_by_others(self) -> Iterator[str]:
        """Say what others wrote to the tables, and what mends it: readers see other rows than the run published."""
        for part in self.parts:
            for path in data_tables(part.root):
                for told in self._by_others_in(part, path):
                    yield f"{told}: {self.command('doctor', '--repair')} puts the rows of the run back"

    def _by_others_in(self, part: KnownRun, path: Path) -> Iterator[str]:
        called = path.relative_to(self.root).as_posix()
        harm = harmful(path, part.state.recorded.versions.get(table_name(part.root, path)))
        for each in harm:
            yield f"{called}: {each.words}"
        if not harm and (said := unlike(part.root, path, part.state)):
            yield f"{called}: {said}"

    def _waiting_without_files(self) -> Iterator[str]:
        """Say of a commit that waits to be published that it can never be: files of it are gone, or cut short."""
        for part in self.parts:
            waits = part.state.pending
            if waits is None or waits.state is not State.WRITTEN:
                continue
            try:
                for name, files in FileLists(part.root, part.state).of(waits.commit).items():
                    require_files(part.root / name, files)
            except FileMissingError as gone:
                file = (path_of(gone.table) / gone.name).relative_to(self.root).as_posix()
                yield f"{file} of commit {waits.commit}, which waits to be published, is gone or cut short"
            except TableError:
                # Which files it has is not known either: doctor says so.
                continue

    def _without_files(self) -> Iterator[str]:
        """Say of each table that has lost files of it; what is in those that are there is not looked at."""
        for part in self.parts:
            for path in data_tables(part.root):
                names = [Path(name) for name in opened(path).files]
                there = {
                    folder / file.name
                    for folder in {name.parent for name in names}
                    if (path / folder).is_dir()
                    for file in (path / folder).iterdir()
                }
                gone = sorted(name.as_posix() for name in names if name not in there)
                if gone:
                    called = path.relative_to(self.root).as_posix()
                    verb = "are" if gone[1:] else "is"
                    yield f"{counted(len(gone), 'file')} of {called} {verb} gone ({gone[0]})"

    def _older(self) -> Iterator[str]:
        """Name the tables that were further once, or whose log is gone."""
        for part in self.parts:
            now = versions_now(part.root)
            gone = dict.fromkeys(part.state.recorded.versions.keys() - now.keys(), NO_VERSION)
            for name, version in sorted({**now, **gone}.items()):
                if part.state.is_older(name, version):
                    yield (part.root / name).relative_to(self.root).as_posix()

    def require_whole_log(self) -> None:
        """See that `commits` has not lost its newest versions: what they published would be missing without a word.

        Raises:
            JobError: tables hold what it does not have as published.
        """
        for ahead in self._ahead():
            raise JobError(f"what is published must stand in the log of the run: {ahead}: {self.command('doctor')}")

    def require_own_rows(self, *tables: str) -> None:
        """See that the rows of some tables are those that the run published, of a command that tells them.

        Args:
            tables: streams, or `ledger`; all of the run where none is named.

        Raises:
            JobError: somebody else has changed them.
        """
        for part in self.parts:
            for path in data_tables(part.root):
                for told in self._by_others_in(part, path) if not tables or path.name in tables else ():
                    repair = self.command("doctor", "--repair")
                    raise JobError(
                        f"rows that are told must be those that the run published: {told}: {repair} puts them back; "
                        f"the table as it is now: {self.command('tables')}"
                    )

    def require_undamaged(self) -> None:
        """See that what is published is there, of a command that reads no table itself.

        Raises:
            JobError: `commits`, or a table, has lost its newest versions.
        """
        if told := self.damaged:
            raise JobError(f"what is published must be in the tables and the log of the run: {told[0]}")

    def command(self, verb: str, *words: str) -> str:
        """Spell a command over this run, ready to be typed."""
        given = parameter_words(self.given) if verb in WITH_PARAMETERS else []
        if verb == "stream" and self._is_kept_together:
            words = (*words, *REGIONS_OFF)
        return command(verb, self.called, *words, *given, run=self.run)

    @cached_property
    def flow_now(self) -> Flow | None:
        """Give what the flow's file says now, with the run's parameters; None where it cannot be read."""
        try:
            return load_flow(read_settings(), self.called, self.given)
        except PulselineError:
            return None

    @property
    def _is_kept_together(self) -> bool:
        """Say whether it began in one piece, though the flow's file asks for regions of its own."""
        if not self.state.newest_plan or is_planned_in_legs(self.state):
            return False
        return self.flow_now is not None and bool(in_legs(self.flow_now))

    def run_command(self, start: int, end: int) -> str:
        """Spell the command that runs a span, in ticks."""
        return self.command("run", "--start", self.moments.argument(start), "--end", self.moments.argument(end))

    def commit(self, number: int) -> Entry:
        """Give a commit that a user names.

        Raises:
            WrongUse: the run has none of that number.
        """
        entry = self.state.commits.get(number)
        if entry is None:
            status = self.command("status")
            raise WrongUse(f"--commit must be a commit of run `{self.run}`; there is no commit {number}: see {status}")
        return entry

    @property
    def is_recorded(self) -> bool:
        """Say whether all its feeds are recorded, so that what landed of them can land again."""
        return not any(is_live(source["feed"]["kind"]) for source in self.sources.values())

    def first_command(self) -> str:
        """Spell a command with which this run can begin: a stream by the real clock, and one that began in legs."""
        if not self.is_recorded:
            return self.command("stream")
        if read_range(self.root) is not None or any(
            row.kind is CommitKind.EPOCH for row in self.state.commits.values()
        ):
            # It streams: what nobody sees yet, or a reset took back, is played in the range that was asked for.
            return self.command("stream")
        feeds = [source["feed"]["name"] for source in self.sources.values()]
        start, end = next((FIRST_DAYS[feed] for feed in feeds if feed in FIRST_DAYS), (ANY_START, ANY_END))
        return self.command("run" if noted_legs(self.root) is None else "stream", "--start", start, "--end", end)

    def next_command(self) -> str:
        """Spell the command that goes on with a backfill, behind the newest published interval; its page at the end."""
        from pipelines.flows.grid import cuts_between

        end = max(entry.span.end for entry in self.state.published)
        if self.flow_now is not None and self.flow_now.ends is not None and end >= self.flow_now.ends:
            return self.command("report")
        return self.run_command(end, cuts_between(self.grid, end, end + 1)[-1])

    def named_commit(self, text: str) -> tuple[KnownRun, int]:
        """Give the part of the run that a commit is of, and its number: `8`, or of another leg `timed:8`.

        Raises:
            WrongUse: it is neither.
        """
        leg, _, number = text.rpartition(":")
        parts = self.by_leg
        if (leg or MAIN) not in parts or not number.isdecimal():
            legs = f", or with the leg before it ({', '.join(parts)}): timed:8" if len(parts) > 1 else ""
            raise WrongUse(f"--commit must be the number of a commit of run `{self.run}`{legs}; it is `{text}`")
        return parts[leg or MAIN], int(number)

    @property
    def stands(self) -> bool:
        """Say whether anything is published and was not taken back."""
        return any(row.kind in {CommitKind.INTERVAL, CommitKind.EPOCH} for row in self.state.published)

    def looking_at(self, commit: int) -> str:
        """Spell the command that shows what broke a rejected commit, its owner and remedy, and how to go on."""
        return self.command("check", "--commit", str(commit))

    def nothing_yet(self) -> str:
        """Say that nothing is published, and what to type."""
        told = f"nothing is published in run `{self.run}` of {self.name} yet, in {self.root}"
        if self.is_driven:
            return f"{told}, and its driver is at work; to look how far: {self.command('status')}"
        rejected = max((number for number, row in self.state.commits.items() if row.state is State.REJECTED), default=0)
        if rejected:
            return f"{told}: commit {rejected} was rejected; next: {self.looking_at(rejected)}"
        return f"{told}; next: {self.first_command()}"

    @property
    def is_driven(self) -> bool:
        """Say whether a driver is at work on the run."""
        return seems_held(self.root, self.state.lease, wall_now())


def _newest(state: LogState) -> int:
    newest = state.newest_published
    return newest.commit if newest else 0


def root_called(called: str, run: str) -> Path:
    """Give the folder of a run, whatever lies there."""
    settings = read_settings()
    return settings.root(flow_name(settings, called), run)


def open_run(called: str, run: str) -> KnownRun:
    """Find a flow's run and read its log.

    Args:
        called: name of the flow, or the path of its file.
        run: name of the run.

    Raises:
        WrongUse: no such flow, or no such run.
        FlowError: the flow was never run and its file makes no sense.
        CommitsLostError: the run has tables, and its log is gone.
        CommitsChangedError: somebody else wrote to its log.
    """
    settings = read_settings()
    name = flow_name(settings, called)
    root = settings.root(name, run)
    runs = runs_of(settings, name)
    if run not in runs:
        # Tables that stand without it say that it was there.
        CommitLog(root).require_none()
    if run != MAIN_RUN and run not in runs:
        raise WrongUse(f"no run `{run}` of {name}{offered(run, runs)}")
    state = log_state(root)
    plan = _plan(state)
    definition = plan.get("flow") or flow_to_json(load_flow(settings, called))
    given = plan.get("given", {})
    return KnownRun(called=called, name=name, run=run, root=root, state=state, definition=definition, given=given)


def open_run_of_home(name: str, run: str) -> KnownRun:
    """Open a run of a home as `open_run` does; what to type names the flow's file where no configuration has it.

    Args:
        name: of the flow.
        run: name of the run.

    Raises:
        WrongUse, FlowError, CommitsLostError: as of `open_run`.
    """
    known = open_run(name, run)
    file = own_file(known.root)
    has_it = name in {each.stem for each in flow_files(read_settings().config)}
    return known if has_it or file is None or not file.is_file() else replace(known, called=str(file))


def is_replayed(root: Path) -> bool:
    """Say whether a run was made by a replay: what it plays belongs to another run, and nothing goes on from it."""
    return lands_elsewhere(root)


def require_own_landing(root: Path, verb: str) -> None:
    """See that a run has a landing of its own before anything lands in it.

    Raises:
        WrongUse: the run was made by a replay, and what it plays belongs to another one.
    """
    if is_replayed(root):
        raise WrongUse(
            f"pulseline {verb} lands rows, and run `{root.name}` plays what another run landed, which is only read: "
            "--run NAME for a run of its own"
        )


def runs_of(settings: Settings, name: str) -> list[str]:
    """Name the runs of a flow that have tables."""
    return sorted(folder.parent.name for folder in (settings.home / name).glob("*/commits") if folder.is_dir())


def offered(word: str, known: Sequence[str]) -> str:
    """Say which of the known words was meant, and which there are.

    >>> offered("punctal", ["beating", "punctual"]), offered("x", [])
    ('; did you mean `punctual`? There are: beating, punctual', '; there are none')
    """
    if not known:
        return "; there are none"
    near = nearest(word, known)
    every = ", ".join(known)
    return f"; did you mean `{near}`? There are: {every}" if near else f"; there are: {every}"


def flow_name(settings: Settings, called: str) -> str:
    """Give the name that a flow's tables lie under; read no more of its file than that."""
    file = Path(called)
    if file.suffix not in SUFFIXES:
        file = settings.config / "flows" / f"{called}.yaml"
        if not file.is_file() and runs_of(settings, called):
            return called
    if not file.is_file():
        _refuse(settings, called)
    from pipelines.flows.document import Scalar, load

    named = load(file).entries.get("flow")
    return named.text if isinstance(named, Scalar) else load_flow(settings, called).name


def flow_name_or_file(settings: Settings, called: str) -> str:
    """Give the name of a flow of the configuration; what its file is called where that cannot be read."""
    with suppress(PulselineError):
        return flow_name(settings, called)
    return called


def _refuse(settings: Settings, called: str) -> None:
    if Path(called).suffix in SUFFIXES:
        raise WrongUse(f"no flow file {called}; the flows of {settings.config} are: {_names(settings)}")
    with_tables = {path.parent.parent.name for path in settings.home.glob("*/*/commits")}
    known = sorted({path.stem for path in flow_files(settings.config)} | with_tables)
    raise WrongUse(f"no flow `{called}`{offered(called, known)}")


def _names(settings: Settings) -> str:
    return ", ".join(path.stem for path in flow_files(settings.config)) or "none"


def _plan(state: LogState) -> Definition:
    """Give the newest plan that nothing superseded: the flow's definition, and the parameters that were given."""
    rows = sorted(state.commits.values(), key=lambda row: -row.commit)
    planned: Iterable[str | None] = (row.plan for row in rows if row.commit not in state.successors)
    newest = next((plan for plan in planned if plan), None)
    return {} if newest is None else dict(json.loads(newest))
