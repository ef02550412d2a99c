"""Whether all that a landing dropped or noted is in the ledger that readers see."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from expectations.laws import told_at_landing
from expectations.reckoned import Reckoned
from pipelines.engine.columnar.columns import LEDGER_SCHEMA
from pipelines.engine.commits.paths import landed_path, ledger_path
from pipelines.engine.commits.readers import rows_of
from pipelines.engine.landing.errors import RowsRemovedError
from pipelines.engine.landing.manifest import read_sequence

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipelines.engine.commits.entry import Entry
    from pipelines.engine.commits.history import LogState
    from pipelines.flows.model import Flow

Lines = Counter[tuple[int, str, str]]
"""Lines of landings, by commit, source and reason."""


def landings_told(flow: Flow, root: Path, entries: Sequence[Entry], state: LogState) -> tuple[Reckoned, ...]:
    """Hold the lines that landings wrote of rows they did not let in against the published ledger.

    Args:
        flow: the model.
        root: the run's folder.
        entries: the judged commits.
        state: the log.

    Returns:
        One outcome a source; a landing whose rows are no longer kept is not asked.
    """
    kept = {entry.commit: lines for entry in entries if (lines := _wrote(root, entry)) is not None}
    ledger = rows_of(root, ledger_path(root), list(kept), LEDGER_SCHEMA, state)
    lines = ledger.scan(["commit", "stream", "reason"], pc.field("operator") == "landing")
    seen = Lines((row["commit"], row["stream"], row["reason"]) for row in lines.to_pylist())
    wrote = Lines()
    for commit, found in kept.items():
        wrote.update({(commit, *what): rows for what, rows in found.items()})
    return tuple(_source(name, wrote, seen) for name in flow.sources)


def _wrote(root: Path, entry: Entry) -> Counter[tuple[str, str]] | None:
    """Count the lines that the landings of a commit wrote, by source and reason."""
    found: Counter[tuple[str, str]] = Counter()
    try:
        for number in entry.sequences:
            rows = read_sequence(landed_path(root), number).ledger_rows()
            found.update((row["stream"], row["reason"]) for row in rows.select(["stream", "reason"]).to_pylist())
    except RowsRemovedError:
        return None
    return found


def _source(name: str, wrote: Lines, seen: Lines) -> Reckoned:
    mine = sorted(what for what in wrote.keys() | seen.keys() if what[1] == name)
    odd = [what for what in mine if wrote[what] != seen[what]]
    rows = tuple(
        {"commit": commit, "reason": reason, "told_at_landing": wrote[what], "in_the_ledger": seen[what]}
        for what in odd
        for commit, _, reason in [what]
    )
    missing = sum(abs(wrote[what] - seen[what]) for what in odd)
    return Reckoned(
        law=told_at_landing(name), looked_at=sum(wrote[what] for what in mine), unexpected=missing, rows=rows
    )
