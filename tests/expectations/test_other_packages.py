"""Expectations of other packages: looked up, refused by a sentence, and judged as Great Expectations' own are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from great_expectations.expectations.registry import get_expectation_impl

from expectations.checkpoints import CheckFailedError, Checkpoints
from expectations.on_duckdb import PlainView
from expectations.on_spark import SparkView
from expectations.others import OtherCheckError, PackageNotInstalledError, look_up
from expectations.own_checks import own_judgements
from expectations.suites import AskedCheck, sentence_of
from pipelines.engine.columnar.columns import ORDER_FIELDS, TIME
from pipelines.flows.check import Check
from pipelines.flows.reading import read_flow
from pipelines.jobs.runs.fitting import is_true
from tests.other_package import ENDS, EVEN, FEW, FILES, MULTIPLES, ODD, PACKAGE, SMALL, installed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow.compute as pc

    from expectations.judgement import Judgement
    from pipelines.flows.model import Flow
    from tests.conftest import LentSpark

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "checks.md"
FLOW = """\
flow: own
sources:
  rows: {{feed: {{parquet: rows.parquet}}, key: gate, time: sent, arrival: seen}}
streams:
  punctual:
    advance_time: rows
    every: {{events: 3}}
    late: drop
    expect:
{checks}
"""
CHECKS = f"""\
      - {MULTIPLES}: {{column: number, of: 7}}
        owner: numbers@example.com
      - {MULTIPLES}: {{column: number, of: 7}}
        where: number < 20
        severity: warning
      - {MULTIPLES}: {{column: number, of: 7, mostly: 0.5}}
      - {SMALL}:
      - {EVEN}: {{column: number}}
      - expect_column_values_to_not_be_null: {{column: gate}}
"""
NUMBERS = (7, 14, None, 15, 21, 28)
"""15 is no multiple of 7, and 21 and 28 are not small."""


@pytest.fixture(scope="module", autouse=True)
def _package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with installed(tmp_path_factory.mktemp("packages")):
        yield


class Rows:
    """Rows that lie in memory."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def scan(self, columns: Sequence[str] | None = None, where: pc.Expression | None = None) -> pa.Table:
        """Read some columns of some rows."""
        rows = self._rows if where is None else self._rows.filter(where)
        return rows if columns is None else rows.select(list(columns))


def rows_of(numbers: Sequence[int | None]) -> pa.Table:
    """Give rows of one gate in stream order, one a second."""
    size = len(numbers)
    moments = pa.array([number * 1_000_000 for number in range(size)], pa.int64()).cast(TIME)
    own = {"kind": ["data"] * size, "place": [1] * size, "commit": [1] * size, "landed_place": [1] * size}
    columns = {field.name: own.get(field.name, moments if field.type == TIME else None) for field in ORDER_FIELDS}
    rows = pa.table({field.name: pa.array(columns[field.name], field.type) for field in ORDER_FIELDS})
    return rows.append_column("gate", pa.array(["p"] * size)).append_column("number", pa.array(numbers, pa.int64()))


def flow_of(folder: Path, checks: str = CHECKS) -> Flow:
    (folder / "own.yaml").write_text(FLOW.format(checks=checks))
    return read_flow(folder / "own.yaml")


def told(found: Sequence[Judgement]) -> list[tuple[str, bool, int, list[int]]]:
    """Give of each check what it is called, whether it holds, and of how many rows which numbers break it."""
    return [
        (each.expectation, each.held, each.looked_at, [row["number"] for row in each.rows if "number" in row])
        for each in found
    ]


AS_JUDGED = [
    ("expect_column_values_to_be_multiples of team_checks.numbers(number)", False, 5, [15]),
    ("expect_column_values_to_be_multiples of team_checks.numbers(number) where number < 20", False, 3, [15]),
    ("expect_column_values_to_be_multiples of team_checks.numbers(number) #2", True, 5, []),
    ("expect_small_numbers of team_checks.numbers()", False, 5, [21, 28]),
    ("expect_even_max of team_checks.numbers(number)", True, 6, []),
    ("expect_column_values_to_not_be_null(gate)", True, 6, []),
]


def test_they_are_judged_in_this_process_with_the_rows_that_break_them(tmp_path: Path) -> None:
    flow = flow_of(tmp_path)
    view = PlainView(rows=Rows(rows_of(NUMBERS)), truth=is_true)
    docs = tmp_path / "docs"
    checkpoints = Checkpoints("own", docs)
    found = own_judgements(flow, "punctual", view, checkpoints)
    assert told(found) == AS_JUDGED
    assert found[0].severity == "blocking"
    assert found[0].remedy.endswith("Owner: numbers@example.com.")
    assert found[1].severity == "warning"
    assert found[0].sentence.startswith("expect_column_values_to_be_multiples: column number, of 7")
    assert found[3].sentence == "Numbers are small. (punctual)"
    checkpoints.publish()
    assert any("multiples" in page.read_text() for page in docs.rglob("*.html"))


def test_they_are_judged_alike_on_spark(tmp_path: Path, spark: LentSpark) -> None:
    flow, rows = flow_of(tmp_path), rows_of(NUMBERS)
    there = SparkView(rows=spark.session().createDataFrame(rows).repartition(3), truth=is_true)
    on_spark = own_judgements(flow, "punctual", there, Checkpoints("own", None))
    plain = own_judgements(flow, "punctual", PlainView(rows=Rows(rows), truth=is_true), Checkpoints("own", None))
    assert told(on_spark) == AS_JUDGED
    assert on_spark == plain


def test_one_that_would_end_the_process_ends_the_job_with_a_sentence(tmp_path: Path) -> None:
    view = PlainView(rows=Rows(rows_of(NUMBERS)), truth=is_true)
    flow = flow_of(tmp_path, f"      - {ENDS}: {{column: number}}\n")
    with pytest.raises(CheckFailedError, match=r"expect_no_end.*: it raised SystemExit; once that is mended, run"):
        own_judgements(flow, "punctual", view, Checkpoints("own", None))


def test_a_class_is_told_in_its_own_words(tmp_path: Path) -> None:
    view = PlainView(rows=Rows(rows_of(NUMBERS)), truth=is_true)
    [found] = own_judgements(flow_of(tmp_path, f"      - {FEW}:\n"), "punctual", view, Checkpoints("own", None))
    assert (found.held, found.sentence) == (False, "There are few numbers. (punctual)")


def test_no_row_breaks_nothing(tmp_path: Path) -> None:
    view = PlainView(rows=Rows(rows_of(())), truth=is_true)
    flow = flow_of(tmp_path, CHECKS.replace(f"      - {EVEN}: {{column: number}}\n", ""))
    assert all(each.held for each in own_judgements(flow, "punctual", view, Checkpoints("own", None)))


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        (MULTIPLES, {"column": "n", "off": 7}, "it has no argument `off`, expected one of .*did you mean `of`"),
        (MULTIPLES, {"column": "n", "of": 7, "row_condition": "n > 1"}, "rows are chosen by `where:`"),
        (MULTIPLES, {"column": "n"}, "no `of`, expected `of: <of>`"),
        (MULTIPLES, {"column": "n", "of": "many"}, "`of`: value is not a valid integer"),
        (ODD, {"column": "n"}, "the judge on Spark cannot ask it, expected .* for pandas and for Spark"),
        (
            f"{PACKAGE}.numbers.ExpectOdds",
            {},
            "`team_checks.numbers` was imported and has no .*did you mean `ExpectOdd`",
        ),
        (f"{PACKAGE}.number.ExpectOdd", {}, "`team_checks` was imported and has no module `number`.*mean `numbers`"),
        (f"{PACKAGE}.ExpectOdd", {}, "`team_checks` was imported and has no expectation `ExpectOdd`"),
        (f"{PACKAGE}.broken.ExpectOdd", {}, r"importing .* raised RuntimeError \(no licence on this machine\)"),
        (f"{PACKAGE}.needy.ExpectOdd", {}, "raised ModuleNotFoundError .*a_package_that_nobody_has"),
        ("pathlib.ExpectOdd", {}, "`pathlib` was imported and has no expectation `ExpectOdd`, expected a module with"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_a_sentence(name: str, arguments: dict[str, object], says: str) -> None:
    with pytest.raises(OtherCheckError, match=says):
        look_up(Check(name=name, arguments=arguments))


def test_a_package_that_is_not_there_is_named() -> None:
    with pytest.raises(PackageNotInstalledError, match=r"`team_chekcs`, which is not installed .*: install it"):
        look_up(Check(name="team_chekcs.numbers.ExpectOdd", arguments={}))
    with pytest.raises(PackageNotInstalledError, match=r"did you mean `great_expectations`"):
        look_up(Check(name="great_expectation.core.ExpectOdd", arguments={}))


def test_a_class_in_the_place_of_great_expectations_own_is_refused_each_time_and_theirs_stays() -> None:
    check = Check(name=f"{PACKAGE}.taking.ExpectColumnValuesToBeBetween", arguments={"column": "n"})
    theirs = get_expectation_impl("expect_column_values_to_be_between")
    arguments = {"column": "n", "max_value": 3}
    asked = AskedCheck(Check(name="expect_column_values_to_be_between", arguments=arguments), arguments)
    for _ in range(2):
        with pytest.raises(OtherCheckError, match="in the place of `expect_column_values_to_be_between`"):
            look_up(check)
    assert get_expectation_impl("expect_column_values_to_be_between") is theirs
    sentence_of.cache_clear()
    assert sentence_of(asked) == "n values must be less than or equal to 3.0."


def test_the_guide_shows_what_is_judged_here() -> None:
    (shown,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert shown in FILES["numbers.py"]


def test_what_can_be_asked_is_taken() -> None:
    for name, arguments in ((MULTIPLES, {"column": "n", "of": 7, "mostly": 0.9}), (SMALL, {}), (EVEN, {"column": "n"})):
        look_up(Check(name=name, arguments=arguments))
