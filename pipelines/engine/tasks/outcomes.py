"""What a commit says of itself when its tasks are done: counts, hashes, and the rows that the landing set aside."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pipelines.engine.columnar.columns import LEDGER_SCHEMA
from pipelines.engine.files.writing import TableFile
from pipelines.engine.tasks.task import CommitShare, ledger_counts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pipelines.engine.landing.sequence import LandedSequence
    from pipelines.engine.tasks.stages import Outcome


def add_landing_ledger(root: Path, landed: Sequence[tuple[int, LandedSequence]], outcome: Outcome) -> None:
    """Write the ledger rows that the landing made of sequences into the ledger of the commits that ran over them.

    Args:
        root: of the run.
        landed: commit and sequence; the rows carry the commit's number.
        outcome: of the commits' tasks; takes the file, the counts and the content hashes.
    """
    if not landed:
        return
    file = TableFile(root, "ledger", f"{_stem(landed[0][0], landed[-1][0])}-landing")
    for commit, sequence in landed:
        rows = sequence.ledger_rows()
        if rows.num_rows:
            numbered = rows.add_column(0, "commit", pa.array(np.full(rows.num_rows, commit)))
            file.write(numbered.select(LEDGER_SCHEMA.names).cast(LEDGER_SCHEMA))
            share = CommitShare({"ledger": ledger_counts(rows)}, {"ledger": file.cut()})
            outcome.shares[commit] = outcome.shares[commit] + share
    made = file.close()
    if made is not None:
        outcome.files["ledger"].append(made)


def _stem(first: int, last: int) -> str:
    return f"c{first:08d}" if first == last else f"c{first:08d}-{last:08d}"


def commit_counts(sequences: Iterable[LandedSequence], share: CommitShare) -> dict[str, dict[str, int]]:
    """Give the counts of a commit: by stream and kind, by ledger line, and the rows landed of each source.

    Args:
        sequences: what the commit ran over.
        share: what it has of the work of the tasks.
    """
    landed: Counter[str] = Counter()
    for sequence in sequences:
        landed.update({name: source.rows for name, source in sequence.sources.items()})
    return {name: dict(count) for name, count in share.counts.items()} | {"landed": dict(landed)}


def commit_hashes(share: CommitShare) -> dict[str, str]:
    """Give the content hash of each stream and the ledger as text."""
    return {name: content.text for name, content in share.hashes.items()}
