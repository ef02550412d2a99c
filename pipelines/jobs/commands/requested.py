"""What Airflow is about to run, as it says it, and which intervals that means."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pipelines.flows.grid import FIRST_TICK, cuts_between, interval_of, intervals
from pipelines.flows.holding import outside
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.settings import MAIN_RUN
from pipelines.jobs.text.moments import Moments
from pipelines.operators.plain_words import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.engine.commits.history import LogState
    from pipelines.flows.model import Flow
    from pipelines.jobs.environment.forms import Form
    from pipelines.jobs.environment.settings import Settings

    Span = tuple[int, int]

BACKFILL = "backfill"
OWN_DAYS = ("scheduled", BACKFILL)
"""Kinds of Airflow's runs whose days are Airflow's."""


@dataclass(frozen=True, kw_only=True)
class RequestedRun:
    """What Airflow says of the run that it is about to begin."""

    called: str
    """Name of the flow, or the path of its file."""
    flow: Flow
    settings: Settings
    conf: dict[str, Any]
    """What came with the run, from a form or a client."""
    interval: tuple[str, str] | None = None
    """The run's data interval, two instants as ISO 8601; a run without a logical date has none."""
    by: str = "manual"
    """Airflow's word for the kind of the run."""
    events: tuple[dict[str, Any], ...] = ()
    """What the assets that triggered the run said."""
    made_by: str = ""
    """Name of Airflow's run, for the pages that it keeps."""

    @property
    def moments(self) -> Moments:
        """Say instants in the flow's timezone."""
        return Moments(self.flow.timezone)

    def state(self, run: str) -> LogState:
        """Read the log of a run."""
        from pipelines.engine.commits.readers import log_state

        return log_state(self.settings.root(self.flow.name, run))

    @cached_property
    def own(self) -> list[Span]:
        """Give the intervals of Airflow's data interval.

        Raises:
            WrongUse: it has none, and no days were chosen.
        """
        if self.interval is None:
            raise WrongUse("this run has no data interval, and no days were chosen: fill in `start` and `end`")
        return intervals(self.flow, *self.interval)

    @cached_property
    def ground(self) -> int | None:
        """Give where a run begins that is to leave no day out: the newest published end, else the flow's `starts`.

        None where neither is known, and the first row that came says it.
        """
        tip = self.state(MAIN_RUN).tip
        return self.flow.starts if tip is None else tip.span.end

    @cached_property
    def came(self) -> Span | None:
        """Give the first and the last arrival from the ground up to the end of the data interval; None without a row.

        What was told before a run began does not say where it begins, unless there is nothing else.

        Raises:
            LandingError: a feed is missing, or does not have what its source says of it.
        """
        from pipelines.engine.sources.catalog import open_recorded

        within = (FIRST_TICK if self.ground is None else self.ground, self.own[-1][1])
        feeds = open_recorded(self.flow, self.settings.feeds_base(self.flow))
        asked = {name: feed.arrivals(sys.maxsize, within) for name, feed in feeds.items()}
        found = {name: span for name, span in asked.items() if span is not None}
        told = [span[0] for name, span in found.items() if self.flow.sources[name].history is None]
        firsts = told or [span[0] for span in found.values()]
        return (min(firsts), max(span[1] for span in found.values())) if found else None

    def page(self, run: str, *words: str) -> list[str]:
        """Spell the command that makes a page, and keeps it as it was for this run of Airflow's."""
        kept = ["--keep", self.made_by] if self.made_by else []
        return ["report", self.called, *words, *(["--run", run] if run != MAIN_RUN else []), *kept, "--json"]

    def words(self, span: Span) -> tuple[str, ...]:
        """Spell a span as options."""
        start, end = (self.moments.argument(tick) for tick in span)
        return ("--start", start, "--end", end)


def days_of(asked: RequestedRun, form: Form) -> list[Span]:
    """Give the intervals that are asked for; none where Airflow asks, and nothing has come for them."""
    start, end = form.text("start"), form.text("end")
    if asked.by in OWN_DAYS:
        if start or end:
            raise WrongUse("a scheduled run takes its days from Airflow: leave `start` and `end` empty")
        return _of_airflow(asked)
    if start:
        last = end or asked.moments.argument(interval_of(asked.flow, start)[1])
        return intervals(asked.flow, start, last)
    if end:
        raise WrongUse("`end` in the form stands alone, expected `start` with it")
    return _of_airflow(asked)


def _of_airflow(asked: RequestedRun) -> list[Span]:
    """Give the days of Airflow's data interval, and before them those that nobody has run yet.

    Airflow's own backfill names each day that it wants; any other run fills from the ground on. One with nothing to
    fill runs its day whether rows came or not, so that a day without files is seen.
    """
    return asked.own if asked.by == BACKFILL or _follows(asked) else _filled(asked)


def _follows(asked: RequestedRun) -> bool:
    """Say whether nothing is left out before the data interval, or the sources hold nothing there at all."""
    start = asked.own[0][0]
    return outside(asked.flow, start, start) or (asked.ground is not None and start <= asked.ground)


def _filled(asked: RequestedRun) -> list[Span]:
    """Give the intervals from the ground, or the first row, to the newest row's; the data interval's are not parted."""
    if asked.came is None:
        return []
    first, last = (cuts_between(asked.flow, tick, tick + 1) for tick in asked.came)
    begin, end = whole(asked.own)
    start = min(begin, first[0] if asked.ground is None else asked.ground)
    return intervals(asked.flow, *map(asked.moments.at, (start, end if last[0] >= begin else last[-1])))


def filled_text(asked: RequestedRun, spans: list[Span]) -> str | None:
    """Say that intervals before the run's own are run, too, and why; None where there are none."""
    if asked.conf.get("start") or asked.interval is None or spans[0][0] >= asked.own[0][0]:
        return None
    (start, end), own = whole(spans), asked.own[0][0]
    first, last = asked.moments.argument(start), asked.moments.argument(min(end, own))
    every = counted(len(spans), "interval")
    if end <= own:
        return f"nothing is published from {first} on, and no row has come from {last} on: {every} in between are run"
    return f"nothing is published from {first} on, so what comes before {last} is run first: {every} in all"


def nothing_text(asked: RequestedRun) -> str:
    """Say that no row has come for what is due."""
    end = asked.own[-1][1]
    if asked.ground is None:
        return f"the sources hold no row that arrived before {asked.moments.argument(end)}, so nothing is run"
    return f"no row has come for {asked.moments.span(asked.ground, end)} yet, so nothing is run"


def held(asked: RequestedRun, spans: list[Span]) -> list[Span]:
    """Refuse days that the flow's sources do not hold.

    Raises:
        WrongUse: says which they hold.
    """
    flow, moments = asked.flow, asked.moments
    if outside(flow, *whole(spans)):
        first = moments.argument(flow.starts) if flow.starts is not None else "any day"
        last = moments.argument(flow.ends) if flow.ends is not None else "any day"
        came = moments.span(*whole(spans))
        raise WrongUse(f"the sources of {flow.name} hold {first} until {last} and not {came}: choose days within")
    return spans


def whole(spans: Sequence[Span]) -> Span:
    """Give the span of adjacent ones."""
    return spans[0][0], spans[-1][1]


def not_done(spans: list[Span], state: LogState) -> list[Span]:
    """Leave out the published intervals at the beginning; behind one that is run, all are."""
    stale = {entry.commit for entry in state.stale}
    done = [entry.span for entry in state.published if entry.commit not in stale]
    covered = [any(span.start <= start and end <= span.end for span in done) for start, end in spans]
    return spans[covered.index(False) :] if False in covered else []
