"""`pulseline upgrade`: take a run's folder over from an older version, once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pipelines.engine.columnar.clock import wall_now
from pipelines.engine.commits.driver import held_log
from pipelines.engine.commits.entry import FORMAT
from pipelines.engine.commits.log import CommitLog
from pipelines.engine.commits.paths import table_name
from pipelines.engine.commits.upgrade import OLDER, UpgradePlan, clear_carry_logs, upgrade, upgrade_plan
from pipelines.jobs.environment.errors import WrongUse
from pipelines.jobs.environment.settings import read_settings
from pipelines.jobs.runs.known import flow_name, runs_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FORMATS = frozenset({0, OLDER, FORMAT})


def upgrade_flow(called: str, run: str | None, dry_run: bool, echo: Callable[[str], None]) -> None:  # noqa: FBT001 - the command's flag
    """Take over the folders of a flow's runs, or of one, and say what was done.

    Args:
        called: name of the flow, or the path of its file.
        run: name of a run; None for all.
        dry_run: say what would be done, and do nothing.
        echo: where lines go.

    Raises:
        WrongUse: no such flow or run.
        UnfinishedHomeError: a run has a commit that waits.
        LeaseHeldError: a driver is at work on a run.
    """
    settings = read_settings()
    name = flow_name(settings, called)
    known = runs_of(settings, name)
    if run is not None and run not in known:
        raise WrongUse(f"no run `{run}` of {name}; there are: {', '.join(known) or 'none'}")
    for each in known if run is None else [run]:
        _one(settings.root(name, each), name, each, dry_run, echo)


def _one(root: Path, name: str, run: str, dry_run: bool, echo: Callable[[str], None]) -> None:  # noqa: FBT001 - see above
    log = CommitLog(root, FORMATS)
    if log.state().format in {0, FORMAT}:
        echo(f"run `{run}` of {name} has format {FORMAT} already; nothing to do")
        return
    if dry_run:
        _tell(root, run, upgrade_plan(root, log.state()), echo)
        echo(f"nothing was done; next: pulseline upgrade {name}")
        return
    with held_log(root, name, formats=FORMATS) as (log, token):
        _tell(root, run, upgrade_plan(root, log.state()), echo)
        log.append(replace(upgrade(root, log.state(), token, wall_now()), token=token))
        clear_carry_logs(root)
    echo(f"run `{run}` of {name} has format {FORMAT} now; older versions can no longer write to it")


def _tell(root: Path, run: str, plan: UpgradePlan, echo: Callable[[str], None]) -> None:
    echo(f"run `{run}`:")
    for table in plan.tables:
        gone = len(table.drops)
        rows = sum(file.rows for file in table.drops)
        words = f"{gone} files of commits that do not count leave the table ({rows:,} rows)" if gone else "as it is"
        split = f"; {len(table.splits)} files are written anew without such rows" if table.splits else ""
        echo(f"  {table_name(root, table.path)}: {words}{split}")
    carried = sum(len(files) for files in plan.carry.values())
    echo(f"  carry: {carried} files are named in `commits`; their logs go")
