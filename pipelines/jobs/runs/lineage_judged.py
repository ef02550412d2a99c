"""What was judged, as OpenLineage has it: assertions of a dataset, and tests of a run, which need not be about one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openlineage.client.facet_v2 import data_quality_assertions_dataset, test_run

from expectations.laws import BLOCKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.flows.model import Flow
    from pipelines.jobs.runs.lineage_job import JudgedFinding


@dataclass(frozen=True)
class AskedTogether:
    """An expectation of a table, and what came of it; in several commits, if each was judged for itself."""

    found: Sequence[JudgedFinding]
    columns: Sequence[str]

    @property
    def table(self) -> str:
        """Name what it is about."""
        return self.found[0].table

    def assertion(self) -> data_quality_assertions_dataset.Assertion:
        """Give it as an assertion of the table."""
        column = self.columns[0] if len(self.columns) == 1 else None
        return data_quality_assertions_dataset.Assertion(
            self.found[0].expectation, self._held, column=column, **self._figures
        )

    def test(self) -> test_run.TestExecution:
        """Give it as a test of the run."""
        expectation = self.found[0].expectation
        status = "pass" if self._held else "fail"
        return test_run.TestExecution(f"{self.table}: {expectation}", status, type=expectation, **self._figures)

    @property
    def _held(self) -> bool:
        return all(each.held for each in self.found)

    @property
    def _figures(self) -> dict[str, Any]:
        rows, unexpected = (sum(each.looked_at for each in self.found), sum(each.unexpected for each in self.found))
        # A check of a column or table as a whole breaks without a row that breaks it.
        counts = {"expected": "0", "actual": str(unexpected)} if self._held or unexpected else {}
        return {
            "severity": "error" if self.found[0].severity == BLOCKING else "warn",
            "description": self.found[0].sentence,
            "params": {"rows": rows, "unexpected": unexpected},
            **counts,
        }


def asked_of(flow: Flow, found: Sequence[JudgedFinding]) -> list[AskedTogether]:
    """Put together what was found of one expectation of one table."""
    columns = {(table, check.label): check.columns for table, checks in flow.expect.items() for check in checks}
    together: dict[tuple[str, str, str], list[JudgedFinding]] = {}
    for each in found:
        together.setdefault((each.table, each.expectation, each.sentence), []).append(each)
    return [AskedTogether(own, columns.get((table, label), ())) for (table, label, _), own in together.items()]
