"""What a flow file says of its region: when a stream drains, which is when it publishes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.flows.durations import spell
from pipelines.flows.errors import nearest
from pipelines.operators.replay import ReplayPolicy, Trigger

if TYPE_CHECKING:
    from pipelines.flows.model import Flow
    from pipelines.flows.section import Section

PUNCTUATION = "punctuation"
"""The word for a window punctuation: under `drain`, and in the `edge` column of a source."""
FINAL = "final"
"""The word for the end of a stream, under `drain`."""
SHORTEST = 100_000
"""The shortest period, in ticks: a commit costs about as much."""


def read_region(top: Section) -> ReplayPolicy | None:
    """Make what `region: {drain: ...}` says; None where a flow does not say it.

    Raises:
        FlowError: it is none of `punctuation`, `final` and a duration that a stream can hold.
    """
    if not top.has("region"):
        return None
    section = top.inner("region", "`region`")
    section.only(("drain",))
    expected = f"`{PUNCTUATION}`, `{FINAL}`, or a duration of at least {spell(SHORTEST)}"
    if not section.has("drain"):
        raise section.wrong(None, "no `drain`", f"`drain:` with {expected}")
    said = section.text("drain")
    words = {PUNCTUATION: Trigger.OPERATOR, FINAL: Trigger.FINAL}
    if said in words:
        return ReplayPolicy(trigger=words[said])
    if near := nearest(said, [*words]):
        raise section.wrong("drain", f"`drain: {said}`", expected, near)
    period = section.ticks("drain")
    if period < SHORTEST:
        raise section.wrong("drain", f"`drain: {said}`", expected)
    return ReplayPolicy(trigger=Trigger.PERIODIC, period=period)


def check_region(top: Section, flow: Flow) -> None:
    """See that a region that drains at punctuations has a source that can send one.

    Raises:
        FlowError: it has none, so it would never publish.
    """
    waits = flow.region is not None and flow.region.trigger is Trigger.OPERATOR
    if waits and not any(source.edge for source in flow.sources.values()):
        came = f"`drain: {PUNCTUATION}` beside sources without `edge`, the column in which a row says that it is one,"
        raise top.inner("region", "`region`").wrong("drain", came, "`edge: <column>` in a source, or a duration")
