"""The profile in force: of a context, or of the whole process with RUNE_PROFILE=1.

Nothing here costs more than a test of an empty list while no profile gathers.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Mapping

from rune.context import innermost, inside
from rune.profiling.events import Kind, ended, here, moment
from rune.profiling.profile import Profile

DEBUG = "RUNE_DEBUG"  # environment variable: "profile" profiles the process, printed at its end

gathers: list[Profile] = []  # all profiles that gather in the process; empty, there is nothing to record
_process: list[Profile] = []  # one, or none


def profile_process() -> None:
    """Gather for the whole process from now on, and print what was gathered at its end."""
    if not _process:
        _process.append(Profile())
        gathers.append(_process[0])
        atexit.register(lambda: print(_process[0], file=sys.stderr))


def is_asked_for(environment: Mapping[str, str]) -> bool:
    """Whether RUNE_DEBUG=profile is in the environment."""
    return "profile" in environment.get(DEBUG, "").split(",")


def current() -> Profile | None:
    """The profile that gathers in this context, or in the process."""
    return innermost(Profile) or (_process[0] if _process else None)


class gathering:
    """Inside the block, this profile gathers; at its end it is complete."""

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
    """Inside the block, in another thread, a profile records what is done; None: no profile does.

    For threads that work for the one that asked for the profile: `current()` there, `within` here.

    >>> from rune import profiling
    >>> with profiling.within(profiling.current()):
    ...     pass
    """
    return inside(Profile, profile)


class span:
    """A block that took time, for the profile in force; without one it costs a test.

    kind:    what it is: DATA for loading, COPY between host and device, SPAN for the user's
    details: numbers and texts that the trace file shows with it

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
            self.profile.add_total(ended(self.kind, self.name, self.begin, here(), details=self.details))
