"""What is done leaf by leaf: magnitudes, dtypes that stay, and leaves that are refused.

A state has the dtypes of its parameters whatever those of the gradients, so that a step may be the
body of a loop. The square of a complex number is that of its magnitude, and real.
"""

from __future__ import annotations

from typing import Any

import rune.numpy as rnp
from rune import tree
from rune.array import Array
from rune.core.interpreter import type_of
from rune.errors import DtypeError

Tree = Any


def filled(params: Tree, value: float) -> Tree:
    """A tree like the parameters, of one number."""
    return tree.map(lambda p: rnp.full_like(p, value), params)


def filled_real(params: Tree, value: float) -> Tree:
    """`filled`, of real numbers where the parameters are complex."""
    return tree.map(lambda p: rnp.full_like(rnp.real(p), value), params)


def square_of(x: Array) -> Array:
    """|x|², real."""
    if not rnp.iscomplexobj(x):
        return x * x
    real, imag = rnp.real(x), rnp.imag(x)
    return real * real + imag * imag


def in_dtypes(name: str, new: Tree, old: Tree) -> Tree:
    """`new` in the dtypes of `old`. Errors: DtypeError for complex numbers where real ones were."""

    def leaf(a: Array, b: Array) -> Array:
        dtype = b.dtype if hasattr(b, "dtype") else rnp.result_type(b)
        if rnp.iscomplexobj(a) and not rnp.issubdtype(dtype, rnp.complexfloating):
            path = next(path for path, x in tree.leaves_with_path(new) if x is a)
            raise _refused(name, path, a, "a real parameter")
        return rnp.astype(a, dtype)

    return tree.map(leaf, new, old)


def real_leaves(name: str, values: Tree) -> Tree:
    """`values`. Errors: DtypeError for a complex leaf, of an optimizer that compares numbers."""
    for path, leaf in tree.leaves_with_path(values):
        if rnp.iscomplexobj(leaf):
            raise _refused(name, path, leaf, "real numbers required")
    return values


def _refused(name: str, path: Any, leaf: object, why: str) -> DtypeError:
    place = tree.keystr(path)
    return DtypeError(f"{name}: cannot take {type_of(leaf)}{place and ' at ' + place} ({why})")
