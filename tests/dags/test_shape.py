"""DAG files only wire: no decision in them, nothing heavy behind them, and their docstrings are what the UI shows."""

from __future__ import annotations

import ast
import fnmatch
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
DAGS = CHECKOUT / "dags"
FILES = ("backfill.py", "stream.py", "replay.py", "quality.py")
MAY_IMPORT = {"airflow.sdk", "dags.process", "dags.wiring", "pipelines.jobs.environment.offered"}
DECISIONS = (
    *(ast.If, ast.IfExp, ast.While, ast.Try, ast.Match, ast.BoolOp, ast.Compare, ast.FunctionDef, ast.ClassDef),
    *(ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)
SECTIONS = ("## When all is well", "## When a task is red")
HEAVY = ("pyspark", "numba", "pandas", "pyarrow", "deltalake", "great_expectations")
SECONDS = 1.5
"""For one file, behind Airflow's own import, in processor time."""
PROGRAM = """\
import importlib, json, sys, time
import airflow.sdk, airflow.timetables.interval
found = {}
for name in sys.argv[1:]:
    begun = time.process_time()
    importlib.import_module("dags." + name)
    found[name] = time.process_time() - begun
print(json.dumps([found, sorted(set(sys.modules))]))
"""


def tree(name: str) -> ast.Module:
    return ast.parse((DAGS / name).read_text())


@pytest.mark.parametrize("name", FILES)
def test_a_dag_file_decides_nothing(name: str) -> None:
    found = [type(node).__name__ for node in ast.walk(tree(name)) if isinstance(node, DECISIONS)]
    loops = [node for node in ast.walk(tree(name)) if isinstance(node, ast.For)]
    assert found == []
    assert [ast.unparse(loop.target) for loop in loops] == ["flow"]
    assert loops[0] in tree(name).body or len(loops) == 1


@pytest.mark.parametrize("name", FILES)
def test_a_dag_file_imports_only_what_it_wires(name: str) -> None:
    found = {node.module for node in ast.walk(tree(name)) if isinstance(node, ast.ImportFrom)}
    assert not [node for node in ast.walk(tree(name)) if isinstance(node, ast.Import)]
    assert found <= MAY_IMPORT


@pytest.mark.parametrize("name", FILES)
def test_the_docstring_is_a_runbook_that_the_ui_shows(name: str) -> None:
    told = ast.get_docstring(tree(name)) or ""
    assert told.startswith("# ")
    assert [section for section in SECTIONS if section not in told] == []
    assert "doc_md=__doc__" in (DAGS / name).read_text()


def test_airflow_parses_the_dag_files_and_nothing_else() -> None:
    patterns = [line for line in (DAGS / ".airflowignore").read_text().splitlines() if not line.startswith("#")]
    parsed = []
    for path in sorted(DAGS.rglob("*.py")):
        matching = [pattern for pattern in patterns if fnmatch.fnmatch(path.name, pattern.removeprefix("!"))]
        parsed += [] if not matching[-1].startswith("!") else [str(path.relative_to(DAGS))]
    assert sorted(parsed) == sorted(FILES)


def test_dag_files_are_quick_to_read_and_load_nothing_heavy(tmp_path: Path) -> None:
    import json
    import os

    names = [name.removesuffix(".py") for name in FILES]
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, *names],
        cwd=CHECKOUT,
        env={**os.environ, "AIRFLOW_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    seconds, modules = json.loads(run.stdout.splitlines()[-1])
    assert {name: spent for name, spent in seconds.items() if spent > SECONDS} == {}
    assert [name for name in HEAVY if name in modules] == []


@pytest.mark.parametrize("name", FILES)
def test_the_docs_have_the_runbook_as_it_is(name: str) -> None:
    from dags.runbooks import DOCS, page

    stem = name.removesuffix(".py")
    assert (DOCS / f"{stem}.md").read_text() == page(stem), "run: .venv/bin/python -m dags.runbooks"
