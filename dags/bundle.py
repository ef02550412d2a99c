"""Where Airflow finds its DAG files: one a flow, written from the configuration, so that none takes another with it.

A bundle of Airflow's: the processor of DAGs asks it again and again, so that a new flow is there by itself.
"""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from airflow.dag_processing.bundles.base import BaseDagBundle

from pipelines.jobs.environment.offered import flow_names

if TYPE_CHECKING:
    from pathlib import Path

TEXT = '''"""The DAGs of a flow, for Airflow. Written by dags/bundle.py: what is changed here is lost."""

from dags.offer import dags_of

globals().update(dags_of({words}))
'''
SECONDS = 30
"""Between two looks for flows that are new or gone."""


class FlowFiles(BaseDagBundle):
    """A DAG file for each flow of the configuration."""

    def __init__(self, *, refresh_interval: int = SECONDS, **kwargs: object) -> None:
        super().__init__(refresh_interval=refresh_interval, **kwargs)  # type: ignore[arg-type]

    @property
    def path(self) -> Path:
        """Give the folder of the files."""
        return self.base_dir / "flows"

    def initialize(self) -> None:
        """Write the files."""
        write_files(self.path, flow_names())
        super().initialize()

    def refresh(self) -> None:
        """Write the files of new flows, and remove those of flows that are gone."""
        write_files(self.path, flow_names())

    def get_current_version(self) -> None:
        """Give no version: flows are read where they lie."""


def write_files(folder: Path, called: list[str], config: Path | None = None) -> None:
    """Write a DAG file for each flow, and remove what is no flow's; files that are as they should be stay untouched.

    Args:
        folder: where to write.
        called: names of the flows' files.
        config: the folder of their configuration; None for that of the process that reads a DAG file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {file_name(each): TEXT.format(words=_words(each, config)) for each in called}
    for name, text in wanted.items():
        file = folder / name
        if not file.is_file() or file.read_text() != text:
            new = folder / f".{name}.{os.getpid()}"
            new.write_text(text)
            new.replace(file)
    for file in folder.glob("*.py"):
        if file.name not in wanted:
            with suppress(FileNotFoundError):
                file.unlink()


def _words(called: str, config: Path | None) -> str:
    return ascii(called) if config is None else f"{called!a}, {str(config)!a}"


def file_name(called: str) -> str:
    """Name the DAG file of a flow.

    >>> file_name("flights"), file_name("my flow")
    ('flights.py', 'my_flow_6ac2a1.py')
    """
    plain = re.sub(r"[^A-Za-z0-9_]", "_", called)[:100]
    told = hashlib.sha256(os.fsencode(called)).hexdigest()[:6]
    return f"{plain}.py" if plain == called else f"{plain}_{told}.py"
