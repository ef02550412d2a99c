"""The judge: asks of the rows of a span whether the laws hold, by Great Expectations.

It reads tables and nothing that an operator remembers of them: the timer and the CTI that bind the first rows of a span
come from rows of earlier commits. Great Expectations is loaded when the first span is judged.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from expectations.account import account_marks, accounts
from expectations.judgement import Judgement
from expectations.laws import ACCOUNT_HOLDS, EVENTS, account_laws, laws_of
from expectations.reckoned import reckoned_judgements
from expectations.views import STREAM

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from expectations.checkpoints import Checkpoints
    from expectations.judgement import Keep
    from expectations.laws import Law
    from expectations.reckoned import Reckoned
    from expectations.report.facts import Account
    from expectations.views import Counts, View, Views
    from pipelines.flows.model import Flow


def judge(  # noqa: PLR0913 - what is judged, and where it is told
    flow: Flow,
    views: Views,
    span: tuple[int, int],
    docs: Path | None = None,
    name: str = "",
    reckoned: Sequence[Reckoned] = (),
    *,
    docs_if_held: bool = True,
    keep: Keep | None = None,
) -> tuple[Judgement, ...]:
    """Judge the rows of a span.

    Args:
        flow: the model that the rows were made by.
        views: the rows, on Spark or in this process.
        span: start and end, in ticks; names the run where there is no `name`.
        docs: folder that takes the Data Docs, replaced as a whole; None writes none.
        name: of what is judged, such as `commit 5`.
        reckoned: what others found of the same rows, told with the rest.
        docs_if_held: whether Data Docs are of use where everything holds.
        keep: is given all rows that break an expectation on rows, of which the outcome has the first.

    Returns:
        One outcome an expectation, in the order of the flow's tables.
    """
    from expectations.checkpoints import Checkpoints

    checkpoints = Checkpoints(name or f"{span[0]} to {span[1]}", docs)
    counts = views.count()
    found = _accounts(flow, accounts(flow, views, counts), checkpoints)
    for table, view in views.tables.items():
        found += _table(flow, table, view, counts, checkpoints, keep)
    found += _own(flow, views, counts, checkpoints, keep)
    found += reckoned_judgements(flow, reckoned, checkpoints)
    if docs_if_held or not all(each.held for each in found):
        checkpoints.publish()
    else:
        checkpoints.withdraw()
    place = {table: number for number, table in enumerate((*flow.sources, *flow.tables()))}
    return tuple(sorted(found, key=lambda each: place.get(each.table, len(place))))


def judge_reckoned(flow: Flow, reckoned: Sequence[Reckoned], docs: Path | None, name: str) -> tuple[Judgement, ...]:
    """Judge what others found where the rows themselves cannot be read.

    Args:
        flow: the model that the rows were made by.
        reckoned: what was found.
        docs: folder that takes the Data Docs, replaced as a whole; None writes none.
        name: of what is judged, such as `commit 5`.

    Returns:
        One outcome each.
    """
    from expectations.checkpoints import Checkpoints

    checkpoints = Checkpoints(name, docs)
    found = reckoned_judgements(flow, reckoned, checkpoints)
    checkpoints.publish()
    return tuple(found)


def _own(flow: Flow, views: Views, counts: Counts, checkpoints: Checkpoints, keep: Keep | None) -> list[Judgement]:
    if not flow.expect:
        return []
    from expectations.own_checks import own_judgements

    every = {**views.landed, **views.tables}
    known = {table: sum(counts[table, STREAM, kind] for kind in EVENTS) for table in views.tables}
    return [
        each
        for table in flow.expect
        for each in own_judgements(
            flow, table, every[table], checkpoints, keep, partial(views.intervals, table), known.get(table)
        )
    ]


def _accounts(flow: Flow, drawn: tuple[Account, ...], checkpoints: Checkpoints) -> list[Judgement]:
    from expectations.suites import account_suite

    broken = checkpoints.run(account_suite(flow), account_marks(flow, drawn)) if drawn else {}
    return [_account(law, each, broken) for each in drawn for law in account_laws(flow, each.stream)]


def _account(law: Law, drawn: Account, broken: Any) -> Judgement:  # noqa: ANN401 - counts by law and table
    figures = {name: getattr(drawn, name) for name in ("rows_in", "main", "side", "dropped", "held", "missing")}
    held, wrong = not broken[law.name, law.table], abs(drawn.missing) if law.name == ACCOUNT_HOLDS else drawn.held
    return _outcome(law, drawn.rows_in, 0 if held else wrong, () if held else (figures,))


def _outcome(law: Law, looked_at: int, unexpected: int, rows: tuple[dict[str, Any], ...]) -> Judgement:
    return Judgement(
        expectation=law.name,
        table=law.table,
        severity=law.severity,
        sentence=law.sentence,
        remedy=law.remedy,
        held=unexpected == 0,
        looked_at=looked_at,
        unexpected=unexpected,
        rows=rows,
    )


def _table(  # noqa: PLR0913 - which rows, and where what is found goes
    flow: Flow, table: str, view: View, counts: Counts, checkpoints: Checkpoints, keep: Keep | None
) -> list[Judgement]:
    from expectations.suites import suite_of

    laws = laws_of(flow, table)
    if not laws:
        return []
    broken = checkpoints.run(suite_of(f"{flow.name}.{table}", laws), view.marks(laws))
    return [_judged(flow, law, view, counts, broken[law.name, law.table], keep) for law in laws]


def _judged(  # noqa: PLR0913 - as above
    flow: Flow, law: Law, view: View, counts: Counts, unexpected: int, keep: Keep | None
) -> Judgement:
    from expectations.offenders import every_offender, offenders

    looked_at = sum(counts[law.table, "stream", kind] for kind in law.governed)
    key = flow.key_of(law.table)
    rows = offenders(law, view, key) if unexpected else ()
    if unexpected and keep is not None:
        keep(law.table, law.name, every_offender(law, view, key))
    return _outcome(law, looked_at, unexpected, rows)
