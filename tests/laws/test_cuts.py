"""Cuts, buckets and engines do not matter: the same content hashes of every table, whatever the flow and its rows.

Rules of docs/semantics.md: S12
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pipelines.engine.files import ordered as inputs
from pipelines.engine.files.ordered import OrderedInput
from tests.laws.drawn import CUTS, END, KINDS, ROWS, START, Row, feed, flows
from tests.laws.streamed import cut_or_whole, streamed
from tests.laws.trials import CORE, PARCELS, SCATTERED, SPANS, WHOLE, Trial, cut, parcels, trial
from tests.wide import drawn as examples_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from pipelines.engine.tasks.stages import Engine
    from tests.conftest import LentSpark

SPARSE = (END - START) // 7
"""Ticks between two readings at most."""
ENDS = st.sampled_from([None, END - 1])
"""No end, or a final punctuation."""


def examples(count: int) -> settings:
    """Draw so many examples; each is several runs, so that shrinking one would take minutes."""
    return settings(
        max_examples=count,
        deadline=None,
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )


def placed(folder: str, flow: str, rows: Sequence[Row], others: Sequence[Row]) -> Trial:
    """Write a drawn flow and its feeds."""
    return trial(Path(folder), flow, {"rows": feed(rows), "others": feed(others)})


def hold(flows: st.SearchStrategy[str], engine: Engine, count: int) -> None:
    """Run drawn flows whole, with 1 and 16 buckets, and cut, with another number of buckets after each cut; compare.

    With 16 all that may run at the same time does, in any order.
    """

    @examples(count)
    @given(flow=flows, rows=ROWS, others=ROWS, cuts=CUTS, final=ENDS)
    def equal(flow: str, rows: list[Row], others: list[Row], cuts: list[int], final: int | None) -> None:
        with tempfile.TemporaryDirectory() as folder:
            here = placed(folder, flow, rows, others)
            whole = here.run("whole", [(START, END)], buckets=1, final=final)
            assert here.run("buckets", [(START, END)], SCATTERED, buckets=16, final=final) == whole
            for span, buckets in zip(cut(START, END, cuts), (7, 3, 1, 7), strict=False):
                here.run("cut", [span], engine, buckets=buckets, final=final if span[1] == END else None)
            assert here.hashes("cut", [(START, END)]) == whole

    equal()


def hold_in_epochs(flows: st.SearchStrategy[str], count: int) -> None:
    """Run drawn flows whole and in epochs, each cut into a task for each bucket or into one, as drawn; compare."""

    @examples(count)
    @given(flow=flows, rows=ROWS, others=ROWS, cuts=CUTS, final=ENDS, few=st.lists(st.booleans(), min_size=1))
    def equal(  # noqa: PLR0913 - everything that must not matter
        flow: str, rows: list[Row], others: list[Row], cuts: list[int], final: int | None, few: list[bool]
    ) -> None:
        readings = sorted({*(end for _, end in cut(START, END, cuts)), *range(START + SPARSE, END, SPARSE), END})
        with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            here = placed(folder, flow, rows, others)
            whole = here.run("whole", [(START, END)], buckets=1, final=final)
            cut_or_whole(patch, few)
            streamed(here, "epochs", START, readings, buckets=3, final=final)
            assert here.hashes("epochs", [(START, END)]) == whole

    equal()


ANY = st.sampled_from(sorted(KINDS)).flatmap(flows)


def test_cuts_and_buckets_do_not_matter() -> None:
    hold(ANY, CORE, 4)


def test_how_many_tasks_an_epoch_is_cut_into_does_not_matter() -> None:
    hold_in_epochs(ANY, examples_of(2, 6))


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", KINDS)
def test_how_many_tasks_an_epoch_is_cut_into_never_matters(kind: str) -> None:
    hold_in_epochs(flows(kind), 25)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", KINDS)
def test_cuts_and_buckets_never_matter(kind: str) -> None:
    hold(flows(kind), CORE, 40)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", KINDS)
def test_engines_never_matter(kind: str, spark: LentSpark) -> None:
    hold(flows(kind), spark, 6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_feed_without_rows_gives_no_rows(kind: str, tmp_path: Path) -> None:
    @settings(examples(1))
    @given(flow=flows(kind))
    def empty(flow: str) -> None:
        here = placed(tempfile.mkdtemp(dir=tmp_path), flow, [], [])
        hashes = here.run("cut", cut(START, END, [START + 7]))
        assert not any(hashes[name].rows for name in (*here.flow.tables(), "ledger"))

    empty()


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """Give the parcels, with the run `whole`: one interval, three buckets, on core."""
    made = trial(tmp_path_factory.mktemp("parcels"), PARCELS, {"parcels": parcels()})
    made.ran("whole", WHOLE)
    return made


@pytest.mark.parametrize(
    ("spans", "buckets"), [pytest.param(WHOLE, 1, marks=pytest.mark.exhaustive), (WHOLE, 16), (SPANS, 7)]
)
def test_spark_gives_what_core_gives(
    here: Trial, spark: LentSpark, spans: list[tuple[int, int]], buckets: int, tmp_path: Path
) -> None:
    before = spark.tasks
    assert here.run(tmp_path.name, spans, spark, buckets=buckets) == here.hashes("whole", WHOLE)
    assert spark.tasks == before + len(spans) * (buckets + 1), "a task a bucket, and one that is stream-wide"


def test_a_restart_between_intervals_does_not_matter(here: Trial) -> None:
    for span in SPANS:
        here.ran("restarted", [span])
    assert here.hashes("restarted", WHOLE) == here.hashes("whole", WHOLE)


@pytest.mark.parametrize("block", [1, pytest.param(2, marks=pytest.mark.exhaustive), 50])
def test_how_far_a_task_reads_ahead_does_not_matter(here: Trial, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(inputs, "BLOCK", block)
    assert here.run(f"block {block}", WHOLE) == here.hashes("whole", WHOLE)


def test_the_order_in_which_files_are_opened_does_not_matter(here: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    class Backwards(OrderedInput):
        def __init__(self, readers: Sequence[Iterable[pa.Table]], schema: pa.Schema, key: Sequence[str]) -> None:
            super().__init__(list(readers)[::-1], schema, key)

    monkeypatch.setattr("pipelines.engine.tasks.task.OrderedInput", Backwards)
    assert here.run("backwards", WHOLE, buckets=16) == here.hashes("whole", WHOLE)
