"""Tests that only `make check-all` runs are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.slow import SLOW

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("line", SLOW)
def test_what_is_too_slow_to_run_each_time_is_there(line: str) -> None:
    file, _, name = line.partition("::")
    text = (TESTS / file).read_text(encoding="utf-8")

    assert not name or re.search(rf"^def {re.escape(name.partition('[')[0])}\(", text, re.MULTILINE)
