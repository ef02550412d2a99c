"""Three buffers: what may happen to one or two of them without a byte being lost, and what is said of all three.

Rules of docs/semantics.md: R6, R7
"""

from __future__ import annotations

import errno
import json
import pickle
import shutil
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.engine.buffers import places as placing
from pipelines.engine.buffers.buffers import Buffers, buffers_of
from pipelines.engine.buffers.copies import close_copy
from pipelines.engine.buffers.owners import ID_FILE, MARK, NotOursError, Owner, adopt, mark, owner_of
from pipelines.engine.buffers.places import BufferDrain, NotApartError, read_record, require_apart
from pipelines.engine.commits.errors import LeaseLostError
from pipelines.engine.landing import write as landing_files
from pipelines.engine.landing.errors import (
    AllMovedError,
    BuffersLostError,
    NoRoomError,
    RecordBrokenError,
    SequenceBrokenError,
)
from pipelines.engine.landing.index import Landing
from pipelines.engine.landing.manifest import MANIFEST, close_sequence, closed_in, numbers_in, read_sequence, shelves
from pipelines.flows.apart import Apart
from tests.engine.sources.folders import Stand, rows_of
from tests.wide import drawn as examples_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipelines.engine.landing.sequence import LandedSequence


class Kept(Stand):
    """A landing of one folder into three buffers; `commit` and `covered` are what is published."""

    commit = covered = 0
    margin, max_bytes = 2, 10**9

    def start(self) -> None:
        """Start anew, as another process would."""
        self.told: list[str] = []
        places = buffers_of(self.base / "run")
        self.buffers = Buffers(
            self.base / "landing",
            places,
            lambda: BufferDrain(self.commit, self.covered, self.commit),
            self.told.append,
            margin=self.margin,
            max_bytes=self.max_bytes,
        )
        self.buffers.settle()
        super().start()
        self.landing = Landing(self.base / "landing", self.buffers)

    def place(self, name: str) -> Path:
        """Give a buffer's folder."""
        return self.buffers.places[name]

    def arrive(self, value: int) -> LandedSequence:
        """Have a row arrive, and land it."""
        self.put(f"{value:06}.csv", f"key,time,v\nk,2024-01-01T00:00:00Z,{value}\n")
        return self.land()

    def publish(self) -> None:
        """Have a commit cover all that has landed."""
        self.commit, self.covered = self.commit + 1, self.landing.last_id

    def values(self, number: int) -> list[int]:
        """Read a sequence as an epoch would."""
        sequence = self.buffers.open(number)
        return [row["v"] for row in rows_of(sequence)] if sequence.sources["rows"].rows else []


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    """Give a landing into three buffers with two rows in it, which no commit covers."""
    stand = Kept(tmp_path)
    stand.arrive(1)
    stand.arrive(2)
    return stand


def removed(place: Path) -> None:
    shutil.rmtree(place)


def emptied(place: Path) -> None:
    for each in place.iterdir():
        shutil.rmtree(each) if each.is_dir() else each.unlink()


def truncated(place: Path) -> None:
    file = next(place.glob("*/*.parquet"))
    file.write_bytes(file.read_bytes()[:-7])


def flipped(place: Path) -> None:
    flip(next(place.glob("*/*.parquet")))


def flip(file: Path) -> None:
    """Change a bit of a file."""
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def unreadable(place: Path) -> None:
    next(iter(sorted(place.glob(f"*/{MANIFEST}")))).write_text("{")


def unlisted(place: Path) -> None:
    next(iter(sorted(place.glob(f"*/{MANIFEST}")))).unlink()


def replaced(place: Path) -> None:
    shutil.rmtree(place)
    place.write_text("a file where a folder was: nothing can be read or written")


FAULTS = {each.__name__: each for each in (removed, emptied, truncated, flipped, unreadable, unlisted, replaced)}


def test_every_buffer_holds_the_same(kept: Kept) -> None:
    for name in ("b", "c"):
        for number in (1, 2, 3, 4):
            folder = kept.place(name) / f"{number:08}"
            other = kept.place("a") / f"{number:08}"

            assert sorted(each.name for each in folder.iterdir()) == sorted(each.name for each in other.iterdir())
            assert all(each.read_bytes() == (other / each.name).read_bytes() for each in folder.iterdir())
    assert kept.values(2) + kept.values(4) == [1, 2]
    assert not list((kept.base / "landing").glob("0*")), "nothing is history before a commit covers it"


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("names", ["a", "b", "ab", "bc"])
def test_one_or_two_may_fail(kept: Kept, fault: str, names: str) -> None:
    for name in names:
        FAULTS[fault](kept.place(name))

    assert [kept.values(number) for number in (1, 2, 3, 4)] == [[], [1], [], [2]]
    kept.arrive(3)
    assert kept.values(6) == [3]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_damaged_buffer_is_told_of_rebuilt_and_counts_after_a_drain(kept: Kept, fault: str) -> None:
    FAULTS[fault](kept.place("a"))
    for number in (1, 2, 3, 4):
        kept.values(number)
    kept.arrive(3)

    assert kept.told[0].startswith("buffer a is quarantined")
    assert kept.buffers.speaking() == ["b", "c"]
    assert kept.buffers.record.of("a").times == 1
    kept.publish()
    kept.arrive(4)
    assert kept.buffers.speaking() == ["a", "b", "c"]
    assert kept.told[-1] == "buffer a counts again, since commit 1"
    for name in "bc":
        removed(kept.place(name))
    assert kept.values(8) == [4], "it holds all that no commit covers"


def test_a_rebuilt_buffer_is_silent_until_a_drain(kept: Kept) -> None:
    removed(kept.place("a"))
    kept.values(2)
    kept.arrive(3)
    assert numbers_in(kept.place("a")) == [1, 2, 3, 4, 5, 6], "it collects what lands meanwhile"
    removed(kept.place("b"))
    removed(kept.place("c"))

    with pytest.raises(BuffersLostError):
        kept.values(2)


def test_all_three_lost_is_a_loud_stop_that_names_them(kept: Kept) -> None:
    kept.publish()
    kept.arrive(3)
    for name in "abc":
        removed(kept.place(name))

    with pytest.raises(BuffersLostError, match=r"Lost: sequences 5 to 6\. Safe: all up to commit 1") as lost:
        kept.values(6)
    assert (lost.value.first, lost.value.last, lost.value.consistent) == (5, 6, 1)
    with pytest.raises(BuffersLostError):
        kept.arrive(4)
    with pytest.raises(BuffersLostError):
        Kept(kept.base).start()


def test_an_accepted_loss_is_kept_for_ever(kept: Kept) -> None:
    kept.publish()
    kept.buffers.cover()
    kept.arrive(3)
    for name in "abc":
        removed(kept.place(name))
    with pytest.raises(BuffersLostError):
        kept.values(6)

    assert kept.buffers.accept_loss() == (5, 6)
    kept.landing = Landing(kept.base / "landing", kept.buffers)
    assert kept.landing.last_id == 4
    kept.land()
    assert kept.values(5) + kept.values(6) == [3], "the folder still has the file, so its row lands again"
    record = read_record(kept.base / "landing")
    assert record is not None
    assert [gap[:2] for gap in record.gaps] == [(5, 6)]


def test_nothing_is_lost_where_a_commit_covers_all(kept: Kept) -> None:
    kept.publish()
    kept.buffers.cover()
    for name in "abc":
        removed(kept.place(name))
    kept.arrive(3)

    assert kept.values(6) == [3]
    assert [kept.values(number) for number in (2, 4)] == [[1], [2]], "history has them"


def test_the_first_closed_manifest_decides(tmp_path: Path) -> None:
    stand = Kept(tmp_path)
    stand.arrive(1)
    for name in "bc":
        shutil.rmtree(stand.place(name) / "00000002")
    stand.put("000001.csv", "key,time,v\nk,2024-01-01T00:00:00Z,99\n")
    stand.start()

    assert closed_in(stand.place("b"), 2)
    assert closed_in(stand.place("c"), 2)
    assert stand.values(2) == [1]
    assert stand.buffers.record.health == {}, "that is what a driver leaves that was killed; nobody is to blame"


def test_what_misses_more_than_the_newest_is_quarantined_at_start(kept: Kept) -> None:
    shutil.rmtree(kept.place("b") / "00000002")
    kept.start()

    assert kept.told[0] == "buffer b is quarantined: sequence 2 is missing"
    assert numbers_in(kept.place("b")) == [1, 2, 3, 4]


def test_what_differs_is_quarantined_at_start(kept: Kept) -> None:
    shutil.rmtree(kept.place("c") / "00000004")
    shutil.copytree(kept.place("c") / "00000002", kept.place("c") / "00000004")
    kept.start()

    assert kept.told[0] == "buffer c is quarantined: sequence 4 is another than in the others"
    [aside] = (kept.base / "run" / "landing").glob("c.quarantined-*")
    assert numbers_in(aside) == [1, 2, 3, 4], "what it was stays beside it"
    kept.publish()
    kept.land()
    assert not aside.exists(), "until the buffer counts again"


def test_covered_sequences_become_history_and_leave_but_for_the_margin(kept: Kept) -> None:
    kept.publish()

    assert kept.buffers.cover() == 4
    assert numbers_in(kept.base / "landing") == [1, 2, 3, 4]
    assert [numbers_in(kept.place(name)) for name in "abc"] == [[3, 4]] * 3
    assert kept.buffers.cover() == 0
    assert read_sequence(kept.base / "landing", 2).folder.parent == kept.base / "landing"


def test_a_move_that_was_killed_goes_on(kept: Kept) -> None:
    kept.publish()
    (kept.base / "landing" / "00000001").mkdir()
    kept.start()

    assert kept.buffers.cover() == 4
    assert kept.values(2) == [1]


def test_what_waits_is_bounded_and_the_source_is_not_read(kept: Kept) -> None:
    Kept.max_bytes = kept.buffers.waiting_bytes()
    try:
        kept.start()
        kept.put("late.csv", "key,time,v\nk,2024-01-01T00:00:00Z,3\n")
        with pytest.raises(NoRoomError, match="wait for a consistent state"):
            kept.look()
        assert kept.landing.last_id == 4
        kept.publish()
        kept.land()
    finally:
        Kept.max_bytes = 10**9

    assert kept.values(6) == [3]


def full(name: str) -> Callable[..., object]:
    """Give a writer for which one buffer's device, or every one's, is full."""
    from pipelines.engine.landing.write import write_sequence

    def write(shelf: Path, *args: object, **named: object) -> object:
        if shelf.name in name:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write_sequence(shelf, *args, **named)  # type: ignore[arg-type]

    return write


def test_a_full_device_of_one_costs_that_one(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.engine.landing.index.write_sequence", full("a"))
    kept.arrive(3)

    assert kept.values(6) == [3]
    assert kept.told[0] == "buffer a is quarantined: No space left on device"


def test_full_devices_of_all_push_the_source_back(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("pipelines.engine.landing.index.write_sequence", full("abc"))
        with pytest.raises(NoRoomError, match="No space left"):
            kept.arrive(3)
    assert kept.told == [], "no buffer is to blame"
    kept.land()

    assert kept.values(5) + kept.values(6) == [3]


def test_buffers_that_stand_together_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = {name: tmp_path / name for name in "abc"}
    require_apart(places, Apart.FOLDER)
    with pytest.raises(NotApartError, match="share the device"):
        require_apart(places, Apart.DEVICE)
    with pytest.raises(NotApartError, match="share the host this machine"):
        require_apart(places, Apart.HOST)
    with pytest.raises(NotApartError, match="share the folder"):
        require_apart({"a": tmp_path / "x", "b": tmp_path / "y" / ".." / "x"}, Apart.FOLDER)
    mounts = tmp_path / "mounts"
    mounts.write_text(
        "".join(f"host{name}:/export {tmp_path / name} nfs4 rw 0 0\n" for name in "bc") + "/dev/x / ext4\n"
    )
    monkeypatch.setattr(placing, "MOUNTS", mounts)
    for place in places.values():
        place.mkdir()
    require_apart(places, Apart.HOST)


def test_one_or_two_buffers_can_move(kept: Kept, tmp_path: Path) -> None:
    def moved(names: str) -> Buffers:
        places = {name: tmp_path / "new" / name if name in names else kept.place(name) for name in "abc"}
        return Buffers(tmp_path / "landing", places, lambda: BufferDrain(0, 0, 0), kept.told.append)

    with pytest.raises(AllMovedError):
        moved("abc")
    there = moved("ab")
    there.settle()
    assert numbers_in(tmp_path / "new" / "a") == [1, 2, 3, 4]
    assert there.speaking() == ["c"]


def test_a_record_of_another_format_is_refused_by_name(kept: Kept) -> None:
    record = kept.base / "landing" / "buffers.json"
    record.write_text(record.read_text().replace('"format": 1', '"format": 7'))
    with pytest.raises(RecordBrokenError, match="it has format 7"):
        kept.start()
    record.write_text("{")
    with pytest.raises(RecordBrokenError, match="cannot be read"):
        kept.start()


STEPS = st.lists(
    st.one_of(
        st.sampled_from(["arrive", "arrive", "publish", "restart"]),
        st.tuples(st.sampled_from(sorted(FAULTS)), st.sampled_from(["a", "b", "c", "ab", "bc", "ca"])),
    ),
    max_size=14,
)


class Played:
    """A landing to which things happen, at most to two buffers between two drains that all three see."""

    def __init__(self, base: Path) -> None:
        self.stand = Kept(base)
        self.wanted: dict[int, list[int]] = {}
        self.harmed: set[str] = set()
        self.value = 0

    def play(self, step: str | tuple[str, str]) -> None:
        """Do one step."""
        if isinstance(step, tuple):
            self.harm(*step)
        elif step == "arrive":
            self.value += 1
            self.wanted[self.stand.arrive(self.value).id] = [self.value]
        elif step == "restart":
            self.stand.start()
        else:
            self.publish()

    def publish(self) -> None:
        """Have a commit cover all, and another sequence land."""
        self.read()
        self.stand.publish()
        self.stand.buffers.cover()
        self.stand.land()
        if self.stand.buffers.speaking() == ["a", "b", "c"]:
            self.harmed = set()

    def harm(self, fault: str, names: str) -> None:
        """Harm one or two buffers, unless a third would be harmed between two drains."""
        if len(self.harmed | set(names)) == len("abc"):
            return
        self.harmed |= set(names)
        for name in names:
            if list(self.stand.place(name).glob("*/*.parquet")):
                FAULTS[fault](self.stand.place(name))

    def read(self) -> None:
        """See that everything is there as it landed."""
        for number in range(1, self.stand.landing.last_id + 1):
            assert self.stand.values(number) == self.wanted.get(number, [])


@settings(max_examples=examples_of(15, 40))
@given(STEPS)
def test_whatever_happens_to_two_between_drains_all_is_read_as_it_landed(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str | tuple[str, str]]
) -> None:
    played = Played(tmp_path_factory.mktemp("kept"))
    for step in steps:
        played.play(step)
    played.read()


IN_HAND: dict[str, Callable[[Path], object]] = {
    "its folder": lambda folder: shutil.rmtree(folder.parent),
    "its sequence": shutil.rmtree,
    "its rows": lambda folder: (folder / "rows.parquet").write_bytes(b"PAR1"),
    "its manifest": lambda folder: (folder / MANIFEST).unlink(),
}


@pytest.mark.parametrize("fault", IN_HAND)
@pytest.mark.parametrize("copies", [0, 1])
def test_a_buffer_that_is_damaged_while_it_is_copied_costs_nothing(
    kept: Kept, fault: str, copies: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def harmed(sequence: LandedSequence, shelf: Path) -> None:
        if sequence.folder.parent.name == "a" and len(made) == copies and kept.place("a").is_dir():
            IN_HAND[fault](sequence.folder)
        made.append(shelf.name)
        close_copy(sequence, shelf)

    monkeypatch.setattr("pipelines.engine.buffers.buffers.close_copy", harmed)
    kept.put("000003.csv", "key,time,v\nk,2024-01-01T00:00:00Z,3\n")
    kept.look()
    made.clear()
    kept.look()

    assert kept.values(6) == [3]
    assert {"b", "c"} <= set(kept.buffers.speaking())


@pytest.mark.parametrize("fault", IN_HAND)
def test_a_buffer_that_is_damaged_while_it_becomes_history_costs_nothing(
    kept: Kept, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def harmed(sequence: LandedSequence, shelf: Path) -> None:
        if sequence.id == 2 and sequence.folder.parent.name == "a":
            IN_HAND[fault](sequence.folder)
        close_copy(sequence, shelf)

    kept.publish()
    monkeypatch.setattr("pipelines.engine.buffers.buffers.close_copy", harmed)

    assert kept.buffers.cover() == 4
    assert kept.buffers.record.of("a").times == 1
    assert [kept.values(number) for number in (1, 2, 3, 4)] == [[], [1], [], [2]]


def test_storage_that_is_away_for_a_moment_while_it_becomes_history_is_read_again(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone: list[int] = []

    def away(sequence: LandedSequence, shelf: Path) -> None:
        if sequence.id == 2 and not gone:
            gone.append(1)
            place = sequence.folder.parent
            place.rename(place.with_name("aside"))
            try:
                close_copy(sequence, shelf)
            finally:
                place.with_name("aside").rename(place)
        close_copy(sequence, shelf)

    kept.publish()
    monkeypatch.setattr("pipelines.engine.buffers.buffers.close_copy", away)

    assert kept.buffers.cover() == 4
    assert gone
    assert kept.buffers.record.of("a").times == 0


def test_who_was_overtaken_puts_nothing_into_history(kept: Kept) -> None:
    def overtaken() -> None:
        raise LeaseLostError("f", 1, 2, "another", 0)

    landing = kept.base / "landing"
    woken = Buffers(landing, buffers_of(kept.base / "run"), lambda: BufferDrain(0, 0, 0), held=overtaken)
    with pytest.raises(LeaseLostError):
        woken.secure([1, 2])
    assert numbers_in(landing) == []

    kept.buffers.secure([1, 2])
    assert numbers_in(landing) == [1, 2]
    woken.secure([1, 2])


def test_history_that_takes_nothing_is_told_of_and_tried_again(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.publish()
    with monkeypatch.context() as full:
        full.setattr("pipelines.engine.buffers.buffers.close_copy", no_room)
        with pytest.raises(OSError, match="No space left"):
            kept.buffers.cover()

    assert {name: kept.buffers.record.of(name).times for name in "abc"} == dict.fromkeys("abc", 0)
    assert kept.buffers.cover() == 4


def no_room(_: LandedSequence, shelf: Path) -> None:
    raise OSError(errno.ENOSPC, "No space left on device", str(shelf))


def test_two_damaged_while_the_third_gets_its_copy_cost_nothing(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    def harmed(sequence: LandedSequence, shelf: Path) -> None:
        if (
            shelf.name == "c"
            and sequence.sources["rows"].rows
            and sequence.id == 6
            and kept.buffers.record.health == {}
        ):
            for name in "ab":
                (kept.place(name) / sequence.folder.name / "rows.parquet").write_bytes(b"PAR1")
        close_copy(sequence, shelf)

    monkeypatch.setattr("pipelines.engine.buffers.buffers.close_copy", harmed)
    kept.arrive(3)

    assert kept.values(6) == [3]
    assert kept.buffers.record.of("c").times == 0
    assert {name: kept.buffers.record.of(name).times for name in "ab"} == {"a": 1, "b": 1}


def test_storage_that_was_away_is_believed_again(kept: Kept) -> None:
    landing, away = kept.base / "run" / "landing", kept.base / "unmounted"
    kept.publish()
    kept.arrive(3)
    landing.rename(away)
    with pytest.raises(BuffersLostError, match="Lost: sequences 5 to 6"):
        kept.start()
    with pytest.raises(BuffersLostError, match="Lost: sequences 5 to 6"):
        kept.start()
    shutil.rmtree(landing, ignore_errors=True)
    away.rename(landing)
    kept.start()

    assert kept.values(6) == [3]
    assert "buffer a holds all that no commit covers, and counts again" in kept.told
    kept.arrive(4)
    assert kept.values(8) == [4]


def test_one_that_comes_back_is_enough_and_one_with_less_is_not(kept: Kept) -> None:
    landing, away = kept.base / "run" / "landing", kept.base / "unmounted"
    kept.arrive(3)
    landing.rename(away)
    with pytest.raises(BuffersLostError):
        kept.start()
    landing.mkdir(exist_ok=True)
    shutil.copytree(away / "b", landing / "b", dirs_exist_ok=True)
    shutil.rmtree(landing / "b" / "00000006")
    with pytest.raises(BuffersLostError, match="Lost: sequences 1 to 6"):
        kept.start()
    shutil.copytree(away / "c", landing / "c", dirs_exist_ok=True)
    kept.start()

    assert kept.values(6) == [3]


def test_damage_in_the_last_buffer_leaves_what_is_whole_in_it(kept: Kept) -> None:
    for name in "ab":
        removed(kept.place(name))
    flipped(kept.place("c"))
    with pytest.raises(BuffersLostError):
        kept.start()

    assert numbers_in(kept.place("c")) == [1, 2, 3, 4]
    assert kept.buffers.accept_loss() is not None
    [aside] = (kept.base / "run" / "landing").glob("c.quarantined-*")
    assert numbers_in(aside) == [1, 2, 3, 4], "and accepting the loss moves it aside"


def test_behind_a_reset_history_stands_in_for_the_buffers(kept: Kept) -> None:
    kept.publish()
    kept.buffers.cover()
    kept.commit, kept.covered = kept.commit + 1, 0
    for name in "abc":
        removed(kept.place(name))
    kept.start()

    assert kept.values(2) + kept.values(4) == [1, 2]
    kept.arrive(3)
    assert kept.values(6) == [3]


def test_a_loss_is_told_by_the_first_sequence_that_lands_after_it(kept: Kept) -> None:
    for name in "abc":
        removed(kept.place(name))
    with pytest.raises(BuffersLostError):
        kept.start()
    kept.buffers.accept_loss()
    kept.start()
    [gap] = kept.buffers.untold()
    assert (gap.first, gap.last) == (1, 4), "who starts next still has to tell"
    kept.buffers.tell_of_gaps()
    kept.start()

    assert kept.buffers.untold() == ()


def test_what_an_overtaken_driver_closed_after_all_stands(kept: Kept, tmp_path: Path) -> None:
    other = Kept(tmp_path / "other")
    for value in (1, 2):
        other.arrive(value)
    ours = other.arrive(99)
    for each in (ours.id - 1, ours.id):
        shutil.copytree(other.place("a") / f"{each:08}", kept.place("a") / f"{each:08}")
    kept.put("000003.csv", "key,time,v\nk,2024-01-01T00:00:00Z,3\n")
    kept.look()
    kept.look()

    assert kept.values(6) == [99], "the first closed manifest decides"
    assert closed_in(kept.place("b"), 6)
    assert closed_in(kept.place("c"), 6)
    kept.land()
    assert kept.values(7) + kept.values(8) == [3], "and what came in meanwhile lands behind it"


def test_a_drain_that_covers_only_a_part_leaves_a_rebuilt_buffer_with_the_rest(kept: Kept) -> None:
    removed(kept.place("a"))
    kept.values(2)
    kept.arrive(3)
    kept.commit, kept.covered = 1, 4
    kept.arrive(4)
    assert kept.buffers.speaking() == ["a", "b", "c"]
    removed(kept.place("b"))
    removed(kept.place("c"))

    assert kept.values(6) == [3]
    assert kept.values(8) == [4]


def test_damage_before_a_sequence_has_closed_is_no_part_of_it(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(sequence: LandedSequence) -> LandedSequence:
        """Change a bit of what was written, once, before anybody can have looked at it."""
        for file in sequence.folder.glob("*.parquet"):
            monkeypatch.setattr(landing_files, "close_sequence", close_sequence)
            flip(file)
        return close_sequence(sequence)

    monkeypatch.setattr(landing_files, "close_sequence", damaged)
    sequence = kept.arrive(3)

    assert kept.values(sequence.id) == [3]
    assert kept.told[0].startswith(f"buffer a is quarantined: sequence {sequence.id} has a rows.parquet with other")
    assert kept.buffers.speaking() == ["b", "c"]


class Housed(Kept):
    """A landing in a home that can be moved, with buffers on storage of its own."""

    @property
    def home(self) -> Path:
        """Give the folder of the run."""
        return self.base / "home"

    def start(self) -> None:
        """Start anew, as another process would, wherever the home is now."""
        self.told = []
        self.buffers = Buffers(
            self.home / "landed",
            {name: self.base / "disks" / name for name in "abc"},
            lambda: BufferDrain(self.commit, self.covered, self.commit),
            self.told.append,
        )
        self.buffers.settle()
        Stand.start(self)
        self.landing = Landing(self.home / "landed", self.buffers)

    @classmethod
    def at(cls, base: Path, home: str) -> Housed:
        """Give a landing in another home of the same machine."""
        return type("Other", (cls,), {"home": base / home})(base)  # type: ignore[no-any-return]


def test_another_home_does_not_take_rows_of_this_one_for_its_own(tmp_path: Path) -> None:
    first = Housed(tmp_path)
    first.arrive(1)
    before = {path: path.read_bytes() for path in (tmp_path / "disks").rglob("*") if path.is_file()}
    with pytest.raises(NotOursError, match="pulseline adopt-buffers FLOW") as refused:
        Housed.at(tmp_path, "second")
    assert (refused.value.name, refused.value.theirs) == ("a", str(tmp_path / "home" / "landed"))
    assert (refused.value.ours, refused.value.place) == (
        str(tmp_path / "second" / "landed"),
        str(tmp_path / "disks" / "a"),
    )
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)
    assert {path: path.read_bytes() for path in before} == before
    first.start()
    first.arrive(2)
    assert first.values(first.landing.last_id) == [2]
    assert first.told == []


def test_a_home_that_was_moved_finds_its_buffers(tmp_path: Path) -> None:
    Housed(tmp_path).arrive(1)
    (tmp_path / "home").rename(tmp_path / "moved")
    moved = Housed.at(tmp_path, "moved")
    assert (moved.values(2), moved.told) == ([1], [])
    (tmp_path / "moved").rename(tmp_path / "home")
    assert Housed(tmp_path).told == []


def test_a_home_with_its_buffers_in_it_may_be_moved(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "here")
    kept.arrive(1)
    (tmp_path / "here").rename(tmp_path / "there")
    moved = Kept(tmp_path / "there")
    assert (moved.values(2), moved.told) == ([1], [])


def test_a_copy_of_a_home_that_still_stands_is_refused_until_it_is_told_to_go_on(tmp_path: Path) -> None:
    first = Housed(tmp_path)
    first.arrive(1)
    shutil.copytree(tmp_path / "home", tmp_path / "copy")
    with pytest.raises(NotOursError, match="restored from a backup"):
        Housed.at(tmp_path, "copy")
    owner = owner_of(tmp_path / "copy" / "landed")
    assert sorted(adopt(first.buffers.places, owner)) == ["a", "b", "c"]
    copied = Housed.at(tmp_path, "copy")
    assert copied.values(2) == [1]
    with pytest.raises(NotOursError):
        first.start()


def test_a_home_that_came_back_without_its_id_says_that_the_buffers_are_its_own(tmp_path: Path) -> None:
    first = Housed(tmp_path)
    first.arrive(1)
    (tmp_path / "home" / ID_FILE).unlink()
    with pytest.raises(NotOursError):
        Housed(tmp_path)
    assert sorted(adopt(first.buffers.places, owner_of(tmp_path / "home" / "landed"))) == ["a", "b", "c"]
    assert Housed(tmp_path).values(2) == [1]
    assert adopt(first.buffers.places, owner_of(tmp_path / "home" / "landed")) == {}


@pytest.mark.parametrize("owner", ["home", "nowhere", "other"])
def test_a_mark_of_before_is_its_runs_unless_that_still_stands_elsewhere(tmp_path: Path, owner: str) -> None:
    first = Housed(tmp_path)
    first.arrive(1)
    (tmp_path / "home" / ID_FILE).unlink()
    shutil.copytree(tmp_path / "home", tmp_path / "other")
    said = {"format": 1, "owner": str(tmp_path / owner / "landed")}
    for place in first.buffers.places.values():
        (place / MARK).write_text(json.dumps(said))
    if owner == "other":
        with pytest.raises(NotOursError, match="other"):
            Housed(tmp_path)
        return
    again = Housed(tmp_path)
    assert (again.values(2), again.told) == ([1], [])
    assert json.loads((first.buffers.places["a"] / MARK).read_text())["owner"] == owner_of(tmp_path / "home/landed").id
    with pytest.raises(NotOursError):
        Housed.at(tmp_path, "fresh")


def test_a_mark_of_before_is_no_new_homes(tmp_path: Path) -> None:
    first = Housed(tmp_path)
    first.arrive(1)
    for place in first.buffers.places.values():
        (place / MARK).write_text(json.dumps({"format": 1, "owner": "/gone/landed"}))
    with pytest.raises(NotOursError, match="/gone/landed"):
        Housed.at(tmp_path, "fresh")


def test_a_folder_that_another_run_has_marked_meanwhile_is_left_alone(tmp_path: Path) -> None:
    kept = Housed(tmp_path)
    kept.arrive(1)
    mark(kept.place("b"), Owner("0" * 32, "/elsewhere"))
    (kept.place("b") / "theirs").write_text("rows")
    kept.arrive(2)
    kept.publish()
    kept.arrive(3)
    assert (kept.place("b") / "theirs").read_text() == "rows"
    assert kept.buffers.speaking() == ["a", "c"]
    assert "buffer b is quarantined: it is the buffer of another run" in kept.told


def test_a_mark_that_cannot_be_read_is_written_anew(tmp_path: Path) -> None:
    first = Housed(tmp_path)
    first.arrive(1)
    (first.place("a") / MARK).write_bytes(b"\x00nothing")
    assert Housed(tmp_path).values(2) == [1]


def test_a_damaged_sequence_of_history_comes_out_of_a_buffer_that_still_has_it(kept: Kept) -> None:
    kept.publish()
    assert kept.buffers.cover() == 4
    history = kept.buffers.landed / "00000004"
    assert history.exists(), "no part of a segment yet"
    (history / "manifest.json").write_text("{")
    assert kept.values(4) == [2]
    for place in kept.buffers.places.values():
        shutil.rmtree(place / "00000004")
    with pytest.raises(SequenceBrokenError, match="a manifest that cannot be read"):
        kept.values(4)


@pytest.mark.parametrize("said", ["", "[]", "null", "{}", '{"health": [], "places": 5}'])
def test_an_odd_record_is_told_in_a_sentence_by_all_who_read_it(tmp_path: Path, said: str) -> None:
    (tmp_path / "buffers.json").write_text(said)
    for read in (read_record, shelves):
        with pytest.raises(RecordBrokenError, match="must say where the buffers stand"):
            read(tmp_path)
