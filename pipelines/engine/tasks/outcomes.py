"""What a commit says of itself when its tasks are done: counts, hashes, and the rows that the landing set aside."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pipelines.engine.columnar.columns import LEDGER_SCHEMA
from pipelines.engine.files.writing import NO_ROWS, TableFile
from pipelines.engine.tasks.task import ledger_counts

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pipelines.engine.landing.sequence import LandedSequence
    from pipelines.engine.tasks.stages import Outcome


def add_landing_ledger(root: Path, commit: int, sequence: LandedSequence, outcome: Outcome) -> None:
    """Write the ledger rows that the landing made of a sequence into the commit's ledger.

    Args:
        root: of the run.
        commit: the number that the rows carry.
        sequence: what was landed.
        outcome: of the commit's tasks; takes the file, the counts and the content hash.
    """
    rows = sequence.ledger_rows()
    if rows.num_rows == 0:
        return
    numbered = rows.add_column(0, "commit", pa.array(np.full(rows.num_rows, commit)))
    file = TableFile(root, "ledger", f"c{commit:08d}-landing")
    file.write(numbered.select(LEDGER_SCHEMA.names).cast(LEDGER_SCHEMA))
    made = file.close()
    if made is not None:
        outcome.files["ledger"].append(made)
        outcome.counts["ledger"].update(ledger_counts(rows))
        outcome.hashes["ledger"] = outcome.hashes.get("ledger", NO_ROWS) + file.content


def commit_counts(sequences: Iterable[LandedSequence], outcome: Outcome) -> dict[str, dict[str, int]]:
    """Give the counts of a commit: by stream and kind, by ledger line, and the rows landed of each source.

    Args:
        sequences: what the commit ran over.
        outcome: of its tasks.
    """
    landed: Counter[str] = Counter()
    for sequence in sequences:
        landed.update({name: source.rows for name, source in sequence.sources.items()})
    return {name: dict(count) for name, count in outcome.counts.items()} | {"landed": dict(landed)}


def commit_hashes(outcome: Outcome) -> dict[str, str]:
    """Give the content hash of each stream and the ledger as text."""
    return {name: content.text for name, content in outcome.hashes.items()}
