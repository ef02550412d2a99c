"""The process of a drill with a bug in it: what a drill that cannot fail would not find."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pipelines.engine import buffers, manifests
from pipelines.engine.commits import Driver
from pipelines.jobs.drilled import drilled

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipelines.engine.entries import Entry
    from pipelines.engine.lease import Claim


def unhashed(file: Path, root: Path, readings: Sequence[int], pause: float, claim: Claim) -> None:
    """Believe every file that has the right size."""
    buffers.verify = lambda _: None  # type: ignore[assignment,attr-defined]
    manifests.hashlib.sha256 = Forgiving  # type: ignore[attr-defined]
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
    """Publish a commit before its files are in their tables."""
    later: list[tuple[Any, ...]] = []
    add, publish = Driver.add_files, Driver.written_and_published

    def put_off(_: Driver, *facts: Any) -> bool:  # noqa: ANN401 - whatever it takes
        later.append(facts)
        return True

    def published_first(driver: Driver, *facts: Any, **named: Any) -> Entry:  # noqa: ANN401 - whatever it takes
        state = driver.state()
        done = publish(driver, *facts, **named)
        time.sleep(1.0)
        driver.state = lambda: state  # type: ignore[method-assign]
        while later:
            add(driver, *later.pop(0))
        del driver.state
        return done

    Driver.add_files = put_off  # type: ignore[assignment,method-assign]
    Driver.written_and_published = published_first  # type: ignore[assignment,method-assign]
    drilled(file, root, readings, pause, claim)
