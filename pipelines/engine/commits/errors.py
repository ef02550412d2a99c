"""Everything the commit protocol refuses, each with its sentence: what is required, what came, what to do."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.engine.columnar.columns import instant_text
from pipelines.errors import Exit, PulselineError


class CommitError(PulselineError, RuntimeError):
    """The commit protocol refuses a step; every error about commits and leases is one of these."""


@dataclass(eq=False)
class LeaseHeldError(CommitError):
    """Another driver holds the lease of this root.

    `since` in ticks.
    """

    flow: str
    holder: str
    since: int

    def __str__(self) -> str:
        return (
            f"flow {self.flow} must have one driver at a time; {self.holder} has held it since "
            f"{instant_text(self.since)}: wait for it, end it, or take over (--take-over)"
        )


@dataclass(eq=False)
class LeaseLostError(CommitError):
    """This driver's lease was taken by another one; nothing it does counts any more.

    `since` in ticks.
    """

    flow: str
    token: int
    newest: int
    holder: str
    since: int

    def __str__(self) -> str:
        return (
            f"flow {self.flow} must be written under its newest lease, number {self.newest}; this driver has "
            f"number {self.token} and was overtaken by {self.holder} at {instant_text(self.since)}: "
            "nothing more was published, end this process"
        )


@dataclass(eq=False)
class MissingPredecessorError(CommitError):
    """An interval whose predecessor was never published.

    Facts: the interval's start, and the span to run first, in ticks.
    """

    start: int
    first_start: int
    first_end: int

    def __str__(self) -> str:
        return (
            f"an interval must begin where a published one ends; none ends at {instant_text(self.start)}: "
            f"run {instant_text(self.first_start)} to {instant_text(self.first_end)} first, "
            "or --run NAME for a run of its own"
        )


@dataclass(eq=False)
class BeforeFirstError(CommitError):
    """An interval before the first instant of a run that a stream began, whose epochs cannot be run again behind it.

    In ticks.
    """

    start: int
    first: int

    def __str__(self) -> str:
        return (
            f"an interval must not begin before the first instant of a run that a stream began, "
            f"{instant_text(self.first)}; it begins at {instant_text(self.start)}: use a run of another name for an "
            "earlier beginning"
        )


@dataclass(eq=False)
class GapError(CommitError):
    """An interval before a run's first one that would leave a gap in front of it.

    In ticks: where it ends, and the run's first instant.
    """

    end: int
    first: int

    def __str__(self) -> str:
        return (
            f"an interval before a run's first instant must end there, at {instant_text(self.first)}; it ends at "
            f"{instant_text(self.end)}: run up to {instant_text(self.first)}, or use a run of another name"
        )


@dataclass(eq=False)
class PartialOverlapError(CommitError):
    """An interval that would replace a part of a published one.

    Facts: the cutting instant, the commit that is cut and its span, in ticks.
    """

    edge: int
    commit: int
    start: int
    end: int

    def __str__(self) -> str:
        return (
            f"an interval must replace published ones whole; {instant_text(self.edge)} cuts commit {self.commit}, "
            f"{instant_text(self.start)} to {instant_text(self.end)}: start or end at one of these"
        )


@dataclass(eq=False)
class StreamedSpanError(CommitError):
    """An interval that would replace what a stream has published.

    Facts: the interval asked for, the epoch it meets and its span, in ticks.
    """

    asked_start: int
    asked_end: int
    commit: int
    start: int
    end: int

    def __str__(self) -> str:
        return (
            f"an interval must not replace epochs of a stream; {instant_text(self.asked_start)} to "
            f"{instant_text(self.asked_end)} meets epoch {self.commit}, from {instant_text(self.start)} on: "
            "end before it, or use a run of another name"
        )


@dataclass(eq=False)
class PendingCommitError(CommitError):
    """A new commit was begun while another is open."""

    commit: int
    state: str
    says = "one commit must be finished before the next; commit {commit} is at {state}: finish it first"


@dataclass(eq=False)
class WrongStepError(CommitError):
    """A step of a commit that does not follow from what the log says."""

    commit: int
    step: str
    required: str
    came: str
    says = "{step} of commit {commit} must have {required}; it has {came}: ask the log again"


@dataclass(eq=False)
class PlanChangedError(CommitError):
    """A pending commit was begun under another plan than the driver's."""

    commit: int
    planned: str
    came: str
    says = (
        "commit {commit} must be finished under the plan it was begun with, {planned}; this is {came}: run the "
        "version it was begun with once more, then change, or give it up: pulseline abandon FLOW --commit {commit}"
    )


@dataclass(eq=False)
class OlderHomeError(CommitError):
    """A run's folder has the format of older code.

    Facts: the folder, its format, and the one that is known here.
    """

    root: str
    came: int
    current: int
    says = (
        "{root} must have format {current}; it has format {came}, which an older version wrote: take it over once "
        "with pulseline upgrade FLOW (--dry-run says first what that does)"
    )


class NewerHomeError(OlderHomeError):
    """A run's folder has the format of newer code."""

    def __str__(self) -> str:
        return (
            f"{self.root} must have format {self.current}; it has format {self.came}, which a newer version wrote: "
            "use that version, or begin a run of its own (--run NAME)"
        )


@dataclass(eq=False)
class NoStateError(CommitError):
    """A run was to go back to a commit that is no consistent state of it.

    Facts: the commit's number, and what is known of it.
    """

    commit: int
    came: str
    code = Exit.WRONG_USE
    says = (
        "a run goes back to a commit that readers see; commit {commit} {came}: choose one that `pulseline status "
        "FLOW` shows"
    )


@dataclass(eq=False)
class BeforeStatesError(CommitError):
    """A run was to go back further than its first consistent state.

    Facts: what was asked for; the first state, its end in ticks and its last sequence.
    """

    asked: str
    commit: int
    end: int
    sequence: int
    code = Exit.WRONG_USE

    def __str__(self) -> str:
        return (
            f"a run goes back to a commit that covers no more than {self.asked}, and none does: the first, commit "
            f"{self.commit}, ends at {instant_text(self.end)} with sequence {self.sequence}; to begin anew: --to 0"
        )


@dataclass(eq=False)
class SealedIntervalError(CommitError):
    """A run was to go back behind an interval of a backfill, which only a re-run of its span may replace.

    Facts: the state asked for; the newest interval and its span, in ticks.
    """

    asked: int
    commit: int
    start: int
    end: int
    code = Exit.WRONG_USE

    def __str__(self) -> str:
        asked = f"commit {self.asked}" if self.asked else "the beginning"
        return (
            f"a reset goes back over epochs of a stream alone; behind {asked} lies interval {self.commit}, "
            f"{instant_text(self.start)} to {instant_text(self.end)}, which is sealed: --to {self.commit} is as far as "
            "it goes; to change the interval, run it again and then reset to it"
        )


@dataclass(eq=False)
class LegMixedError(CommitError):
    """The folder of a leg holds another leg, or that of another flow.

    Facts: the folder, the leg, a stream that it makes, and one that is made there.
    """

    folder: str
    leg: str
    stream: str
    other: str
    code = Exit.RUN_FAILED
    says = (
        "{folder} must hold leg {leg}, which makes `{stream}`; its commits make `{other}`: a folder lies under "
        "another's name; give each its own again, or put them back out of a copy of the run's folder"
    )


@dataclass(eq=False)
class LegGoneError(CommitError):
    """The folder of a leg is gone, or its log: taken for one that has published nothing it would lose all of it.

    Facts: the folder, the leg, the streams that it makes, what is left of it, and how its rows are made again.
    """

    folder: str
    leg: str
    streams: str
    left: str
    again: str
    code = Exit.RUN_FAILED
    says = (
        "{folder} must hold leg {leg}, which makes {streams}; {left}, so what the leg had published is in no "
        "table: put the folder back out of a copy of the run's folder, or {again}, out of what its run has landed"
    )


@dataclass(eq=False)
class LegsLostError(CommitError):
    """Which legs a run has cannot be read, though it has some: taken for one in one piece it would go on without them.

    Facts: the file, and what is the matter with it.
    """

    file: str
    how: str
    code = Exit.RUN_FAILED
    says = (
        "{file} must say which legs the run has, for it has some; it {how}: pulseline doctor FLOW "
        "--repair makes it anew out of the newest commit's plan, or begins anew where there is none"
    )
