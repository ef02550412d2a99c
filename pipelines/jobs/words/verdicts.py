"""What a check found, as lines for people and for machines."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from expectations.decided import passed_words
from expectations.laws import ACCOUNT_HOLDS, AS_PUBLISHED, AS_RECOMPUTED, BLOCKING, OF_FILES, OF_INTERVALS
from expectations.offenders import CONTEXT
from pipelines.engine.columnar.columns import instant_text, instant_tick
from pipelines.engine.commits.entry import CommitKind, State
from pipelines.flows.check import OWN, is_of_each
from pipelines.flows.legs import MAIN
from pipelines.jobs.environment.exits import named
from pipelines.jobs.runs.counts import counted as rows_of_commit
from pipelines.jobs.runs.gate import blocking, broken_words
from pipelines.jobs.text.tables import printable
from pipelines.operators.plain_words import counted, some_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from expectations.judgement import Judgement
    from expectations.report.site import Need
    from pipelines.engine.commits.history import Entry
    from pipelines.jobs.facts.views import JudgedCommits
    from pipelines.jobs.runs.known import KnownRun

MOST_TOLD = 3
"""Rows of all that fails that a message has."""
SHOWN = 2
"""Rows that break an expectation and are printed; `--json` and the table `quality` have up to 20."""
ANSWERS = (
    "*Publish* lets readers see it all the same, *Reject* keeps it from them for good. Either takes a reason, which "
    "stands with your name in the record, on the page and in the asset's event; without one you are asked again."
)
LAST_COLUMNS = ("place", "commit", "event_end", "due_at", "landed_at", "landed_place")


@dataclass(frozen=True)
class SpokenVerdict:
    """What was judged of a run, and what was found."""

    known: KnownRun
    legs: Mapping[str, JudgedCommits]
    """What was judged in each leg; of a run in one piece in `main`."""
    commit: int
    """0 where published commits of a span were judged."""
    found: Sequence[Judgement]
    docs: Path
    unasked: str = ""
    """Why nothing but the files was judged; nothing where all was."""
    red: Sequence[Need] = ()
    """Which published days do not hold, though all that was judged may together."""

    @property
    def judged(self) -> JudgedCommits:
        """Give what was judged of what lands; of a run in one piece all that was."""
        return self.legs[MAIN]

    @property
    def behind(self) -> Mapping[str, int | None]:
        """Give where each leg stands that has not come to the end of what was judged, in ticks; None for the start."""
        ends = {leg: judged.span[1] if judged.entries else None for leg, judged in self.legs.items()}
        return {leg: end for leg, end in ends.items() if end is None or end < self.judged.span[1]}

    @property
    def blocking_failed(self) -> tuple[Judgement, ...]:
        """Name what keeps the rows from being published."""
        return tuple(blocking(self.found))

    @property
    def held(self) -> bool:
        """Say whether nothing blocking failed."""
        return not self.blocking_failed

    @property
    def waits(self) -> bool:
        """Say whether one commit was judged that readers do not see yet and that nobody rejected."""
        return bool(self.commit) and self.judged.entries[0].state is State.WRITTEN

    @property
    def is_rejected(self) -> bool:
        """Say whether one commit was judged that was kept from readers."""
        return bool(self.commit) and self.judged.entries[0].state is State.REJECTED

    @property
    def rows(self) -> int:
        """Count the rows that came into the operators."""
        return sum(each.looked_at for each in self.found if each.expectation == "account_holds")

    @property
    def what(self) -> str:
        """Name what was judged."""
        span = self.known.moments.span(*self.judged.span)
        commits = counted(len(self.judged.entries), "commit")
        others = [f"{len(judged.entries):,} of {leg}" for leg, judged in self.legs.items() if leg != MAIN]
        commits = ", ".join([f"{commits} of {MAIN}", *others]) if others else commits
        return f"commit {self.commit} ({span})" if self.commit else f"{span} ({commits})"


def json_lines(verdict: SpokenVerdict) -> Iterator[str]:
    """Give a JSON object an expectation, and one last that sums up."""
    for each in verdict.found:
        yield json.dumps(asdict(each), ensure_ascii=False)
    start, end = verdict.judged.span
    summary = {
        "flow": verdict.known.name,
        "run": verdict.known.run,
        "commit": verdict.commit or None,
        "start": instant_text(start),
        "end": instant_text(end),
        "held": verdict.held,
        "blocking_failed": [f"{each.table}: {each.sentence}" for each in verdict.blocking_failed],
        "rows": verdict.rows,
        "behind": {leg: None if upto is None else instant_text(upto) for leg, upto in verdict.behind.items()},
        "sentence": sentence(verdict),
        "offenders": list(islice(offenders(verdict), MOST_TOLD)),
        "question": question(verdict),
        "docs": str(verdict.docs / "index.html"),
        "unasked": verdict.unasked or None,
        "red": [need.words for need in verdict.red],
        "next": next_step(verdict),
    }
    yield json.dumps(summary, ensure_ascii=False)


def question(verdict: SpokenVerdict) -> dict[str, str] | None:
    """Spell what a person is asked of a commit that waits and does not hold, as Markdown; None where nobody is."""
    if verdict.held or not verdict.waits:
        return None
    broken = [
        f"* {broken_words(each)}, of {counted(each.looked_at, 'row')} that were looked at. {each.remedy}"
        for each in verdict.blocking_failed
    ]
    rows = verdict.known.command("check", "--commit", str(verdict.commit))
    told = [
        f"{_came(verdict)}. Readers see what was published before.",
        "What does not hold:",
        "\n".join(broken),
        f"The rows that break it: `{rows}`.",
        ANSWERS,
    ]
    return {"subject": f"{verdict.known.name}: publish {verdict.what}?", "body": "\n\n".join(told)}


def _came(verdict: SpokenVerdict) -> str:
    landed = ", ".join(f"{counted(rows, 'row')} of {name}" for name, rows in _landed(verdict).items())
    return f"{landed or 'nothing'} landed in {verdict.what}"


def sentence(verdict: SpokenVerdict) -> str:
    """Say what came of it in one sentence: what does not hold and for how many rows, what landed, what to do."""
    came = _came(verdict)
    if verdict.held and verdict.red:
        days = "; ".join(need.words for need in verdict.red)
        return f"all that blocks holds of these rows together; {days}; {came}; next: {next_step(verdict)}"
    if verdict.held:
        return f"all that blocks holds; {came}"
    worst = min(verdict.blocking_failed, key=lambda each: each.expectation == ACCOUNT_HOLDS)
    others = len(verdict.blocking_failed) - 1
    rest = f", and {counted(others, 'more expectation fails', 'more expectations fail')}" if others else ""
    rows = f"{counted(worst.unexpected, 'row breaks it', 'rows break it')} of {worst.looked_at:,} in {worst.table}"
    return f"does not hold: {worst.sentence}: {rows}{rest}; {came}; next: {next_step(verdict)}"


def _landed(verdict: SpokenVerdict) -> dict[str, int]:
    found: dict[str, int] = {}
    for entry in verdict.judged.entries:
        for name, rows in rows_of_commit(entry, "landed").items():
            found[name] = found.get(name, 0) + rows
    return found


def text_lines(verdict: SpokenVerdict) -> Iterator[str]:
    """Give lines for people: one an expectation, what broke it, and what to do next."""
    yield f"{verdict.known.name}, run {verdict.known.run}: {verdict.what}"
    for leg, upto in verdict.behind.items():
        yield f"{leg} is behind: " + (
            f"judged up to {verdict.known.moments.text(upto)}" if upto else "none of it judged"
        )
    wide = max((len(each.table) for each in verdict.found), default=0)
    for each in verdict.found:
        mark = "✓ holds " if each.held else ("✗ FAILS " if each.severity == BLOCKING else "! warns ")
        yield f"{mark} {each.table:{wide}}  {counted(each.looked_at, 'row'):>12}  {each.sentence}"
        if not each.held:
            yield from (named(line, verdict.known.called, verdict.known.run) for line in _broken(each))
    held = sum(each.held for each in verdict.found)
    yield f"{held} of {counted(len(verdict.found), 'expectation')} hold; Data Docs: {verdict.docs / 'index.html'}"
    if verdict.unasked:
        yield "note: nothing else was asked, because not all of these rows can be read, or are the run's own"
    if together := _together(verdict):
        names = some_of([each.expectation for each in together])
        yield f"note: {names}: asked of all these rows together; {_alone_by(verdict)}"
    if accepted := _accepted(verdict):
        yield f"note: readers see what does not hold all the same, {accepted}"
    for need in verdict.red:
        yield f"red: {need.words}: {need.command}"
    yield f"next: {next_step(verdict)}"


def _broken_entries(verdict: SpokenVerdict) -> list[Entry]:
    """Give the commits in which what blocks fails; none where not every case names one."""
    if verdict.commit:
        return list(verdict.judged.entries)
    cases = [_commit_of(verdict, row) for each in verdict.blocking_failed for row in each.rows]
    # Of files each case is many rows.
    told = (
        sum(int(row.get("rows", 1)) for row in each.rows) if each.expectation in OF_FILES else len(each.rows)
        for each in verdict.blocking_failed
    )
    shown = all(0 < each.unexpected <= rows for each, rows in zip(verdict.blocking_failed, told, strict=True))
    numbers = {*cases}
    entries = [entry for entry in verdict.judged.entries if entry.commit in numbers]
    return entries if shown and len(entries) == len(numbers) else []


def _commit_of(verdict: SpokenVerdict, row: Mapping[str, Any]) -> int | None:
    """Give the commit that a case is of; a row of a source says when it arrived."""
    if row.get("commit") is not None or not isinstance(row.get("arrival"), str):
        return row.get("commit")
    at = instant_tick(row["arrival"])
    return next((entry.commit for entry in verdict.judged.entries if entry.span.holds(at)), None)


def _accepted(verdict: SpokenVerdict) -> str:
    """Say who let pass what blocks; nothing where nobody decided of each commit in which it fails."""
    decided = [
        passed_words(entry.verdict, each.table, each.sentence)
        for entry in ([] if verdict.held else _broken_entries(verdict))
        for each in verdict.blocking_failed
        if verdict.commit or entry.commit in {_commit_of(verdict, row) for row in each.rows}
    ]
    return decided[0] if decided and all(decided) else ""


def offenders(verdict: SpokenVerdict) -> Iterator[str]:
    """Spell rows that break what blocks, a line each, without what stands around them."""
    for outcome in verdict.blocking_failed:
        yield from (f"{outcome.table}: {_alone(row)}" for row in outcome.rows)


def _alone(row: Mapping[str, Any]) -> str:
    return _told({name: value for name, value in row.items() if name not in CONTEXT})


def _broken(outcome: Judgement) -> Iterator[str]:
    if outcome.unexpected:
        noun = "case" if outcome.expectation in OF_INTERVALS else "row"
        yield f"    {counted(outcome.unexpected, f'{noun} breaks it', f'{noun}s break it')}; times are UTC"
    for row in outcome.rows[:SHOWN]:
        around = row.get("around") or {"before": [], "after": []}
        if governor := row.get("governed_by"):
            yield f"    held against  {_told(governor)}"
        for each in around["before"]:
            yield f"      before      {_told(each)}"
        yield f"    > breaks it   {_alone(row) or 'of what was seen there is no value to tell'}"
        for each in around["after"]:
            yield f"      after       {_told(each)}"
    # Of files and intervals each is one case, however many rows it has.
    of_rows = outcome.unexpected and outcome.expectation not in OF_FILES
    cases = outcome.unexpected if of_rows else len(outcome.rows)
    if outcome.rows and cases > SHOWN:
        yield f"    and {cases - SHOWN:,} more; --json and the report show up to 20"
    yield f"    {outcome.remedy}"


def _told(row: Mapping[str, Any]) -> str:
    first = {name: value for name, value in row.items() if name not in LAST_COLUMNS}
    last = {name: row[name] for name in LAST_COLUMNS if name in row}
    return ", ".join(f"{name} {printable(str(value))}" for name, value in (first | last).items() if value is not None)


def next_step(verdict: SpokenVerdict) -> str:
    """Spell the command to type next."""
    known = verdict.known
    if verdict.held or _accepted(verdict):
        return _gone_on(verdict)
    if _is_damaged(verdict):
        return known.command("doctor", "--deep", "--repair")
    if any(entry.kind is CommitKind.EPOCH for entry in verdict.judged.entries) or len(verdict.legs) > 1:
        # No interval can be run over a stream's epochs. What its rows must be a replay says; what a team asks of their
        # values is for somebody who looks at them.
        is_of_values = all(each.expectation.startswith(OWN) for each in verdict.blocking_failed)
        return known.command("report" if is_of_values else "replay")
    if verdict.waits:
        publish = ("publish", "--commit", str(verdict.commit))
        rejected = known.command(*publish, "--reject", "REASON", "--by", "NAME")
        accepted = known.command(*publish, "--accept", "REASON", "--by", "NAME")
        return f"{rejected}, or, for readers to see it all the same, {accepted}"
    return _made_anew(verdict)


def _gone_on(verdict: SpokenVerdict) -> str:
    known = verdict.known
    if verdict.waits and verdict.held:
        return known.command("publish", "--commit", str(verdict.commit))
    if verdict.held and verdict.is_rejected:
        return f"{known.run_command(*verdict.judged.span)}: commit {verdict.commit} was rejected, and stays so"
    return next((need.command for need in verdict.red if need.command), known.command("report"))


def _is_open(verdict: SpokenVerdict, entry: Entry) -> bool:
    """Say whether something blocks in a commit that nobody let pass."""
    fails = (
        each for each in verdict.blocking_failed if entry.commit in {_commit_of(verdict, row) for row in each.rows}
    )
    return any(not passed_words(entry.verdict, each.table, each.sentence) for each in fails)


def _is_damaged(verdict: SpokenVerdict) -> bool:
    """Say whether files are damaged that a run would begin from, or could not read: what landed, and the carry."""
    found = [(each.expectation, row) for each in verdict.blocking_failed for row in each.rows if "problem" in row]
    return any(law == AS_PUBLISHED or (law == AS_RECOMPUTED and "file" in row) for law, row in found)


def _alone_by(verdict: SpokenVerdict) -> str:
    start, end = map(verdict.known.moments.argument, verdict.judged.entries[0].span)
    return f"of one interval by itself: {verdict.known.command('check', '--start', start, '--end', end)}"


def _together(verdict: SpokenVerdict) -> list[Judgement]:
    """Give what blocks and was asked of the rows of several intervals together, so that no one of them breaks it."""
    entries = [entry for entry in verdict.judged.entries if entry.kind is CommitKind.INTERVAL]
    return [each for each in verdict.blocking_failed if not _is_of_each(verdict, each)] if entries[1:] else []


def _is_of_each(verdict: SpokenVerdict, found: Judgement) -> bool:
    flow = verdict.known.flow_now
    own = () if flow is None else flow.expect.get(found.table, ())
    is_of_most = any("mostly" in each.arguments for each in own if each.label == found.expectation)
    return is_of_each(found.expectation) and not is_of_most


def _made_anew(verdict: SpokenVerdict) -> str:
    """Spell how what a backfill made is made again, where what blocks fails in it."""
    known, broken = verdict.known, [entry for entry in _broken_entries(verdict) if _is_open(verdict, entry)]
    if verdict.is_rejected:
        return f"{known.run_command(*verdict.judged.span)} once that is put right, or with --hold to decide over it"
    if known.is_applied:
        return known.command("plan")
    if _together(verdict):
        return f"{known.run_command(*verdict.judged.span)} once that is put right"
    if not broken:
        # Which days more cases are of than are told, their pages say.
        return known.command("report")
    again = known.run_command(min(entry.span.start for entry in broken), max(entry.span.end for entry in broken))
    if any(each.expectation in OF_FILES for each in verdict.blocking_failed):
        return again
    # Of the same files the same rows would come out, and be refused.
    return f"{again} once that is put right, or with --hold to decide over it"
