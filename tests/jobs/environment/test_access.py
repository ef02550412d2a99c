"""What commands write is their owner's to read, unless the settings share it; what a user asked for by name is not."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from pipelines.cli import app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.jobs.conftest import House

DAY = ["--start", "2013-01-01", "--end", "2013-01-02", "--engine", "core", "--no-check"]


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    """Let what nobody thinks of be readable by all, as on most machines."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def called(*words: str) -> None:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.output


def modes(folder: Path) -> tuple[set[int], set[int]]:
    """Give the rights of all folders and of all files."""
    found = [folder, *folder.rglob("*")]
    folders = {stat.S_IMODE(path.stat().st_mode) for path in found if path.is_dir()}
    return folders, {stat.S_IMODE(path.stat().st_mode) for path in found if path.is_file()}


@pytest.mark.parametrize(
    ("said", "folders", "files"),
    [("", 0o700, 0o600), ("access: group\n", 0o770, 0o660), ("access: everyone\n", 0o755, 0o644)],
)
def test_tables_ledger_and_pages_are_for_whom_the_settings_say(
    house: House, said: str, folders: int, files: int
) -> None:
    settings = house.config / "local.yaml"
    settings.write_text(settings.read_text() + said)
    called("run", "tiny", *DAY)
    called("report", "tiny")
    assert list(house.home.rglob("*.html"))
    assert list((house.root / "ledger").rglob("*.parquet"))
    assert modes(house.home) == ({folders}, {files})
    assert os.umask(0o022) == 0o022, "the caller's own is as it was"


def test_a_file_that_the_user_named_has_the_rights_of_their_others(house: House, tmp_path: Path) -> None:
    called("run", "tiny", *DAY)
    called("metrics", "tiny", "--to", str(tmp_path / "tiny.prom"))
    called("advise", "tiny", "punctual", "--svg", str(tmp_path / "delays.svg"))
    for name in ("tiny.prom", "delays.svg"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o644
    assert stat.S_IMODE(house.home.stat().st_mode) == 0o700
