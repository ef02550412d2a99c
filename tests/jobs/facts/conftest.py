"""Parcels of three intervals that were run once, and copies of them to spoil."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.laws.trials import PARCELS, SPANS, Trial, parcels, trial

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="package")
def made(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """Give a run that tests only look at."""
    found = trial(tmp_path_factory.mktemp("parcels"), PARCELS, {"parcels": parcels()})
    found.ran("main", SPANS)
    return found


@pytest.fixture
def here(made: Trial, tmp_path: Path) -> Trial:
    """Give a copy that a test may spoil."""
    shutil.copytree(made.base, tmp_path / "copy")
    return replace(made, base=tmp_path / "copy")
