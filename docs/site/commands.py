"""Every command of `pulseline` with all its arguments and options, out of the program itself."""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Any

import typer

from pipelines.cli import app

if TYPE_CHECKING:
    from collections.abc import Iterator

TAKES = {"str": "text", "int": "a whole number", "float": "a number", "path": "a path"}
"""By the first word of what typer calls a type."""
DEFAULT = re.compile(r" ?\[default: (.+)\]")
"""Where a help text says itself what is meant, because the program has no value for it."""
NOTHING = "nothing"


def commands() -> str:
    """Give the commands in the order of `--help`, each with its usage, its options and examples."""
    return "\n\n".join(_command(words, command) for words, command in _leaves((), typer.main.get_command(app)))


def _leaves(words: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:  # noqa: ANN401 - typer's
    """Give each command that does something, with the words that call it."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield words, command
        return
    for name, each in inner.items():
        yield from _leaves((*words, name), each)


def _command(words: tuple[str, ...], command: Any) -> str:  # noqa: ANN401 - typer's
    called = " ".join(("pulseline", *words))
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option" and not each.hidden]
    named = (each.name.upper() if each.required else f"[{each.name.upper()}]" for each in arguments)
    usage = " ".join((called, *named, *(["[OPTIONS]"] if options else [])))
    rows = [_row(each) for each in (*arguments, *options)]
    table = ["| | takes | unless given | |", "| --- | --- | --- | --- |", *rows] if rows else []
    told = [f"### {called}", _plain(command.help), f"```\n{usage}\n```", "\n".join(table), _plain(command.epilog or "")]
    return "\n\n".join(part for part in told if part)


def _row(parameter: Any) -> str:  # noqa: ANN401 - typer's
    said = DEFAULT.search(parameter.help or "")
    says = DEFAULT.sub("", parameter.help or "")
    cells = (_name(parameter), _takes(parameter), said[1] if said else _default(parameter), says)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _name(parameter: Any) -> str:  # noqa: ANN401 - typer's
    if parameter.param_type_name == "argument":
        return f"`{parameter.name.upper()}`"
    return ", ".join(f"`{each}`" for each in (*parameter.opts, *parameter.secondary_opts))


def _takes(parameter: Any) -> str:  # noqa: ANN401 - typer's
    if getattr(parameter, "is_flag", False):
        return NOTHING
    kind = parameter.type
    choices = getattr(kind, "choices", None)
    told = ", ".join(f"`{each}`" for each in choices) if choices else TAKES[kind.name.partition(" ")[0]]
    lowest, highest = getattr(kind, "min", None), getattr(kind, "max", None)
    least = f", {lowest} or more" if lowest is not None else ""
    most = f", {highest} at most" if highest is not None else ""
    return told + least + most + (", repeatable" if parameter.multiple else "")


def _default(parameter: Any) -> str:  # noqa: ANN401 - typer's
    if parameter.required:
        return "required"
    value = parameter.default
    if value is None or getattr(parameter, "is_flag", False):
        return ""
    return f"`{value.value if isinstance(value, Enum) else value}`"


def _plain(text: str) -> str:
    """Give a text of several paragraphs with each of them on one line."""
    return "\n\n".join(" ".join(part.split()) for part in re.split(r"\n\s*\n", text.strip()))
