"""Ignores floating-point errors like `np.errstate`, in a tenth of its time.

`errstate` builds its settings again for each block, which takes a microsecond, as long as two sums
of ten numbers. NumPy keeps the settings in a context variable, so this module looks up once what
`errstate` stores there, and stores the same value. In a NumPy without such a variable, it changes
the settings by `np.seterr`.

>>> before = ignore()
>>> try:
...     print(np.float32(1) / np.float32(0))
... finally:
...     restore(before)
inf
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from functools import partial

import numpy as np


def _functions() -> tuple[Callable[[], object], Callable[[object], object]]:
    """A function that ignores all errors from now on, and one that restores from its result."""
    outside = copy_context()
    with np.errstate(all="ignore"):
        inside = copy_context()
    differences = [(variable, value) for variable, value in inside.items() if outside.get(variable) is not value]
    if len(differences) != 1:
        return partial(np.seterr, all="ignore"), lambda settings: np.seterr(**settings)  # type: ignore[arg-type]
    ((variable, value),) = differences
    return partial(variable.set, value), variable.reset  # type: ignore[return-value]  # it takes the result of `set`


ignore, restore = _functions()
