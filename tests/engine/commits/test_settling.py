"""Random histories with kills between any two steps: whoever opens a table, at whatever moment, counts right."""

from __future__ import annotations

import datetime as dt
import random
from typing import TYPE_CHECKING

import duckdb
import pytest
from deltalake import DeltaTable

from pipelines.engine.commits import file_lists, housekeeping, readers
from pipelines.engine.commits.paths import table_path
from tests.engine.commits.settled_world import TABLES, Reaper, World, plain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WEEK, AT_ONCE = dt.timedelta(days=7), dt.timedelta(0)
ACTS = 24


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[World]:
    """Give a run to which nothing has happened yet."""
    seed, keep = request.param
    rng, reaper = random.Random(seed), Reaper()  # noqa: S311 - seeds draw histories
    monkeypatch.setattr(housekeeping, "FEW", 2)
    monkeypatch.setattr(file_lists, "SHORT", rng.choice([1, 200]))
    reaper.watch(monkeypatch)
    made = World(tmp_path / "run", rng, keep, reaper)
    made.start()
    yield made
    made.end()


def histories(*seeds: int) -> pytest.MarkDecorator:
    """Give seeds, each with versions that stay and with none that stay."""
    drawn = [pytest.param((seed, keep), id=f"{seed}-{keep.days}") for seed in seeds for keep in (WEEK, AT_ONCE)]
    return pytest.mark.parametrize("world", drawn, indirect=True)


@histories(2, 3, 4)
def test_every_reader_finds_what_is_settled_and_nothing_else(world: World) -> None:
    for _ in range(ACTS):
        world.happen()
        world.check()
    driver = world.driver or world.take()
    pending = driver.pending()
    if pending:
        driver.abandon(pending.commit, why="the end")
    driver.keep_house(every=1, keep=world.keep)
    world.check()
    if world.keep:
        world.check_all_instants()
    for name in TABLES:
        files = DeltaTable(str(table_path(world.root, name))).file_uris()
        visible = sorted(readers.settled_commits(world.root, table_path(world.root, name), driver.state()))
        found = duckdb.read_parquet(files).project("commit, value").fetchall() if files else []
        assert sorted(found) == sorted(world.wanted(name, visible).elements())


@histories(12)
def test_a_log_that_is_made_anew_has_the_same_rows(world: World) -> None:
    for _ in range(ACTS):
        world.happen()
    driver = world.driver or world.take()
    before = {name: plain(table_path(world.root, name)) for name in TABLES}
    world.make_anew(driver.tables)
    assert {name: plain(table_path(world.root, name)) for name in TABLES} == before
    driver._settled = None
    world.keep = AT_ONCE
    for _ in range(ACTS // 2):
        world.happen()
        world.check()


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
@histories(*range(20, 40))
def test_many_histories(world: World) -> None:
    for _ in range(ACTS):
        world.happen()
        world.check()
    if world.keep:
        world.check_all_instants()
    world.make_anew((world.driver or world.take()).tables)
    # Versions of before are gone with the logs.
    world.keep = AT_ONCE
    world.check()
