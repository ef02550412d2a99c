"""The lease, with real processes: refused, succeeded, overtaken, raced."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipelines.engine.columnar.clock import monotonic_now, wall_now
from pipelines.engine.commits import lease, machine
from pipelines.engine.commits.driver import CommitLog, open_driver
from pipelines.engine.commits.errors import LeaseHeldError, LeaseLostError
from pipelines.engine.commits.history import CommitKind, Entry, State
from pipelines.engine.commits.lease import Claim, Holder, HolderStanding, Renewal, Sight
from pipelines.engine.commits.machine import Life
from pipelines.engine.commits.paths import CommitsLostError, RootGoneError, commits_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

SECOND = 1_000_000
DAY = 86_400 * SECOND
PROGRAM = Path(__file__).with_name("driver_process.py")
HOLDER = Holder("there", "another boot/1", 42, 1_000, "another machine")


def start(*arguments: str, before: Sequence[str] = ()) -> subprocess.Popen[str]:
    """Start a driver in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(PROGRAM.parents[2])}
    command = [*before, sys.executable, str(PROGRAM), *arguments]
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
    ("renewal", "life", "now", "expected"),
    [
        (None, Life.UNTOLD, 30 * SECOND, HolderStanding.HELD),
        (None, Life.UNTOLD, 30 * SECOND + 1, HolderStanding.LAPSED),
        (Renewal(3, 10 * SECOND), Life.UNTOLD, 40 * SECOND, HolderStanding.HELD),
        (Renewal(3, 10 * SECOND), Life.UNTOLD, 41 * SECOND, HolderStanding.LAPSED),
        (Renewal(3, 86_400 * SECOND), Life.UNTOLD, 41 * SECOND, HolderStanding.AHEAD),
        (Renewal(3, 60 * SECOND), Life.UNTOLD, 41 * SECOND, HolderStanding.HELD),
        (Renewal(3, 0, "released"), Life.UNTOLD, 1, HolderStanding.RELEASED),
        (Renewal(3, 0, "released"), Life.GONE, 1, HolderStanding.RELEASED),
        (Renewal(3, 0, "released", monotonic_now()), Life.ALIVE, 1, HolderStanding.RELEASED),
        (Renewal(3, 0), Life.GONE, 1, HolderStanding.GONE),
        (Renewal(3, 0), Life.ALIVE, 31 * SECOND, HolderStanding.LAPSED),
        (Renewal(3, 86_400 * SECOND, "held", 0), Life.ALIVE, 0, HolderStanding.AHEAD),
    ],
)
def test_a_lease_is_told_at_a_glance_by_end_process_and_renewals(
    renewal: Renewal | None, life: Life, now: int, expected: HolderStanding
) -> None:
    assert Sight(row(), renewal, life).standing(now) is expected


def test_what_lives_here_is_told_by_the_clock_of_this_boot_whatever_the_wall_clock_says() -> None:
    fresh = Renewal(3, 86_400 * SECOND, "held", monotonic_now())
    assert Sight(row(), fresh, Life.ALIVE).standing(0) is HolderStanding.HELD
    assert Sight(row(), fresh, Life.ALIVE).standing(10 * 86_400 * SECOND) is HolderStanding.HELD


def test_a_renewal_of_another_lease_does_not_count(tmp_path: Path) -> None:
    for token in (2, 4):
        lease.write_renewal(tmp_path, Renewal(token, 5, "released"))
        assert lease.look(tmp_path, row(), lease.this_process()).renewal is None
    lease.write_renewal(tmp_path, Renewal(3, 5))
    assert lease.look(tmp_path, row(), lease.this_process()).renewal == Renewal(3, 5)


def test_a_process_is_told_from_a_later_one_with_its_number() -> None:
    me = lease.this_process()
    assert lease.life(me, me, 0) is Life.ALIVE
    assert lease.life(replace(me, started=me.started + 1), me, 0) is Life.GONE


def test_where_processes_cannot_be_looked_up_nothing_is_told() -> None:
    me = lease.this_process()
    boot = machine.boot_of(me.machine)
    assert lease.life(replace(me, machine=f"{boot}/1"), me, 0) is Life.UNTOLD
    assert lease.life(replace(me, machine="other boot/1", machine_id="another"), me, 0) is Life.UNTOLD
    assert lease.life(replace(me, machine=""), me, 0) is Life.UNTOLD
    assert lease.life(replace(me, machine=""), replace(me, machine=""), 0) is Life.UNTOLD


def test_a_holder_from_before_a_reboot_of_this_machine_is_gone() -> None:
    me = lease.this_process()
    before = replace(me, machine="other boot/1", machine_id="this")
    here = replace(me, machine_id="this")
    assert lease.life(before, here, machine.booted_at() - 1) is Life.GONE


def test_another_machine_with_a_copy_of_the_machine_id_is_not_taken_for_a_reboot() -> None:
    me = lease.this_process()
    copied = replace(me, machine="other boot/1", machine_id="this")
    assert lease.life(copied, replace(me, machine_id="this"), wall_now()) is Life.UNTOLD


def test_two_machines_without_an_id_are_not_one() -> None:
    me = lease.this_process()
    assert lease.life(replace(me, machine="b/1", machine_id=""), replace(me, machine_id=""), 0) is Life.UNTOLD


def test_a_row_of_an_earlier_version_is_read() -> None:
    holder = Holder.read({"host": "there", "machine": "boot/1", "pid": 42, "started": 7})
    assert holder == Holder("there", "boot/1", 42, 7, "")
    assert lease.life(holder, lease.this_process(), 0) is Life.UNTOLD
    me = lease.this_process()
    facts = me.facts()
    del facts["machine_id"]
    assert lease.life(Holder.read(facts), me, 0) is Life.ALIVE
    assert Holder.read(me.facts()) == me


def test_a_dead_process_that_nobody_reaped_is_gone() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    deadline = time.monotonic() + 20
    while machine.process_start(process.pid) is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert machine.process_start(process.pid) is None
    assert machine.life_of(process.pid, 1) is Life.GONE
    process.wait()
    assert machine.process_start(process.pid) is None
    assert machine.life_of(process.pid, 1) is Life.GONE


def test_a_process_that_this_user_may_not_see_is_not_taken_for_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    def hidden(_pid: int, _signal: int) -> None:
        raise PermissionError

    # Root sees all, also where /proc hides other users' processes: that one line is what the system would answer.
    monkeypatch.setattr(os, "kill", hidden)
    assert machine.life_of(2**22 + 1, 1) is Life.UNTOLD


def test_a_machine_without_an_id_keeps_one_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "MACHINE_IDS", ())
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    first = machine.machine_id()
    assert first == machine.machine_id()
    assert first.endswith(f"@{socket.gethostname()}")
    (tmp_path / "pulseline" / "machine-id").write_text("")
    assert machine.machine_id() not in {"", first, f"@{socket.gethostname()}"}
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert machine.machine_id() == ""


@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel of Linux")
def test_this_machine_and_its_boot_have_names() -> None:
    assert machine.process_space() == machine.process_space() != ""
    assert 0 < machine.booted_at() < wall_now()


def test_half_a_renewal_is_none(tmp_path: Path) -> None:
    assert lease.read_renewal(tmp_path) is None
    whole = '{"token": 1, "renewed": 2, "state": "held", "monotonic": 3}'
    for torn in ("", whole[:14], "\0" * len(whole), "[]", "1", '{"token": null, "renewed": 2, "state": ""}', "\ufffe"):
        lease.renewal_path(tmp_path).write_text(torn)
        assert lease.read_renewal(tmp_path) is None
    lease.renewal_path(tmp_path).write_bytes(b"\xff\xfe")
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


def under_way(root: Path, harm: Callable[[], object]) -> None:
    """Harm a run while a driver holds it, and look at its log."""
    with open_driver(root, flow="tiny") as driver:
        harm()
        driver.state()


def test_a_driver_whose_folder_went_away_says_so_whatever_it_met_first(tmp_path: Path) -> None:
    """As a disk that is unmounted takes it away; who makes folders may have made one of its name below."""
    root = tmp_path / "run"

    def made_again() -> None:
        root.rename(tmp_path / "again away")
        root.mkdir()
        raise OSError(os.strerror(2))

    for harm in (made_again, lambda: root.rename(tmp_path / "away")):
        with pytest.raises(RootGoneError, match="is gone: see whether its disk is still mounted"):
            under_way(root, harm)


def test_a_log_that_is_gone_while_its_folder_stands_is_told(tmp_path: Path) -> None:
    with pytest.raises(CommitsLostError, match="the whole table is gone"):
        under_way(tmp_path, lambda: commits_path(tmp_path).rename(tmp_path / "away"))


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


def begun_log(root: Path) -> CommitLog:
    """Begin the log of a run."""
    log = CommitLog(root)
    log.create()
    log.state()
    return log


@pytest.fixture
def far(tmp_path: Path) -> Path:
    """Give a run whose lease is held by a process of another machine, with a clock that is a day ahead."""
    log = begun_log(tmp_path)
    log.append(replace(row(wall_now() + DAY), token=1))
    lease.write_renewal(tmp_path, Renewal(1, wall_now() + DAY, "held", monotonic_now() + DAY))
    return tmp_path


@pytest.fixture
def sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Watch for one second instead of thirty, to spare time."""
    monkeypatch.setattr(lease, "LAPSES_AFTER", SECOND)
    monkeypatch.setattr(lease, "LOOK_EVERY", SECOND // 20)


def renewing(root: Path, state: str = "held", after: float = 0.3) -> threading.Timer:
    """Renew the lease of `far` after some seconds, as its process would."""
    renewal = Renewal(1, wall_now() + DAY + SECOND, state, monotonic_now() + DAY + SECOND)
    timer = threading.Timer(after, lease.write_renewal, (root, renewal))
    timer.start()
    return timer


@pytest.mark.usefixtures("sooner")
def test_a_clock_that_is_a_day_ahead_locks_nobody_out(far: Path) -> None:
    told: list[str] = []
    with open_driver(far, flow="numbers", tell=told.append) as driver:
        assert driver.token == 2
    assert len(told) == 1
    assert re.fullmatch(
        r"process 42 on there holds the lease since \S+; waiting up to 1 s to see whether it still renews", told[0]
    )


def test_who_renews_while_watched_is_refused_as_soon_as_it_is_seen(far: Path) -> None:
    begun, timer = time.monotonic(), renewing(far)
    with pytest.raises(LeaseHeldError, match="process 42 on there"), open_driver(far, flow="numbers"):
        pass
    assert time.monotonic() - begun < 10
    timer.join()


def test_who_gives_it_back_while_watched_is_succeeded_as_soon_as_it_is_seen(far: Path) -> None:
    begun, timer = time.monotonic(), renewing(far, "released")
    with open_driver(far, flow="numbers") as driver:
        assert driver.token == 2
    assert time.monotonic() - begun < 10
    timer.join()


@pytest.mark.usefixtures("sooner")
@pytest.mark.parametrize("content", [b"", b'{"token": 1, "rene', b"\0" * 60])
def test_a_renewal_that_a_power_cut_left_torn_is_none(far: Path, content: bytes) -> None:
    whole = lease.renewal_path(far).read_bytes()
    timer = threading.Timer(0.3, lease.renewal_path(far).write_bytes, (content,))
    again = threading.Timer(0.6, lease.renewal_path(far).write_bytes, (whole,))
    timer.start()
    again.start()
    with open_driver(far, flow="numbers") as driver:
        assert driver.token == 2
        again.join()


@pytest.mark.usefixtures("sooner")
def test_of_watchers_one_gets_the_lease_and_the_others_are_refused_by_it(far: Path) -> None:
    answers: list[str] = []
    done = threading.Event()

    def ask() -> None:
        try:
            with open_driver(far, flow="numbers", tell=lambda _: None):
                answers.append("held")
                done.wait(20)
        except LeaseHeldError as error:
            answers.append(error.holder)

    watchers = [threading.Thread(target=ask) for _ in range(3)]
    for each in watchers:
        each.start()
    deadline = time.monotonic() + 20
    while len(answers) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    done.set()
    for each in watchers:
        each.join()
    assert sorted(answers) == ["held", *[str(lease.this_process())] * 2]
    assert CommitLog(far).state().token == 2


@pytest.mark.usefixtures("sooner")
def test_a_driver_that_was_stopped_for_long_is_watched_and_succeeded(
    tmp_path: Path, held: subprocess.Popen[str]
) -> None:
    held.send_signal(signal.SIGSTOP)
    time.sleep(1.1)
    told: list[str] = []
    with open_driver(tmp_path, flow="numbers", tell=told.append) as driver:
        assert f"process {held.pid} on" in told[0]
        held.send_signal(signal.SIGCONT)
        tell(held)
        assert said(held).startswith("LeaseLostError flow numbers must be written under its newest lease, number 2")
        driver.publish(1)


def test_a_driver_that_wakes_while_it_is_watched_keeps_its_lease(
    tmp_path: Path, held: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    held.send_signal(signal.SIGSTOP)
    asleep = Renewal(1, wall_now() - DAY, "held", monotonic_now() - 31 * SECOND)
    lease.write_renewal(tmp_path, asleep)
    monkeypatch.setattr(lease, "LOOK_EVERY", SECOND // 20)
    woken: list[str] = []

    def wake(text: str) -> None:
        woken.append(text)
        held.send_signal(signal.SIGCONT)

    with pytest.raises(LeaseHeldError), open_driver(tmp_path, flow="numbers", tell=wake):
        pass
    assert len(woken) == 1
    tell(held)
    assert said(held) == "published"


@pytest.mark.usefixtures("sooner")
def test_a_watcher_that_was_stopped_itself_has_not_watched_in_between(
    far: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first pause takes as long as all looks together; the holder, stopped with it, is a little slower to wake.
    sleep, slept = time.sleep, list[float]()

    def long(seconds: float) -> None:
        sleep(seconds if slept else 1.1)
        slept.append(seconds)

    monkeypatch.setattr("pipelines.engine.commits.lease.time.sleep", long)
    timer = renewing(far, after=1.4)
    with pytest.raises(LeaseHeldError), open_driver(far, flow="numbers"):
        pass
    timer.join()


def test_a_lease_from_before_a_reboot_is_taken_at_once(tmp_path: Path) -> None:
    log, me = begun_log(tmp_path), lease.this_process()
    before = replace(me, machine="11111111-2222/4026531836", machine_id=machine.machine_id() or "this")
    booted = machine.booted_at() - 60 * SECOND
    log.append(replace(row(booted), token=1, detail=before.facts()))
    lease.write_renewal(tmp_path, Renewal(1, booted + 5 * SECOND, "held", monotonic_now() + DAY))
    told: list[str] = []
    with open_driver(tmp_path, flow="numbers", tell=told.append) as driver:
        assert driver.token == 2
    assert told == []


@pytest.mark.usefixtures("sooner")
def test_a_home_of_an_earlier_version_whose_driver_is_on_another_boot_opens(tmp_path: Path) -> None:
    log = begun_log(tmp_path)
    facts = {"host": socket.gethostname(), "machine": "11111111-2222/4026531836", "pid": 1, "started": 5}
    log.append(replace(row(wall_now() + DAY), token=1, detail=facts))
    lease.renewal_path(tmp_path).write_text(f'{{"token": 1, "renewed": {wall_now() + DAY}, "state": "held"}}')
    with open_driver(tmp_path, flow="numbers", tell=lambda _: None) as driver:
        assert driver.token == 2


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs the right to make a process namespace")
def test_a_process_of_another_container_of_this_machine_is_watched_not_looked_up(tmp_path: Path) -> None:
    inside = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    with start(str(tmp_path), "hold", before=inside) as process:
        assert said(process) == "held"
        told: list[str] = []
        begun = time.monotonic()
        with pytest.raises(LeaseHeldError), open_driver(tmp_path, flow="numbers", tell=told.append):
            pass
        assert len(told) == 1
        assert time.monotonic() - begun < 20
        process.kill()


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
    assert [row.state for row in log.rows()] == [State.FORMAT, State.LEASE, State.LEASE]
    assert len(list(log.path.glob("e*.parquet"))) == 3


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
