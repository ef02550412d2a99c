"""A backfill that is killed anywhere and run again: the bytes of an undisturbed one, and nothing twice."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable

from pipelines.engine.commits.errors import LeaseHeldError
from pipelines.engine.commits.history import State
from pipelines.engine.commits.paths import data_tables, landed_path
from pipelines.engine.commits.readers import log_state
from pipelines.engine.landing.manifest import numbers_in
from tests.forked import ended
from tests.laws.trials import PARCELS, SPANS, WHOLE, Trial, parcels, trial

if TYPE_CHECKING:
    from pipelines.engine.commits.history import Entry
    from tests.conftest import LentSpark

CHECKOUT = Path(__file__).parents[2]
PROGRAM = ["-m", "tests.laws.killed_backfill"]
POINTS = {
    "intent": 1,
    "tasks": 2,
    "listed": 1,
    "written": 1,
    "published": 1,
    "looked": 1,
    "settling": 1,
    "settled": 1,
}
"""Where to die, and how often to come past it before: each in the second hour."""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """Give the parcels, with the run `undisturbed`, hour by hour."""
    made = trial(tmp_path_factory.mktemp("killed"), PARCELS, {"parcels": parcels()})
    made.ran("undisturbed", SPANS)
    return made


def child(here: Trial, run: str, *words: str) -> subprocess.Popen[str]:
    """Start a backfill in a process of its own."""
    return subprocess.Popen(
        [sys.executable, *PROGRAM, str(here.base), run, *words],
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def killed(here: Trial, run: str, point: str, skip: int, engine: str = "core") -> None:
    """Run a backfill that dies at a point."""
    code, said = ended("tests.laws.killed_backfill", str(here.base), run, point, str(skip), engine)
    assert code == -signal.SIGKILL, said


def pending(here: Trial, run: str) -> State | None:
    """Say at which step a run was left."""
    found = log_state(here.root(run)).pending
    return found.state if found else None


def rows_by_commit(table: Path) -> Counter[int]:
    """Count the rows that a table holds of each commit, as anybody finds them who opens it."""
    files = [unquote(uri) for uri in DeltaTable(str(table)).file_uris()]
    if not files:
        return Counter()
    rows = ds.dataset(files).to_table(columns=["commit"])
    return Counter(rows["commit"].to_pylist())


def said_rows(entry: Entry, table: Path) -> int | None:
    """Give how many rows a commit says it has in a table; None where it does not say."""
    if table.name == "ledger":
        return sum(entry.counts.get("ledger", {}).values())  # type: ignore[attr-defined]
    if table.parent.name != "streams":
        return None
    count = entry.counts.get(table.name, {})
    return sum(rows for kind, rows in count.items() if kind in {"data", "start", "end", "timer", "cti"})  # type: ignore[attr-defined]


def assert_nothing_twice(root: Path) -> None:
    """See that each table holds just the rows that the commits counted which readers see, and none of any other."""
    state = log_state(root)
    for table in data_tables(root):
        found = rows_by_commit(table)
        assert set(found) <= state.visible, table.name
        for entry in state.published:
            assert said_rows(entry, table) in {None, found[entry.commit]}, f"{table.name}, commit {entry.commit}"


def assert_same(here: Trial, run: str) -> None:
    """See that a run holds what the undisturbed one holds."""
    assert here.hashes(run, WHOLE) == here.hashes("undisturbed", WHOLE)
    identities = here.table(run, "beating").filter(ds.field("kind") == "data").select(["landed_at", "landed_place"])
    assert len(set(zip(*(column.to_pylist() for column in identities.columns), strict=True))) == identities.num_rows
    assert_nothing_twice(here.root(run))


LEFT_AT = {
    "intent": State.INTENT,
    "tasks": State.INTENT,
    "listed": State.INTENT,
    "written": State.WRITTEN,
    "published": None,
    "looked": None,
    "settling": None,
    "settled": None,
}


@pytest.mark.parametrize("point", POINTS)
def test_killed_and_run_again(here: Trial, point: str) -> None:
    killed(here, point, point, POINTS[point])
    state = log_state(here.root(point))
    assert pending(here, point) is LEFT_AT[point]
    assert [entry.span for entry in state.published] == SPANS[: 2 if LEFT_AT[point] is None else 1]
    seen = {number for table in data_tables(here.root(point)) for number in rows_by_commit(table)}
    assert seen == ({1, 2} if point in {"settling", "settled"} else {1}), "a table has what is settled and nothing else"
    here.ran(point, SPANS)
    assert_same(here, point)


def test_what_was_pending_is_finished_and_not_run_again(here: Trial) -> None:
    killed(here, "resumed", "listed", 1)
    number = log_state(here.root("resumed")).pending
    ran = here.ran("resumed", SPANS[1:])
    assert [each.entry.span for each in ran] == SPANS[1:]
    assert number is not None
    assert ran[0].entry.commit == number.commit
    assert_same(here, "resumed")


@pytest.mark.exhaustive
@pytest.mark.parametrize("point", ["tasks", "listed", "settling"])
def test_killed_on_spark_and_run_again(here: Trial, spark: LentSpark, point: str) -> None:
    killed(here, f"{point} on Spark", point, POINTS[point], "batch")
    assert pending(here, f"{point} on Spark") is LEFT_AT[point]
    here.ran(f"{point} on Spark", SPANS, spark)
    assert_same(here, f"{point} on Spark")


@pytest.mark.exhaustive
def test_killed_again_and_again(here: Trial) -> None:
    for point in ("listed", "listed", "settling", "settling", "published", "landing", "tasks", "written"):
        killed(here, "often", point, 0)
    here.ran("often", SPANS)
    assert_same(here, "often")


def test_killed_while_landing_and_run_again(here: Trial) -> None:
    killed(here, "landing", "landing", 1)
    [landed] = landed_path(here.root("landing")).glob("00000002.*")
    assert (landed / "parcels.parquet").exists()
    assert numbers_in(landed.parent) == [1]
    assert pending(here, "landing") is None, "an interval is announced when it has landed"
    (landed / "rubbish").write_text("left by whoever died")
    here.ran("landing", SPANS)
    assert not (landed / "rubbish").exists()
    assert_same(here, "landing")


def test_a_second_driver_is_refused_with_who_and_since_when(here: Trial) -> None:
    process = child(here, "held", "hold")
    assert process.stdout is not None
    assert process.stdout.readline() == "working\n"
    with pytest.raises(LeaseHeldError) as refused:
        here.ran("held", SPANS)
    assert f"process {process.pid}" in str(refused.value)
    assert re.search(r"since \d{4}-\d\d-\d\d", str(refused.value))
    _, said = process.communicate("go on\n")
    assert process.returncode == 0, said
    assert here.hashes("held", WHOLE) == here.hashes("undisturbed", WHOLE)
    here.ran("held", SPANS)
    assert_same(here, "held")
