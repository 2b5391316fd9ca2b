"""Scalar expressions: what a kernel computes at one point. Shared by both kernel languages.

    Expr  := Const | Local | Index | Load | Op | Cast
    Const                 a constant, kept as bits: 0.0 and -0.0 differ, NaN equals itself
    Local   name          a scalar bound by Let, Reduce or Var
    Index   dim           an integer expression over loop variables and integer locals, as i64
    Load    buffer[indices]   `indices` is one Dim per axis in kernels and one flat Dim in kernel
                          code; a symbol in them is a loop variable, a size or an integer Local.
                          With `guard`, memory is read only where the guard holds; elsewhere the
                          value is 0.
    Op      name(args)    a scalar operation of lowering/scalar/table.py
    Cast    arg -> dtype  NumPy's conversions, but float to int saturates and NaN becomes 0

Every node is frozen and knows its dtype. Expressions nest only a few levels: Lets bind the parts of
longer ones, so that no walk needs deep recursion.
"""

from __future__ import annotations

import numpy as np

from rune import dtypes
from rune.dims import Dim, Size
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Const:
    """A constant by its bit pattern (little-endian bytes of the dtype)."""

    # Stored as bits because passes compare nodes by equality: NaN must equal itself, and 0.0 must
    # differ from -0.0.
    bits: bytes
    dtype: np.dtype

    @property
    def value(self) -> np.generic:
        """The constant as a NumPy scalar."""
        return np.frombuffer(self.bits, self.dtype)[0]


@dataclass(frozen=True, slots=True)
class Local:
    """A scalar bound earlier in the kernel."""

    name: str
    dtype: np.dtype

    def __hash__(self) -> int:
        return hash(self.name)  # one name has one dtype


@dataclass(frozen=True, slots=True)
class Index:
    """An index expression as an i64 value."""

    dim: Size
    dtype: np.dtype = dtypes.i64


@dataclass(frozen=True, slots=True)
class Load:
    """One element of a buffer."""

    buffer: str
    indices: tuple[Size, ...]
    dtype: np.dtype
    # A guard is part of the load, so that a padded read needs no branch.
    guard: Expr | None = None


@dataclass(frozen=True, slots=True)
class Op:
    """A scalar operation applied to its arguments."""

    name: str
    args: tuple[Expr, ...]
    dtype: np.dtype


@dataclass(frozen=True, slots=True)
class Cast:
    """A conversion of `arg` to `dtype`."""

    arg: Expr
    dtype: np.dtype


Expr = Const | Local | Index | Load | Op | Cast


def const(value: object, dtype: np.dtype) -> Const:
    """The constant `value` in `dtype`.

    >>> const(0.0, dtypes.f32) == const(-0.0, dtypes.f32)
    False
    """
    return Const(np.asarray(value).astype(dtype).tobytes(), dtype)


def of_size(x: Size) -> Const | Index:
    """A size as an expression of i64."""
    return const(x, dtypes.i64) if isinstance(x, int) else Index(x)


def index(dim: Size) -> Index:
    """`dim` as an i64 value."""
    return Index(dim)


# Indices of a Load are not operands: they are sizes, which rune.dims rewrites.
def operands(expr: Expr) -> tuple[Expr, ...]:
    """The direct sub-expressions."""
    # Tests of exact types cost a third of a match, and every walk calls this for every node.
    if type(expr) is Op:
        return expr.args
    if type(expr) is Cast:
        return (expr.arg,)
    return (expr.guard,) if type(expr) is Load and expr.guard is not None else ()


__all__ = ["Cast", "Const", "Dim", "Expr", "Index", "Load", "Local", "Op", "const", "index", "operands"]
