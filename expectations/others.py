"""Expectations of other packages than Great Expectations: looked up when a job starts, each by the name of its class.

A flow names the class as Python imports it, and is read where the package may not be there. What is seen here: that it
is imported, is an expectation, takes what the flow says, and can be asked by both judges.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from great_expectations.compatibility.pydantic import ValidationError
from great_expectations.exceptions.exceptions import GreatExpectationsError
from great_expectations.expectations import registry
from great_expectations.expectations.expectation import Expectation

from expectations.catalogue import JUDGES, OURS, has_metric
from pipelines.errors import Exit, PulselineError
from pipelines.flows.errors import nearest, one_of
from pipelines.flows.offered import OTHER, is_other

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import ModuleType

    from pipelines.flows.check import Check

KINDS: dict[str, type[Expectation]] = registry._registered_expectations  # noqa: SLF001 - it has no other door
METRICS: dict[str, dict[str, Any]] = registry._registered_metrics  # noqa: SLF001 - as above
WORDS: dict[str, dict[str, Any]] = registry._registered_renderers  # noqa: SLF001 - as above
"""All that Great Expectations know, by name, and how each is put in words: what is imported adds itself."""
OWN = "great_expectations."
MOST_SAID = 200


@dataclass(eq=False)
class PackageNotInstalledError(PulselineError, ImportError):
    """The package of an expectation is not there."""

    check: str
    package: str
    hint: str = ""
    code: ClassVar[Exit] = Exit.WRONG_USE
    says = (
        "`{check}` is of the package `{package}`, which is not installed in this Python{hint}: install it wherever "
        "commands of the flow run, or take the check out of the flow's file"
    )


@dataclass(eq=False)
class OtherCheckError(PulselineError, ValueError):
    """An expectation of another package that cannot be asked as a flow says it."""

    check: str
    came: str
    expected: str
    near: str | None = None
    code: ClassVar[Exit] = Exit.WRONG_USE

    def __str__(self) -> str:
        hint = f"; did you mean `{self.near}`?" if self.near else ""
        return f"`{self.check}`: {self.came}, expected {self.expected}{hint}"


def look_up(check: Check) -> None:
    """See that a check of another package can be asked, by both judges.

    Raises:
        PackageNotInstalledError: there is no such package.
        OtherCheckError: it has no such expectation, which takes no such arguments, or a judge lacks it.
    """
    kind, name = class_of(check.name), check.name
    takes = [field for field in kind.__fields__ if field not in OURS]
    for argument in check.arguments:
        if argument not in takes:
            beside = " (rows are chosen by `where:`)" if "condition" in argument else ""
            expected = (one_of(takes) if takes else "none") + beside
            raise OtherCheckError(name, f"it has no argument `{argument}`", expected, nearest(argument, takes))
    missing = [each for each in takes if kind.__fields__[each].required and each not in check.arguments]
    if missing:
        raise OtherCheckError(name, f"no `{missing[0]}`", f"`{missing[0]}: <{missing[0]}>` among its arguments")
    try:
        made = kind(**check.arguments)
    except (ValidationError, ValueError, TypeError) as problem:
        raise OtherCheckError(name, _said(problem), "arguments that its class takes") from problem
    without = [judge for judge, engine in JUDGES.items() if not _can_be_asked(made, engine)]
    if without:
        came = f"the judge on {' and the one on '.join(without)} cannot ask it"
        raise OtherCheckError(name, came, "a class whose metrics are there for pandas and for Spark")


def completed(check: Check) -> Check:
    """Give a check of another package with the columns that its class names itself; any other as it is."""
    if not is_other(check.name):
        return check
    fields = class_of(check.name).__fields__
    columns = [name for name, each in OTHER.arguments.items() if each.takes in {"column", "columns"}]
    own = {name: fields[name].default for name in columns if name in fields and fields[name].default}
    return replace(check, arguments={**own, **check.arguments})


def kind_of_check(name: str) -> type[Expectation]:
    """Give the class of a check, Great Expectations' own or another package's."""
    return class_of(name) if is_other(name) else registry.get_expectation_impl(name)


def class_of(name: str) -> type[Expectation]:
    """Import the class of a check.

    Raises:
        PackageNotInstalledError: there is no such package.
        OtherCheckError: it cannot be imported, or is no expectation that can stand beside Great Expectations' own.
    """
    at, _, called = name.rpartition(".")
    module = _imported(name, at)
    kind = getattr(module, called, None)
    if not isinstance(kind, type) or not issubclass(kind, Expectation):
        there = sorted(each for each in vars(module) if _is_expectation(vars(module)[each]))
        came = f"`{at}` was imported and has no expectation `{called}`"
        raise OtherCheckError(name, came, one_of(there) if there else "a module with some", nearest(called, there))
    if kind.__module__.startswith(OWN):
        raise OtherCheckError(name, "it is Great Expectations' own", f"`{kind.expectation_type}`")
    if registry.get_expectation_impl(kind.expectation_type) is not kind:
        came = f"another package has an expectation `{called}` too, and Great Expectations know one of a name"
        raise OtherCheckError(name, came, "one of them in a flow")
    return kind


def _is_expectation(found: object) -> bool:
    is_one = isinstance(found, type) and issubclass(found, Expectation)
    return is_one and not found.__module__.startswith(OWN)


def _imported(name: str, at: str) -> ModuleType:
    package = at.partition(".")[0]
    if at in sys.modules:
        return sys.modules[at]
    importlib.invalidate_caches()
    try:
        with _beside_core(name, package):
            return importlib.import_module(at)
    except PulselineError:
        raise
    except ModuleNotFoundError as problem:
        if problem.name == package:
            near = nearest(package, (each.name for each in pkgutil.iter_modules()))
            hint = f" (did you mean `{near}`?)" if near else ""
            raise PackageNotInstalledError(name, package, hint) from problem
        if problem.name is None or not f"{at}.".startswith(f"{problem.name}."):
            raise _raised(name, at, problem) from problem
        around, _, called = problem.name.rpartition(".")
        there = sorted(each.name for each in pkgutil.iter_modules(getattr(sys.modules.get(around), "__path__", [])))
        came = f"`{around}` was imported and has no module `{called}`"
        raise OtherCheckError(name, came, one_of(there) if there else "its class", nearest(called, there)) from problem
    except (Exception, SystemExit) as problem:
        raise _raised(name, at, problem) from problem


def _raised(name: str, at: str, problem: BaseException) -> OtherCheckError:
    came = f"importing `{at}` raised {type(problem).__name__} ({_said(problem)})"
    return OtherCheckError(name, came, "a module that can be imported in this Python")


def _said(problem: BaseException) -> str:
    if isinstance(problem, ValidationError):
        found = problem.errors()[0]
        return f"`{'.'.join(str(each) for each in found['loc'])}`: {found['msg']}"
    return " ".join(str(problem).split())[:MOST_SAID] or "it says nothing of why"


@contextmanager
def _beside_core(name: str, package: str) -> Iterator[None]:
    """Import what may add expectations and metrics to those that are there, and may take the place of none.

    Whoever defines a class of a name that Great Expectations know has it asked in the place of theirs, in every flow.
    """
    kinds, providers, modules = dict(KINDS), _providers(), {*sys.modules}
    words = {each: dict(known) for each, known in WORDS.items()}
    try:
        yield
        _require_all(name, package, kinds, providers)
    except BaseException:
        KINDS.clear()
        KINDS.update(kinds)
        WORDS.clear()
        WORDS.update(words)
        for metric, engine in _providers().keys() - providers.keys():
            del METRICS[metric]["providers"][engine]
        for (metric, engine), made in providers.items():
            METRICS[metric]["providers"][engine] = made
        for each in {*sys.modules} - modules:
            if each.partition(".")[0] == package:
                del sys.modules[each]
        raise


def _require_all(
    name: str, package: str, kinds: Mapping[str, type[Expectation]], providers: Mapping[tuple[str, str], Any]
) -> None:
    now = _providers()
    taken = [each for each, kind in kinds.items() if KINDS.get(each) is not kind]
    taken += [metric for (metric, engine), made in providers.items() if now.get((metric, engine)) != made]
    if taken:
        came = f"importing it puts another in the place of `{taken[0]}`, which is there already"
        raise OtherCheckError(name, came, f"names of `{package}`'s own for its expectations and metrics")


def _providers() -> dict[tuple[str, str], Any]:
    return {(metric, engine): made for metric, found in METRICS.items() for engine, made in found["providers"].items()}


def _can_be_asked(made: Expectation, engine: Any) -> bool:  # noqa: ANN401 - a class of GX
    """Say whether a judge has all that an expectation is made of."""
    # Its class is all that counts: one that is made would start Spark.
    there = engine.__new__(engine)
    try:
        asked: Iterable[str] = made.get_validation_dependencies(execution_engine=there).get_metric_names()
    except (GreatExpectationsError, KeyError):
        return False
    return all(has_metric(metric, engine) for metric in asked)
