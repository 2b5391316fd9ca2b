"""The current profile: that of a context, or with RUNE_PROFILE=1 that of the whole process.

While no profile is recording, each call here costs only the test of an empty list.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Mapping

from rune.context import innermost, inside
from rune.profiling.events import Kind, current_row, ended, moment
from rune.profiling.profile import Profile

DEBUG = "RUNE_DEBUG"  # environment variable; "profile" prints a profile of the process at its end

gathers: list[Profile] = []  # all profiles that are recording in this process
_process: list[Profile] = []  # the profile of the whole process, if any


def profile_process() -> None:
    """Profile the whole process from now on, and print the profile when it ends."""
    if not _process:
        _process.append(Profile())
        gathers.append(_process[0])
        atexit.register(lambda: print(_process[0], file=sys.stderr))


def is_asked_for(environment: Mapping[str, str]) -> bool:
    """Whether the environment variable RUNE_DEBUG includes "profile"."""
    return "profile" in environment.get(DEBUG, "").split(",")


def current() -> Profile | None:
    """The profile that is recording in this context, else that of the process."""
    return innermost(Profile) or (_process[0] if _process else None)


class gathering:
    """A block in which this profile records; the end of the block completes it."""

    __slots__ = ("block", "profile")

    def __init__(self, profile: Profile):
        self.profile, self.block = profile, within(profile)

    def __enter__(self) -> Profile:
        self.block.__enter__()
        gathers.append(self.profile)
        return self.profile

    def __exit__(self, error: object, value: object, traceback: object) -> None:
        self.block.__exit__(error, value, traceback)
        gathers.remove(self.profile)
        self.profile.end()


def within(profile: Profile | None) -> inside[Profile]:
    """A block, in another thread, that a profile records; None: that no profile records.

    For worker threads: the thread that has the profile calls `current()`, the worker `within`.

    >>> from rune import profiling
    >>> with profiling.within(profiling.current()):
    ...     pass
    """
    return inside(Profile, profile)


class span:
    """A block that the current profile records as an event; without a profile it costs a test.

    kind:    DATA for loading data, COPY between host and device, SPAN for blocks of the user
    details: numbers and texts for the trace file

    >>> from rune import profiling
    >>> with profiling.span("next batch", profiling.Kind.DATA, rows=32):
    ...     pass
    """

    __slots__ = ("begin", "details", "kind", "name", "profile")

    def __init__(self, name: str, kind: Kind, /, **details: object):
        self.name, self.kind, self.details = name, kind, details

    def __enter__(self) -> None:
        self.profile = current() if gathers else None
        if self.profile is not None:
            self.begin = moment()

    def __exit__(self, error: object, value: object, traceback: object) -> None:
        if self.profile is not None:
            self.profile.add_total(ended(self.kind, self.name, self.begin, current_row(), details=self.details))
