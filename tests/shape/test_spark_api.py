"""What a managed platform may not offer is used in named places alone: RDDs, Spark's context and its JVM."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FORBIDDEN = frozenset({"sparkContext", "rdd", "_jvm", "_jsc", "_jdf", "_jsparkSession", "_gateway"})
NAMED = {
    "pipelines/engine/tasks/spark.py": "hands tasks out, for a DataFrame takes 1.4 times as long; asks if Spark runs",
    "pipelines/jobs/bench/punctuate.py": "measures one task without the engine",
    "pipelines/jobs/bench/scale.py": "measures tasks that sleep",
}


def uses(text: str) -> set[str]:
    """Name what a module asks of Spark beside its DataFrames."""
    found = {node.attr for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)}
    return found & FORBIDDEN


def test_only_named_places_reach_behind_dataframes() -> None:
    files = [file for room in ("pipelines", "expectations", "dags") for file in (ROOT / room).rglob("*.py")]
    assert {str(file.relative_to(ROOT)) for file in files if uses(file.read_text())} == set(NAMED)


@pytest.mark.parametrize(
    "text", ["spark.sparkContext.parallelize(x)", "rows.rdd.map(f)", "def f(s):\n    return s._jvm.java"]
)
def test_the_lint_finds_what_it_is_for(text: str) -> None:
    assert uses(text)
