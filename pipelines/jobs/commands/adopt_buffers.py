"""`pulseline adopt-buffers`: say that a run's buffers are its own, where their marks say that they are another's.

A run's id moves along with its home. This is for a home that came back without it, or was copied and goes on in place
of the first: nothing else but a person can know that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.engine.buffers.buffers import buffers_of
from pipelines.engine.buffers.owners import adopt, owner_of
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.paths import landed_path
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.parameters import parameters_of
from pipelines.jobs.environment.settings import load_flow, read_settings
from pipelines.jobs.runs.known import require_own_landing

if TYPE_CHECKING:
    from collections.abc import Callable


def adopt_buffers(name: str, run: str, echo: Callable[[str], None]) -> None:
    """Mark the buffers of a run as its own, and say whose they were; what they hold is judged when it streams.

    Args:
        name: of the flow, or path of its file.
        run: name of the run.
        echo: told what was done.

    Raises:
        WrongUse: the flow has no buffers.
        LeaseHeldError: a stream or a backfill is at work on this run.
        OSError: a buffer's storage does not answer.
    """
    settings = read_settings()
    flow = load_flow(settings, name, parameters_of(()))
    if flow.buffers == 1:
        raise WrongUse(f"buffers are adopted where a flow has three; {flow.name} has none: nothing is to be done")
    root = settings.root(flow.name, run)
    require_own_landing(root, "adopt-buffers")
    places = buffers_of(root, settings.places)
    with open_driver(root, flow=flow.name):
        found = adopt(places, owner_of(landed_path(root)))
    for buffer, theirs in found.items():
        echo(f"buffer {buffer} in {places[buffer]} was that of {theirs.landed}, and is now that of {root}")
    if not found:
        echo("no buffer is marked as another run's: nothing was done")
    echo(f"next: pulseline stream {name} --run {run}")
