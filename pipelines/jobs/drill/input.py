"""`pulseline drill input`: rows, files, flows, expressions and requests that are wrong, and some that are right.

Right is: what plain Python makes of it where it is right; all in the ledger, or one sentence, where it is not; never a
traceback, and never longer than a minute.
"""

from __future__ import annotations

import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pipelines.jobs.drill import fuzzed_expressions, fuzzed_files, fuzzed_flows, fuzzed_requests
from pipelines.jobs.drill.fuzzed import FuzzedPlace, Tried
from pipelines.jobs.drill.processes import answer
from pipelines.jobs.drill.telling import Drilled, Telling, drilling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

PATIENCE = 60.0
"""Seconds that the inputs of a seed may take: nothing may hang."""
LONG = 1_000_000
"""Inputs of `--long`."""


class InputKind(NamedTuple):
    """A kind of inputs."""

    tried: Callable[[FuzzedPlace], Tried]
    inputs: int
    """About how many inputs a seed tries."""
    most: int
    """About how many it tries in `--long`: so many that a slow machine is through in PATIENCE."""


KINDS = {
    "rows and files": InputKind(fuzzed_files.tried, 900, 9_000),
    "expressions": InputKind(fuzzed_expressions.tried, 200, 2_000),
    "flows": InputKind(fuzzed_flows.tried, 60, 300),
    "requests": InputKind(fuzzed_requests.tried, 40, 200),
}


@dataclass(frozen=True)
class InputSeed:
    """Inputs of one kind, as one seed draws them."""

    number: int
    base: Path
    work: Callable[[str, FuzzedPlace], Tried] | None = None
    """What the process does; `working` unless given."""
    is_long: bool = False

    @property
    def kind(self) -> str:
        """Give the kind; kinds take turns, so that few seeds see all."""
        return list(KINDS)[self.number % len(KINDS)]

    def run(self) -> Drilled:
        """Try the inputs in a process of their own."""
        begun, done = time.monotonic(), Drilled(self.number)
        folder, log = self.base / f"seed-{self.number}", self.base / f"seed-{self.number}.log"
        folder.mkdir(parents=True)
        kind = KINDS[self.kind]
        place = FuzzedPlace(folder, self.number, kind.most if self.is_long else kind.inputs)
        try:
            tried = answer(log, PATIENCE, self.work or working, self.kind, place)
            done.faults[self.kind] += tried.inputs
            done.differences, done.told = tried.wrong, ""
        except (EOFError, TimeoutError) as problem:
            done.differences, done.told = ["not done"], f"{self.kind}: {problem}"
        if not done.differences:
            shutil.rmtree(folder)
        done.seconds = time.monotonic() - begun
        return done


def working(kind: str, place: FuzzedPlace) -> Tried:
    """Try inputs of a kind, in a process that was forked for it."""
    return KINDS[kind].tried(place)


def drill_input(  # noqa: PLR0913 - the command's options
    seeds: Sequence[int],
    base: Path | None,
    at_once: int,
    long: bool,  # noqa: FBT001 - the command's flag
    as_json: bool,  # noqa: FBT001 - the command's flag
    echo: Callable[[str], None],
) -> int:
    """Try inputs, and hold what becomes of them against what is right.

    Args:
        seeds: which.
        base: where what was wrong is kept, with logs; nowhere unless given.
        at_once: how many run at the same time.
        long: whether to go on, from the first seed, until LONG inputs were tried.
        as_json: one object a line instead of words.
        echo: where lines go.

    Returns:
        0, or 1 where something else came than what is right.
    """
    telling = Telling("input", as_json, echo)
    much = f"{LONG:,} inputs" if long else f"{len(seeds)} seeds"
    telling.begin(f"{much}: {', '.join(KINDS)}; what is counted are inputs")
    with drilling(base) as folder:
        folder.mkdir(parents=True, exist_ok=True)
        return telling.through(_until(LONG, seeds[0], folder, at_once) if long else fuzzed(seeds, folder, at_once))


def fuzzed(
    seeds: Sequence[int], base: Path, at_once: int, work: Callable[[str, FuzzedPlace], Tried] | None = None
) -> Iterator[Drilled]:
    """Run seeds.

    Args:
        seeds: which.
        base: their folder.
        at_once: how many run at the same time.
        work: what their processes do; `working` unless given.
    """
    with ThreadPoolExecutor(at_once) as pool:
        yield from pool.map(lambda number: InputSeed(number, base, work).run(), seeds)


def _until(most: int, first: int, base: Path, at_once: int) -> Iterator[Drilled]:
    """Run long seeds, a few at a time, until so many inputs were tried."""
    tried, number = 0, first
    with ThreadPoolExecutor(at_once) as pool:
        while tried < most:
            some = range(number, number + at_once)
            for done in pool.map(lambda each: InputSeed(each, base, is_long=True).run(), some):
                tried += done.faults.total()
                yield done
            number = some.stop
