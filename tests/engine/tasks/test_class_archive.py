"""Spark's classes in an archive: Java is told of it where it is whole, and starts as it did where it is not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pipelines.engine.tasks import class_archive
from pipelines.engine.tasks.class_archive import OPTIONS, archive_folder, archive_in, make_archive, shared_classes
from pipelines.operators.code_folder import CHOSEN

if TYPE_CHECKING:
    from pathlib import Path

STARTS = """
import psutil
from pipelines.engine.tasks.spark import spark_session
spark = spark_session("local[1]")
javas = [each for each in psutil.Process().children(recursive=True) if "java" in each.name()]
print(any(region.path.endswith(".jsa") and "spark-" in region.path for each in javas for region in each.memory_maps()))
print(spark.range(5).count())
"""
"""Says whether Java has an archive of ours in its memory, and counts."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CHOSEN, str(tmp_path / "code"))
    monkeypatch.delenv(OPTIONS, raising=False)
    found = archive_folder()
    if found is None:
        pytest.skip("there is no Java here")
    return found


def test_a_java_is_told_of_an_archive_while_it_is_started(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "classes-4.jsa").write_bytes(b"four")
    with shared_classes():
        assert f"-XX:SharedArchiveFile={folder / 'classes-4.jsa'}" in os.environ[OPTIONS]
    assert OPTIONS not in os.environ

    monkeypatch.setenv(OPTIONS, "-Dmine=1")
    with shared_classes():
        assert os.environ[OPTIONS].endswith(" -Dmine=1")
    assert os.environ[OPTIONS] == "-Dmine=1"


def test_one_that_was_cut_short_counts_as_none(folder: Path) -> None:
    (folder / "classes-4.jsa").write_bytes(b"fou")
    assert archive_in(folder) is None
    with shared_classes():
        assert OPTIONS not in os.environ


def test_another_java_or_another_spark_has_another(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "java" / "bin").mkdir(parents=True)
    shutil.copy("/bin/true", tmp_path / "java" / "bin" / "java")
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    with monkeypatch.context() as other:
        other.setenv("JAVA_HOME", str(tmp_path / "java"))
        assert archive_folder() not in {None, folder}
    with monkeypatch.context() as other:
        other.setenv("SPARK_HOME", str(tmp_path / "spark"))
        assert archive_folder() not in {None, folder}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", ["JAVA_HOME", "SPARK_HOME"])
def test_where_there_is_none_to_start_none_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, str(tmp_path))
    assert archive_folder() is None
    with shared_classes():
        assert OPTIONS not in os.environ


def test_a_disk_that_is_too_full_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_archive, "NEEDS", 1 << 60)
    assert "MB free" in str(make_archive(folder))
    assert list(folder.iterdir()) == []


def started() -> list[str]:
    ran = subprocess.run([sys.executable, "-c", STARTS], capture_output=True, text=True, check=True)
    return ran.stdout.split()


@pytest.mark.exhaustive
def test_spark_maps_what_was_made_and_starts_without_what_is_damaged(folder: Path) -> None:
    assert make_archive(folder) is None
    made = archive_in(folder)
    assert made is not None
    assert started() == ["True", "5"]

    made.chmod(0o600)
    with made.open("r+b") as file:
        file.seek(made.stat().st_size // 2)
        file.write(bytes(1 << 20))
    assert started() == ["False", "5"]
