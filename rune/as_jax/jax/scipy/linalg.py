"""`jax.scipy.linalg`."""

from __future__ import annotations

from rune import absent
from rune.array import Array
from rune.scipy import linalg
from rune.scipy.linalg import *  # pyright: ignore[reportAssignmentType]
from rune.typing import ArrayLike

__getattr__ = absent.of(__name__)


def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """As rune's, with the order of JAX's arguments; `debug` has no effect, as in JAX."""
    return linalg.solve(a, b, lower, overwrite_a, overwrite_b, check_finite, assume_a)


def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: bool | None = None,
    check_finite: bool = True,
) -> Array:
    """As rune's, with the order of JAX's arguments; `debug` has no effect, as in JAX."""
    return linalg.solve_triangular(a, b, trans, lower, unit_diagonal, overwrite_b, check_finite)
