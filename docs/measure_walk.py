# ruff: noqa: INP001 - a script beside the documents whose figures it makes, no package
"""Follow one parameter, the `interval` of a heartbeat, from the file of a flow to the rows that it makes.

.venv/bin/python -m docs.measure_walk

A flow runs as `pulseline run` has it, in this process. Each time that a function of ours returns, it is looked at
whether it has the value in hand by itself: as the text that stood in the file, or as a number in some unit. Who passes
on a flow, a policy or a plan with the value somewhere inside need not know that it is there, and is not counted.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from pipelines.operators.registry import warm_up

if TYPE_CHECKING:
    from types import FrameType

SECONDS = 7919
"""A prime that nothing else in a run is."""
TEXT = f"{SECONDS}s"
FLOW = f"""\
flow: walk
sources:
  parcels:
    feed: {{csv: parcels.csv, types: {{planned: timestamp, seen: timestamp}}}}
    key: line
    time: planned
    arrival: seen
    shape: point
streams:
  beating: {{heartbeat: parcels, interval: {TEXT}, slack: 90s}}
"""
ROWS = """\
line,planned,seen
a,2024-01-01T00:00:00Z,2024-01-01T00:01:00Z
a,2024-01-01T10:00:00Z,2024-01-01T10:01:00Z
"""
OURS = ("pipelines.", "expectations.")


def shape_of(value: object) -> str:
    """Say in which shape a value is the parameter; empty where it is another thing.

    >>> shape_of("7919s"), shape_of(7_919_000_000), shape_of(1), shape_of("a: 7919s")
    ('text', 'ticks', '', '')
    """
    if isinstance(value, str):
        return "text" if value == TEXT else "digits" if value == str(SECONDS * 1_000_000) else ""
    if isinstance(value, timedelta):
        return "timedelta" if value.total_seconds() == SECONDS else ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        units = {SECONDS: "seconds", SECONDS * 1_000: "milliseconds", SECONDS * 1_000_000: "ticks"}
        return next((unit for number, unit in units.items() if number == value), "")
    return ""


class Walk:
    """The modules that had the parameter in hand, in their order, and the shapes in which they had it."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self.modules: dict[str, None] = {}
        self.shapes: dict[str, None] = {}

    def look(self, frame: FrameType, event: str, given: Any) -> None:  # noqa: ANN401 - as sys.setprofile calls it
        """Look at a function of ours that returns."""
        module = frame.f_globals.get("__name__") or ""
        if event != "return" or not module.startswith(OURS):
            return
        for value in (*frame.f_locals.values(), given):
            if shape := shape_of(value):
                self.modules[module] = None
                self.shapes[shape] = None


def walk() -> Walk:
    """Run a flow of one heartbeat, unchecked and on this process, and give the way of its interval."""
    from pipelines.jobs.commands.run import RunRequest, run_flow

    warm_up(["heartbeat"])
    found = Walk()
    with tempfile.TemporaryDirectory(prefix="pulseline-walk-") as folder:
        base = Path(folder)
        (base / "local.yaml").write_text(f"home: {base / 'runs'}\nengine: core\nmaster: local[1]\n", encoding="utf-8")
        (base / "walk.yaml").write_text(FLOW, encoding="utf-8")
        (base / "parcels.csv").write_text(ROWS, encoding="utf-8")
        asked = RunRequest(flow=str(base / "walk.yaml"), start="2024-01-01", end="2024-01-02", check=False)
        with patch.dict(os.environ, PULSELINE_CONFIG=folder):
            threading.setprofile(found.look)
            sys.setprofile(found.look)
            try:
                run_flow(asked, lambda _: None)
            finally:
                sys.setprofile(None)
                threading.setprofile(None)
    return found


def main() -> None:
    """Print the walk."""
    found = walk()
    sys.stdout.write(f"{len(found.modules)} modules: {', '.join(found.modules)}; as {', '.join(found.shapes)}\n")


if __name__ == "__main__":
    main()
