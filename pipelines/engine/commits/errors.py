"""Everything the commit protocol refuses, each with its sentence: what is required, what came, what to do."""

from __future__ import annotations

from pipelines.engine.columnar.columns import instant_text


class CommitError(RuntimeError):
    """The commit protocol refuses a step; every error about commits and leases is one of these."""


class LeaseHeldError(CommitError):
    """Another driver holds the lease of this root."""

    def __init__(self, flow: str, holder: str, since: int) -> None:
        """Keep the facts as attributes; `since` in ticks."""
        super().__init__(flow, holder, since)
        self.flow, self.holder, self.since = flow, holder, since

    def __str__(self) -> str:
        """Say it in one sentence."""
        return (
            f"flow {self.flow} must have one driver at a time; {self.holder} has held it since "
            f"{instant_text(self.since)}: wait for it, end it, or take over (--take-over)"
        )


class LeaseLostError(CommitError):
    """This driver's lease was taken by another one; nothing it does counts any more."""

    def __init__(self, flow: str, token: int, newest: int, holder: str, since: int) -> None:
        """Keep the facts as attributes; `since` in ticks."""
        super().__init__(flow, token, newest, holder, since)
        self.flow, self.token, self.newest, self.holder, self.since = flow, token, newest, holder, since

    def __str__(self) -> str:
        """Say it in one sentence."""
        return (
            f"flow {self.flow} must be written under its newest lease, number {self.newest}; this driver has "
            f"number {self.token} and was overtaken by {self.holder} at {instant_text(self.since)}: "
            "nothing was published, end this process"
        )


class MissingPredecessorError(CommitError):
    """An interval whose predecessor was never published."""

    def __init__(self, start: int, first_start: int, first_end: int) -> None:
        """Keep the facts as attributes: the interval's start, and the span to run first, in ticks."""
        super().__init__(start, first_start, first_end)
        self.start, self.first_start, self.first_end = start, first_start, first_end

    def __str__(self) -> str:
        """Say it in one sentence."""
        return (
            f"an interval must begin where a published one ends; none ends at {instant_text(self.start)}: "
            f"run {instant_text(self.first_start)} to {instant_text(self.first_end)} first"
        )


class BeforeFirstError(CommitError):
    """An interval that would begin before the run's first one."""

    def __init__(self, start: int, first: int) -> None:
        """Keep the facts as attributes, in ticks."""
        super().__init__(start, first)
        self.start, self.first = start, first

    def __str__(self) -> str:
        """Say it in one sentence."""
        return (
            f"an interval must not begin before its run's first instant, {instant_text(self.first)}; it begins at "
            f"{instant_text(self.start)}: use a run of another name for an earlier beginning"
        )


class PartialOverlapError(CommitError):
    """An interval that would replace a part of a published one."""

    def __init__(self, edge: int, commit: int, start: int, end: int) -> None:
        """Keep the facts as attributes: the cutting instant, the commit that is cut and its span, in ticks."""
        super().__init__(edge, commit, start, end)
        self.edge, self.commit, self.start, self.end = edge, commit, start, end

    def __str__(self) -> str:
        """Say it in one sentence."""
        return (
            f"an interval must replace published ones whole; {instant_text(self.edge)} cuts commit {self.commit}, "
            f"{instant_text(self.start)} to {instant_text(self.end)}: start or end at one of these"
        )


class StreamedSpanError(CommitError):
    """An interval that would replace what a stream has published."""

    def __init__(self, asked_start: int, asked_end: int, commit: int, start: int, end: int) -> None:
        """Keep the facts as attributes: the interval asked for, the epoch it meets and its span, in ticks."""
        super().__init__(asked_start, asked_end, commit, start, end)
        self.asked_start, self.asked_end = asked_start, asked_end
        self.commit, self.start, self.end = commit, start, end

    def __str__(self) -> str:
        """Say it in one sentence."""
        return (
            f"an interval must not replace epochs of a stream; {instant_text(self.asked_start)} to "
            f"{instant_text(self.asked_end)} meets epoch {self.commit}, from {instant_text(self.start)} on: "
            "end before it, or use a run of another name"
        )


class PendingCommitError(CommitError):
    """A new commit was begun while another is open."""

    def __init__(self, commit: int, state: str) -> None:
        """Keep the facts as attributes."""
        super().__init__(commit, state)
        self.commit, self.state = commit, state

    def __str__(self) -> str:
        """Say it in one sentence."""
        return f"one commit must be finished before the next; commit {self.commit} is at {self.state}: finish it first"


class WrongStepError(CommitError):
    """A step of a commit that does not follow from what the log says."""

    def __init__(self, commit: int, step: str, required: str, came: str) -> None:
        """Keep the facts as attributes."""
        super().__init__(commit, step, required, came)
        self.commit, self.step, self.required, self.came = commit, step, required, came

    def __str__(self) -> str:
        """Say it in one sentence."""
        return f"{self.step} of commit {self.commit} must have {self.required}; it has {self.came}: ask the log again"


class PlanChangedError(CommitError):
    """A pending commit was begun under another plan than the driver's."""

    def __init__(self, commit: int, planned: str, came: str) -> None:
        """Keep the facts as attributes."""
        super().__init__(commit, planned, came)
        self.commit, self.planned, self.came = commit, planned, came

    def __str__(self) -> str:
        """Say it in one sentence."""
        return (
            f"commit {self.commit} must be finished under the plan it was begun with, {self.planned}; this is "
            f"{self.came}: run the version it was begun with once more, then change, or give it up: "
            f"pulseline abandon FLOW --commit {self.commit}"
        )


class OlderHomeError(CommitError):
    """A run's folder has the format of older code."""

    def __init__(self, root: str, came: int, current: int) -> None:
        """Keep the facts as attributes: the folder, its format, and the one that is known here."""
        super().__init__(root, came, current)
        self.root, self.came, self.current = root, came, current

    def __str__(self) -> str:
        """Say what to do."""
        return (
            f"{self.root} must have format {self.current}; it has format {self.came}, which an older version wrote: "
            "take it over once with pulseline upgrade FLOW (--dry-run says first what that does)"
        )


class NewerHomeError(OlderHomeError):
    """A run's folder has the format of newer code."""

    def __str__(self) -> str:
        """Say what to do."""
        return (
            f"{self.root} must have format {self.current}; it has format {self.came}, which a newer version wrote: "
            "use that version, or begin a run of its own (--run NAME)"
        )


class NoStateError(CommitError):
    """A run was to go back to a commit that is no consistent state of it."""

    def __init__(self, commit: int, came: str) -> None:
        """Keep the facts as attributes: the commit's number, and what is known of it."""
        super().__init__(commit, came)
        self.commit, self.came = commit, came

    def __str__(self) -> str:
        """Say it in one sentence."""
        return (
            f"a run goes back to a commit that readers see; commit {self.commit} {self.came}: choose one that "
            "`pulseline status FLOW` shows"
        )


class BeforeStatesError(CommitError):
    """A run was to go back further than its first consistent state."""

    def __init__(self, asked: str, commit: int, end: int, sequence: int) -> None:
        """Keep the facts as attributes: what was asked for; the first state, its end in ticks and its last sequence."""
        super().__init__(asked, commit, end, sequence)
        self.asked, self.commit, self.end, self.sequence = asked, commit, end, sequence

    def __str__(self) -> str:
        """Say it in one sentence."""
        return (
            f"a run goes back to a commit that covers no more than {self.asked}, and none does: the first, commit "
            f"{self.commit}, ends at {instant_text(self.end)} with sequence {self.sequence}; to begin anew: --to 0"
        )


class SealedIntervalError(CommitError):
    """A run was to go back behind an interval of a backfill, which only a re-run of its span may replace."""

    def __init__(self, asked: int, commit: int, start: int, end: int) -> None:
        """Keep the facts as attributes: the state asked for; the newest interval and its span, in ticks."""
        super().__init__(asked, commit, start, end)
        self.asked, self.commit, self.start, self.end = asked, commit, start, end

    def __str__(self) -> str:
        """Say it in one sentence."""
        asked = f"commit {self.asked}" if self.asked else "the beginning"
        return (
            f"a reset goes back over epochs of a stream alone; behind {asked} lies interval {self.commit}, "
            f"{instant_text(self.start)} to {instant_text(self.end)}, which is sealed: --to {self.commit} is as far as "
            "it goes; to change the interval, run it again and then reset to it"
        )
