"""Where things lie and who runs them: the environment's settings, from config/<environment>.yaml and the shell."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from pipelines.engine.files.durable import of_this_machine
from pipelines.engine.files.stored import SCHEMES, allows_http, path_of, without_user
from pipelines.flows.apart import MARGIN, MAX_BYTES, Apart
from pipelines.flows.document import YamlMapping, load
from pipelines.flows.section import Section
from pipelines.jobs.environment.errors import WrongUse
from pipelines.operators.replay import BUFFERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipelines.flows.model import Flow

MAIN_RUN = "main"
CONFIG = "PULSELINE_CONFIG"
"""The variable that names the folder of flows and environments."""
RUN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}")
TAKEN = {"reports": "the pages of all flows", "airflow": "Airflow's own files"}
NEEDED = ("home", "engine", "master")
KNOWN = (*NEEDED, "access", "buffers", "landed", "spark")
OF_BUFFERS = ("places", "apart", "max_bytes", "margin")
FOREVER = "forever"
FIXED = {
    "spark.master": "`master:` names it",
    "spark.sql.session.timeZone": "times are UTC in every table",
}
"""Settings of Spark's that are not a user's to choose, and why."""
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
ONE_SLASH = re.compile(rf"({'|'.join(SCHEMES)}):", re.IGNORECASE)
"""How an address of a store is misspelt as a folder."""
ENDPOINT = "AWS_ENDPOINT_URL"
OPENS = {
    "s3": ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION"),
    "gs": (),
    "az": ("AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_SAS"),
}
"""Beginnings of names of variables, by scheme."""
PLAIN_SIGNS = re.compile(r"[!-~]+")
ADDRESS = re.compile(r"https?://(\[[0-9a-f:.]+\]|[A-Za-z0-9._-]+)(:\d+)?(/[!-~]*)?", re.IGNORECASE)
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
    spark: Mapping[str, str] = field(default_factory=dict)
    """Spark's own settings, by name; they go before what we would set."""

    access: Access = Access.OWNER
    """Who may read what is written."""

    @property
    def spark_log(self) -> Path:
        """Where Spark's own process writes."""
        return of_this_machine(self.home) / "spark.log"

    def feeds_base(self, flow: Flow) -> Path:
        """Give the folder that the paths of a flow's feeds are relative to: the one its file lies in."""
        return Path(flow.file).absolute().parent if flow.file else self.config / "flows"

    def root(self, flow: str, run: str = MAIN_RUN) -> Path:
        """Give the folder of a flow's run.

        Raises:
            WrongUse: the run's name could lead out of the flow's folder.
        """
        if not RUN_NAME.fullmatch(run):
            asked = "a name of letters, digits, `_` and `-`, 100 at most and no `-` at its begin"
            raise WrongUse(f"--run must be {asked}; it is `{run}`")
        if flow in TAKEN:
            raise WrongUse(f"a flow cannot be called `{flow}`: {TAKEN[flow]} lie in that folder; give it another name")
        return self.home / flow / run

    def pages(self, flow: str, run: str = MAIN_RUN) -> Path:
        """Give the folder of a run's pages."""
        return self.home / "reports" / flow / run


def config_folder() -> Path:
    """Give the folder of flows and environments: $PULSELINE_CONFIG, ./config, or the checkout's.

    Other projects have a folder of that name too: it is ours where it has flows, or the environment's file.
    """
    chosen = os.environ.get(CONFIG)
    here = Path(chosen) if chosen else Path("config")
    is_ours = (here / "flows").is_dir() or (here / _environment_file()).is_file()
    return here if chosen or is_ours else CHECKOUT / "config"


def _environment_file() -> str:
    return f"{os.environ.get('PULSELINE_ENVIRONMENT', 'local')}.yaml"


def settings_file() -> Path:
    """Give the file of the environment's settings."""
    return config_folder() / _environment_file()


def read_settings() -> Settings:
    """Read the environment's settings.

    Raises:
        WrongUse: the environment's file is not there, or the home cannot stand where it is to be.
        FlowError: what the file says makes no sense; the line, what came, what was expected.
    """
    file = settings_file()
    if not file.is_file():
        raise WrongUse(
            f"{file} must hold the environment's settings; there is no such file: write it, set "
            "PULSELINE_ENVIRONMENT to the name of one that is there, or PULSELINE_CONFIG to the folder that has it"
        )
    top = Section(str(file), "the settings", load(file, "a mapping of settings"), {})
    top.only(KNOWN)
    home, engine, master = (top.text(key) for key in NEEDED)
    buffers = _inner(top, "buffers")
    buffers.only(OF_BUFFERS)
    return Settings(
        config=file.parent,
        home=_home(home),
        engine=engine,
        master=master,
        places=_places(buffers),
        apart=buffers.choice("apart", Apart, Apart.FOLDER),
        max_bytes=_above_zero(buffers, "max_bytes", MAX_BYTES),
        margin=_above_zero(buffers, "margin", MARGIN),
        keep_landed=_keep_landed(_inner(top, "landed")),
        spark=_spark(_inner(top, "spark")),
        access=top.choice("access", Access, Access.OWNER),
    )


def _home(said: str) -> Path:
    said = os.environ.get("PULSELINE_HOME") or said
    # Spaces around an address are nobody's; a folder's name may have them.
    address = said.strip()
    if scheme := SCHEME.match(address):
        return _stored_home(scheme[1].lower(), address[scheme.end(1) :], address)
    if ONE_SLASH.match(address):
        raise _no_home(said)
    if not said.strip() or "\0" in said:
        raise WrongUse(
            f"home must be the path of a folder; it is {said!r} (`home` in {settings_file()}, or PULSELINE_HOME)"
        )
    home = Path(said).expanduser().absolute()
    if ENCODED.search(str(home)):
        raise _encoded(home, "give the folder another name, or set PULSELINE_HOME")
    return home


def _encoded(home: Path | str, todo: str) -> WrongUse:
    return WrongUse(
        "no part of the home's path may look like a character of a URL (%20, %41): readers of Delta tables would look "
        f"elsewhere; it is {home}: {todo}"
    )


def _says_nothing(section: Section, key: str) -> bool:
    """Say whether nothing stands under a key, or an empty list, as where all of it is commented out."""
    return not section.has(key) or str(section.tree.entries[key]) in {"nothing", "a list of 0"}


def _inner(top: Section, key: str) -> Section:
    if _says_nothing(top, key):
        top = replace(top, tree=YamlMapping({}, {}, top.line(key)))
    return top.inner(key, f"`{key}` of the settings")


def _stored_home(scheme: str, rest: str, said: str) -> Path:
    """Read a home in an object store; what opens the store stands in the environment, and never in an address."""
    bucket = rest.removeprefix("://").partition("/")[0]
    if scheme not in SCHEMES:
        raise _no_home(said)
    if "@" in bucket or ":" in bucket or "?" in rest or "#" in rest:
        raise WrongUse(
            f"a home in an object store is named by bucket and prefix alone, as {scheme}://bucket/prefix; "
            "PULSELINE_HOME (or `home` of the settings) has a user, a port, a `?` or a `#` in it: credentials and the "
            "endpoint go into the environment (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, ...)"
        )
    if not bucket:
        raise _no_home(said)
    if ENCODED.search(rest):
        raise _encoded(said, "choose another prefix")
    if {".", ".."} & {*rest.split("/")}:
        raise WrongUse(f"no part of a home's prefix in an object store may be `.` or `..`; it is {said}: name it whole")
    _see_access(scheme)
    return path_of(f"{scheme}{rest}")


def _no_home(said: str) -> WrongUse:
    stores = ", ".join(f"{each}://bucket/prefix" for each in SCHEMES)
    return WrongUse(
        "home must be a folder, of this machine or one that all machines of a cluster see under one name, or lie in an "
        f"object store ({stores}); it is {without_user(said)} (`home` in {settings_file()}, or PULSELINE_HOME)"
    )


def _see_access(scheme: str) -> None:
    """See that what opens a store can be what it is for: the library that is given it would end the process else."""
    for name, value in os.environ.items():
        if name.startswith(OPENS[scheme]) and value and not PLAIN_SIGNS.fullmatch(value):
            raise WrongUse(
                f"{name} must be of letters, digits and signs of ASCII, and has a space, a line's end or another "
                "letter in it (a secret that was read from a file often ends with one): mend it"
            )
    said = os.environ.get(ENDPOINT)
    if scheme != "s3" or said is None:
        return
    if not ADDRESS.fullmatch(said):
        raise WrongUse(f"{ENDPOINT} must be an address such as https://host or http://host:9000, and is none: mend it")
    if said.lower().startswith("http://") and not allows_http():
        raise WrongUse(f"{ENDPOINT} is an address without TLS (http://): where that is meant, set AWS_ALLOW_HTTP=true")


def _places(buffers: Section) -> tuple[Path, ...]:
    """Give where the three buffers stand; () where each run has folders of its own for them."""
    if _says_nothing(buffers, "places"):
        return ()
    named = buffers.names("places")
    if len(named) != BUFFERS:
        raise buffers.wrong("places", f"{len(named)} places", f"a list of {BUFFERS} folders, or none")
    if stored := [place for place in named if SCHEME.match(place)]:
        raise buffers.wrong("places", f"`{stored[0]}`", "folders: an object store keeps copies of its own")
    return tuple(Path(place).absolute() for place in named)


def _above_zero(section: Section, key: str, default: int) -> int:
    number = section.count(key) if section.has(key) else default
    if number < 1:
        raise section.wrong(key, f"`{key}: {number}`", "a whole number above 0")
    return number


def _spark(section: Section) -> dict[str, str]:
    """Give Spark's own settings."""
    said = {key: section.text(key) for key in section.tree.entries}
    for key in said:
        if not key.startswith("spark."):
            raise section.wrong(key, f"`{key}`", "a setting of Spark's, such as `spark.executor.memory`")
        if key in FIXED:
            raise section.wrong(key, f"`{key}`", f"it not there: {FIXED[key]}")
    return said


def _keep_landed(landed: Section) -> int | None:
    """Give how long landed rows are kept, in ticks; None for ever."""
    landed.only(("keep",))
    if not landed.has("keep") or landed.text("keep") == FOREVER:
        return None
    # A bare number would be seconds, and who writes one means days.
    ticks = 0 if landed.text("keep").isdigit() else landed.ticks("keep")
    if ticks <= 0:
        raise landed.wrong("keep", f"`keep: {landed.text('keep')}`", f"a duration such as 30d or 12h, or `{FOREVER}`")
    return ticks


def flow_files(config: Path) -> list[Path]:
    """List the files that describe flows.

    Args:
        config: the folder of flows and environments.
    """
    return sorted((config / "flows").glob("*.yaml"))


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


def command(verb: str, flow: str, *words: str, run: str = MAIN_RUN) -> str:
    """Spell a command over a run of a flow, ready to be typed.

    Args:
        verb: the command.
        flow: its name, or the path of its file.
        words: its other arguments and options.
        run: the default one is left unsaid.
    """
    return shlex.join(["pulseline", verb, flow, *words, *(() if run == MAIN_RUN else ("--run", run))])


def publishing(flow: str, commit: int, run: str = MAIN_RUN) -> str:
    """Spell the commands that check a commit at written and then publish it."""
    return ", then ".join(command(verb, flow, "--commit", str(commit), run=run) for verb in ("check", "publish"))


def called(settings: Settings, flow: Flow) -> str:
    """Give what a command takes for a flow: its name where the environment has its file, else the path of its file."""
    own = settings.config / "flows" / f"{flow.name}.yaml"
    return flow.file if flow.file and Path(flow.file).absolute() != own.absolute() else flow.name


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

        known = [path.stem for path in flow_files(settings.config)]
        nearest = get_close_matches(name, known, 1)
        hint = f"; did you mean `{nearest[0]}`?" if nearest else f"; there are: {', '.join(known) or 'none'}"
        raise WrongUse(f"no flow `{name}`: {file} is not there{hint}")
    return file
