"""Files that are replaced atomically: a reader finds the old one or the new one, never a part.

What is written goes to a file beside it, and takes its place by one rename when the disk has it.
A process that is killed leaves `.NAME.XXXXXXXX.partial` behind, which is never read.
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
    """A file to write to, which takes the place of `path` when the block ends without an error."""
    target = Path(os.path.realpath(path))  # a link stays, and leads to the new file
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}{PARTIAL}")
    if not target.parent.is_dir():  # the system would name the temporary file
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
    """Let a file be readable for those who could read the one whose place it takes."""
    if target.exists():
        os.chmod(file.fileno() if os.chmod in os.supports_fd else file.name, stat.S_IMODE(target.stat().st_mode))


def _sync_folder(folder: Path) -> None:
    """Wait until the disk has the names of a folder, where systems can be asked to."""
    if os.name == "posix":
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
