"""Replay's protocol: transcripts of one line, its laws as properties, and a judge that only keeps a list.

Rules of docs/semantics.md: R1, R2, R3, R4, R5, R6, R7
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.operators.replay import (
    BUFFERS,
    AllBuffersLostError,
    Drained,
    Forwarded,
    Output,
    Punctuation,
    Region,
    ReplayPolicy,
    Reset,
    Trigger,
)
from pipelines.operators.rows import PolicyError

if TYPE_CHECKING:
    from pipelines.jobs.proofs.live_region import LiveRegion

OPERATOR, PERIODIC = ReplayPolicy(trigger=Trigger.OPERATOR), ReplayPolicy(trigger=Trigger.PERIODIC)
AT_END = ReplayPolicy(trigger=Trigger.FINAL)


class Transcript(NamedTuple):
    """What happens and what leaves, a word each: w and f are punctuations, wx fails to drain, !02 loses buffers."""

    name: str
    policy: ReplayPolicy
    steps: str
    leaves: str


TRANSCRIPTS = [
    Transcript("each item leaves once though three buffers hold it", OPERATOR, "1 2 3", "1 2 3"),
    Transcript("a window punctuation is forwarded, then the region drains", OPERATOR, "1 w 2", "1 w =1 2"),
    Transcript("the final punctuation drains too", OPERATOR, "1 f", "1 f =1"),
    Transcript("a window punctuation does not drain where only the final one does", AT_END, "1 w 2 f", "1 w 2 f =1"),
    Transcript("a drain behind a punctuation that fails is a reset", OPERATOR, "1 w 2 wx 3", "1 w =1 2 w <1 2 w 3"),
    Transcript("a periodic region only forwards punctuations", PERIODIC, "1 w 2 f drain", "1 w 2 f =1"),
    Transcript("a region that its operator drives hears no clock", OPERATOR, "1 drain 2", "1 2"),
    Transcript("never drained: a reset goes back to the beginning", OPERATOR, "1 2 reset", "1 2 <0 1 2"),
    Transcript("a reset goes back to the newest consistent state", OPERATOR, "1 w 2 reset 3", "1 w =1 2 <1 2 3"),
    Transcript("a reset behind nothing plays nothing", OPERATOR, "1 w reset 2", "1 w =1 <1 2"),
    Transcript("a reset uses an id up", OPERATOR, "1 w reset 2 w", "1 w =1 <1 2 w =3"),
    Transcript("resets in a row play the same", OPERATOR, "1 reset reset 2", "1 <0 1 <0 1 2"),
    Transcript("a drain of nothing takes an id", PERIODIC, "drain drain 1 drain", "=1 =2 1 =3"),
    Transcript("a drain that fails is a reset", PERIODIC, "1 drain 2 fails 3 drain", "1 =1 2 <1 2 3 =3"),
    Transcript("a replayed punctuation does not drain again", PERIODIC, "1 w reset", "1 w <0 1 w"),
    Transcript("any buffer lost resets the region, also one that did not speak", OPERATOR, "1 !2 2", "1 <0 1 2"),
    Transcript("two lost at once", OPERATOR, "1 w 2 !01 3", "1 w =1 2 <1 2 3"),
    Transcript("two lost in turn within one sequence", OPERATOR, "1 !0 2 !1 3", "1 <0 1 2 <0 1 2 3"),
    Transcript("the same buffer lost twice", OPERATOR, "1 !0 2 !0 3", "1 <0 1 2 <0 1 2 3"),
    Transcript("a drain makes a restarted buffer count again", OPERATOR, "1 !0 w 2 !12 3", "1 <0 1 w =2 2 <2 2 3"),
    Transcript("before a drain it is silent, so the third is the last", OPERATOR, "1 !0 2 !12", "1 <0 1 2 lost2"),
    Transcript("all three lost is told with what is gone", OPERATOR, "1 w 2 3 !012", "1 w =1 2 3 lost2"),
    Transcript("and nothing more is taken", OPERATOR, "1 !012 2", "1 lost1 lost1"),
    Transcript("until the loss is accepted", OPERATOR, "1 w 2 !012 accept 3 reset", "1 w =1 2 lost1 3 <1 3"),
    Transcript("a drain cannot make good what is lost", PERIODIC, "1 !012 drain", "1 lost1 lost1"),
]  # fmt: skip


def did(region: Region | LiveRegion, step: str) -> list[Output]:
    """Do one step of a transcript."""
    match step:
        case "w" | "wx" | "f":
            return region.take(Punctuation.FINAL if step == "f" else Punctuation.WINDOW, completes=step != "wx")
        case "reset":
            return region.reset()
        case "drain" | "fails":
            return region.drain(completes=step == "drain")
        case "accept":
            assert isinstance(region, Region)
            region.accept_loss()
            return []
        case _ if step.startswith("!"):
            return region.fail([int(place) for place in step[1:]])
    return region.take(int(step))


def spelled(output: Output) -> str:
    """Spell what left as transcripts do."""
    match output:
        case Forwarded(Punctuation() as mark):
            return mark.value[0]
        case Forwarded(item):
            return str(item)
        case Drained(sequence):
            return f"={sequence}"
        case Reset(sequence):
            return f"<{sequence}"


def left(region: Region | LiveRegion, steps: list[str]) -> list[str]:
    """Play steps and spell what left."""
    words: list[str] = []
    for step in steps:
        try:
            words += map(spelled, did(region, step))
        except AllBuffersLostError as lost:
            words.append(f"lost{lost.lost}")
    return words


@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=lambda transcript: transcript.name)
def test_transcript(transcript: Transcript) -> None:
    assert " ".join(left(Region(transcript.policy), transcript.steps.split())) == transcript.leaves


FAULTS = ["reset", "!0", "!1", "!2", "!01", "!12", "!02"]


@st.composite
def runs(draw: st.DrawFn) -> tuple[ReplayPolicy, list[str]]:
    """Draw steps in which some buffer can always speak."""
    policy = draw(st.sampled_from([OPERATOR, PERIODIC]))
    drains = {"w", "f"} if policy is OPERATOR else {"drain"}
    steps, restarted = [], set[int]()
    for number, word in enumerate(draw(st.lists(st.sampled_from(["", "", "w", "f", "drain", "fails", *FAULTS])))):
        gone = restarted | {int(place) for place in word[1:]} if word.startswith("!") else restarted
        if len(gone) == BUFFERS:
            continue
        restarted = set() if word in drains else gone
        steps.append(word or str(number))
    return policy, steps


def judged(policy: ReplayPolicy, steps: list[str]) -> list[str]:
    """Say what should leave, out of one list of all that came and where the consistent state stands in it."""
    came: list[str] = []
    stands, consistent, current = 0, 0, 1
    words: list[str] = []
    for step in steps:
        drains = step in {"w", "f"} if policy.trigger is Trigger.OPERATOR else step == "drain"
        if step[0] in "0123456789wf" and step != "fails":
            came.append(step)
            words.append(step)
        elif not drains and (step in FAULTS or (step == "fails" and policy.trigger is Trigger.PERIODIC)):
            current += 1
            words += [f"<{consistent}", *came[stands:]]
        if drains:
            stands, consistent, current = len(came), current, current + 1
            words.append(f"={consistent}")
    return words


@given(runs())
def test_replay__two_buffers_may_fail(run: tuple[ReplayPolicy, list[str]]) -> None:
    policy, steps = run

    assert left(Region(policy), steps) == judged(policy, steps)


@given(runs())
def test_replay__undisturbed_items_leave_once_and_in_order(run: tuple[ReplayPolicy, list[str]]) -> None:
    policy, steps = run
    calm = [step for step in steps if step not in {*FAULTS, "fails"}]
    words = [word for word in left(Region(policy), calm) if word[0] not in "=<"]

    assert words == [step for step in calm if step != "drain"]


@given(runs())
def test_replay__a_reset_loses_nothing_and_doubles_nothing(run: tuple[ReplayPolicy, list[str]]) -> None:
    policy, steps = run
    kept: list[str] = []
    since: list[str] = []
    for word in left(Region(policy), steps):
        if word.startswith("="):
            kept, since = kept + since, []
        elif word.startswith("<"):
            since = []
        else:
            since.append(word)

    assert kept + since == [step for step in steps if step not in {*FAULTS, "fails", "drain"}]


@given(runs())
def test_replay__ids_increase(run: tuple[ReplayPolicy, list[str]]) -> None:
    consistent = [0]
    for word in left(Region(run[0]), run[1]):
        if word.startswith("="):
            consistent.append(int(word[1:]))
        elif word.startswith("<"):
            assert int(word[1:]) == consistent[-1]

    assert all(one < other for one, other in pairwise(consistent))


@given(runs())
def test_replay__nothing_covered_is_kept(run: tuple[ReplayPolicy, list[str]]) -> None:
    region = Region(run[0])
    for step in run[1]:
        out = did(region, step)
        if isinstance(out[-1:] and out[-1], Drained):
            assert region.needed == []


def test_the_laws_of_the_docstring_are_the_properties_here() -> None:
    doc = Region.__doc__ or ""
    laws = re.findall(r"^ {8}(\w[^:]+): ", doc.split("Laws:")[1], re.MULTILINE)
    tested = [name.removeprefix("test_replay__") for name in globals() if name.startswith("test_replay__")]

    assert sorted(law.replace(" ", "_") for law in laws) == sorted(tested)


def test_a_period_counts_from_the_last_consistent_state_or_reset() -> None:
    region = Region(ReplayPolicy(trigger=Trigger.PERIODIC, period=10), now=100)
    region.take(1)

    assert region.listen(109) == []
    assert region.listen(110) == [Drained(1)]
    assert region.reset(now=115) == [Reset(1)]
    assert region.listen(124) == []
    assert region.listen(125) == [Drained(3)]
    assert region.listen(145) == [Drained(4), Drained(5)]


@pytest.mark.parametrize(
    ("said", "setting"),
    [
        ({"trigger": Trigger.OPERATOR, "places": 3}, "places"),
        ({"trigger": Trigger.PERIODIC, "period": 0}, "period"),
        ({"trigger": Trigger.OPERATOR, "period": 5}, "period"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(said: dict[str, object], setting: str) -> None:
    with pytest.raises(PolicyError) as refused:
        ReplayPolicy(**said)  # type: ignore[arg-type]

    assert refused.value.setting == setting
