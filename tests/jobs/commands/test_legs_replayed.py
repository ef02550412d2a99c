"""A part of a run in legs is played from what all of its legs remembered, and compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipelines.jobs.commands.replay import ReplayRequest, replay_flow
from tests.jobs.regional import under_way, wanted

if TYPE_CHECKING:
    from tests.jobs.conftest import House

WIDER = "more than asked, up to states that all legs have"


def replayed(house: House, start: str | None = None, end: str | None = None) -> str:
    """Play a part of the run, all of whose rows must be the same, and give what is told first."""
    house.printed.clear()
    asked = ReplayRequest(flow="tiny", start=start, end=end, engine="core")
    assert replay_flow(asked, house.tell) == 0, house.text
    first, *_, last = house.text.splitlines()
    assert last.startswith("same: ")
    return first


@pytest.mark.parametrize("part", [{"start": "1"}, {"start": "2"}, {"start": "1", "end": "2"}, {"end": "2"}, {}])
def test_a_part_begins_with_what_each_leg_remembered(regional: House, part: dict[str, str]) -> None:
    first = replayed(regional, **part)
    number = int(part.get("end", "3")) - int(part.get("start", "0"))
    assert f"{number} sequence" in first
    assert WIDER not in first


def steps(house: House, *cuts: tuple[int, ...]) -> None:
    """Have legs publish epochs that end where they are told to, each its own."""
    with under_way(wanted(house)) as legs:
        for ends, each in zip(cuts, legs.all, strict=True):
            for end in ends:
                each.runner.advance(each.runner.upto, end)
                if each.runner.crossing is not None:
                    each.runner.crossing.cover(each.runner.upto)


@pytest.mark.parametrize(
    ("part", "played", "wider"),
    [
        ({"start": "1"}, 2, False),
        ({"start": "2"}, 2, True),
        ({"start": "1", "end": "2"}, 2, True),
        ({"end": "2"}, 3, True),
        ({"end": "1"}, 1, False),
    ],
)
def test_where_a_leg_has_no_state_the_part_reaches_to_one_that_all_have(
    house: House, part: dict[str, str], played: int, *, wider: bool
) -> None:
    steps(house, (1, 2, 3), (1, 3), (1, 2, 3))
    first = replayed(house, **part)
    assert f"{played} sequence" in first
    assert (WIDER in first) == wider


def test_a_leg_that_took_all_in_one_has_its_beginning_alone(house: House) -> None:
    steps(house, (1, 2, 3), (3,), (3,))
    assert "3 sequences" in replayed(house, start="2")


def test_nothing_between_two_states_is_refused_as_before(regional: House) -> None:
    with pytest.raises(ValueError, match="a replay needs published commits between --from and --to"):
        replay_flow(ReplayRequest(flow="tiny", engine="core", start="2", end="2"), regional.tell)
