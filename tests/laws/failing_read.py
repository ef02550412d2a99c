"""A process in which one read fails: what is there must not be taken for torn, or for absent.

failing_read.py BASE   # prints what each case came to, as one JSON object a line; needs the drill's library
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.engine.commits import delta_log
from pipelines.engine.commits.delta_log import SETTLED, checkpoint, mend
from pipelines.engine.commits.paths import LOG, carry_folders, data_tables, stream_path, version_path
from pipelines.engine.commits.table_log import TableChange, TableLog
from pipelines.engine.landing.manifest import BUFFERS_FILE, shelves
from pipelines.engine.sources.files import find_files
from pipelines.engine.sources.socket.spool import Spool
from pipelines.engine.sources.socket.spool_files import read_segments
from pipelines.jobs.drill.failing import FailingCall, How
from pipelines.jobs.drill.preloaded import library
from tests.engine.commits.test_table_log import SCHEMA, new_file

if TYPE_CHECKING:
    from collections.abc import Callable


def came_to(question: Callable[[], object], call: FailingCall, place: Path, number: int) -> str:
    """Ask something while one call at a place fails; give what it came to."""
    library().fault_arm(os.fsencode(place), int(call), ctypes.c_long(0), number, int(How.REFUSED))
    try:
        return str(question())
    except OSError as problem:
        return errno.errorcode.get(problem.errno or 0, str(problem))


def table(root: Path) -> Path:
    """Make a table with versions 0 to 5 and a checkpoint of version 3, behind which the log was cleaned."""
    path = stream_path(root, "s")
    delta_log.create(path, SCHEMA)
    for commit in range(1, 6):
        log = TableLog(path)
        log.look()
        log.commit(TableChange(adds=[new_file(path, commit, commit)]), {SETTLED: commit})
        if commit == 3:
            checkpoint(path)
    return path


def main() -> None:
    """Try each case."""
    base = Path(sys.argv[1])
    path = table(base)
    (base / "carry" / "s.state").mkdir(parents=True)
    (base / "landed").mkdir()
    (base / "landed" / BUFFERS_FILE).write_text('{"places": {}, "health": {}}')
    for name in ("a", "b"):
        (base / "feed" / name).mkdir(parents=True)
        (base / "feed" / name / "x.csv").touch()
    Spool(base / "spool", 0, 0, 400, lambda: 5).close()
    newest, ground = version_path(path, 5), path / LOG / f"{3:020d}.checkpoint.parquet"
    cases: list[tuple[str, Callable[[], object], FailingCall, Path, int]] = [
        ("newest version, opened", lambda: mend(path), FailingCall.OPEN, newest, errno.EACCES),
        ("newest version, read", lambda: mend(path), FailingCall.READ, newest, errno.EIO),
        ("checkpoint, opened", lambda: mend(path), FailingCall.OPEN, ground, errno.EACCES),
        ("checkpoint, read", lambda: mend(path), FailingCall.READ, ground, errno.ESTALE),
        ("streams", lambda: data_tables(base), FailingCall.OPEN, base / "streams", errno.EACCES),
        ("carry", lambda: carry_folders(base), FailingCall.OPEN, base / "carry", errno.EACCES),
        ("buffers", lambda: shelves(base / "landed"), FailingCall.LOOK, base / "landed" / BUFFERS_FILE, errno.EACCES),
        (
            "pattern",
            lambda: find_files(["feed/*/*.csv"], base, "csv"),
            FailingCall.OPEN,
            base / "feed" / "b",
            errno.EIO,
        ),
        ("spool", lambda: read_segments(base / "spool"), FailingCall.OPEN, base / "spool", errno.EACCES),
    ]
    for name, question, call, place, number in cases:
        sys.stdout.write(json.dumps([name, errno.errorcode[number], came_to(question, call, place, number)]) + "\n")
    left = [each.name for each in (newest, ground) if each.exists()]
    sys.stdout.write(json.dumps(["left", str([newest.name, ground.name]), str(left)]) + "\n")


if __name__ == "__main__":
    main()
