"""Spark's classes as Java has them in memory, kept in a file: a Java that maps it starts Spark sooner.

Java calls it class data sharing, the file a dynamic archive. It is made once for a Java and a Spark, by a process that
starts Spark, runs a job and a query, and ends. Java itself sees whether an archive is of its own build and of the jars
that are there, and goes on without it where it is not: nothing that is computed depends on it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager, nullcontext, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from pipelines.engine.files.durable import sync_file
from pipelines.operators.code_folder import lasting_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

OPTIONS = "SPARK_SUBMIT_OPTS"
"""What Spark's launcher hands to Java beside all that settings say."""
QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
"""Java warns of classes that cannot be kept, by hundreds, and of an archive that is another Java's."""
SUMMED = "-XX:+VerifySharedSpaces"
"""Has Java sum up an archive before it maps it: one with other bytes than were written counts as none."""
USING = "pipelines.engine.tasks.spark_in_use"
"""The program whose classes are kept."""
PATIENCE = 120.0
"""Seconds that Java may take to write an archive."""
NEEDS = 400 << 20
"""Bytes of disk that must be free: an archive has some 150 MB."""


def archive_folder() -> Path | None:
    """Give where archives for this Java and this Spark lie, or would lie; None where none can be kept.

    Raises:
        CodeFolderError: the folder can be written by others, who would have programs run as us.
    """
    java, spark = _java(), _spark()
    if java is None or spark is None:
        return None
    known = [f"{path}:{found.st_size}:{found.st_mtime_ns}" for path in (java, spark) for found in [path.stat()]]
    folder = lasting_folder("spark-" + hashlib.blake2b("\n".join(known).encode(), digest_size=8).hexdigest())
    # Java takes a colon for the border between two archives.
    return None if folder is None or ":" in str(folder) else folder


def archive_in(folder: Path) -> Path | None:
    """Give the archive of a folder; None where there is none, or what lies there is shorter than it was written.

    Java maps one that was cut short as well, and dies of it.
    """
    files = sorted(folder.glob("*.jsa"))
    return next((file for file in files if file.name == _named(file.stat().st_size)), None)


def _named(size: int) -> str:
    return f"classes-{size}.jsa"


def _java() -> Path | None:
    """Give the program that Spark's launcher starts."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    return Path(found).resolve() if found else None


def _spark() -> Path | None:
    """Give the folder of the jars; one that is installed anew is another one."""
    found = find_spec("pyspark")
    home = os.environ.get("SPARK_HOME") or (found and found.origin and str(Path(found.origin).parent))
    jars = Path(home) / "jars" if home else None
    return jars if jars is not None and jars.is_dir() else None


@contextmanager
def shared_classes() -> Iterator[None]:
    """Have a Java that is started meanwhile map the archive, where there is one."""
    archive = None
    with suppress(OSError):
        folder = archive_folder()
        archive = folder and archive_in(folder)
    with nullcontext() if archive is None else _told(f'"-XX:SharedArchiveFile={archive}" {SUMMED} {QUIET}'):
        yield


@contextmanager
def _told(words: str) -> Iterator[None]:
    before = os.environ.get(OPTIONS)
    os.environ[OPTIONS] = f"{words} {before}" if before else words
    try:
        yield
    finally:
        if before is None:
            del os.environ[OPTIONS]
        else:
            os.environ[OPTIONS] = before


def make_archive(folder: Path) -> str | None:
    """Start Spark once, use it a little, and keep its classes.

    Args:
        folder: as `archive_folder` gives it; archives that lie there go.

    Returns:
        None, or why there is none now: nothing else needs it.
    """
    free = shutil.disk_usage(folder).free
    if free < NEEDS:
        return f"{folder} needs {NEEDS >> 20} MB and has {free >> 20} MB free"
    draft = folder / f".{os.getpid()}.draft"
    try:
        with _told(f'"-XX:ArchiveClassesAtExit={draft}" {QUIET}'):
            command = [sys.executable, "-m", USING]
            ran = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own
        for java in ran.stdout.split():
            # It writes when Python has ended already.
            with suppress(psutil.Error):
                psutil.Process(int(java)).wait(PATIENCE)
        if ran.returncode or not draft.is_file():
            return (ran.stderr.strip() or "Java wrote none").splitlines()[-1]
        sync_file(draft)
        before = list(folder.glob("*.jsa"))
        made = draft.replace(folder / _named(draft.stat().st_size))
        for file in before:
            if file != made:
                file.unlink(missing_ok=True)
    finally:
        draft.unlink(missing_ok=True)
    return None
