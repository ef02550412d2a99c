"""`pulseline expect`: look at what is published of a stream, or landed of a source, and propose checks to paste."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from expectations.laws import EVENTS
from pipelines.engine.commits.readers import read_stream
from pipelines.flows.checks import KEY, SIDES
from pipelines.flows.model import is_side, main_of
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.facts.chosen import LandedRows
from pipelines.jobs.facts.profile import proposals, unbounded
from pipelines.jobs.facts.views import JudgedCommits
from pipelines.jobs.runs.known import SUFFIXES, offered, open_run
from pipelines.operators.plain_words import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipelines.jobs.facts.profile import Proposed
    from pipelines.jobs.runs.known import KnownRun

FEW_INTERVALS = 7
"""Below so many the bounds are those of a few days, and the proposal says so."""


def propose(called: str, stream: str, run: str, as_json: bool, echo: Callable[[str], None]) -> None:  # noqa: FBT001 - the command's flag
    """Print checks that all published rows of a stream keep, or all that landed of a source for them.

    Args:
        called: name of the flow, or the path of its file.
        stream: name of a source, a stream, or one that is set aside.
        run: name of the run.
        as_json: one JSON object a check instead of YAML.
        echo: where lines go.

    Raises:
        WrongUse: there is no such flow, run or stream, or nothing of it is published.
    """
    known = open_run(called, run)
    takes = [*known.sources, *known.tables]
    if stream not in takes:
        raise WrongUse(f"{known.name} has no source or stream `{stream}`{offered(stream, takes)}")
    if stream not in known.sources:
        known.require_own_rows(stream)
    part = known if stream in known.sources else known.of(stream)
    rows = _landed(known, stream) if stream in known.sources else read_stream(part.root, stream, state=part.state)
    intervals = sum(entry.span.start < entry.span.end for entry in part.state.published)
    found = list(proposals(rows, intervals))
    if not found:
        raise WrongUse(_why_nothing(known, part, stream, rows.num_rows))
    for line in _json_lines(found) if as_json else _yaml(known, stream, rows, found, intervals):
        echo(line)


def _landed(known: KnownRun, source: str) -> pa.Table:
    """Read what landed of a source for each published commit."""
    tables = [
        rows.append_column("commit", pa.repeat(entry.commit, rows.num_rows))
        for entry in known.state.published
        if (rows := LandedRows(known.root, source, JudgedCommits(entries=(entry,), earlier=())).scan()).num_rows
    ]
    nothing = pa.table({"kind": pa.array([], pa.string()), "commit": pa.array([], pa.int64())})
    return pa.concat_tables(tables, promote_options="permissive") if tables else nothing


def _why_nothing(known: KnownRun, part: KnownRun, stream: str, rows: int) -> str:
    if rows:
        return f"no event of {stream} is published, only timers and CTIs: there is nothing to propose"
    if part.state.published:
        return f"no row of {stream} is published: there is nothing to propose"
    if known.state.published:
        return f"{part.root.name}, the leg of {stream}, has published nothing yet: there is nothing to propose"
    return known.nothing_yet()


def _json_lines(found: list[Proposed]) -> list[str]:
    return [json.dumps({"check": each.name, "arguments": each.arguments, "seen": each.seen}) for each in found]


def _yaml(known: KnownRun, stream: str, rows: pa.Table, found: list[Proposed], intervals: int) -> list[str]:
    """Spell the checks as they stand under a stream."""
    few = "; of so few days the bounds are a first guess" if intervals < FEW_INTERVALS else ""
    events = pc.sum(pc.is_in(rows["kind"], pa.array(EVENTS))).as_py()
    under, key = main_of(stream), KEY
    lines = [f"# From {counted(events, 'event')} of {stream} in {counted(intervals, 'interval')}{few}."]
    deep = ""
    if is_side(stream):
        lines += [f"{SIDES}:", f"  {stream.removeprefix(f'{under}.')}:"]
        key, deep = SIDES, "    "
    lines.append(f"{deep}{KEY}:")
    for each in found:
        told = ", ".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in each.arguments.items())
        lines += [f"{deep}  - {each.name}: {{{told}}}  # {each.seen}", f"{deep}    severity: warning"]
    if left := ", ".join(f"{name} ({why})" for name, why in unbounded(rows)):
        lines.append(f"# No bounds for {left}.")
    folded = (
        "; it stands in braces there: give each of its settings a line first" if _is_in_braces(known, under) else ""
    )
    where = f"Paste it under `{under}:` in the flow's file (its items, where `{key}:` stands there already{folded})"
    return [*(f"    {line}" for line in lines), f"# {where}, then: {known.command('check')}"]


def _is_in_braces(known: KnownRun, stream: str) -> bool:
    """Say whether the flow's file has a stream in one line, under which nothing can be pasted."""
    file = Path(known.called)
    if file.suffix not in SUFFIXES or not file.is_file():
        return False
    return (
        re.search(rf"^\s*[\"']?{re.escape(stream)}[\"']?\s*:\s*\{{", file.read_text("utf-8"), re.MULTILINE) is not None
    )
