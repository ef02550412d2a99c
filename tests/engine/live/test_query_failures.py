"""What is said when Spark ends a query by itself."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from pyspark.errors import StreamingQueryException

from pipelines.engine.live.queries import MOST_STARTS, Gate, LiveQuery, QueryFailedError, StreamStopped
from pipelines.engine.live.why_ended import why_ended
from pipelines.jobs.environment.exits import exit_code_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

BURIED = """\
[STREAM_FAILED] Query [id = 1f, runId = 2e] terminated with exception: [PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] \
Failed when Python streaming data source perform latestOffset: Traceback (most recent call last):
  File "spark_sources.py", line 76, in latestOffset
    return {self.name: self._clock.read(last)}
pipelines.engine.columnar.clock.ClockJumpError: the clock must move with the monotonic one SQLSTATE: 38000
=== Streaming Query ===
Identifier: landing-live [id = 1f, runId = 2e]
Current Committed Offsets: {}
Error: this is no cause
"""
JAVA = """\
Job aborted.
=== Streaming Query ===
Identifier: flow-live

JVM stacktrace:
org.apache.spark.SparkException: Job aborted.
\tat org.apache.spark.A.b(A.scala:1)
Caused by: java.io.FileNotFoundException: checkpoints/flow/offsets/3 is gone
\tat org.apache.spark.C.d(C.scala:2)
"""


class CapturedError(Exception):
    """Keeps its cause where Spark's errors do."""

    def __init__(self, text: str, cause: BaseException | None = None) -> None:
        """Keep both."""
        super().__init__(text)
        self._cause = cause


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (
            CapturedError(BURIED),
            "pipelines.engine.columnar.clock.ClockJumpError: the clock must move with the monotonic one",
        ),
        (
            CapturedError("Identifier: x", CapturedError(JAVA)),
            "java.io.FileNotFoundException: checkpoints/flow/offsets/3 is gone",
        ),
        (
            CapturedError("Identifier: x", CapturedError("first\nthe last line\n=== Streaming Query ===\nIdentifier")),
            "the last line",
        ),
        (CapturedError(""), "CapturedError"),
    ],
)
def test_the_innermost_cause_is_what_is_said(error: Exception, why: str) -> None:
    assert why_ended(error) == why


def test_a_query_that_spark_ended_ends_the_command_with_one_line() -> None:
    error = QueryFailedError("landing", why_ended(CapturedError(BURIED)))
    code, line = exit_code_of(error)
    assert (code, line) == (3, str(error))
    assert "the landing query" in line
    assert "Identifier" not in line
    again = pickle.loads(pickle.dumps(error))
    assert (again.query, again.why, str(again)) == (error.query, error.why, str(error))


class InterruptedRows:
    """In place of rows whose job Spark ends, which the moment of a stop decides: nothing real does so when asked."""

    def __init__(self, gate: Gate, *, stopped: bool) -> None:
        """Shut the gate while the job runs, where the query is stopped."""
        self.gate, self.stopped = gate, stopped

    def collect(self) -> None:
        """End as Spark ends it."""
        if self.stopped:
            self.gate.shut("flow")
        raise OSError("java.lang.InterruptedException")


@pytest.mark.parametrize("stopped", [True, False])
def test_a_job_that_a_stop_interrupts_is_no_failure(*, stopped: bool) -> None:
    gate = Gate()
    query = LiveQuery(cast("SparkSession", None), "flow", "", {}, Path(), lambda _after, _up_to: None, gate)
    with pytest.raises(StreamStopped if stopped else OSError):
        query._run(cast("DataFrame", InterruptedRows(gate, stopped=stopped)), 0)
    if stopped:
        query.failed()
    else:
        with pytest.raises(OSError, match="Interrupted"):
            query.failed()


class SlowWorker:
    """In place of a query that Spark ended for want of a Python process, as only a machine full of work makes one.

    What Spark says of the query is not what its cause says, and either may be all that there is.
    """

    isActive = False  # noqa: N815 - Spark's name

    def awaitTermination(self) -> None:  # noqa: N802 - Spark's name
        """End as Spark ends it."""
        raise StreamingQueryException(str(self.exception()))

    def __init__(self, cause: str | None) -> None:
        self.cause = cause

    def exception(self) -> StreamingQueryException:
        """Say why it ended."""
        ended = StreamingQueryException("Query flow [id = 1] terminated: Python worker failed to connect back.")
        if self.cause is not None:
            cast("Any", ended)._cause = OSError(
                f"java.lang.Exception: failed\n\tat a.B.c(B.scala:1)\nCaused by: {self.cause}\n\t... 23 more"
            )
        return ended


TIMED_OUT = "java.net.SocketTimeoutException: Timed out while waiting for the Python worker to connect back"


@pytest.mark.parametrize("cause", [TIMED_OUT, None])
@pytest.mark.parametrize("ask", ["running", "wait"])
def test_a_query_whose_process_is_slow_to_begin_is_started_again_some_times(ask: str, cause: str | None) -> None:
    query = LiveQuery(cast("SparkSession", None), "flow", "", {}, Path(), lambda _after, _up_to: None, Gate())
    query.query, starts = cast("StreamingQuery", SlowWorker(cause)), [1]
    query._starts = 1

    def again() -> None:
        query._starts += 1
        starts.append(query._starts)

    query._again = again
    if ask == "wait":
        with pytest.raises(QueryFailedError, match=f"up within Spark's 10 s, {MOST_STARTS} times in a row"):
            query.wait()
    else:
        while query.running:
            pass
    assert starts == list(range(1, MOST_STARTS + 1))
    with pytest.raises(QueryFailedError, match=f"up within Spark's 10 s, {MOST_STARTS} times in a row"):
        query.failed()
