"""DAG files only wire: no decision in them, nothing heavy behind them, and their docstrings are what the UI shows."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from dags.bundle import file_name, write_files

CHECKOUT = Path(__file__).parents[2]
DAGS = CHECKOUT / "dags"
FILES = ("backfill.py", "stream.py", "replay.py", "quality.py", "promises.py", "maintain.py")
MAY_IMPORT = {
    *("__future__", "typing", "airflow.sdk", "dags.process", "dags.wiring", "dags.complete", "dags.approval"),
    "pipelines.jobs.environment.offered",
}
DECISIONS = (
    *(ast.IfExp, ast.While, ast.For, ast.Try, ast.Match, ast.BoolOp, ast.Compare, ast.ClassDef),
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
    made = [node.name for node in ast.walk(tree(name)) if isinstance(node, ast.FunctionDef)]
    tested = [ast.unparse(node.test) for node in ast.walk(tree(name)) if isinstance(node, ast.If)]
    assert found == []
    assert made == [f"{name.removesuffix('.py')}_dag"]
    assert set(tested) <= {"TYPE_CHECKING"}


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
    assert "flow, __doc__)" in (DAGS / name).read_text()


def test_each_flow_has_a_file_of_its_own_which_goes_with_it(tmp_path: Path) -> None:
    write_files(tmp_path, ["flights", "my flow"])
    names = [file_name(called) for called in ("flights", "my flow")]
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(names)
    assert "dags_of('my flow')" in (tmp_path / names[1]).read_text()
    before = (tmp_path / "flights.py").stat().st_mtime_ns
    write_files(tmp_path, ["flights"])
    assert [file.name for file in tmp_path.iterdir()] == ["flights.py"]
    assert (tmp_path / "flights.py").stat().st_mtime_ns == before, "Airflow reads again what was written again"


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
