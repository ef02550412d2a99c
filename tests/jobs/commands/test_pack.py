"""`pulseline pack`: an archive with our code and packages, the same bytes each time, and settings that name it."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from typing import TYPE_CHECKING

import pytest

from pipelines.jobs.commands import pack as packing
from pipelines.jobs.commands.pack import PackRequest, needed, pack, settings_for
from pipelines.jobs.environment.errors import WrongUse

if TYPE_CHECKING:
    from pathlib import Path

FEW = ("psutil", "pendulum")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pack little: all that tasks import takes half a minute, and tests/laws/test_cluster.py does it."""
    monkeypatch.setattr(packing, "IMPORTED", FEW)


@pytest.mark.usefixtures("few")
def test_python_finds_our_code_and_packages_in_it_and_nowhere_else(tmp_path: Path) -> None:
    pack(PackRequest(to=tmp_path / "workers.tar.gz"), print)
    with tarfile.open(tmp_path / "workers.tar.gz") as tar:
        tar.extractall(tmp_path / "unpacked", filter="data")
    program = tmp_path / "unpacked" / "bin" / "pulseline-python"
    code = "import pendulum, psutil, pipelines.errors as ours; print(pendulum.__file__, psutil.__file__, ours.__file__)"
    path = f"{sys.base_prefix}/bin:/usr/bin:/bin"
    done = subprocess.run(
        [program, "-c", code], env={"PATH": path}, cwd=tmp_path, capture_output=True, text=True, check=True
    )

    packages = tmp_path / "unpacked" / "packages"
    assert [file.startswith(f"{packages}/") for file in done.stdout.split()] == [True] * 3


@pytest.mark.usefixtures("few")
def test_the_same_environment_gives_the_same_bytes_and_the_settings_name_it(tmp_path: Path) -> None:
    told: list[str] = []
    for name in ("first", "second"):
        pack(PackRequest(to=tmp_path / name, as_json=True), told.append)
    facts = json.loads(told[1])

    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
    assert facts["spark"] == settings_for(tmp_path / "second")
    assert facts["spark"]["spark.archives"] == f"{tmp_path / 'second'}#pulseline"
    assert {name.split()[0] for name in facts["packages"]} >= {"pendulum", "psutil", "python-dateutil", "tzdata"}


def test_what_tasks_import_comes_with_all_that_it_needs() -> None:
    names = {each.metadata["Name"].lower() for each in needed()}

    assert {"numba", "llvmlite", "pyarrow", "deltalake", "obstore", "tzdata"} <= names
    assert not {"pyspark", "apache-airflow", "pytest"} & names, "workers have Spark, and need no scheduler"


def test_what_cannot_be_packed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WrongUse, match="must have a folder to lie in"):
        pack(PackRequest(to=tmp_path / "gone" / "workers.tar.gz"), print)
    monkeypatch.setattr(packing, "IMPORTED", ("teleport",))
    with pytest.raises(WrongUse, match="tasks need the package teleport, which is not installed here"):
        pack(PackRequest(to=tmp_path / "workers.tar.gz"), print)
    assert list(tmp_path.iterdir()) == []
