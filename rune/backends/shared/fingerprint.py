"""A fingerprint of rune's own source, which is part of the key of compiled programs on disk.

The code of a whole program depends on every pass, so an edited pass must not find code that its
older version made. The fingerprint has the names, sizes and times of the files in the rooms that
compile, and of those in the top folder: these rooms import no others.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_ROOMS = ("core", "ops", "lowering", "backends/cpu", "backends/shared")


@functools.cache
def fingerprint() -> str:
    """A line for each file."""
    lines = [*_files(_PACKAGE, is_whole=False)]
    for room in _ROOMS:
        lines += _files(os.path.join(_PACKAGE, room), is_whole=True)
    return "\n".join(lines)


def _files(folder: str, *, is_whole: bool) -> Iterator[str]:
    """A line for each file of a folder; is_whole: of its inner folders too."""
    with os.scandir(folder) as entries:
        entries_by_name = sorted(entries, key=lambda entry: entry.name)
    for entry in entries_by_name:
        if entry.name.endswith(".py"):
            status = entry.stat()
            # Not the contents, because every process computes this before its first program.
            yield f"{entry.name} {status.st_size} {status.st_mtime_ns}"
        elif is_whole and entry.is_dir() and entry.name != "__pycache__":
            yield entry.name
            yield from _files(entry.path, is_whole=True)
