"""A loss that somebody accepted stands in every certificate of the run, for ever."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pipelines.engine.buffers.places import Record, write_record
from pipelines.engine.columnar.content import ContentHash
from pipelines.engine.commits.paths import landed_path
from pipelines.engine.landing.shelves import Gap
from pipelines.jobs.proofs.certificates import ParityCertificate, ParityWay, keep_certificate, read_certificate
from pipelines.jobs.proofs.parity import json_lines, text_lines
from pipelines.jobs.runs.given_up import given_up

if TYPE_CHECKING:
    from pathlib import Path

ACCEPTED = 1_704_067_200_000_000


def lost(root: Path) -> Path:
    """Give a run whose record says that two losses were accepted."""
    landed_path(root).mkdir(parents=True)
    gaps = (Gap(6, 9, ACCEPTED, told=True), Gap(12, 12, ACCEPTED + 1))
    write_record(landed_path(root), Record(places={}, gaps=gaps))
    return root


def test_a_run_that_lost_nothing_has_no_gaps(tmp_path: Path) -> None:
    assert given_up(tmp_path) == ()


def test_a_certificate_says_which_sequences_when_and_keeps_it(tmp_path: Path) -> None:
    root = lost(tmp_path / "live")
    certificate = ParityCertificate(
        flow="f",
        start=0,
        end=1,
        tables=("a",),
        ways=[ParityWay(name="core", engine="core", cut="one shot", buckets=1)],
        hashes=[{"a": ContentHash()}],
        seconds=[0.1],
        gaps=given_up(root),
    )
    told = [line for line in text_lines(certificate) if line.startswith("gap: ")]
    assert told[0].startswith("gap: run `live` gave up sequences 6 to 9 at 2024-01-01")
    assert "gave up sequence 12 at" in told[1]
    assert [gap["first"] for gap in json.loads(json_lines(certificate)[0])["gaps"]] == [6, 12]

    keep_certificate(root, certificate)
    assert read_certificate(root) == certificate


def test_certificates_from_before_are_read(tmp_path: Path) -> None:
    certificate = ParityCertificate(flow="f", start=0, end=1, tables=())
    keep_certificate(tmp_path, certificate)
    told = json.loads((tmp_path / "certificate.json").read_text())
    del told["gaps"]
    (tmp_path / "certificate.json").write_text(json.dumps(told))
    assert read_certificate(tmp_path) == certificate
