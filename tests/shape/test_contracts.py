"""The import contracts hold, and each of them can fail."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PACKAGES = ("pipelines", "expectations", "dags")
STANDARD = sys.stdlib_module_names
MAY_IMPORT = {
    "operators": {"numba", "numpy", "pipelines.errors", "pipelines.operators"},
    "flows": {"pendulum", "pyarrow", "ruamel", "sqlglot", "tzdata"}
    | {"pipelines.errors", "pipelines.operators", "pipelines.flows"},
}
HEAVY = {"airflow", "delta", "deltalake", "great_expectations", "numba", "pandas", "pyarrow", "pyspark"}
PLANTED = [
    ("layers", "pipelines/flows/planted.py", "import pipelines.engine"),
    ("layers", "pipelines/engine/tasks/planted.py", "import expectations"),
    ("layers", "expectations/planted.py", "import pipelines.engine"),
    ("rooms", "pipelines/planted.py", ""),
    ("layers", "pipelines/errors.py", "import pipelines.operators"),
    ("operators", "pipelines/operators/planted.py", "import pyspark"),
    ("flows", "pipelines/flows/planted.py", "def later() -> None:\n    import pandas"),
    ("airflow", "pipelines/jobs/runs/planted.py", "import airflow"),
    ("expectations", "pipelines/jobs/runs/planted.py", "import great_expectations"),
    ("dags", "dags/planted.py", "import pipelines.engine.tasks.planted_session"),
    ("engine-rooms", "pipelines/engine/files/planted.py", "import pipelines.engine.commits.log"),
    ("engine-rooms", "pipelines/engine/buffers/planted.py", "import pipelines.engine.sources.live"),
    ("engine-rooms", "pipelines/engine/planted.py", ""),
    ("job-rooms", "pipelines/jobs/facts/planted.py", "import pipelines.jobs.commands.run"),
    ("job-rooms", "pipelines/jobs/planted.py", ""),
]


def lint_imports(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("lint-imports")), *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def imported_by(path: Path) -> set[str]:
    """Name the modules that a file imports, wherever in it the import stands."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add("." * node.level + (node.module or ""))
    return names


def test_the_import_contracts_hold() -> None:
    run = lint_imports(ROOT, "--no-cache")

    assert run.returncode == 0, run.stdout + run.stderr


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the packages, to plant in: what stays as it is is read once, and lies in the linter's cache from then on."""
    folder = tmp_path_factory.mktemp("copied")
    shutil.copy(ROOT / "pyproject.toml", folder)
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "pipelines/engine/tasks/planted_session.py").write_text("import pyspark\n")
    return folder


@pytest.fixture(params=PLANTED, ids=[f"{contract}-{path}" for contract, path, _ in PLANTED])
def planted(request: pytest.FixtureRequest, copied: Path) -> Iterator[str]:
    """Plant an import, name the contract that forbids it, and take it out again."""
    contract, path, line = request.param
    file = copied / path
    before = file.read_text() if file.exists() else None
    file.write_text(line + "\n")
    yield contract
    if before is None:
        file.unlink()
    else:
        file.write_text(before)


def test_a_planted_import_breaks_its_contract(copied: Path, planted: str) -> None:
    run = lint_imports(copied, "--contract", planted)

    assert run.returncode == 1, run.stdout + run.stderr
    assert "0 kept, 1 broken" in run.stdout


def test_without_what_was_planted_they_hold_there_too(copied: Path) -> None:
    run = lint_imports(copied)

    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("layer", MAY_IMPORT)
def test_a_lower_layer_imports_only_what_it_may(layer: str) -> None:
    files = sorted((ROOT / "pipelines" / layer).rglob("*.py"))
    strangers = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in files
        for name in imported_by(path)
        if name.split(".")[0] not in STANDARD
        and not any(name == allowed or name.startswith(f"{allowed}.") for allowed in MAY_IMPORT[layer])
    }

    assert files
    assert strangers == set()


def test_the_command_line_starts_without_anything_heavy() -> None:
    program = f"import sys, pipelines.cli; print(*sorted({HEAVY!r} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == []
