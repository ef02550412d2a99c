"""Requests for the drill `input`: what Airflow hands on is a list of commands, or one sentence."""

from __future__ import annotations

import datetime as dt
import io
import json
import os
from contextlib import redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Any

from pipelines.errors import Exit
from pipelines.jobs.commands.request import KINDS, main
from pipelines.jobs.drill.fed import WIDE
from pipelines.jobs.drill.fuzzed import ODD_WORDS, Tried, mangled
from pipelines.jobs.environment.exits import DEBUG

if TYPE_CHECKING:
    from random import Random

    from pipelines.jobs.drill.fuzzed import FuzzedPlace

SETTINGS = "home: elsewhere\nengine: core\nmaster: local[1]\n"
KEYS = (
    "start",
    "end",
    "engine",
    "force",
    "run",
    "speed",
    "for",
    "until",
    "after_backfill",
    "from",
    "to",
    "into",
    "other",
)
GOOD = 0.3
"""Of the requests, those that are right and must become the command that was asked for."""


def tried(place: FuzzedPlace) -> Tried:
    """Ask for mangled things, and for right ones."""
    done, drawn = Tried(), place.drawn()
    flows = place.folder / "config" / "flows"
    flows.mkdir(parents=True)
    (flows.parent / "local.yaml").write_text(SETTINGS)
    (flows / "drilled.yaml").write_text(WIDE.format(every="10m", buffers=1))
    os.environ |= {"PULSELINE_CONFIG": str(flows.parent), "PULSELINE_HOME": str(place.folder / "home")}
    for _ in range(place.count):
        done.inputs += 1
        _right(drawn, done) if drawn.random() < GOOD else _any(drawn, done)
    return done


def _right(drawn: Random, done: Tried) -> None:
    """Ask for days, and hold the command against them."""
    first = dt.datetime(2020, 1, 1, tzinfo=dt.UTC) + dt.timedelta(minutes=10 * drawn.randrange(10**5))
    last = first + dt.timedelta(minutes=10 * drawn.randint(1, 50))
    conf = {"start": first.isoformat(), "end": last.isoformat(), "engine": "core"}
    code, out, said = _asked(["backfill", "drilled", f"--conf={json.dumps(conf)}"], done)
    if code != Exit.FINE:
        done.find(f"a right request was refused ({said})", conf)
        return
    words = json.loads(out)["commands"]["run"][0]
    given = dict(zip(words[2::2], words[3::2], strict=False))
    found = [dt.datetime.fromisoformat(given[each]).replace(tzinfo=dt.UTC) for each in ("--start", "--end")]
    if found != [first, last]:
        done.find(f"a request became {words}", conf)


def _any(drawn: Random, done: Tried) -> None:
    """Ask for anything."""
    conf = {drawn.choice(KEYS): _value(drawn) for _ in range(drawn.randrange(5))}
    text = json.dumps(conf) if drawn.random() < 0.6 else mangled(drawn, json.dumps(conf))  # noqa: PLR2004 - more than half
    words = [drawn.choice(sorted(KINDS)), "drilled", f"--conf={text}"]
    if drawn.random() < 0.3:  # noqa: PLR2004 - about a third
        words += [f"--start={drawn.choice(ODD_WORDS)}", f"--end={drawn.choice(ODD_WORDS)}", "--by=scheduled"]
    if drawn.random() < 0.3:  # noqa: PLR2004 - about a third
        words += [f"--events={json.dumps([conf, _value(drawn)]) if drawn.random() < 0.5 else text}"]  # noqa: PLR2004 - a coin
    _asked(words, done)


def _value(drawn: Random) -> Any:  # noqa: ANN401 - anything that JSON has
    plain: tuple[Any, ...] = (
        None,
        True,
        False,
        0,
        -1,
        1.5,
        1e300,
        10**30,
        10**400,
        [],
        {},
        [1, "a"],
        {"a": {"b": []}},
        "",
    )
    days = (
        "2024-01-01",
        "2024-01-02T00:10:00Z",
        "2024-13-01",
        "0001-01-01",
        "9999-12-31",
        "2024-01-01T00:00:00.000001",
    )
    words = ("main", "core", "batch", "stopped", "caught up", "10m", "sequence:3", "1", "a/b", "..")
    return drawn.choice((*plain, *days, *days, *words, *ODD_WORDS))


def _asked(words: list[str], done: Tried) -> tuple[int, str, str]:
    """Ask, and see that the answer is one object, or one line that is a sentence."""
    out, said = io.StringIO(), io.StringIO()
    try:
        with redirect_stdout(out), redirect_stderr(said):
            code = main(words)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever comes out is the finding
        done.find(f"{type(error).__name__} came out", words)
        return Exit.RUN_FAILED, "", ""
    line = said.getvalue().strip()
    if code == Exit.FINE:
        if not isinstance(json.loads(out.getvalue()), dict):
            done.find("an answer is no object", words)
    elif not line or "\n" in line or DEBUG in line:
        done.find(line or "nothing was said", words)
    return code, out.getvalue(), line
