"""One buffer on a disk that fails, with every errno a dead disk has: a quarantine of that buffer, and nothing else."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.laws.trials import PARCELS, parcels

CHECKOUT = Path(__file__).parents[2]
SOURCE = CHECKOUT / "tests" / "laws" / "faulty_disk.c"
BUFFERED = PARCELS.replace("arrival: seen}", "arrival: seen, buffers: 3}")
DEAD = [errno.EACCES, errno.EIO, errno.ESTALE, errno.ENOTCONN]
ALWAYS = {(errno.EIO, "a"), (errno.ENOTCONN, "b")}
"""The others are in `make check-all`; `tests/engine/buffers/test_buffers.py` has each fault in this process."""
STEPS = ["landed, read by tasks", "started", "looked at", "reset"]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the library that makes a disk fail, compiled here."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("gcc compiles the disk that fails, and there is none")
    made = tmp_path_factory.mktemp("library") / "faulty_disk.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", made, SOURCE, "-ldl"], check=True)
    return made


def played(base: Path, library: Path, number: int, name: str, when: str) -> tuple[dict[str, Any], str]:
    """Do all that is done with a run while a buffer fails; give what it came to, and what was told."""
    (base / "config").mkdir(parents=True)
    places = ", ".join(str(base / "disks" / each) for each in "abc")
    local = f"home: {base / 'home'}\nengine: core\nmaster: local[1]\nbuffers:\n  places: [{places}]\n"
    (base / "config" / "local.yaml").write_text(local)
    (base / "flow.yaml").write_text(BUFFERED)
    pq.write_table(parcels(), base / "parcels.parquet")
    known = {"LD_PRELOAD": str(library), "FAULTS": str(base / "faults"), "PYTHONPATH": str(CHECKOUT)}
    known["PULSELINE_CONFIG"] = str(base / "config")
    command = [sys.executable, "-m", "tests.laws.faulty_buffer", str(base), str(number), name, when]
    ran = subprocess.run(
        command, cwd=base, env=os.environ | known, capture_output=True, text=True, timeout=300, check=False
    )
    said = ran.stdout + ran.stderr
    assert ran.returncode == 0, said[-4_000:]
    assert [step for step in STEPS if step in said] == STEPS, said[-4_000:]
    return json.loads(ran.stdout.splitlines()[-1]), said


@pytest.fixture(scope="module")
def whole(library: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Give the content hashes of the tables where nothing fails."""
    found, said = played(tmp_path_factory.mktemp("whole"), library, 0, "a", "midway")
    assert "is quarantined:" not in said
    hashes: dict[str, str] = found["hashes"]
    return hashes


@pytest.mark.parametrize(
    ("number", "name"),
    [
        pytest.param(number, name, marks=() if (number, name) in ALWAYS else pytest.mark.exhaustive)
        for number in DEAD
        for name in "ab"
    ],
    ids=lambda each: errno.errorcode.get(each, each),
)
def test_a_disk_that_dies_is_one_buffers_quarantine(
    tmp_path: Path, library: Path, whole: dict[str, str], number: int, name: str
) -> None:
    """Landing, tasks, start, status, metrics, report, reset and finish go on; the same bytes."""
    found, said = played(tmp_path, library, number, name, "midway")
    assert found["hashes"] == whole
    assert found["why"] == {each: os.strerror(number) if each == name else "" for each in "abc"}
    assert f"buffer {name} is quarantined: {os.strerror(number)}" in said
    assert f"{name} in {tmp_path / 'disks' / name}/parcels/main cannot be used: {os.strerror(number)}" in said
    assert f'pulseline_buffer_speaks{{buffer="{name}",flow="parcels",run="main"}} 0.0' in said


@pytest.mark.parametrize("number", [errno.EACCES], ids=errno.errorcode.get)
def test_a_run_begins_though_one_disk_is_dead(
    tmp_path: Path, library: Path, whole: dict[str, str], number: int
) -> None:
    found, said = played(tmp_path, library, number, "a", "born")
    assert found["hashes"] == whole
    assert f"buffer a is quarantined: {os.strerror(number)}" in said
