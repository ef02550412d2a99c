"""A page as PDF: a browser prints it as anybody's would, by the page's own rules for paper."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from pipelines.engine.files import durable
from pipelines.jobs.environment.errors import WrongUse

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SECONDS = 120
"""In which a page must be printed."""
MOST_SAID = 300
OPTIONS = ("--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--no-pdf-header-footer")


def print_page(page: Path) -> Path:
    """Print a page, beside it and under its name.

    Args:
        page: an HTML file that loads nothing.

    Returns:
        The PDF file.

    Raises:
        WrongUse: there is no browser, or it printed nothing.
    """
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        raise WrongUse(f"--pdf must have {', '.join(BROWSERS[:-1])} or {BROWSERS[-1]} on PATH, and none is there")
    # Chromium refuses to run as root inside its own sandbox.
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "page.pdf"
        told = (f"--user-data-dir={folder}/profile", f"--print-to-pdf={made}", page.as_uri())
        try:
            done = subprocess.run(  # noqa: S603 - a browser, and a page of ours
                [browser, *OPTIONS, *sandbox, *told], capture_output=True, text=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise WrongUse(f"--pdf must be printed within {SECONDS} s, and {browser} took longer: {page}") from None
        if done.returncode or not made.is_file():
            said = " ".join(done.stderr.split())[-MOST_SAID:]
            raise WrongUse(f"--pdf: {browser} must print {page}, and ended with {done.returncode}: {said}")
        file = page.with_suffix(".pdf")
        durable.replace(file, made.read_bytes())
    return file
