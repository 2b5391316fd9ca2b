"""The arrays that are alive."""

from __future__ import annotations

import gc

from rune.array import Array
from rune.backends import platform_name


def live_arrays(platform: str | None = None) -> list[Array]:
    """The arrays of this process that hold memory, those of one backend if it is named.

    Cost:   a walk over all objects that Python's collector knows.
    Errors: none.

    >>> import rune, rune.numpy as rnp
    >>> x = rnp.ones((2, 3))
    >>> any(y is x for y in rune.live_arrays("cpu"))
    True
    """
    alive = [x for x in gc.get_objects() if type(x) is Array and not x.is_deleted()]
    wanted = platform_name(platform)
    return alive if wanted is None else [x for x in alive if x.device.target.backend == wanted]
