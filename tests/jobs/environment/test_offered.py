"""A flow that a scheduler is offered: whatever is wrong with one file, the others are there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pipelines.errors import PulselineError
from pipelines.jobs.environment.offered import flow_names, offered
from tests.flows.test_strangers import LAUGHS

if TYPE_CHECKING:
    from tests.jobs.conftest import House

BAD = {
    "laughs.yaml": LAUGHS,
    "deep.yaml": "flow: deep\nx: " + "[" * 50_000,
    "my flow.yaml": "flow: [",
    "a.yaml": "flow: tiny\nsources: 1",
}


def test_a_bad_flow_is_an_error_of_its_own_and_takes_no_other_away(house: House) -> None:
    folder = house.config / "flows"
    for name, text in BAD.items():
        (folder / name).write_text(text)
    (folder / "twice.yaml").write_text((folder / "tiny.yaml").read_text())
    (folder / "long.yaml").write_text((folder / "tiny.yaml").read_text().replace("flow: tiny", f"flow: {'x' * 300}"))
    (folder / os.fsdecode(b"bad\xff.yaml")).write_text((folder / "tiny.yaml").read_text())
    sound, wrong = [], {}
    for called in flow_names():
        try:
            sound.append(offered(called).called)
        except PulselineError as error:
            wrong[called] = str(error)
    assert sound == ["tiny"]
    assert len(wrong) == 7
    assert all(told.encode() for told in wrong.values())
    assert "stands in tiny.yaml, too" in wrong["twice"]


def test_a_flow_whose_file_is_gone_says_so(house: House) -> None:
    assert house.config.is_dir()
    with pytest.raises(PulselineError, match="has none any more"):
        offered("gone")
