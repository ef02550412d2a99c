"""The files of the carry that a task begins from: those of its own bucket, where commits before were cut as this is.

A task's name stands in the names of its files, and it keeps nothing of other buckets' keys. Whatever has another name,
for it was put together, taken over, or cut into another number of buckets, every task reads, and takes its keys' rows.
Without this each of n tasks would read the files of all n.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pipelines.engine.commits.readers import Carry, CarryFiles, carry_on
from pipelines.engine.tasks.task import NOTHING_CARRIED, carry_parts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipelines.engine.commits.history import CarryLine
    from pipelines.engine.tasks.stages import Work
    from pipelines.flows.model import Flow
    from pipelines.flows.plan import Stage

OF_TASK = re.compile(r"/c\d+-\d+-(\d+)of(\d+)-[^/]*$")
"""End of a path of `task.file_stem`: bucket and buckets."""


def carry_of(work: Work, flow: Flow, stage: Stage, line: CarryLine) -> dict[tuple[str, str], Carry]:
    """Find the files of the carry once for all tasks of a stage, by stream and part."""
    parts = carry_parts(flow) if line != NOTHING_CARRIED else {}
    # What a stream takes promises over from may stand in another stage.
    names = {*stage.streams, *(given for name in stage.streams for given in flow.streams[name].inputs)}
    return {
        (name, part): carry_on(work.root, name, part, line, work.lists)
        for name in names
        for part in parts.get(name, ())
    }


def of_bucket(
    carry: Mapping[tuple[str, str], Carry], stage: Stage, bucket: int, buckets: int
) -> dict[tuple[str, str], Carry]:
    """Give what one task reads of the carry; of streams of other stages, which may have other keys, all."""

    def own(files: CarryFiles) -> CarryFiles:
        return replace(files, files=tuple(file for file in files.files if not _of_another(file, bucket, buckets)))

    return {
        (name, part): replace(each, base=own(each.base), deltas=own(each.deltas)) if name in stage.streams else each
        for (name, part), each in carry.items()
    }


def _of_another(file: str, bucket: int, buckets: int) -> bool:
    match = OF_TASK.search(file)
    return match is not None and int(match[2]) == buckets and int(match[1]) != bucket
