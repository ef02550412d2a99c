# ruff: noqa: INP001 - a script beside the documents whose figures it makes, no package
"""Count what ARCHITECTURE.md says of the house: its rooms, the arrows between them, and what a change touches.

.venv/bin/python -m docs.measure_house          prints it
.venv/bin/python -m docs.measure_house write    writes it into ARCHITECTURE.md
.venv/bin/python -m docs.measure_house since d2c457d  says where lines of code came from since a commit
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections import Counter, defaultdict
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import grimp

from docs.measure_walk import walk
from docs.site.pages import remade_by
from expectations.report.sections import SECTIONS
from expectations.suites import CLASSES
from pipelines.engine.sources.catalog import MODULES
from pipelines.flows.feeds.catalog import KINDS
from pipelines.operators.specs import SPECS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

ROOT = Path(__file__).parents[1]
PACKAGES = ("pipelines", "expectations", "dags")
APART = ("pipelines.jobs.bench", "pipelines.jobs.drill", "pipelines.jobs.proofs")
"""Rooms that prove the product and are not it."""
SOURCES = "pipelines.engine.sources"


COMMANDS = "pipelines.jobs.commands"
SINCE: Mapping[str, tuple[str, ...]] = {
    "modules, interleave, instances, loops, explain": (
        *("flows.modules", "flows.forks", "flows.loops", "flows.instances", "flows.dividing"),
        *("operators.interleave", "operators.dispatch", "operators.loop", "engine.tasks.turns"),
        *("engine.tasks.links.interleave", "engine.tasks.links.dispatch", "engine.tasks.links.loop"),
        "jobs.commands.explain",
    ),
    "the Delta source": ("engine.sources.delta.", "flows.feeds.delta"),
    "homes in an object store": ("engine.files.stored",),
    "clusters": ("jobs.commands.pack", "jobs.runs.bucketing"),
    "the judge on DuckDB": ("expectations.on_duckdb",),
}
"""Modules that exist for one thing alone which came after the rooms were begun, by the thing."""


def files(root: Path = ROOT) -> dict[str, Path]:
    """Give the production modules by name."""
    return {
        ".".join(path.relative_to(root).with_suffix("").parts): path
        for package in PACKAGES
        for path in sorted((root / package).rglob("*.py"))
        if path.name != "__init__.py" and "older" not in path.parts
    }


def room_of(module: str) -> str:
    """Name the room that a module is in: two parts of its name, three in the engine and the jobs."""
    parts = module.split(".")
    return ".".join(parts[: 3 if parts[1:2] in (["engine"], ["jobs"]) else 2 if parts[0] == "pipelines" else 1])


def contracts() -> Iterator[list[set[str]]]:
    """Give the layers that the import contracts name, from the top down."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for contract in settings["tool"]["importlinter"]["contracts"]:
        if contract["type"] == "layers":
            within = contract.get("containers", [""])[0]
            prefix = f"{within}." if within else ""
            yield [{prefix + each.strip() for each in layer.split("|")} for layer in contract["layers"]]


def arrows_back(graph: grimp.ImportGraph) -> int:
    """Count imports that lead from a lower layer of a contract to a higher one."""
    found = 0
    for layers in contracts():
        for above, below in combinations(layers, 2):
            found += sum(
                graph.direct_import_exists(importer=low, imported=high, as_packages=True)
                for low in below
                for high in above
            )
    return found


def circles(graph: grimp.ImportGraph) -> int:
    """Count modules that are imported, over others, by themselves."""
    return sum(
        module in graph.find_upstream_modules(imported)
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
    )


def naming(pattern: str, modules: dict[str, Path]) -> list[str]:
    """Name the modules of the product in which a pattern stands outside docstrings and comments."""
    words = re.compile(pattern)
    return [
        name for name, path in modules.items() if not name.startswith(APART) and words.search(_code(path)) is not None
    ]


@cache
def _code(path: Path) -> str:
    text = re.sub(r'""".*?"""', "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.sub(r"#.*", "", text)


def operator_pattern(name: str) -> str:
    """Say how code names an operator: its word in quotes, its module or its classes."""
    title = SPECS[name].title
    return rf'"{name}"|operators\.{name}\b|\b{title}(Policy|Link)?\(|class {title}\b'


def touched_by_source(kind: str, graph: grimp.ImportGraph) -> list[str]:
    """Name what knows a kind of source: what is said of it, what opens it, and who imports one of these.

    A folder of its own in `engine.sources` counts as one; so do both catalogues, which know it by a word or its class.
    """
    said, opener = KINDS[kind].__module__, f"{SOURCES}.{MODULES[kind]}"
    folder = opener.rpartition(".")[0]
    own = opener if folder in {SOURCES, f"{SOURCES}.formats"} else folder
    within = {module for module in graph.modules if module == own or module.startswith(f"{own}.")}
    known = {said, *within}
    found = known.union(*(graph.find_modules_that_directly_import(module) for module in known), {f"{SOURCES}.catalog"})
    return sorted({own if module in within else module for module in found if not module.startswith(APART)})


def touched_by_command(graph: grimp.ImportGraph) -> dict[str, list[str]]:
    """Name what knows each command: its module, who imports that, and the file of its family in the command line."""
    return {
        module.removeprefix(f"{COMMANDS}.").replace("_", "-"): sorted(
            {module, *graph.find_modules_that_directly_import(module)}
        )
        for module in sorted(graph.find_children(COMMANDS))
        if any(each.startswith("pipelines.cli.") for each in graph.find_modules_that_directly_import(module))
    }


def touched_by_expectation(modules: dict[str, Path]) -> dict[str, list[str]]:
    """Name what knows each expectation: by its word in quotes, the function that gives its law, its class."""
    return {
        name: naming(rf'"{name}"|\b{name}\b|\b{name.upper()}\b|\b{kind.__name__}\b', modules)
        for name, kind in CLASSES.items()
    }


def touched_by_section(graph: grimp.ImportGraph) -> dict[str, list[str]]:
    """Name what knows each section of the report: the list of them, its view, its template, who imports the view's."""
    listed = "expectations.report.sections"
    found = {}
    for section in SECTIONS:
        view = section.view.__module__
        others = graph.find_modules_that_directly_import(view) if view != listed else set()
        found[section.name] = sorted({listed, view, *others, f"templates/{section.template}"})
    return found


def code_lines(path: Path) -> int:
    """Count the lines of a module that hold code: no comment, no docstring, nothing empty."""
    text = path.read_text(encoding="utf-8")
    told = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = enumerate(text.splitlines(), start=1)
    return sum(number not in told and line.strip()[:1] not in ("", "#") for number, line in lines)


def rooms_table() -> str:
    """Give the rooms with their modules and lines, to the hundred, as a table and a sentence."""
    modules, graph = files(), grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True)
    count: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for name, path in modules.items():
        count[room_of(name)] += 1
        lines[room_of(name)] += code_lines(path)
    rows = [f"| `{room.replace('.', '/')}` | {count[room]} | {lines[room]:,} |" for room in sorted(count)]
    proving = sum(size for room, size in lines.items() if room.startswith(APART))
    total = (
        f"Modules {len(modules)}, lines of code {lines.total():,}, of them proving the product {proving:,}. "
        f"Arrows back {arrows_back(graph)}, circles {circles(graph)}, "
        f"names of more than one class {len(names_of_several(modules))}."
    )
    return "\n".join(["| room | modules | lines of code |", "| --- | --- | --- |", *rows, "", total])


def names_of_several(modules: dict[str, Path]) -> list[str]:
    """Name what more than one class is called."""
    classes = Counter(
        name for path in modules.values() for name in re.findall(r"^class (\w+)", path.read_text("utf-8"), re.MULTILINE)
    )
    return [name for name, count in classes.items() if count > 1]


def touched() -> dict[str, dict[str, list[str]]]:
    """Name the production files that know each operator, source, command, expectation and section of the report."""
    modules, graph = files(), grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True)
    return {
        "operator": {kind: naming(operator_pattern(kind), modules) for kind in SPECS},
        "source": {kind: touched_by_source(kind, graph) for kind in KINDS},
        "command": touched_by_command(graph),
        "expectation": touched_by_expectation(modules),
        "section of the report": touched_by_section(graph),
    }


def touched_table() -> str:
    """Give how many production files each thing touches, as a table with the fewest first."""
    rows = []
    for what, found in touched().items():
        by_count = defaultdict(list)
        for name, known in found.items():
            by_count[len(known)].append(f"`{name}`")
        rows += [f"| {what} | {count} | {', '.join(by_count[count])} |" for count in sorted(by_count)]
    return "\n".join(["| a change of | production files that know it | |", "| --- | --- | --- |", *rows])


def walk_sentence() -> str:
    """Say through which modules a parameter goes, and in which shapes."""
    found = walk()
    way = ", ".join(f"`{name.removeprefix('pipelines.').replace('.', '/')}`" for name in found.modules)
    return (
        f"The longest walk of a parameter, `interval` of a heartbeat in a run: {len(found.modules)} modules have it in "
        f"hand by itself ({way}), in {len(found.shapes)} shapes ({', '.join(found.shapes)})."
    )


MAKERS: Mapping[str, Callable[[], str]] = {"rooms": rooms_table, "touched": touched_table, "walk": walk_sentence}


def since(commit: str) -> Iterator[str]:
    """Say where lines of code came from since an older commit: what exists for one new thing alone, and the rest."""
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(["git", "archive", commit, *PACKAGES], cwd=ROOT, capture_output=True, check=True)  # noqa: S603, S607 - the commit is a word of whoever measures
        with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
            archive.extractall(folder, filter="data")
        old, new = _product(files(Path(folder))), _product(files())
    yield f"before {sum(old.values()):,}, now {sum(new.values()):,}"
    left = dict(new)
    for thing, prefixes in SINCE.items():
        mine = {name for name in left if name.removeprefix("pipelines.").startswith(prefixes)}
        yield f"{thing}: {sum(left.pop(name) for name in mine):,} in {len(mine)} modules"
    yield f"all else, and what these added to it: {sum(left.values()):,}"


def _product(modules: Mapping[str, Path]) -> dict[str, int]:
    return {name: code_lines(path) for name, path in modules.items() if not name.startswith(APART)}


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(text + "\n")


def main(words: list[str]) -> None:
    """Print rooms, what a change touches and the walk; or write them; or count against an older commit."""
    match words:
        case ["write"]:
            page = ROOT / "ARCHITECTURE.md"
            page.write_text(remade_by(MAKERS, page.read_text(encoding="utf-8")), encoding="utf-8")
        case ["since", commit]:
            for line in since(commit):
                say(line)
        case _:
            say("\n\n".join(make() for make in MAKERS.values()))
            for what, found in touched().items():
                for name, known in found.items():
                    say(f"{what} {name}: {len(known)} ({', '.join(each.removeprefix('pipelines.') for each in known)})")


if __name__ == "__main__":
    main(sys.argv[1:])
