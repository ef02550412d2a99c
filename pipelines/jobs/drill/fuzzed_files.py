"""Files for the drill `input`: good rows land as they were written, bad ones stand in the ledger, none is missing."""

from __future__ import annotations

import datetime as dt
import gzip
import io
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.engine.columnar.clock import WallClock, wall_now
from pipelines.engine.commits.driver import open_driver
from pipelines.engine.commits.readers import read_ledger, read_stream
from pipelines.engine.landing.index import Landing
from pipelines.engine.landing.types import declared_type
from pipelines.engine.live.landing import LiveLanding
from pipelines.engine.tasks.local import CoreEngine
from pipelines.flows.reading import read_flow
from pipelines.jobs.drill.fed import BEGIN, SECONDS, SPAN
from pipelines.jobs.drill.fuzzed import FuzzedPlace, Tried
from pipelines.jobs.drill.shapes import csv_line
from pipelines.jobs.runs.backfill import Backfill, run_backfill
from pipelines.jobs.runs.feeds import open_feeds
from pipelines.jobs.runs.readings import runner_of
from pipelines.operators.rows import TICKS_PER_SECOND

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random


TYPES = {
    "k": "string",
    "t": "timestamp",
    "n": "int64",
    "x": "float64",
    "s": "string",
    "b": "bool",
    "d": "date",
    "seen": "timestamp",
}
FORMS = ("csv", "json", "parquet")
FILES = 4
READINGS = 4
"""A file lands when two looks have seen it stand still."""
BAD = 0.15
"""Of the rows."""
TEXTS = ("west", 'a "quoted", one', "of\ntwo lines", "größe", "semi;colon", " spaces ", "NULL", "\u202eodd")
ODD = "abc019 ;:{}[]()\\'`~!@#$%^&*_+=|<>?/\u202e\x1bé"
BAD_CSV = ("few", "many", "word", "no time", "no key", "odd")
BAD_JSON = ("broken", "word", "no time", "no key", "odd")
EPOCH = dt.date(1970, 1, 1)
LANDS = frozenset({"good", "no time"})
FLOW = """\
flow: drilled
every: 10m
buckets: {buckets}
sources:
  rows: {{feed: {feed}, key: k, time: t{arrival}}}
streams:
  beating: {{heartbeat: rows, interval: 1d, slack: 1d}}
"""


@dataclass
class Drawn:
    """Files of one seed, and what must become of their rows."""

    form: str
    is_recorded: bool
    types: dict[str, str]
    landing: dict[int, dict[str, Any]] = field(default_factory=dict)
    """Rows that must land, by their number."""
    dropping: Counter[str] = field(default_factory=Counter)
    """What the ledger must have of the bad rows: their text, or the numbers of those without a key."""
    rows: int = 0
    """Of whole files."""
    has_broken: bool = False
    """Whether a file is damaged as a whole, so that nobody knows how many rows it has."""


def tried(place: FuzzedPlace) -> Tried:
    """Land good, bad and broken files of each form, live and recorded."""
    done, drawn = Tried(), place.drawn()
    ways = [(form, is_recorded) for form in FORMS for is_recorded in (True, False)]
    for form, is_recorded in ways:
        folder = place.folder / f"{form}-{'recorded' if is_recorded else 'live'}"
        folder.mkdir()
        _try(
            drawn,
            FuzzedPlace(folder, place.number, place.count // len(ways)),
            Drawn(form, is_recorded, _types(drawn)),
            done,
        )
    return done


def _try(drawn: Random, place: FuzzedPlace, files: Drawn, done: Tried) -> None:
    """Land the files of one flow, and hold the rows against those that were written."""
    names = _write(drawn, place, files)
    done.inputs += files.rows
    try:
        root = _ran(drawn, place.folder, files, names)
        _judge(root, files, done)
    except Exception as error:  # noqa: BLE001 - what it is, is judged
        if files.has_broken and files.is_recorded:
            # A file whose pages are damaged is not landed by half: its interval waits until it is put right.
            done.raised(error, files.form)
            return
        done.find(f"files stopped the flow ({type(error).__name__}: {error})", files.form)


def _types(drawn: Random) -> dict[str, str]:
    names = list(TYPES)
    drawn.shuffle(names)
    return {name: TYPES[name] for name in names}


def _write(drawn: Random, place: FuzzedPlace, files: Drawn) -> list[str]:
    """Write the files; the first is whole, for a recorded feed has its columns."""
    folder, names = place.folder / "inbox", []
    folder.mkdir()
    for number in range(FILES):
        rows = [_row(drawn, number * place.count + each) for each in range(max(1, place.count // FILES))]
        breaks = number > 0 and drawn.random() < 0.2  # noqa: PLR2004 - a fifth
        data = _file(drawn, files, rows, count=not breaks)
        packed = files.form != "parquet" and drawn.random() < 0.3  # noqa: PLR2004 - about a third
        data = gzip.compress(data) if packed else data
        if breaks:
            files.has_broken, data = True, _broken(drawn, data)
        names.append(f"{number:03}.{files.form}{'.gz' if packed else ''}")
        (folder / names[-1]).write_bytes(data)
    return names


def _row(drawn: Random, number: int) -> dict[str, Any]:
    seen = BEGIN + drawn.randrange(SECONDS * TICKS_PER_SECOND)
    return {
        "k": drawn.choice(("p", "q", "größe")),
        "t": seen - drawn.randrange(60 * TICKS_PER_SECOND),
        "n": number,
        "x": drawn.choice((0.0, -0.0, 1e300, 5e-324, drawn.random(), drawn.uniform(-1e9, 1e9))),
        "s": drawn.choice(TEXTS),
        "b": drawn.random() < 0.5,  # noqa: PLR2004 - a coin
        "d": dt.date(1900, 1, 1) + dt.timedelta(days=drawn.randrange(60_000)),
        "seen": seen,
    }


def _file(drawn: Random, files: Drawn, rows: list[dict[str, Any]], *, count: bool) -> bytes:
    """Spell a file with some bad rows, and note what must become of each."""
    bad = {"csv": BAD_CSV, "json": BAD_JSON, "parquet": ("no key",)}[files.form]
    kinds = [drawn.choice(bad) if drawn.random() < BAD else "good" for _ in rows]
    if files.form == "parquet":
        lines = [""] * len(rows)
        data = _parquet(
            files, [{**row, "k": None} if kind == "no key" else row for kind, row in zip(kinds, rows, strict=True)]
        )
    else:
        spell = _csv_line if files.form == "csv" else _json_line
        head = [csv_line(files.types)] if files.form == "csv" else []
        lines = [spell(drawn, kind, row, files.types) for kind, row in zip(kinds, rows, strict=True)]
        data = "".join(f"{line}\n" for line in (*head, *lines)).encode()
    if count:
        _note(files, kinds, rows, lines)
    return data


def _note(files: Drawn, kinds: list[str], rows: list[dict[str, Any]], lines: list[str]) -> None:
    """Note what must become of the rows of a whole file."""
    files.rows += len(rows)
    for kind, row, line in zip(kinds, rows, lines, strict=True):
        if kind in LANDS:
            files.landing[row["n"]] = {**row, "t": None} if kind == "no time" else row
        else:
            files.dropping[str(row["n"]) if kind == "no key" else line.strip()] += 1


def _spelled(row: dict[str, Any], kind: str) -> dict[str, Any]:
    """Spell the values of a row, some of them badly."""
    found: dict[str, Any] = {**row, "d": row["d"].isoformat(), "t": _instant(row["t"]), "seen": _instant(row["seen"])}
    bad: dict[str, dict[str, Any]] = {"word": {"n": f"{row['n']}x"}, "no time": {"t": "noon"}, "no key": {"k": None}}
    return found | bad.get(kind, {})


def _instant(ticks: int) -> str:
    seconds, rest = divmod(ticks, TICKS_PER_SECOND)
    return f"{dt.datetime.fromtimestamp(seconds, dt.UTC):%Y-%m-%dT%H:%M:%S}.{rest:06}Z"


def _csv_line(drawn: Random, kind: str, row: dict[str, Any], types: dict[str, str]) -> str:
    if kind == "odd":
        return "".join(drawn.choice(ODD) for _ in range(drawn.randint(1, 60))).strip() or "?"
    found = _spelled(row, kind)
    values = [_word(found[name]) for name in types]
    return csv_line(values[:-1] if kind == "few" else [*values, "more"] if kind == "many" else values)


def _word(value: Any) -> Any:  # noqa: ANN401 - as CSV has it
    return ("true" if value else "false") if isinstance(value, bool) else "" if value is None else value


def _json_line(drawn: Random, kind: str, row: dict[str, Any], types: dict[str, str]) -> str:
    if kind == "odd":
        return "?" + "".join(drawn.choice(ODD) for _ in range(drawn.randint(1, 60)))
    found = _spelled(row, kind)
    text = json.dumps({name: found[name] for name in types}, ensure_ascii=drawn.random() < 0.5)  # noqa: PLR2004 - a coin
    return text[: drawn.randrange(1, len(text))] if kind == "broken" else text


def _parquet(files: Drawn, rows: list[dict[str, Any]]) -> bytes:
    columns = {}
    for name, spelled in files.types.items():
        values, kind = [row[name] for row in rows], declared_type(spelled)
        columns[name] = pa.array(values, pa.int64()).cast(kind) if spelled == "timestamp" else pa.array(values, kind)
    written = io.BytesIO()
    pq.write_table(pa.table(columns), written)
    return written.getvalue()


def _broken(drawn: Random, data: bytes) -> bytes:
    """Damage a file as a whole."""
    how = drawn.choice(("cut", "flipped", "empty", "noise"))
    if how == "cut":
        return data[: drawn.randrange(len(data))]
    if how == "flipped":
        bent = bytearray(data)
        for _ in range(drawn.randint(1, 20)):
            bent[drawn.randrange(len(bent))] ^= 1 << drawn.randrange(8)
        return bytes(bent)
    return b"" if how == "empty" else drawn.randbytes(drawn.randint(1, 4_000))


def _ran(drawn: Random, base: Path, files: Drawn, names: list[str]) -> Path:
    """Run the flow over the files; give the run's folder."""
    if files.is_recorded:
        paths = [f"inbox/{name}" for name in names]
        feed: dict[str, Any] = {files.form: paths} | ({} if files.form == "parquet" else {"types": files.types})
    else:
        feed = {"folder": "inbox", "format": files.form, "types": files.types}
    arrival = ", arrival: seen" if files.is_recorded else ""
    text = FLOW.format(buckets=drawn.choice((1, 3)), feed=json.dumps(feed), arrival=arrival)
    (base / "flow.yaml").write_text(text)
    flow = read_flow(base / "flow.yaml", {})
    wanted = Backfill(flow=flow, root=base / "run", base=base, engine=CoreEngine())
    if files.is_recorded:
        run_backfill(wanted, [SPAN])
        return wanted.root
    with open_driver(wanted.root, flow=flow.name) as driver:
        landing = Landing(wanted.landing)
        lander = LiveLanding(landing, flow, open_feeds(flow, base, wanted.root, landing), wall_now(), clock=WallClock())
        for _ in range(READINGS):
            lander.land(0, wall_now())
        runner_of(wanted, driver).advance(0, landing.last_id)
    return wanted.root


def _judge(root: Path, files: Drawn, done: Tried) -> None:
    """See that each good row is there as it was written, and that all others are in the ledger."""
    rows = read_stream(root, "beating")
    rows = rows.filter(pc.equal(rows["kind"], "data"))
    found: dict[int, list[dict[str, Any]]] = {}
    for row in _plain(rows, files.types):
        # A damaged file may have the number of a good row of another one.
        found.setdefault(row["n"], []).append(row)
    wrong = [n for n, wanted in files.landing.items() if not any(_same(row, wanted) for row in found.get(n, ()))]
    if wrong:
        done.find(
            f"{len(wrong)} good rows are not there as written", {n: (files.landing[n], found.get(n)) for n in wrong[:1]}
        )
    ledger = read_ledger(root)
    ledger = ledger.filter(pc.equal(ledger["action"], "dropped"))
    if silent := files.dropping - Counter(map(_told, ledger.select(["reason", "row", "raw"]).to_pylist())):
        done.find(f"{silent.total()} bad rows are not in the ledger", [*silent][:1])
    if files.has_broken:
        return
    if rows.num_rows != len(found) or set(found) - set(files.landing):
        done.find("rows are there that nobody wrote", sorted(set(found) - set(files.landing)))
    if rows.num_rows + ledger.num_rows != files.rows:
        done.find(f"{files.rows} rows came; {rows.num_rows} left, {ledger.num_rows} stand in the ledger", files.form)


def _told(line: dict[str, Any]) -> str:
    """Give the text of a bad row as the ledger has it, or the number of one without a key."""
    if line["reason"] == "null_key":
        return str(json.loads(line["row"])["n"])
    return bytes(line["raw"] or b"").decode(errors="replace").strip()


def _plain(rows: pa.Table, types: dict[str, str]) -> list[dict[str, Any]]:
    # A damaged file may have days that Python does not know.
    numbers = {"timestamp": "int64", "date": "int32"}
    columns = {
        name: (rows[name].cast(numbers[kind]) if kind in numbers else rows[name]).to_pylist()
        for name, kind in types.items()
    }
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _same(found: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Compare by value and by the sign of nothing."""
    return repr(found) == repr({name: wanted[name] for name in found} | {"d": (wanted["d"] - EPOCH).days})
