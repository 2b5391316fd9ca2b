"""Atomic replacement of files: a reader finds the old file or the new one, never part of one.

Data are written to a temporary file in the same folder, which is renamed once they are on disk. A
process that is killed leaves `.NAME.XXXXXXXX.partial` behind, which is never read.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

PARTIAL = ".partial"


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which replaces `path` if the block ends without an error."""
    target = Path(os.path.realpath(path))  # a symbolic link stays, and points to the new file
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}{PARTIAL}")
    if not target.parent.is_dir():  # the system's error would name the temporary file
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(target.parent))
    try:
        with open(temporary, "x+b") as file:
            yield file
            file.flush()
            _take_mode(file, target)
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _take_mode(file: BinaryIO, target: Path) -> None:
    """Give a file the permissions of the file that it replaces."""
    if target.exists():
        os.chmod(file.fileno() if os.chmod in os.supports_fd else file.name, stat.S_IMODE(target.stat().st_mode))


def _sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk, where the system supports it."""
    if os.name == "posix":
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
