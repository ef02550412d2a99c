"""A socket under the real clock: each line that was spooled lands once, and what nobody heard is told as a range."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipelines.engine.landing.manifest import read_sequence
from pipelines.engine.landing.progress import Position
from pipelines.engine.sources.opening import Loss
from pipelines.engine.sources.socket import feed as socket_feed
from pipelines.engine.sources.socket.errors import SpoolBrokenError, SpoolDamagedError, SpoolWriteError
from pipelines.engine.sources.state import read_state
from tests.engine.sources.folders import lines_of, rows_of
from tests.engine.sources.sockets import AT, Listening, Sender, socket_flow, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipelines.engine.landing.sequence import LandedSequence

CHECKOUT = Path(__file__).parents[3]


def csv_of(*values: object) -> str:
    return "".join(f"a,{AT},{value}\n" for value in values)


def values_of(sequence: LandedSequence) -> list[tuple[int, int]]:
    return [(row["place"], row["v"]) for row in rows_of(sequence)]


@pytest.fixture
def sender() -> Iterator[Sender]:
    """Give a server that nobody has connected to yet."""
    made = Sender()
    yield made
    made.close()


@pytest.fixture
def heard(tmp_path: Path, sender: Sender) -> Iterator[Listening]:
    """Give a landing that is connected to the sender."""
    stand = Listening(tmp_path, socket_flow(sender.port))
    stand.connect(sender)
    yield stand
    stand.feed.close()


def test_whole_lines_land_in_their_order_one_tick_before_their_reading(heard: Listening, sender: Sender) -> None:
    first = csv_of(1, 2)
    sender.send(first + "\n" + csv_of(3)[:9])
    heard.spooled(len(first) + 10)
    sequence = heard.land()
    assert values_of(sequence) == [(1, 1), (2, 2)]
    assert {row["arrival"].microsecond for row in rows_of(sequence)} == {sequence.end - 1}
    sender.send(csv_of(3)[9:])
    heard.spooled(len(first) + 1 + len(csv_of(3)))
    assert values_of(heard.land()) == [(1, 3)]
    idle = heard.land()
    end = len(first) + 1 + len(csv_of(3))
    positions = (Position("bytes", end, end), Position("segments", 1, 1), Position("inside", 0, 0))
    assert (idle.sources["rows"].rows, idle.sources["rows"].positions) == (0, positions)
    assert read_sequence(idle.folder.parent, idle.id) == idle
    assert heard.waiting == {"rows": (0, ())}


def test_json_lines_land_as_those_of_a_folder_do(tmp_path: Path, sender: Sender) -> None:
    stand = Listening(tmp_path, socket_flow(sender.port, "json"))
    stand.connect(sender)
    lines = [b'{"key": "a", "time": "%s", "v": 1}' % AT.encode(), b"{nonsense", b'{"key": "b", "v": 2, "w": 0}']
    lines += [b'{"v": 3}', b"\xff\r", b'{"key": "c", "v": "x"}']
    data = b"\n".join([*lines, b""])
    sender.send(data)
    stand.spooled(len(data))
    sequence = stand.land()
    assert values_of(sequence) == [(1, 1), (3, 2)]
    assert lines_of(sequence) == [
        ("unreadable_row", "dropped", 2, lines[1]),
        ("null_key", "dropped", 4, None),
        ("unreadable_row", "dropped", 5, lines[4]),
        ("unreadable_row", "dropped", 6, lines[5]),
        ("new_column", "noted", 7, b'{"column":"w","rows":1,"type":"int64"}'),
    ]
    where = f"byte {len(lines[0]) + 1} of the spool: "
    assert where in sequence.ledger_rows()["row"][0].as_py()
    stand.feed.close()


def test_csv_lines_that_are_none_are_told_with_their_bytes(heard: Listening, sender: Sender) -> None:
    wrong = [b"a,b", b'a,"b', b"a,%s,x" % AT.encode(), b"a\r,b,1", b'"a', b"\xff,,1"]
    data = b"\n".join([csv_of(1).encode()[:-1], *wrong, csv_of(2).encode()])
    sender.send(data)
    heard.spooled(len(data))
    sequence = heard.land()
    assert values_of(sequence) == [(1, 1), (8, 2)]
    assert lines_of(sequence) == [("unreadable_row", "dropped", at, raw) for at, raw in enumerate(wrong, start=2)]


def test_a_broken_connection_is_told_as_a_range_and_its_time_is_blind(heard: Listening, sender: Sender) -> None:
    heard.now = 12
    sender.send(csv_of(1) + "a,half")
    heard.spooled(len(csv_of(1)) + 6)
    sender.close()
    until(lambda: not heard.spool.is_connected, "the end is noticed")
    heard.now = 37
    sequence = heard.land()
    assert sequence.sources["rows"].blind_spans == (), "the connection broke after this reading"
    assert (values_of(sequence), lines_of(sequence)) == ([], []), "and nothing had come before it"
    sequence = heard.land()
    assert sequence.sources["rows"].blind_spans == ((12, 20),)
    assert values_of(sequence) == [(1, 1)]
    assert lines_of(sequence) == [("unfinished_line", "dropped", 2, b"a,half")]
    again = Sender(sender.port).accept()
    again.send(csv_of(2))
    heard.spooled(2 * len(csv_of(1)) + 6)
    sequence = heard.land()
    assert sequence.sources["rows"].blind_spans == ((20, 30),)
    assert (values_of(sequence), lines_of(sequence)) == ([], []), "the connection is back after this reading"
    sequence = heard.land()
    assert sequence.sources["rows"].blind_spans == ((30, 37),)
    assert values_of(sequence) == [(2, 2)]
    ((reason, action, place, raw),) = lines_of(sequence)
    assert (reason, action, place) == ("disconnected", "noted", 1)
    facts = {"from": "1970-01-01T00:00:00.000012Z", "to": "1970-01-01T00:00:00.000037Z", "offset": len(csv_of(1)) + 6}
    assert json.loads(raw) == facts | {"why": "the other side hung up"}
    assert heard.land().sources["rows"].blind_spans == ()
    told = [line.partition(";")[0] for line in heard.told if "attempt" not in line.partition(";")[0]]
    connected = f"source rows: connected to 127.0.0.1:{sender.port}"
    assert (told[0], told[-1]) == (connected, connected)
    again.close()


def test_who_is_not_there_is_tried_again_and_again(tmp_path: Path, sender: Sender) -> None:
    sender.close()
    stand = Listening(tmp_path, socket_flow(sender.port))
    stand.start()
    until(lambda: len(stand.told) >= 3, "three attempts")
    waits = [line.rpartition("in ")[2] for line in stand.told[:3]]
    assert waits == ["0.1 s", "0.2 s", "0.4 s"]
    assert stand.land().sources["rows"].blind_spans == ((0, 10),)
    state = read_state(tmp_path, "rows")
    assert state is not None
    assert (state["state"], state["waiting_bytes"]) == ("waiting", 0)
    late = Sender(sender.port).accept()
    late.send(csv_of(1))
    stand.spooled(len(csv_of(1)))
    assert values_of(stand.land()) == [(1, 1)]
    stand.feed.close()
    late.close()
    assert lines_of(stand.land()) == [], "nobody was heard before, so nothing can be missing"


def test_a_full_spool_pushes_back_and_drops_nothing(tmp_path: Path, sender: Sender) -> None:
    stand = Listening(tmp_path, socket_flow(sender.port, max_bytes=1 << 18))
    stand.connect(sender)
    data = csv_of(*range(400_000)).encode()
    sent = sender.send_what_is_taken(data)
    assert sent < len(data)
    assert stand.spool.waiting == 1 << 18
    assert any("the spool is full" in line for line in stand.told)
    landed: list[int] = []
    whole = data[:sent].count(b"\n")
    end = time.monotonic() + 30
    sequence = stand.land()
    assert stand.waiting == {"rows": (0, ())}
    while len(landed) < whole:
        landed += [value for _, value in values_of(sequence)]
        assert time.monotonic() < end, "all of it lands"
        sequence = stand.land()
    assert landed == list(range(whole))
    assert len(list((tmp_path / "spool" / "rows").iterdir())) <= 6
    stand.feed.close()


def test_a_backlog_lands_line_by_line_and_says_what_waits(heard: Listening, sender: Sender) -> None:
    data = csv_of(*range(5)) + "no,line\n" + csv_of(5)
    sender.send(data)
    heard.spooled(len(data))
    line = len(csv_of(0))
    assert values_of(heard.land(limit_rows=2)) == [(1, 0), (2, 1)]
    assert heard.waiting == {"rows": (len(data) - 2 * line, ())}
    assert values_of(heard.land(limit_rows=2)) == [(1, 2), (2, 3)]
    assert values_of(heard.land(limit_rows=3)) == [(1, 4), (3, 5)]
    assert heard.waiting == {"rows": (0, ())}


@pytest.mark.parametrize("pieces", [500, 1_723, 100_000])
def test_a_line_that_is_too_long_is_told_in_pieces_however_it_came(
    tmp_path: Path, sender: Sender, pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_feed, "LINE_BYTES", 4_096)
    stand = Listening(tmp_path, socket_flow(sender.port, max_bytes=1 << 20))
    stand.connect(sender)
    line = csv_of(9).encode()
    data = csv_of(1).encode() + b"x" * 4_095 + b"\n" + b"y" * 9_000 + b"\n" + b"z" * 4_096 + line + csv_of(2).encode()
    found: list[tuple[str, int]] = []
    rows: list[int] = []
    for at in range(0, len(data), pieces):
        sender.send(data[at : at + pieces])
        stand.spooled(min(at + pieces, len(data)))
        sequence = stand.land()
        found += [(reason, len(raw)) for reason, _, _, raw in lines_of(sequence)]
        rows += [value for _, value in values_of(sequence)]
    sizes = [4_095, 4_096, 4_096, 808, 4_096, len(line) - 1]
    assert (rows, found) == ([1, 2], [("unreadable_row", size) for size in sizes])
    stand.feed.close()


def test_a_stop_is_a_broken_connection_and_a_restart_goes_on_where_sequences_ended(
    heard: Listening, sender: Sender
) -> None:
    sender.send(csv_of(1, 2))
    heard.spooled(2 * len(csv_of(1)))
    assert values_of(heard.land(limit_rows=1)) == [(1, 1)]
    heard.feed.close()
    heard.open()
    heard.connect(sender)
    sender.send(csv_of(3))
    heard.spooled(3 * len(csv_of(1)))
    sequence = heard.land()
    assert values_of(sequence) == [(1, 2), (3, 3)]
    ((reason, _, place, raw),) = lines_of(sequence)
    assert (reason, place, json.loads(raw)["why"]) == ("disconnected", 2, "the stream was stopped")


def test_a_spool_that_cannot_be_written_stops_the_landing(heard: Listening, sender: Sender) -> None:
    heard.spool.close()
    sender.send(csv_of(1))
    until(lambda: heard.feed._receiver.error is not None, "the thread ends")  # type: ignore[union-attr]
    with pytest.raises(SpoolWriteError):
        heard.land()


def test_landed_bytes_that_are_to_land_again_and_are_gone_stop_the_landing(heard: Listening, sender: Sender) -> None:
    """See what becomes of a landing that lost its last sequences: their bytes have left the spool."""
    size = len(csv_of(1))
    for value in range(1, 4):
        sender.send(csv_of(value))
        heard.spooled(value * size)
        heard.land()
        if value == 1:
            sender.hang_up()
            sender.accept()
    heard.land()
    heard.feed.close()
    heard.open()
    heard.landing.known("rows").ends.update(bytes=0, segments=0)
    with pytest.raises(SpoolBrokenError, match=f"lacks its bytes 0 to {size - 1}"):
        heard.land()
    heard.loss = Loss.ACCEPT
    heard.open()
    heard.landing.known("rows").ends.update(bytes=0, segments=0)
    sequence = heard.land()
    assert values_of(sequence) == [(3, 2), (4, 3)]
    assert [line[:3] for line in lines_of(sequence)] == [("offsets_lost", "noted", 1), ("disconnected", "noted", 2)]


def test_nothing_lands_under_a_reading_that_it_came_after(heard: Listening, sender: Sender) -> None:
    size = len(csv_of(1))
    for value, now in enumerate((7, 12, 19, 20, 3)):
        heard.now = now
        sender.send(csv_of(value)[: size // 2])
        heard.spooled(value * size + size // 2)
        heard.now = max(now, 8)
        sender.send(csv_of(value)[size // 2 :])
        heard.spooled((value + 1) * size)
    assert values_of(heard.land()) == [(1, 0)]
    assert heard.waiting == {"rows": (0, ())}, "what came later is no backlog of this reading"
    assert values_of(heard.land(limit_rows=1)) == [(1, 1)]
    assert heard.waiting != {"rows": (0, ())}
    heard.feed.close()
    heard.open()
    heard.connect(sender)
    assert values_of(heard.land()) == [(1, 2), (2, 3), (3, 4)], "and the clock that was set back moved nothing"


def test_rows_that_a_damaged_file_took_along_are_told_and_the_others_land(heard: Listening, sender: Sender) -> None:
    pieces = [csv_of(1), csv_of(2) + csv_of(3)[:9], csv_of(3)[9:] + csv_of(4), csv_of(5)]
    for at, piece in enumerate(pieces, start=1):
        sender.send(piece)
        heard.spooled(sum(map(len, pieces[:at])))
    heard.feed.close()
    path = heard.base / "spool" / "rows" / "0000000001.spool"
    path.write_bytes(path.read_bytes().replace(b",2\n", b",3\n"))
    heard.open()
    first, last = len(pieces[0]), len(pieces[0]) + len(pieces[1]) - 1
    with pytest.raises(SpoolDamagedError, match=f"{path.name} has other bits than were written, in bytes {first} to"):
        heard.land()
    heard.loss = Loss.ACCEPT
    heard.open()
    sequence = heard.land()
    assert [value for _, value in values_of(sequence)] == [1, 4, 5]
    (lost, cut), raws = zip(*[(line[0], line[3]) for line in lines_of(sequence)], strict=True)
    assert (lost, cut, raws[1]) == ("offsets_lost", "unreadable_row", csv_of(3)[9:-1].encode())
    assert json.loads(raws[0]) == {"first": first, "last": last}
    heard.land()
    heard.connect(sender)
    sender.send(csv_of(6))
    heard.spooled(sum(map(len, pieces)) + first)
    assert [value for _, value in values_of(heard.land())] == [6]
    heard.land()
    assert path.with_name(path.name + ".damaged").exists(), "it stays for whoever can mend it"
