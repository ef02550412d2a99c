"""What may stand in the tree: names that say something, and nothing of the machine it was written on."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EMPTY_NAMES = {"util", "utils", "common", "base", "helper", "helpers", "misc"}

# Spelled with brackets, so that this file does not name them itself.
FOREIGN = re.compile(
    r"pyp[i]\.org|pythonhoste[d]|ancond[a]\.org|rep[o]1?\.maven|registr[y]\.npmjs|registr[y]-1\.docker|de[b]\.debian"
    r"|archiv[e]\.ubuntu|prox[y]\.golang|/wor[k]/|/roo[t]/|/hom[e]/\w|/User[s]/\w|/tm[p]/plan|\.librar[y]\b",
    re.IGNORECASE,
)


def files_of_the_tree() -> list[Path]:
    """List what is committed or would be: everything that Git does not ignore."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        pytest.skip("this is no Git checkout, so nothing says which files are the project's")
    return [path for name in run.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def test_no_file_names_a_registry_host_or_a_path_of_one_machine() -> None:
    found = {
        f"{path.relative_to(ROOT)}:{number}: {hit[0]}"
        for path in files_of_the_tree()
        for number, line in enumerate(path.read_bytes().decode(errors="replace").splitlines(), start=1)
        if (hit := FOREIGN.search(line))
    }

    assert found == set()


@pytest.mark.parametrize(
    "parts", [("https://pyp", "i.org/simple"), ("/roo", "t/x"), ("/wor", "k/main"), ("/hom", "e/ann")]
)
def test_such_a_name_would_be_found(parts: tuple[str, str]) -> None:
    assert FOREIGN.search("".join(parts))


def test_no_module_has_a_name_that_says_nothing() -> None:
    modules = [path.relative_to(ROOT) for path in files_of_the_tree() if path.suffix == ".py"]
    named = {str(path) for path in modules if EMPTY_NAMES & {*path.parts[:-1], path.stem}}

    assert modules
    assert named == set()


def test_every_package_says_what_it_is_for() -> None:
    packages = [path for path in files_of_the_tree() if path.name == "__init__.py"]
    silent = {str(path.relative_to(ROOT)) for path in packages if not path.read_text().startswith('"""')}

    assert packages
    assert silent == set()


@pytest.mark.parametrize("floor", ["engine", "jobs"])
def test_tests_lie_in_the_rooms_of_what_they_test(floor: str) -> None:
    rooms = {path.name for path in (ROOT / "pipelines" / floor).iterdir() if path.is_dir()}
    tests = [path.relative_to(ROOT / "tests" / floor) for path in (ROOT / "tests" / floor).rglob("test_*.py")]

    assert tests
    assert {str(path) for path in tests if path.parent.name not in rooms} == set(), "laws over rooms: tests/laws"
