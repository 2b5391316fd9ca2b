"""How deep transformations may stand inside one another.

Each uses some of Python's frames: while it is traced, and when its program is walked. Python's
limit is meant for the user's frames, so it is raised by the number that rune needs. A function
that transforms itself without end meets rune's own limit.
"""

from __future__ import annotations

import sys

from rune.errors import DepthError

DEEPEST = 300
FLAT = 8  # needs no room
FRAMES = 20  # of rune's own for one transformation, at most
_room = [0, 0]  # the user's limit, and the limit that was last set here


def make_room(depth: int) -> None:
    """Raise Python's recursion limit for so many transformations inside one another.

    Errors: DepthError.
    """
    if depth > DEEPEST:
        raise DepthError(
            f"trace: cannot nest transformations {depth} deep ({DEEPEST} is the most)",
            hint="does a function that is transformed call itself without end?",
        )
    limit = sys.getrecursionlimit()
    if limit != _room[1]:
        _room[0] = limit
    if limit < _room[0] + FRAMES * depth:
        _room[1] = _room[0] + FRAMES * depth
        sys.setrecursionlimit(_room[1])
