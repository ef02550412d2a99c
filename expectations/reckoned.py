"""What is reckoned outside of the rows of one table, such as hashes and counts: judged, told and kept as all else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from expectations.account import column_of
from expectations.judgement import Judgement
from expectations.on_duckdb import as_pandas

if TYPE_CHECKING:
    from collections.abc import Sequence

    from expectations.checkpoints import Checkpoints
    from expectations.laws import Law
    from pipelines.flows.model import Flow


@dataclass(frozen=True, kw_only=True)
class Reckoned:
    """What came of a law of which somebody else did the sums."""

    law: Law
    looked_at: int
    """Rows that it is about."""
    unexpected: int
    """Rows, or other things that the law counts, which break it."""
    rows: tuple[dict[str, Any], ...] = ()
    """What breaks it, as plain values."""


def reckoned_judgements(flow: Flow, found: Sequence[Reckoned], checkpoints: Checkpoints) -> list[Judgement]:
    """Judge what was reckoned, by Great Expectations: a row, a boolean column a law."""
    from expectations.suites import suite_of

    if not found:
        return []
    marks = pa.table({column_of(each.law): [not each.unexpected] for each in found})
    broken = checkpoints.run(suite_of(f"{flow.name}-kept", tuple(each.law for each in found)), as_pandas(marks))
    return [_outcome(each, held=not broken[each.law.name, each.law.table]) for each in found]


def _outcome(found: Reckoned, *, held: bool) -> Judgement:
    law = found.law
    return Judgement(
        expectation=law.name,
        table=law.table,
        severity=law.severity,
        sentence=law.sentence,
        remedy=law.remedy,
        held=held,
        looked_at=found.looked_at,
        unexpected=0 if held else found.unexpected,
        rows=() if held else found.rows[:20],
    )
