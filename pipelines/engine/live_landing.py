"""What one reading lands: everything that came in before it, as one closed sequence."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipelines.engine.landing import Landing
    from pipelines.engine.recording import Recording
    from pipelines.flows.model import Flow


class LiveLanding:
    """The landing of a live flow, one sequence a reading."""
