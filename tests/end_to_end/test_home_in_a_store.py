"""`PULSELINE_HOME=s3://…` is all it takes: the commands of a user give what they give in a folder, batch and stream."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from pipelines.flows.reading import read_flow
from pipelines.jobs.environment.settings import CHECKOUT
from pipelines.jobs.proofs.emulator import BUCKET
from pipelines.jobs.proofs.parity import table_hashes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pipelines.engine.files.stored import StorePath

TWO_DAYS = ("--start", "2013-01-07", "--end", "2013-01-09")
BEGIN, END = 1_357_534_800_000_000, 1_357_707_600_000_000
"""Of these two days in New York, in ticks."""


@dataclass
class User:
    """Somebody who types commands, in an empty folder."""

    home: Path
    at: Path
    variables: Mapping[str, str]

    def types(self, *words: str) -> str:
        """Give what a command says; it must end well."""
        own = {
            "PULSELINE_HOME": str(self.home),
            "PULSELINE_CONFIG": str(CHECKOUT / "config"),
            "PYTHONPATH": str(CHECKOUT),
        }
        command = [sys.executable, "-m", "pipelines.cli", *words]
        done = subprocess.run(
            command,
            cwd=self.at,
            env={**os.environ, **self.variables, **own},
            capture_output=True,
            text=True,
            check=False,
        )
        assert not done.returncode, done.stdout + done.stderr
        return done.stdout

    def reads(self, stream: str) -> str:
        """Give how many rows and columns pandas finds by the line that is printed for it."""
        line = json.loads(self.types("tables", "flights", stream, "--json"))["readers"]["pandas"]
        code = f"import pandas\nfrom deltalake import DeltaTable\nprint(({line}).shape)"
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, **self.variables},
            capture_output=True,
            text=True,
            check=False,
        )
        assert not done.returncode, done.stderr
        return done.stdout

    def hashes(self, run: str) -> dict[str, str]:
        """Give the content hash of every table of a run."""
        flow = read_flow(CHECKOUT / "config" / "flows" / "flights.yaml", {})
        return {name: found.text for name, found in table_hashes(self.home / "flights" / run, flow, BEGIN, END).items()}


def test_days_on_core_are_those_of_a_folder(tmp_path: Path, store: StorePath, bucket: Mapping[str, str]) -> None:
    user, other = User(store, tmp_path, bucket), User(tmp_path / "home", tmp_path, {})
    for each in (user, other):
        each.types("run", "flights", *TWO_DAYS, "--engine", "core", "--no-check")
    assert user.hashes("main") == other.hashes("main")
    looks = (("show", "flights", "delays"), ("ledger", "flights"), ("ledger", "flights", "--explain"))
    for words in looks:
        assert user.types(*words) == other.types(*words)
    assert f"s3://{BUCKET}" in user.types("status", "flights")
    assert "stand, with every file" in user.types("doctor", "flights")
    shapes = [each.reads("delays") for each in (user, other)]
    assert shapes[0] == shapes[1]
    user.types("report", "flights")
    assert list((store / "reports").rglob("*.html"))
    written = [path.read_bytes() for path in store.rglob("*") if path.suffix != ".parquet"]
    assert not [each for each in written if b"emulated" in each or b"127.0.0.1" in each], "no key and no address"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["home"], "and nothing on this machine"
    landed = store / "flights" / "main" / "landed" / "00000002"
    wanted = user.hashes("main")
    landed.remove_all()
    assert "landing the interval of commit 2 again" in user.types("doctor", "flights", "--repair")
    assert "stand, with every file" in user.types("doctor", "flights", "--deep")
    assert any(landed.rglob("*.parquet"))
    assert user.hashes("main") == wanted


@pytest.mark.exhaustive
def test_spark_streams_checks_and_replays_there(tmp_path: Path, store: StorePath, bucket: Mapping[str, str]) -> None:
    user = User(store, tmp_path, {**bucket, "XDG_CACHE_HOME": str(tmp_path / "cache")})
    other = User(tmp_path / "home", tmp_path, {})
    other.types("run", "flights", *TWO_DAYS, "--engine", "core", "--no-check")
    wanted = other.hashes("main")
    user.types("run", "flights", *TWO_DAYS, "--engine", "batch", "--run", "batch")
    assert user.hashes("batch") == wanted
    stream = ("stream", "flights", *TWO_DAYS, "--speed", "100000", "--until-caught-up", "--run", "live")
    user.types("run", "flights", *TWO_DAYS, "--engine", "core", "--no-check")
    assert user.hashes("main") == wanted
    user.types(*stream)
    assert user.hashes("live") == wanted
    assert "expectations hold" in user.types("check", "flights", "--run", "live")
    assert "same: both runs" in user.types("replay", "flights", "--run", "live", "--into", "again")
