"""What watched programs have found, as errors; rune/lowering/watch.py has how they are made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from rune import config
from rune.array import Array
from rune.errors import BoundsError, Frame, NaNError, at_line


def is_watching() -> bool:
    """Whether programs are watched."""
    settings = config.current()
    return settings.watch_bounds or settings.watch_nans


def without_faults(sites: Sequence[Any], outs: Sequence[Array]) -> list[Array]:
    """The results proper. Errors: BoundsError or NaNError for the first fault found."""
    *results, site, found = outs
    number = int(np.asarray(site))
    if number:
        _raise(sites[number - 1], int(np.asarray(found)))
    return results


def _raise(site: Any, found: int) -> NoReturn:
    frame: Frame | None = site.frame
    with at_line(frame):
        if site.axis is None:
            shape = tuple(d for d in site.type.shape if isinstance(d, int))
            whole = len(shape) == site.type.ndim
            where = list(map(int, np.unravel_index(found, shape))) if whole else found
            raise NaNError(
                f"{site.operation}: made a NaN in its result {site.type} (first at {where})"
            )
        raise BoundsError(
            f"{site.operation}: found index {found} out of bounds "
            f"(axis {site.axis} of {site.type})",
            hint="without checks it is clamped when read, and dropped when written",
        )
