"""How many examples the laws see: few and always the same ones, or as many new ones as `PULSELINE_EXAMPLES` says.

And the buffers that scans fill: full of nonsense, so that a field that nobody writes is seen.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings

from pipelines.operators import (
    advance_time,
    deduplicate,
    dispatch,
    heartbeat,
    interleave,
    join,
    merge,
    metronome,
    pass_through,
    quarantine,
    union,
    window,
)
from pipelines.operators.rows import OUT, OUT_CAPACITY
from tests.wide import drawn as examples_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipelines.operators.rows import Records

ASKED = os.environ.get("PULSELINE_EXAMPLES")
BRIEF = "PULSELINE_BRIEF" in os.environ
"""Set where only whether a law breaks is asked, as for mutants: the example is not made small."""

settings.register_profile(
    "laws",
    max_examples=int(ASKED or (60 if BRIEF else examples_of(50, 150))),
    derandomize=ASKED is None,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example],
    phases=[Phase.generate] if BRIEF else [Phase.generate, Phase.shrink],
)
settings.load_profile("laws")
NONSENSE = 0x55


def nonsense(capacity: int = OUT_CAPACITY) -> Records:
    out = np.zeros(capacity, dtype=OUT)
    out.view(np.uint8)[:] = NONSENSE
    return out


@pytest.fixture(scope="session", autouse=True)
def _buffers() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for operator in (
            advance_time,
            deduplicate,
            dispatch,
            heartbeat,
            interleave,
            merge,
            metronome,
            pass_through,
            quarantine,
        ):
            patch.setattr(operator, "out_buffer", nonsense)
        for growing in (union, join, window):
            patch.setattr(growing, "written", lambda: nonsense(1))
        yield
