"""The operator that asks a person about a commit that the gate holds: a Required Action of Airflow's.

It waits as a row in Airflow's database, however long: without a process, a slot, or the lease of the tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk.exceptions import AirflowSkipException

from dags.running import FOUND, SAID
from dags.telling import tell

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

OPTIONS = {"Publish": "--accept", "Reject": "--reject"}
"""What a person may answer, and which option of `pulseline publish` that is."""
REASON, MOST = "reason", 1_000
"""The field of the form that holds the reason, and its characters at most."""
LOST = "asked again: Airflow lost the process that asked, and with it any answer in the very second of the question"


class ApproveOperator(HITLOperator):
    """Asks whether readers shall see a commit that waits and does not hold; skipped where nothing is held.

    Its result is the answer, as the words that end `pulseline publish`.

    Args:
        judged: name of the task that judged the commit.
    """

    template_fields: Sequence[str] = ()
    ui_color = "#e8f0fe"

    def __init__(self, *, judged: str, **kwargs: Any) -> None:  # noqa: ANN401 - Airflow's own
        super().__init__(subject=judged, options=list(OPTIONS), **kwargs)
        self.judged = judged

    def execute(self, context: Context) -> None:
        """Ask, and wait."""
        found = context["ti"].xcom_pull(task_ids=self.judged, key=FOUND) or {}
        question = found.get("question")
        if question is None:
            raise AirflowSkipException("no commit waits that was judged and does not hold, so nobody is asked")
        self.subject, self.body = question["subject"], question["body"]
        if context["ti"].xcom_pull(task_ids=context["ti"].task_id, key=SAID) is None:
            # One that asks again has told already.
            tell(context, f"{self.subject} {found.get('sentence', '')}".strip(), found)
            if context["ti"].try_number > context["ti"].max_tries - (self.retries or 0) + 1:
                # Neither the first try nor the first one since somebody cleared it.
                context["ti"].xcom_push(SAID, LOST)
        super().execute(context)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> list[str]:
        """Give the answer; ask again where it has no reason."""
        words = words_of(event)
        if not words:
            line = f"asked again: an answer takes a reason of 1 to {MOST:,} characters"
            self.log.warning(line)
            context["ti"].xcom_push(SAID, line)
            self.execute(context)
        return words


def words_of(event: Mapping[str, Any]) -> list[str]:
    r"""Spell an answer as options of `pulseline publish`; nothing where its reason or its author is missing.

    >>> ann = {"responded_by_user": {"id": "ann", "name": "ann"}}
    >>> words_of(ann | {"chosen_options": ["Publish"], "params_input": {"reason": "feed\nwas down "}})
    ['--accept=feed was down', '--by=ann']
    >>> words_of(ann | {"chosen_options": ["Reject"], "params_input": {"reason": " "}})
    []
    """
    [chosen] = event["chosen_options"]
    given, who = (event["params_input"] or {}).get(REASON), event["responded_by_user"] or {}
    reason, by = (_in_one_line(text) for text in (given, who.get("name") or who.get("id")))
    return [f"{OPTIONS[chosen]}={reason}", f"--by={by}"] if by and 0 < len(reason) <= MOST else []


def _in_one_line(text: object) -> str:
    """Give a text without line breaks and what cannot be a command's word; nothing for what is no text."""
    signs = text if isinstance(text, str) else ""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in signs).split())
