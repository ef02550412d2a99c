"""A document as a stream in a process of its own, for tests that kill it.

killed_transcript.py FOLDER KIND RANK POINT SKIP   # epochs over all steps; die at a point, come past it SKIP times
"""

from __future__ import annotations

import sys
from pathlib import Path

from pipelines.engine.commits.driver import Driver
from tests.laws.killed_backfill import before, lay_in_wait
from tests.laws.shared_transcripts import shared
from tests.laws.streamed_transcripts import Driven, Live, longest

PER_OPERATOR = 3


def chosen(folder: Path, kind: str, rank: int) -> Live:
    """Give one of the longest documents of an operator, or of imports, with those that share its flow."""
    return longest(shared(folder, 1), kind, PER_OPERATOR)[rank]


def main() -> None:
    """Do what the arguments say."""
    folder, kind, rank, point, skip = sys.argv[1:]
    live = chosen(Path(folder), kind, int(rank))
    engine = lay_in_wait(point, int(skip))
    if point == "unpublished":
        Driver.written_and_published = before(Driver.written_and_published, int(skip))  # type: ignore[method-assign]
    live.land()
    live.run(Driven.ONE, engine)


if __name__ == "__main__":
    main()
