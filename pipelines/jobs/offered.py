"""The flows that a scheduler offers, read so quickly that it may ask again and again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipelines.flows.errors import FlowError
from pipelines.flows.model import Clock
from pipelines.flows.reading import read_frame
from pipelines.jobs.moments import Moments
from pipelines.jobs.settings import flow_files, read_settings

if TYPE_CHECKING:
    import datetime as dt

DAY = 86_400_000_000


@dataclass(frozen=True, kw_only=True)
class Offered:
    """A flow as a scheduler sees it. One whose file is wrong is offered too: its first task says what is wrong."""

    called: str
    """What commands call it: the name of its file."""
    name: str
    """What its tables and pages are called by."""
    about: str
    timezone: str = "UTC"
    daily: bool = True
    """Whether each day is a whole number of its intervals."""
    recorded: bool = True
    """Whether it can be backfilled."""
    starts: dt.datetime | None = None
    """The first day that its sources hold, in its timezone."""
    ends: dt.datetime | None = None
    """Where they end, exclusive."""

    @property
    def grows(self) -> bool:
        """Say whether new days come by themselves."""
        return self.ends is None


def offered_flows() -> list[Offered]:
    """List every flow of the configuration."""
    found = []
    for file in flow_files(read_settings()):
        try:
            flow = read_frame(file)
        except FlowError as problem:
            found.append(Offered(called=file.stem, name=file.stem, about=f"Its file is wrong: {problem}"))
            continue
        moments = Moments(flow.timezone)
        found.append(
            Offered(
                called=file.stem,
                name=flow.name,
                about=flow.about,
                timezone=flow.timezone,
                daily=flow.every <= DAY,
                recorded=flow.clock is Clock.RECORDED,
                starts=None if flow.starts is None else moments.at(flow.starts),
                ends=None if flow.ends is None else moments.at(flow.ends),
            )
        )
    return found


def recorded_flows() -> list[Offered]:
    """List the flows that can be backfilled."""
    return [flow for flow in offered_flows() if flow.recorded]
