"""Arguments of functions in rune.nn: floating arrays, and records of parameters."""

from __future__ import annotations

from typing import Any

import rune.numpy as rnp
from rune.errors import ArgumentError, DtypeError
from rune.typing import ArrayLike


def real(x: object) -> Any:
    """`x` as a floating array; integers as f32, Python scalars stay weak."""
    x = rnp.asarray(x)
    if rnp.issubdtype(x.dtype, rnp.floating):
        return x
    # Beside a weak 1, an array of bools would become one of weak numbers.
    return rnp.true_divide(x, 1 if x.weak_type else x.dtype.type(1))


def ordered(name: str, x: ArrayLike) -> ArrayLike:
    """`x`, if its elements can be ordered. Errors: DtypeError for complex numbers."""
    if rnp.iscomplexobj(x):
        raise DtypeError(f"{name}: cannot take {rnp.asarray(x).type} (real numbers required)")
    return x


def record(name: str, value: object, kind: type) -> Any:
    """`value`, checked to be a record of this class.

    Errors: ArgumentError for anything else.
    """
    if not isinstance(value, kind):
        raise ArgumentError(
            f"{name}: cannot take {type(value).__name__} ({kind.__name__} required)",
            hint=f"rune.nn.{kind.__name__} has the fields {', '.join(kind.__annotations__)}",
        )
    return value
