"""The floating arrays that functions of rune.nn compute on."""

from __future__ import annotations

from typing import Any

import rune.numpy as rnp


def real(x: Any) -> Any:
    """`x` as a floating array; integers as f32, Python scalars stay weak."""
    x = rnp.asarray(x)
    return x if rnp.issubdtype(x.dtype, rnp.floating) else rnp.true_divide(x, 1)
