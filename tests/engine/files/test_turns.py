"""A thread that works for another keeps the order, tells of what failed, and is never far behind or ahead."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

import pytest

from pipelines.engine.files.background import BEHIND, Turns, ahead

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def tell(done: list[tuple[int, int]], number: int) -> None:
    done.append((number, threading.get_ident()))


def give(turns: Turns, work: Callable[[], object], times: int) -> None:
    for _ in range(times):
        turns.give(work)


def test_work_is_done_in_the_order_in_which_it_was_given_by_one_other_thread() -> None:
    turns, done = Turns(), list[tuple[int, int]]()
    assert not turns.begun
    for number in range(50):
        turns.give(partial(tell, done, number))
    turns.finish()
    assert [number for number, _ in done] == list(range(50))
    assert len({thread for _, thread in done} - {threading.get_ident()}) == 1


def test_no_more_than_a_few_pieces_wait() -> None:
    turns, go = Turns(), threading.Semaphore(0)
    giver = threading.Thread(target=give, args=(turns, go.acquire, BEHIND + 1))
    giver.start()
    giver.join(0.1)
    assert giver.is_alive(), "it waits for the first"
    for _ in range(BEHIND + 1):
        go.release()
    giver.join(10)
    assert not giver.is_alive()
    turns.finish()


def test_what_failed_is_raised_and_ends_the_thread() -> None:
    turns, before = Turns(), threading.active_count()
    turns.give(partial(divmod, 1, 0))
    with pytest.raises(ZeroDivisionError):
        turns.finish()
    assert threading.active_count() == before
    Turns().finish()


def counting(made: list[int], upto: int) -> Iterator[int]:
    for number in range(upto):
        made.append(number)
        yield number
    if upto == 4:
        message = "broken"
        raise ValueError(message)


def test_values_made_ahead_come_in_order_and_never_far_ahead() -> None:
    made: list[int] = []
    for number in ahead(counting(made, 20)):
        assert len(made) <= number + 1 + BEHIND
    assert made == list(range(20))


def test_an_error_of_what_is_made_ahead_comes_in_its_turn() -> None:
    values = ahead(counting([], 4))
    assert [next(values) for _ in range(4)] == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="broken"):
        next(values)


def test_whoever_stops_early_leaves_no_thread() -> None:
    before = threading.active_count()
    values = ahead(counting([], 20))
    assert next(values) == 0
    values.close()
    assert threading.active_count() == before
