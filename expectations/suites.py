"""The expectations as Great Expectations has them: a class each, and the suites of a flow.

A law is a boolean column that a query has made (`laws.marks`); an expectation counts the rows in which it is false,
with pandas or on Spark, where all of a table are counted in one job.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from string import Template
from typing import TYPE_CHECKING, Any, ClassVar

import great_expectations as gx
from great_expectations.compatibility.pydantic import Field
from great_expectations.core.result_format import ResultFormat
from great_expectations.execution_engine.pandas_execution_engine import PandasExecutionEngine
from great_expectations.execution_engine.sparkdf_execution_engine import SparkDFExecutionEngine
from great_expectations.expectations.expectation import ColumnAggregateExpectation, Expectation
from great_expectations.expectations.metadata_types import FailureSeverity
from great_expectations.expectations.metrics.column_aggregate_metric_provider import (
    ColumnAggregateMetricProvider,
    column_aggregate_partial,
    column_aggregate_value,
)
from great_expectations.expectations.row_conditions import PassThroughCondition
from great_expectations.render.renderer.inline_renderer import InlineRenderer

from expectations.account import accounted, column_of
from expectations.laws import (
    ACCOUNT_HOLDS,
    AS_PUBLISHED,
    AS_RECOMPUTED,
    BLOCKING,
    FEW_HELD,
    OF_INTERVALS,
    TOLD_AT_LANDING,
    Law,
    account_laws,
    laws_of,
    remedy_of,
)
from expectations.others import kind_of_check

# Where a page cannot be written it tells so with the stack of each; whoever asked for the page says it once.
logging.getLogger("great_expectations").addHandler(logging.NullHandler())

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd
    from great_expectations.execution_engine.execution_engine import ExecutionEngine
    from pyspark.sql import Column

    from pipelines.flows.check import Check
    from pipelines.flows.model import Flow

LONGEST = 150
"""Characters of a suite's name that say what it is of: a disk takes files of 255 bytes."""
BROKEN = "column.broken_law"


class RowsThatBreakALaw(ColumnAggregateMetricProvider):
    """How many values of a boolean column are false."""

    metric_name = BROKEN

    @column_aggregate_value(engine=PandasExecutionEngine, filter_column_isnull=False)
    def _pandas(cls, column: pd.Series, **_: Any) -> int:  # noqa: N805, ANN401 - as GX calls it
        return int((~column).sum())

    @column_aggregate_partial(engine=SparkDFExecutionEngine, filter_column_isnull=False)
    def _spark(cls, column: Column, **_: Any) -> Column:  # noqa: N805, ANN401 - as GX calls it
        from pyspark.sql import functions as sql

        return sql.count_if(~column)


class LawExpectation(ColumnAggregateExpectation):
    """A law over the rows of a span, with the timers and CTIs that still bind from before it."""

    metric_dependencies: ClassVar[tuple[str, ...]] = (BROKEN,)
    scope: list[str] = Field(default_factory=list)
    """Columns within which rows bind each other."""

    def _validate(
        self,
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any] | None = None,  # noqa: ARG002 - the overridden signature
        execution_engine: ExecutionEngine[Any] | None = None,  # noqa: ARG002 - the overridden signature
    ) -> dict[str, Any]:
        """Hold the law when no row breaks it."""
        return {"success": metrics[BROKEN] == 0, "result": {"observed_value": metrics[BROKEN]}}


class ExpectTimersToIncrease(LawExpectation):
    """Timer timestamps strictly increase in stream order, within `scope`."""


class ExpectTimersOnMultiples(LawExpectation):
    """Timer timestamps are multiples of the interval."""


class ExpectLifetimesToLast(LawExpectation):
    """No event has an empty lifetime."""


class ExpectNoEventBehindCti(LawExpectation):
    """No event starts (an end edge: ends) before a CTI sent before it, within `scope`."""


class ExpectCtisToIncrease(LawExpectation):
    """CTIs strictly increase in stream order, within `scope`."""


class ExpectRowsToLeavePromised(LawExpectation):
    """Every result starts before a CTI sent by the instant in which it left, within `scope`."""


class ExpectAccountToHold(LawExpectation):
    """Every row that came into an operator left, was set aside, is in the ledger as dropped, or is held."""


class ExpectFewRowsHeld(LawExpectation):
    """Of the rows that came into a merge, no large share was added to those that it holds."""


class ExpectToBeAsPublished(LawExpectation):
    """What lies on disk has the content that its commits, or its manifests, say."""


class ExpectToBeRecomputedAlike(LawExpectation):
    """An interval that is computed again gives what its commit said."""


class ExpectLandingsToBeTold(LawExpectation):
    """What a landing did not let in stands in the ledger."""


class ExpectIntervalsToBeAsUsual(LawExpectation):
    """No interval is missing, empty or far from what is usual, and no key fell silent."""


class ExpectValuesInStreamOrder(LawExpectation):
    """Values increase, or decrease, in stream order, within `scope`."""


CLASSES: dict[str, type[LawExpectation]] = {
    "timers_increase": ExpectTimersToIncrease,
    "timers_on_multiples": ExpectTimersOnMultiples,
    "lifetimes_last": ExpectLifetimesToLast,
    "no_event_behind_cti": ExpectNoEventBehindCti,
    "ctis_increase": ExpectCtisToIncrease,
    "rows_leave_promised": ExpectRowsToLeavePromised,
    ACCOUNT_HOLDS: ExpectAccountToHold,
    FEW_HELD: ExpectFewRowsHeld,
    AS_PUBLISHED: ExpectToBeAsPublished,
    AS_RECOMPUTED: ExpectToBeRecomputedAlike,
    TOLD_AT_LANDING: ExpectLandingsToBeTold,
    **dict.fromkeys(sorted(OF_INTERVALS), ExpectIntervalsToBeAsUsual),
}


def expectation_of(law: Law) -> LawExpectation:
    """Make the expectation of a law; sentence and remedy stand on the instance, or GX would not store them."""
    return CLASSES.get(law.name, ExpectValuesInStreamOrder)(
        column=law.name if law.of_rows else column_of(law),
        scope=list(law.scope),
        description=law.sentence,
        severity=FailureSeverity.CRITICAL if law.severity == BLOCKING else FailureSeverity.WARNING,
        notes=law.remedy,
        meta={"law": law.name, "table": law.table, "remedy": law.remedy, "broken": law.broken},
        result_format=ResultFormat.BASIC,
    )


def suite_for(flow: Flow, stream: str) -> gx.ExpectationSuite:
    """Make the suite of a stream or side stream: what must hold of its rows."""
    return suite_of(f"{flow.name}.{stream}", laws_of(flow, stream))


def account_suite(flow: Flow) -> gx.ExpectationSuite:
    """Make the suite of the accounts of a flow's operators."""
    return suite_of(f"{flow.name}-account", tuple(law for name in accounted(flow) for law in account_laws(flow, name)))


def suite_of(name: str, laws: tuple[Law, ...]) -> gx.ExpectationSuite:
    """Make a suite of laws."""
    name = _as_file(name)
    return gx.ExpectationSuite(name=name, expectations=[expectation_of(law) for law in laws])


def _as_file(name: str) -> str:
    """Keep a suite's name short enough for the files of Data Docs that are called by it."""
    return name if len(name) <= LONGEST else f"{name[:LONGEST]}-{sha256(name.encode()).hexdigest()[:8]}"


@dataclass(frozen=True)
class AskedCheck:
    """One of a team's own checks, as it is asked of a frame."""

    check: Check
    arguments: Mapping[str, Any] = field(hash=False)
    """As its columns have values."""
    where: str = ""
    """The rows of the frame that it is about, as Spark has it; empty for all."""


def own_suite(name: str, table: str, checks: Sequence[AskedCheck]) -> gx.ExpectationSuite:
    """Make a suite of a team's own checks."""
    return gx.ExpectationSuite(name=_as_file(name), expectations=[_own(table, asked) for asked in checks])


def _own(table: str, asked: AskedCheck) -> Expectation:
    check = asked.check
    severity = FailureSeverity.CRITICAL if check.severity == BLOCKING else FailureSeverity.WARNING
    meta = {"check": check.label, "table": table, "where": check.where, "owner": check.owner}
    some: dict[str, Any] = (
        {"row_condition": PassThroughCondition(pass_through_filter=asked.where)} if asked.where else {}
    )
    made = kind_of_check(check.name)(**asked.arguments, **some, severity=severity, notes=remedy_of(check), meta=meta)
    made.description = sentence_of(replace(asked, where=""))
    return made


@lru_cache(maxsize=1_000)
def sentence_of(asked: AskedCheck) -> str:
    """Say in a sentence what an expectation wants, as Great Expectations' own pages do; they take 10 ms for one."""
    # That `or_equal` is said at all is true for their words.
    said_so = {name: value for name, value in asked.arguments.items() if name != "or_equal" or value}
    made = kind_of_check(asked.check.name)(**said_so)
    if made.description:
        # A class of a team's own may say it itself; marks of Markdown are for other pages.
        return " ".join(made.description.replace("**", "").split())
    rendered = InlineRenderer(render_object=made.configuration).get_rendered_content()
    told: Any = rendered[0].to_json_dict() if rendered else {}
    value = told.get("value") or {}
    params = {name: _worded(each.get("value")) for name, each in (value.get("params") or {}).items()}
    said = Template(value.get("template") or "").safe_substitute(params)
    kind = made.expectation_type
    if not said or said.startswith(f"{kind}("):
        # Great Expectations have no words for it, and spell it as Python.
        said = f"{kind}: " + ", ".join(f"{name} {_worded(each)}" for name, each in asked.arguments.items())
    return " ".join(said.split())


def _worded(value: Any) -> str:  # noqa: ANN401 - an argument
    """Say an argument in words: lists without brackets, pairs with round ones."""
    if isinstance(value, list | tuple):
        return ", ".join(f"({_worded(each)})" if isinstance(each, list | tuple) else str(each) for each in value)
    return str(value)
