"""PULSELINE_LOG: what a run does inside, told on standard error and nowhere else, and only to whoever asks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

FLOW = (
    "flow: told\nsources:\n  rows: {feed: {csv: rows.csv, types: {k: string, at: timestamp}}, "
    "key: k, time: at, arrival: at}\nstreams:\n  once: {deduplicate: rows, on: k, within: 1h}\n"
)
LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (INFO|DEBUG) pipelines\.[a-z_.]+: .+")


def ran(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a day of a small flow, in a process of its own."""
    folder.mkdir()
    (folder / "rows.csv").write_text("k,at\na,2013-01-01T01:00:00Z\n")
    (folder / "told.yaml").write_text(FLOW)
    words = ["run", str(folder / "told.yaml"), "--start", "2013-01-01", "--end", "2013-01-02"]
    command = [sys.executable, "-m", "pipelines.cli", *words, "--engine", "core", "--no-check"]
    home = os.environ | {"PULSELINE_HOME": str(folder / "home")} | environment
    return subprocess.run(command, env=home, capture_output=True, text=True, check=False)


def test_who_asks_for_it_reads_each_step_of_a_commit(tmp_path: Path) -> None:
    told = ran(tmp_path / "info", PULSELINE_LOG="info")

    assert told.returncode == 0, told.stderr
    lines = told.stderr.splitlines()
    assert [line for line in lines if not LINE.fullmatch(line)] == []
    assert any("lease of" in line for line in lines)
    assert [line.rsplit(": ", 1)[1].split(", ")[1] for line in lines if "commit 1 " in line] == [
        "intent",
        "written",
        "published",
    ]


def test_nobody_else_reads_it(tmp_path: Path) -> None:
    quiet, loud = ran(tmp_path / "quiet"), ran(tmp_path / "loud", PULSELINE_LOG="debug")

    assert (quiet.returncode, quiet.stderr) == (0, "")
    assert "DEBUG pipelines.engine.landing.manifest: sequence 1 closed" in loud.stderr
    assert len(quiet.stdout.splitlines()) == len(loud.stdout.splitlines())


@pytest.mark.parametrize("word", ["inof", "7"])
def test_a_level_that_is_none_is_refused(tmp_path: Path, word: str) -> None:
    refused = ran(tmp_path / "refused", PULSELINE_LOG=word)

    assert refused.returncode == 2
    assert f"PULSELINE_LOG must be one of `debug`, `info`, `warning`, `error`; it is `{word}`" in refused.stderr
    assert ("did you mean `info`?" in refused.stderr) == (word == "inof")
