"""What ARCHITECTURE.md says of the house holds: no arrow back, no circle, and what a change touches."""

from __future__ import annotations

import re
from itertools import zip_longest
from pathlib import Path

import grimp
import pytest

from docs.measure_house import PACKAGES, arrows_back, circles, files, names_of_several, naming, rooms_table, touched
from docs.measure_walk import walk
from docs.site.pages import MADE

MAKE = "run: .venv/bin/python -m docs.measure_house write"
PAGE = (Path(__file__).parents[2] / "ARCHITECTURE.md").read_text(encoding="utf-8")
PARTS = {found[2]: found[0].removeprefix(found[1]).removesuffix(found[3]).strip() for found in MADE.finditer(PAGE)}
NUMBER = re.compile(r"\d[\d,]*")
STATELESS = ("shift_time", "alter_duration", "filter", "project")
FEW = ("union", "join", "window", "deduplicate", "quarantine")
"""Operators under CTIs, and the one that goes by checks: at most five files know each."""


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True)


def test_no_module_is_imported_by_what_it_imports(graph: grimp.ImportGraph) -> None:
    assert (arrows_back(graph), circles(graph)) == (0, 0)


def test_a_circle_is_found() -> None:
    planted = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True)
    planted.add_import(importer="pipelines.flows.errors", imported="pipelines.flows.reading")
    assert circles(planted)


def test_no_two_classes_have_one_name() -> None:
    assert names_of_several(files()) == []


def far_apart(said: str, found: str) -> bool:
    """Say whether two lines differ by words, or by more than a tenth of a number and three."""
    numbers = [[int(each.replace(",", "")) for each in NUMBER.findall(line)] for line in (said, found)]
    if NUMBER.sub("", said) != NUMBER.sub("", found):
        return True
    return any(abs(one - other) > max(3, other / 10) for one, other in zip(*numbers, strict=True))


def test_the_rooms_have_about_the_sizes_that_the_table_says() -> None:
    lines = zip_longest(PARTS["rooms"].splitlines(), rooms_table().splitlines(), fillvalue="")
    assert [pair for pair in lines if far_apart(*pair)] == [], MAKE


def test_a_size_that_is_stale_is_found() -> None:
    assert not far_apart("| `dags` | 21 | 1,337 |", "| `dags` | 22 | 1,400 |")
    assert far_apart("| `dags` | 21 | 1,337 |", "| `dags` | 21 | 1,700 |")
    assert far_apart("| `dags` | 21 | 1,337 |", "| `dag` | 21 | 1,337 |")


@pytest.fixture(scope="module")
def known() -> dict[str, dict[str, list[str]]]:
    return touched()


def test_the_table_says_how_many_files_each_thing_touches(known: dict[str, dict[str, list[str]]]) -> None:
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in PARTS["touched"].splitlines()[2:]]
    said = {(what, name): int(count) for what, count, names in rows for name in re.findall(r"`(.*?)`", names)}
    found = {(what, name): len(files) for what, each in known.items() for name, files in each.items()}
    assert said.keys() == found.keys(), MAKE
    assert {name: (count, found[name]) for name, count in said.items() if abs(count - found[name]) > 1} == {}, MAKE


def test_what_touches_many_files_is_kept_to_few(known: dict[str, dict[str, list[str]]]) -> None:
    assert {name: files for name in STATELESS if len(files := known["operator"][name]) > 3} == {}
    assert {name: files for name in FEW if len(files := known["operator"][name]) > 5} == {}
    assert {name: files for name, files in known["source"].items() if len(files) > 4} == {}


def test_every_operator_that_passes_rows_one_by_one_is_kept_to_three_files() -> None:
    found = {name.removeprefix("pipelines.operators.") for name in naming(r"\nclass \w+\(Passing\)", files())}
    assert found - {"loop"} == set(STATELESS), "a loop is a module that goes round, which flows and tables know"


def test_what_time_it_is_is_asked_at_one_place() -> None:
    assert naming(r"\btime\.(time|monotonic)_ns\(|\btime\.time\(", files()) == ["pipelines.engine.columnar.clock"]


def test_a_parameter_is_in_the_hands_of_at_most_six_modules_and_in_two_shapes() -> None:
    found = walk()
    assert len(found.modules) <= 6, found.modules
    assert list(found.shapes) == ["text", "ticks"]
    assert "pipelines.operators.heartbeat" in found.modules, "else the walk was cut off"
