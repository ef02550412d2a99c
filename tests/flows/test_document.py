from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipelines.flows.document import Listing, Scalar, YamlMapping, load
from pipelines.flows.errors import FlowError

if TYPE_CHECKING:
    from pathlib import Path


def written(folder: Path, text: str) -> Path:
    path = folder / "a.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_values_stay_as_written_and_know_their_lines(tmp_path: Path) -> None:
    tree = load(written(tmp_path, "a: 0.10\nb:\n  c: [NO, 1d]\n"))
    assert tree.entries["a"] == Scalar("0.10", "float", 1)
    inner = tree.entries["b"]
    assert isinstance(inner, YamlMapping)
    assert inner.lines == {"c": 3}
    assert inner.entries["c"] == Listing((Scalar("NO", "str", 3), Scalar("1d", "str", 3)), 3)


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "`a` a second time (the first is in line 1)"),
        ("a:\n  b: 1\n  b: 2\n", 3, "`b` a second time"),
        ("a: [1, 2\nb: 3\n", 2, "no YAML"),
        ("a: *x\n", 1, "no YAML"),
        ("a: 1\n---\nb: 2\n", 2, "no YAML"),
        ("- 1\n", 1, "a list of 1 at the top"),
        ("", 1, "nothing at the top"),
        ("a: &x [*x]\n", 1, "an alias that contains itself"),
        ("a: !!python/object 1\n", 1, "the tag tag:yaml.org,2002:python/object"),
        ("a: !mine 1\n", 1, "the tag !mine"),
        ("[a]: 1\n", 1, "a key that is no word"),
        ("a: \x07\n", 1, "no YAML"),
        ("a:\n  b: 1\n\tc: 2\n", 3, "no YAML (found character '\\t' that cannot start any token), expected spaces"),
        ("a:\n\t\tb: 1\n", 2, "spaces in place of the tab, for YAML takes no tabs there"),
        ("a:\n  `b c`: 1\n", 2, 'write "`a name`", in quotes, for backquotes begin nothing in YAML'),
        ("a: {b: ${pace}, c: 1}\n", 1, 'a readable document: write "${pace}", in quotes'),
    ],
)
def test_what_is_no_plain_document_is_refused_with_its_line(tmp_path: Path, text: str, line: int, told: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(FlowError) as refused:
        load(path)
    assert (refused.value.file, refused.value.line) == (str(path), line)
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FlowError, match="no readable file"):
        load(tmp_path / "gone.yaml")


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes("about: Zürich".encode("latin-1"))
    with pytest.raises(FlowError, match="UTF-8"):
        load(path)
