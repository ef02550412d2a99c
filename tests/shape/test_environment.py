"""The files around the code agree with each other: dependencies, versions, targets, services, settings."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
CODE = ("pipelines", "expectations", "dags", "tests", "docs")
PROGRAMS = {"import-linter", "ministack", "mypy", "pytest-cov", "pytest-timeout", "ruff", "types-psutil", "zensical"}
"""What `make check`, `make docs` and the tests run, or take for types."""


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def yaml_file(name: str) -> dict[str, Any]:
    """Read a YAML file of the repository as plain dictionaries."""
    loaded: dict[str, Any] = YAML(typ="safe").load((ROOT / name).read_text())
    return loaded


def pinned() -> dict[str, str]:
    """Read the tested versions by name; a line of any other form is an error."""
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.+!]+", line)] == []
    return {normal(name): version for name, _, version in (line.partition("==") for line in lines)}


def test_every_dependency_has_one_tested_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *chain.from_iterable(project["optional-dependencies"].values())]
    versions = pinned()

    assert [one for one in asked if normal(re.split(r"[<>=!~;\[ ]", one)[0]) not in versions] == []
    assert [one for one in asked if "==" in one and versions[normal(one.split("==")[0])] != one.split("==")[1]] == []


def imported() -> set[str]:
    """Name the packages whose modules anything here imports."""
    texts = (path.read_text() for top in CODE for path in (ROOT / top).rglob("*.py"))
    # Each import stands on a line of its own, and no text in three quotes is one.
    codes = (re.sub(r'"""(?:\\.|[^\\])*?"""', "", text, flags=re.DOTALL) for text in texts)
    names = {name for code in codes for name in re.findall(r"^ *(?:from|import) (\w+)", code, flags=re.MULTILINE)}
    packages = metadata.packages_distributions()
    return {normal(each) for name in names for each in packages.get(name, ())}


def unexplained(project: str, known: set[str]) -> list[str]:
    """Name the dependencies that nothing imports, for which no comment beside them says why they are asked for."""
    lines = re.findall(r'^    "([\w.-]+)[^"]*",(.*)$', project.partition("[project.scripts]")[0], flags=re.MULTILINE)
    assert len(lines) > 20
    return [name for name, comment in lines if normal(name) not in known and "#" not in comment]


def test_every_dependency_is_imported_or_says_why_it_is_asked_for() -> None:
    project, known = (ROOT / "pyproject.toml").read_text(), imported() | PROGRAMS

    assert unexplained(project, known) == []
    assert unexplained(project.replace('    "deltalake",', '    "unused-by-all",\n    "deltalake",'), known) == [
        "unused-by-all"
    ]


def test_what_is_kept_out_would_else_be_installed() -> None:
    """An override stays only as long as a package that is installed asks for what it leaves out."""
    uv = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]
    out = {normal(each.partition(";")[0].strip()) for each in uv["override-dependencies"]}
    required = chain.from_iterable(each.requires or () for each in metadata.distributions())
    asked = {normal(re.split(r"[<>=!~;\[ (]", one)[0]) for one in required if "extra ==" not in one}

    assert out - asked == set()


def test_the_client_that_overwrites_pyspark_is_left_out() -> None:
    assert "pyspark-client" not in pinned()


def test_make_help_has_a_line_for_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text()
    [targets] = re.findall(r"^\.PHONY:(.*)$", makefile, flags=re.MULTILINE)
    explained = re.findall(r"^([a-z-]+):[^#\n]*## \S", makefile, flags=re.MULTILINE)

    assert set(targets.split()) - {"machine"} == set(explained)


def test_ci_runs_what_the_readme_says() -> None:
    lines = (ROOT / ".ci/run").read_text().splitlines()

    assert any(line.startswith("make --no-print-directory test ||") for line in lines)
    assert any(line.startswith("make --no-print-directory drill |") for line in lines)


def test_the_services_name_only_what_exists() -> None:
    compose = yaml_file("docker-compose.yml")
    services = compose["services"]
    waited_for = {other for service in services.values() for other in service.get("depends_on", {})}
    mounted = {str(volume).split(":")[0] for service in services.values() for volume in service.get("volumes", [])}
    dockerfile = services["scheduler"]["build"]["dockerfile_inline"]
    copied = {name for line in re.findall(r"^COPY (.*) \S+$", dockerfile, flags=re.MULTILINE) for name in line.split()}

    assert waited_for <= set(services)
    assert mounted == set(compose["volumes"])
    assert {name for name in copied if not (ROOT / name).exists()} == set()


def test_services_wait_for_health_or_the_end() -> None:
    services = yaml_file("docker-compose.yml")["services"]
    waits = [(other, how) for service in services.values() for other, how in service.get("depends_on", {}).items()]
    ends = {"secrets", "airflow-database"}

    assert {name for name, service in services.items() if "healthcheck" not in service} == ends
    for other, how in waits:
        assert how == {"condition": "service_completed_successfully" if other in ends else "service_healthy"}


def test_no_service_is_root_has_a_password_in_the_file_or_is_open_to_other_machines() -> None:
    text, services = (ROOT / "docker-compose.yml").read_text(), yaml_file("docker-compose.yml")["services"]
    ports = [port for service in services.values() for port in service.get("ports", [])]

    assert {service["user"] for service in services.values()} == {"pulseline", "postgres", "appuser"}
    assert "privileged" not in text
    assert not [name for service in services.values() for name in service.get("environment", {}) if _tells(name)]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def _tells(name: str) -> bool:
    """Say whether a variable would hold a secret itself, and not where it lies."""
    asked = ("PASSWORD", "SECRET_KEY", "JWT_SECRET", "FERNET_KEY", "SQL_ALCHEMY_CONN")
    return name.endswith(asked)


def test_the_cluster_settings_meet_the_services() -> None:
    cluster, services = yaml_file("config/cluster.yaml"), yaml_file("docker-compose.yml")["services"]

    assert set(cluster) == set(yaml_file("config/local.yaml"))
    for name in ("scheduler", "spark-worker"):
        assert services[name]["environment"]["PULSELINE_HOME"] == cluster["home"]
        assert services[name]["environment"]["PULSELINE_ENVIRONMENT"] == "cluster"
        assert f"tables:{cluster['home']}" in services[name]["volumes"]
    assert services["spark-worker"]["command"][-1] == cluster["master"]
