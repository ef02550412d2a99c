"""What Airflow is about to run, as it says it, and which intervals that means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipelines.flows.grid import interval_of, intervals
from pipelines.flows.holding import outside
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.settings import MAIN_RUN
from pipelines.jobs.text.moments import Moments
from pipelines.operators.plain_words import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.engine.commits.entry import Entry
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

    def page(self, run: str, *words: str) -> list[str]:
        """Spell the command that makes a page, and keeps it as it was for this run of Airflow's."""
        kept = ["--keep", self.made_by] if self.made_by else []
        return ["report", self.called, *words, *(["--run", run] if run != MAIN_RUN else []), *kept, "--json"]

    def words(self, span: Span) -> tuple[str, ...]:
        """Spell a span as options."""
        start, end = (self.moments.argument(tick) for tick in span)
        return ("--start", start, "--end", end)


def days_of(asked: RequestedRun, form: Form) -> list[Span]:
    """Give the intervals that are asked for."""
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

    Airflow's own backfill names each day that it wants; any other run fills from the newest published end on.
    """
    if asked.interval is None:
        raise WrongUse("this run has no data interval, and no days were chosen: fill in `start` and `end`")
    own = intervals(asked.flow, *asked.interval)
    start = own[0][0] if asked.by == BACKFILL else _from(asked, own[0][0])
    return intervals(asked.flow, *map(asked.moments.at, (start, own[-1][1]))) if start < own[0][0] else own


def _from(asked: RequestedRun, start: int) -> int:
    """Give where a run begins that is to leave no day out: the newest published end, else where the sources start."""
    tip = asked.state(MAIN_RUN).tip
    return start if outside(asked.flow, start, start) else min(start, _ground(asked.flow, tip, start))


def _ground(flow: Flow, tip: Entry | None, otherwise: int) -> int:
    if tip is not None:
        return tip.span.end
    return otherwise if flow.starts is None else flow.starts


def filled_text(asked: RequestedRun, spans: list[Span]) -> str | None:
    """Say that intervals before the run's own are run, too, and why; None where there are none."""
    own = None if asked.interval is None else intervals(asked.flow, *asked.interval)[0][0]
    if asked.conf.get("start") or own is None or spans[0][0] == own:
        return None
    first, last = asked.moments.argument(spans[0][0]), asked.moments.argument(own)
    every = counted(len(spans), "interval")
    return f"nothing is published from {first} on, so what comes before {last} is run first: {every} in all"


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
