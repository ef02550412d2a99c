"""Kept certificates: written as they always were, and read back."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pipelines.engine.columnar.content import ContentHash
from pipelines.jobs.proofs.certificates import (
    FILE,
    ParityCertificate,
    ParityDifference,
    ParityWay,
    keep_certificate,
    read_certificate,
)
from pipelines.jobs.runs.given_up import GivenUp

if TYPE_CHECKING:
    from pathlib import Path

KEPT = (
    '{"flow": "f", "start": 5, "end": 9, "tables": ["beating", "carry"], "ways": [{"name": "core", "engine": "core", '
    '"cut": "one shot", "buckets": 7, "plain": false, "run": ""}, {"name": "plain", "engine": "core", '
    '"cut": "by interval", "buckets": 1, "plain": true, "run": "main"}], "hashes": [{"beating": '
    '"2:000000000000000f0000000000000001", "carry": "0:00000000000000000000000000000000"}, {}], "seconds": [0.5, 2.0], '
    '"differences": [{"table": "beating", "way": 1, "position": 3, "expected": {"at": "2024-01-01", "n": 1}, '
    '"came": null}], "gaps": [{"run": "main", "first": 2, "last": 3, "at": 4}]}'
)
WAYS = [
    ParityWay(name="core", engine="core", cut="one shot", buckets=7),
    ParityWay(name="plain", engine="core", cut="by interval", buckets=1, plain=True, run="main"),
]
DIFFERENCE = ParityDifference(
    table="beating", way=1, position=3, expected={"at": dt.date(2024, 1, 1), "n": 1}, came=None
)
CERTIFICATE = ParityCertificate(
    flow="f",
    start=5,
    end=9,
    tables=("beating", "carry"),
    ways=WAYS,
    hashes=[{"beating": ContentHash(2, 15, 1), "carry": ContentHash()}, {}],
    seconds=[0.5, 2.0],
    differences=[DIFFERENCE],
    gaps=(GivenUp("main", 2, 3, 4),),
)


def test_a_certificate_is_kept_as_it_always_was_and_read_back(tmp_path: Path) -> None:
    keep_certificate(tmp_path, CERTIFICATE)
    assert (tmp_path / FILE).read_text() == KEPT
    spelled = replace(DIFFERENCE, expected={"at": "2024-01-01", "n": 1})
    assert read_certificate(tmp_path) == replace(CERTIFICATE, differences=[spelled])


@pytest.mark.parametrize("broken", ["", "[]", "{}", KEPT.replace('"ways"', '"way"'), KEPT.replace('"2:0', '"2:')])
def test_a_certificate_that_cannot_be_read_is_none(tmp_path: Path, broken: str) -> None:
    (tmp_path / FILE).write_text(broken)
    assert read_certificate(tmp_path) is None
