"""`pulseline pack`: what Spark's workers need of Python, as one archive that Spark unpacks on each of them.

An archive holds our code and the packages that tasks import, out of the environment that makes it: no version is
chosen anew. A worker brings Python itself, of the same minor version. The same environment gives the same bytes.
"""

from __future__ import annotations

import gzip
import io
import json
import sys
import tarfile
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import pipelines
from pipelines.jobs.environment.errors import WrongUse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from importlib.metadata import Distribution

IMPORTED = (
    "deltalake",
    "numba",
    "numpy",
    "obstore",
    "pendulum",
    "psutil",
    "pyarrow",
    "ruamel.yaml",
    "sqlglot",
    "tzdata",
)
"""What tasks import; what these need comes along."""
NAME, PYTHON = "pulseline", "pulseline-python"
"""Of the folder that a worker has the archive unpacked in, and of the program that is Python there."""
INTERPRETER = """\
#!/bin/sh
# Python of this machine, with the packages of this archive and nobody else's.
here=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
PYTHONPATH="$here/packages${{PYTHONPATH:+:$PYTHONPATH}}" exec python{version} "$@"
"""
PATH = "/usr/local/bin:/usr/bin:/bin"
"""Where a worker finds its own programs, Python among them."""
COMPRESSION = 6


@dataclass(frozen=True, kw_only=True)
class PackRequest:
    """What `pulseline pack` was asked for."""

    to: Path
    as_json: bool = False


def pack(wanted: PackRequest, echo: Callable[[str], None]) -> None:
    """Write the archive, and say how settings name it.

    Raises:
        WrongUse: the folder is not there, or a package is not installed.
    """
    if not wanted.to.parent.is_dir():
        raise WrongUse(
            f"the archive must have a folder to lie in; {wanted.to.parent} is not there: make it, or name --to"
        )
    begun = time.perf_counter()
    found = needed()
    draft = wanted.to.with_name(wanted.to.name + ".draft")
    try:
        size = _write(draft, found)
        draft.replace(wanted.to)
    finally:
        draft.unlink(missing_ok=True)
    names = [f"{each.metadata['Name']} {each.version}" for each in found]
    settings = settings_for(wanted.to)
    if wanted.as_json:
        echo(json.dumps({"archive": str(wanted.to), "bytes": size, "packages": names, "spark": settings}))
        return
    echo(f"{wanted.to}: our code, {', '.join(names)}")
    echo(f"{size:,} bytes, {wanted.to.stat().st_size:,} packed, in {time.perf_counter() - begun:.1f} s")
    echo(f"workers need python{_version()} and Java 17 of their own; config/<environment>.yaml names the archive:")
    for line in ("spark:", *(f"  {name}: {json.dumps(value)}" for name, value in settings.items())):
        echo(line)


def settings_for(archive: Path) -> dict[str, str]:
    """Give the settings of Spark's by which workers take their Python out of an archive."""
    return {
        "spark.archives": f"{archive.resolve()}#{NAME}",
        "spark.executorEnv.PATH": f"./{NAME}/bin:{PATH}",
        "spark.pyspark.python": PYTHON,
    }


def needed() -> list[Distribution]:
    """Give the installed packages that tasks import, and what these need, by name.

    Raises:
        WrongUse: one is not installed.
    """
    found: dict[str, Distribution] = {}
    waiting = [*IMPORTED]
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name in found:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError as error:
            raise WrongUse(f"tasks need the package {name}, which is not installed here: make setup") from error
        asked = map(Requirement, found[name].requires or ())
        waiting += [each.name for each in asked if each.marker is None or each.marker.evaluate({"extra": ""})]
    return [found[name] for name in sorted(found)]


def _write(archive: Path, found: list[Distribution]) -> int:
    # Neither names nor times of this machine: the same environment gives the same bytes.
    with (
        archive.open("wb") as raw,
        gzip.GzipFile("", "wb", COMPRESSION, raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        size = _add(tar, f"bin/{PYTHON}", INTERPRETER.format(version=_version()).encode(), 0o755)
        for name, file in sorted([*_ours(), *(each for of in found for each in _files(of))]):
            size += _add(tar, f"packages/{name}", file.read_bytes(), 0o644)
    return size


def _add(tar: tarfile.TarFile, name: str, data: bytes, mode: int) -> int:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), mode
    tar.addfile(entry, io.BytesIO(data))
    return len(data)


def _ours() -> Iterator[tuple[str, Path]]:
    root = Path(pipelines.__file__).parent
    for file in root.rglob("*"):
        if file.is_file() and file.suffix != ".pyc":
            yield str(file.relative_to(root.parent)), file


def _files(of: Distribution) -> Iterator[tuple[str, Path]]:
    """Give the files of a package, without scripts, which lie outside, and without compiled code of Python's."""
    for each in of.files or ():
        file = Path(str(each.locate()))
        if ".." not in each.parts and each.suffix != ".pyc" and file.is_file():
            yield str(each), file


def _version() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"
