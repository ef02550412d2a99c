"""Charts as a file of their own: one SVG that needs nothing beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from expectations.report.charts.delays import delay_charts
from expectations.report.charts.scales import nice_above
from expectations.report.page import TEMPLATES
from expectations.report.words import counted, duration

if TYPE_CHECKING:
    from expectations.report.charts.delays import DelayFacts
    from expectations.report.charts.drawing import Chart

WIDTH = 1080
HEAD = 92
"""Pixels above the first chart."""
ROOM = 60
"""Pixels of a chart's own words, and below it."""


def delays_figure(facts: DelayFacts) -> str:
    """Write the curve of a stream's delays as an SVG.

    Safe with any name: every value goes through Jinja's autoescape. Equal facts give equal bytes.

    Args:
        facts: what each delay would have done.
    """
    title = f"{facts.flow} · {facts.stream}: what each delay costs and buys"
    lead = (
        f"Exact for {counted(facts.events, 'event')} of {facts.span}; the future may differ.",
        f"Across: the delay, compressed beyond about {duration(nice_above(facts.bend))}.",
    )
    return _written(title, lead, delay_charts(facts))


def _written(title: str, lead: tuple[str, ...], charts: tuple[Chart, ...]) -> str:
    placed, top = [], HEAD
    for chart in charts:
        placed.append((top, chart))
        top += ROOM + chart.drawings[0].frame.total_height
    loader = FileSystemLoader(TEMPLATES)
    kind = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    page = kind.get_template("figure.svg")
    return page.render(width=WIDTH, height=top + 8, title=title, lead=lead, placed=placed).strip() + "\n"
