"""Break the operators one line at a time and see whether the fast suite notices.

    python -m tests.mutants                     every mutant of every module
    python -m tests.mutants merge --sample 25   so many of one module, always the same ones

Each mutant is a copy of the sources with one expression or statement changed, under which transcripts and laws run as
plain Python. Prints killed and survived for each module. Survivors that change nothing anyone can see stand in
`EQUIVALENT` with the reason; any other is a missing transcript, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import ast
import copy
import multiprocessing
import os
import resource
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from tests.mutants_equivalent import EQUIVALENT

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "pipelines" / "operators"
RELATIONS = ("shift_time", "alter_duration", "union", "join", "window")
MODULES = (
    "heartbeat",
    "metronome",
    "merge",
    "advance_time",
    "scan",
    *RELATIONS,
    "meeting",
    "pass_through",
    "deduplicate",
    "quarantine",
)
SUITE = (
    "tests/operators/test_transcripts.py",
    "tests/operators/test_laws.py",
    "tests/operators/test_relations.py",
    "tests/operators/test_deduplicate.py",
    "tests/operators/test_quarantine.py",
)
JUDGED_BY = {
    "scan": (),
    "meeting": ("-k", "union or join or window"),
    "pass_through": ("-k", "filter or project or shift_time or alter_duration"),
}
"""What the suite is narrowed to for a module that several operators share; for an operator to its name."""
SECONDS = 25
"""Of processor time: a mutant that takes more loops for ever, and is killed."""
COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
COUNTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.FloorDiv: ast.Mult,
}
ENV = {"NUMBA_DISABLE_JIT": "1", "PULSELINE_BRIEF": "1"}


class Mutant(NamedTuple):
    """One change in one function of one module."""

    module: str
    function: str
    line: int
    before: str
    after: str
    source: str
    """The whole module, changed."""

    def __str__(self) -> str:
        """Say where and what."""
        return f"{self.module}.{self.function}:{self.line}: {self.before}  ->  {self.after}"


def mutants(module: str) -> list[Mutant]:
    """Give every mutant of a module, in the order of its lines."""
    source = (SOURCES / f"{module}.py").read_text()
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    found = [
        _mutant(module, function.name, source, node, after)
        for function in functions
        if function.name not in {"warnings", "__str__"}
        for statement in function.body
        for node in _nodes(statement)
        for after in _changes(node)
    ]
    return sorted(set(found), key=lambda mutant: (mutant.line, mutant.before, mutant.after))


def _nodes(statement: ast.stmt) -> Iterator[ast.expr | ast.stmt]:
    for node in ast.walk(statement):
        if isinstance(node, ast.expr | ast.stmt):
            yield node


def _mutant(module: str, function: str, source: str, node: ast.expr | ast.stmt, after: str) -> Mutant:
    before = ast.get_source_segment(source, node) or ""
    lines = source.splitlines(keepends=True)
    start = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    changed = source[:start] + after + source[start + len(before) :]
    return Mutant(module, function, node.lineno, " ".join(before.split()), after, changed)


def _changes(node: ast.expr | ast.stmt) -> Iterator[str]:
    """Give what a node may become, as text."""
    changed = copy.deepcopy(node)
    if isinstance(changed, ast.Compare) and type(changed.ops[0]) in COMPARED:
        for i, operator in enumerate(changed.ops):
            other = copy.deepcopy(changed)
            other.ops[i] = COMPARED[type(operator)]()
            yield f"({ast.unparse(other)})"
    elif isinstance(changed, ast.BinOp) and type(changed.op) in COUNTED:
        changed.op = COUNTED[type(changed.op)]()
        yield f"({ast.unparse(changed)})"
    elif isinstance(changed, ast.BoolOp):
        changed.op = ast.Or() if isinstance(changed.op, ast.And) else ast.And()
        yield f"({ast.unparse(changed)})"
    elif isinstance(changed, ast.UnaryOp) and isinstance(changed.op, ast.Not):
        yield f"({ast.unparse(changed.operand)})"
    elif isinstance(changed, ast.IfExp):
        yield f"({ast.unparse(changed.orelse)})"
        yield f"({ast.unparse(changed.body)})"
    elif isinstance(changed, ast.Constant) and type(changed.value) is int:
        yield str(changed.value + 1)
    elif isinstance(changed, ast.Assign | ast.AugAssign) and _stores(changed):
        yield "pass"
    elif isinstance(changed, ast.Call) and ast.unparse(changed.func) in {"min", "max"}:
        yield ast.unparse(changed.args[0])
        yield ast.unparse(changed.args[1])


def _stores(statement: ast.Assign | ast.AugAssign) -> bool:
    """Say whether a statement changes a record or a count, so that leaving it out is not merely an unbound name."""
    return isinstance(statement, ast.AugAssign) or isinstance(statement.targets[0], ast.Subscript)


def copied(folder: Path) -> None:
    """Copy what the fast suite needs into `folder`."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SOURCES, folder / "pipelines" / "operators", ignore=ignored)
    shutil.copy(ROOT / "pipelines" / "__init__.py", folder / "pipelines")
    shutil.copytree(ROOT / "tests" / "operators", folder / "tests" / "operators", ignore=ignored)
    shutil.copytree(ROOT / "tests" / "transcripts", folder / "tests" / "transcripts", ignore=ignored)
    for path in (ROOT / "tests" / "wide.py", *(ROOT / "tests").glob("transcripts*.py")):
        shutil.copy(path, folder / "tests")
    shutil.copy(ROOT / "pyproject.toml", folder)


def run_suite(folder: Path, *options: str) -> None:
    """Run the fast suite of a copy in this process, and end the process with pytest's exit code."""
    os.chdir(folder)
    os.environ.update(ENV)
    for name in [name for name in sys.modules if name.split(".")[0] in {"tests", "pipelines"}]:
        del sys.modules[name]
    sys.path[:] = [str(folder), *(entry for entry in sys.path if entry not in ("", str(ROOT)))]
    sys.dont_write_bytecode = True
    import pytest

    import pipelines

    assert str(pipelines.__file__).startswith(str(folder)), pipelines.__file__
    os._exit(pytest.main(["-q", "-p", "no:cacheprovider", "--no-header", "--tb=no", *options]))


def _forked(folder: Path, module: str) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    run_suite(folder, "-x", *SUITE, *JUDGED_BY.get(module, ("-k", module)))


def survives(mutant: Mutant, folder: Path) -> bool:
    """Say whether the fast suite passes over a mutant, in a copy that nobody else uses meanwhile."""
    path = folder / "pipelines" / "operators" / f"{mutant.module}.py"
    whole = path.read_text()
    path.write_text(mutant.source)
    process = multiprocessing.get_context("fork").Process(target=_forked, args=(folder, mutant.module))
    process.start()
    process.join()
    path.write_text(whole)
    return process.exitcode == 0


def survivors(chosen: list[Mutant], workers: int) -> Iterator[Mutant]:
    """Give the mutants that the fast suite passes over, each as soon as all before it are judged."""
    with tempfile.TemporaryDirectory() as base, ThreadPoolExecutor(workers) as pool:
        free: Queue[Path] = Queue()
        for number in range(workers):
            folder = Path(base) / str(number)
            copied(folder)
            free.put(folder)

        def judged(mutant: Mutant) -> bool:
            folder = free.get()
            lives = survives(mutant, folder)
            free.put(folder)
            return lives

        for mutant, lives in zip(chosen, pool.map(judged, chosen), strict=True):
            if lives:
                yield mutant


def explained(mutant: Mutant) -> str | None:
    """Give the reason why a mutant that lives is no different from the operator; None where there is none."""
    return EQUIVALENT.get((mutant.module, mutant.function, mutant.before, mutant.after))


def main() -> int:
    """Judge mutants as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", choices=[*MODULES, []], help="which modules; all unless named")
    parser.add_argument("--sample", type=int, help="so many mutants of each module, always the same ones")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--list", action="store_true", help="only list the mutants")
    asked = parser.parse_args()
    open_questions = 0
    for module in asked.modules or MODULES:
        chosen = mutants(module)
        if asked.sample:
            chosen = sorted(Random(0).sample(chosen, min(asked.sample, len(chosen))), key=lambda one: one.line)  # noqa: S311 - a sample
        if asked.list:
            print(*chosen, sep="\n")  # noqa: T201 - a command
            continue
        open_questions += report(module, chosen, survivors(chosen, asked.workers))
    return 1 if open_questions else 0


def report(module: str, chosen: list[Mutant], alive: Iterator[Mutant]) -> int:
    """Print what became of a module's mutants; give how many live without a reason."""
    survived = unexplained = 0
    for mutant in alive:
        reason = explained(mutant)
        survived, unexplained = survived + 1, unexplained + (reason is None)
        print(f"  {mutant}\n      {reason or 'UNEXPLAINED'}", flush=True)  # noqa: T201 - a command
    counts = f"{len(chosen) - survived} killed, {survived} survived, {unexplained} of them unexplained"
    print(f"{module}: {len(chosen)} mutants, {counts}", flush=True)  # noqa: T201 - a command
    return unexplained


if __name__ == "__main__":
    os.environ.update(ENV)
    import hypothesis  # noqa: F401 - loaded once, before the forks
    import numba  # noqa: F401
    import pytest  # noqa: F401
    import ruamel.yaml  # noqa: F401

    sys.exit(main())
