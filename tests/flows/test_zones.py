"""Timezones are data of the pinned package: what a machine's own files say decides no row."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tzdata

from pipelines.flows.zones import VERSION

ROOT = Path(__file__).parents[2]
UTC = Path(tzdata.__file__).parent / "zoneinfo" / "UTC"
FACES = (
    "import numpy as n, pipelines.engine.columnar.local_times as l; "
    "print(l.utc_from_local(n.array([0]), 'America/New_York')[0])"
)
GRID = (
    "import sys, pathlib; from pipelines.flows.reading import read_flow; from pipelines.flows.grid import intervals; "
    "print(intervals(read_flow(pathlib.Path(sys.argv[1])), '1970-01-01', '1970-01-02')[0][0])"
)
MOMENTS = "from pipelines.jobs.text.moments import Moments; print(Moments('America/New_York').argument(18_000_000_000))"
FLOW = """\
flow: tiny
about: Trips.
timezone: America/New_York
sources: {trips: {feed: {parquet: trips.parquet}, key: station, time: planned, arrival: went}}
streams: {beating: {heartbeat: trips, interval: 6h, slack: 90s}}
"""


@pytest.mark.parametrize(("program", "said"), [(FACES, "18000000000"), (GRID, "18000000000"), (MOMENTS, "1970-01-01")])
def test_another_machines_timezones_change_nothing(tmp_path: Path, program: str, said: str) -> None:
    planted = tmp_path / "zoneinfo" / "America" / "New_York"
    planted.parent.mkdir(parents=True)
    planted.write_bytes(UTC.read_bytes())
    (tmp_path / "tiny.yaml").write_text(FLOW)
    environment = os.environ | {"PYTHONTZPATH": str(tmp_path / "zoneinfo"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program, str(tmp_path / "tiny.yaml")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, said), done.stderr


def test_the_version_is_that_of_the_package() -> None:
    assert tzdata.IANA_VERSION == VERSION
