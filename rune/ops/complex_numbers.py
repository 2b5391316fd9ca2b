"""Complex numbers and their parts: real, imag, conj, and `complex`, which makes a number of two
parts.

These four are linear over the reals, not over the complex numbers; each carries the transpose of
JAX's convention, in which transposition preserves the inner product Re(sum of a·b), without
conjugation. So the gradient of f: C -> R is ∂f/∂x - i ∂f/∂y, and descent steps along its conjugate.

Every other function of complex numbers is a case of the record of the real function; `parts.py`
computes it from real and imaginary parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rune import dtypes
from rune.core.interpreter import literal, type_of
from rune.core.lower import Parts
from rune.core.primitive import Primitive, Rule
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.ops.family import elementwise, joint_shape, require, same_dtype

if TYPE_CHECKING:
    pass

PART = {dtypes.c64: dtypes.f32, dtypes.c128: dtypes.f64}  # the dtype of a part
WHOLE = {part: pair for pair, part in PART.items()}  # the dtype of a number with two such parts


def real_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of the parts of complex numbers; a real dtype itself."""
    return PART.get(dtype, dtype)


def complex_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of complex numbers with parts of `dtype`; a complex dtype itself."""
    return WHOLE.get(dtype, dtype)


def is_complex(x: object) -> bool:
    """Whether a value or type has a complex dtype."""
    type = x if isinstance(x, ArrayType) else type_of(x)
    return type.dtype in dtypes.COMPLEX


def _part_type(name: str) -> Rule:
    def type_rule(x: ArrayType) -> ArrayType:
        require(name, dtypes.COMPLEX, "complex", x)
        return ArrayType(x.shape, PART[x.dtype], x.weak)

    return type_rule


def _complex_type(x: ArrayType, y: ArrayType) -> ArrayType:
    require("complex", frozenset(WHOLE), "f32 or f64", x, y)
    dtype = WHOLE[same_dtype("complex", x, y)]
    return ArrayType(joint_shape("complex", (x, y)), dtype, x.weak and y.weak)


def _conj_type(x: ArrayType) -> ArrayType:
    require("conj", dtypes.COMPLEX, "complex", x)
    return x


def _complex_reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    # Not x + 1j * y, which turns an infinite part into NaN.
    out = np.empty(np.broadcast_shapes(np.shape(x), np.shape(y)), WHOLE[x.dtype])
    out.real, out.imag = x, y
    return out


def _zero_part(x: Value) -> np.ndarray:
    dtype = type_of(x).dtype
    return literal(0, real_dtype(dtype))


real: Primitive = elementwise(
    "real",
    "complex",
    _part_type("real"),
    lambda x: np.array(x.real),
    (lambda dx, x, y: real(dx),),
    lambda ct, linear, x: [complex(ct, _zero_part(ct))],
    lower=Parts(),
)
imag: Primitive = elementwise(
    "imag",
    "complex",
    _part_type("imag"),
    lambda x: np.array(x.imag),
    (lambda dx, x, y: imag(dx),),
    lambda ct, linear, x: [conj(complex(_zero_part(ct), ct))],
    lower=Parts(),
)
complex: Primitive = elementwise(
    "complex",
    "complex",
    _complex_type,
    _complex_reference,
    (lambda dx, x, y, z: complex(dx, _zero_part(dx)), lambda dy, x, y, z: complex(_zero_part(dy), dy)),
    lambda ct, linear, x, y: [real(ct) if linear[0] else None, imag(conj(ct)) if linear[1] else None],
    lower=Parts(),
)
conj: Primitive = elementwise(
    "conj",
    "complex",
    _conj_type,
    np.conj,
    (lambda dx, x, y: conj(dx),),
    lambda ct, linear, x: [conj(ct)],
    lower=Parts(),
)

PRIMITIVES = (real, imag, complex, conj)
