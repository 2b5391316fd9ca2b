"""rune.test_util: compares derivatives with central differences, in one random direction.

A difference in one direction costs two calls of the function whatever its size, so checking large
functions is as fast as small ones: J v is compared with (f(x + h v) - f(x - h v)) / 2h, and for
reverse mode vᵀ J w with the same. A wrong derivative passes by chance with probability 0. NumPy
computes the sums, so that the code under test does not check itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rune import dtypes, tree
from rune.array import as_array
from rune.core.interpreter import type_of
from rune.errors import ArgumentError
from rune.listing import names as _names
from rune.transforms.derivatives.directional import jvp, linearize
from rune.transforms.derivatives.vjp import vjp

__all__ = ["check_grads", "check_jvp", "check_vjp"]

# From trees of numbers to trees of numbers.
Function = Callable[..., Any]
Tolerance = float | Mapping[Any, float] | None
_STEP = 1e-4
_TOLERANCES = {2: 1e-2, 4: 2e-3, 8: 1e-5}  # for one element, by the bytes of a real number
_MODES = ("fwd", "rev", "lin")


def check_grads(
    f: Function,
    args: Sequence[object],
    order: int,
    modes: str | Sequence[str] = ("fwd", "rev"),
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float | None = None,
) -> None:
    """Raise AssertionError unless the derivatives of `f` at `args` match its differences.

    f:      a function of trees of floating arrays; at order 1 the trees may also contain integers,
            which are not differentiated
    order:  1 for derivatives, 2 for second derivatives as well, and so on
    modes:  some of "fwd" (jvp), "rev" (vjp) and "lin" (linearize); each is used at every order
    atol, rtol: tolerance for one element, a number or one for each dtype; by default 0.002 in
            float32, 1e-5 in float64. It grows with the length of the result.
    eps:    the step of the differences, 1e-4, which is too small for some functions in float32
    Errors: AssertionError; ArgumentError for another mode; those of `f`.

    >>> import rune, rune.numpy as rnp
    >>> rune.test_util.check_grads(lambda x: rnp.sin(x) * x, (1.5,), order=2)
    >>> wrong = rune.custom_jvp(rnp.sin)
    >>> wrong.defjvps(lambda dx, y, x: dx)
    >>> rune.test_util.check_grads(wrong, (1.5,), order=1)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    AssertionError: ...
    """
    mode_names = (modes,) if isinstance(modes, str) else tuple(modes)
    unknown = [m for m in mode_names if m not in _MODES]
    if unknown:
        raise ArgumentError(f"check_grads: cannot check in mode {unknown[0]!r} ({', '.join(_MODES)})")
    _check_order(f, tuple(args), order, mode_names, _Limits(atol, rtol, eps or _STEP), "")


class _Limits(NamedTuple):
    atol: Tolerance
    rtol: Tolerance
    eps: float


def _check_order(
    f: Function, args: tuple[object, ...], order: int, modes: tuple[str, ...], limits: _Limits, of: str
) -> None:
    """Check the derivatives of `f`, and recursively those of each derivative."""
    for mode in modes:
        name = f"{_NAMES[mode]} of {of}" if of else _NAMES[mode]
        if mode == "rev":
            check_vjp(f, partial(vjp, f), args, *limits, name)
            derivative, arguments = _pulled_back(f), args
        else:
            derivative = partial(jvp, f) if mode == "fwd" else partial(_by_linearize, f)
            check_jvp(f, derivative, args, *limits, name)
            arguments = (args, args)
        if order > 1:
            _check_order(derivative, arguments, order - 1, modes, limits, name)


_NAMES = {"fwd": "jvp", "rev": "vjp", "lin": "linearize"}


def _pulled_back(f: Function) -> Function:
    """The function that pulls the values of `f` back, as if they were cotangents."""

    def pulled(*args: object) -> object:
        value, pull = vjp(f, *args)
        return pull(value)

    return pulled


def _by_linearize(f: Function, primals: Sequence[object], tangents: Sequence[object]) -> tuple[object, object]:
    value, linear = linearize(f, *primals)
    return value, linear(*tangents)


def check_jvp(
    f: Function,
    f_jvp: Callable[..., tuple[object, object]],
    args: Sequence[object],
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float = _STEP,
    err_msg: str = "",
) -> None:
    """Raise AssertionError unless f_jvp(args, tangents) is (f(*args), its tangent).

    f_jvp:  such as `partial(rune.jvp, f)`
    Other arguments and errors: as for `check_grads`.

    >>> import rune, rune.numpy as rnp
    >>> from functools import partial
    >>> rune.test_util.check_jvp(rnp.sin, partial(rune.jvp, rnp.sin), (rnp.ones(3),))
    """
    args = _canonical(args)
    tangents = _random(args, np.random.RandomState(0))
    value, tangent = f_jvp(args, tangents)
    _require_close(value, f(*args), atol, rtol, f"{err_msg} value")
    _require_close(tangent, _difference(f, args, tangents, eps), atol, rtol, f"{err_msg} tangent")


def check_vjp(
    f: Function,
    f_vjp: Callable[..., tuple[object, Callable[[object], object]]],
    args: Sequence[object],
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float = _STEP,
    err_msg: str = "",
) -> None:
    """Raise AssertionError unless f_vjp(*args) is (f(*args), the map of its cotangents).

    f_vjp:  such as `partial(rune.vjp, f)`
    Other arguments and errors: as for `check_grads`.

    >>> import rune, rune.numpy as rnp
    >>> from functools import partial
    >>> rune.test_util.check_vjp(rnp.sin, partial(rune.vjp, rnp.sin), (rnp.ones(3),))
    """
    args, random = _canonical(args), np.random.RandomState(0)
    value, pull = f_vjp(*args)
    _require_close(value, f(*args), atol, rtol, f"{err_msg} value")
    tangents, cotangent = _random(args, random), _random(value, random)
    # The inner product conjugates its first operand, but the transposed map does not conjugate.
    cotangents = tree.map(_conjugate, pull(tree.map(_conjugate, cotangent)))
    actual = _inner(tangents, cotangents)
    reference = _inner(_difference(f, args, tangents, eps), cotangent)
    _require_close(actual, reference, atol, rtol, f"{err_msg} cotangent")


# --- numbers ------------------------------------------------------------------------------------


def _canonical(args: Sequence[object]) -> tuple[object, ...]:
    """The arguments, with NumPy data converted to arrays as functions see them: f64 as f32."""
    return tree.map(lambda x: as_array(x) if isinstance(x, np.ndarray | np.generic) else x, tuple(args))


def _random(values: object, random: np.random.RandomState) -> object:
    """A tree of this structure with normally distributed numbers; float0 for integers."""
    return tree.map(lambda x: _like(_normal(type_of(x).dtype, np.shape(x), random), x), values)


def _normal(dtype: np.dtype, shape: tuple[int, ...], random: np.random.RandomState) -> np.ndarray:
    if dtype not in dtypes.INEXACT:
        return np.zeros(shape, dtypes.float0)
    numbers = np.asarray(random.randn(*shape))
    if dtype in dtypes.COMPLEX:
        numbers = numbers + 1j * np.asarray(random.randn(*shape))
    return numbers.astype(dtype)


def _numbers(x: object) -> np.ndarray:
    """The elements as a NumPy array; a Python number takes the dtype that rune gives it."""
    return np.asarray(x, type_of(x).dtype if isinstance(x, int | float | complex) else None)


def _like(numbers: np.ndarray, x: object) -> object:
    """A Python number if `x` is one, else an array of exactly this dtype, even with 64 bits."""
    if isinstance(x, int | float | complex):
        return numbers.item() if numbers.dtype != dtypes.float0 else numbers
    return numbers if numbers.dtype == dtypes.float0 else as_array(numbers, numbers.dtype)


def _difference(f: Function, args: object, tangents: object, eps: float) -> object:
    """The central difference of `f` along the tangents."""
    forward, backward = (f(*tree.map(partial(_along, step), args, tangents)) for step in (eps, -eps))
    return tree.map(partial(_quotient, eps), forward, backward)


def _along(step: float, x: object, dx: object) -> object:
    direction = _numbers(dx)
    if direction.dtype == dtypes.float0:
        return x
    dtype = direction.dtype
    return _like((np.asarray(x, dtype) + np.asarray(step, dtype) * direction).astype(dtype), x)


def _quotient(eps: float, forward: object, backward: object) -> np.ndarray:
    a, b = _numbers(forward), _numbers(backward)
    if a.dtype not in dtypes.INEXACT:
        return np.zeros(a.shape, dtypes.float0)
    with np.errstate(invalid="ignore"):
        # Equal infinities change by 0, but would subtract to NaN.
        change = np.where(a == b, np.zeros_like(a), a - b)
    return (change * np.asarray(0.5 / eps, a.dtype)).astype(a.dtype)


def _conjugate(x: object) -> object:
    numbers = _numbers(x)
    return _like(np.conj(numbers), x) if numbers.dtype in dtypes.COMPLEX else x


def _inner(xs: object, ys: object) -> np.ndarray:
    """The real part of the inner product of two trees."""
    pairs = zip(map(_numbers, tree.leaves(xs)), map(_numbers, tree.leaves(ys)), strict=True)
    products = [np.real(np.vdot(x, y)) for x, y in pairs if y.dtype != dtypes.float0]
    return np.asarray(sum(products[1:], start=products[0])) if products else np.zeros(())


def _require_close(actual: object, reference: object, atol: Tolerance, rtol: Tolerance, label: str) -> None:
    for (path, x), (_, y) in zip(tree.leaves_with_path(actual), tree.leaves_with_path(reference), strict=True):
        a, b = _numbers(x), _numbers(y)
        name = f"{label.strip()}{tree.keystr(path)}"
        assert a.shape == b.shape, f"{name}: shapes {a.shape} and {b.shape}"
        if b.dtype not in dtypes.INEXACT:
            assert (a == b).all(), name
            continue
        assert a.dtype == b.dtype, f"{name}: dtypes {a.dtype} and {b.dtype}"
        relative, absolute = (_tolerance(a.dtype, limit) * a.size for limit in (rtol, atol))
        # NumPy has no comparison of its own for 16-bit types such as bf16.
        wide = np.result_type(a.dtype, np.float32) if a.dtype.kind in "fc" else np.dtype(np.float32)
        np.testing.assert_allclose(a.astype(wide), b.astype(wide), relative, absolute, err_msg=name)


def _tolerance(dtype: np.dtype, limit: Tolerance) -> float:
    if limit is not None and not isinstance(limit, Mapping):
        return limit
    by_dtype = {np.dtype(k): v for k, v in (limit or {}).items()}
    real = dtype.itemsize // (2 if dtype in dtypes.COMPLEX else 1)
    return by_dtype.get(dtype, _TOLERANCES.get(real, 1e-1))


__dir__ = _names(globals())
