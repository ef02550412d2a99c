"""How many examples the laws see: few and always the same ones, or as many new ones as `PULSELINE_EXAMPLES` says."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

ASKED = os.environ.get("PULSELINE_EXAMPLES")
BRIEF = "PULSELINE_BRIEF" in os.environ
"""Set where only whether a law breaks is asked, as for mutants: the example is not made small."""

settings.register_profile(
    "laws",
    max_examples=int(ASKED or (60 if BRIEF else 150)),
    derandomize=ASKED is None,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example],
    phases=[Phase.generate] if BRIEF else [Phase.generate, Phase.shrink],
)
settings.load_profile("laws")
