"""Chooses what is drawn of a case: lanes over the clock, a story over event time, or where its rows went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docs.diagrams.account import account_svg
from docs.diagrams.drawing import svg
from docs.diagrams.lanes import picture
from docs.diagrams.story import story

if TYPE_CHECKING:
    from docs.diagrams.running import Ran


def drawn(ran: Ran) -> str:
    """Give the picture of a case as an SVG document.

    Raises:
        KeyError: the case wants another kind of picture.
    """
    kinds = {"lanes": lambda: svg(picture(ran)), "story": lambda: svg(story(ran)), "account": lambda: account_svg(ran)}
    return kinds[ran.case.kind]()
