"""`python -m pipelines.jobs.commands.promises FLOW`: which days of a flow are complete and not announced yet.

Airflow's DAG of promises asks every minute. The last line that is printed is one JSON object: `due`, the days to
announce, oldest first, each with its span, counts and content hashes; and `alerts`, what fell silent or speaks again
and nobody was told of. What somebody was told of comes back as `--alerted`.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from pipelines.engine.columnar.clock import wall_now
from pipelines.errors import Exit
from pipelines.flows.durations import parse
from pipelines.jobs.commands.request import LIVE_RUN
from pipelines.jobs.environment.exits import exit_code_of
from pipelines.jobs.environment.settings import MAIN_RUN, read_settings
from pipelines.jobs.facts.complete import complete_days, day_facts, promising
from pipelines.jobs.facts.quiet import asked_keys, is_looked_at, quiet
from pipelines.jobs.runs.announced import Announced
from pipelines.jobs.runs.known import KnownRun, flow_name, is_replayed, open_run, runs_of
from pipelines.operators.plain_words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Facts = dict[str, Any]

Alert = dict[str, Any]
RUNS = (MAIN_RUN, LIVE_RUN)
"""Runs whose days are announced; a day that both prove is told of the first."""
MOST = 31
"""Days that are announced in one go."""


def look(called: str, seen: Mapping[str, Mapping[str, str]], echo: Callable[[str], None]) -> Facts:
    """Find the days that are complete and that nobody was told of, and write them into the ledgers of their runs.

    Args:
        called: name of the flow, or the path of its file.
        seen: the days that were announced as far as Airflow knows, each with `run` and `at`.
        echo: where lines go.

    Raises:
        WrongUse: no such flow.
    """
    known = {run: each for run in RUNS if (each := _run(called, run)) is not None}
    ledgers = {run: Announced(each.root) for run, each in known.items()}
    for run, ledger in ledgers.items():
        ledger.confirm({day: told["at"] for day, told in seen.items() if told["run"] == run})
    told = set(seen).union(*(ledger.told for ledger in ledgers.values()))
    due: list[Facts] = []
    for run, each in known.items():
        found = [day for day in complete_days(each) if day.name not in told][: MOST - len(due)]
        facts = [day_facts(each, day) for day in found]
        ledgers[run].prove(facts)
        told.update(day.name for day in found)
        due += facts
    for ledger in ledgers.values():
        ledger.keep()
    echo(_said(known, due))
    return {"due": due}


def alerts(called: str, bound: int | None, now: int) -> list[Alert]:
    """Say what fell silent, or speaks again, since somebody was told last.

    Args:
        called: name of the flow, or the path of its file.
        bound: what is silent for longer is told, in ticks; None where only keys are, as the flow says.
        now: wall time, in ticks.

    Returns:
        Each with `run`, `what`, `since` (ticks; None where it speaks again) and a `sentence`; none of a stream that
        does not run, whose state is left as it is.
    """
    found: list[Alert] = []
    for run in RUNS:
        known = _run(called, run)
        keys = {} if known is None else asked_keys(known)
        if known is None or (bound is None and not keys):
            continue
        told = {what: at for what, at in Announced(known.root).silent.items() if is_looked_at(what, bound, keys)}
        late = quiet(known, now, bound, keys, told)
        if late is None:
            continue
        begun = {what: since for what, since in late.items() if what not in told}
        over = dict.fromkeys(what for what in told if what not in late)
        found += [
            {"run": run, "what": what, "since": since, "sentence": _sentence(known, what, since)}
            for what, since in (begun | over).items()
        ]
    return found


def alerted(called: str, told: Sequence[Alert]) -> None:
    """Write down what somebody was told of."""
    for run in {each["run"] for each in told}:
        known = open_run(called, run)
        ledger = Announced(known.root)
        for each in told:
            if each["run"] == run and each["since"] is None:
                ledger.silent.pop(each["what"], None)
            elif each["run"] == run:
                ledger.silent[each["what"]] = each["since"]
        ledger.keep()


def _sentence(known: KnownRun, what: str, since: int | None) -> str:
    of = f"{known.name}, run {known.run}: {what}"
    if since is None:
        return f"{of} makes progress again"
    return (
        f"{of} has made no progress since {known.moments.text(since)} ({known.moments.name}): {known.command('status')}"
    )


def _run(called: str, run: str) -> KnownRun | None:
    """Give a run that has rows of its own; None where there is none."""
    settings = read_settings()
    if run not in runs_of(settings, flow_name(settings, called)):
        return None
    known = open_run(called, run)
    return None if is_replayed(known.root) else known


def _said(known: Mapping[str, KnownRun], due: Sequence[Facts]) -> str:
    if due:
        days = ", ".join(f"{each['day']} ({each['run']})" for each in due)
        return f"{counted(len(due), 'day')} complete and not announced yet: {days}"
    if not known:
        return "nothing was run yet, so there is nothing to announce"
    if not any(map(promising, known.values())):
        return "no stream of this flow promises anything whatever its key is, so no day can be proved complete"
    return "no day is complete that is not announced"


def main(argv: Sequence[str]) -> int:
    """Look, and print what was found as one JSON line; its exit code is a command's."""
    parser = argparse.ArgumentParser(prog="python -m pipelines.jobs.commands.promises", description=__doc__)
    parser.add_argument("flow")
    parser.add_argument("--seen", default="{}", help="days that were announced, as JSON: by date `run` and `at`")
    parser.add_argument(
        "--on-silence", default="", help="what is silent for longer is told, such as 15m; empty: nothing"
    )
    parser.add_argument("--alerted", default="", help="alerts that were passed on, as JSON; then nothing else is done")
    given = parser.parse_args(argv)
    try:
        if given.alerted:
            alerted(given.flow, json.loads(given.alerted))
            return Exit.FINE
        bound = parse(given.on_silence) if given.on_silence else None
        found = look(given.flow, json.loads(given.seen), print)
        found["alerts"] = alerts(given.flow, bound, wall_now())
        print(json.dumps(found))  # noqa: T201 - its output
    except Exception as error:  # noqa: BLE001 - the one place that catches
        code, line = exit_code_of(error)
        print(line, file=sys.stderr)  # noqa: T201 - its output
        return code
    return Exit.FINE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
