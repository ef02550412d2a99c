"""What benches measure at their size is measured at a small one: each figure is there, of what its bench says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pipelines.cli.bench import Bench
from pipelines.flows.grid import intervals
from pipelines.jobs.bench import landing, silence, year
from pipelines.jobs.bench.endurance import endured
from pipelines.jobs.bench.figures import BenchFigure, Median
from pipelines.jobs.bench.generated import record
from pipelines.jobs.bench.landing import RAW, landing_seconds, landings
from pipelines.jobs.bench.silence import SilenceBound, silent_sources
from pipelines.jobs.bench.stream import many_tables
from pipelines.jobs.bench.together import WORDS, figures_in, figures_table
from pipelines.jobs.bench.year import FLOW, YearBench, day_by_day, text_bytes
from pipelines.jobs.environment.settings import load_flow, read_settings

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import LentSpark


def test_a_median_is_told_with_the_least_and_the_most_of_what_was_measured() -> None:
    took = Median.of([4.0, 2.0, 3.0])
    figure = BenchFigure(bench="b", name="one", value=took, unit="s", against="it", ratio=1.5)

    assert figure.as_text() == "one: 3 s (2 to 4), 1.50 times it"
    assert float(took.rate(12)) == 4.0
    assert took.rate(12).spread == (3.0, 6.0)
    assert took.times(1e3).spread == (2_000.0, 4_000.0)
    [read] = figures_in([figure.as_json()])
    assert read == figure
    assert "2 to 4" in figures_table([read])


def test_a_value_that_was_measured_once_has_no_spread() -> None:
    figure = BenchFigure(bench="b", name="one", value=2.0, unit="s")

    assert figure.as_text() == "one: 2 s"
    assert json.loads(figure.as_json())["spread"] is None


def test_what_was_never_measured_is_not_held() -> None:
    assert BenchFigure(bench="b", name="one", value=Median.of([]), unit="ms", target=500).held is False


def test_what_all_benches_call_otherwise_are_benches() -> None:
    assert set(WORDS) <= {bench.value for bench in Bench}


def test_commits_of_eight_tables_are_measured(tmp_path: Path) -> None:
    [figure] = many_tables(tmp_path, 1, 1)

    assert (figure.name, figure.target) == ("a commit of 8 streams and the ledger", 0.2)


@pytest.fixture(scope="module")
def some_days() -> YearBench:
    settings = read_settings()
    flow = load_flow(settings, FLOW)
    return YearBench(flow, settings.feeds_base(flow), intervals(flow, "2013-01-01", "2013-01-03"), 1)


def test_days_one_by_one_are_held_against_each_other_and_counted_on_the_disk(
    tmp_path: Path, some_days: YearBench
) -> None:
    found = {figure.name: figure for figure in day_by_day(some_days.wanted(tmp_path / "run", 1), some_days)}
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]

    assert found["a day of the last 1, without checks"].target == year.LAST
    assert found["files that a day leaves"].value == len(files) / 2
    size = found["bytes of the run"]
    assert size.value == pytest.approx(sum(path.stat().st_size for path in files) / 1e6)
    assert size.ratio == pytest.approx(size.value * 1e6 / text_bytes(some_days))


def test_a_longer_stream_is_held_against_its_first_tenth(tmp_path: Path) -> None:
    found = list(endured(tmp_path, 20))

    assert [figure.name.strip() for figure in found] == [
        "median of a commit after 20",
        "mean of it, with upkeep",
        "files of the run",
        "handles of the process",
        "memory of the process",
    ]
    assert all(figure.against == "that after 2" for figure in found)
    assert all(figure.target == 1.2 for figure in found)


@pytest.mark.parametrize("raw", RAW, ids=lambda raw: raw.name)
def test_all_rows_land_from_each_kind_of_file(raw: landing.RawFile, tmp_path: Path) -> None:
    feed = record(tmp_path, 2_000, 7)
    raw.write(tmp_path / "rows.parquet", tmp_path / raw.file)

    assert landing_seconds(raw, feed)[1] == 2_000


def test_spark_sorts_the_same_files(spark: LentSpark, tmp_path: Path) -> None:
    found = list(landings(record(tmp_path, 2_000, 7), spark.session()))

    assert not [figure.name for figure in found if figure.unit == "wrong answer"]
    assert [figure.target for figure in found if figure.ratio is not None] == [landing.LANDED] * len(RAW)


def test_silent_keys_are_listened_to(spark: LentSpark, tmp_path: Path) -> None:
    found = list(silent_sources(tmp_path / "keys", spark, 25.0, 50))

    usual, worst = found[:2]
    assert 0 < usual.value <= worst.value
    assert (usual.target, worst.target) == (250, 500)
    assert all(figure.value >= 0 for figure in found)


def test_so_many_keys_have_the_bound_of_the_next_number() -> None:
    assert silence.bound_of(1) == SilenceBound(10_000, 1, 250, 500)
    assert silence.bound_of(100_000).p99 == 1_000
    assert silence.bound_of(2_000_000).p99 == 3_000
