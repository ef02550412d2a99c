"""The spool of a socket: what was announced is there at the next start, once, whatever process was killed when."""

from __future__ import annotations

import pickle
import shutil
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.engine.segments import Event, read_segments
from pipelines.engine.spool import GONE, UNTOLD, Spool
from pipelines.engine.spool_errors import SpoolBrokenError, SpoolTakenError, SpoolWriteError
from pipelines.operators.rows import MAX_TIME, MIN_TIME

if TYPE_CHECKING:
    from pathlib import Path


def opened(folder: Path, offset: int = 0, number: int = 0, now: int = 5, most: int = 400) -> Spool:
    return Spool(folder, offset, number, most, lambda: now, segment_bytes=10)


def told(spool: Spool, offset: int = 0, number: int = 0) -> list[tuple[Event, bytes]]:
    return [(part.segment.event, part.data) for part in spool.parts(offset, number)]


def test_what_was_appended_is_there_for_another_process(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    spool.connected()
    for data in (b"one\ntwo\nth", b"ree\n", b"fo"):
        spool.append(data)
    wanted = [(Event.CONNECTED, b"one\ntwo\nth"), (Event.GOES_ON, b"ree\nfo")]
    assert told(spool) == wanted
    assert told(spool, 8, 1) == [(Event.CONNECTED, b"th"), (Event.GOES_ON, b"ree\nfo")]
    again = opened(tmp_path)
    assert told(again) == [*wanted, (Event.BROKEN, b"")]
    assert (again.end, again.waiting, again.is_connected) == (16, 16, False)
    assert [segment.why for segment in read_segments(tmp_path)] == ["", "", UNTOLD]
    again.connected()
    again.append(b"ur")
    assert told(again, 14, 3) == [(Event.GOES_ON, b"fo"), (Event.CONNECTED, b"ur")]
    assert [(part.is_new, part.start) for part in again.parts(14, 3)] == [(False, 14), (True, 16)]


def test_landed_segments_are_removed_and_the_last_one_stays(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    spool.connected()
    for _ in range(3):
        spool.append(b"0123456789")
    spool.release(15, 3)
    assert [segment.number for segment in read_segments(tmp_path)] == [2, 3]
    spool.release(30, 2)
    assert [segment.number for segment in read_segments(tmp_path)] == [3]
    spool.release(30, 3)
    spool.broken("bye")
    spool.release(30, 4)
    assert [(segment.number, segment.offset) for segment in read_segments(tmp_path)] == [(4, 30)]
    assert opened(tmp_path, 30, 4).end == 30


def test_a_full_spool_has_no_room_until_something_landed(tmp_path: Path) -> None:
    spool = opened(tmp_path, most=20)
    spool.connected()
    assert spool.room() == 20
    spool.append(b"0" * 20)
    assert spool.room(0.01) == 0
    spool.release(15, 1)
    assert (spool.room(), spool.waiting) == (15, 5)


def test_spans_without_a_connection_are_known_until_they_are_told(tmp_path: Path) -> None:
    spool = opened(tmp_path, now=10)
    assert spool.gaps(0) == ((MIN_TIME, MAX_TIME),)
    spool.connected()
    assert spool.gaps(0) == ((MIN_TIME, 10),)
    spool.broken("bye")
    spool._now = lambda: 30
    assert spool.gaps(10) == ((10, MAX_TIME),)
    spool.connected()
    assert spool.gaps(20) == ((10, 30),)
    assert spool.gaps(30) == ()


def test_a_header_that_was_never_finished_is_no_segment(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    spool.connected()
    spool.append(b"abc")
    (tmp_path / "0000000002.spool").write_bytes(b'{"offset": 3, "ev')
    again = opened(tmp_path)
    assert told(again) == [(Event.CONNECTED, b"abc"), (Event.BROKEN, b"")]


def test_a_process_that_was_overtaken_spoils_nothing(tmp_path: Path) -> None:
    stopped = opened(tmp_path)
    stopped.connected()
    stopped.append(b"abc\n")
    running = opened(tmp_path)
    stopped.append(b"too late\n")
    running.connected()
    running.append(b"def\n")
    assert told(running) == [(Event.CONNECTED, b"abc\n"), (Event.BROKEN, b""), (Event.CONNECTED, b"def\n")]
    with pytest.raises(SpoolTakenError, match=r"began segment 2 .* was overtaken"):
        stopped.append(b"again")
    running.broken("bye")
    assert told(opened(tmp_path))[0] == (Event.CONNECTED, b"abc\n")


def test_a_spool_that_is_gone_goes_on_behind_what_landed_and_says_so(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    spool.connected()
    spool.append(b"0123456789")
    shutil.rmtree(tmp_path)
    again = opened(tmp_path, 4, 1)
    assert [(segment.number, segment.offset, segment.why) for segment in read_segments(tmp_path)] == [(2, 4, GONE)]
    again.connected()
    again.append(b"x")
    assert (again.end, told(again, 4, 1)[1:]) == (5, [(Event.CONNECTED, b"x")])


def test_missing_bytes_that_have_not_landed_are_named(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    spool.connected()
    for _ in range(3):
        spool.append(b"0123456789")
    kept = (tmp_path / "0000000002.spool").read_bytes()
    (tmp_path / "0000000002.spool").write_bytes(kept[:-4])
    with pytest.raises(SpoolBrokenError, match="lacks its bytes 16 to 19"):
        opened(tmp_path)
    (tmp_path / "0000000002.spool").unlink()
    with pytest.raises(SpoolBrokenError, match="lacks its bytes 10 to 19"):
        opened(tmp_path)
    (tmp_path / "0000000001.spool").unlink()
    assert opened(tmp_path, 5, 1).begins == 20
    error = SpoolBrokenError("here", 5, 20)
    again = pickle.loads(pickle.dumps(error))
    assert (again.start, again.end, str(again)) == (5, 20, str(error))


def test_storage_that_takes_nothing_stops_the_spool(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    spool.connected()
    spool.append(b"abc")
    spool.close()
    with pytest.raises(SpoolWriteError, match="what was spooled before is safe"):
        spool.append(b"def")
    assert spool.end == 3


STEPS = st.lists(st.one_of(st.binary(min_size=1, max_size=12), st.sampled_from(["cut", "killed", "landed"])))


@settings(max_examples=40)
@given(steps=STEPS)
def test_bytes_come_out_once_and_in_order_through_cuts_kills_and_removals(
    tmp_path_factory: pytest.TempPathFactory, steps: list[bytes | str]
) -> None:
    folder = tmp_path_factory.mktemp("spool")
    spool, sent, landed, offset, number = opened(folder, most=10_000), b"", b"", 0, 0
    spool.connected()
    for step in [*steps, "landed"]:
        if isinstance(step, bytes):
            spool.append(step)
            sent += step
        elif step == "landed":
            for part in spool.parts(offset, number):
                landed += part.data
                offset, number = part.start + len(part.data), part.segment.number
            assert (landed, offset) == (sent, len(sent))
            spool.release(offset, number)
        else:
            if step == "cut":
                spool.broken("cut")
            else:
                spool = opened(folder, offset, number, most=10_000)
            spool.connected()
