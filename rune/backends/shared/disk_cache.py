"""Compiled kernels on disk: a whole key to bytes, for the next process.

    key = key_of("opencl", driver_version, options, source)
    binary = load(key)              None: compile, then
    store(key, binary)

An entry is one file, named by the key's hash: header, digest, the whole key, the value. Reading
compares the whole key, which includes rune's version; a file that is short, altered or in another
format counts as a miss and is removed. An entry is written to a temporary file that is then
renamed, so no reader ever sees half of one. Beyond the limit, the least recently read entries are
evicted.

Settings: `rune.configure(cache_dir=...)`, else RUNE_CACHE_DIR, else the user's cache directory;
an empty name switches the cache off. RUNE_CACHE_BYTES is the limit. Entries get executed, so the
folder must be private to the user, which is checked each time it is opened (private_folder.py).
Where the cache cannot be used, everything is compiled, and one CacheWarning per process says why.
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
_warned_subjects: set[str] = set()  # "cache", "limit" and others: at most one warning about each


# --- keys and settings ------------------------------------------------------------------------


def key_of(*parts: str | bytes) -> bytes:
    """A key of several parts and rune's version; different parts never make the same key."""
    encoded_parts = [p.encode() if isinstance(p, str) else p for p in (__version__, *parts)]
    # With their lengths: ("ab", "c") and ("a", "bc") must not meet.
    return b"".join(struct.pack("<Q", len(p)) + p for p in encoded_parts)


def load(key: bytes) -> bytes | None:
    """The value stored under this key; None if there is none."""
    cache = _chosen()
    if cache is None:
        return None
    value = cache.load(key)
    next(counts.disk_misses if value is None else counts.disk_hits)
    return value


def store(key: bytes, value: bytes) -> None:
    """Store the value under the key, if there is a cache."""
    cache = _chosen()
    if cache is not None:
        cache.store(key, value)


def is_on() -> bool:
    """Whether there is a cache: without one, building keys is wasted work."""
    return _chosen() is not None


def current() -> DiskCache | None:
    """The cache that the settings name; None where it is switched off or cannot be used."""
    cache = _chosen()
    return None if cache is None or cache.problem is not None else cache


def schedules(*, make: bool) -> DiskCache | None:
    """The cache of winning schedules; None where there is none. make: create it if it is
    missing."""
    try:
        directory = configured()
    except Unusable as error:
        _say(str(error))
        return None
    # One system call: users who never search for schedules must not pay for opening a folder.
    if directory is None or not (make or (directory / SCHEDULES).is_dir()):
        return None
    return _cache(directory, _limit_bytes(), SCHEDULES)


def problem() -> str | None:
    """Why the cache cannot be used although it is not switched off; None if it can."""
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
    """The directory that the settings name; None if switched off. Errors: Unusable."""
    name = config.current().cache_dir
    if name is None:
        name = os.environ.get("RUNE_CACHE_DIR")
    if name == "":
        return None
    try:
        path = _users_directory() if name is None else Path(name).expanduser()
        return _resolved(path) if path.is_absolute() else path.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        setting = "the user has no home directory" if name is None else repr(name)
        raise Unusable(f"{setting}: {error}") from error


# Memoised, because compiling one program asks for the directory about ten times. A link that later
# replaces a directory on the path is not followed: opening the folder refuses it.
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
    """The limit [B]; the default where RUNE_CACHE_BYTES is not a whole number of bytes.

    >>> _parsed_bytes("1e9"), _parsed_bytes("many")
    (1000000000, None)
    """
    text = os.environ.get("RUNE_CACHE_BYTES", "")
    if not text.strip():
        return LIMIT_BYTES
    number = _parsed_bytes(text)
    if number is None:
        fault = f"RUNE_CACHE_BYTES={text!r} is not a number of bytes"
        _say(f"{fault}; the limit is {LIMIT_BYTES}", about="limit")
        return LIMIT_BYTES
    return number


@functools.lru_cache(maxsize=8)
def _parsed_bytes(text: str) -> int | None:
    try:
        value = float(text)
        # Decimals do not go through float, which would round those above 2**53.
        number = int(text) if text.strip().isdecimal() else int(value)
    except (ValueError, OverflowError):
        return None
    return number if number == value and number >= 0 else None


def tell(why: str, about: str) -> None:
    """Warn of another impairment, at most once per process for each subject."""
    _say(why, about)


def _say(why: str, about: str = "cache") -> None:
    """Warn, at most once per process for each subject."""
    if about in _warned_subjects:
        return
    _warned_subjects.add(about)
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
        self._bytes: int | None = None  # of all entries: last counted, plus writes since then
        self.problem: str | None = None
        # Made now, so that a directory that cannot be used warns before anything is compiled.
        with self._opened("made"):
            pass

    def load(self, key: bytes) -> bytes | None:
        """The value stored under this key; None is a miss."""
        with self._opened() as folder:
            return None if folder is None else _loaded(folder, _name(key), key)

    def store(self, key: bytes, value: bytes) -> None:
        """Store a value, unless it alone exceeds the limit or the disk refuses it."""
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
        """Remove all entries."""
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
        """The folder, or None where there is none. Errors inside the block become `problem`.

        action: what the block does to the folder, for messages; a missing folder is created for it
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
                # A successful write clears the problem; a read proves nothing about writing.
                self.problem = self.problem if action is None else None

    def _fail(self, error: Exception, action: str) -> None:
        is_system = isinstance(error, OSError)
        why = f"cannot be {action} ({error.strerror})" if is_system else str(error)
        self.problem = f"{self.folder} {why}"
        _say(self.problem)

    def _count(self, folder: Folder, more: int) -> None:
        """Add `more` bytes to the count, and evict entries beyond the limit. Under the lock."""
        # Counting lists the whole folder, so it happens once per process; later writes only add.
        if self._bytes is None:
            _sweep(folder)
            self._bytes = sum(size for _, size, _ in _entries(folder))
        else:
            self._bytes += more
        if self._bytes > self.limit_bytes:
            self._evict(folder)

    def _evict(self, folder: Folder) -> None:
        """Remove the least recently used entries, and temporary files of killed processes."""
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
    """The value in a file of that name; a file without a valid entry of this key is removed."""
    value = None
    try:
        with folder.open(name) as file:
            value = _value(file, key)
            if value is not None and _TOUCHES:
                # Eviction goes by this time. Read-only file systems refuse to set it.
                with suppress(OSError):
                    os.utime(file.fileno())
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
    """The value of an entry; None if the file is not a complete entry of this key.

    Lengths are checked before anything is read, so a large foreign file costs nothing.
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
    """The next `count` bytes; fewer at the end of the file."""
    parts = []
    while count and (part := file.read(min(count, 1 << 20))):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
