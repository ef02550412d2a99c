"""The reference says what the code says: made anew it is the same, and nothing that the code has is missing."""

from __future__ import annotations

import doctest
import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
import typer

from docs.site import flow_keys, flow_schema
from docs.site.pages import MADE, makers, pages, remade
from docs.site.tables import columns
from pipelines.cli import app, asked
from pipelines.errors import PulselineError
from pipelines.flows import reading
from pipelines.flows.feeds.catalog import WRITTEN
from pipelines.jobs.commands.tables import reader_lines
from pipelines.operators.specs import SPECS, Setting

MAKE = "run: make docs, or .venv/bin/python -m docs.site"
REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


def told(name: str) -> str:
    return (REFERENCE / f"{name}.md").read_text(encoding="utf-8")


def test_the_page_of_tables_gives_the_lines_that_the_command_prints() -> None:
    path = Path(".pulseline/flights/main/streams/punctual")
    for alone in (False, True):
        line = reader_lines(path, None, alone=alone)["pandas"].replace("'", '"')
        assert f"\n{line}" in told("tables")


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_the_made_parts_of_the_reference_are_what_the_code_says(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    assert text == remade(text), MAKE


def test_every_part_stands_on_one_page() -> None:
    asked = [part for page in pages() for _, part, _ in MADE.findall(page.read_text(encoding="utf-8"))]

    assert sorted(asked) == sorted(makers())


def test_every_command_and_every_option_is_there() -> None:
    page = told("commands")

    def look(words: str, command: object) -> int:
        inner = getattr(command, "commands", None)
        if inner is not None:
            return sum(look(f"{words} {name}", each) for name, each in inner.items())
        section = page.partition(f"\n### {words}\n")[2].partition("\n### ")[0]
        assert section, words
        options = [option for each in getattr(command, "params", ()) for option in each.opts if option[:1] == "-"]
        assert [option for option in options if f"`{option}`" not in section] == [], words
        return 1

    assert look("pulseline", typer.main.get_command(app)) == page.count("\n### pulseline ")


def helped(command: object) -> dict[str, list[tuple[str, ...]]]:
    """Give the options of a command, and of those within it, by name."""
    within = getattr(command, "commands", {"": command})
    return {name: [tuple(each.opts) for each in inner.params] for name, inner in within.items()}


def test_a_command_that_is_made_alone_is_the_one_among_all() -> None:
    every = typer.main.get_command(app).commands  # type: ignore[attr-defined]

    for name, command in every.items():
        alone = typer.main.get_command(asked(name)).commands  # type: ignore[attr-defined]
        assert list(alone) == [name]
        assert alone[name].help == command.help
        assert helped(alone[name]) == helped(command)
    assert asked("sho") is asked("") is asked("--help") is app


def test_every_command_stands_at_a_glance() -> None:
    glance = told("commands").partition("## At a glance")[2].partition("\n## ")[0]
    listed = re.findall(r"^### pulseline (?:flows )?(.+)$", told("commands"), re.MULTILINE)

    assert [words for words in listed if not re.search(rf"`(pulseline (flows )?)?{words}\b", glance)] == []
    assert "\\|" not in told("commands"), "the site shows the backslash"


def test_every_key_of_a_flow_is_there() -> None:
    page = told("flow")
    keys = {*reading.KEYS, *(key for spec in WRITTEN.values() for key in spec.settings)}
    settings = {(name, key) for name, spec in SPECS.items() for key in spec.keys}

    assert {key for key in keys if f"| `{key}` |" not in page} == set()
    for name, key in settings:
        assert f"| `{key}` |" in page.partition(f"\n### {name}\n")[2].partition("\n### ")[0], name


def test_every_error_that_has_an_exit_code_is_there() -> None:
    page = told("errors")

    assert {name for name in raised(PulselineError) if f"| `{name}` |" not in page} == set()
    assert len(raised(PulselineError)) > 80
    assert "flow {flow} must have one driver at a time; {holder} has held it since {since}: wait for it" in page


def raised(kind: type[PulselineError]) -> set[str]:
    """Name the errors of ours that are loaded: all, once the page has been made."""
    below = [each for each in kind.__subclasses__() if each.__module__.partition(".")[0] != "tests"]
    return {each.__name__ for each in below}.union(*map(raised, below))


def test_the_examples_in_the_code_hold() -> None:
    failed, tried = doctest.testmod(flow_schema)

    assert (failed, tried > 0) == (0, True)


def test_a_key_that_nobody_told_of_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(flow_keys.FLOW, "region")

    with pytest.raises(ValueError, match=r"each key must be told .* see to \['region'\]"):
        flow_schema.flow_keys()


def test_a_setting_without_a_row_on_its_operators_page_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = SPECS["heartbeat"]
    more = replace(spec, settings=(*spec.settings, Setting("pulse")))
    monkeypatch.setattr(flow_schema, "SPECS", {"heartbeat": more})

    with pytest.raises(ValueError, match=r"the options of `heartbeat` must have a row for `pulse`"):
        flow_schema.operator_settings()


def test_a_column_that_nobody_told_of_is_named() -> None:
    with pytest.raises(ValueError, match=r"each column must have a sentence .* see to \['new'\]"):
        columns([pa.field("new", pa.int64())], {})
