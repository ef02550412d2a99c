"""Where things lie and who runs them: the environment's settings, from config/<environment>.yaml and the shell."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pipelines.flows.apart import MARGIN, MAX_BYTES, Apart
from pipelines.jobs.environment.errors import WrongUse
from pipelines.operators.replay import BUFFERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipelines.flows.model import Flow

MAIN_RUN = "main"
RUN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}")
TAKEN = {"reports": "the pages of all flows", "airflow": "Airflow's own files"}
KNOWN = frozenset({"access", "home", "engine", "master", "buffers", "landed"})
FOREVER = "forever"
ENCODED = re.compile(r"%[0-9A-Fa-f]{2}")
"""What delta-rs, and whoever reads tables by it, takes for one character of a path."""
CHECKOUT = Path(__file__).resolve().parents[3]


class Access(StrEnum):
    """Who may enter a home."""

    OWNER = "owner"
    """Only the user who runs commands."""
    GROUP = "group"
    """All of that user's group, who may run commands over it too."""
    EVERYONE = "everyone"
    """All users of the machine may read."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One environment.

    `PULSELINE_HOME` goes before the file's `home`, `PULSELINE_CONFIG` names another folder than ./config, and
    `PULSELINE_ENVIRONMENT` another file than local.yaml.
    """

    config: Path
    home: Path
    engine: str
    master: str
    places: tuple[Path, ...] = ()
    """Where the three buffers of flows with `buffers: 3` stand; folders of each run unless given."""
    apart: Apart = Apart.FOLDER
    max_bytes: int = MAX_BYTES
    """What may wait in the buffers for a consistent state; when it is reached the sources wait."""
    margin: int = MARGIN
    """Sequences that stay in the buffers though a commit covers them."""
    keep_landed: int | None = None
    """How long landed rows that a commit covers are kept, in ticks; None for ever."""

    access: Access = Access.OWNER
    """Who may read what is written."""

    @property
    def spark_log(self) -> Path:
        """Where Spark's own process writes."""
        return self.home / "spark.log"

    def feeds_base(self, flow: Flow) -> Path:
        """Give the folder that the paths of a flow's feeds are relative to: the one its file lies in."""
        return Path(flow.file).absolute().parent if flow.file else self.config / "flows"

    def root(self, flow: str, run: str = MAIN_RUN) -> Path:
        """Give the folder of a flow's run.

        Raises:
            WrongUse: the run's name could lead out of the flow's folder.
        """
        if not RUN_NAME.fullmatch(run):
            raise WrongUse(f"--run must be a name of letters, digits, `_` and `-`; it is `{run}`")
        if flow in TAKEN:
            raise WrongUse(f"a flow cannot be called `{flow}`: {TAKEN[flow]} lie in that folder; give it another name")
        return self.home / flow / run

    def pages(self, flow: str, run: str = MAIN_RUN) -> Path:
        """Give the folder of a run's pages."""
        return self.home / "reports" / flow / run


def config_folder() -> Path:
    """Give the folder of flows and environments: $PULSELINE_CONFIG, ./config, or the checkout's."""
    chosen = os.environ.get("PULSELINE_CONFIG")
    here = Path(chosen) if chosen else Path("config")
    return here if chosen or here.is_dir() else CHECKOUT / "config"


def settings_file() -> Path:
    """Give the file of the environment's settings."""
    return config_folder() / f"{os.environ.get('PULSELINE_ENVIRONMENT', 'local')}.yaml"


def read_settings() -> Settings:
    """Read the environment's settings.

    Raises:
        WrongUse: the environment's file is not there or lacks a setting.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    file = settings_file()
    if not file.is_file():
        raise WrongUse(f"{file} must hold the environment's settings; there is no such file: see PULSELINE_CONFIG")
    try:
        found = YAML(typ="safe").load(file) or {}
    except YAMLError as error:
        raise WrongUse(f"{file} must be YAML: {' '.join(str(error).split())}") from error
    if not isinstance(found, dict):
        raise WrongUse(f"{file} must be a mapping of settings; it is {found!r}")
    unknown = sorted(map(str, found.keys() - KNOWN))
    if unknown:
        raise WrongUse(f"{file} has {', '.join(unknown)}; there are {', '.join(sorted(KNOWN))}")
    missing = {"home", "engine", "master"} - found.keys()
    if missing:
        raise WrongUse(f"{file} must have {', '.join(sorted(missing))}")
    home = Path(os.environ.get("PULSELINE_HOME") or str(found["home"])).absolute()
    if ENCODED.search(str(home)):
        raise WrongUse(
            f"no part of the home's path may look like a character of a URL (%20, %41): readers of Delta tables would "
            f"look elsewhere; it is {home}: give the folder another name, or set PULSELINE_HOME"
        )
    more = _buffers(file, found) | {"keep_landed": _keep_landed(file, found), "access": _access(file, found)}
    return Settings(config=file.parent, home=home, engine=found["engine"], master=found["master"], **more)


def _access(file: Path, found: Mapping[str, Any]) -> Access:
    """Read who may read what is written.

    Raises:
        WrongUse: the setting is unknown.
    """
    said = found.get("access", Access.OWNER.value)
    if said not in list(Access):
        raise WrongUse(f"{file}: `access` must be {', '.join(Access)}; it is {said!r}")
    return Access(said)


def _buffers(file: Path, found: Mapping[str, Any]) -> dict[str, Any]:
    """Read where buffers stand, and how much they take.

    Raises:
        WrongUse: a setting is unknown or makes no sense.
    """
    said = {} if found.get("buffers") is None else found["buffers"]
    known = {"places", "apart", "max_bytes", "margin"}
    if not isinstance(said, dict) or said.keys() - known:
        raise WrongUse(f"{file}: `buffers` must be a mapping of {', '.join(sorted(known))}; it is {said!r}")
    named = [] if said.get("places") is None else said["places"]
    if (
        not isinstance(named, list)
        or len(named) not in {0, BUFFERS}
        or not all(isinstance(each, str) for each in named)
    ):
        raise WrongUse(f"{file}: `buffers: places` must be a list of {BUFFERS} folders, or none; it is {named!r}")
    places = tuple(Path(place).absolute() for place in named)
    words = [each.value for each in Apart]
    if said.get("apart", "folder") not in words:
        raise WrongUse(f"{file}: `buffers: apart` must be {', '.join(words)}; it is {said['apart']!r}")
    numbers = {name: said[name] for name in ("max_bytes", "margin") if name in said}
    for name, number in numbers.items():
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise WrongUse(f"{file}: `buffers: {name}` must be a whole number above 0; it is {number!r}")
    return {"places": places, "apart": Apart(said.get("apart", "folder")), **numbers}


def _keep_landed(file: Path, found: Mapping[str, Any]) -> int | None:
    """Read how long landed rows are kept; None for ever.

    Raises:
        WrongUse: the setting is unknown or no duration.
    """
    from pipelines.flows.durations import parse
    from pipelines.flows.errors import DurationError

    said = {} if found.get("landed") is None else found["landed"]
    if not isinstance(said, dict) or said.keys() - {"keep"}:
        raise WrongUse(f"{file}: `landed` must be a mapping of keep; it is {said!r}")
    keep = said.get("keep", FOREVER)
    if keep == FOREVER:
        return None
    try:
        ticks = parse(keep) if isinstance(keep, str) else 0
    except DurationError:
        ticks = 0
    if ticks <= 0:
        raise WrongUse(f"{file}: `landed: keep` must be a duration such as 30d or 12h, or `{FOREVER}`; it is {keep!r}")
    return ticks


def flow_files(settings: Settings) -> list[Path]:
    """List the files that describe flows."""
    return sorted((settings.config / "flows").glob("*.yaml"))


def load_flow(settings: Settings, name: str, parameters: Mapping[str, str] = MappingProxyType({})) -> Flow:
    """Read a flow by name, or by the path of its file.

    Args:
        settings: of the environment.
        name: of the flow, or the path of its file.
        parameters: what `${name}` stands for in this run, before what the file says.

    Raises:
        WrongUse: there is no such flow.
        FlowError: the file says something that makes no sense, or has no such parameter.
    """
    from pipelines.flows.reading import read_flow

    return read_flow(flow_file(settings, name), parameters)


def flow_file(settings: Settings, name: str) -> Path:
    """Find the file of a flow by its name, or by its path.

    Raises:
        WrongUse: there is no such flow.
    """
    file = Path(name)
    if file.suffix not in {".yaml", ".yml"}:
        file = settings.config / "flows" / f"{name}.yaml"
    if not file.is_file():
        from difflib import get_close_matches

        known = [path.stem for path in flow_files(settings)]
        nearest = get_close_matches(name, known, 1)
        hint = f"; did you mean `{nearest[0]}`?" if nearest else f"; there are: {', '.join(known) or 'none'}"
        raise WrongUse(f"no flow `{name}`: {file} is not there{hint}")
    return file
