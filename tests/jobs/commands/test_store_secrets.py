"""What opens an object store is in no plan, no table, no log, no page and no sentence."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from pipelines.operators.compiled import numba_ready
from tests.laws.trials import PARCELS, parcels, trial

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pipelines.engine.files.stored import StorePath

SECRETS = {
    "AWS_ACCESS_KEY_ID": "OPENS7THE9DOOR",
    "AWS_SECRET_ACCESS_KEY": "behind5lock2and8bolt",
    "AWS_SESSION_TOKEN": "for3this6hour1alone",
}
DATES = ("--start", "2024-01-01T00:00", "--end", "2024-01-01T03:00")


def said(folder: Path, home: object, *words: str, **environment: str) -> tuple[int, str]:
    """Run a command whose home lies in a store, and have it tell all that it does."""
    asked = {"PULSELINE_HOME": str(home), "PULSELINE_LOG": "debug", "XDG_CACHE_HOME": str(folder / "cache")}
    asked["NUMBA_CACHE_DIR"] = vars(numba_ready().config)["CACHE_DIR"]  # compiled once
    done = subprocess.run(
        [sys.executable, "-m", "pipelines.cli", *words],
        env={**os.environ, **SECRETS, **asked, **environment},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def contents(store: StorePath, folder: Path) -> Iterator[tuple[str, str]]:
    """Give all that was written, in the store and on this machine, as text."""
    for path in (*store.rglob("*"), *(file for file in folder.rglob("*") if file.is_file())):
        data = path.read_bytes()
        rows = str(pq.read_table(io.BytesIO(data)).to_pylist()) if path.suffix == ".parquet" and data else ""
        yield str(path), data.decode(errors="replace") + rows


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    trial(tmp_path, PARCELS, {"parcels": parcels()})
    return tmp_path


def test_what_opens_a_store_is_written_and_told_nowhere(folder: Path, store: StorePath) -> None:
    flow = str(folder / "flow.yaml")
    told = []
    for words in (["run", flow, *DATES, "--engine", "core"], ["status", flow], ["report", flow]):
        code, text = said(folder, store, *words)
        assert code == 0, text
        told.append((words[0], text))
    written = list(contents(store, folder))
    assert any("2024-01-01T00:00" in text and ".parquet" in name for name, text in written), "rows are looked into"
    assert any('"feed"' in text and "/commits/" in name for name, text in written), "and plans"
    assert any(name.endswith(".html") for name, _ in written), "and pages"
    assert [(name, each) for name, text in (*told, *written) for each in SECRETS.values() if each in text] == []


@pytest.mark.parametrize(
    "wrong", [{"PULSELINE_HOME": "s3://nobodys/home"}, {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}], ids=str
)
def test_what_opens_a_store_is_in_no_refusal(folder: Path, store: StorePath, wrong: Mapping[str, str]) -> None:
    code, text = said(folder, store, "run", str(folder / "flow.yaml"), *DATES, "--engine", "core", **wrong)
    assert code == 3, text
    assert "must be had from its object store" in text
    assert [each for each in SECRETS.values() if each in text] == []
