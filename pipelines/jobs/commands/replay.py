"""`pulseline replay`: play what a run recorded through the flow as it is now, into a run of its own, and compare.

The recording is read and never written to. The new run begins from the carry that the old one had where the recording
begins, so the same flow gives the same rows; where it gives others, the flow or its operators have changed.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipelines.engine.commits.driver import open_driver
from pipelines.engine.files.durable import link_folder
from pipelines.engine.live.epochs import SMALL_EPOCH, EpochRunner
from pipelines.engine.tasks.carry_over import adopt
from pipelines.engine.tasks.local import CoreEngine
from pipelines.errors import Exit
from pipelines.flows.changes import changes
from pipelines.jobs.environment.engines import engine_named
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.parameters import parameters_of
from pipelines.jobs.environment.settings import MAIN_RUN, command, load_flow, read_settings
from pipelines.jobs.facts.recorded import recorded
from pipelines.jobs.proofs.certificates import keep_certificate
from pipelines.jobs.proofs.comparing import compare, facts_of, lines_of
from pipelines.jobs.runs.in_legs import open_caught_up
from pipelines.jobs.runs.in_use import as_run
from pipelines.jobs.runs.lineage import followed
from pipelines.jobs.runs.lineage_job import Job
from pipelines.jobs.runs.looked_up import unasked_of
from pipelines.jobs.runs.remade import is_remade, make_anew
from pipelines.jobs.runs.standing import standing
from pipelines.operators.plain_words import counted
from pipelines.operators.rows import TICKS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from pipelines.engine.landing.sequence import LandedSequence
    from pipelines.engine.tasks.stages import Engine
    from pipelines.flows.model import Flow
    from pipelines.jobs.environment.settings import Settings
    from pipelines.jobs.facts.recorded import RecordedPart

REPLAY_RUN = "replay"
COMMAND = "replay"
MOST_ROWS, MOST_SEQUENCES = 1_000_000, 512
"""Rows and sequences after which an epoch of a replay that goes as fast as it can ends."""
SAID_EVERY = 2.0
"""Seconds between two lines of progress."""
NAP = 0.2


@dataclass(frozen=True, kw_only=True)
class ReplayRequest:
    """What `pulseline replay` was asked for."""

    flow: str
    start: str | None = None
    end: str | None = None
    run: str = MAIN_RUN
    """The run whose recording is played."""
    into: str = REPLAY_RUN
    speed: float | None = None
    """Recorded time per wall-clock time; None for as fast as it goes."""
    engine: str | None = None
    params: Sequence[str] = ()
    as_json: bool = False


@dataclass(frozen=True, kw_only=True)
class PreparedReplay:
    """What a replay is made of."""

    recording: RecordedPart
    flow: Flow
    """The flow as it is now."""
    root: Path
    """Of the run to play into."""


def replay_flow(wanted: ReplayRequest, echo: Callable[[str], None]) -> int:
    """Play a recording through the flow as it is now, and compare.

    Returns:
        0 where both runs have the same rows, 1 where not.

    Raises:
        WrongUse: there is nothing to play, or no run to play it into.
        JobError: what was recorded was taken back meanwhile.
        LeaseHeldError: another replay plays into that run.
    """
    settings = read_settings()
    found = prepared(settings, wanted)
    recording, flow, root = found.recording, found.flow, found.root
    make_anew(root, flow.name, COMMAND, of=recording.known.run, start=recording.start, end=recording.end)
    tell = (lambda _: None) if wanted.as_json else echo
    for missing in unasked_of(flow, installed=False):
        # Both runs are compared and not judged.
        tell(f"warning: {missing}")
    tell(_begins(recording, wanted))
    engine = engine_named(wanted.engine or settings.engine, settings.master, settings.spark_log, settings.spark)
    job = Job(
        flow=flow,
        root=root,
        base=settings.feeds_base(flow),
        command=COMMAND,
        engine=wanted.engine or settings.engine,
        span=(recording.start, recording.end),
    )
    begun = time.perf_counter()
    try:
        with followed(job):
            play(recording, flow, root, engine, wanted.speed, tell)
    finally:
        engine.close()
    seconds = time.perf_counter() - begun
    tell(f"played in {seconds:.1f} s; both runs are compared")
    with standing(_played(recording), "played and compared"):
        compared = compare(recording, flow, root)
    keep_certificate(root, compared.certificate)
    facts = {"run": wanted.run, "into": wanted.into, "seconds": round(seconds, 3)}
    show = command("show", wanted.flow, "STREAM", run=wanted.into)
    for line in [json.dumps(facts | facts_of(compared))] if wanted.as_json else lines_of(compared, show):
        echo(line)
    return Exit.FINE if compared.same else Exit.CHECK_FAILED


def prepared(settings: Settings, wanted: ReplayRequest) -> PreparedReplay:
    """Find what is played through what and into which run, or say why that cannot be; changes nothing.

    Raises:
        WrongUse: there is nothing to play, or no run to play it into.
        FlowError: the flow's file makes no sense.
        CommitError: there is no such state.
        LandedColumnError: a column landed with a type that is not the flow's, nor becomes it.
    """
    known = open_caught_up(wanted.flow, wanted.run)
    flow = as_run(load_flow(settings, wanted.flow, {**known.given, **parameters_of(wanted.params)}), known.state)
    recording = recorded(known, wanted.start, wanted.end)
    recording.payloads(flow)
    return PreparedReplay(recording=recording, flow=flow, root=_own_root(settings, flow, wanted))


def _played(recording: RecordedPart) -> dict[Path, frozenset[int]]:
    """Give the commits that a replay is held against, by the root of their leg."""
    end = recording.end
    return {
        part.root: frozenset(row.commit for row in part.state.in_order if row.span.end <= end)
        for part in recording.known.parts
    }


def _own_root(settings: Settings, flow: Flow, wanted: ReplayRequest) -> Path:
    """Give the root of the run to play into.

    Raises:
        WrongUse: it is the recorded run, or was not made by a replay.
    """
    root = settings.root(flow.name, wanted.into)
    if wanted.into == wanted.run:
        raise WrongUse(f"a replay goes into a run of its own; --into names the recorded run `{wanted.run}`")
    if not is_remade(root, COMMAND):
        raise WrongUse(f"a replay goes into a run of its own; run `{wanted.into}` of {flow.name} is there already")
    return root


def play(  # noqa: PLR0913 - what is played, into what, by whom
    recording: RecordedPart,
    flow: Flow,
    root: Path,
    engine: Engine,
    speed: float | None,
    tell: Callable[[str], None],
) -> None:
    """Play a recording into a run of which nothing is there but its mark.

    Args:
        recording: what is played.
        flow: what it is played through.
        root: of the run.
        engine: who runs the tasks of large epochs; small ones run here.
        speed: recorded time per wall-clock time; None for as fast as it goes.
        tell: told a line now and then.
    """
    core, shown = CoreEngine(), ReplayProgress(recording, tell)
    link_folder(root / "landed", recording.landing.absolute())
    with open_driver(root, flow=flow.name) as driver:
        if recording.ground is not None:
            before = recording.flow_at(recording.ground.commit)
            fates = {each.stream: each.fate for each in changes(before, flow)} if before else {}
            streams = [name for name in flow.streams if name in fates and fates[name].remembers]
            adopt(driver, flow, recording.state, streams, recording.payloads(flow), {"of": recording.known.run})
        runner = EpochRunner(
            driver=driver,
            flow=flow,
            landing=recording.landing,
            engine=lambda rows: core if rows <= SMALL_EPOCH else engine,
        )
        for parts in epochs_of(recording, speed):
            runner.play(parts)
            driver.keep_house()
            shown.played(parts)


def epochs_of(recording: RecordedPart, speed: float | None) -> Iterator[tuple[LandedSequence, ...]]:
    """Cut the sequences of a recording into epochs, as they come due; where the cuts are changes no row.

    Args:
        recording: what is played.
        speed: recorded time per wall-clock time; None for as fast as it goes.
    """
    begun, parts = time.monotonic(), list[Any]()
    for sequence in recording.sequences():
        rest = _left(sequence, recording, speed, begun)
        if parts and (rest > 0 or _is_cut(parts[-1], sequence) or _is_full(parts)):
            yield tuple(parts)
            parts = []
        while (rest := _left(sequence, recording, speed, begun)) > 0:
            time.sleep(min(rest, NAP))
        parts.append(sequence)
    if parts:
        yield tuple(parts)


def _left(sequence: LandedSequence, recording: RecordedPart, speed: float | None, begun: float) -> float:
    """Give the seconds until a sequence is closed in a replay that began at a moment; 0 where there is no speed."""
    if speed is None:
        return 0.0
    return begun + (sequence.end - recording.start) / TICKS_PER_SECOND / speed - time.monotonic()


def _is_cut(before: LandedSequence, sequence: LandedSequence) -> bool:
    return before.final is not None or (before.buckets, before.kind) != (sequence.buckets, sequence.kind)


def _is_full(parts: Sequence[LandedSequence]) -> bool:
    rows = sum(source.rows for part in parts for source in part.sources.values())
    return rows >= MOST_ROWS or len(parts) >= MOST_SEQUENCES


class ReplayProgress:
    """Says now and then how far a replay is."""

    def __init__(self, recording: RecordedPart, tell: Callable[[str], None]) -> None:
        self._recording, self._tell, self._total = recording, tell, len(recording.numbers)
        self._begun = self._said = time.monotonic()
        self._done = self._rows = 0

    def played(self, parts: Iterable[LandedSequence]) -> None:
        """Take in an epoch, and say so where the last word is some time ago."""
        for part in parts:
            self._done += 1
            self._rows += sum(source.rows for source in part.sources.values())
        now = time.monotonic()
        if now - self._said < SAID_EVERY or self._done == self._total:
            return
        self._said = now
        rest = (now - self._begun) / self._done * (self._total - self._done)
        done = f"{self._done:,} of {counted(self._total, 'sequence')}, {counted(self._rows, 'row')}"
        self._tell(f"{done}, about {rest:.0f} s left")


def _begins(recording: RecordedPart, wanted: ReplayRequest) -> str:
    known = recording.known
    pace = "as fast as it goes" if wanted.speed is None else f"at {wanted.speed:g} times its time"
    carry = f"from the carry of commit {recording.ground.commit}" if recording.ground else "from the beginning"
    played = counted(len(recording.numbers), "sequence is", "sequences are")
    wider = " (more than asked, up to states that all legs have)" if recording.widened else ""
    return (
        f"run `{known.run}` of {known.name}, {known.moments.span(recording.start, recording.end)}{wider}: "
        f"{played} played into run `{wanted.into}` {carry}, {pace}"
    )
