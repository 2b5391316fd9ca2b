"""The state of rune's own source: what compiled programs on disk hold to, beside the version.

Code that is made of a whole program depends on every pass, so that an edited file must not meet
what it made before. Names, sizes and times of the files are compared: of the rooms that compile,
and of the files at the top, since these rooms import no others.
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
    listed = [*_files(_PACKAGE, is_whole=False)]
    for room in _ROOMS:
        listed += _files(os.path.join(_PACKAGE, room), is_whole=True)
    return "\n".join(listed)


def _files(folder: str, *, is_whole: bool) -> Iterator[str]:
    """The files of a folder, and of those within it if it is taken whole."""
    with os.scandir(folder) as entries:
        listed = sorted(entries, key=lambda entry: entry.name)
    for entry in listed:
        if entry.name.endswith(".py"):
            status = entry.stat()
            yield f"{entry.name} {status.st_size} {status.st_mtime_ns}"
        elif is_whole and entry.is_dir() and entry.name != "__pycache__":
            yield entry.name
            yield from _files(entry.path, is_whole=True)
