"""The flows that a scheduler is offered: whatever is wrong with one file, the others are there."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from pipelines.jobs.environment import offered
from pipelines.jobs.environment.offered import offered_flows
from tests.flows.test_strangers import LAUGHS

if TYPE_CHECKING:
    import pytest

    from tests.jobs.conftest import House

BAD = {
    "laughs.yaml": LAUGHS,
    "deep.yaml": "flow: deep\nx: " + "[" * 50_000,
    "my flow.yaml": "flow: [",
    "a.yaml": "flow: tiny\nsources: 1",
    "tiny2.yaml": "flow: other",
}


def test_one_bad_flow_takes_no_other_away(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = house.config / "flows"
    for name, text in BAD.items():
        (folder / name).write_text(text)
    (folder / "tiny.yaml").rename(folder / "good.yaml")
    (folder / "tiny.yaml").write_text("flow: [")
    (folder / "twice.yaml").write_text((folder / "good.yaml").read_text())
    (folder / "long.yaml").write_text((folder / "good.yaml").read_text().replace("flow: tiny", f"flow: {'x' * 300}"))
    (folder / os.fsdecode(b"bad\xff.yaml")).write_text((folder / "good.yaml").read_text())
    found = offered_flows()
    assert [flow.called for flow in found if flow.name == "tiny"] == ["good"]
    names = [flow.name for flow in found]
    assert len(names) == len(set(names)) == 10
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]{1,210}", name) for name in names)
    wrong = [flow for flow in found if flow.about.startswith("Its file is wrong: ")]
    assert len(wrong) == 9
    assert all((flow.about + flow.called).encode() for flow in found)
    assert "the flow `tiny` stands in good.yaml, too" in next(flow.about for flow in found if flow.called == "twice")

    def breaks(_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(offered, "read_frame", breaks)
    assert len(offered_flows()) == 10
