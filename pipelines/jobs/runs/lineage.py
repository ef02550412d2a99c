"""OpenLineage: a catalogue is told of a job while it runs, where the client's own variables or file say whom to tell.

A thread looks at the run's tables and tells what they hold: START, RUNNING at most once a minute where something was
published since, and COMPLETE, FAIL or ABORT. No commit waits for it, and what goes wrong in it is one line of warning.
Without such a variable or file nothing of OpenLineage is loaded, which would take half a second.
"""

from __future__ import annotations

import datetime as dt
import logging
import os
import threading
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.engine.commits.leg_roots import roots_of
from pipelines.engine.commits.readers import log_state
from pipelines.engine.files.stored import without_user
from pipelines.jobs.environment.exits import INTERRUPTED, PIPE_CLOSED, judged, named
from pipelines.jobs.runs.lineage_job import JobEnding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pipelines.jobs.runs.lineage_job import Job

log = logging.getLogger(__name__)

SAYS_WHERE = ("OPENLINEAGE_URL", "OPENLINEAGE__TRANSPORT")
"""Beginnings of names of the client's variables that say whom to tell."""
FILE = "openlineage.yml"
EVERY = 60.0
"""Seconds between two events of a job that goes on."""
PATIENCE = 5.0
"""Seconds that the end of a job waits at most until its last event is sent."""
LONGEST = 300


def is_asked_for() -> bool:
    """Say whether the client's variables or file say whom to tell, and nothing says that nobody is to be told."""
    if os.environ.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true":
        return False
    said = os.environ.get("OPENLINEAGE_CONFIG")
    own = os.path.expanduser(f"~/.openlineage/{FILE}")  # noqa: PTH111 - Path would raise where a user has no home
    files = [Path(each) for each in (said, FILE, own) if each]
    variables = (value for name, value in os.environ.items() if name.startswith(SAYS_WHERE))
    return any(variables) or any(file.is_file() for file in files)


@contextmanager
def followed(job: Job) -> Iterator[JobEnding]:
    """Tell of a job while the block runs, and of what became of it.

    Raises:
        BaseException: what the block raises.
    """
    ending = JobEnding()
    if not is_asked_for():
        yield ending
        return
    teller = _Teller(job, {root: log_state(root).newest_entry for root in roots_of(job.root)})
    try:
        yield ending
    except BaseException as error:
        code, line = judged(error)
        ending.kind = "ABORT" if code in {INTERRUPTED, PIPE_CLOSED} else "FAIL"
        ending.sentence = without_user(named(line, job.flow.name, job.root.name))
        raise
    finally:
        ending.at = dt.datetime.now(dt.UTC)
        teller.end(ending)


class _Teller:
    """The thread that tells of a job.

    Args:
        job: what is told of.
        before: the newest row of the log of each root when it began.
    """

    def __init__(self, job: Job, before: Mapping[Path, int]) -> None:
        self._job, self._before, self._begun = job, before, dt.datetime.now(dt.UTC)
        self._ended, self._ending, self._warned = threading.Event(), JobEnding(), False
        self._thread = threading.Thread(target=self._tell, name="lineage", daemon=True)
        self._thread.start()

    def end(self, ending: JobEnding) -> None:
        """Tell how the job ended; what is not sent soon is left unsent."""
        self._ending = ending
        self._ended.set()
        self._thread.join(PATIENCE)
        if self._thread.is_alive():
            self._warn(f"no answer within {PATIENCE:.0f} s")

    def _tell(self) -> None:
        try:
            from pipelines.jobs.runs.lineage_events import Events

            events = Events(self._job, self._before)
        except Exception as problem:  # noqa: BLE001 - whatever is wrong with it, the job goes on
            self._warn(str(problem) or type(problem).__name__)
            return
        self._try(partial(events.begin, self._begun))
        while not self._ended.wait(EVERY):
            self._try(events.go_on)
        self._try(lambda: events.end(self._ending))
        self._try(partial(events.close, PATIENCE))

    def _try(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as problem:  # noqa: BLE001 - as above
            self._warn(str(problem) or type(problem).__name__)

    def _warn(self, why: str) -> None:
        """Say once that not all is told."""
        if not self._warned:
            self._warned = True
            told = without_user(" ".join(why.split()))[:LONGEST]
            log.warning("not all OpenLineage events of %s could be sent; it goes on without: %s", self._job.name, told)
