"""`pulseline publish`: the gate of a commit that waits at written, by what `pulseline check` found."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from expectations.decided import ACCEPTED, REJECTED
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.errors import LeaseHeldError
from pipelines.engine.commits.history import State
from pipelines.engine.commits.quality import read_quality
from pipelines.engine.commits.settling import is_settled
from pipelines.flows.definition import flow_from_json
from pipelines.jobs.commands.run import facts_of
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.settings import read_settings
from pipelines.jobs.runs.gate import RejectedError, decide, settle
from pipelines.jobs.runs.known import SUFFIXES, open_run
from pipelines.jobs.runs.lineage import followed
from pipelines.jobs.runs.lineage_job import Job

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipelines.engine.commits.history import Entry
    from pipelines.jobs.runs.known import KnownRun


@dataclass(frozen=True)
class Answer:
    """What a person decided of a held commit."""

    publish: bool
    reason: str
    by: str

    @property
    def words(self) -> str:
        """Say who decided what, and why; the first "; " of a verdict ends it, so those of a person are bound."""
        said = f"{ACCEPTED if self.publish else REJECTED} by {self.by}: {self.reason}"
        return said.replace("; ", ";\N{NO-BREAK SPACE}")


def answer_of(accept: str | None, reject: str | None, by: str | None) -> Answer | None:
    """Read a person's decision; None where nobody decided.

    Raises:
        WrongUse: both were said, a reason is empty, or nobody says so.
    """
    given = [text for text in (accept, reject) if text is not None]
    if not given and by is None:
        return None
    if len(given) != 1:
        raise WrongUse("--by stands with one of --accept REASON and --reject REASON")
    reason, who = given[0].strip(), (by or "").strip()
    if by is None:
        option = "--accept" if accept is not None else "--reject"
        raise WrongUse(f"{option} needs --by NAME beside it: who decides stands in the record for good")
    if not reason or not who:
        raise WrongUse("a decision needs a reason and --by NAME, which stand in the record for good; one is empty")
    return Answer(accept is not None, reason, who)


def publish_commit(  # noqa: PLR0913 - which commit, and what a person says of it
    called: str,
    number: int,
    run: str,
    as_json: bool,  # noqa: FBT001 - the command's flag
    echo: Callable[[str], None],
    answer: Answer | None = None,
) -> None:
    """Publish a checked commit and say so; one that is published already stays as it is, and tables follow it.

    Args:
        called: name of the flow, or the path of its file.
        number: of the commit.
        run: name of the run.
        as_json: one JSON object instead of words.
        echo: where lines go.
        answer: a person's decision, which goes before what was found; None where the gate decides.

    Raises:
        WrongUse: there is no such commit, it was given up, nobody checked it, or it shall be rejected though readers
            see it.
        RejectedError: a blocking expectation failed, or the answer says so; the commit is rejected.
    """
    known = open_run(called, run)
    entry = known.commit(number)
    if entry.state is State.REJECTED:
        again = f"A rejected commit stays so: to have its rows judged anew, {known.run_command(*entry.span)} --hold"
        raise RejectedError(number, str(entry.verdict), "" if answer is not None and not answer.publish else again)
    later = known.state.successors.get(number)
    if later is not None:
        raise WrongUse(f"commit {number} was superseded by {later}, which readers see: {_status(known)}")
    was_published = entry.state is State.PUBLISHED
    if was_published and answer is not None and not answer.publish:
        raise WrongUse(
            f"--reject must name a commit that waits at written; readers see commit {number} already: to replace its "
            f"rows, change the flow or its input, and {known.run_command(*entry.span)}"
        )
    if was_published:
        _follow(known)
    published = entry if was_published else _settle(known, entry, answer)
    told = facts_of(published) | _answered(published, answer)
    how = f"{'published already' if was_published else 'published'}: {published.verdict or 'nobody checked it'}"
    words = f"commit {number} ({known.moments.span(*published.span)}) is {how}"
    echo(json.dumps({"flow": known.name, "run": run, **told}) if as_json else words)


def _follow(known: KnownRun) -> None:
    """Have the tables follow what is published, where its driver ended before they did; one at work does it itself."""
    if not is_settled(known.state, known.root):
        with suppress(LeaseHeldError), open_driver(known.root, flow=known.name):
            pass


def _answered(published: Entry, answer: Answer | None) -> dict[str, object]:
    """Give who published it and why, where the record has this answer; also when it is given a second time."""
    if answer is None or not str(published.verdict).startswith(answer.words):
        return {}
    return {"by": answer.by, "reason": answer.reason}


def _settle(known: KnownRun, entry: Entry, answer: Answer | None) -> Entry:
    check = known.command("check", "--commit", str(entry.commit))
    if entry.state is not State.WRITTEN:
        raise WrongUse(
            f"only a written commit can be published; commit {entry.commit} is at {entry.state}: {_status(known)}"
        )
    with followed(_job_of(known, entry)), open_driver(known.root, flow=known.name) as driver:
        judged = read_quality(known.root, commit=entry.commit)
        if not judged:
            raise WrongUse(
                f"commit {entry.commit} must be checked before it is published or rejected, and was not; next: {check}"
            )
        if answer is not None:
            return decide(driver, entry, judged, answer)
        try:
            return settle(driver, entry, judged)
        except RejectedError as ended:
            more = f"It is rejected, and stays so; next: {known.looking_at(entry.commit)}"
            raise RejectedError(
                ended.commit, ended.verdict, f"{ended.remedy.rstrip('.')}. {more}" if ended.remedy else more
            ) from None


def _job_of(known: KnownRun, entry: Entry) -> Job:
    """Give the publication of a commit as catalogues are told of it."""
    file, flow = Path(known.called), flow_from_json(known.definition)
    base = file.absolute().parent if file.suffix in SUFFIXES else read_settings().feeds_base(flow)
    return Job(flow=flow, root=known.root, base=base, command="publish", span=entry.span)


def _status(known: KnownRun) -> str:
    return f"see {known.command('status')}"
