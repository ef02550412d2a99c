"""`python -m pipelines.jobs.commands.request KIND FLOW`: what Airflow is about to run, checked before it starts.

The last line that it prints is one JSON object: what will be run, in words, and `commands`, the words of the
`pulseline` commands by task. `skip` is there when a task has nothing left to do, and says why.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from pipelines.errors import Exit
from pipelines.flows.feeds.spec import Clock
from pipelines.flows.grid import DAY, cuts_between, instant_of, intervals
from pipelines.flows.reading import read_frame
from pipelines.jobs.commands.requested import (
    OWN_DAYS,
    RequestedRun,
    days_of,
    filled_text,
    held,
    not_done,
    nothing_text,
    whole,
)
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.exits import exit_code_of
from pipelines.jobs.environment.forms import Form
from pipelines.jobs.environment.settings import MAIN_RUN, RUN_NAME, flow_file, read_settings
from pipelines.jobs.runs.known import open_run
from pipelines.jobs.runs.played import read_range

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Span = tuple[int, int]
    Request = dict[str, Any]

BACKFILL_KEYS = ("start", "end", "engine", "force", "plan")
STREAM_KEYS = ("run", "start", "end", "speed", "for", "until", "after_backfill")
QUALITY_KEYS = ("run", "start", "end", "deep")
REPLAY_KEYS = ("run", "from", "to", "into", "speed")
ENGINES = ("core", "batch")
STREAM_TITLES = {"for": "Stop after"}
STOPPED, CAUGHT_UP = "stopped", "caught up"
LIVE_RUN = "live"
REPLAY_RUN = "replay"
SLOWEST = 0.001
"""The least speed of a replay."""
SHOWN = 200
"""Characters of what came that are told."""
MOST_PAGES = 31
"""Intervals of one request that get a page anew."""


def backfill(asked: RequestedRun) -> Request:
    """Say which intervals are run: those of the form, else of Airflow's data interval.

    What is published and not stale at their beginning is left alone, unless it is forced. Of a plan only what is not
    as it should be is run.

    Raises:
        WrongUse: the form makes no sense, or the days are not among those that the flow's sources hold.
        GridError: the days lie off the flow's grid.
        CommitError: earlier days must be run first.
    """
    form = Form(asked.conf, BACKFILL_KEYS)
    if asked.flow.clock is Clock.WALL:
        raise WrongUse(f"{asked.called} lives by the real clock and has no days to run again: see its stream")
    engine, force = form.choice("engine", ENGINES), form.flag("force")
    if form.flag("plan"):
        return _of_plan(asked, form, ["--engine", engine] if engine else [])
    spans = days_of(asked, form)
    if not spans:
        return _nothing_came(asked)
    spans = held(asked, spans)
    state = asked.state(MAIN_RUN)
    left = spans if force else not_done(spans, state)
    if left:
        state.parent_for(left[0][0])
    request: Request = {"flow": asked.flow.name, "run": MAIN_RUN, "force": force, **_told(asked, left or spans)}
    if note := filled_text(asked, spans):
        request["note"] = note
    if not left:
        told = asked.moments.span(spans[0][0], spans[-1][1])
        sentence = f"{told} is published already and not stale, so nothing is run; `force` runs it again"
        request["skip"] = {"run": sentence}
    words = ["run", asked.called, *asked.words(whole(left or spans)), *(["--engine", engine] if engine else [])]
    return request | {"commands": {"run": [[*words, "--hold", "--json"]], "report": _pages(asked, spans)}}


def _nothing_came(asked: RequestedRun) -> Request:
    """Say that nothing is run, for no row has come for what is due."""
    said = nothing_text(asked)
    skip = dict.fromkeys(("run", "report"), said)
    return {"flow": asked.flow.name, "run": MAIN_RUN, "note": said, "skip": skip, "commands": {}}


def _of_plan(asked: RequestedRun, form: Form, engine: list[str]) -> Request:
    """Say what of a plan is run: between the days of the form, else all that is not as it should be.

    Raises:
        WrongUse: all days are to be run again, Airflow gives the days, or nothing says which there are.
        GridError: the days lie off the flow's grid.
        CommitError: earlier days must be run first.
    """
    from pipelines.jobs.facts.planning import PlanRequest, planned, summary

    if form.flag("force"):
        raise WrongUse("`plan` in the form runs what is not as it should be, `force` all days: choose one of both")
    if asked.by in OWN_DAYS:
        raise WrongUse("a scheduled run takes its days from Airflow: leave `plan` out")
    _both(asked, form)
    _, plan = planned(PlanRequest(flow=asked.called, start=form.text("start"), end=form.text("end")))
    if not plan.found:
        raise WrongUse(summary(plan))
    left = held(asked, [(each.span.start, each.span.end) for each in plan.left or plan.found])
    request: Request = {"flow": asked.flow.name, "run": MAIN_RUN, "note": summary(plan), **_told(asked, left)}
    if plan.left:
        asked.state(MAIN_RUN).parent_for(left[0][0])
    else:
        request["skip"] = {"run": summary(plan)}
    words = ["run", asked.called, "--plan", *asked.words(whole(left)), *engine, "--hold", "--json"]
    return request | {"commands": {"run": [words], "report": _pages(asked, left)}}


def stream(asked: RequestedRun) -> Request:
    """Say how the flow is streamed.

    Raises:
        WrongUse: the form makes no sense, or a recorded feed has no range to play.
        GridError: the range lies off the flow's grid.
    """
    form = Form(asked.conf, STREAM_KEYS, STREAM_TITLES)
    run, speed, lasts = form.text("run") or LIVE_RUN, form.positive("speed"), form.lasting("for")
    until = form.choice("until", (STOPPED, CAUGHT_UP)) or STOPPED
    span = _range(asked, form, run)
    words = ["stream", asked.called, "--run", run, *(asked.words(span) if span else ())]
    words += ["--speed", f"{speed:g}"] if speed is not None and asked.flow.clock is Clock.RECORDED else []
    words += ["--for", lasts] if lasts is not None else []
    words += ["--until-caught-up"] if until == CAUGHT_UP else []
    words += ["--after-backfill"] if form.flag("after_backfill") else []
    status = ["status", asked.called, "--run", run, "--json"]
    told = {"flow": asked.flow.name, "run": run, "until": until, "published": len(asked.state(run).published)}
    return told | {"commands": {"stream": [words, status], "report": [asked.page(run)]}}


def quality(asked: RequestedRun) -> Request:
    """Say which published spans are checked: of the form, else of the assets' events, else all that is published.

    What its gate has just judged is not judged again.

    Raises:
        WrongUse: the form or an event makes no sense, or there is no such run.
        GridError: the days lie off the flow's grid.
    """
    events = () if asked.conf else asked.events
    judged = [event for event in events if event.get("verdict")]
    forms = [Form(_of_form(event), QUALITY_KEYS) for event in events if event not in judged]
    forms += [] if events else [Form(asked.conf, QUALITY_KEYS)]
    checks, runs = [], [str(event.get("run") or MAIN_RUN) for event in judged]
    for form in forms:
        run, span = form.text("run") or MAIN_RUN, (_around if events else _both)(asked, form)
        open_run(asked.called, run)
        deep = ["--deep"] if form.flag("deep") else []
        check = ["check", asked.called, *(asked.words(span) if span else ()), "--run", run, *deep, "--json"]
        checks += [check] if check not in checks else []
        runs.append(run)
    runs = list(dict.fromkeys(runs))
    request: Request = {"flow": asked.flow.name, "runs": runs}
    if not checks:
        request["skip"] = {"check": _judged_text(judged)}
    return request | {"commands": {"check": checks, "report": [asked.page(run) for run in runs]}}


def _judged_text(judged: Sequence[dict[str, Any]]) -> str:
    told = "; ".join(f"commit {event.get('commit')}: {event['verdict']}" for event in judged)
    return f"the gate has just judged what was published ({told}), so nothing is checked again"


def replay(asked: RequestedRun) -> Request:
    """Say which part of a recording is played again, and into which run; nothing is changed yet.

    Raises:
        WrongUse: the form makes no sense, there is nothing to play, or no run to play it into.
        CommitError: there is no such state.
        LandedColumnError: a column landed with a type that is not the flow's, nor becomes it.
    """
    form = Form(asked.conf, REPLAY_KEYS)
    run, into = _run_name(form, "run", MAIN_RUN), _run_name(form, "into", REPLAY_RUN)
    start, end, speed = form.text("from"), form.text("to"), form.positive("speed")
    if speed is not None and speed < SLOWEST:
        raise form.wrong("speed", f"{SLOWEST} or more")
    words = ["replay", asked.called, "--run", run, "--into", into]
    words += ["--from", start] if start else []
    words += ["--to", end] if end else []
    words += ["--speed", f"{speed:g}"] if speed is not None else []
    status = ["status", asked.called, "--run", into, "--json"]
    told = {"flow": asked.flow.name, "run": run, "into": into, **_part(asked, run, into, (start, end))}
    return told | {"commands": {"replay": [words, status], "report": [asked.page(into)]}}


KINDS: dict[str, Callable[[RequestedRun], Request]] = {
    "backfill": backfill,
    "stream": stream,
    "quality": quality,
    "replay": replay,
}


def _run_name(form: Form, key: str, usual: str) -> str:
    name = form.text(key) or usual
    if not RUN_NAME.fullmatch(name):
        raise form.wrong(key, "a name of letters, digits, `_` and `-`")
    return name


def _part(asked: RequestedRun, run: str, into: str, states: tuple[str | None, str | None]) -> Request:
    """Find the part of a recording between two states, as the command will."""
    from pipelines.jobs.commands.replay import ReplayRequest, prepared

    start, end = states
    wanted = ReplayRequest(flow=asked.called, run=run, into=into, start=start, end=end)
    found = prepared(asked.settings, wanted).recording
    first, last = (asked.moments.argument(tick) for tick in (found.start, found.end))
    return {"start": first, "end": last, "sequences": len(found.numbers)}


def _of_form(event: dict[str, Any]) -> dict[str, Any]:
    return {key: event[key] for key in QUALITY_KEYS if key in event}


def _told(asked: RequestedRun, spans: list[Span]) -> Request:
    start, end = (asked.moments.argument(tick) for tick in whole(spans))
    return {"start": start, "end": end, "intervals": len(spans)}


def _pages(asked: RequestedRun, spans: list[Span]) -> list[list[str]]:
    """Give the commands that make the pages of the intervals and of the run; the one that is shown comes last."""
    every = asked.page(MAIN_RUN)
    starts = [asked.moments.argument(start) for start, _ in spans[-MOST_PAGES:]]
    own = [asked.page(MAIN_RUN, "--interval", start) for start in starts]
    return [every, *own] if len(own) == 1 else [*own, every]


def _both(asked: RequestedRun, form: Form) -> Span | None:
    start, end = form.text("start"), form.text("end")
    if start and end:
        return whole(intervals(asked.flow, start, end))
    if start or end:
        given, missing = ("start", "end") if start else ("end", "start")
        raise WrongUse(f"`{given}` in the form stands alone, expected `{missing}` with it")
    return None


def _around(asked: RequestedRun, form: Form) -> Span | None:
    """Give what an event names; of a day that is shorter than an interval, the whole interval, which commits fill."""
    start, end = form.text("start"), form.text("end")
    if asked.flow.every <= DAY or not start or not end:
        return _both(asked, form)
    first, last = (instant_of(asked.flow, moment, name) for name, moment in (("start", start), ("end", end)))
    cuts = cuts_between(asked.flow, first, last)
    return cuts[0], cuts[-1]


def _range(asked: RequestedRun, form: Form, run: str) -> Span | None:
    """Give the range of a recorded feed to play; None under the real clock, and where the run goes on."""
    root, span = asked.settings.root(asked.flow.name, run), _both(asked, form)
    if asked.flow.clock is Clock.WALL:
        if span:
            raise WrongUse("`start` and `end` are the range of a recorded feed; this flow runs under the real clock")
        return None
    if span is None and read_range(root) is None:
        raise WrongUse(f"run `{run}` has played nothing yet: fill in `start` and `end`, the range to play")
    return None if span is None else whole(held(asked, [span]))


def main(argv: Sequence[str]) -> int:
    """Check a request and print it as one JSON line; its exit code is a command's."""
    given = _parser().parse_args(argv)
    try:
        settings = read_settings()
        asked = RequestedRun(
            called=given.flow,
            flow=read_frame(flow_file(settings, given.flow)),
            settings=settings,
            conf=_object(_json(given.conf, "the form")),
            interval=(given.start, given.end) if given.start and given.end else None,
            by=given.by,
            events=_events(_json(given.events, "the events")),
            made_by=given.made_by,
        )
        request = KINDS[given.kind](asked)
        if "note" in request:
            print(request["note"])  # noqa: T201 - its output
        print(json.dumps(request))  # noqa: T201 - its output
    except Exception as error:  # noqa: BLE001 - the one place that catches
        code, line = exit_code_of(error)
        print(line, file=sys.stderr)  # noqa: T201 - its output
        return code
    return Exit.FINE


def _json(text: str, what: str) -> object:
    """Read JSON.

    Raises:
        WrongUse: it is none, or nobody could mean it: numbers of thousands of digits, thousands of lists in each other.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WrongUse(f"{what} must be JSON ({error}); it is `{_short(text)}`") from None


def _object(found: object) -> dict[str, Any]:
    found = found or {}
    if not isinstance(found, dict):
        raise WrongUse(f"the form must be a JSON object; it is `{_short(json.dumps(found))}`")
    return found


def _events(found: object) -> tuple[dict[str, Any], ...]:
    if not isinstance(found, list) or not all(isinstance(event, dict) for event in found):
        raise WrongUse(f"the events must be a JSON list of objects; they are `{_short(json.dumps(found))}`")
    return tuple(found)


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m pipelines.jobs.commands.request", description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("flow")
    parser.add_argument("--conf", default="{}", help="what came with the run, as JSON")
    parser.add_argument("--start", default="", help="begin of the data interval")
    parser.add_argument("--as", dest="made_by", default="", help="name of Airflow's run")
    parser.add_argument("--end", default="", help="its end")
    parser.add_argument("--by", default="manual", help="Airflow's kind of the run")
    parser.add_argument("--events", default="[]", help="what the triggering assets said, as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
