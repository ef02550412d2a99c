"""Writes to a store whose answers are lost, late, cut or refused: done once, and never taken for somebody else's."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from pipelines.engine.commits.delta_log import create
from pipelines.engine.commits.paths import ConcurrentAddError
from pipelines.engine.commits.table_log import TableChange, TableLog
from pipelines.engine.files import stored
from pipelines.engine.files.stored import ChangedError, StoreFailedError, StorePath
from pipelines.jobs.proofs.emulator import BUCKET, access_to
from pipelines.jobs.proofs.store_proxy import StoreCall, StoreFault, StoreProxy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ONCE = [fault for fault in StoreFault if fault is not StoreFault.EXPIRED]


class First:
    """Disturbs so many conditional calls, and no other."""

    def __init__(self, fault: StoreFault, times: int = 1) -> None:
        self.fault, self.left, self._lock = fault, times, threading.Lock()

    def __call__(self, call: StoreCall) -> StoreFault | None:
        """Say what happens to a call."""
        with self._lock:
            if not call.is_conditional or not self.left:
                return None
            self.left -= 1
            return self.fault


@pytest.fixture
def proxy(bucket: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[StoreProxy]:
    monkeypatch.setattr(stored, "PAUSES", (0.0, 0.01, 0.01))
    with StoreProxy(int(bucket["AWS_ENDPOINT_URL"].rpartition(":")[2])).listening() as made:
        made.slow = 0.05
        for name, value in access_to(made.port).items():
            monkeypatch.setenv(name, value)
        yield made


@pytest.fixture
def place(proxy: StoreProxy, request: pytest.FixtureRequest) -> StorePath:
    return StorePath(f"s3://{BUCKET}/{proxy.port}") / str(abs(hash(request.node.name)))


@pytest.mark.parametrize("fault", ONCE)
def test_what_was_created_stands_once_and_is_ours(place: StorePath, proxy: StoreProxy, fault: StoreFault) -> None:
    proxy.disturbing = First(fault)
    (place / "a.json").create(b"ours")
    assert (place / "a.json").read_bytes() == b"ours"
    proxy.disturbing = First(fault)
    with pytest.raises(FileExistsError):
        (place / "a.json").create(b"theirs")
    assert (place / "a.json").read_bytes() == b"ours"


@pytest.mark.parametrize("fault", ONCE)
def test_what_was_exchanged_stands_once_and_is_ours(place: StorePath, proxy: StoreProxy, fault: StoreFault) -> None:
    (place / "a.json").create(b"first")
    _, tag = (place / "a.json").read_tagged()
    proxy.disturbing = First(fault)
    newer = (place / "a.json").exchange(b"second", tag)
    assert (place / "a.json").read_tagged() == (b"second", newer)
    proxy.disturbing = First(fault)
    with pytest.raises(ChangedError):
        (place / "a.json").exchange(b"third", tag)


@pytest.mark.parametrize("fault", ONCE)
def test_a_version_whose_answer_was_lost_is_ours(place: StorePath, proxy: StoreProxy, fault: StoreFault) -> None:
    create(place, pa.schema([pa.field("commit", pa.int64())]))
    ours, theirs = TableLog(place), TableLog(place)
    ours.look()
    theirs.look()
    proxy.disturbing = First(fault)
    assert ours.commit(TableChange(says="OURS"), {}) == 1
    with pytest.raises(ConcurrentAddError):
        theirs.commit(TableChange(says="THEIRS"), {})
    assert ours.look()
    assert ours.version == 1


def test_credentials_that_expire_end_with_a_sentence(place: StorePath, proxy: StoreProxy) -> None:
    proxy.disturbing = First(StoreFault.EXPIRED, 100)
    with pytest.raises(StoreFailedError, match="ExpiredToken"):
        (place / "a.json").create(b"ours")
    assert not (place / "a.json").is_file()


def test_a_version_that_cannot_be_seen_is_not_taken_for_gone(place: StorePath, proxy: StoreProxy) -> None:
    create(place, pa.schema([pa.field("commit", pa.int64())]))
    log = TableLog(place)
    log.look()
    proxy.disturbing = lambda call: StoreFault.EXPIRED if call.method == "HEAD" else None
    with pytest.raises(StoreFailedError):
        log.commit(TableChange(says="OURS"), {})
    proxy.disturbing = None
    again = TableLog(place)
    assert again.look()
    assert again.version == 1, "what was written was not removed over it"


@pytest.mark.parametrize("times", [1, 2])
def test_an_answer_that_is_cut_in_its_body_is_asked_for_again(place: StorePath, proxy: StoreProxy, times: int) -> None:
    for name in ("a.json", "b.json"):
        (place / name).create(b"x" * 5_000)
    left = [StoreFault.CUT] * times
    proxy.disturbing = lambda call: left.pop() if call.method == "GET" and left else None
    assert [each.name for each in place.iterdir()] == ["a.json", "b.json"]
    assert not left
    left = [StoreFault.CUT] * times
    assert (place / "a.json").read_bytes() == b"x" * 5_000
    assert not left


def test_a_listing_of_all_below_and_parts_of_objects_are_asked_for_again_too(
    place: StorePath, proxy: StoreProxy
) -> None:
    names = [f"{number:04}.bin" for number in range(1_003)]
    """More than a store tells in one answer."""
    for name in names:
        (place / "a" / name).write_bytes(b"x" * (5_000 if name == names[0] else 1))
    left: list[StoreFault] = []
    proxy.disturbing = lambda call: left.pop() if call.method == "GET" and left else None

    def again() -> None:
        assert not left
        left.extend([StoreFault.CUT] * 2)

    again()
    assert [path.name for path, _ in place.below()] == names
    pages = place.below(3)
    found = [next(pages)[0].name for _ in range(3)]
    again()
    assert found + [path.name for path, _ in pages] == names, "it goes on where it was, and says nothing twice"
    again()
    assert (place / "a" / names[0]).read_small(9_000) == (b"x" * 5_000, 5_000)
    with (place / "a" / names[0]).open("rb") as file:
        again()
        assert file.read() == b"x" * 5_000
    assert not left


@pytest.mark.parametrize("fault", [StoreFault.CONFLICT, StoreFault.REFUSED])
def test_a_refusal_of_what_was_asked_on_no_condition_is_a_stores_failure(
    place: StorePath, proxy: StoreProxy, fault: StoreFault
) -> None:
    (place / "a.json").create(b"ours")
    proxy.disturbing = lambda call: None if call.is_conditional else fault
    with pytest.raises(StoreFailedError, match="and run the command again"):
        (place / "a.json").stat()
    with pytest.raises(StoreFailedError, match="and run the command again"):
        (place / "b.json").write_bytes(b"ours")


def test_an_answer_that_is_cut_for_good_ends_with_a_sentence(place: StorePath, proxy: StoreProxy) -> None:
    (place / "a.json").create(b"x" * 5_000)
    proxy.disturbing = lambda call: StoreFault.CUT if call.method == "GET" else None
    with pytest.raises(StoreFailedError, match="must be had from its object store"):
        list(place.iterdir())
