"""The depth to which transformations may be nested.

Each uses some of Python's frames: while it is traced, and when its program is walked. Python's
recursion limit is meant for the user's frames, so it is raised by the number that rune needs. A
function that transforms itself without end reaches rune's own limit.
"""

from __future__ import annotations

import sys

from rune.errors import DepthError

DEEPEST = 300
FLAT = 8  # up to this depth Python's limit is not raised
FRAMES = 20  # rune's own frames for one transformation, at most
_limits = [0, 0]  # the user's limit, and the limit that was last set here


def make_room(depth: int) -> None:
    """Raise Python's recursion limit for transformations nested to this depth.

    Errors: DepthError.
    """
    if depth > DEEPEST:
        raise DepthError(
            f"trace: cannot nest transformations {depth} deep ({DEEPEST} is the most)",
            hint="does a function that is transformed call itself without end?",
        )
    # Any limit that was not set here is a new one of the user's.
    limit = sys.getrecursionlimit()
    if limit != _limits[1]:
        _limits[0] = limit
    if limit < _limits[0] + FRAMES * depth:
        _limits[1] = _limits[0] + FRAMES * depth
        sys.setrecursionlimit(_limits[1])
