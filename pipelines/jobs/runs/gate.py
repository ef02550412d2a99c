"""The gate: what a written interval must pass before readers see it.

An interval whose blocking expectations fail is rejected: the last published commit of its span stays visible, and
nothing of it is lost, for its rows stay in their tables until housekeeping removes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from expectations.decided import accepted_words
from expectations.laws import BLOCKING
from pipelines.engine.commits.driver import Driver
from pipelines.engine.commits.history import Entry, LogState
from pipelines.errors import Exit
from pipelines.jobs.environment.errors import JobError

if TYPE_CHECKING:
    from collections.abc import Sequence

Gate = Callable[[Driver, Entry], Entry]
"""Takes a commit at written, and gives it as it stands afterwards."""


class GateFinding(Protocol):
    """What the gate wants to know of an expectation that was checked."""

    @property
    def table(self) -> str:
        """The stream it is about."""

    @property
    def severity(self) -> str:
        """`blocking`, or `warning`."""

    @property
    def sentence(self) -> str:
        """What must hold."""

    @property
    def remedy(self) -> str:
        """What to do where it does not."""

    @property
    def held(self) -> bool:
        """Whether it holds."""

    @property
    def unexpected(self) -> int:
        """Rows that break it."""


J = TypeVar("J", bound=GateFinding)


@dataclass(eq=False)
class RejectedError(JobError):
    """An interval was not published, because a blocking expectation does not hold."""

    commit: int
    verdict: str
    remedy: str = ""
    code = Exit.CHECK_FAILED

    def __str__(self) -> str:
        told = f"commit {self.commit} is not published: {self.verdict}; readers see what was published before"
        return f"{told}. {self.remedy}" if self.remedy else told


def publish_at_once(driver: Driver, entry: Entry) -> Entry:
    """Publish without a check."""
    return driver.publish(entry.commit)


def hold(_: Driver, entry: Entry) -> Entry:
    """Leave the commit at written, for `pulseline check` and `pulseline publish`."""
    return entry


@dataclass(frozen=True)
class Checked:
    """Publish what its expectations allow, and reject the rest.

    Args:
        judge: checks a commit by number, as if it stood in place of what it would supersede.
    """

    judge: Callable[[int, LogState], Sequence[GateFinding]]

    def __call__(self, driver: Driver, entry: Entry) -> Entry:
        """Check a commit, then publish it.

        Raises:
            RejectedError: a blocking expectation does not hold; the commit is rejected.
        """
        return settle(driver, entry, self.judge(entry.commit, driver.state()))


def settle(driver: Driver, entry: Entry, judged: Sequence[GateFinding]) -> Entry:
    """Publish or reject a commit at written, by what was found.

    Raises:
        RejectedError: a blocking expectation does not hold; the commit is rejected.
    """
    broken = blocking(judged)
    if not broken:
        return driver.publish(entry.commit, verdict=kept_words(judged))
    verdict = str(reject(driver, entry, broken).verdict)
    raise RejectedError(entry.commit, verdict, broken[0].remedy)


class Decision(Protocol):
    """What a person decided of a commit."""

    @property
    def publish(self) -> bool:
        """Whether readers shall see it."""

    @property
    def words(self) -> str:
        """Who decided what, and why."""


def decide(driver: Driver, entry: Entry, judged: Sequence[GateFinding], decision: Decision) -> Entry:
    """Publish or reject a commit at written as a person decided; the verdict has that, and what does not hold.

    Raises:
        RejectedError: the person rejected it.
    """
    broken = "; ".join(broken_words(each) for each in blocking(judged))
    verdict = f"{decision.words}; {broken or kept_words(judged)}"
    if decision.publish:
        return driver.publish(entry.commit, verdict=verdict)
    driver.reject(entry.commit, verdict=verdict)
    raise RejectedError(entry.commit, verdict)


def reject(driver: Driver, entry: Entry, broken: Sequence[GateFinding]) -> Entry:
    """Keep a commit at written from readers, and say in the log what does not hold."""
    return driver.reject(entry.commit, verdict="; ".join(broken_words(each) for each in broken))


def blocking(judged: Sequence[J]) -> list[J]:
    """Give the blocking expectations that do not hold."""
    return [each for each in judged if not each.held and each.severity == BLOCKING]


def is_accepted(verdict: str | None, broken: str | None) -> bool:
    """Say whether a person let pass just what another commit was rejected for.

    Args:
        verdict: of the commit that was let pass.
        broken: the verdict of the one that was rejected.

    >>> is_accepted("accepted by ann: the feed was down; ordered: 3 rows break it", "ordered: 3 rows break it")
    True
    """
    return bool(broken and accepted_words(verdict)) and str(verdict).endswith(f"; {broken}")


def kept_words(judged: Sequence[GateFinding]) -> str:
    """Say how many expectations hold, and how many only warn.

    >>> kept_words([])
    '0 of 0 expectations hold'
    """
    return f"{sum(each.held for each in judged)} of {len(judged)} expectations hold"


def broken_words(judged: GateFinding) -> str:
    """Say which expectation does not hold, where, and for how many rows; one of a whole column has none."""
    if not judged.unexpected:
        return f"{judged.table}: `{judged.sentence}` does not hold"
    noun = "row breaks" if judged.unexpected == 1 else "rows break"
    return f"{judged.table}: {judged.unexpected:,} {noun} `{judged.sentence}`"
