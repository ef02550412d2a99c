"""A flow as a scheduler offers it, read so quickly that it may ask again and again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.flows.feeds.spec import Clock
from pipelines.flows.reading import read_frame
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.settings import flow_files, read_settings
from pipelines.jobs.text.moments import Moments

if TYPE_CHECKING:
    import datetime as dt

    from pipelines.flows.model import Flow

DAY = 86_400_000_000
LONGEST_NAME = 200
"""Characters; a scheduler takes no longer names."""
FLOW = re.compile(r"^flow:[ \t]*(\S+)", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Offered:
    """A flow as a scheduler sees it."""

    called: str
    """What commands call it: the name of its file."""
    name: str
    """What its tables and pages are called by."""
    about: str
    owner: str = ""
    """Who is asked where it needs a person; empty where the file names nobody."""
    timezone: str = "UTC"
    daily: bool = True
    """Whether each day is a whole number of its intervals."""
    recorded: bool = True
    """Whether it can be backfilled."""
    starts: dt.datetime | None = None
    """The first day that its sources hold, in its timezone."""
    ends: dt.datetime | None = None
    """Where they end, exclusive."""
    config: str | None = None
    """The folder of its configuration, for commands over it; None where they find it by themselves."""

    @property
    def grows(self) -> bool:
        """Say whether new days come by themselves."""
        return self.ends is None


def flow_names() -> list[str]:
    """List what commands call the flows of the configuration, whatever is wrong with them."""
    return names_in(read_settings().config)


def names_in(config: Path) -> list[str]:
    """List what commands call the flows of a folder, whatever is wrong with them.

    Args:
        config: the folder of flows and environments.
    """
    return [file.stem for file in flow_files(config)]


def offered(called: str, config: str | None = None) -> Offered:
    """Read a flow as a scheduler sees it.

    Args:
        called: the name of its file.
        config: the folder of flows and environments, of which only the flows are read, for a scheduler keeps which
            environment is meant, and may tell tasks alone; None for that of this process.

    Raises:
        FlowError: says what is wrong with the file, and where.
        WrongUse: another file has a flow of this name, or no scheduler takes the name.
    """
    files = {file.stem: file for file in flow_files(Path(config) if config else read_settings().config)}
    file = files.get(called)
    if file is None:
        raise WrongUse(f"the flow `{_printable(called)}` must have a file of that name, and has none any more")
    flow = read_frame(file)
    if not _nameable(called, flow):
        raise WrongUse(f"the name of a flow must have at most {LONGEST_NAME} characters, and that of its file be UTF-8")
    earlier = [name for name, other in files.items() if name < called and _has(other, flow.name)]
    if earlier:
        raise WrongUse(f"the flow `{flow.name}` must stand in one file, and stands in {earlier[0]}.yaml, too")
    return _offer(called, flow, config)


def _offer(called: str, flow: Flow, config: str | None) -> Offered:
    moments = Moments(flow.timezone)
    return Offered(
        called=called,
        name=flow.name,
        about=flow.about,
        owner=flow.asked,
        timezone=flow.timezone,
        daily=flow.every <= DAY,
        recorded=flow.clock is Clock.RECORDED,
        starts=None if flow.starts is None else moments.at(flow.starts),
        ends=None if flow.ends is None else moments.at(flow.ends),
        config=config,
    )


def _nameable(called: str, flow: Flow) -> bool:
    return called == _printable(called) and len(flow.name) <= LONGEST_NAME


def _has(file: Path, name: str) -> bool:
    """Say whether another file has a flow of this name that can be offered; one that is wrong takes no name away."""
    found = FLOW.search(file.read_text(encoding="utf-8", errors="replace"))
    if found is None or found[1].strip("\"'") != name:
        return False
    try:
        return _nameable(file.stem, read_frame(file))
    except Exception:  # noqa: BLE001 - whatever is wrong with it, its own file says so
        return False


def _printable(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()
