"""What special functions do with their arguments, and the polynomials they are made of.

`elementwise` accepts arrays, NumPy data and Python numbers: they are promoted to one real dtype and
broadcast to one shape; integers become f32, half types are computed in f32 and rounded once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar, cast, overload

import numpy as np

import rune.numpy as rnp
from rune import dtypes, tree
from rune.array import Array
from rune.core.interpreter import is_evaluating
from rune.errors import ArgumentError, DtypeError, TracerArrayConversionError
from rune.ops.complex_numbers import is_complex
from rune.ops.promote import promoted
from rune.scipy.sequences import from_sequences
from rune.transforms.compile.jit import jit
from rune.transforms.custom.jvp import custom_jvp
from rune.transforms.eval_shape import eval_shape
from rune.typing import ArrayLike, DTypeLike, Nested

Function = TypeVar("Function", bound=Callable[..., Array])
P = ParamSpec("P")
Result = TypeVar("Result")
Table = tuple[Sequence[float], Sequence[float]]
LARGE = 1 << 13  # elements, at which an eager function takes 0.5 to 5 ms, and a compiled one a tenth of that


def reals(name: str, *xs: ArrayLike) -> list[Array]:
    """Arrays of one real dtype and one shape.

    Errors: DtypeError for complex numbers, ShapeError for shapes that do not broadcast.
    """
    arrays = [as_array(x) for x in promoted(name, *xs, kind="inexact")]
    if is_complex(arrays[0]):
        raise DtypeError(f"{name}: cannot take {arrays[0].dtype} (real dtype required)")
    return _of_one_shape(arrays)


def reals_or_complex(name: str, *xs: ArrayLike) -> list[Array]:
    """Arrays of one floating or complex dtype and one shape.

    Errors: ShapeError for shapes that do not broadcast.
    """
    return _of_one_shape([as_array(x) for x in promoted(name, *xs, kind="inexact")])


def _of_one_shape(arrays: list[Array]) -> list[Array]:
    return arrays if len(arrays) == 1 else list(rnp.broadcast_arrays(*arrays))


def widened(x: ArrayLike) -> tuple[Array, DTypeLike]:
    """`x` as a floating array to compute in, half types in f32, and the dtype of the result."""
    x = rnp.asarray(x)
    x = x if rnp.issubdtype(x.dtype, rnp.inexact) else rnp.true_divide(x, 1)
    half = rnp.finfo(x.dtype).bits < 32
    return (rnp.astype(x, rnp.float32) if half else x), x.dtype


def rounded(x: Array, dtype: DTypeLike) -> Array:
    """`x` in the dtype of the result, unchanged if it has that dtype."""
    return x if x.dtype == dtype else rnp.astype(x, dtype)


def as_array(x: ArrayLike) -> Array:
    """An operand as an array; NumPy constants keep their dtype."""
    return rnp.asarray(x, x.dtype) if isinstance(x, np.ndarray | np.generic) else rnp.asarray(x)


def points_of(name: str, function: Callable[[Array], Array], *xs: ArrayLike) -> list[Array]:
    """`reals`, with Python numbers in the precision of the function's values at them.

    Otherwise `quad` and `brentq` with Python numbers would round the points of a function of f64.
    """
    points = reals(name, *xs)
    if not points[0].type.weak:
        return points
    result_dtype = eval_shape(function, points[0]).dtype
    if not rnp.issubdtype(result_dtype, rnp.inexact):
        return points
    wide = rnp.result_type(points[0].dtype, rnp.finfo(result_dtype).dtype)
    return points if wide == points[0].dtype else [rnp.astype(x, wide) for x in points]


def concrete(x: ArrayLike) -> np.ndarray | None:
    """The values of `x`, for checks that a traced value passes; None for a traced value."""
    try:
        return np.asarray(x)
    except TracerArrayConversionError:
        return None


@overload
def elementwise(function: Callable[[Array], Result], name: str | None = None) -> Callable[[ArrayLike], Result]: ...
@overload
def elementwise(
    function: Callable[[Array, Array], Result], name: str | None = None
) -> Callable[[ArrayLike, ArrayLike], Result]: ...
@overload
def elementwise(
    function: Callable[[Array, Array, Array], Result], name: str | None = None
) -> Callable[[ArrayLike, ArrayLike, ArrayLike], Result]: ...
@overload
def elementwise(
    function: Callable[[Array, Array, Array, Array], Result], name: str | None = None
) -> Callable[[ArrayLike, ArrayLike, ArrayLike, ArrayLike], Result]: ...
def elementwise(function: Callable[..., Result], name: str | None = None) -> Callable[..., Result]:
    """A public function of real arrays, from one of arrays of one floating dtype and shape.

    name: the name in messages, if it differs from the function's. For LARGE arrays the function is
    compiled, since each of its many operations would otherwise pass over memory.
    """
    return _public(function, name or function.__name__, reals)


@overload
def continued(
    continuation: Callable[[Array], Array],
) -> Callable[[Callable[[Array], Array]], Callable[[ArrayLike], Array]]: ...
@overload
def continued(
    continuation: Callable[[Array, Array], Array],
) -> Callable[[Callable[[Array, Array], Array]], Callable[[ArrayLike, ArrayLike], Array]]: ...
def continued(continuation: Callable[..., Array]) -> Callable[[Callable[..., Array]], Callable[..., Array]]:
    """As `elementwise`, of complex arrays as well: these go to the continuation of the function."""

    def decorated(function: Callable[..., Array]) -> Callable[..., Array]:
        @functools.wraps(function)
        def either(*operands: Array) -> Array:
            return (continuation if is_complex(operands[0]) else function)(*operands)

        return _public(either, function.__name__, reals_or_complex)

    return decorated


def _public(function: Callable[..., Result], name: str, prepared: Callable[..., list[Array]]) -> Callable[..., Result]:
    def computed(*operands: Array) -> Result:
        dtype = operands[0].dtype
        if rnp.finfo(dtype).bits >= 32:
            return function(*operands)
        out = function(*(rnp.astype(x, rnp.float32) for x in operands))
        return tree.map(lambda x: rnp.astype(x, dtype), out)

    jitted = jit(computed)

    @functools.wraps(function)
    def public(*xs: ArrayLike) -> Result:
        if not xs:
            raise ArgumentError(f"{name}: cannot compute without operands")
        operands = prepared(name, *xs)
        is_long = is_evaluating() and operands[0].size >= LARGE
        return jitted(*operands) if is_long else computed(*operands)

    return public


def with_slopes(*rules: Callable[..., object] | None) -> Callable[[Callable[P, Result]], custom_jvp[P, Result]]:
    """A decorator: a function whose derivative has a formula of its own in each argument.

    rules: rule(tangent, result, *arguments) for each argument; None if the derivative is 0.
    """

    def decorated(function: Callable[P, Result]) -> custom_jvp[P, Result]:
        differentiable = custom_jvp(function)
        differentiable.defjvps(*rules)
        return differentiable

    return decorated


def of_lists(public: Function) -> Function:
    """A function whose operands may be lists and tuples of numbers."""

    @functools.wraps(public)
    def accepting(*xs: Nested) -> Array:
        return public(*from_sequences(*xs))

    return cast(Function, accepting)


def undefined(where: Array, value: Array, argument: Array | None = None) -> Array:
    """`value`, and NaN where it is undefined; the derivative is NaN there too, not a silent 0.

    argument: required if `value` was computed from a number that replaced the argument: no
    cotangent flows back through that number, so NaN reaches the argument through this parameter.
    """
    # A factor, not a select: the cotangent of the side not selected is 0, and 0 times NaN is NaN.
    out = value * rnp.where(where, rnp.nan, 1.0)
    # Elsewhere -0.0 is added, which changes no number, not even 0.0.
    return out if argument is None else out + rnp.where(where, argument, 0.0) * rnp.where(where, rnp.nan, -1.0)


def polynomial(x: Array, coefficients: Sequence[float]) -> Any:
    """The sum of coefficients[i] x**i, by Horner's rule."""
    *lower, total = coefficients
    for c in reversed(lower):
        total = total * x + c
    return total


def leading(coefficients: Sequence[float], of_f32: int, x: Array) -> Sequence[float]:
    """The coefficients of a power series in f64, and the first `of_f32` of them in narrower types.

    In f32 later ones may be denormal numbers, on which some processors spend hundreds of cycles.
    """
    return coefficients if x.dtype == dtypes.f64 else coefficients[:of_f32]


def quotient(x: Array, table: Table) -> Array:
    """The quotient of the two polynomials of a table."""
    above, below = table
    return polynomial(x, above) / polynomial(x, below)


def centred(t: Array, at: tuple[float, float]) -> Array:
    """The variable u of a table, where t = at[0] + at[1] u."""
    return (t - at[0]) / at[1]
