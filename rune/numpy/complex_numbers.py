"""Complex numbers: parts, conjugates, angles, and tests. Real arrays are accepted too.

Complex numbers have no order, so comparisons and extrema refuse them. Sorting compares real parts
first.
"""

from __future__ import annotations

import math

import numpy as np

from rune import dtypes, ops
from rune.array import Array
from rune.core.interpreter import type_of
from rune.numpy.arguments import default_inexact, type_like, value
from rune.numpy.operands import operands_alone
from rune.numpy.types import finfo
from rune.ops import conventions as c
from rune.ops import statistics as st
from rune.ops.complex_numbers import is_complex
from rune.ops.nested import joined
from rune.ops.promote import constant
from rune.transforms.compile.tiers import tiered
from rune.typing import ArrayLike, Nested


def real(val: ArrayLike, /) -> Array:
    """The real part; a real array is returned unchanged.

    Shapes: any, unchanged. Types: that of `val`; complex numbers give reals.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> rnp.real(rnp.array([1 + 2j, 3j]))
    Array([1., 0.], f32[2], cpu:0)
    """
    return c.distinct(c.real(value("real", val)), val)


def imag(val: ArrayLike, /) -> Array:
    """The imaginary part; zeros for a real array.

    Shapes: any, unchanged. Types: that of `val`; complex numbers give reals.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> rnp.imag(rnp.array([1 + 2j, 3j]))
    Array([2., 3.], f32[2], cpu:0)
    """
    return c.imag(value("imag", val))


@operands_alone
def conj(x: ArrayLike, /) -> Array:
    """The complex conjugate; a real array is returned unchanged.

    Shapes: any, unchanged. Types: that of `x`.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> rnp.conj(rnp.array([1 + 2j]))
    Array([1.-2.j], c64[1], cpu:0)
    """
    return c.distinct(c.conj(value("conj", x)), x)


conjugate = conj


@tiered
def angle(z: ArrayLike, deg: bool = False) -> Array:
    """The angle from the positive real axis, in [-π, π]; in degrees if `deg`.

    Shapes: any, unchanged. Types: bools and integers become floats; complex numbers give reals.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> rnp.angle(rnp.array([1j, -1.0]), deg=True)
    Array([ 90., 180.], f32[2], cpu:0)
    """
    z = default_inexact("angle", value("angle", z))
    radians = ops.atan2(c.imag(z), c.real(z))
    return ops.mul(radians, constant(180 / math.pi, radians)) if deg else radians


@tiered
def iscomplex(x: ArrayLike) -> Array:
    """Where the imaginary part is not zero.

    Shapes: any, unchanged. Types: bool.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> rnp.iscomplex(rnp.array([1j, 1.0]))
    Array([ True, False], bool[2], cpu:0)
    """
    part = imag(x)
    return ops.ne(part, constant(0, part))


@tiered
def isreal(x: ArrayLike) -> Array:
    """Where the imaginary part is zero.

    Shapes: any, unchanged. Types: bool.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> rnp.isreal(rnp.array([1j, 1.0]))
    Array([False,  True], bool[2], cpu:0)
    """
    return ops.logical_not(iscomplex(x))


def iscomplexobj(x: Nested) -> bool:
    """Whether the dtype is complex, whatever the values.

    Shapes: any -> a Python bool.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> rnp.iscomplexobj(rnp.array([1 + 0j])), rnp.iscomplexobj(1.0)
    (True, False)
    """
    dtype = getattr(x, "dtype", None)  # accepts dtype classes as well
    return (
        dtype if isinstance(dtype, np.dtype) else type_like("iscomplexobj", joined("iscomplexobj", x)).dtype
    ) in dtypes.COMPLEX


def isrealobj(x: Nested) -> bool:
    """Whether the dtype is not complex.

    Shapes: any -> a Python bool.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> rnp.isrealobj(rnp.ones(2))
    True
    """
    return not iscomplexobj(x)


def real_if_close(a: ArrayLike, tol: float = 100) -> Array:
    """The real part if every imaginary part is within `tol` steps of 0 (an absolute bound if < 1).

    Shapes: any, unchanged. Types: that of `a`, or of its real parts.
    Errors: TracerBoolConversionError for a traced array: the dtype would depend on data.

    >>> import rune.numpy as rnp
    >>> rnp.real_if_close(rnp.array([2.1 + 4e-8j]))
    Array([2.1], f32[1], cpu:0)
    """
    x = value("real_if_close", a)
    if not is_complex(x):
        return c.distinct(x, a)
    part = ops.abs(ops.imag(x))
    bound = tol * float(finfo(type_of(part).dtype).eps) if tol > 1 else tol
    return ops.real(x) if bool(st.all(ops.lt(part, constant(bound, part)))) else x


__all__ = ["angle", "conj", "conjugate", "imag", "iscomplex", "iscomplexobj", "isreal", "isrealobj", "real"]
__all__ += ["real_if_close"]
