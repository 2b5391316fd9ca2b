"""solve, det, slogdet: one call of LAPACK on the CPU, the factors of `lu` elsewhere.

solve [*B, N, N], [*B, N, K] -> [*B, N, K]      det [*B, N, N] -> [*B]
slogdet [*B, N, N] -> sign [*B], logarithm of the absolute value [*B], real

Each is one equation until it is lowered or differentiated. Then it becomes `lu` and `linear_solve`,
so that a solution and its tangent share one factorisation.

Reference:  LAPACK through NumPy, f32 and c64 solved in their own dtype. NumPy refuses a singular
            matrix; here the answers are NaN for solve, 0 for det, and sign 0 with -inf for
            slogdet. The determinant in f64 is the product of `lu`'s pivots: LAPACK's is computed
            from its logarithm, with fewer correct digits.
Expansion:  through the factors; it is also faster on the CPU if a routine computes these, and up
            to FEW rows.
Source:     Golub & Van Loan 4e, §3.4; derivatives: Giles 2008, §2.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rune import dtypes
from rune.core.interpreter import type_of
from rune.core.lower import Library, lanes_of_matrices
from rune.core.primitive import Primitive
from rune.core.types import ArrayType
from rune.core.values import Operand, Value
from rune.ops.arithmetic import abs, add, cast, mul, ne, neg, rem, sign, sub
from rune.ops.complex_numbers import real_dtype
from rune.ops.creation import iota, stop_gradient
from rune.ops.family import Batched, reduce_sum
from rune.ops.linalg.dense import is_dense
from rune.ops.linalg.lapack import determinants, signs_and_logarithms, solve_in_lapack
from rune.ops.linalg.lu import lu
from rune.ops.linalg.lu_numpy import factored
from rune.ops.linalg.small import fits_cache
from rune.ops.linalg.solve import linear_solve
from rune.ops.linalg.triangular import require_right_side
from rune.ops.matrix_helpers import batch_leading, diagonal, matmul, real_part, require_matrices, require_square
from rune.ops.reduction import reduce_prod
from rune.ops.transcendental import log

if TYPE_CHECKING:
    from rune.array import Array

FEW = 32  # rows up to which the compiled expansion is faster on the CPU (measured)
Rules = tuple[list[Any], list[Any]]


def solve(a: Value, b: Value) -> Array:
    """X with A X = B. Shapes: [*B, N, N], [*B, N, K] -> [*B, N, K]."""
    return matrix_solve(a, b)[0]


def det(a: Operand) -> Array:
    """The determinant. Shapes: [*B, N, N] -> [*B]."""
    return matrix_det(a)[0]


def _pays(a: ArrayType, *others: ArrayType) -> bool:
    """Whether LAPACK is faster on the CPU than the compiled expansion."""
    rows = a.shape[-1]
    return not isinstance(rows, int) or (rows > FEW and not _is_factored_by_routine(a, *others))


def _is_factored_by_routine(a: ArrayType, *sides: ArrayType) -> bool:
    return is_dense("lu", a) and (not sides or is_dense("triangular_solve", a, *sides))


def _each(a: ArrayType, dtype: np.dtype) -> ArrayType:
    """The type of one number for each matrix."""
    return ArrayType(a.shape[:-2], dtype)


# --- solve ------------------------------------------------------------------------------------


def _solve_type(a: ArrayType, b: ArrayType) -> tuple[ArrayType]:
    require_matrices("solve", a, b)
    require_square("solve", a)
    require_right_side("solve", a, b)
    return (b.strong(),)


def _solve_expand(a: Value, b: Value) -> list[Array]:
    factors, _, order = lu(stop_gradient(a))
    return [linear_solve(a, factors, order, b, transposed=False)]


def _solve_jvp(primals: Sequence[Value], tangents: Sequence[Value | None], params: Mapping[str, object]) -> Rules:
    (a, b), (da, db) = primals, tangents
    factors, _, order = lu(stop_gradient(a))
    x = linear_solve(a, factors, order, b, transposed=False)
    change = db if da is None else neg(matmul(da, x))
    if da is not None and db is not None:
        change = add(db, change)
    return [x], [linear_solve(a, factors, order, change, transposed=False)]


def _solve_transpose(ct: Sequence[Value], linear: Batched, a: Value, b: Value) -> list[Array | None]:
    factors, _, order = lu(stop_gradient(a))
    return [None, linear_solve(a, factors, order, ct[0], transposed=True)]


matrix_solve: Primitive = Primitive(
    "solve",
    "linalg",
    _solve_type,
    lambda a, b: [solve_in_lapack(a, b)],
    batch=batch_leading(lambda: matrix_solve),
    multiple_results=True,
    jvp_equation=_solve_jvp,
    transpose=_solve_transpose,
    linear_in=((1,),),
    lower=Library(lanes_of_matrices, _pays, columns=1),
    expand=_solve_expand,
)


# --- determinants -----------------------------------------------------------------------------


def sign_of(pivots: Value, dtype: np.dtype) -> Array:
    """1 for an even number of exchanges, -1 for an odd number. i32[*B, K] -> [*B]."""
    shape = type_of(pivots).shape
    position = iota(shape=shape, axis=len(shape) - 1, dtype=dtypes.i32)
    exchanges = cast(ne(pivots, position), dtypes.i32)
    odd = rem(reduce_sum(exchanges, axes=(len(shape) - 1,)), np.int32(2))
    return cast(sub(np.int32(1), mul(np.int32(2), odd)), dtype)


def _det_type(a: ArrayType) -> tuple[ArrayType]:
    require_matrices("det", a)
    require_square("det", a)
    return (_each(a, a.dtype),)


def _det_reference(a: np.ndarray) -> list[np.ndarray]:
    if a.dtype in (np.float32, np.complex64):  # NumPy computes them in f64
        return [determinants(a)]
    factors, pivots, _ = factored(a)
    odd = np.count_nonzero(pivots != np.arange(a.shape[-1]), axis=-1) % 2
    pivot_product = np.diagonal(factors, axis1=-2, axis2=-1).prod(-1)
    return [np.asarray(pivot_product * (1 - 2 * odd)).astype(a.dtype, copy=False)]


def _det_pays(a: ArrayType) -> bool:
    if a.dtype in (dtypes.f32, dtypes.c64):
        return _pays(a)
    return not fits_cache(a) and not _is_factored_by_routine(a)


def _det_expand(a: Value) -> list[Array]:
    factors, pivots, _ = lu(a)
    pivot_product = reduce_prod(diagonal(factors), axes=(type_of(a).ndim - 2,))
    return [mul(sign_of(pivots, type_of(a).dtype), pivot_product)]


def _trace_of_solution(a: Value, da: Value) -> Array:
    """tr(A⁻¹ A')."""
    factors, _, order = lu(stop_gradient(a))
    solution = linear_solve(a, factors, order, da, transposed=False)
    return reduce_sum(diagonal(solution), axes=(type_of(a).ndim - 2,))


def _det_jvp(primals: Sequence[Value], tangents: Sequence[Value], params: Mapping[str, object]) -> Rules:
    """For regular matrices; `rune.numpy.linalg.det` has a derivative for all matrices."""
    (a,), (da,) = primals, tangents
    determinant = det(a)
    return [determinant], [mul(determinant, _trace_of_solution(a, da))]


matrix_det: Primitive = Primitive(
    "det",
    "linalg",
    _det_type,
    _det_reference,
    batch=batch_leading(lambda: matrix_det),
    multiple_results=True,
    jvp_equation=_det_jvp,
    lower=Library(lanes_of_matrices, _det_pays),
    expand=_det_expand,
)


def _slogdet_type(a: ArrayType) -> tuple[ArrayType, ArrayType]:
    require_matrices("slogdet", a)
    require_square("slogdet", a)
    return _each(a, a.dtype), _each(a, real_dtype(a.dtype))


def _slogdet_expand(a: Value) -> list[Array]:
    factors, pivots, _ = lu(a)
    d, axes = diagonal(factors), (type_of(a).ndim - 2,)
    signs = mul(sign_of(pivots, type_of(a).dtype), reduce_prod(sign(d), axes=axes))
    return [signs, reduce_sum(log(abs(d)), axes=axes)]


def _slogdet_jvp(primals: Sequence[Value], tangents: Sequence[Value], params: Mapping[str, object]) -> Rules:
    """The sign of a real determinant has derivative zero."""
    (a,), (da,) = primals, tangents
    signs, logs = slogdet(a)
    change = _trace_of_solution(a, da)
    if type_of(a).dtype not in dtypes.COMPLEX:
        return [signs, logs], [None, change]
    along = real_part(change)
    turn = sub(change, cast(along, type_of(change).dtype))
    return [signs, logs], [mul(signs, turn), along]


slogdet: Primitive = Primitive(
    "slogdet",
    "linalg",
    _slogdet_type,
    signs_and_logarithms,
    batch=batch_leading(lambda: slogdet),
    multiple_results=True,
    jvp_equation=_slogdet_jvp,
    lower=Library(lanes_of_matrices, _pays),
    expand=_slogdet_expand,
)
