"""`pulseline run`: backfill a flow over a span, with a line for each interval and what remains."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pipelines.engine.columns import instant_text
from pipelines.engine.lease import Claim
from pipelines.flows.grid import intervals
from pipelines.jobs.backfill import Backfill, Ran, run_backfill
from pipelines.jobs.engines import engine_named
from pipelines.jobs.settings import MAIN_RUN, load_flow, read_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipelines.engine.history import Entry
    from pipelines.flows.model import Flow


def run_flow(  # noqa: PLR0913 - the options of the command
    name: str,
    start: str,
    end: str,
    engine: str | None,
    run: str,
    one_shot: bool,  # noqa: FBT001 - the command's flag
    take_over: bool,  # noqa: FBT001 - the command's flag
    echo: Callable[[str], None],
) -> None:
    """Backfill a flow over a span of its grid and say what came of each interval."""
    settings = read_settings()
    flow = load_flow(settings, name)
    for warning in flow.warnings:
        echo(f"warning: {warning}")
    spans = intervals(flow, start, end)
    if one_shot:
        spans = [(spans[0][0], spans[-1][1])]
    runner = engine_named(engine or settings.engine, settings.master, settings.spark_log)
    wanted = Backfill(
        flow=flow,
        root=settings.root(flow.name, run),
        base=settings.feeds_base(flow),
        engine=runner,
        claim=Claim.TAKE_OVER if take_over else Claim.ASK,
    )
    progress = Progress(flow, len(spans), echo)
    try:
        ran = run_backfill(wanted, spans, done=progress.done)
    finally:
        runner.close()
    progress.summary(ran)
    here = "" if run == MAIN_RUN else f" --run {run}"
    echo(f"next: pulseline status {name}{here}, or pulseline show {name} {list(flow.streams)[-1]}{here}")


class Progress:
    """A line for each published interval, with the time that the rest will take.

    Args:
        flow: what runs.
        total: intervals in all.
        echo: where lines go.
    """

    def __init__(self, flow: Flow, total: int, echo: Callable[[str], None]) -> None:
        """Begin now."""
        self._flow, self._total, self._echo = flow, total, echo
        self._count, self._begun = 0, time.perf_counter()

    def done(self, ran: Ran) -> None:
        """Say what one interval gave, and how long the rest will take."""
        self._count += 1
        left = max(0, self._total - self._count)
        rest = (time.perf_counter() - self._begun) / self._count * left
        remains = f"{left} left, about {rest:.0f} s" if left else "all done"
        self._echo(f"{span_text(self._flow, ran.entry)}  {rows_text(ran.entry)}  {ran.seconds:.1f} s  ({remains})")

    def summary(self, ran: list[Ran]) -> None:
        """Say what all intervals gave together."""
        seconds = time.perf_counter() - self._begun
        commits = ", ".join(str(each.entry.commit) for each in ran[:8]) + (", ..." if len(ran) > 8 else "")  # noqa: PLR2004
        replaced = sum(len(each.entry.supersedes) for each in ran)
        note = f", replacing {replaced} earlier ones" if replaced else ""
        noun = "commit" if len(ran) == 1 else "commits"
        self._echo(f"published {len(ran)} {noun} ({commits}){note} in {seconds:.1f} s")


def span_text(flow: Flow, entry: Entry) -> str:
    """Spell an interval by its local days where it begins and ends at midnight, else by its instants."""
    import pendulum

    local = [pendulum.from_timestamp(tick / 1_000_000, tz=flow.timezone) for tick in entry.span]
    if all(moment.time().isoformat() == "00:00:00" for moment in local):
        first, last = local[0].to_date_string(), local[1].subtract(days=1).to_date_string()
        return first if first == last else f"{first} to {last}"
    return " to ".join(instant_text(tick) for tick in entry.span)


def rows_text(entry: Entry) -> str:
    """Spell what a commit landed, and the rows of each of its streams."""
    counts = {name: count for name, count in entry.counts.items() if isinstance(count, dict)}
    landed = sum(counts.get("landed", {}).values())
    kinds = ("data", "start", "end", "timer", "cti")
    streams = [
        f"{name} {sum(count.get(kind, 0) for kind in kinds):,}"
        for name, count in counts.items()
        if name not in {"landed", "ledger"}
    ]
    return f"landed {landed:,}  " + "  ".join([*streams, f"ledger {sum(counts.get('ledger', {}).values()):,}"])
