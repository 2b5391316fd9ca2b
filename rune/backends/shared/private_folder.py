"""A folder private to one user, because the files in it get executed.

It is opened for each use, from the root of the file system down, and only open descriptors are
checked, so that nothing can be replaced between check and use. Each directory on the path must
belong to the user or to the administrator and be writable by nobody else: not by others, except
with the sticky bit, nor by a group that is not the user's own. The folder itself must be closed to
all other users, its files to their writes. Links are not followed.

    with Folder(path, make=True) as folder:
        folder.write("name", data)
        data = folder.read("name", most)

Windows has no directory descriptors; there the user's profile directory is private by default.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

TEMPORARY = ".tmp"  # the end of the names of files that are being written
_DESCRIBED = os.name == "posix" and os.open in os.supports_dir_fd
_PLAIN = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_DIRECTORY = getattr(os, "O_DIRECTORY", 0) | _PLAIN
# The path's directories may be searchable without being readable, as home directories often are.
_WAY = getattr(os, "O_PATH", os.O_RDONLY) | _DIRECTORY
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _PLAIN  # do not wait for a pipe's writer
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _PLAIN


class Unsafe(Exception):
    """Why a folder cannot be used: others may change what is in it."""


class Folder:
    """The folder, open. Errors: Unsafe; OSError where it cannot be opened or made.

    path: absolute and without links. make: create missing directories, for this user alone.
    """

    def __init__(self, path: Path, make: bool = False):
        self.path = path
        self._descriptor: int | None = None
        if _DESCRIBED:
            self._descriptor = _opened(path, make)
        elif make:
            path.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _at(self, name: str) -> str:
        return name if self._descriptor is not None else str(self.path / name)

    def open(self, name: str) -> BinaryIO:
        """A file to read. Errors: OSError; Unsafe if it is not a regular file of the user's."""
        handle = os.open(self._at(name), _READ, dir_fd=self._descriptor)
        file = os.fdopen(handle, "rb", buffering=0)
        try:
            _require_private_file(os.fstat(handle), name)
        except BaseException:
            file.close()
            raise
        return file

    def write(self, name: str, data: bytes) -> None:
        """Write a file completely or not at all: to a temporary one, then renamed. Errors:
        OSError."""
        temporary = secrets.token_hex(8) + TEMPORARY
        handle = os.open(self._at(temporary), _WRITE, 0o600, dir_fd=self._descriptor)
        try:
            # Not synced to the disk: an entry that a crash leaves incomplete fails its digest.
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            within = self._descriptor
            os.replace(self._at(temporary), self._at(name), src_dir_fd=within, dst_dir_fd=within)
        except BaseException:
            self.remove(temporary)
            raise

    def remove(self, name: str) -> None:
        """Remove a file, if it exists and can be removed."""
        with suppress(OSError):
            os.unlink(self._at(name), dir_fd=self._descriptor)

    def files(self) -> Iterator[tuple[str, os.stat_result]]:
        """The names of the folder's entries, and the status of each."""
        with os.scandir(self.path if self._descriptor is None else self._descriptor) as entries:
            for entry in entries:
                with suppress(OSError):  # another process may have removed it
                    yield entry.name, entry.stat(follow_symlinks=False)


def _opened(path: Path, make: bool) -> int:
    """A descriptor of the folder, after each directory on the path was checked while it was
    open."""
    *way, last = path.parts[1:]
    directory = Path(path.anchor)
    descriptors = [os.open(path.anchor, _WAY)]
    try:
        # The root's owner could change everything in it anyway.
        trusted_users = {0, os.geteuid(), os.fstat(descriptors[0]).st_uid}
        for name in way:
            _require_safe(os.fstat(descriptors[-1]), directory, trusted_users)
            directory /= name
            descriptors.append(_entered(descriptors[-1], name, _WAY, make))
        _require_safe(os.fstat(descriptors[-1]), directory, trusted_users)
        descriptors.append(_last_entered(descriptors[-1], last, make))
        _require_private(os.fstat(descriptors[-1]))
        return descriptors.pop()
    finally:
        # Popped first: an interrupt may then leave one open, but none is closed twice, when its
        # number might already be another thread's file.
        while descriptors:
            os.close(descriptors.pop())


def _entered(at: int, name: str, flags: int, make: bool) -> int:
    """A descriptor of the directory of that name in another one."""
    try:
        return os.open(name, flags, dir_fd=at)
    except FileNotFoundError:
        if not make:
            raise
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=at)
        return os.open(name, flags, dir_fd=at)


def _last_entered(at: int, name: str, make: bool) -> int:
    try:
        return _entered(at, name, os.O_RDONLY | _DIRECTORY, make)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise Unsafe("is not a directory") from error
        raise


def _require_safe(status: os.stat_result, path: Path, trusted_users: set[int]) -> None:
    if status.st_uid not in trusted_users:
        raise Unsafe(f"is in {path}, which belongs to another user")
    # With the sticky bit, as on /tmp, only an entry's owner can rename or remove it.
    if status.st_mode & stat.S_ISVTX:
        return
    if status.st_mode & stat.S_IWOTH:
        raise Unsafe(f"is in {path}, which other users may change")
    if status.st_mode & stat.S_IWGRP and status.st_gid != os.getegid():
        raise Unsafe(f"is in {path}, which another group may change")


def _require_private(status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise Unsafe("belongs to another user")
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise Unsafe("is open to other users; chmod 700 it")


def _require_private_file(status: os.stat_result, name: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise Unsafe(f"{name} is not a regular file")
    if _DESCRIBED and (status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o022):
        raise Unsafe(f"{name} may be changed by other users")
