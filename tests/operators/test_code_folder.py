"""Machine code is kept where only its owner writes: whoever can write there has programs run as the reader."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.operators.code_folder import CodeFolderError, code_folder
from tests.operators.plain_process import PLAIN

ROOT = Path(__file__).parents[2]
STRANGER = 1
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
COMPILES = "import numpy; from pipelines.engine.columnar.lanes import stir; stir((numpy.zeros(1, 'u8'),) * 2, numpy.zeros(1, 'u8'), numpy.uint64(1), None)"  # noqa: E501 - one line for python -c


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a user's cache folder of our own, with nothing chosen."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "platform", "linux")
    return tmp_path / "cache"


def compiling(**settings: str) -> subprocess.CompletedProcess[str]:
    """Compile a function in a process of its own, as any command does."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    environment = kept | {"PYTHONPATH": str(ROOT)} | settings
    command = [sys.executable, "-c", COMPILES]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)


class Planted:
    """Makes a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return (Path.touch, (self.mark,))


def plant(base: Path, mark: Path) -> None:
    """Fill a folder as a stranger would: the code is another's, and its index makes a file."""
    assert compiling(NUMBA_CACHE_DIR=str(base)).returncode == 0
    for index in base.rglob("*.nbi"):
        index.write_bytes(pickle.dumps(Planted(mark)))
    for found in (base, *base.rglob("*")):
        os.chown(found, STRANGER, STRANGER)


@AS_ROOT
@pytest.mark.skipif(PLAIN, reason="nothing is compiled")
def test_what_a_stranger_planted_is_never_loaded(tmp_path: Path) -> None:
    temporary, mark = tmp_path / "tmp", tmp_path / "mark"
    temporary.mkdir()
    planted = temporary / f"pulseline-numba-{os.getuid()}"
    plant(planted, mark)
    assert list(planted.rglob("*.nbi"))
    done = compiling(TMPDIR=str(temporary), XDG_CACHE_HOME=str(tmp_path / "fresh"))
    assert (done.returncode, mark.exists()) == (0, False), done.stderr
    assert list((tmp_path / "fresh").rglob("*.nbi"))
    refused = compiling(NUMBA_CACHE_DIR=str(planted))
    assert (refused.returncode, mark.exists()) == (1, False)
    assert f"the folder of compiled code {planted} belongs to daemon" in refused.stderr


def test_it_lies_under_the_users_cache_and_is_the_owners_alone(cache: Path) -> None:
    found = code_folder("abc")
    assert found == cache / "pulseline" / "numba" / "abc"
    made = [found, *found.parents][:4]
    assert [folder.stat().st_mode & 0o777 for folder in made] == [0o700] * 4
    assert code_folder("abc") == found


def test_a_relative_cache_home_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert code_folder("abc") == tmp_path / "home" / ".cache" / "pulseline" / "numba" / "abc"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert code_folder("abc") == tmp_path / "home" / "Library" / "Caches" / "pulseline" / "numba" / "abc"


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_link_is_refused_by_name(cache: Path, tmp_path: Path, depth: int) -> None:
    link = cache.joinpath(*["pulseline", "numba", "abc"][:depth])
    link.parent.mkdir(parents=True, mode=0o700)
    (tmp_path / "elsewhere").mkdir()
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CodeFolderError, match=f"{link} is a link, .*: remove it, or name a folder.*NUMBA_CACHE_DIR"):
        code_folder("abc")


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o1777])
def test_one_that_others_can_write_is_refused_by_name(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    open_one = cache / "pulseline"
    open_one.mkdir(parents=True)
    open_one.chmod(mode)
    with pytest.raises(CodeFolderError, match=f"{open_one} can be written by others"):
        code_folder("abc")
    chosen = tmp_path / "chosen"
    chosen.mkdir()
    chosen.chmod(mode)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(chosen))
    with pytest.raises(CodeFolderError, match=f"{chosen} can be written by others"):
        code_folder("abc")


@AS_ROOT
def test_a_strangers_folder_is_refused_by_name() -> None:
    inner = code_folder("abc")
    os.chown(inner, STRANGER, STRANGER)
    with pytest.raises(CodeFolderError, match=f"{inner} belongs to "):
        code_folder("abc")


def test_a_chosen_folder_is_taken_with_the_sources_name_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "chosen"))
    assert code_folder("abc") == tmp_path / "chosen" / "abc"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "chosen" / "abc"))
    assert code_folder("abc") == tmp_path / "chosen" / "abc"


def unwritable(tmp_path: Path) -> str:
    """Give a cache folder that cannot be made, whoever asks: a file stands in its way."""
    (tmp_path / "file").touch()
    return str(tmp_path / "file" / "cache")


def test_without_a_home_that_can_be_written_a_private_folder_serves_and_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", unwritable(tmp_path))
    first = code_folder("abc")
    assert (first.name, first.stat().st_mode & 0o777, first.parent.stat().st_mode & 0o777) == ("abc", 0o700, 0o700)
    assert capsys.readouterr().err.count("compiled code is kept in") == 1
    assert code_folder("abc") == first, "a process that this one starts finds it"
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(PLAIN, reason="nothing is compiled")
def test_a_private_folder_ends_with_its_command(tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    done = compiling(TMPDIR=str(temporary), XDG_CACHE_HOME=unwritable(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(f"compiled code is kept in {temporary}/pulseline-numba-") == 1
    assert list(temporary.iterdir()) == []


@AS_ROOT
def test_a_folder_that_another_user_can_move_away_is_not_used(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache.mkdir()
    os.chown(cache, STRANGER, STRANGER)
    assert cache not in code_folder("abc").parents
    assert f"others can change what lies in {cache}" in capsys.readouterr().err
