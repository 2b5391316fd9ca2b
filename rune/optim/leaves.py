"""Leaf-by-leaf functions: magnitudes, dtypes that stay, and leaves that are refused.

A state has the dtypes of its parameters, whatever those of the gradients are, so that a step can be
the body of a loop. The square of a complex number is that of its magnitude, and real.
"""

from __future__ import annotations

from typing import Any, TypeVar

import rune.numpy as rnp
from rune import tree
from rune.array import Array
from rune.core.interpreter import type_of
from rune.errors import ArgumentError, DtypeError
from rune.typing import ArrayLike

Tree = Any  # of arrays, in any containers
T = TypeVar("T")  # a tree, where the result is like it


def zeros(params: T) -> T:
    """A tree like the parameters, of zeros."""
    return tree.map(rnp.zeros_like, params)


def real_filled(params: T, value: float) -> T:
    """A tree like the parameters, filled with one number; real where they are complex."""
    return tree.map(lambda p: rnp.full_like(rnp.real(p), value), params)


def scaled(grads: T, rate: ArrayLike) -> T:
    """Every leaf times a number or rank-0 array, in its own dtype."""
    return tree.map(lambda g: rnp.astype(rnp.multiply(g, rate), rnp.result_type(g)), grads)


def square_of(x: Array) -> Array:
    """|x|², real."""
    if not rnp.iscomplexobj(x):
        return x * x
    real, imag = rnp.real(x), rnp.imag(x)
    return real * real + imag * imag


def same_shape(name: str, old: Array, new: Array) -> Array:
    """`old`. Errors: ArgumentError unless both have the same shape."""
    if rnp.shape(old) != rnp.shape(new):
        raise ArgumentError(
            f"{name}: cannot update {rnp.shape(old)} with {rnp.shape(new)} (one shape required)",
            hint="the state or the copy belongs to other parameters",
        )
    return old


def in_dtypes(name: str, new: Tree, old: T) -> T:
    """`new` in the dtypes of `old`. Errors: DtypeError for complex numbers in place of real
    ones.
    """

    def leaf(a: Array, b: Array) -> Array:
        dtype = rnp.result_type(b)
        if rnp.iscomplexobj(a) and not rnp.issubdtype(dtype, rnp.complexfloating):
            path = next(path for path, x in tree.leaves_with_path(new) if x is a)
            raise _refused(name, path, a, "a real parameter")
        return rnp.astype(a, dtype)

    return tree.map(leaf, new, old)


def real_leaves(name: str, values: T) -> T:
    """`values`. Errors: DtypeError for a complex leaf, since the caller compares numbers."""
    for path, leaf in tree.leaves_with_path(values):
        if rnp.iscomplexobj(leaf):
            raise _refused(name, path, leaf, "real numbers required")
    return values


def _refused(name: str, path: tree.KeyPath, leaf: Array, why: str) -> DtypeError:
    place = tree.keystr(path)
    return DtypeError(f"{name}: cannot take {type_of(leaf)}{place and ' at ' + place} ({why})")
