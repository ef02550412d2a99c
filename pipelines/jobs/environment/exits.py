"""How a command ends: from whatever was raised to an exit code and one line that says what to do."""

from __future__ import annotations

import errno
import os
import re
import shlex
import shutil
import subprocess
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.errors import Exit, PulselineError

if TYPE_CHECKING:
    from collections.abc import Iterator

INTERRUPTED = 130
"""What a shell says of a command that ended by Ctrl-C."""
PIPE_CLOSED = 141
"""What a shell says of a command whose reader went away."""
GO_ON = (
    "interrupted: nothing half done is seen by readers; the same command goes on from here, `pulseline status FLOW` "
    "says where that is"
)
DEBUG = "PULSELINE_DEBUG"
LONGEST = 1_200
END = 400
"""Letters at the end of a longer line that stay: what to do stands there."""
NEEDED_JAVA = 17
JAVA_ADVICE = (
    "install it (Debian, Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17) and set "
    "JAVA_HOME to it"
)

LAST_LINES = 60
"""Of Spark's log, in which the reason is looked for."""
OF_A_TABLE = re.compile(r"\.parquet|/(streams|ledger|carry)/")
WHY = re.compile(r"Exception|Error\b")
WORKER_ERROR = re.compile(r"^((?:\w+\.)*[A-Z]\w*): (.+)$", re.MULTILINE)
"""The last line of a Python traceback."""


def exit_code_of(error: BaseException) -> tuple[int, str]:
    """Say how a command ends that this error has reached, and in one line why and what to do.

    With PULSELINE_DEBUG set, the traceback is printed too.

    Args:
        error: whatever was raised.

    Returns:
        An exit code (`Exit`, 130 for Ctrl-C, 141 for a closed pipe) and a line; for a closed pipe none.
    """
    if os.environ.get(DEBUG):
        traceback.print_exception(error, file=sys.stderr)
    return judged(error)


def judged(error: BaseException) -> tuple[int, str]:
    """Give the exit code and the line of `exit_code_of`, and print nothing."""
    for judge in (_interrupted, _of_machine, _own, _carried, _broken):
        found = judge(error)
        if found is not None:
            return int(found[0]), _one_line(found[1])
    told = _one_line(str(error)) or "no message"
    return int(Exit.RUN_FAILED), f"{type(error).__name__}: {told}{_hint()}"


FLOW = re.compile(r"(pulseline [a-z]+ )FLOW\b(?! --run)")
"""Where a message names a command, and cannot know of which flow."""


def named(line: str, flow: object, run: object) -> str:
    """Put the flow and the run of a command in the place of FLOW, so that what to type next can be typed.

    >>> named("give it up: pulseline abandon FLOW --commit 3", "flights", "live")
    'give it up: pulseline abandon flights --run live --commit 3'

    Args:
        line: what a command says at its end.
        flow: what the user called the flow; None where the command has none.
        run: name of the run, None where it has none.
    """
    if not isinstance(flow, str):
        return line
    from pipelines.jobs.environment.settings import MAIN_RUN

    which = f" --run {run}" if isinstance(run, str) and run != MAIN_RUN else ""
    return FLOW.sub(lambda found: f"{found[1]}{shlex.quote(flow)}{which}", line)


def _hint() -> str:
    return "" if os.environ.get(DEBUG) else f" (set {DEBUG}=1 for the traceback)"


Judged = tuple[int, str] | None


def _interrupted(error: BaseException) -> Judged:
    if any(isinstance(link, KeyboardInterrupt) for link in _chain(error)):
        return INTERRUPTED, GO_ON
    if isinstance(error, BrokenPipeError):
        _silence_output()
        # As other commands do: who reads the first lines alone has asked for nothing more.
        return PIPE_CLOSED, ""
    return None


def _silence_output() -> None:
    """Let what is left to be flushed at exit go nowhere: the pipe would refuse it once more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


def _own(error: BaseException) -> Judged:
    """Judge an error of ours, which says everything itself."""
    return (error.code, str(error)) if isinstance(error, PulselineError) else None


def _of_machine(error: BaseException) -> Judged:
    """Judge what the machine lacks, wherever in the chain of causes it shows."""
    for link in _chain(error):
        for judge in (
            _output,
            _disk,
            _grown,
            _memory,
            _handles,
            _files,
            _package,
            _java,
            _gateway,
            _python,
            _worker,
            _network,
        ):
            found = judge(link)
            if found:
                return Exit.RUN_FAILED, found
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        yield link
        seen.add(id(link))
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _is_full(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}


def _output(error: BaseException) -> str | None:
    """Judge what a text could not be written into by whoever prints it: the file that the command's output goes to."""
    if not _is_full(error):
        return None
    frames = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    if not frames or "_click" not in Path(frames[-1]).parts:
        return None
    return "no space left where the output of this command goes: have it written elsewhere, or make room there"


def _disk(error: BaseException) -> str | None:
    if _is_full(error) or re.search(r"no space left on device|disk quota exceeded", str(error), re.IGNORECASE):
        variable = "PULSELINE_HOME" if _home() == _said_home() else "XDG_CACHE_HOME"
        return (
            f"no space left on the disk of {_home()}: make room, or move that folder to a larger disk and set "
            f"{variable} to it; then the same command goes on from here"
        )
    return None


TOO_LARGE = f"(os error {errno.EFBIG})"
"""As delta-rs tells it."""


def _grown(error: BaseException) -> str | None:
    grown = isinstance(error, OSError) and (error.errno == errno.EFBIG or TOO_LARGE in str(error))
    if isinstance(error, OSError) and grown:
        which = f"{error.filename} " if error.filename else "a file "
        return (
            f"{which}must grow beyond what this process may write: ulimit -f unlimited in the same shell, or another "
            "file system under the home; then the same command goes on from here"
        )
    return None


def _said_home() -> str:
    return str(Path(os.environ.get("PULSELINE_HOME", ".pulseline")).absolute())


def _home() -> str:
    """Give the folder of this machine that is written into: the home, or what it keeps here where it is in a store."""
    if "://" not in os.environ.get("PULSELINE_HOME", ""):
        return _said_home()
    from pipelines.engine.files.durable import of_this_machine
    from pipelines.engine.files.stored import path_of

    return str(of_this_machine(path_of(os.environ["PULSELINE_HOME"])))


def _memory(error: BaseException) -> str | None:
    if isinstance(error, MemoryError) or "java.lang.OutOfMemoryError" in str(error):
        return (
            "not enough memory: raise `buckets` of the flow (smaller tasks), or run fewer at once (`master: local[1]`)"
        )
    return None


def _files(error: BaseException) -> str | None:
    if isinstance(error, PermissionError):
        return (
            f"no permission for {error.filename or error}: see who owns it, and by lsattr whether it is immutable; or "
            "set PULSELINE_HOME to a folder of yours"
        )
    made = isinstance(error, FileNotFoundError | NotADirectoryError) and str(error.filename).startswith(_home())
    if made and not Path(_home()).is_dir():
        return f"the folder {_home()} cannot be made: set PULSELINE_HOME to a folder that can"
    stored = os.environ.get("PULSELINE_HOME", "").strip().rstrip("/")
    ours = _home() in str(error) or ("://" in stored and stored in str(error))
    if isinstance(error, FileNotFoundError) and OF_A_TABLE.search(str(error)) and ours:
        said = " ".join(str(error).split())[:200]
        return f"a file of a run is gone ({said}): pulseline doctor FLOW says what can be had again"
    if isinstance(error, NotADirectoryError | IsADirectoryError):
        must, lies, path = "folder", "file", _in_the_way(Path(str(error.filename)))
        if isinstance(error, IsADirectoryError):
            # What was to take its place has a name of its own.
            must, lies, path = "file", "folder", Path(str(error.filename2 or error.filename))
        return (
            f"{path} must be a {must}, and a {lies} lies there: move it away; what the {must} held can be had again by "
            "pulseline doctor FLOW --repair where it was of a run"
        )
    if isinstance(error, OSError) and error.errno == errno.EROFS:
        named_in_text = re.search(r"'([^']+)'", str(error))
        file = error.filename or (named_in_text[1] if named_in_text else _home())
        return (
            f"{file} is on a read-only disk: mount it so that it can be written, then the same command goes on from "
            "here; or set PULSELINE_HOME to a folder that can be written"
        )
    return None


def _handles(error: BaseException) -> str | None:
    too_many = isinstance(error, OSError) and error.errno in {errno.EMFILE, errno.ENFILE}
    if too_many or "Too many open files" in str(error):
        return (
            f"too many open files: this process may have {_most_files()} at once, and needs more: ulimit -n 4096, or "
            "more, in the same shell, then the same command goes on from here"
        )
    return None


def _most_files() -> str:
    with suppress(ImportError):
        import resource

        return f"{resource.getrlimit(resource.RLIMIT_NOFILE)[0]:,}"
    return "so many"


def _in_the_way(path: Path) -> Path:
    """Give the file that a path leads through."""
    return next((each for each in reversed((path, *path.parents)) if each.is_file()), path)


def _package(error: BaseException) -> str | None:
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"the package {error.name.partition('.')[0]} is not installed in {sys.prefix}: run `make setup`"
    return None


def _java(error: BaseException) -> str | None:
    text = str(error)
    if re.search(r"UnsupportedClassVersionError|class file version", text):
        return _java_problem() or f"Spark needs Java {NEEDED_JAVA} or newer: {JAVA_ADVICE}"
    gateway = "JAVA_GATEWAY_EXITED" in text or "Java gateway process exited" in text
    missing = isinstance(error, FileNotFoundError) and "java" in str(error.filename or "")
    if gateway or missing:
        return _java_problem() or _jvm_ended()
    return None


def _spark_log() -> Path:
    """Say where Spark's own process writes, as the settings have it; where they cannot be read, as without any."""
    with suppress(PulselineError, OSError):
        from pipelines.jobs.environment.settings import read_settings

        return read_settings().spark_log
    return Path(_home()) / "spark.log"


def _jvm_ended() -> str:
    """Say what Spark's own process wrote last that looks like a reason, and where all of it is."""
    log = _spark_log()
    with suppress(OSError):
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_LINES:]
        why = [line.strip() for line in lines if WHY.search(line) and not line.lstrip().startswith("at ")]
        told = f": {_one_line(why[-1])[:200]}" if why else ""
        return f"Spark's JVM ended before it began{told} ({log} has what it wrote; see also {_java_command()} -version)"
    return f"Spark's JVM ended before it began: see what it wrote above, and {_java_command()} -version"


WORKER_GONE = re.compile(
    r"reading the port number from pyspark\.daemon|PythonWorkerFactory\.\S*stopWorker|Python worker exited unexpectedly"
)


def _worker(error: BaseException) -> str | None:
    """Judge what Spark says where a Python process of its own is gone, as while it starts."""
    if not WORKER_GONE.search(str(error)):
        return None
    return (
        "a Python worker of Spark's must run as long as its task; one has ended, killed or out of memory: what is "
        "published stands, and the same command goes on from here"
    )


def _gateway(error: BaseException) -> str | None:
    """Judge a call to Spark's own process that nobody answers any more, at whatever point of a start that is."""
    if type(error).__name__ == "Py4JNetworkError" or (isinstance(error, ConnectionError) and _came_by_py4j(error)):
        return (
            "Spark's process must run as long as the command does; it has ended, killed or out of memory: what is "
            "published stands, and the same command goes on from here"
        )
    return None


def _came_by_py4j(error: BaseException) -> bool:
    return any(Path(frame.filename).parent.name == "py4j" for frame in traceback.extract_tb(error.__traceback__))


def _python(error: BaseException) -> str | None:
    found = re.search(r'Cannot run program "([^"]+)"', str(error))
    if found is None:
        return None
    return (
        f"Spark starts Python as {found[1]}, and there is none of that name where it did: PYSPARK_PYTHON, or "
        "`spark.pyspark.python` under `spark:` in the environment's settings, names one that workers have; pulseline "
        "pack makes an archive that brings one"
    )


def _java_command() -> str:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"


def _java_problem() -> str | None:
    """Say what is wrong with the Java that Spark would start, and what to do; None where nothing is."""
    java = shutil.which(_java_command())
    version = java_version(java) if java else None
    if java and (version is None or version >= NEEDED_JAVA):
        return None
    if java is None:
        problem = f"Spark needs Java {NEEDED_JAVA}, and there is no {_java_command()}"
    else:
        problem = f"Spark needs Java {NEEDED_JAVA}, and {java} is Java {version}"
    return f"{problem}: {JAVA_ADVICE}, or run without Spark: --engine core"


def java_version(java: str) -> int | None:
    """Ask a Java for its version; None where it gives none."""
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=20, check=False)  # noqa: S603 - the Java that Spark would start
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', told.stderr + told.stdout)
    return int(found[1]) if found else None


def _network(error: BaseException) -> str | None:
    if isinstance(error, PulselineError):
        # It says itself what it could not reach.
        return None
    text = str(error)
    if type(error).__name__ == "gaierror" or re.search(
        r"unresolved dependency|Name or service not known|Temporary failure in name resolution|UnknownHostException",
        text,
        re.IGNORECASE,
    ):
        return f"no network, and something was to be fetched ({_one_line(text)[:120]}): connect it and try again"
    return None


def _carried(error: BaseException) -> Judged:
    """Judge what was raised in a task on a Spark worker, which comes back as text."""
    for link in _chain(error):
        if type(link).__module__.partition(".")[0] not in {"py4j", "pyspark"}:
            continue
        raised = WORKER_ERROR.findall(_worker_text(str(link)))
        if raised:
            name, message = raised[-1]
            module, _, kind = name.rpartition(".")
            known = getattr(sys.modules.get(module), kind, None)
            if isinstance(known, type) and issubclass(known, PulselineError):
                return known.code, message
            if kind in {"ImportError", "ModuleNotFoundError"}:
                return Exit.RUN_FAILED, WITHOUT_PACKAGES.format(said=message)
            return _broken(error) or (Exit.RUN_FAILED, f"in a task: {kind}: {message}{_hint()}")
        if type(link).__name__ == "StreamingQueryException":
            from pipelines.engine.live.why_ended import why_ended

            why = why_ended(link)
            return _broken(RuntimeError(why)) or (Exit.RUN_FAILED, f"Spark ended a query: {why}{_hint()}")
    return None


WITHOUT_PACKAGES = (
    "Spark's workers must have our code and the packages of this environment; one says: {said}: pulseline pack makes "
    "an archive of them, and says which settings have Spark unpack it on each worker; nothing was published"
)
FAILING = tuple(map(os.strerror, (errno.EIO, errno.ESTALE, errno.ENOTCONN, errno.ENXIO, errno.EACCES)))
CANNOT_STAT = "error stat()ing file"
"""What Arrow says where a file that it has opened cannot be looked at; why, it keeps to itself."""


def _broken(error: BaseException) -> Judged:
    """Judge a disk that fails, of which nobody says more; delta-rs and Arrow tell it in words of the system."""
    for link in _chain(error):
        why = next((each for each in (*FAILING, CANNOT_STAT) if each.lower() in str(link).lower()), None)
        if why is not None:
            file = isinstance(link, OSError) and link.filename
            return Exit.RUN_FAILED, (
                f"the disk of {file or _home()} failed ({why}): see what the system says of it and whether it is "
                "still mounted; once it answers, the same command goes on from here"
            )
    return None


def _worker_text(text: str) -> str:
    """Give what the Python worker wrote, without the JVM's own trace and what Spark adds of its query."""
    return text.partition("\n=== Streaming Query ===")[0].partition("\n\tat ")[0]


COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def _one_line(text: str) -> str:
    joined = re.sub(r"\s+", " ", COLOUR.sub("", text)).strip()
    return joined if len(joined) <= LONGEST else f"{joined[: LONGEST - END - 3]} … {joined[-END:]}"
