"""Metrics of a run as Prometheus reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families

from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.readers import log_state
from pipelines.engine.sources.state import write_state
from pipelines.jobs.commands.metrics import METRICS, write_metrics
from pipelines.jobs.facts.buffers import buffer_lines, buffers_facts
from pipelines.jobs.runs.readings import land_readings
from pipelines.jobs.text.moments import Moments
from tests.laws.streamed import streamed
from tests.laws.trials import BEGIN, MINUTE, PARCELS, parcels, trial

if TYPE_CHECKING:
    from pathlib import Path

BUFFERED = PARCELS.replace("arrival: seen}", "arrival: seen, buffers: 3}")


def test_a_run_measures_its_region_its_buffers_and_its_sources(tmp_path: Path) -> None:
    here = trial(tmp_path, BUFFERED, {"parcels": parcels()})
    streamed(here, "live", BEGIN, [BEGIN + minutes * MINUTE for minutes in (10, 20, 30)])
    root = here.root("live")
    write_state(root, "pumps", state="connected", waiting_bytes=70, max_bytes=100)
    write_state(root, "topic", state="connected", waiting_rows=7, partitions=2)
    write_metrics("parcels", "live", root)

    families = text_string_to_metric_families((root / METRICS).read_text())
    found = {(each.name, *sorted(each.labels.items())): each.value for every in families for each in every.samples}
    run = (("flow", "parcels"), ("run", "live"))
    assert found["pulseline_consistent_commit", *run] == 3
    assert found["pulseline_rows_in_flight", *run] == 0
    assert [found["pulseline_buffer_speaks", ("buffer", name), *run] for name in "abc"] == [1, 1, 1]
    assert found["pulseline_source_waiting_bytes", *run, ("source", "pumps")] == 70
    assert found["pulseline_source_max_bytes", *run, ("source", "pumps")] == 100
    assert found["pulseline_source_waiting_rows", *run, ("source", "topic")] == 7
    assert ("pulseline_source_waiting_rows", *run, ("source", "pumps")) not in found


def test_what_no_buffer_holds_is_said_to_be_lost_unless_its_storage_comes_back(tmp_path: Path) -> None:
    here = trial(tmp_path, BUFFERED, {"parcels": parcels()})
    readings = [BEGIN + minutes * MINUTE for minutes in (10, 20, 30, 40)]
    streamed(here, "live", BEGIN, readings[:3])
    wanted, root = here.wanted("live"), here.root("live")
    with open_driver(root, flow="parcels"):
        land_readings(wanted, BEGIN, readings)
    state, moments = log_state(root), Moments("UTC")

    def told() -> dict[str, str]:
        facts = buffers_facts(root, state)
        return dict(buffer_lines(facts, moments, 0))

    assert "LOST" not in told()
    (root / "landing").rename(root / "away")
    assert told()["LOST"].startswith("sequences 4 to 4, unless a buffer's storage comes back")
    assert told()["consistent"].endswith("what came since is lost")
    (root / "away").rename(root / "landing")
    assert "LOST" not in told()
