"""Compiled kernels on disk: a whole key to bytes, for the next process.

    key = key_of("opencl", driver_version, options, source)
    binary = load(key)              None: compile, then
    store(key, binary)

An entry is one file, named by the key's hash: header, digest, the whole key, the value. Reading
compares the whole key, the version of rune included; what is short, altered or of another form is
a miss, and removed. Writing goes to a temporary file that is then renamed, so that no reader ever
sees half an entry. Beyond the limit those entries go that were not read for longest.

Settings: `rune.configure(cache_dir=...)`, else RUNE_CACHE_DIR, else the user's cache directory;
an empty name switches it off. RUNE_CACHE_BYTES is the limit. What is read here gets executed, so
the folder is the user's alone, each time that it is opened (private_folder.py). Without a cache
that can be used everything is compiled: a CacheWarning says why, once in a process.
"""

from __future__ import annotations

import functools
import hashlib
import os
import struct
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from rune import config, counts, locks
from rune.backends.shared.private_folder import TEMPORARY, Folder, Unsafe
from rune.errors import CacheWarning, user_frame
from rune.version import __version__

LIMIT_BYTES = 1 << 28
KEPT_SHARE = 0.8  # of the limit, after entries had to go
ABANDONED_S = 3600  # a temporary file of that age was left by a process that died
_MAGIC = b"rune kernel 2\n"
_HEADER = struct.Struct("<32sQQ")  # digest of all that follows, bytes of the key, of the value
_START = len(_MAGIC) + _HEADER.size
_FOLDER = "kernels"  # within the directory: the user's own directory keeps its mode
SCHEDULES = "schedules"  # beside it: winners of searches, apart so that code never evicts them
_ENTRY = ".bin"
_TOUCHES = os.utime in os.supports_fd
_warned: set[str] = set()  # "cache" once it was said why there is none


# --- keys and settings ------------------------------------------------------------------------


def key_of(*parts: str | bytes) -> bytes:
    """One key of several parts and the version; different parts never make the same key."""
    encoded = [p.encode() if isinstance(p, str) else p for p in (__version__, *parts)]
    return b"".join(struct.pack("<Q", len(p)) + p for p in encoded)


def load(key: bytes) -> bytes | None:
    """The value stored under this key, if it still exists."""
    cache = _chosen()
    if cache is None:
        return None
    value = cache.load(key)
    next(counts.disk_misses if value is None else counts.disk_hits)
    return value


def store(key: bytes, value: bytes) -> None:
    """Keep the value under the key, if there is a cache."""
    cache = _chosen()
    if cache is not None:
        cache.store(key, value)


def is_on() -> bool:
    """Whether there is a cache, so that keys are worth their making."""
    return _chosen() is not None


def current() -> DiskCache | None:
    """The cache that the settings name; None where it is switched off or cannot be used."""
    cache = _chosen()
    return None if cache is None or cache.problem is not None else cache


def schedules(*, make: bool) -> DiskCache | None:
    """The cache of winners of searches; None where there is none, unless it is to be made."""
    try:
        directory = configured()
    except Unusable as error:
        _say(str(error))
        return None
    # One look, so that who never searched pays no more.
    if directory is None or not (make or (directory / SCHEDULES).is_dir()):
        return None
    return _cache(directory, _limit_bytes(), SCHEDULES)


def problem() -> str | None:
    """Why nothing is kept though the cache is not switched off, if so."""
    try:
        directory = configured()
    except Unusable as error:
        return str(error)
    return None if directory is None else _cache(directory, _limit_bytes()).problem


def _chosen() -> DiskCache | None:
    try:
        directory = configured()
    except Unusable as error:
        _say(str(error))
        return None
    return None if directory is None else _cache(directory, _limit_bytes())


class Unusable(Exception):
    """Settings that name no directory."""


def configured() -> Path | None:
    """The directory that the settings name; None: switched off. Errors: Unusable."""
    name = config.current().cache_dir
    if name is None:
        name = os.environ.get("RUNE_CACHE_DIR")
    if name == "":
        return None
    try:
        path = _users_directory() if name is None else Path(name).expanduser()
        return _resolved(path) if path.is_absolute() else path.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        said = "the user has no home directory" if name is None else repr(name)
        raise Unusable(f"{said}: {error}") from error


# Ten looks are taken for each compiled program. A link that takes the place of a directory
# afterwards is not followed: the folder is refused when it is opened.
@functools.lru_cache(maxsize=8)
def _resolved(path: Path) -> Path:
    return path.resolve()


def _users_directory() -> Path:
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME")
    return Path(base or "~/.cache").expanduser() / "rune"


def _limit_bytes() -> int:
    """The limit; where the environment has no whole number of bytes, the usual one.

    >>> _parsed_bytes("1e9"), _parsed_bytes("many")
    (1000000000, None)
    """
    text = os.environ.get("RUNE_CACHE_BYTES", "")
    if not text.strip():
        return LIMIT_BYTES
    number = _parsed_bytes(text)
    if number is None:
        what = f"RUNE_CACHE_BYTES={text!r} is not a number of bytes"
        _say(f"{what}; the limit is {LIMIT_BYTES}", about="limit")
        return LIMIT_BYTES
    return number


@functools.lru_cache(maxsize=8)
def _parsed_bytes(text: str) -> int | None:
    try:
        value = float(text)
        number = int(text) if text.strip().isdecimal() else int(value)
    except (ValueError, OverflowError):
        return None
    return number if number == value and number >= 0 else None


def tell(why: str, about: str) -> None:
    """Warn of something else that is not as it could be, once in a process for what it is about."""
    _say(why, about)


def _say(why: str, about: str = "cache") -> None:
    """Warn, once in a process for what it is about."""
    if about in _warned:
        return
    _warned.add(about)
    text = f"rune: compiled kernels are not kept ({why})" if about == "cache" else f"rune: {why}"
    frame = user_frame()
    if frame is None:
        warnings.warn(text, CacheWarning, stacklevel=2)
    else:
        warnings.warn_explicit(text, CacheWarning, frame.file, frame.line)


@functools.cache
def _cache(directory: Path, limit_bytes: int, folder: str = _FOLDER) -> DiskCache:
    return DiskCache(directory, limit_bytes, folder)


# --- one directory ----------------------------------------------------------------------------


class DiskCache:
    """The entries of one directory. Several threads and processes may use it at once."""

    def __init__(self, directory: Path, limit_bytes: int = LIMIT_BYTES, folder: str = _FOLDER):
        self.folder, self.limit_bytes = directory / folder, limit_bytes
        self._lock = locks.lock()
        self._bytes: int | None = None  # of all entries, when they were last counted and since
        self.problem: str | None = None
        with self._opened("made"):
            pass

    def load(self, key: bytes) -> bytes | None:
        """The value stored under this key; None is a miss."""
        with self._opened() as folder:
            return None if folder is None else _loaded(folder, _name(key), key)

    def store(self, key: bytes, value: bytes) -> None:
        """Keep a value, unless it alone is beyond the limit or the disk refuses."""
        data = _encoded(key, value)
        # An entry above the limit would evict everything else and then itself.
        if len(data) > self.limit_bytes:
            return
        with self._opened("written to") as folder:
            if folder is None:
                return
            folder.write(_name(key), data)
            with self._lock:
                self._count(folder, len(data))

    def clear(self) -> None:
        """Forget everything."""
        with self._lock, self._opened() as folder:
            if folder is not None:
                for _, _, name in _entries(folder):
                    folder.remove(name)
            self._bytes = None

    def entry_bytes(self) -> int:
        """Bytes of all entries now."""
        with self._opened() as folder:
            return 0 if folder is None else sum(size for _, size, _ in _entries(folder))

    @contextmanager
    def _opened(self, action: str | None = None) -> Iterator[Folder | None]:
        """The folder, or None where there is none. What fails in here is the cache's problem.

        action: what is done to it, which makes it where it is missing.
        """
        try:
            folder = Folder(self.folder, make=action is not None)
        except (OSError, Unsafe) as error:
            if action is not None or not isinstance(error, FileNotFoundError):
                self._fail(error, "opened" if action is None else "made")
            yield None
            return
        with folder:
            try:
                yield folder
            except OSError as error:
                self._fail(error, action or "read")
            else:
                self.problem = self.problem if action is None else None

    def _fail(self, error: Exception, action: str) -> None:
        is_system = isinstance(error, OSError)
        why = f"cannot be {action} ({error.strerror})" if is_system else str(error)
        self.problem = f"{self.folder} {why}"
        _say(self.problem)

    def _count(self, folder: Folder, more: int) -> None:
        """Under the lock: count `more` new bytes, and evict entries beyond the limit."""
        # Counting lists the whole folder, so it happens once per process; later writes only add.
        if self._bytes is None:
            _sweep(folder)
            self._bytes = sum(size for _, size, _ in _entries(folder))
        else:
            self._bytes += more
        if self._bytes > self.limit_bytes:
            self._evict(folder)

    def _evict(self, folder: Folder) -> None:
        """Remove what was not used for longest, and what a killed process left behind."""
        _sweep(folder)
        entries = sorted(_entries(folder))
        total = sum(size for _, size, _ in entries)
        for _, size, name in entries:
            # Evict well below the limit, so that the next few entries do not evict again.
            if total <= KEPT_SHARE * self.limit_bytes:
                break
            folder.remove(name)
            total -= size
        self._bytes = total


def _entries(folder: Folder) -> list[tuple[float, int, str]]:
    """When each entry was last used, its bytes, its name."""
    files = folder.files()
    return [(s.st_mtime, s.st_size, name) for name, s in files if name.endswith(_ENTRY)]


def _sweep(folder: Folder) -> None:
    oldest = time.time() - ABANDONED_S
    for name, status in list(folder.files()):
        if name.endswith(TEMPORARY) and status.st_mtime < oldest:
            folder.remove(name)


def _name(key: bytes) -> str:
    # A key contains the whole source, too long for a file name.
    return hashlib.sha256(key).hexdigest() + _ENTRY


def _loaded(folder: Folder, name: str, key: bytes) -> bytes | None:
    """The value in a file of that name; what holds none is removed."""
    value = None
    try:
        with folder.open(name) as file:
            value = _value(file, key)
            if value is not None and _TOUCHES:
                with suppress(OSError):  # of a file system that is only read
                    os.utime(file.fileno())  # it was used now
    except FileNotFoundError:
        return None
    except (OSError, Unsafe):
        value = None
    if value is None:
        folder.remove(name)
    return value


def _encoded(key: bytes, value: bytes) -> bytes:
    # The digest covers key and value, so a truncated or foreign file never passes for an entry.
    digest = hashlib.sha256(key + value).digest()
    return b"".join([_MAGIC, _HEADER.pack(digest, len(key), len(value)), key, value])


def _value(file: BinaryIO, key: bytes) -> bytes | None:
    """The value of an entry; None if it is not a whole entry of this key.

    Nothing is read that the header does not tell of, so that a large file costs nothing.
    """
    head = file.read(_START)
    if len(head) < _START or not head.startswith(_MAGIC):
        return None
    digest, of_key, of_value = _HEADER.unpack_from(head, len(_MAGIC))
    if of_key != len(key) or os.fstat(file.fileno()).st_size != _START + of_key + of_value:
        return None
    if _read(file, of_key) != key:
        return None
    value = _read(file, of_value)
    return value if hashlib.sha256(key + value).digest() == digest else None


def _read(file: BinaryIO, count: int) -> bytes:
    """So many bytes, or fewer at the end."""
    parts = []
    while count and (part := file.read(min(count, 1 << 20))):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
