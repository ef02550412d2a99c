"""A client's properties file, as Kafka's own tools take it: how brokers are reached that ask who one is."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipelines.engine.landing.errors import LandingError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

ENVIRONMENT = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
"""Where a value stands for a variable of the environment, so that no secret stands in a file."""

SPOKEN = frozenset(
    {
        "PLAINTEXT",
        "SSL",
        "SASL_PLAINTEXT",
        "SASL_SSL",
        "PLAIN",
        "SCRAM-SHA-256",
        "SCRAM-SHA-512",
        "OAUTHBEARER",
        "GSSAPI",
    }
    | {"true", "false", "oidc", "default", "all", "none", "any", "https"}
)
"""Values that are words of librdkafka's own, and no secrets."""
PIECES = re.compile(r"[\s=,;:\"']+")
SHORTEST = 4
"""Letters of a piece of a value that counts as a secret too; the whole value always does."""


@dataclass(eq=False)
class ClientFileError(LandingError):
    """The properties of a client cannot be used.

    No value is among them.
    """

    source: str
    file: str
    required: str
    came: str
    says = (
        "`client` of source `{source}` must be a file of properties, a `name=value` a line, {required}; {file} {came}"
    )


def client_properties(source: str, file: Path, own: Collection[str]) -> dict[str, str]:
    """Read the properties of a client.

    Args:
        source: whose they are, for errors.
        file: `name=value` a line; `#` begins a remark, and `${env:NAME}` stands for a variable of the environment.
        own: properties that the landing sets itself.

    Raises:
        ClientFileError: the file is not there, a line is none, a variable is not set, or a property is the landing's.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError as problem:
        raise ClientFileError(source, str(file), "which can be read", f"cannot: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise ClientFileError(source, str(file), "in UTF-8", "is not") from None
    found: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith(("#", "!")):
            continue
        name, equals, value = (part.strip() for part in line.partition("="))
        if not equals or not name:
            raise ClientFileError(source, str(file), "and nothing else", f"has none in line {number}")
        if name in found:
            raise ClientFileError(source, str(file), "each once", f"has `{name}` again in line {number}")
        if name in own:
            required = "without those that the landing sets itself"
            raise ClientFileError(source, str(file), required, f"sets `{name}` in line {number}: take it out")
        found[name] = _filled(source, file, number, value)
    return found


def _filled(source: str, file: Path, number: int, value: str) -> str:
    missing = [name for name in ENVIRONMENT.findall(value) if name not in os.environ]
    if missing:
        came = f"names `{missing[0]}` in line {number}, which is not set: export it, and start again"
        raise ClientFileError(source, str(file), "whose variables of the environment are set", came)
    filled = ENVIRONMENT.sub(lambda match: os.environ[match[1]], value)
    if "${" in ENVIRONMENT.sub("", value):
        raise ClientFileError(
            source, str(file), "in which `${env:NAME}` alone is replaced", f"has others in line {number}"
        )
    return filled


def withheld(text: str, client: Mapping[str, str]) -> str:
    """Take the values of a client's properties out of what librdkafka says: a secret may stand under any name.

    >>> withheld('Invalid value "s3cret" for configuration property "sasl.mechanism"', {"sasl.mechanism": "s3cret"})
    'Invalid value "…" for configuration property "sasl.mechanism"'
    """
    values = {value for value in client.values() if value}
    pieces = {piece for value in values for piece in PIECES.split(value) if len(piece) >= SHORTEST}
    for secret in sorted((values | pieces) - SPOKEN, key=len, reverse=True):
        text = re.sub(rf"(?<![\w.]){re.escape(secret)}(?!\w|\.\w)", "…", text)
    return text
