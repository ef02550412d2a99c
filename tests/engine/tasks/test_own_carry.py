"""A task reads the carry of its own keys alone where commits are cut alike, and that of all where they are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.engine.tasks.local import CoreEngine
from tests.laws.trials import PARCELS, SPANS, parcels, trial

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipelines.engine.tasks.task import Done, Task


class Listening(CoreEngine):
    """Keeps what tasks are given."""

    def __init__(self) -> None:
        """Keep nothing yet."""
        self.tasks: list[Task] = []

    def run(self, tasks: Sequence[Task]) -> list[Done]:
        """Run tasks, and keep them."""
        self.tasks += tasks
        return super().run(tasks)

    def files(self, stream: str) -> dict[int, set[int]]:
        """Give the buckets of the carry files that each task of a stream's stage is given, by its own."""
        found: dict[int, set[int]] = {}
        for task in self.tasks:
            for (name, _), carry in task.carry.items():
                if name == stream and task.buckets > 1:
                    named = [file.rpartition("of")[0] for file in (*carry.base.files, *carry.deltas.files)]
                    found.setdefault(task.bucket, set()).update(int(each.rpartition("-")[2]) for each in named)
        return found


def test_a_task_is_given_its_own_carry(tmp_path: Path) -> None:
    here, engine = trial(tmp_path, PARCELS, {"parcels": parcels()}), Listening()
    here.run("own", SPANS[:1], engine)
    engine.tasks.clear()
    here.run("own", SPANS[1:], engine)
    assert engine.files("beating") == {bucket: {bucket} for bucket in range(3)}
    assert here.hashes("own", SPANS) == here.run("one", SPANS, buckets=1)


def test_cut_otherwise_a_task_is_given_all(tmp_path: Path) -> None:
    here, engine = trial(tmp_path, PARCELS, {"parcels": parcels()}), Listening()
    here.run("other", SPANS[:1], engine)
    engine.tasks.clear()
    here.run("other", SPANS[1:2], engine, buckets=2)
    assert engine.files("beating") == {bucket: {0, 1, 2} for bucket in range(2)}
    here.run("other", SPANS[2:], engine, buckets=3)
    assert here.hashes("other", SPANS) == here.run("one", SPANS, buckets=1)
