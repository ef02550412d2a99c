"""What ARCHITECTURE.md says of the house holds: no arrow back, no circle, no two classes of one name."""

from __future__ import annotations

import re
from collections import Counter

import grimp
import pytest

from docs.measure_house import PACKAGES, arrows_back, circles, files


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
    classes = Counter(
        name for path in files().values() for name in re.findall(r"^class (\w+)", path.read_text("utf-8"), re.MULTILINE)
    )
    assert [name for name, count in classes.items() if count > 1] == []
