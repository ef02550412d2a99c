"""The span that a flow's sources hold: `starts:` and `ends:`, two cuts of its grid, for whoever offers days to run.

They say nothing about what the flow means, so they change no result and no fingerprint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.flows.errors import GridError
from pipelines.flows.feeds.spec import Clock
from pipelines.flows.grid import cut_at

if TYPE_CHECKING:
    from pipelines.flows.model import Flow
    from pipelines.flows.section import Section

STARTS, ENDS = "starts", "ends"


def read_holding(top: Section, flow: Flow) -> tuple[int | None, int | None]:
    """Read the first and the last cut (exclusive) of what the sources hold; None where the file does not say.

    Args:
        top: the file's top.
        flow: its grid and its clock.

    Raises:
        FlowError: no date, off the grid, ends that are not behind the starts, or a flow under the real clock.
    """
    starts, ends = (_cut(top, flow, key) for key in (STARTS, ENDS))
    if starts is not None and ends is not None and ends <= starts:
        came = f"`{ENDS}: {top.text(ENDS)}`, not after `{STARTS}: {top.text(STARTS)}`,"
        raise top.wrong(ENDS, came, "a later day: the first that the sources no longer hold")
    return starts, ends


def outside(flow: Flow, start: int, end: int) -> bool:
    """Say whether a span reaches beyond what the sources hold; ends that are not known bound nothing."""
    early = flow.starts is not None and start < flow.starts
    return early or (flow.ends is not None and end > flow.ends)


def _cut(top: Section, flow: Flow, key: str) -> int | None:
    if not top.has(key):
        return None
    if flow.clock is Clock.WALL:
        came = f"`{key}` beside a live source, whose rows arrive by the real clock"
        raise top.wrong(key, came, "no such key: it holds what arrives")
    text = top.text(key)
    try:
        return cut_at(flow, text, key)
    except GridError as problem:
        near = f"; the nearest are {problem.before} and {problem.after}" if problem.before else ""
        raise top.wrong(key, f"`{key}: {text}`", problem.expected + near) from None
