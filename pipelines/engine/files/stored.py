"""Paths that lie in an object store: `s3://bucket/prefix`, also gs and az, spoken to through obstore.

A store has no folders, no rename and no sync. What is put is there for all at once, whole, and stays; of many that
create one name a single one succeeds. So a path in a store is a `pathlib` path for reading, listing and removing, the
functions of `durable` write, and whatever else is asked of it is refused: it is no path that the machine could open.

Credentials and the endpoint come from the standard variables or the usual chain of the store. No error names them.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import re
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path, PosixPath
from typing import IO, TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

from pipelines.engine.files.endpoint import why_unreached
from pipelines.errors import Exit, PulselineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from obstore.store import ObjectStore

Given = TypeVar("Given")
Made = TypeVar("Made")
SCHEMES = ("s3", "gs", "az")
IN_STORE = re.compile(rf"({'|'.join(SCHEMES)}):/")
VARIABLES = {
    "s3": "AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID, ...",
    "gs": "GOOGLE_SERVICE_ACCOUNT, GOOGLE_APPLICATION_CREDENTIALS, ...",
    "az": "AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT_KEY, ...",
}
"""Of the environment, by scheme."""
FILES = frozenset({".json", ".parquet"})
"""Ends of names that no folder has: where none of them is there, nobody looks whether a folder is."""
IN_MEMORY = 16_000_000
"""Bytes of a file that is written up to which it waits in memory for its end; more wait on the machine's disk."""
AT_A_TIME = 16
"""Calls that are made beside each other where many are."""
AT_ONCE = 4_000_000
"""Bytes of a file up to which it is read in one call."""
PATIENCE = 60
"""Seconds in which a store that fails is asked again."""
TIMEOUT = "20s"
PAUSES = (0.1, 0.4, 1.6, 3.2)
"""Seconds before a write is tried again whose answer told neither."""
LONG = 200
"""Letters of what a library says that are passed on."""
NANOS = 1_000_000_000
ADDRESS = re.compile(r"\w+://\S+|\x1b\[[0-9;]*m")
"""What is left out of what a store's library says: where the store is, and colours."""
STATUS = re.compile(r"status code: (.+?)(?::|$)")
NO_BUCKET = "NoSuchBucket"
CUT = "response body"
"""What the library says where an answer began well and ended too soon."""
CODE = re.compile(r"<Code>(\w+)</Code>")
TO_DO = {NO_BUCKET: f"{NO_BUCKET}: make the bucket, or mend its name"}
"""What a store's word means for whoever reads it, where that is not in the word."""


@dataclass(eq=False)
class NotOnStoreError(PulselineError, RuntimeError):
    """Something asks for a file of this machine where the home is an object store."""

    path: str
    what: str = "what was asked for"
    code = Exit.WRONG_USE
    says = "{what} needs a home in a folder; {path} lies in an object store: use a home in a folder for it"


@dataclass(eq=False)
class StoreFailedError(PulselineError, OSError):
    """An object store did not do what it was asked; as for a disk, nothing is known of what it was to do."""

    path: str
    reason: str
    errno = errno.EIO
    """As of a disk that fails: whoever tells that from what is not there, or is torn, tells this too."""
    says = (
        "{path} must be had from its object store, and it does not answer as it should ({reason}): see to the store, "
        "the network and the credentials in the environment ({variables}), and run the command again"
    )

    def __str__(self) -> str:
        """Name what opens a store of its kind, too."""
        variables = VARIABLES.get(self.path.partition(":")[0], VARIABLES["s3"])
        return self.says.format(path=self.path, reason=self.reason, variables=variables)


class ChangedError(OSError):
    """Somebody else wrote a name since it was read."""


class StoredObject(NamedTuple):
    """What a store says of an object, by the names of `os.stat_result`."""

    st_size: int
    st_mtime_ns: int
    """To the second, for that is what stores tell; below it the tag, so that no two contents have one time."""
    tag: str

    @property
    def st_ino(self) -> int:
        """Tell two objects of one name apart."""
        return number_of(self.tag)

    @property
    def st_ctime_ns(self) -> int:
        """As the time of change."""
        return self.st_mtime_ns

    @property
    def st_mtime(self) -> float:
        """In seconds."""
        return self.st_mtime_ns / NANOS


def _found(said: Any) -> StoredObject:  # noqa: ANN401 - obstore's own mapping
    tag = said["e_tag"] or ""
    return StoredObject(said["size"], int(said["last_modified"].timestamp()) * NANOS + number_of(tag) % NANOS, tag)


def number_of(tag: str) -> int:
    """Give a number that tells tags apart."""
    return int.from_bytes(hashlib.sha256(tag.encode()).digest()[:8], "big")


def allows_http() -> bool:
    """Say whether a store may be spoken to without TLS."""
    return os.environ.get("AWS_ALLOW_HTTP", "").lower() in {"1", "true"}


def without_user(address: str) -> str:
    """Leave out of an address what stands before an `@`: it may open something.

    >>> without_user("s3://me:secret@bucket/a"), without_user("s3://bucket/a@b")
    ('s3://…@bucket/a', 's3://bucket/a@b')
    """
    return re.sub(r"//[^/]*@", "//…@", address)


@lru_cache(maxsize=8)
def _store(bucket: str, process: int, endpoint: str | None) -> ObjectStore:  # noqa: ARG001 - threads end with a fork
    from datetime import timedelta

    from obstore.store import from_url

    retry: Any = {"max_retries": 8, "retry_timeout": timedelta(seconds=PATIENCE)}
    options: Any = {"timeout": TIMEOUT, "allow_http": allows_http()}
    return from_url(bucket, client_options=options, retry_config=retry)


def is_stored(text: str | os.PathLike[str]) -> bool:
    """Say whether a path lies in an object store."""
    return isinstance(text, StorePath) or (isinstance(text, str) and IN_STORE.match(text) is not None)


def each_at_once(work: Callable[[Given], Made], items: Sequence[Given], *, stored: bool) -> list[Made]:
    """Do the same for many things; in a store several at a time, for each is mostly waiting.

    Args:
        work: what is done for one.
        items: which.
        stored: whether they lie in a store.
    """
    if not stored or len(items) < AT_A_TIME // 4:
        return [work(item) for item in items]
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        return list(pool.map(work, items))


def path_of(text: str | Path) -> Path:
    """Give the path that a text names, of this machine or of a store."""
    if isinstance(text, Path):
        return text
    return StorePath(text) if is_stored(text) else Path(text)


class StorePath(PosixPath):
    """A path in an object store; made of the text of its address."""

    def __str__(self) -> str:
        parts = self.parts
        return f"{parts[0]}//{'/'.join(parts[1:])}"

    def __fspath__(self) -> str:
        raise NotOnStoreError(str(self))

    def __repr__(self) -> str:
        return f"StorePath({str(self)!r})"

    @property
    def key(self) -> str:
        """The object's name in its bucket."""
        return "/".join(self.parts[2:])

    @property
    def store(self) -> ObjectStore:
        """The bucket."""
        return _store("//".join(self.parts[:2]), os.getpid(), os.environ.get("AWS_ENDPOINT_URL"))

    def _beside(self, key: str) -> StorePath:
        return StorePath("//".join(self.parts[:2]) + "/" + key)

    @contextmanager
    def _asked(self, *, on_condition: bool = False) -> Iterator[None]:
        """Have what a store says told as a disk would, without an address or a name of a user.

        Args:
            on_condition: whether a condition was given with what is asked; a store that says otherwise that one does
                not hold, as a gateway in front of it may, does not answer as it should.

        Raises:
            FileNotFoundError: there is no such object.
            FileExistsError: there is one.
            ChangedError: it is another one.
            StoreFailedError: the store does not do it.
        """
        from obstore import exceptions as said

        try:
            yield
        except (FileNotFoundError, said.NotFoundError) as problem:
            if NO_BUCKET in str(problem):
                raise StoreFailedError(str(self), _reason(problem)) from None
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self)) from None
        except (said.AlreadyExistsError, said.PreconditionError) as problem:
            if not on_condition:
                raise StoreFailedError(str(self), _reason(problem)) from None
            if isinstance(problem, said.AlreadyExistsError):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(self)) from None
            raise ChangedError(errno.EAGAIN, "another one stands there", str(self)) from None
        except (said.BaseError, OSError, ValueError) as problem:
            raise StoreFailedError(str(self), _reason(problem)) from None

    def _again(self, ask: Callable[[], Given]) -> Given:
        """Ask, and ask again where an answer was cut in its body: the library tries calls again, and no bodies.

        Raises:
            OSError: as `_asked`.
        """
        pauses = iter(PAUSES)
        while True:
            try:
                with self._asked():
                    return ask()
            except StoreFailedError as problem:
                pause = next(pauses, None) if CUT in problem.reason else None
                if pause is None:
                    raise
                time.sleep(pause)

    # What a path is, whatever lies there

    def relative_to(self, *other: Any) -> Path:  # type: ignore[override] # noqa: ANN401
        """Give what comes behind another path."""
        return Path(*super().relative_to(*other).parts)

    def absolute(self) -> StorePath:
        """Give the same path: an address is absolute."""
        return self

    def as_uri(self) -> str:
        """Give the address."""
        return str(self)

    def resolve(self, strict: bool = False) -> StorePath:  # noqa: ARG002, FBT001, FBT002 - as Path has it
        """Give the same path: a store has no links to follow."""
        return self

    # What lies there

    def stat(self, *, follow_symlinks: bool = True) -> StoredObject:  # type: ignore[override] # noqa: ARG002
        """Ask for size, time and tag."""
        import obstore

        with self._asked():
            return _found(obstore.head(self.store, self.key))

    def is_file(self) -> bool:
        """Say whether there is such an object."""
        try:
            self.stat()
        except FileNotFoundError:
            return False
        return True

    def is_dir(self) -> bool:
        """Say whether anything lies below."""
        return next(self.below(1), None) is not None

    def exists(self) -> bool:
        """Say whether there is such an object, or anything below."""
        return self.is_file() or (self.suffix not in FILES and self.is_dir())

    def is_symlink(self) -> bool:
        """Give False: there are none."""
        return False

    def below(self, chunk: int = 1_000) -> Iterator[tuple[StorePath, StoredObject]]:
        """Give all objects whose names begin with this one, with what the store says of them.

        One by which other tools mark a folder is none: it is empty, and called as the folder with a slash behind it,
        which the library leaves out, so that no call reaches it.
        """
        for some in self._pages(chunk):
            for each in some:
                path = self._beside(each["path"])
                if each["size"] or path.name.startswith(".") or path.is_file():
                    yield path, _found(each)

    def _pages(self, chunk: int) -> Iterator[Sequence[Any]]:
        """Give a listing page by page; one that was cut off goes on behind what it said last."""
        import obstore

        pages: Iterator[Sequence[Any]] | None = None
        last: str | None = None

        def ask() -> Sequence[Any]:
            nonlocal pages
            if pages is None:
                pages = iter(obstore.list(self.store, prefix=self.key, offset=last, chunk_size=chunk))
            try:
                return next(pages, ())
            except BaseException:
                pages = None
                raise

        while some := self._again(ask):
            yield some
            last = some[-1]["path"]

    def iterdir(self) -> Iterator[StorePath]:  # type: ignore[override]
        """Give what lies right below, by name.

        Raises:
            FileNotFoundError: nothing does.
        """
        return iter(self.listed())

    def listed(self) -> dict[StorePath, str]:
        """Give what lies right below, by name, each object with its tag.

        Raises:
            FileNotFoundError: nothing does.
        """
        import obstore

        said = self._again(lambda: obstore.list_with_delimiter(self.store, self.key))
        found = dict.fromkeys(said["common_prefixes"], "")
        # One called as the folder itself is a mark, as in `below`.
        found |= {each["path"]: each["e_tag"] or "" for each in said["objects"] if each["path"] != self.key}
        if not found:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self))
        return {self._beside(each): found[each] for each in sorted(found)}

    def glob(self, pattern: str) -> Iterator[StorePath]:  # type: ignore[override]
        """Give what lies below by names that a pattern fits, one part a level."""
        first, _, rest = pattern.partition("/")
        try:
            level = [each for each in self.iterdir() if fnmatchcase(each.name, first)]
        except FileNotFoundError:
            return iter(())
        return iter(level if not rest else [found for each in level for found in each.glob(rest)])

    def rglob(self, pattern: str) -> Iterator[StorePath]:  # type: ignore[override]
        """Give the objects below, of all levels, by names that a pattern fits."""
        return (path for path, _ in self.below() if fnmatchcase(path.name, pattern))

    def read_bytes(self) -> bytes:
        """Read all of it."""
        return self.read_tagged()[0]

    def read_tagged(self) -> tuple[bytes, str]:
        """Read all of it, with the tag that `exchange` asks for."""
        import obstore

        def ask() -> tuple[bytes, str]:
            said = obstore.get(self.store, self.key)
            return bytes(said.bytes()), said.meta["e_tag"] or ""

        return self._again(ask)

    def read_small(self, most: int) -> tuple[bytes | None, int]:
        """Read all of it, in one call, where it has no more than so many bytes; give its size too."""
        import obstore

        def ask() -> tuple[bytes | None, int]:
            said = obstore.get(self.store, self.key)
            size = said.meta["size"]
            return (bytes(said.bytes()) if size <= most else None), size

        return self._again(ask)

    def read_text(self, encoding: str | None = None, errors: str | None = None) -> str:
        """Read all of it as text."""
        return self.read_bytes().decode(encoding or "utf-8", errors or "strict")

    def open(self, mode: str = "r", *_: object, **__: object) -> IO[Any]:  # type: ignore[override]
        """Open for reading its bytes, or for writing them anew: they are there, all at once, when it is closed."""
        if mode == "rb":
            return io.BufferedReader(_Ranges(self, self.stat().st_size))
        if mode == "wb":
            return _Upload(self)  # type: ignore[return-value]
        raise NotOnStoreError(str(self), f"opening a file for {mode!r}")

    # What is done there

    def write_bytes(self, data: Any) -> int:  # noqa: ANN401 - any buffer
        """Put an object in place of another, or where there is none."""
        import obstore

        with self._asked():
            obstore.put(self.store, self.key, data)
        return len(data)

    def write_text(self, data: str, *_: object, **__: object) -> int:
        """Put text in place of another."""
        return self.write_bytes(data.encode())

    def upload(self, file: IO[bytes]) -> None:
        """Put what a file holds from its begin on."""
        import obstore

        with self._asked():
            obstore.put(self.store, self.key, file)

    def create(self, content: bytes) -> str:
        """Put an object unless one is there: of many that do, one succeeds.

        An answer can be lost on its way, or another come for it (the store's own second try finds the first one's
        object and calls it a stranger's). So whoever is refused, or told nothing, reads what stands there.

        Returns:
            The tag of what stands there now.

        Raises:
            FileExistsError: another one is there; nothing was changed.
            StoreFailedError: whether it was put cannot be told, or it was not.
        """
        return self._conditional(content, "create")

    def exchange(self, content: bytes, tag: str) -> str:
        """Put an object in place of the one that has a tag, or where there is none if the tag is empty.

        Returns:
            The tag of what stands there now.

        Raises:
            ChangedError: another one is there; nothing was changed.
        """
        try:
            return self._conditional(content, {"e_tag": tag} if tag else "create")
        except FileExistsError:
            raise ChangedError(errno.EAGAIN, "another one stands there", str(self)) from None

    def _conditional(self, content: bytes, mode: Any) -> str:  # noqa: ANN401 - obstore's own
        import obstore

        known = None if mode == "create" else mode["e_tag"]
        reason = ""
        for pause in (0.0, *PAUSES):
            time.sleep(pause)
            try:
                with self._asked(on_condition=True):
                    return obstore.put(self.store, self.key, content, mode=mode, use_multipart=False)["e_tag"] or ""
            except (FileNotFoundError, FileExistsError, ChangedError, StoreFailedError) as problem:
                reason = str(problem.args[1] if len(problem.args) > 1 else getattr(problem, "reason", problem))
            stands, tag = self._standing()
            if stands == content:
                return tag
            if (known is None) != (stands is None) or (known is not None and tag != known):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(self))
        raise StoreFailedError(str(self), reason)

    def _standing(self) -> tuple[bytes | None, str]:
        try:
            return self.read_tagged()
        except FileNotFoundError:
            return None, ""

    def unlink(self, missing_ok: bool = False) -> None:  # noqa: FBT001, FBT002, ARG002 - as Path has it
        """Remove an object; a store does not say whether there was one."""
        import obstore

        with self._asked():
            obstore.delete(self.store, self.key)

    def copy_all(self, to: StorePath) -> None:
        """Copy all that lies below to another place of the same store."""
        import obstore

        keys = [path.key for path, _ in self.below()]
        with self._asked():
            for key in keys:
                obstore.copy(self.store, key, f"{to.key}{key.removeprefix(self.key)}")

    def remove_all(self, but: Path | None = None) -> None:
        """Remove all that lies below, but for one object."""
        import obstore

        keys = [path.key for path, _ in self.below() if path != but]
        with self._asked():
            obstore.delete(self.store, keys)

    def mkdir(self, *_: object, **__: object) -> None:
        """Do nothing: there are no folders."""

    rmdir = mkdir

    def touch(self, *_: object, **__: object) -> None:
        """Put an empty object."""
        self.write_bytes(b"")

    def rename(self, target: object) -> NoReturn:  # noqa: ARG002 - as Path has it
        """Refuse: nothing in a store can be renamed."""
        raise NotOnStoreError(str(self), "putting a folder in another's place")

    replace = rename

    def symlink_to(self, *_: object, **__: object) -> NoReturn:
        """Refuse: there are no links; see `durable.link_folder`."""
        raise NotOnStoreError(str(self), "a link to another run")


def _reason(problem: Exception) -> str:
    return told(str(problem)) or type(problem).__name__


def told(text: str) -> str:
    """Say in a few words what a store said, without its address."""
    status, code = STATUS.search(text.partition("\n")[0]), CODE.search(text)
    if status:
        more = TO_DO.get(code[1], code[1]) if code else ""
        return f"{status[1].strip()}{f', {more}' if more else ''}"
    if "builder error" in text and os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://") and not allows_http():
        return "AWS_ENDPOINT_URL is an address without TLS, and AWS_ALLOW_HTTP=true is not set"
    if "error sending request" in text and (endpoint := os.environ.get("AWS_ENDPOINT_URL")):
        return why_unreached(endpoint)
    return " ".join(ADDRESS.sub("", text.partition("Debug source")[0]).split())[:LONG]


class _Ranges(io.RawIOBase):
    """The bytes of an object, read from where they are asked for."""

    def __init__(self, path: StorePath, size: int) -> None:
        super().__init__()
        self._path, self._at, self._size = path, 0, size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - any buffer
        import obstore

        wanted = min(len(buffer), self._size - self._at)
        if wanted <= 0:
            return 0

        def ask() -> Any:  # noqa: ANN401 - obstore's own buffer
            return obstore.get_range(self._path.store, self._path.key, start=self._at, length=wanted)

        view = memoryview(self._path._again(ask))  # noqa: SLF001 - its reader
        buffer[: len(view)] = view
        self._at += len(view)
        return len(view)


class _Upload(io.RawIOBase):
    """A new object that is only written to, and is there when it is closed; where its block fails it never is."""

    def __init__(self, path: StorePath) -> None:
        super().__init__()
        self._path, self._file = path, tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - closed below

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:  # noqa: ANN401 - any buffer
        return self._file.write(data)

    def tell(self) -> int:
        return self._file.tell()

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self._file.close()
        self.close()

    def __del__(self) -> None:
        self._file.close()

    def close(self) -> None:
        if not self.closed and not self._file.closed:
            with self._file as file:
                file.seek(0)
                self._path.upload(file)
        super().close()


def for_arrow(path: str | Path) -> Any:  # noqa: ANN401 - a path, or a file of Arrow's
    """Give what Arrow reads a file by: its path, or the object's bytes; of a large object, those that are asked for.

    Args:
        path: of the file, as a path or as text.

    Raises:
        FileNotFoundError: there is no such object.
    """
    if not is_stored(path):
        return path
    import pyarrow as pa

    found = path_of(path)
    assert isinstance(found, StorePath)  # noqa: S101 - for the types alone
    whole, size = found.read_small(AT_ONCE)
    return pa.PythonFile(_Ranges(found, size), mode="r") if whole is None else pa.BufferReader(whole)
