"""What README and the guides print: their flows are flows, their commands run and say what the page says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.errors import Exit
from pipelines.flows.definition import fingerprint_of
from pipelines.flows.reading import read_flow
from pipelines.jobs.environment.exits import INTERRUPTED, PIPE_CLOSED

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
FLIGHTS = ROOT / "config" / "flows" / "flights.yaml"
PRINTED = re.compile(r"^\$ pulseline (.+)\n((?:.+\n)*)", re.MULTILINE)
SECONDS = re.compile(r"\d+\.\d s\b")
MOST_WORDS = 1_200


def told(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def flows_of(page: Path) -> list[str]:
    return [flow for flow in re.findall(r"```yaml\n(.*?)```", told(page), re.DOTALL) if flow.startswith("flow:")]


def test_the_readme_is_short() -> None:
    assert len(told(README).split()) <= MOST_WORDS


def test_the_readme_names_the_two_commands_that_set_everything_up() -> None:
    assert "\nmake demo      # installs" in told(README)
    assert "\nmake test      # installs" in told(README)


def test_the_flow_of_the_readme_has_ten_lines_and_is_the_examples() -> None:
    (flow,) = flows_of(README)

    assert flow == told(DOCS / "example" / "short.yaml")
    assert len(flow.splitlines()) == 10


def test_the_flow_that_is_told_line_by_line_is_that_of_the_demo(tmp_path: Path) -> None:
    (flow,) = flows_of(DOCS / "tutorial" / "flow.md")
    (tmp_path / "flow.yaml").write_text(flow)

    assert fingerprint_of(read_flow(tmp_path / "flow.yaml")) == fingerprint_of(read_flow(FLIGHTS))


def test_the_files_of_the_guide_are_the_examples() -> None:
    guide = told(DOCS / "tutorial" / "your-own-files.md")
    flow = told(DOCS / "example" / "pumps.yaml")

    assert told(DOCS / "example" / "readings.csv") in guide
    assert [read for read in flows_of(DOCS / "tutorial" / "your-own-files.md") if read == flow]
    assert told(README).count(told(DOCS / "example" / "readings.csv").partition("\nnorth,2026-03-02 08:00:40")[0]) == 1


def test_the_flow_of_the_guide_to_streams_is_a_flow(tmp_path: Path) -> None:
    (flow,) = flows_of(DOCS / "how-to" / "live.md")
    (tmp_path / "flow.yaml").write_text(flow)

    assert read_flow(tmp_path / "flow.yaml").warnings == ()


def said(command: str, home: Path) -> list[str]:
    """Run a command as a page prints it, where no Java is; give what it prints, without rules."""
    there = {**os.environ, "PULSELINE_HOME": str(home), "COLUMNS": "200", "JAVA_HOME": str(home / "none")}
    run = [sys.executable, "-m", "pipelines.cli", *command.split()]
    done = subprocess.run(run, cwd=ROOT, env=there, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [line.rstrip() for line in done.stdout.splitlines() if not set(line) <= {"─", " "} or not line]


def columns(header: str, names: list[str]) -> list[slice]:
    """Give where columns of a printed table stand."""
    starts = [match.start() for match in re.finditer(r"(?<!\S)\S+(?: \S+)*", header)]
    ends = [*starts[1:], None]
    all_ = re.split(r" {2,}", header.strip())
    return [slice(start, end) for name, start, end in zip(all_, starts, ends, strict=True) if name in names]


def shortened(lines: list[str], shown: list[str]) -> list[list[str]]:
    """Cut a printed table to the columns of one that leaves some out; give the words of each row."""
    names = re.split(r" {2,}", shown[0].strip())
    parts = columns(lines[0], names)
    return [[line[part].strip() for part in parts] for line in lines]


@pytest.mark.parametrize("page", [README, DOCS / "tutorial" / "your-own-files.md"], ids=lambda page: page.stem)
def test_the_commands_print_what_the_page_says(page: Path, tmp_path: Path) -> None:
    printed = PRINTED.findall(told(page))
    assert [command.split()[0] for command, _ in printed[-1:]] == ["ledger"]

    for command, answer in printed:
        came = [SECONDS.sub("0.0 s", line) for line in said(command, tmp_path)]
        shown = [SECONDS.sub("0.0 s", line.rstrip()) for line in answer.splitlines() if line not in {"```", "…"}]
        if command.startswith("show"):
            assert shortened(came, shown)[: len(shown)] == shortened(shown, shown)
        else:
            assert came[: len(shown)] == shown


def test_the_exit_codes_of_the_page_are_those_of_the_program() -> None:
    table = re.findall(r"^\| (\d+) \|", told(DOCS / "reference" / "errors.md"), re.MULTILINE)

    assert [int(code) for code in table] == [*Exit, INTERRUPTED, PIPE_CLOSED]


def test_every_operators_page_stands_in_the_list_of_operators() -> None:
    listed = re.findall(r"\]\(\.\./operators/(\w+)\.md\)", told(DOCS / "reference" / "operators.md"))

    assert sorted(set(listed)) == sorted(path.stem for path in (DOCS / "operators").glob("*.md"))
