"""What the tab shows of a stream that runs: how far it is, how late its timers are, and what is silent."""

from __future__ import annotations

import pyarrow as pa

from expectations.report import render
from pipelines.errors import PulselineError
from pipelines.jobs.facts.overview import read_live
from pipelines.jobs.facts.report import Reported
from pipelines.jobs.runs.known import open_run

SECONDS = 5
"""Between two looks of a browser at a stream."""


def live_page(flow: str, run: str) -> str | None:
    """Write the page of a run that streams; None where it has published nothing, or cannot be read right now.

    Args:
        flow: its name.
        run: name of the run.
    """
    try:
        about = Reported(known=open_run(flow, run))
        return render(read_live(about), refresh=SECONDS) if about.published else None
    except (PulselineError, OSError, pa.ArrowException):
        return None
