"""Planted bugs: what the certificate and the comparison of cuts are there for must not pass them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from pipelines.engine.files import ordered as inputs
from pipelines.engine.files import writing
from pipelines.engine.tasks import carry as carrying
from pipelines.engine.tasks import link
from pipelines.engine.tasks.local import CoreEngine
from pipelines.jobs.environment.settings import Settings
from pipelines.jobs.proofs import parity
from pipelines.jobs.proofs.certificates import ParityCertificate, ParityWay
from pipelines.jobs.proofs.parity import certify, text_lines
from tests.laws.trials import HOUR, MINUTE, PARCELS, SPANS, parcels, trial

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipelines.operators.rows import Records
    from pipelines.operators.scan import CarryPart

WAYS = [
    ParityWay(name="compiled core", engine="core", cut="one shot", buckets=1),
    ParityWay(name="compiled core", engine="core", cut="one shot", buckets=16),
    ParityWay(name="compiled core", engine="core", cut="by interval", buckets=7),
]
ONE_SHOT, BUCKETS, BY_INTERVAL = WAYS


@pytest.fixture
def certified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], ParityCertificate]:
    """Give what makes a certificate of the parcels, in ways that all run in this process."""
    here = trial(tmp_path / "parcels", PARCELS, {"parcels": parcels()})
    monkeypatch.setattr(parity, "ways_of", lambda *_: WAYS)
    settings = Settings(config=tmp_path, home=tmp_path / "home", engine="core", master="local[2]")

    def make() -> ParityCertificate:
        wanted = parity.Trial(settings=settings, flow=here.flow, spans=SPANS, spark=CoreEngine())
        return certify(wanted, lambda _: None)

    return make


def assert_found(certificate: ParityCertificate, way: ParityWay, tables: set[str]) -> None:
    """See that a way was found to differ in some tables, and the first row of each is shown with what it should be."""
    found = {each.table: each for each in certificate.differences if WAYS[each.way] is way}
    assert not certificate.equal
    assert tables <= set(found)
    for each in found.values():
        assert each.expected != each.came
        assert each.position >= 1
        line = next(text for text in text_lines(certificate) if text.startswith(f"{each.table}, row {each.position}"))
        assert way.title in line
        assert str(each.came) in line
        assert str(each.expected) in line
    assert text_lines(certificate)[-1].startswith("DIFFERENT")


def test_nothing_planted_nothing_found(certified: Callable[[], ParityCertificate]) -> None:
    certificate = certified()
    assert certificate.equal
    assert not certificate.differences
    assert text_lines(certificate)[-1].startswith("equal")
    assert all(content.rows for content in certificate.hashes[0].values()), "every table has rows that could differ"


@pytest.mark.parametrize(
    ("stream", "field", "by", "tables"),
    [
        ("beating", "due", 5 * MINUTE, {"beating"}),
        ("punctual", "received", 1, {"punctual"}),
        ("punctual", "cti", HOUR, {"punctual"}),
    ],
)
def test_a_carry_that_shifts_a_field_between_intervals(  # noqa: PLR0913 - the fixtures and what is shifted
    certified: Callable[[], ParityCertificate],
    monkeypatch: pytest.MonkeyPatch,
    stream: str,
    field: str,
    by: int,
    tables: set[str],
) -> None:
    kept = carrying.to_records

    def loses(part: CarryPart, table: pa.Table) -> Records:
        records = kept(part, table)
        if field in (part.record.names or ()):
            records[field] += by
        return records

    monkeypatch.setattr(carrying, "to_records", loses)
    certificate = certified()
    assert_found(certificate, BY_INTERVAL, tables)
    assert certificate.hashes[WAYS.index(BUCKETS)] == certificate.hashes[0], f"{stream} is whole where nothing is cut"


def test_a_carry_that_loses_the_rows_it_holds(
    certified: Callable[[], ParityCertificate], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = carrying.held_table
    monkeypatch.setattr(carrying, "held_table", lambda rows, *rest: kept(rows, *rest).slice(0, 0))
    assert_found(certified(), BY_INTERVAL, {"ordered"})


def test_a_task_that_forgets_the_order(
    certified: Callable[[], ParityCertificate], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "in_order", lambda table, _: table)
    monkeypatch.setattr(link, "order_of", lambda *_: None)
    assert_found(certified(), BUCKETS, {"ordered", "punctual"})


def test_a_task_that_leaves_a_file_out(
    certified: Callable[[], ParityCertificate], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = inputs.OrderedInput
    monkeypatch.setattr("pipelines.engine.tasks.task.OrderedInput", lambda readers, *rest: whole(readers[:3], *rest))
    assert_found(certified(), BUCKETS, {"ordered", "punctual"})


def test_a_row_written_twice(certified: Callable[[], ParityCertificate], monkeypatch: pytest.MonkeyPatch) -> None:
    once = writing.TableFile.write

    def twice(file: writing.TableFile, rows: pa.Table) -> None:
        once(file, pa.concat_tables([rows, rows.slice(0, 1)]) if "of016" in file.stem else rows)

    monkeypatch.setattr(writing.TableFile, "write", twice)
    assert_found(certified(), BUCKETS, {"beating"})
