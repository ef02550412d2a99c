"""Flows in a git repository, for a team's own Airflow: a DAG file a flow, as it is in the commit that is asked for.

Airflow's git provider clones and fetches; the bundle's `subdir` is the folder of flows and environments. A run is
pinned to the commit that was the newest when it began, so all its tasks, and each try, read the flow in one checkout
that nobody changes; the next run begins with the newest.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.providers.git.bundles.git import GitDagBundle

from dags.bundle import write_files
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.offered import names_in

if TYPE_CHECKING:
    from pathlib import Path

LOG = logging.getLogger(__name__)


class FlowRepository(GitDagBundle):
    """A DAG file for each flow of a repository; `subdir` is the folder of flows and environments in it."""

    def __init__(self, **kwargs: Any) -> None:  # noqa: ANN401 - the provider's own
        super().__init__(**kwargs)
        # Beside the checkout lie the DAG files, so that what cleans up a version takes both.
        self.repo_path = self.repo_path / "checkout"

    @property
    def config(self) -> Path:
        """Give the folder of flows and environments."""
        return super().path

    @property
    def path(self) -> Path:
        """Give the folder of the DAG files."""
        return self.repo_path.parent / "flows"

    def initialize(self) -> None:
        """Have the checkout and the files."""
        with self.lock():
            self.path.mkdir(parents=True, exist_ok=True)
            super().initialize()
            self._write()

    def refresh(self) -> None:
        """Go to the newest commit, write the files of new flows, and remove those of flows that are gone."""
        with self.lock():
            super().refresh()
            self._write()

    def _write(self) -> None:
        """Write the files.

        Raises:
            WrongUse: the repository has no flows there, as where `subdir` is misspelt.
        """
        if not (self.config / "flows").is_dir():
            raise WrongUse(
                f"the repository of the bundle {self.name} must have the folder `flows` in {self.subdir or 'its root'} "
                "and has none: `subdir` of the bundle names the folder of flows and environments"
            )
        write_files(self.path, names_in(self.config), self.config)


def newest() -> Path | None:
    """Give the configuration in the newest commit, for pages; that of the last time where the repository is away.

    None where there is none. Of several repositories the first is meant.
    """
    for bundle in DagBundlesManager().get_all_dag_bundles():  # type: ignore[no-untyped-call]
        if isinstance(bundle, FlowRepository):
            try:
                bundle.initialize()
            except Exception:
                LOG.exception("the repository of %s cannot be asked", bundle.name)
            return bundle.config if bundle.config.is_dir() else None
    return None
