"""The spool of a socket: what was announced is there at the next start, once, whatever process was killed when."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.engine.sources.opening import Loss
from pipelines.engine.sources.socket.errors import SpoolBrokenError, SpoolDamagedError, SpoolTakenError, SpoolWriteError
from pipelines.engine.sources.socket.spool import GONE, UNTOLD, Spool
from pipelines.engine.sources.socket.spool_files import Event, SpoolFile, read_segments
from pipelines.operators.rows import MAX_TIME, MIN_TIME
from tests.wide import drawn as examples_of

if TYPE_CHECKING:
    from pathlib import Path


def opened(  # noqa: PLR0913 - what a spool is
    folder: Path, offset: int = 0, number: int = 0, now: int = 5, most: int = 400, loss: Loss = Loss.STOP
) -> Spool:
    return Spool(folder, offset, number, most, lambda: now, segment_bytes=10, loss=loss)


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
    assert [segment.why for segment in read_segments(tmp_path)[0]] == ["", "", UNTOLD]
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
    assert [segment.number for segment in read_segments(tmp_path)[0]] == [2, 3]
    spool.release(30, 2)
    assert [segment.number for segment in read_segments(tmp_path)[0]] == [3]
    spool.release(30, 3)
    spool.broken("bye")
    spool.release(30, 4)
    assert [(segment.number, segment.offset) for segment in read_segments(tmp_path)[0]] == [(4, 30)]
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


@pytest.mark.parametrize("size", [0, 1, 3, 20, 23, 24, 60])
def test_a_header_that_was_never_finished_is_no_segment_wherever_its_writer_died(tmp_path: Path, size: int) -> None:
    spool = opened(tmp_path)
    spool.connected()
    spool.append(b"abc")
    lost = SpoolFile(number=2, offset=3, event=Event.GOES_ON, at=5)
    (tmp_path / "0000000002.spool").write_bytes(lost.header()[:size])
    assert told(opened(tmp_path)) == [(Event.CONNECTED, b"abc"), (Event.BROKEN, b"")]


@pytest.mark.parametrize("left", [1, 10, 23, 24, 26])
def test_an_append_that_was_never_finished_was_never_announced(tmp_path: Path, left: int) -> None:
    spool = opened(tmp_path)
    spool.connected()
    spool.append(b"abc")
    whole = (tmp_path / "0000000001.spool").read_bytes()
    spool.append(b"def")
    (tmp_path / "0000000001.spool").write_bytes((tmp_path / "0000000001.spool").read_bytes()[: len(whole) + left])
    again = opened(tmp_path)
    assert told(again) == [(Event.CONNECTED, b"abc"), (Event.BROKEN, b"")]
    (tmp_path / "0000000002.spool").unlink()
    (tmp_path / "0000000001.spool").write_bytes(whole + bytes(left))
    assert told(opened(tmp_path)) == [(Event.CONNECTED, b"abc"), (Event.BROKEN, b"")], "room that was never written"


def flipped(path: Path, bit: int) -> bytes:
    """Flip a bit of a file, and give what it holds now."""
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)
    return bytes(data)


def test_a_flipped_bit_of_the_newest_file_is_told_by_name_and_nothing_is_deleted(tmp_path: Path) -> None:
    spool = opened(tmp_path / "made")
    spool.connected()
    for data in (b"one\ntwo\nth", b"ree\n", b"fo"):
        spool.append(data)
    newest = "0000000002.spool"
    size = (tmp_path / "made" / newest).stat().st_size
    for bit in range(8 * size):
        folder = tmp_path / str(bit)
        shutil.copytree(tmp_path / "made", folder)
        damaged = flipped(folder / newest, bit)
        with pytest.raises(SpoolDamagedError, match=f"{newest} has other bits than were written"):
            opened(folder)
        assert (folder / newest).read_bytes() == damaged
        assert len(list(folder.iterdir())) == 2, "nothing is begun beside it"
        again = opened(folder, loss=Loss.ACCEPT)
        came = b"".join(data for _, data in told(again))
        assert came in {b"one\ntwo\nth", b"one\ntwo\nthree\n", b"one\ntwo\nthfo"}, "whole appends, of those that came"
        starts = [part.start for part in again.parts(0, 0)]
        assert again.end > 14, "what is lost keeps its place"
        assert starts[-1] == again.end, "so that whoever lands sees that it is missing"
        again.connected()
        again.append(b"more")
        assert told(again)[-1] == (Event.CONNECTED, b"more")
        again.close()
        assert [path.read_bytes() for path in folder.glob(f"{newest}*")] == [damaged], "what is damaged stays"


def test_damage_to_what_has_landed_stops_nobody(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    spool.connected()
    for _ in range(2):
        spool.append(b"01234")
    for _ in range(2):
        spool.append(b"56789")
    first = (tmp_path / "0000000001.spool").read_bytes()
    flipped(tmp_path / "0000000001.spool", 8 * (len(first) - 1))
    with pytest.raises(SpoolDamagedError, match="in bytes 5 to 9"):
        opened(tmp_path, 7, 1)
    assert told(opened(tmp_path, 10, 1), 10, 1)[0] == (Event.GOES_ON, b"5678956789")


def bare(folder: Path, number: int, data: bytes = b"", **said: object) -> Path:
    """Write a segment as it was written before there were checksums."""
    header = {"offset": 0, "event": "connected", "at": 5, "since": None, "why": ""} | said
    path = folder / f"{number:010}.spool"
    path.write_bytes(json.dumps(header).encode() + b"\n" + data)
    return path


def test_a_spool_without_checksums_is_read_as_it_is(tmp_path: Path) -> None:
    bare(tmp_path, 1, b"one\ntwo\nth")
    newest = bare(tmp_path, 2, b"ree\nfo", offset=10, event="goes on")
    os.utime(newest, ns=(70_000, 70_000))
    spool = opened(tmp_path)
    assert told(spool) == [(Event.CONNECTED, b"one\ntwo\nth"), (Event.GOES_ON, b"ree\nfo"), (Event.BROKEN, b"")]
    assert told(spool, 12, 2) == [(Event.GOES_ON, b"e\nfo"), (Event.BROKEN, b"")]
    assert read_segments(tmp_path)[0][-1].at == 70, "its bytes count as received when the file was last written"
    spool.connected()
    spool.append(b"more")
    assert told(spool, 16, 3) == [(Event.CONNECTED, b"more")]


def test_a_header_of_before_that_is_damaged_is_told_by_name(tmp_path: Path) -> None:
    path = bare(tmp_path, 1, b"one\ntwo\n")
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"why"', b'"whx"'))
    with pytest.raises(SpoolDamagedError, match="in its header"):
        opened(tmp_path)
    path.write_bytes(whole.replace(b"}\n", b"}J"))
    with pytest.raises(SpoolDamagedError, match="in its header"):
        opened(tmp_path)
    error = SpoolDamagedError("spool/0000000007.spool", 4, 9, 80)
    again = pickle.loads(pickle.dumps(error))
    assert (again.number, again.behind, str(again)) == (7, 80, str(error))


def test_instants_never_decrease_whatever_the_clock_does(tmp_path: Path) -> None:
    clock = iter([100, 50, 60, 300, 20, 10, 10, 10])
    spool = Spool(tmp_path, 0, 0, 400, lambda: next(clock))
    spool.connected()
    for data in (b"a", b"b", b"c", b"d"):
        spool.append(data)
    assert [b"".join(part.data for part in spool.parts(0, 0, before)) for before in (100, 101, 300, 301)] == [
        b"",
        b"ab",
        b"ab",
        b"abcd",
    ]
    again = Spool(tmp_path, 0, 0, 400, lambda: 10)
    again.connected()
    again.append(b"e")
    assert (again.newest, [part.data for part in again.parts(0, 0, 300)]) == (300, [b"ab"])


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
    assert [(segment.number, segment.offset, segment.why) for segment in read_segments(tmp_path)[0]] == [(2, 4, GONE)]
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
    with pytest.raises(SpoolBrokenError, match="lacks its bytes 10 to 19"):
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


@settings(max_examples=examples_of(15, 40))
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
