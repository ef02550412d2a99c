"""A part of a run in legs is played from what all of its legs remembered, and compared."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from pipelines.jobs.commands.replay import ReplayRequest, replay_flow
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.runs import in_legs
from tests.jobs import regional
from tests.jobs.regional import stepped, under_way, wanted

if TYPE_CHECKING:
    from pipelines.jobs.runs.backfill import Backfill
    from tests.jobs.conftest import House

SEQUENCES = 12
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
    stepped(house, (1, 2, 3), (1, 3), (1, 2, 3))
    first = replayed(house, **part)
    assert f"{played} sequence" in first
    assert (WIDER in first) == wider


def drawn_cuts(draw: random.Random) -> tuple[int, ...]:
    """Draw where the epochs of a leg end, up to the last sequence."""
    return (*sorted(draw.sample(range(1, SEQUENCES), draw.randint(0, 6))), SEQUENCES)


@pytest.mark.parametrize("seed", range(3))
def test_wherever_epochs_of_legs_end_every_part_is_the_same(
    house: House, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    draw, three_days = random.Random(seed), regional.readings  # noqa: S311 - a test's cuts

    def more(of: Backfill) -> tuple[int, list[int]]:
        start, ends = three_days(of)
        return start, [start + (ends[-1] - start) // SEQUENCES * number for number in range(1, SEQUENCES + 1)]

    monkeypatch.setattr(regional, "readings", more)
    stepped(house, tuple(range(1, SEQUENCES + 1)), drawn_cuts(draw), drawn_cuts(draw))
    for _ in range(3):
        start = draw.randint(1, SEQUENCES - 1)
        replayed(house, start=f"sequence:{start}", end=f"sequence:{draw.randint(start + 1, SEQUENCES)}")


def test_a_leg_that_took_all_in_one_has_its_beginning_alone(house: House) -> None:
    stepped(house, (1, 2, 3), (3,), (3,))
    assert "3 sequences" in replayed(house, start="2")


def test_nothing_between_two_states_is_refused_as_before(regional: House) -> None:
    with pytest.raises(ValueError, match="a replay needs published commits between --from and --to"):
        replay_flow(ReplayRequest(flow="tiny", engine="core", start="2", end="2"), regional.tell)


def test_a_live_run_is_looked_at_until_its_legs_have_come_equally_far(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[float] = []
    with under_way(wanted(house)) as legs:
        legs.advance_main(0, 1)

        def behind_no_longer(seconds: float) -> None:
            looks.append(seconds)
            if len(looks) > 1:
                legs.catch_up(1)

        monkeypatch.setattr(in_legs, "time", SimpleNamespace(sleep=behind_no_longer))
        assert replay_flow(ReplayRequest(flow="tiny", engine="core"), house.tell) == 0
        legs.advance_main(1, 2)
        monkeypatch.setattr(in_legs, "time", SimpleNamespace(sleep=looks.append))
        with pytest.raises(WrongUse, match="timed is behind: its driver is at it: type the same command again"):
            replay_flow(ReplayRequest(flow="tiny", engine="core"), house.tell)
    assert len(looks) > in_legs.LOOKS
    with pytest.raises(WrongUse, match="timed is behind: pulseline stream tiny --until-caught-up"):
        replay_flow(ReplayRequest(flow="tiny", engine="core"), house.tell)
