"""The page: facts in, HTML out."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined

from expectations.report import words
from expectations.report.checks import changed_sentence
from expectations.report.facts import rows_told
from expectations.report.sections import SECTIONS
from expectations.report.verdict import verdict
from expectations.report.words import ReportClock
from pipelines.operators.code_folder import CodeFolderError, lasting_folder

if TYPE_CHECKING:
    from jinja2.bccache import Bucket

    from expectations.report.facts import ReportFacts

TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One number on top of the page."""

    value: str
    label: str
    section: str = ""
    """Of the page, that tells what it counts."""


@dataclass(frozen=True, kw_only=True)
class Kept:
    """What a page that is kept as it was says of itself."""

    name: str
    """What it was kept for."""
    commit: int | None
    """The newest commit then."""
    now: str
    """The page that shows the same as it is now, in the same folder."""


@dataclass(frozen=True, kw_only=True)
class Around:
    """Where a page stands among those of a site; links are relative, and empty where there is no such page."""

    index: str
    """The page of all flows."""
    flow: str = ""
    """The page of the flow's run."""
    before: str = ""
    """The page of the day before."""
    after: str = ""


def render(
    facts: ReportFacts, kept: Kept | None = None, around: Around | None = None, refresh: int | None = None
) -> str:
    """Write the page of one flow run.

    Safe with any data: every value goes through Jinja's autoescape, and an undefined one is an error. The page loads
    nothing, runs no script, and depends on nothing but `facts`: equal facts give equal bytes.

    Args:
        facts: what the jobs read in the tables.
        kept: for a page that is kept as it was; None for the one that is made again and again.
        around: of a page of a site; None for one that stands alone.
        refresh: of a run under way, seconds after which a browser asks for the page again; None for all others.

    Returns:
        A complete HTML document.

    Raises:
        ReportError: never here; facts that no page can be made of are refused when they are built.
    """
    clock = ReportClock(facts.timezone)
    views = [(section, section.view(facts, clock)) for section in SECTIONS]
    shown = [(section, view) for section, view in views if view is not None]
    page = environment().get_template("page.html")
    return page.render(
        facts=facts,
        clock=clock,
        words=words,
        verdict=verdict(facts),
        changed=changed_sentence(facts, clock),
        figures=_figures(facts),
        leads=_leads(facts),
        sections=shown,
        kept=kept,
        around=around,
        refresh=refresh,
    )


class KeptTemplates(FileSystemBytecodeCache):
    """Keeps what templates were compiled to from one command to the next; a page is made without it as well."""

    def load_bytecode(self, bucket: Bucket) -> None:
        """Give a template of this very source the code that is kept, if any that can be read."""
        try:
            super().load_bytecode(bucket)
        except (OSError, EOFError, ValueError, UnpicklingError):
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep what a template was compiled to, where there is room."""
        with suppress(OSError):
            super().dump_bytecode(bucket)


def environment() -> Environment:
    """Give what reads the templates: every value is escaped, and an undefined one is an error."""
    folder = None
    with suppress(CodeFolderError):
        folder = lasting_folder("templates")
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=None if folder is None else KeptTemplates(str(folder)),
    )


def _leads(facts: ReportFacts) -> tuple[tuple[str, str], ...]:
    """Give what else there is of an interval: Airflow's run that made it, Great Expectations' own pages."""
    if not facts.of_interval:
        return ()
    runs = dict.fromkeys(each.asked_by for each in facts.commits if each.asked_by and each.state == "published")
    words_of = "Airflow's run" if len(runs) == 1 else "Airflow's run {}"
    newest = facts.data_docs[-1:]
    return (
        *((words_of.format(place), address) for place, address in enumerate(runs, 1)),
        *(("Data Docs", each.link) for each in newest),
    )


def _figures(facts: ReportFacts) -> tuple[Figure, ...]:
    figures = [Figure(value=words.count(source.rows), label=f"{source.name} landed") for source in facts.sources]
    if facts.streams:
        last = facts.stream(facts.picture.stream) if facts.picture else facts.streams[-1]
        told = [(last.counts[kind], f"{name} in {last.name}") for kind, name in _COUNTED]
        figures += [Figure(value=words.count(rows), label=label) for rows, label in told if rows]
        label = f"{facts.aside_for}, set aside" if facts.set_aside_once else f"times {facts.aside_for}, set aside"
        figures.append(Figure(value=words.count(facts.set_aside), label=label))
        dropped = [
            (rows_told(facts.late_and_dropped), "late, dropped"),
            (rows_told(facts.otherwise_dropped), "dropped on the way"),
        ]
        figures += [Figure(value=words.count(rows), label=label) for rows, label in dropped if rows]
    if facts.ledger is not None and facts.streams:
        figures.append(Figure(value=words.count(facts.ledger.num_rows), label="rows in the ledger", section="ledger"))
    if facts.commits:
        published = sum(commit.state == "published" for commit in facts.commits)
        legs = f" in {len(facts.legs)} legs" if facts.legs else ""
        figures.append(Figure(value=words.count(published), label=f"commits published{legs}"))
    return tuple(figures)


_COUNTED = (("timer", "timers"), ("cti", "CTIs"))
