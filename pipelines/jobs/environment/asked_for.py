"""Who asked for a command: where a scheduler runs it, the address of the run that it is a part of."""

from __future__ import annotations

import os
import re

RUN_URL = "PULSELINE_RUN_URL"
"""Of the environment: the page of the scheduler's run; its DAGs set it."""
ADDRESS = re.compile(r"https?://[^\s/@]+(/\S*)?")
LONGEST = 1_000


def run_address() -> str:
    """Give the address of the scheduler's run; empty where there is none, or what is said is no address to click on.

    One with a user in it is none: it would stand on pages.
    """
    return followable(os.environ.get(RUN_URL, ""))


def followable(said: str) -> str:
    """Give what is said where it is an address to click on, else nothing.

    >>> followable("https://airflow/dags/a/runs/b"), followable("javascript:alert(1)"), followable("http://me:it@here/")
    ('https://airflow/dags/a/runs/b', '', '')
    """
    return said if len(said) <= LONGEST and ADDRESS.fullmatch(said) else ""
