"""What the pages show of the cases: the parts that end at `<!-- end -->`, written by the command.

- `<!-- made: flow CASE -->`: the flow's file
- `<!-- made: input CASE FILE -->`: a file of a feed
- `<!-- made: rows CASE STREAM -->`: what the stream has, in its order
- `<!-- made: held CASE STREAM -->`: the rows that an operator holds at the last reading
- `<!-- made: windows CASE STREAM -->`: what windows that have not left know at the last reading
- `<!-- made: ledger CASE -->`: what the ledger says
- `<!-- made: command pulseline … -->`: what a command prints of the demo's week

Columns may be named behind those of rows; without any, those are shown that say most of a row.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from docs.diagrams.cases import PAGES, spoken
from docs.diagrams.week import answers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from docs.diagrams.running import Ran, Row

MADE = re.compile(r"(<!-- made: ([^>]+) -->\n).*?(<!-- end -->\n)", re.DOTALL)
INSTANTS = frozenset(
    {
        *("arrival", "event_time", "event_end", "due_at", "landed_at", "window_start"),
        *("new_time", "new_end", "cti", "cti_arrival"),
    }
)
COMMAND = "command pulseline "
NAMED = ("stream", "reason", "action", "arrival", "event_time", "raw")
"""The columns of the ledger that are shown."""


def pages() -> tuple[Path, ...]:
    """Give the pages of the operators, that of the ledger, and that of execution order."""
    return (*sorted(PAGES.glob("*.md")), PAGES.parent / "ledger.md", PAGES.parent / "explanation" / "order.md")


def commands() -> tuple[str, ...]:
    """Give the commands whose answers the pages show, without the program's name."""
    made = [part for page in pages() for _, part, _ in MADE.findall(page.read_text(encoding="utf-8"))]
    return tuple(dict.fromkeys(part.removeprefix(COMMAND) for part in made if part.startswith(COMMAND)))


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
    if what == "command":
        return _fenced(f"$ {' '.join(words[1:])}\n{answers(commands())[' '.join(words[2:])]}")
    one = ran[case]
    if what == "flow":
        return _fenced(one.case.flow, "yaml")
    if what == "input":
        return _fenced(one.case.files[name[0]], "csv")
    if what == "ledger":
        return _fenced(_table(one, one.ledger, name or [*NAMED[:3], one.key, *NAMED[3:]]))
    stream, *columns = name
    rows = {"rows": one.streams, "held": one.held, "windows": one.windows}[what][stream]
    return _fenced(_table(one, rows, columns or ["arrival", "kind", one.key, "event_time", "due_at", "landed_at"]))


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
