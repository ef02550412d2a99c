"""A service manager that ends every process of a stream at once, Spark's too, gets a clean end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pipelines.jobs.commands.stream import Live, run_live
from tests.laws.trials import PARCELS, SPANS, WHOLE, parcels, trial

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import LentSpark


@pytest.mark.parametrize("after", ["Spark starts", "rows/s"])
def test_a_signal_to_all_processes_stops_a_stream_cleanly_and_it_goes_on(
    tmp_path: Path, spark: LentSpark, after: str
) -> None:
    here = trial(tmp_path / "flows", PARCELS, {"parcels": parcels()})
    (here.base / "local.yaml").write_text(f"home: {here.base / 'runs'}\nengine: core\nmaster: local[2]\n")
    words = [sys.executable, "-m", "pipelines.cli", "stream", str(here.base / "flow.yaml")]
    span = ["--start", "2024-01-01T00:00", "--end", "2024-01-01T03:00"]

    def begun(*more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*words, *span, *more],
            env={**os.environ, "PULSELINE_CONFIG": str(here.base)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    service = begun("--speed", "600")
    assert service.stdout is not None
    said = next(line for line in service.stdout if after in line)
    time.sleep(1)
    os.killpg(service.pid, signal.SIGTERM)
    said += service.communicate(timeout=60)[0]
    assert service.returncode == 0, said
    assert "Traceback" not in said
    assert not (here.base / "runs" / here.flow.name / "main" / "stopped.json").exists()

    start, end = WHOLE[0]
    root = here.root(f"{here.flow.name}/main")
    again = Live(flow=here.flow, root=root, base=here.base, spark=spark, start=start, end=end, speed=100_000.0)
    run_live(replace(again, until_caught_up=True), lambda _: None)
    local = here.run("local", SPANS)
    assert here.hashes(f"{here.flow.name}/main", WHOLE) == local
