"""Calls at corners of JAX's conventions: rules, dtypes under x64, NumPy scalars."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

XS = np.array([1.0, 2.0, 3.0], np.float32)
NS = np.array([0.5, -1.0, 2.0], np.float32)
NUMBERS = (3, 2.5, np.int8(-3), np.uint8(7), np.int32(3), np.int64(3), np.float16(2.5), np.float32(2.5), np.float64(4))
DTYPES = ("bool", "int8", "int32", "float16", "float32")

# --- rules of one's own ---------------------------------------------------------------------------


def _scaled(jax: Any) -> Any:
    """n x² with a rule that is ten times its derivative; n is not differentiated."""

    @partial(jax.custom_jvp, nondiff_argnums=(0,))
    def scaled(n: Any, x: Any) -> Any:
        return x**2 * n["by"]

    @scaled.defjvp
    def _(n: Any, primals: Any, tangents: Any) -> Any:
        return scaled(n, *primals), 20 * primals[0] * n["by"] * tangents[0]

    return scaled


def _beside_lanes(jax: Any) -> Any:
    """Derivatives of lanes, each with another number that is not differentiated."""
    scale = _scaled(jax)

    def total(x: Any) -> Any:
        return jax.vmap(lambda n, v: scale({"by": n}, v))(NS, x).sum()

    def pairs(x: Any) -> Any:
        return jax.vmap(jax.vmap(lambda n, v: scale({"by": n}, v), (None, 0)), (0, None))(NS, x).sum()

    inside = jax.vmap(jax.grad(lambda n, v: scale({"by": n}, v), 1))(NS, XS)
    return jax.grad(total)(XS), jax.jit(jax.grad(total))(XS), jax.grad(pairs)(XS), jax.hessian(total)(XS), inside


def _unread_tangents(jax: Any) -> Any:
    """Forward mode through a rule for cotangents alone, where nothing reads the tangent."""

    @jax.custom_vjp
    def sine(x: Any) -> Any:
        return jax.numpy.sin(x)

    sine.defvjp(lambda x: (sine(x), x), lambda x, ct: (2 * ct,))

    def scan(x: Any) -> Any:
        return jax.lax.scan(lambda c, _: (2 * c, sine(c)), x, length=3)[0]

    def hidden(x: Any) -> Any:
        return x + jax.lax.stop_gradient(sine(x)) + jax.numpy.where(sine(x) > 0.5, x, 0)

    calls = (
        lambda x: jax.jvp(sine, (x,), (x,))[0],
        lambda x: jax.jvp(jax.jit(sine), (x,), (x,))[0],
        lambda x: jax.jvp(jax.checkpoint(sine), (x,), (x,))[0],
        lambda x: jax.jvp(lambda v: jax.lax.cond(v > 0, sine, lambda w: w, v), (x,), (x,))[0],
        lambda x: jax.jvp(hidden, (x,), (x,)),
        lambda x: jax.jvp(scan, (x,), (x,)),
        lambda x: jax.linearize(sine, x)[0],
    )
    return [jax.jit(call)(np.float32(1.25)) for call in calls]


# --- dtypes ---------------------------------------------------------------------------------------


def _wide(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same under x64."""

    def under_x64(jax: Any) -> Any:
        with jax.enable_x64(True):
            return call(jax)

    return under_x64


def _joined(answers: Iterable[Any]) -> Any:
    """Many small answers in three arrays: the numbers, the size of each answer, and dtypes."""
    arrays = [*map(np.asarray, answers)]
    numbers = np.concatenate([x.astype(np.float64).ravel() for x in arrays])
    return numbers, np.array([x.size for x in arrays]), np.array([x.dtype.num for x in arrays])


def _counted(jax: Any) -> Any:
    """arange of every pair of numbers that does not wrap, and of every step."""
    arange = jax.numpy.arange
    by_one = [arange(a, b) for a, b in itertools.product(NUMBERS, NUMBERS) if a <= b]
    by_step = [arange(1, a, b) for a, b in itertools.product(NUMBERS, NUMBERS) if b > 0]
    return _joined([*map(arange, (*NUMBERS, np.array(3, np.int16), jax.numpy.int8(4))), *by_one, *by_step])


def _connected(jax: Any) -> Any:
    """interp of every three dtypes, with a period too."""
    ask, points, values = np.array([0, 1]), np.array([0, 1]), np.array([0, 3])
    return _joined(
        jax.numpy.interp(ask.astype(a), points.astype(b), values.astype(c), period=period)
        for a, b, c in itertools.product(DTYPES, DTYPES, DTYPES)
        for period in (None, np.float32(2))
    )


def _normal(jax: Any) -> Any:
    norm, q = jax.scipy.stats.norm, np.array([0.0, 0.25, 0.7, 1.0], np.float32)
    functions = (norm.ppf, norm.isf, norm.cdf, norm.logcdf, norm.pdf, norm.logpdf, norm.sf, norm.logsf)
    return [f(q) for f in functions] + [norm.ppf(q, np.float32(1), np.float32(2)), norm.isf(0.25, scale=2)]


def _solved(jax: Any) -> Any:
    a, b = np.array([[1, 0], [1, 1]]), np.array([1, 0])
    dtypes = [d for d in DTYPES if d != "float16"]
    linear = (jax.numpy.linalg.solve, jax.scipy.linalg.solve)
    return _joined(f(a.astype(d), b.astype(e)) for f in linear for d, e in itertools.product(dtypes, dtypes))


def _folded(jax: Any) -> Any:
    """fold_in of numbers that are not integers."""
    key = jax.random.PRNGKey(3)
    data = (2.5, 2.0, True, np.float32(2.5), np.float32(5e8), np.float16(-2.5), np.int64(-3), np.bool_(True))
    return [jax.random.fold_in(key, x) for x in (*data, jax.numpy.float32(7.75), jax.numpy.array(False))]


_TYPED: dict[str, Callable[[Any], Any]] = {
    "numpy.arange": _counted,
    "numpy.interp": _connected,
    "stats.norm": _normal,
    "linalg.solve": _solved,
}
CORNERS: dict[str, Callable[[Any], Any]] = {
    "custom_jvp beside lanes": _beside_lanes,
    "custom_vjp and unread tangents": _unread_tangents,
    "random.fold_in": _folded,
    **_TYPED,
    **{f"{name} under x64": _wide(call) for name, call in _TYPED.items()},
}
