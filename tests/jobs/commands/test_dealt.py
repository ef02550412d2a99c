"""What is dealt to instances has an account: each row went to one of them, or to all, wherever they run.

Rules of docs/semantics.md: S17, X13
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from expectations.account import dealings
from expectations.laws import ACCOUNT_HOLDS
from pipelines.engine.commits.readers import read_stream
from pipelines.jobs.commands.check import check_flow
from tests.jobs import regional

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.jobs.conftest import House

MODULE = """\
modules:
  half: {inputs: [came], streams: {kept: {filter: came, where: number < 30}}, outputs: {all: kept}}
streams:
  beating: {heartbeat: trips, interval: 6h, slack: 90s}
  promised: {advance_time: beating, every: {events: 2}, delay: 1h, late: drop}
  dealt: {module: half, inputs: {came: GIVEN}, instances: 3, dispatch: {came: STYLE}PARALLEL}
"""
FIRST = "dealt.0.came"
DEALT = [
    ("trips", "in_turn", {"cti", "timer"}),
    ("trips", "{of: station}", {"cti"}),
    ("beating", "{of: [station, line]}", {"cti"}),
    ("beating", "{numeric: number}", {"cti", "timer"}),
    ("promised", "in_turn", {"cti", "timer"}),
    ("promised", "{of: station}", {"cti", "timer"}),
    ("promised", "{numeric: number - 7}", {"cti", "timer"}),
    ("promised", "broadcast", {"cti", "timer", "data", "start", "end"}),
]


@pytest.fixture
def laid_out(house: House, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Give the house a flow that deals rows to three instances."""

    def lay_out(given: str, style: str, parallel: str = "") -> None:
        text = MODULE.replace("GIVEN", given).replace("STYLE", style).replace("PARALLEL", parallel)
        monkeypatch.setattr(regional, "MODULE", text)
        regional.wanted(house)

    return lay_out


def accounts(house: House) -> dict[str, dict[str, Any]]:
    """Check what is published, and give the accounts."""
    check_flow("tiny", None, None, None, "main", as_json=True, echo=house.tell)
    told = [json.loads(line) for line in house.text.splitlines()]
    return {each["table"]: each for each in told if each.get("expectation") == ACCOUNT_HOLDS}


def broken(found: dict[str, dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    return {table: each["rows"] for table, each in found.items() if not each["held"]}


def rewritten(root: Path, name: str, change: Callable[[pa.Table], pa.Table]) -> None:
    """Write the largest file of a stream's table again with other rows."""
    folder = root / "streams" / name
    file = max(folder.rglob("*.parquet"), key=lambda each: pq.read_metadata(each).num_rows)
    pq.write_table(change(pq.read_table(file)), file)


@pytest.mark.parametrize(("given", "style", "to_all"), DEALT)
def test_what_every_instance_gets_is_read_from_the_flow(
    house: House, laid_out: Callable[..., None], given: str, style: str, to_all: set[str]
) -> None:
    laid_out(given, style)
    (dealt,) = dealings(regional.wanted(house).flow)
    assert (dealt.given, {*dealt.to_all}) == (given, to_all)
    assert dealt.streams == ("dealt.0.came", "dealt.1.came", "dealt.2.came")


@pytest.mark.parametrize(("given", "style", "_"), [DEALT[0], DEALT[2], *DEALT[-2:]])
def test_each_row_went_to_one_instance_or_to_all(
    house: House, laid_out: Callable[..., None], given: str, style: str, _: set[str]
) -> None:
    laid_out(given, style)
    house.backfill("2013-01-01", "2013-01-04")
    got = [read_stream(house.root, f"dealt.{number}.came").num_rows for number in range(3)]
    assert sum(map(bool, got)) > 1, "or nothing is dealt"

    found = accounts(house)
    assert broken(found) == {}
    assert found[FIRST]["looked_at"] == sum(got) > 30
    assert found[FIRST]["sentence"].startswith(f"Every row of {given} went to one instance of dealt")


def test_a_row_that_no_instance_got_or_two_did_is_found(house: House, laid_out: Callable[..., None]) -> None:
    laid_out("promised", "{of: station}")
    house.backfill("2013-01-01", "2013-01-04")
    rewritten(house.root, "dealt.1.came", lambda rows: rows.slice(1))
    found = broken(accounts(house))
    assert found[FIRST][0]["missing"] == 1
    assert set(found) == {FIRST, "dealt.1.kept"}, "and what reads it has a row too many"

    rewritten(house.root, "dealt.1.came", lambda rows: pa.concat_tables([rows, *[rows.slice(0, 1)] * 2]))
    assert broken(accounts(house))[FIRST][0]["missing"] == -1


def test_instances_in_a_region_of_their_own_are_asked_as_far_as_it_has_come(
    house: House, laid_out: Callable[..., None]
) -> None:
    laid_out("promised", "in_turn", ", parallel: true")
    regional.taken(house, 3, 2)
    found, region = accounts(house), house.root / "regions" / "dealt"
    assert broken(found) == {}
    got = [read_stream(region, f"dealt.{number}.came").num_rows for number in range(3)]
    assert found[FIRST]["looked_at"] == sum(got) > 10

    rewritten(region, "dealt.1.came", lambda rows: rows.slice(1))
    assert broken(accounts(house))[FIRST][0]["missing"] == 1
