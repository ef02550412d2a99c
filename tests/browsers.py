"""The browser that tests look through."""

from __future__ import annotations

import shutil

import pytest


def browser_path() -> str:
    """Give the program; skips the test where there is none."""
    found = next((found for name in ("chromium", "google-chrome") if (found := shutil.which(name))), None)
    if found is None:
        pytest.skip("no chromium or google-chrome on PATH: .ci/run installs one")
    return found
