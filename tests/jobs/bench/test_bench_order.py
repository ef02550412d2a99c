"""What `bench order` runs does what its figures say: the same rows both ways, and a queue that nobody reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.engine.commits.readers import read_stream
from pipelines.flows.legs import legs_of
from pipelines.jobs.bench import order_flows as flows
from pipelines.jobs.bench.order_flows import laid
from pipelines.jobs.bench.order_runs import batch_seconds, by_threads, depth

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 400


def test_a_loop_gives_what_its_body_gives_so_often_in_a_row(tmp_path: Path) -> None:
    found = []
    for name, text in (("round", flows.ROUND), ("pasted", flows.PASTED)):
        here = laid(tmp_path / name, text, ROWS)
        batch_seconds(here)
        rows = read_stream(here.run("b").root, "met", key=("device",)).to_pylist()
        found.append(sorted((row["n"], row["goes"]) for row in rows))

    assert found[0] == found[1]
    assert len(found[0]) == ROWS * flows.ROUNDS


def test_a_queue_that_nobody_reads_is_past_its_bound_by_less_than_an_epoch(tmp_path: Path) -> None:
    found = depth(laid(tmp_path / "here", flows.BEHIND, 2_000), 10)

    assert 1_000 < found.waiting <= found.bound == 1_200


def test_half_of_the_tables_stand_in_a_region_of_their_own(tmp_path: Path) -> None:
    flow = laid(tmp_path / "here", flows.TABLES, 10).run("any", legs=True).flow

    assert [len(leg.streams) for leg in legs_of(flow)] == [12, 12]


def test_tables_that_are_added_by_threads_have_all_files(tmp_path: Path) -> None:
    assert min(by_threads(tmp_path / "tables", 3, 2)) > 0
    assert sorted(path.name for path in (tmp_path / "tables" / "t2").glob("*.parquet")) == [
        f"f{number}.parquet" for number in range(4)
    ]
