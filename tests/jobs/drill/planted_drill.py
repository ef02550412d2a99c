"""The process of a drill with a bug in it: what a drill that cannot fail would not find."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from pipelines.engine.buffers import buffers
from pipelines.engine.commits.delta_log import SETTLED
from pipelines.engine.commits.driver import Driver
from pipelines.engine.commits.paths import table_path
from pipelines.engine.commits.table_log import TableChange
from pipelines.engine.files.folders import CARRY
from pipelines.engine.landing import manifest as manifests
from pipelines.jobs.drill.drilled import drilled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pipelines.engine.commits.entry import Entry
    from pipelines.engine.commits.lease import Claim
    from pipelines.engine.commits.paths import NewFile

    Files = Mapping[str, Sequence[NewFile]]


def unhashed(file: Path, root: Path, readings: Sequence[int], pause: float, claim: Claim) -> None:
    """Believe every file that has the right size."""
    pytest.MonkeyPatch().setattr(buffers, "verify", lambda _: None)
    pytest.MonkeyPatch().setattr(manifests.hashlib, "sha256", Forgiving)  # type: ignore[attr-defined]
    drilled(file, root, readings, pause, claim)


class Forgiving:
    """A digest that equals every other."""

    def update(self, _: bytes) -> None:
        """Take in bytes."""

    def hexdigest(self) -> Any:  # noqa: ANN401 - equals everything
        """Give what equals every text."""
        return Everything()


class Everything:
    """Equal to everything."""

    def __eq__(self, other: object) -> bool:
        """Say yes."""
        return True

    __hash__ = object.__hash__


def hasty(file: Path, root: Path, readings: Sequence[int], pause: float, claim: Claim) -> None:
    """Publish a commit that does not name the files of its streams, which enter their tables a second later."""
    publish = Driver.written_and_published

    def published_first(driver: Driver, number: int, files: Files, *facts: Any, **named: Any) -> Entry:  # noqa: ANN401
        carry = {name: listed for name, listed in files.items() if name.startswith(CARRY)}
        done = publish(driver, number, carry, *facts, **named)
        time.sleep(1.0)
        for name in sorted({*files} - {*carry}):
            adds = [each._replace(first=number, last=number) for each in files[name]]
            if adds:
                driver.tables.log(table_path(driver.root, name)).commit(TableChange(adds=adds), {SETTLED: number})
        return done

    Driver.written_and_published = published_first  # type: ignore[assignment,method-assign]
    drilled(file, root, readings, pause, claim)
