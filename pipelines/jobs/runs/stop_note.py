"""Why a stream stopped by itself: the process that ends notes it in the run's folder, for `pulseline status` to tell.

Nothing is decided by it. A process that was killed notes nothing, and the next one forgets what was noted.
"""

from __future__ import annotations

import json
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from pipelines.engine.columnar.clock import wall_now
from pipelines.engine.commits.errors import LeaseLostError
from pipelines.engine.files.durable import whole
from pipelines.errors import PulselineError
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.exits import exit_code_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FILE = "stopped.json"


@contextmanager
def noted_stop(root: Path, held: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Note why a stream of a run stops, unless it was asked to, never began, or another one goes on in its place.

    Args:
        root: the run's folder.
        held: raises where the lease of the run is lost.

    Raises:
        LeaseLostError: another one goes on in its place, whatever ended this one: Spark may have been the first to say
            something when a process that was stopped woke up.
    """
    try:
        yield
    except (LeaseLostError, WrongUse):
        raise
    except Exception as error:
        if lost := _lost(held):
            raise lost from error
        _note(root, exit_code_of(error)[1] or "whoever read its output went away")
        raise


def _lost(held: Callable[[], object]) -> LeaseLostError | None:
    try:
        held()
    except LeaseLostError as lost:
        return lost
    except (PulselineError, OSError):
        # What ended the stream is told, and not that nobody knows who holds the lease.
        return None
    return None


def forget_stop(root: Path) -> None:
    """Forget why the stream before stopped, for another one begins, or it has ended."""
    with suppress(OSError):
        (root / FILE).unlink(missing_ok=True)


def _note(root: Path, why: str) -> None:
    with suppress(OSError), whole(root / FILE) as draft:
        draft.write_text(json.dumps({"since_at": wall_now(), "why": why}), encoding="utf-8")


def read_stop(root: Path) -> dict[str, Any] | None:
    """Give what was noted: `since_at` (ticks) and `why`; None where nothing was, or it cannot be read."""
    try:
        noted = json.loads((root / FILE).read_text(encoding="utf-8"))
        return {"since_at": int(noted["since_at"]), "why": str(noted["why"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None
