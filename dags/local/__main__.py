"""`python -m dags.local up`, `down`, `airflow`, `users`: what `make up`, `make down` and `pulseline airflow…` call."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, NoReturn

import psutil

from dags.local.database import stop_database
from dags.local.doorway import Doorway
from dags.local.keeper import GRACE
from dags.local.place import CHECKOUT, KeeperRecord, Place
from dags.local.processes import KnownProcess, left_of
from dags.local.servant import ACCOUNT, DatabaseError, furnish
from dags.local.settings import ADMIN, keep_given
from dags.local.users import UserError, add, listed, remove
from dags.pools import ABOUT, SLOTS, STREAMS
from pipelines.engine.files.durable import of_this_machine
from pipelines.jobs.environment.access import kept
from pipelines.jobs.environment.settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

FIRST_PORT = 8080
LAST_PORT = 65_535
PORTS = 100
"""Ports that are tried from the first on."""
PATIENCE = 240.0
"""Seconds until a start counts as failed; a quiet machine needs about thirty."""


class NotUpError(RuntimeError):
    """The local Airflow could not be started or ended."""


def up(place: Place) -> None:
    """Start Airflow, or say that it runs; return when it can be used.

    Raises:
        NotUpError: it did not get ready, or the chosen port is taken.
        DatabaseError: PostgreSQL cannot run for this user.
    """
    with place.locked():
        running = place.kept()
        if running is not None and running.alive:
            print("Airflow is up already.")
            print(_next_step(place, running))
            return
        begun = time.monotonic()
        clear(place, running)
        lodging = furnish(place.database)
        if lodging.account is not None:
            print(f"You are root, and PostgreSQL refuses to be: it runs as {ACCOUNT}, with its data in {lodging.own}.")
        print("Airflow starts with a database of its own, which takes about half a minute.", flush=True)
        port = _free_port()
        if port != FIRST_PORT and "PULSELINE_PORT" not in os.environ:
            print(f"Port {FIRST_PORT} is taken by another program: the pages are at {port}.")
        keep_given(place)
        keeper = _spawn(place, port)
        _await_ready(place, keeper)
        _make_pool(Doorway(place, port))
        print(f"Airflow is up after {time.monotonic() - begun:.0f} s.")
        print(_next_step(place, keeper))


def down(place: Place) -> None:
    """End Airflow with all its tasks and its database, whatever is left of it."""
    with place.locked():
        running = place.kept()
        if running is None:
            print("Airflow is not up; `make up` starts it.")
            return
        if running.alive:
            print("Airflow ends; tasks that run are stopped, and go on from where they were after the next `make up`.")
            _await_end(running)
        clear(place, running)
        place.forget()
        print("Airflow is down; no process is left.")


def airflow(place: Place, words: Sequence[str]) -> NoReturn:
    """Become Airflow's own command, in the environment of the one that runs here.

    Raises:
        NotUpError: none runs.
    """
    running = place.kept()
    if running is None or not running.alive:
        raise NotUpError("Airflow must be up for its own commands, and is not: make up starts it")
    where = place.environment
    where["PYTHONPATH"] = os.pathsep.join([str(CHECKOUT), where.get("PYTHONPATH", "")])
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, "-m", "airflow", *words], where)  # noqa: S606 - Airflow's own command


def change_users(place: Place, words: Sequence[str]) -> None:
    """List who may sign in, add somebody, or take somebody away.

    Raises:
        UserError: says what is wrong with the name, the role or the words.
    """
    match list(words):
        case [] | ["list"]:
            print("\n".join(listed(place)))
        case ["add", name, *role] if len(role) <= 1:
            print(f"{name} / {add(place, name, role[0] if role else 'viewer')}")
        case ["remove", name]:
            remove(place, name)
            print(f"{name} can sign in no more.")
        case _:
            raise UserError("say `list`, `add NAME [viewer, user, op or admin]` or `remove NAME`")


def clear(place: Place, keeper: KeeperRecord | None) -> None:
    """Kill what a keeper that is gone has left behind, and end its database; strangers are let alone."""
    ours, strangers = ([], []) if keeper is None else left_of(keeper.pid, [keeper, *place.seen()])
    for process in ours:
        with suppress(psutil.Error):
            process.kill()
    if strangers and keeper is not None:
        print(f"Session {keeper.pid} is somebody else's by now; its {len(strangers)} processes are let alone.")
    stop_database(place.database)


def _spawn(place: Place, port: int) -> KeeperRecord:
    command = [sys.executable, "-m", "dags.local.keeper", str(place.folder), str(port)]
    place.folder.mkdir(parents=True, exist_ok=True)
    place.log.write_text("")
    with place.log.open("a") as log:
        process = subprocess.Popen(  # noqa: S603 - this package's own module
            command,
            cwd=os.getcwd(),  # noqa: PTH109 - paths of settings are relative to where the command was called
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(CHECKOUT), os.environ.get("PYTHONPATH", "")])},
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    keeper = KeeperRecord(**asdict(KnownProcess.read(process.pid)), port=port)
    place.keep(keeper)
    return keeper


def _await_ready(place: Place, keeper: KeeperRecord) -> None:
    doorway, until = Doorway(place, keeper.port), time.monotonic() + PATIENCE
    missing = ["api-server"]
    while missing and time.monotonic() < until:
        if not keeper.alive:
            clear(place, keeper)
            place.forget()
            raise NotUpError(f"Airflow ended while it was starting; {place.log} says why:\n{_tail(place)}")
        time.sleep(0.5)
        missing = doorway.missing()
    if missing:
        late = ", ".join(missing)
        raise NotUpError(f"Airflow was not ready after {PATIENCE:.0f} s ({late}); see {place.log}, then make down")


def _make_pool(doorway: Doorway) -> None:
    """See that streams have their slots; somebody who gave them others keeps those."""
    names = {pool["name"] for pool in doorway.ask("GET", "/api/v2/pools?limit=100")["pools"]}
    if STREAMS not in names:
        made = {"name": STREAMS, "slots": SLOTS, "description": ABOUT, "include_deferred": True}
        doorway.ask("POST", "/api/v2/pools", made)


def _await_end(keeper: KeeperRecord) -> None:
    with suppress(ProcessLookupError):
        os.kill(keeper.pid, signal.SIGTERM)
    until = time.monotonic() + 2 * GRACE
    while keeper.alive and time.monotonic() < until:
        time.sleep(0.1)


def _free_port() -> int:
    """Give $PULSELINE_PORT, or the first free port from 8080 on.

    Raises:
        NotUpError: the chosen port is taken, or none is free.
    """
    chosen = os.environ.get("PULSELINE_PORT", "")
    if chosen and not (chosen.isdecimal() and 0 < int(chosen) <= LAST_PORT):
        raise NotUpError(f"PULSELINE_PORT must be a port, 1 to {LAST_PORT}; it is `{chosen}`")
    tried = [int(chosen)] if chosen else range(FIRST_PORT, FIRST_PORT + PORTS)
    for port in tried:
        with socket.socket() as door, suppress(OSError):
            door.bind(("127.0.0.1", port))
            return port
    raise NotUpError(f"port {tried[0]} is taken; free it, or choose another: PULSELINE_PORT=8181 make up")


def _tail(place: Place) -> str:
    return "\n".join(place.log.read_text(errors="replace").splitlines()[-20:])


def _next_step(place: Place, keeper: KeeperRecord) -> str:
    return (
        f"address:  {keeper.address}\n"
        f"sign in:  {ADMIN} / {place.password(ADMIN)}\n"
        f"others:   pulseline airflow-users add NAME lets somebody look; with op, run, too\n"
        f"commands: pulseline airflow dags list, and whatever else Airflow's own command line has\n"
        f"next:     open {keeper.address}/dags/backfill_flights, press Trigger, choose days; make down ends it all"
    )


def main(argv: list[str] | None = None) -> int:
    """Run the command and give its exit code."""
    parser = argparse.ArgumentParser(prog="python -m dags.local", description=__doc__)
    parser.add_argument("command", choices=("up", "down", "airflow", "users"))
    parser.add_argument("words", nargs=argparse.REMAINDER, help="of `airflow` and `users`: what is to be done")
    chosen = parser.parse_args(argv)
    place = Place(of_this_machine(read_settings().home) / "airflow")
    try:
        if chosen.command == "airflow":
            airflow(place, chosen.words)
        with kept():
            if chosen.command == "users":
                change_users(place, chosen.words)
            else:
                {"up": up, "down": down}[chosen.command](place)
    except (NotUpError, DatabaseError, UserError) as error:
        print(f"{chosen.command}: {error}", file=sys.stderr)
        return 2 if isinstance(error, UserError) else 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
