"""What was told before a run began lands in its first interval, however the run is cut."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipelines.engine.columnar.columns import ticks
from pipelines.engine.landing.index import Landing
from pipelines.flows.definition import fingerprint_of, flow_from_json, flow_to_json
from pipelines.flows.errors import FlowError
from pipelines.flows.model import ALL_HISTORY
from tests.laws.streamed import Restart, streamed
from tests.laws.trials import BEGIN, HOUR, MINUTE, PARCELS, SPANS, parcels, trial

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.flows.model import Source
    from tests.laws.trials import Trial

START, END = SPANS[1][0], SPANS[2][1]
LATER = [(START, END)]
READINGS = [*range(START + 7 * MINUTE, END, 7 * MINUTE), END]
SAYS = {"from": "from: beginning", "history": "history: 20m"}


def told(folder: Path, saying: str) -> Trial:
    """Give the flow with the setting, over a feed whose files do not stand in the order of their arrivals."""
    text = PARCELS.replace("arrival: seen}", f"arrival: seen, {saying}}}")
    rows = parcels()
    order = np.random.default_rng(5).permutation(rows.num_rows)
    return trial(folder, text, {"parcels": rows.take(order)})


def source_of(here: Trial) -> Source:
    return here.flow.sources["parcels"]


@pytest.mark.parametrize("saying", SAYS)
def test_history_lands_first_in_the_order_of_its_own_arrivals(tmp_path: Path, saying: str) -> None:
    here = told(tmp_path, SAYS[saying])
    here.ran("main", SPANS[1:])
    first = Landing(here.wanted("main").landing).sequence(1)
    rows = pa.Table.from_batches(first.open("parcels"))
    rows = rows.sort_by([("arrival", "ascending"), ("place", "ascending")])
    arrival, own = ticks(rows["arrival"]), ticks(rows["seen"])
    since = BEGIN if saying == "from" else START - 20 * MINUTE
    feed = ticks(parcels()["seen"])
    assert rows.num_rows == int(((feed >= since) & (feed < START + HOUR)).sum()) > int((feed >= START).sum()) / 2
    assert (arrival == np.maximum(own, START)).all()
    assert (own[1:] >= own[:-1]).all()
    history = int((own < START).sum())
    assert history > 20
    assert rows["place"][:history].to_pylist() == list(range(1, history + 1))


@pytest.mark.parametrize(
    ("saying", "buckets"),
    [
        *(("from", 1), ("history", 8)),
        *(pytest.param(*case, marks=pytest.mark.exhaustive) for case in (("from", 8), ("history", 1))),
    ],
)
def test_cuts_do_not_matter_to_history(tmp_path: Path, saying: str, buckets: int) -> None:
    here = told(tmp_path, SAYS[saying])
    whole = here.run("whole", LATER)
    assert here.run("days", SPANS[1:], buckets=buckets) == whole
    streamed(here, "live", START, READINGS, buckets=buckets, restart=Restart.EVERY_EPOCH)
    assert here.hashes("live", LATER) == whole
    here.ran("handed over", SPANS[1:2])
    streamed(here, "handed over", SPANS[2][0], [reading for reading in READINGS if reading > SPANS[2][0]])
    assert here.hashes("handed over", LATER) == whole
    without = told(tmp_path / "other", "buffers: 1")
    assert without.run("whole", LATER)["beating"] != whole["beating"]


def test_running_again_lands_nothing_new(tmp_path: Path) -> None:
    here = told(tmp_path, SAYS["from"])
    here.ran("main", SPANS[1:])
    landed = Landing(here.wanted("main").landing).last_id
    here.ran("main", SPANS[1:])
    assert Landing(here.wanted("main").landing).last_id == landed


def test_a_flow_without_history_is_what_it_was(tmp_path: Path) -> None:
    here = told(tmp_path / "without", "buffers: 1")
    assert "history" not in json.dumps(flow_to_json(here.flow))
    with_it = told(tmp_path / "with", SAYS["history"]).flow
    assert fingerprint_of(with_it) != fingerprint_of(here.flow)
    assert flow_from_json(flow_to_json(with_it)).sources["parcels"].history == 20 * MINUTE
    assert source_of(told(tmp_path / "all", SAYS["from"])).history == ALL_HISTORY


@pytest.mark.parametrize(
    ("saying", "problem"),
    [
        ("from: begining", "did you mean `beginning`"),
        ("history: 0s", "a duration such as `30d`"),
        ("history: 1d, from: beginning", "`history` beside `from`"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, saying: str, problem: str) -> None:
    with pytest.raises(FlowError, match=problem):
        told(tmp_path, saying)


def test_by_reference_the_first_interval_is_copied(tmp_path: Path) -> None:
    feed = "{parquet: parcels.parquet, landing: reference}"
    text = PARCELS.replace("{parquet: parcels.parquet}", feed).replace("buckets: 3", "buckets: 1")
    rows = parcels()
    rows = rows.filter(pc.and_(rows["seen"].is_valid(), rows["sent"].is_valid()))
    here = trial(tmp_path, text.replace("arrival: seen}", "arrival: seen, from: beginning}"), {"parcels": rows})
    copied = trial(
        tmp_path / "copied", PARCELS.replace("arrival: seen}", "arrival: seen, from: beginning}"), {"parcels": rows}
    )
    assert here.run("main", SPANS[1:]) == copied.run("main", SPANS[1:])
    first, second = Landing(here.wanted("main").landing).sequences
    assert first.sources["parcels"].copied == "rows that arrived before it land in it"
    assert second.sources["parcels"].referenced is not None
