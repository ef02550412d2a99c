"""The flows that a scheduler offers, read so quickly that it may ask again and again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain, count
from typing import TYPE_CHECKING

from pipelines.flows.errors import FlowError
from pipelines.flows.feeds.spec import Clock
from pipelines.flows.reading import read_frame
from pipelines.jobs.environment.settings import flow_files, read_settings
from pipelines.jobs.text.moments import Moments

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection
    from pathlib import Path

DAY = 86_400_000_000
LONGEST_NAME, LONGEST_PROBLEM = 200, 1_000
"""Characters; a scheduler takes no longer names, and shows no longer texts."""


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
    """List every flow of the configuration; whatever is wrong with one takes none of the others away."""
    found: list[Offered] = []
    files = flow_files(read_settings())
    read = {file: _read(file) for file in files}
    sound = {flow.name for flow in read.values() if isinstance(flow, Offered)}
    for file, flow in read.items():
        taken = {each.name: each.called for each in found}
        if isinstance(flow, str):
            found.append(_wrong(file, flow, sound | taken.keys()))
        elif flow.name in taken:
            problem = f"the flow `{flow.name}` stands in {taken[flow.name]}.yaml, too"
            found.append(_wrong(file, problem, sound | taken.keys()))
        else:
            found.append(flow)
    return found


def _read(file: Path) -> Offered | str:
    """Read a flow, or say what is wrong with it."""
    try:
        flow = read_frame(file)
        moments = Moments(flow.timezone)
        offered = Offered(
            called=file.stem,
            name=flow.name,
            about=flow.about,
            timezone=flow.timezone,
            daily=flow.every <= DAY,
            recorded=flow.clock is Clock.RECORDED,
            starts=None if flow.starts is None else moments.at(flow.starts),
            ends=None if flow.ends is None else moments.at(flow.ends),
        )
    except FlowError as problem:
        return str(problem)
    except Exception as problem:  # noqa: BLE001 - what nobody foresaw of one file is no reason to lose the others
        return f"{type(problem).__name__} while it was read"
    if file.stem != _printable(file.stem) or len(flow.name) > LONGEST_NAME:
        return f"the name of a flow has at most {LONGEST_NAME} characters, and that of its file is UTF-8"
    return offered


def _wrong(file: Path, problem: str, taken: Collection[str]) -> Offered:
    """Offer a flow whose file is wrong under a name that a scheduler takes, and that no other flow has."""
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", file.stem)[:LONGEST_NAME] or "_"
    names = chain([plain], (f"{plain}_{number}" for number in count(2)))
    name = next(name for name in names if name not in taken)
    told = _printable(problem)[:LONGEST_PROBLEM]
    return Offered(called=_printable(file.stem), name=name, about=f"Its file is wrong: {told}")


def _printable(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()


def recorded_flows() -> list[Offered]:
    """List the flows that can be backfilled."""
    return [flow for flow in offered_flows() if flow.recorded]
