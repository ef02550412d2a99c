"""The lease, with real processes: refused, succeeded, overtaken, raced."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipelines.engine import lease
from pipelines.engine.commits import CommitLog, open_driver
from pipelines.engine.history import CommitKind, Entry, State
from pipelines.engine.lease import Claim, Holder, Renewal, Standing
from pipelines.engine.refusals import LeaseHeldError, LeaseLostError

if TYPE_CHECKING:
    from collections.abc import Iterator

SECOND = 1_000_000
PROGRAM = Path(__file__).with_name("driver_process.py")
HOLDER = Holder("here", "machine", 42, 1_000)


def start(*arguments: str) -> subprocess.Popen[str]:
    """Start a driver in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(PROGRAM.parents[2])}
    command = [sys.executable, str(PROGRAM), *arguments]
    return subprocess.Popen(command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def said(process: subprocess.Popen[str]) -> str:
    """Read one line of what a process prints."""
    assert process.stdout
    return process.stdout.readline().strip()


def tell(process: subprocess.Popen[str]) -> None:
    """Let a process go on."""
    assert process.stdin
    process.stdin.write("go\n")
    process.stdin.flush()


@pytest.fixture
def held(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Give a living process that holds the lease of `tmp_path` and has a commit at `written`."""
    with start(str(tmp_path), "hold") as process:
        assert said(process) == "held"
        yield process
        process.kill()


def row(at: int = 0) -> Entry:
    """Give a lease row of HOLDER."""
    return Entry(state=State.LEASE, kind=CommitKind.LEASE, token=3, detail=HOLDER.facts(), at=at)


@pytest.mark.parametrize(
    ("given", "renewal", "gone", "now", "expected"),
    [
        (None, None, False, 0, Standing.FREE),
        (row(), None, False, 30 * SECOND, Standing.HELD),
        (row(), None, False, 30 * SECOND + 1, Standing.LAPSED),
        (row(), Renewal(3, 10 * SECOND), False, 40 * SECOND, Standing.HELD),
        (row(), Renewal(3, 10 * SECOND), False, 41 * SECOND, Standing.LAPSED),
        (row(), Renewal(2, 40 * SECOND), False, 41 * SECOND, Standing.LAPSED),
        (row(), Renewal(2, 0, "released"), False, 1, Standing.HELD),
        (row(), Renewal(3, 0, "released"), False, 1, Standing.RELEASED),
        (row(), Renewal(3, 0), True, 1, Standing.GONE),
        (row(at=9 * SECOND), None, False, 0, Standing.HELD),
    ],
)
def test_a_lease_is_judged_by_end_process_and_renewals(
    given: Entry | None, renewal: Renewal | None, *, gone: bool, now: int, expected: Standing
) -> None:
    assert lease.standing(given, renewal, lambda _: gone, now) is expected


def test_a_process_is_told_from_a_later_one_with_its_number() -> None:
    me = lease.this_process()
    assert not lease.is_gone(me, me)
    assert lease.is_gone(Holder(me.host, me.machine, me.pid, me.started + 1), me)


def test_a_process_elsewhere_is_never_known_to_be_gone() -> None:
    me = lease.this_process()
    assert not lease.is_gone(Holder("there", "other machine", 1, 1), me)
    assert not lease.is_gone(Holder("there", "", 1, 1), Holder("here", "", 1, 1))


def test_a_dead_process_that_nobody_reaped_is_gone() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    deadline = time.monotonic() + 20
    while lease.process_start(process.pid) is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert lease.process_start(process.pid) is None
    process.wait()
    assert lease.process_start(process.pid) is None


def test_half_a_renewal_is_none(tmp_path: Path) -> None:
    assert lease.read_renewal(tmp_path) is None
    lease.renewal_path(tmp_path).write_text('{"token": 1, "ren')
    assert lease.read_renewal(tmp_path) is None
    lease.write_renewal(tmp_path, Renewal(1, 2))
    assert lease.read_renewal(tmp_path) == Renewal(1, 2)


def test_renewals_come_while_the_block_runs_and_stop_for_a_later_lease(tmp_path: Path) -> None:
    with lease.Renewals(tmp_path, 1, every=SECOND // 100):
        first = lease.read_renewal(tmp_path)
        deadline = time.monotonic() + 20
        while lease.read_renewal(tmp_path) == first and time.monotonic() < deadline:
            time.sleep(0.01)
        assert lease.read_renewal(tmp_path) != first
        # A renewal that was under way may still land on top of the later lease's; the next one sees and stops.
        while lease.read_renewal(tmp_path) != Renewal(2, 7):
            lease.write_renewal(tmp_path, Renewal(2, 7))
            time.sleep(0.1)
    assert lease.read_renewal(tmp_path) == Renewal(2, 7)


def test_a_driver_that_ended_properly_is_succeeded(tmp_path: Path) -> None:
    for token in (1, 2):
        with open_driver(tmp_path, flow="numbers") as driver:
            assert driver.token == token


def test_a_second_driver_in_one_process_is_refused(tmp_path: Path) -> None:
    with (
        open_driver(tmp_path, flow="numbers"),
        pytest.raises(LeaseHeldError, match=f"process {os.getpid()} on"),
        open_driver(tmp_path, flow="numbers"),
    ):
        pass


def test_a_driver_beside_a_living_one_is_refused_with_who_and_since_when(
    tmp_path: Path, held: subprocess.Popen[str]
) -> None:
    with pytest.raises(LeaseHeldError) as refused, open_driver(tmp_path, flow="numbers"):
        pass
    newest = CommitLog(tmp_path).state().lease
    assert newest
    assert refused.value.since == newest.at
    assert f"process {held.pid} on" in str(refused.value)
    assert "--take-over" in str(refused.value)
    tell(held)
    assert said(held) == "published"


def test_a_killed_driver_is_succeeded_at_once(tmp_path: Path, held: subprocess.Popen[str]) -> None:
    held.send_signal(signal.SIGKILL)
    held.wait()
    with open_driver(tmp_path, flow="numbers") as driver:
        pending = driver.pending()
        assert pending
        assert pending.state is State.WRITTEN
        driver.publish(pending.commit)


def test_a_stopped_driver_is_overtaken_and_cannot_publish_when_it_wakes(
    tmp_path: Path, held: subprocess.Popen[str]
) -> None:
    held.send_signal(signal.SIGSTOP)
    with pytest.raises(LeaseHeldError), open_driver(tmp_path, flow="numbers"):
        pass
    with open_driver(tmp_path, flow="numbers", claim=Claim.TAKE_OVER) as driver:
        held.send_signal(signal.SIGCONT)
        tell(held)
        assert said(held).startswith("LeaseLostError flow numbers must be written under its newest lease, number 2")
        assert not CommitLog(tmp_path).state().published
        renewal = lease.read_renewal(tmp_path)
        assert renewal
        assert (renewal.token, renewal.state) == (2, "held")
        driver.publish(1)
    assert [entry.commit for entry in CommitLog(tmp_path).state().published] == [1]


def test_a_driver_that_looked_before_it_was_overtaken_is_refused_by_the_table(tmp_path: Path) -> None:
    with open_driver(tmp_path, flow="numbers") as old:
        seen = old.log.state()
        with open_driver(tmp_path, flow="numbers", claim=Claim.TAKE_OVER) as new:
            # What the old one saw last stays what it sees, as if it had been stopped between look and append.
            look, old.log.state = old.log.state, lambda: seen  # type: ignore[method-assign]
            with pytest.raises(Exception, match="one writer"):
                old.intent(1, (1, 11), 0, [1], {}, "print")  # type: ignore[arg-type]
            old.log.state = look  # type: ignore[method-assign]
            with pytest.raises(LeaseLostError):
                old.intent(1, (1, 11), 0, [1], {}, "print")  # type: ignore[arg-type]
            assert new.next_number() == 1
    log = CommitLog(tmp_path)
    assert len(list(log.path.glob("e*.parquet"))) == len(log.rows()) == 2


def test_of_two_that_take_over_at_once_the_slower_does_not_take_it_from_the_faster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = CommitLog.append
    with ExitStack() as faster, open_driver(tmp_path, flow="numbers"):

        def late(log: CommitLog, entry: Entry) -> Entry:
            monkeypatch.setattr(CommitLog, "append", append)
            faster.enter_context(open_driver(tmp_path, flow="numbers", claim=Claim.TAKE_OVER))
            return append(log, entry)

        monkeypatch.setattr(CommitLog, "append", late)
        with pytest.raises(LeaseHeldError), open_driver(tmp_path, flow="numbers", claim=Claim.TAKE_OVER):
            pass
        assert CommitLog(tmp_path).state().token == 2


def test_of_processes_that_ask_at_once_one_gets_the_lease(tmp_path: Path) -> None:
    with ExitStack() as ends:
        racers = [ends.enter_context(start(str(tmp_path), "hold")) for _ in range(3)]
        answers = sorted(said(racer).split()[0] for racer in racers)
        for racer in racers:
            racer.kill()
    assert answers == ["LeaseHeldError", "LeaseHeldError", "held"]
    assert CommitLog(tmp_path).state().token == 1
