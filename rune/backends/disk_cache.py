"""Compiled kernels on disk: a whole key to bytes, for the next process.

    key = key_of("opencl", driver_version, options, source)
    binary = load(key)              None: compile, then
    store(key, binary)

An entry is one file, named by the key's hash: header, digest, the whole key, the value. Reading
compares the whole key; what is short, altered or of another form is a miss, and removed. Writing
goes to a temporary file that is then renamed, so that no reader ever sees half an entry. Beyond
the limit those entries go that were not read for longest.

Settings: `rune.configure(cache_dir=...)`, else RUNE_CACHE_DIR, else the user's cache directory;
an empty name switches it off. RUNE_CACHE_BYTES is the limit. What is read here gets executed, so
the directory is the user's alone: another's, or one that others may write to, is not used, and a
warning says so. A disk that is full or read-only only means that nothing is kept; `problem` says.
"""

from __future__ import annotations

import functools
import hashlib
import os
import stat
import struct
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from pathlib import Path

from rune import config, counts, locks

LIMIT_BYTES = 1 << 28
KEPT_SHARE = 0.8  # of the limit, after entries had to go
ABANDONED_S = 3600  # a temporary file of that age belongs to nobody
_MAGIC = b"rune kernel 1\n"
_HEADER = struct.Struct("<32sQQ")  # digest of all that follows, bytes of the key, of the value
_FOLDER = "kernels"  # within the directory: the user's own directory keeps its mode
_ENTRY, _TEMPORARY = ".bin", ".tmp"


def key_of(*parts: str | bytes) -> bytes:
    """One key of several parts; different parts never make the same key."""
    encoded = [p.encode() if isinstance(p, str) else p for p in parts]
    return b"".join(struct.pack("<Q", len(p)) + p for p in encoded)


def load(key: bytes) -> bytes | None:
    """What was stored under this key, if it is still there."""
    cache = current()
    if cache is None:
        return None
    found = cache.load(key)
    next(counts.disk_misses if found is None else counts.disk_hits)
    return found


def store(key: bytes, value: bytes) -> None:
    """Keep the value under the key, if there is a cache."""
    found = current()
    if found is not None:
        found.store(key, value)


def current() -> DiskCache | None:
    """The cache that the settings name; None where it is switched off or cannot be used."""
    directory = configured()
    found = None if directory is None else _cache(directory, _limit_bytes())
    return found if found is not None and found.problem is None else None


def configured() -> Path | None:
    """The directory that the settings name; None: switched off."""
    name = config.current().cache_dir
    if name is None:
        name = os.environ.get("RUNE_CACHE_DIR")
    if name is None:
        return _users_directory()
    return Path(name).expanduser() if name else None


def problem() -> str | None:
    """Why the configured directory keeps nothing, if so."""
    directory = configured()
    return None if directory is None else _cache(directory, _limit_bytes()).problem


def _users_directory() -> Path:
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME")
    return Path(base or "~/.cache").expanduser() / "rune"


def _limit_bytes() -> int:
    return int(os.environ.get("RUNE_CACHE_BYTES", LIMIT_BYTES))


@functools.cache
def _cache(directory: Path, limit_bytes: int) -> DiskCache:
    return DiskCache(directory, limit_bytes)


class DiskCache:
    """The entries of one directory. Several threads and processes may use it at once."""

    def __init__(self, directory: Path, limit_bytes: int = LIMIT_BYTES):
        self.folder, self.limit_bytes = directory / _FOLDER, limit_bytes
        self._lock = locks.lock()
        self._bytes: int | None = None  # of all entries, when they were last counted and since
        self.problem = _problem(self.folder)

    def load(self, key: bytes) -> bytes | None:
        """The value stored under this key; None is a miss."""
        path = self._path(key)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        found = _decoded(data)
        if found is None:
            _remove(path)
            return None
        stored, value = found
        if stored != key:
            return None
        with suppress(OSError):
            os.utime(path)  # it was used now
        return value

    def store(self, key: bytes, value: bytes) -> None:
        """Keep a value, unless it alone is beyond the limit or the disk refuses."""
        data = _encoded(key, value)
        if len(data) > self.limit_bytes:
            return
        try:
            self._write(self._path(key), data)
        except OSError as error:
            self.problem = f"{self.folder} cannot be written to ({error.strerror})"
            return
        with self._lock:
            self._bytes = self.entry_bytes() if self._bytes is None else self._bytes + len(data)
            if self._bytes > self.limit_bytes:
                self._evict()

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            for _, _, path in self._entries():
                _remove(path)
            self._bytes = None

    def entry_bytes(self) -> int:
        """Bytes of all entries now."""
        return sum(size for _, size, _ in self._entries())

    def _path(self, key: bytes) -> Path:
        return self.folder / (hashlib.sha256(key).hexdigest() + _ENTRY)

    def _write(self, path: Path, data: bytes) -> None:
        handle, name = tempfile.mkstemp(_TEMPORARY, dir=self.folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(name, path)
        except OSError:
            _remove(Path(name))
            raise

    def _entries(self) -> list[tuple[float, int, Path]]:
        """When each entry was last used, its bytes, its path."""
        found = []
        with suppress(OSError), os.scandir(self.folder) as files:
            for file in files:
                with suppress(OSError):  # another process may have removed it
                    if file.name.endswith(_ENTRY):
                        status = file.stat()
                        found.append((status.st_mtime, status.st_size, Path(file.path)))
        return found

    def _evict(self) -> None:
        """Remove what was not used for longest, and what a killed process left behind."""
        self._sweep()
        entries = sorted(self._entries())
        total = sum(size for _, size, _ in entries)
        for _, size, path in entries:
            if total <= KEPT_SHARE * self.limit_bytes:
                break
            _remove(path)
            total -= size
        self._bytes = total

    def _sweep(self) -> None:
        for path in self.folder.glob(f"*{_TEMPORARY}"):
            with suppress(OSError):
                if path.stat().st_mtime < time.time() - ABANDONED_S:
                    path.unlink()


def _problem(folder: Path) -> str | None:
    """Make the folder, the user's alone; why it cannot be used, if so."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        status = os.stat(folder, follow_symlinks=False)
    except OSError as error:
        return f"{folder} cannot be made ({error.strerror})"
    why = _not_private(status)
    if why is None:
        return None
    warnings.warn(f"rune: compiled kernels are not kept ({folder} {why})", stacklevel=2)
    return f"{folder} {why}"


def _not_private(status: os.stat_result) -> str | None:
    if not stat.S_ISDIR(status.st_mode):
        return "is no directory"
    if os.name != "posix":
        return None  # the user's cache directory is private by its place
    if status.st_uid != os.geteuid():
        return "belongs to another user"
    if stat.S_IMODE(status.st_mode) & 0o077:
        return "is open to other users; chmod 700 it"
    return None


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def _encoded(key: bytes, value: bytes) -> bytes:
    digest = hashlib.sha256(key + value).digest()
    return b"".join([_MAGIC, _HEADER.pack(digest, len(key), len(value)), key, value])


def _decoded(data: bytes) -> tuple[bytes, bytes] | None:
    """Key and value; None for what is no whole entry."""
    start = len(_MAGIC) + _HEADER.size
    if not data.startswith(_MAGIC) or len(data) < start:
        return None
    digest, of_key, of_value = _HEADER.unpack_from(data, len(_MAGIC))
    if len(data) != start + of_key + of_value:
        return None
    if hashlib.sha256(data[start:]).digest() != digest:
        return None
    return data[start : start + of_key], data[start + of_key :]
