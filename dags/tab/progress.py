"""What the tab shows of a run that has no page yet: how far its tasks are, what each said last, why it was refused."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dags.turns import ASKING

if TYPE_CHECKING:
    from collections.abc import Sequence

OVER = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})
BAD = frozenset({"failed", "upstream_failed"})
SECONDS = 3
"""Between two looks of a browser at a run that is under way."""
WORDS = {
    None: "not yet",
    "upstream_failed": "not begun, for what comes before failed",
    "up_for_retry": "is tried again soon",
    "up_for_reschedule": "waits for its turn",
    ASKING: "waits for somebody's answer, under Required Actions",
}
STYLE = """:root { color-scheme: light dark; --ink: #1d2329; --soft: #5b6570; --rule: #e3e1dc; --bad: #b3261e;
--paper: #fbfaf8 } @media (prefers-color-scheme: dark) { :root { --ink: #e6e9ec; --soft: #a3adb7; --rule: #2e353c;
--bad: #ff8a7d; --paper: #14181c } } body { font: 16px/1.6 system-ui, sans-serif; max-width: 60em; margin: 3em auto;
padding: 0 1.5em; color: var(--ink); background: var(--paper) } table { border-collapse: collapse; width: 100% }
td, th { text-align: left; vertical-align: top; padding: .4em 1em .4em 0; border-bottom: 1px solid var(--rule) }
td { overflow-wrap: anywhere } th { white-space: nowrap } .bad { color: var(--bad) } .soft { color: var(--soft) }"""


@dataclass(frozen=True, kw_only=True)
class TaskStep:
    """A task of a run."""

    task: str
    state: str | None
    said: str | None
    """Its last line, where it said one."""


def progress_page(steps: Sequence[TaskStep], asked: dict[str, object]) -> str:
    """Write the page of a run that has none yet.

    Args:
        steps: its tasks, in their order.
        asked: what the task `request` found out; empty where it has not.
    """
    note = (
        "" if is_over(steps) else f'<p class="soft">Made anew every {SECONDS} s. <a href="?still">Let it stand</a></p>'
    )
    rows = "".join(_row(step) for step in steps)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
        f"<title>Pulseline</title><style>{STYLE}</style><h1>{html.escape(headline(steps))}</h1>"
        f'<p class="soft">{html.escape(_what(asked))}</p><table>{rows}</table>{note}</html>'
    )


def is_over(steps: Sequence[TaskStep]) -> bool:
    """Say whether nothing more happens in a run."""
    return all(step.state in OVER for step in steps)


def headline(steps: Sequence[TaskStep]) -> str:
    """Say in one line where a run stands.

    >>> headline([TaskStep(task="request", state="failed", said="unknown key `strat` in the form")])
    'request failed: unknown key `strat` in the form'
    >>> headline([TaskStep(task="run", state="running", said=None)])
    'run is under way'
    >>> headline([TaskStep(task="check", state="failed", said="no"), TaskStep(task="approve", state=ASKING, said=None)])
    "approve waits for somebody's answer, under Required Actions; check failed: no"
    """
    failed = next((step for step in steps if step.state == "failed"), None)
    if failed is not None:
        asking = "".join(f"{step.task} {_word(step)}; " for step in steps if step.state == ASKING)
        return f"{asking}{failed.task} failed: {failed.said or 'its log says why'}"
    running = next((step for step in steps if step.state not in OVER), None)
    if running is None:
        return "Nothing was left to do, so there is no page of this run."
    return f"{running.task} is under way" if running.state == "running" else f"{running.task}: {_word(running)}"


def _row(step: TaskStep) -> str:
    bad = ' class="bad"' if step.state in BAD else ""
    told = (html.escape(text) for text in (step.task, _word(step), step.said or ""))
    name, state, said = told
    return f"<tr><th>{name}</th><td{bad}>{state}</td><td>{said}</td></tr>"


def _word(step: TaskStep) -> str:
    return WORDS.get(step.state, str(step.state).replace("_", " "))


def _what(asked: dict[str, object]) -> str:
    if "start" not in asked:
        return "What is asked for is being checked, or was refused." if not asked else f"run {asked.get('run', '')}"
    return f"{asked['start']} up to {asked.get('end')}, {asked.get('intervals', 1)} intervals, run {asked.get('run')}"
