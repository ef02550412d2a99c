"""What the pages show of the cases: the parts that end at `<!-- end -->`, written by the command.

- `<!-- made: flow CASE -->`: the flow's file
- `<!-- made: input CASE FILE -->`: a file of a feed
- `<!-- made: rows CASE STREAM -->`: what the stream has, in its order
- `<!-- made: held CASE STREAM -->`: what the merge holds at the last reading
- `<!-- made: ledger CASE -->`: what the ledger says
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from docs.diagrams.cases import PAGES, spoken

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from docs.diagrams.running import Ran, Row

MADE = re.compile(r"(<!-- made: ([^>]+) -->\n).*?(<!-- end -->\n)", re.DOTALL)
INSTANTS = ("arrival", "event_time", "due_at", "landed_at")
NAMED = ("stream", "reason", "action", "arrival", "event_time", "raw")
"""The columns of the ledger that are shown."""


def pages() -> tuple[Path, ...]:
    """Give the pages of the operators."""
    return tuple(sorted(PAGES.glob("*.md")))


def remade(text: str, ran: Mapping[str, Ran]) -> str:
    """Give a page with all its made parts written anew.

    Args:
        text: the page.
        ran: what came out of the cases, by name.

    Raises:
        KeyError: a part names a case, a stream or a file that is not there.
    """
    return MADE.sub(lambda found: found[1] + _part(found[2].split(), ran) + found[3], text)


def _part(words: Sequence[str], ran: Mapping[str, Ran]) -> str:
    what, case, *name = words
    one = ran[case]
    if what == "flow":
        return _fenced(one.case.flow, "yaml")
    if what == "input":
        return _fenced(one.case.files[name[0]], "csv")
    if what == "ledger":
        return _fenced(_table(one, one.ledger, [*NAMED[:3], one.key, *NAMED[3:]]))
    rows = {"rows": one.streams, "held": one.held}[what][name[0]]
    return _fenced(_table(one, rows, ["arrival", "kind", one.key, "event_time", "due_at", "landed_at"]))


def _fenced(text: str, language: str = "") -> str:
    return f"```{language}\n{text.rstrip()}\n```\n"


def _table(ran: Ran, rows: Sequence[Row], columns: Sequence[str]) -> str:
    """Set rows as a table, without the columns that are empty throughout."""
    texts = {name: [_text(ran, row, name) for row in rows] for name in columns}
    shown = {name: [name, *values] for name, values in texts.items() if any(values)}
    wide = {name: max(map(len, values)) for name, values in shown.items()}
    lines = zip(*([text.ljust(wide[name]) for text in values] for name, values in shown.items()), strict=True)
    return "\n".join("  ".join(line).rstrip() for line in lines)


def _text(ran: Ran, row: Row, name: str) -> str:
    value = row[name] if name in row else json.loads(row.get("row") or "{}").get(name)
    if name in INSTANTS:
        return spoken(value, ran.case.day)
    if isinstance(value, bytes):
        return value.decode()
    return "" if value is None else str(value)
