"""A command under guard: its lines, its end, and that nothing of it stays, whoever is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from dags.running import Running

if TYPE_CHECKING:
    from collections.abc import Callable

CHECKOUT = Path(__file__).parents[2]
SOON = 10.0

GRANDCHILD = "import os, time; os.setsid(); print(os.getpid(), flush=True); time.sleep(100)"
"""Leaves its group and its session, as a daemon would."""
FAMILY = f"""\
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", {GRANDCHILD!r}], stdout=subprocess.PIPE, text=True)
print(child.stdout.readline().strip(), flush=True)
"""
DEAF = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
STAY = "time.sleep(100)\n"
POLITE = """\
import signal, sys, time
def end(*_):
    print("ending", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
time.sleep(100)
"""
TASK = """\
import os, sys
from dags.running import Running
running = Running([sys.executable, "-c", sys.argv[1]], grace=float(sys.argv[2]))
print(running.process.pid, flush=True)
for line in running.lines():
    print(line, flush=True)
print("code", running.wait(), flush=True)
"""
PARENT = f"""\
import subprocess, sys
task = subprocess.Popen([sys.executable, "-c", {TASK!r}, *sys.argv[1:]], stdout=subprocess.PIPE, text=True)
print(task.pid, flush=True)
for line in task.stdout:
    print(line, end="", flush=True)
"""


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


def gone(pid: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    return True


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until and not holds():
        time.sleep(0.05)
    return holds()


def test_lines_come_as_they_are_printed_and_the_code_at_the_end() -> None:
    program = "import sys; print('one'); sys.stderr.write('two\\n'); print('three', end=''); sys.exit(3)"
    running = Running(python(program))
    assert sorted(running.lines()) == ["one", "three", "two"]
    assert running.wait() == 3
    assert not running.asked


def test_a_line_comes_before_the_command_ends() -> None:
    running = Running(python(POLITE))
    lines = running.lines()
    assert next(lines) == "ready"
    running.stop()
    assert list(lines) == ["ending"]
    assert running.wait() == 0


@pytest.mark.parametrize(
    ("printed", "result"),
    [
        ('{"a": 1}', {"a": 1}),
        ('{"a": 1}\nsaid later', {"a": 1}),
        ('{"a": 1}\n{"a": 2}', {"a": 2}),
        ("nothing\n[1]\n7", {}),
        ("", {}),
    ],
)
def test_the_result_is_the_last_line_that_is_an_object(printed: str, result: dict[str, int]) -> None:
    running = Running(python(f"print({printed!r})"))
    list(running.lines())
    running.wait()
    assert running.result() == result


def test_words_reach_the_command_as_they_are() -> None:
    word = "a b; echo $HOME `id` && 'x' {{ x }}\n"
    running = Running([*python("import sys; print(repr(sys.argv[1]))"), word])
    assert list(running.lines()) == [repr(word)]


def test_a_command_killed_by_a_signal_has_a_code_that_says_so() -> None:
    running = Running(python("import os; os.kill(os.getpid(), 9)"))
    assert list(running.lines()) == []
    assert running.wait() == 128 + signal.SIGKILL


def test_what_the_command_leaves_behind_is_killed() -> None:
    running = Running(python(FAMILY))
    [left] = (int(line) for line in running.lines())
    running.wait()
    assert gone(left)


def test_a_command_that_does_not_stop_is_killed_with_all_that_it_started() -> None:
    running = Running(python(DEAF + FAMILY + STAY), grace=0.5)
    lines = running.lines()
    left = int(next(lines))
    running.stop()
    assert list(lines) == []
    assert running.wait() == 128 + signal.SIGKILL
    assert gone(left)


@pytest.mark.parametrize("victim", ["parent", "task", "guard"])
def test_nothing_stays_when_somebody_above_is_killed(victim: str) -> None:
    started = subprocess.Popen(
        [*python(PARENT), DEAF + FAMILY + STAY, "0.5"], stdout=subprocess.PIPE, text=True, cwd=CHECKOUT, env=ENVIRONMENT
    )
    assert started.stdout is not None
    task, guard, left = (int(started.stdout.readline()) for _ in range(3))
    family = [guard, left, *(child.pid for child in psutil.Process(guard).children(recursive=True))]
    os.kill({"parent": started.pid, "task": task, "guard": guard}[victim], signal.SIGKILL)
    missed = [pid for pid in family if pid != left or victim != "guard"]
    try:
        assert within(SOON, lambda: all(gone(pid) for pid in missed))
        assert victim == "guard" or within(SOON, lambda: gone(task))
    finally:
        for pid in (*family, task, started.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        started.wait()


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
