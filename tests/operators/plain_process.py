"""Run by the tests in a process of its own under `NUMBA_DISABLE_JIT=1`: the same operators as plain Python.

An int64 that overflows raises here, where machine code would wrap. Prints JSON: `plain`, whether the operators really
are plain; `failures`, what transcripts found; `digests`, one for each random job, by operator.
"""

from __future__ import annotations

import hashlib
import json
import sys
from random import Random

import numpy as np

from pipelines.operators.scan import sighted
from tests.operators.checking import Mismatch, check
from tests.operators.driving import run
from tests.operators.scenarios import SCENARIOS
from tests.transcripts_model import transcripts
from tests.wide import drawn as examples_of

JOBS = examples_of(100, 300)
PLAIN = not hasattr(sighted, "py_func")


def digests(operator: str, count: int = JOBS) -> list[str]:
    """Give a hash of all that leaves and is held, for each of `count` random jobs."""
    outcomes = (run(SCENARIOS[operator](Random(seed))) for seed in range(count))  # noqa: S311 - the same jobs each time
    return [hashlib.sha256(repr(outcome).encode()).hexdigest() for outcome in outcomes]


def failures() -> list[str]:
    """Run every transcript and give what was found."""
    found = []
    for transcript in transcripts():
        try:
            check(transcript)
        except (Mismatch, ArithmeticError, IndexError) as error:
            found.append(f"{transcript.name}: {type(error).__name__}: {error}")
    return found


def main() -> None:
    """Do all of it and print one JSON object."""
    np.seterr(over="raise")
    report = {"plain": PLAIN, "failures": failures(), "digests": {name: digests(name) for name in SCENARIOS}}
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    main()
