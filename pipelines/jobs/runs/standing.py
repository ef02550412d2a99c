"""Whether published commits that are looked at for long are published still when the looking is done."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pipelines.engine.commits.readers import log_state
from pipelines.jobs.environment.errors import JobError
from pipelines.jobs.runs.counts import numbered

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


@contextmanager
def standing(looked_at: Mapping[Path, frozenset[int]], doing: str) -> Iterator[None]:
    """Look at commits while the block runs; rows that were taken back meanwhile are no finding, whatever came of it.

    Args:
        looked_at: published commits, by the root of their leg.
        doing: what is done with them, such as `compared`.

    Raises:
        JobError: some of them were taken back or replaced.
    """
    try:
        yield
    finally:
        for root, commits in looked_at.items():
            if gone := commits - log_state(root).visible:
                some = f"commit {numbered(gone)}" if len(gone) == 1 else f"commits {numbered(sorted(gone))}"
                raise JobError(
                    f"what is {doing} must stand meanwhile; {some} of {root}, taken back or replaced, no longer does: "
                    "type the same command again"
                )
