"""What strangers put into a folder is told and left where it is; the other files land, and so do other sources."""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pipelines.engine.landing.index import Landing
from pipelines.engine.landing.progress import SourceProgress
from pipelines.engine.landing.source_feed import Reading
from pipelines.engine.live.landing import LiveLanding
from pipelines.engine.sources.folder.inbox import Inbox
from pipelines.engine.sources.listing import look, read_below
from pipelines.engine.sources.live import landed_payload
from pipelines.flows.feeds.folder import FolderSpec
from pipelines.flows.model import Flow, Source
from pipelines.operators.rows import MIN_TIME
from tests.engine.sources.folders import TYPES, Stand, flow_of, rows_of

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.engine.landing.sequence import LandedSequence

GOOD = "key,time,v\na,1970-01-01T00:00:00Z,1\n"


def problems(sequence: LandedSequence) -> list[str]:
    lines = sequence.ledger_rows().to_pylist()
    assert {line["reason"] for line in lines} <= {"unreadable_file"}
    return sorted(json.loads(line["row"])["problem"] for line in lines)


def test_links_are_told_and_not_followed(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    (tmp_path / "secret.csv").write_text(GOOD.replace("a,", "secret,"))
    (tmp_path / "private").mkdir()
    (tmp_path / "private/x.csv").write_text(GOOD)
    (stand.folder / "loop").symlink_to(stand.folder)
    (stand.folder / "round.csv").symlink_to("round.csv")
    (stand.folder / "s.csv").symlink_to(tmp_path / "secret.csv")
    (stand.folder / "there").symlink_to(tmp_path / "private")
    stand.put("z.csv", GOOD)
    sequence = stand.land()
    assert [row["key"] for row in rows_of(sequence)] == ["a"]
    why = "it is a link, and links are not followed"
    assert problems(sequence) == [f"{name}: {why}" for name in ("loop", "round.csv", "s.csv", "there")]
    assert b"secret" not in b"".join(line["raw"] or b"" for line in sequence.ledger_rows().to_pylist())
    assert (stand.folder / "s.csv").is_symlink()
    assert stand.land().ledger_rows().num_rows == 0


def test_a_file_that_becomes_a_link_after_the_look_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "in/sub").mkdir(parents=True)
    (tmp_path / "in/sub/a.csv").write_text(GOOD)
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/a.csv").write_text(GOOD)
    seen = look(tmp_path / "in").files["sub/a.csv"]
    assert read_below(tmp_path / "in", "sub/a.csv", seen) == GOOD.encode()
    (tmp_path / "in/sub/a.csv").unlink()
    (tmp_path / "in/sub").rmdir()
    (tmp_path / "in/sub").symlink_to(tmp_path / "secret")
    with pytest.raises(OSError, match="sub"):
        read_below(tmp_path / "in", "sub/a.csv", seen)


def test_names_that_are_no_utf8_are_told(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    (stand.folder / os.fsdecode(b"bad\xff.csv")).write_text(GOOD)
    (stand.folder / os.fsdecode(b"dir\xff")).mkdir()
    (stand.folder / os.fsdecode(b"dir\xff/a.csv")).write_text(GOOD)
    os.mkfifo(stand.folder / "pipe.csv")
    stand.put("ü.csv", GOOD.replace("1\n", "2\n"))
    sequence = stand.land()
    assert [row["v"] for row in rows_of(sequence)] == [2]
    assert problems(sequence) == [
        "bad\\xff.csv: its name is no UTF-8",
        "dir\\xff: its name is no UTF-8",
        "pipe.csv: it is neither a file nor a folder",
    ]
    stand.start()
    assert len(stand.landing.known("rows").files) == 4


def test_a_file_that_is_too_large_is_told_and_lands_when_it_may(tmp_path: Path) -> None:
    flow = flow_of()
    source = flow.sources["rows"]
    small = replace(
        flow, sources={"rows": replace(source, feed=replace(FolderSpec.of(source.feed), max_bytes=100_000))}
    )
    stand = Stand(tmp_path, small)
    bomb = gzip.compress(GOOD.encode() + b"a,1970-01-01T00:00:00Z,1\n" * 100_000)
    assert len(bomb) < 100_000
    stand.put("bomb.csv.gz", bomb)
    stand.put("large.csv", GOOD + "b,,2\n" * 30_000)
    stand.put("z.csv", GOOD)
    sequence = stand.land()
    assert len(rows_of(sequence)) == 1
    told = problems(sequence)
    assert "it unpacks to more" in told[0]
    assert all("at most 100,000 bytes, unpacked (`max_bytes` under the feed)" in each for each in told)
    stand.flow = flow
    stand.start()
    os.utime(stand.folder / "large.csv", ns=(1, 1))
    assert len(rows_of(stand.land())) == 30_001


def two(base: Path) -> Flow:
    def source(name: str) -> Source:
        feed = FolderSpec(paths=(name,), format="csv", types=TYPES)
        return Source(name=name, feed=feed, key=("key",), time="time")

    for name in ("one", "other"):
        (base / name).mkdir(exist_ok=True)
    return Flow(name="f", sources={name: source(name) for name in ("one", "other")}, streams={}, buckets=1)


def test_a_missing_folder_stops_its_source_and_no_other(tmp_path: Path) -> None:
    flow = two(tmp_path)
    told: list[str] = []
    (tmp_path / "other").rmdir()
    landing = Landing(tmp_path / "landing")
    sources = flow.sources.items()
    feeds = {name: Inbox(each, tmp_path, landed_payload(each), told.append, lambda: 0) for name, each in sources}
    lander = LiveLanding(landing, flow, feeds, 0)

    def spans(reading: int) -> tuple[tuple[tuple[int, int], ...], int, int]:
        sequence = lander.land(0, reading)
        assert sequence is not None
        assert sequence.sources["one"].blind_spans == ()
        return sequence.sources["other"].blind_spans, sequence.sources["one"].rows, sequence.sources["other"].rows

    (tmp_path / "one/a.csv").write_text(GOOD)
    assert spans(10) == (((0, 10),), 0, 0)
    assert spans(20) == (((10, 20),), 1, 0)
    assert lander.backlog == 1
    (tmp_path / "other").mkdir()
    (tmp_path / "other/a.csv").write_text(GOOD)
    assert spans(30) == (((20, 30),), 0, 0)
    assert spans(40) == (((30, 40),), 0, 1)
    assert spans(50) == ((), 0, 0)
    (tmp_path / "other/a.csv").unlink()
    (tmp_path / "other").rmdir()
    assert spans(60) == (((50, 60),), 0, 0)
    assert [line.split(";")[0].split(":")[0] for line in told] == ["source other"] * 3


def test_a_folder_that_was_gone_when_it_was_looked_at_makes_that_reading_blind(tmp_path: Path) -> None:
    source, told = two(tmp_path).sources["other"], list[str]()
    inbox = Inbox(source, tmp_path, landed_payload(source), told.append, lambda: 5)
    (tmp_path / "other").rmdir()
    assert inbox.look(SourceProgress()) == 5
    (tmp_path / "other").mkdir()
    (tmp_path / "other/a.csv").write_text(GOOD)
    came = [inbox.arrive(Reading(0, end), SourceProgress()) for end in (10, 20, 30, 40)]
    assert [each.rows.num_rows for each in came[:3]] == [0, 0, 1]
    assert [each.blind for each in came] == [((MIN_TIME, 10),), ((MIN_TIME, 20),), ((20, 30),), ()]
    assert [line.split(";")[0].split(":")[0] for line in told] == ["source other"] * 2
