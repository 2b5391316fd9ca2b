"""Winners of searches, in memory and on disk: from a kernel on a device to its schedule.

The key is the kernel's text under a common name, the target's description of the device, its driver
and number of cores, and the version of rune. So a kernel that occurs in several programs is
searched once. An entry that is absent, damaged, or names a schedule that the kernel cannot have is
a miss. The key does not include symbolic sizes: a winner is the fastest at the sizes of its search.
"""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from functools import partial

from rune import config
from rune.backends.shared import disk_cache
from rune.backends.shared.bounded import Bounded
from rune.errors import ArgumentError
from rune.lowering.build import Built, build
from rune.lowering.build.schedule import parse
from rune.lowering.codegen.target import Target
from rune.lowering.explain import DEFAULT, STORED
from rune.lowering.kernels import Kernel
from rune.lowering.kernels_text import to_text
from rune.lowering.stages import Stored
from rune.records import dataclass

MOST = 10_000  # winners in memory
_known: Bounded[bytes, Winner | None] = Bounded(MOST)


@dataclass(frozen=True, slots=True)
class Winner:
    """The result of a search. `ratio`: its time over the default's, 1 for the default itself.

    budget: seconds that the search had; infinite if it has tried everything
    note:   the reason why not everything was tried; or nothing
    """

    schedule: str
    ratio: float
    budget: float
    note: str = ""


def key_of(kernel: Kernel, target: Target) -> bytes:
    """The key of a winner."""
    parts = (target.backend, target.language, target.description, target.driver, target.cores, target.vector_bytes)
    return disk_cache.key_of("schedule", to_text(replace(kernel, name="kernel")), *map(str, parts))


def store(kernel: Kernel, target: Target, winner: Winner) -> None:
    """Store a winner, in place of an earlier one."""
    key = key_of(kernel, target)
    _known.pop(key, None)
    _known.keep(key, winner)
    cache = disk_cache.schedules(make=True)
    if cache is not None:
        cache.store(key, _text(winner))


def load(kernel: Kernel, target: Target) -> Winner | None:
    """The winner of an earlier search, here or in another process."""
    cache = disk_cache.schedules(make=False)
    # Most programs have no winners, and need not pay for the key, a digest of the kernel's text.
    if cache is None and not _known:
        return None
    key = key_of(kernel, target)
    winner = _known.get(key)
    if winner is None and cache is not None:
        winner = _parsed(cache.load(key))
        if winner is not None:
            _known.keep(key, winner)
    return winner


def stored(target: Target) -> Stored:
    """The source of schedules under the current settings: winners, or only defaults."""
    return _none if config.current().search == "off" else partial(_built, target)


def forget() -> None:
    """Forget what this process has searched or read; entries on disk stay."""
    _known.clear()


def _none(kernel: Kernel) -> tuple[Built | None, str]:
    return None, DEFAULT


def _built(target: Target, kernel: Kernel) -> tuple[Built | None, str]:
    """The loops of a winner other than the default; None if there is no legal one."""
    winner = load(kernel, target)
    if winner is None:
        return None, DEFAULT
    if winner.ratio >= 1:
        return None, f"{DEFAULT}, a search found none faster{f' ({winner.note})' if winner.note else ''}"
    try:
        schedule = parse(winner.schedule)
        return Built(schedule, build(kernel, schedule, target)), STORED
    except ArgumentError:  # stored by another build of rune with the same version
        return None, DEFAULT


def _text(winner: Winner) -> bytes:
    import json  # saves a millisecond of every first call: few programs have winners

    return json.dumps(asdict(winner)).encode()


def _parsed(text: bytes | None) -> Winner | None:
    """The winner in a text; None if there is none."""
    import json  # likewise

    try:
        winner = Winner(**json.loads(text or b""))
    except (ValueError, TypeError):
        return None
    numbers = winner.ratio, winner.budget
    is_whole = (
        isinstance(winner.schedule, str)
        and isinstance(winner.note, str)
        and all(isinstance(x, float | int) for x in numbers)
    )
    return winner if is_whole and not any(map(math.isnan, numbers)) else None
