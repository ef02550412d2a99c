"""What the landing itself has to say in a commit: rows it could not land, and counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.engine.columns import LEDGER_SCHEMA
from pipelines.engine.tasks import ledger_counts
from pipelines.engine.writing import TableFile

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.engine.manifests import Sequence
    from pipelines.engine.stages import Outcome


def add_landing_ledger(root: Path, commit: int, sequence: Sequence, outcome: Outcome) -> None:
    """Write the ledger rows that the landing made of a sequence into the commit's ledger.

    Args:
        root: of the run.
        commit: the number that the rows carry.
        sequence: what was landed.
        outcome: of the commit's tasks; takes the file, the counts and the content hash.
    """
    rows = pq.read_table(sequence.ledger_path)
    numbered = rows.add_column(0, "commit", pa.array(np.full(rows.num_rows, commit)))
    file = TableFile(root, "ledger", f"c{commit:08d}-landing")
    file.write(numbered.select(LEDGER_SCHEMA.names).cast(LEDGER_SCHEMA))
    made = file.close()
    if made is not None:
        outcome.files["ledger"].append(made)
        outcome.counts["ledger"].update(ledger_counts(rows))
        outcome.hashes["ledger"] = outcome.hashes["ledger"] + file.content


def landed_counts(sequence: Sequence) -> dict[str, int]:
    """Count the rows of each source in a sequence."""
    return {name: source.rows for name, source in sequence.sources.items()}
