"""A flow's checks of other packages than Great Expectations: looked up when a job starts, and not while a day waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.errors import PulselineError
from pipelines.flows.offered import is_other
from pipelines.jobs.environment.errors import WrongUse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipelines.flows.check import Check
    from pipelines.flows.model import Flow


def require_others(flow: Flow) -> None:
    """See that all checks of other packages can be asked by whoever judges, before anything is begun.

    Raises:
        WrongUse: a package is not installed, has no such expectation, or one that takes other arguments or cannot be
            asked by both judges.
    """
    for problem in unasked_of(flow, installed=False):
        raise WrongUse(problem)


def missing_of(flow: Flow) -> list[str]:
    """Say which packages of checks are not installed, where nothing is judged.

    Raises:
        WrongUse: a package is there, and its expectation cannot be asked as the flow says it.
    """
    for problem in unasked_of(flow, installed=True):
        raise WrongUse(problem)
    return list(unasked_of(flow, installed=False))


def unasked_of(flow: Flow, *, installed: bool) -> Iterator[str]:
    """Say where the flow has checks of other packages that cannot be asked, and why.

    Args:
        flow: validated.
        installed: leave out those whose package is not there.
    """
    others = [(table, each) for table, checks in flow.expect.items() for each in checks if is_other(each.name)]
    for table, check in others:
        problem = _problem(check)
        if problem is not None and not (installed and isinstance(problem, ImportError)):
            yield f"{flow.where(table)}: `{table}` cannot be checked: {problem}"


def _problem(check: Check) -> PulselineError | None:
    # Great Expectations take seconds to load, and most flows name nothing but theirs.
    from expectations.others import OtherCheckError, look_up

    try:
        look_up(check)
    except PulselineError as problem:
        return problem
    except SystemExit as problem:
        # Its code would say that the command did well.
        came = f"asking what its class takes raised SystemExit ({problem.code})"
        return OtherCheckError(check.name, came, "a class that ends no process")
    return None
