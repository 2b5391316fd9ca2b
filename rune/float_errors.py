"""Floating-point errors ignored: what `np.errstate` does, in a tenth of its time.

`errstate` describes its settings anew for each block, which takes a microsecond, as long as two
sums of ten numbers. NumPy keeps the description in a variable of the context. What `errstate` puts
there is looked up once, and put there again; where it puts nothing, settings are changed by
`np.seterr`.

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
    """What ignores all errors from now on, and what restores, from its answer, what was before."""
    outside = copy_context()
    with np.errstate(all="ignore"):
        inside = copy_context()
    changed = [(variable, value) for variable, value in inside.items() if outside.get(variable) is not value]
    if len(changed) != 1:
        return partial(np.seterr, all="ignore"), lambda settings: np.seterr(**settings)  # type: ignore[arg-type]
    ((variable, value),) = changed
    return partial(variable.set, value), variable.reset  # type: ignore[return-value]  # it takes what `set` gives


ignore, restore = _functions()
