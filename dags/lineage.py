"""What a command tells a catalogue belongs to the task that runs it, as Airflow's own OpenLineage provider tells of it.

Both go by the same variables, `OPENLINEAGE_URL` and the like; where nothing says whom to tell, nothing is loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow.sdk import Context

PARENT = "OPENLINEAGE_PARENT_ID"


def parent_of(context: Context) -> dict[str, str]:
    """Name the task that runs, as a variable of its command's environment; nothing where nobody is told.

    Args:
        context: of the task.
    """
    from airflow.providers.openlineage.conf import is_disabled

    if is_disabled() or "ti" not in context:
        return {}
    from airflow.providers.openlineage.plugins.macros import lineage_parent_id

    return {PARENT: str(lineage_parent_id(context["ti"]))}
