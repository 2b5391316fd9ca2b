"""The gamma distribution, and distributions built on gamma numbers.

A gamma number is drawn by rejection: each element has its own key and keeps the first accepted
proposal, so its value does not depend on its neighbours, though all elements loop until the last
one is done. Its derivative with respect to the parameter holds the distribution function fixed,
which rejection does not affect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import rune.numpy as rnp
from rune import ops
from rune.array import Array
from rune.control import while_loop
from rune.core.types import Shape
from rune.dims import product
from rune.errors import ShapeError
from rune.random.inverses import exponential
from rune.random.keys import Key, single_key, split
from rune.random.normals import standard_normal
from rune.random.sampler import Sampler, floating, in_dtype, real_arguments, shape_for, shape_of, with_static
from rune.random.special import gamma_log_derivative
from rune.random.uniforms import rademacher, unit_interval
from rune.transforms.batching.vmap import vmap
from rune.transforms.custom.jvp import custom_jvp
from rune.typing import ArrayLike, DTypeLike

SQUEEZE = 0.0331  # the constant of Marsaglia & Tsang's squeeze test
THIRD = 1 / 3


# --- rejection --------------------------------------------------------------------------------


def _each(keys: Key, count: int) -> tuple[Key, ...]:
    """`count` new keys for every key, as `count` arrays of keys."""
    return vmap(lambda key: tuple(split(key, count)))(keys)


class _Proposing(NamedTuple):
    """Normal numbers x, and where 1 + c x is positive."""

    keys: Key
    x: Array
    is_done: Array


def _proposals(keys: Key, c: Array, is_done: Array) -> tuple[Array, Array]:
    """Normal numbers x with 1 + c x > 0, and that value; any number for finished elements."""

    def step(s: _Proposing) -> _Proposing:
        next_keys, draw_keys = _each(s.keys, 2)
        number = vmap(lambda key: standard_normal(key, (), c.dtype))(draw_keys)
        x = rnp.where(s.is_done, s.x, number)
        return _Proposing(next_keys, x, ~(1.0 + x * c <= 0.0))  # so that NaN ends the loop

    first = _Proposing(keys, rnp.zeros_like(c), is_done)
    x = while_loop(lambda s: rnp.any(~s.is_done), step, first).x
    return x, 1.0 + x * c


class _Trying(NamedTuple):
    """The number v accepted for each element, and which elements are done."""

    keys: Key
    v: Array
    is_done: Array


def _cubes(keys: Key, d: Array) -> Array:
    """v such that d v is a gamma number of parameter d + 1/3, which is at least 1.

    Source: Marsaglia & Tsang 2000, ACM Transactions on Mathematical Software 26(3).
    """
    c = THIRD / rnp.sqrt(d)

    def step(s: _Trying) -> _Trying:
        next_keys, first, second = _each(s.keys, 3)
        x, root = _proposals(first, c, s.is_done)
        square, v, u = x * x, root * root * root, _units(second, d.dtype)
        is_outside = u >= 1.0 - SQUEEZE * (square * square)
        is_over = rnp.log(u) >= square * 0.5 + d * (1.0 - v + rnp.log(v))
        is_done = s.is_done | ~(is_outside & is_over)
        return _Trying(next_keys, rnp.where(s.is_done, s.v, v), is_done)

    first = _Trying(keys, rnp.ones_like(d), rnp.zeros(d.shape, bool))
    return while_loop(lambda s: rnp.any(~s.is_done), step, first).v


def _units(keys: Key, dtype: np.dtype) -> Array:
    """A number in [0, 1) for every key."""
    return vmap(lambda key: unit_interval(key, (), dtype))(keys)


def _of_large(keys: Key, a: Array) -> tuple[Array, Array, Key]:
    """d and v, where d v is a gamma number of a, or of a + 1 if a < 1; and unused keys."""
    d = rnp.where(a >= 1.0, a, a + 1.0) - THIRD
    cube_keys, last = _each(keys, 2)
    return d, _cubes(cube_keys, d), last


# --- numbers with their derivative ------------------------------------------------------------


@custom_jvp
def _many(keys: Key, a: Array) -> Array:
    """A gamma number for every key and parameter."""
    d, v, last = _of_large(keys, a)
    factor = rnp.power(1.0 - _units(last, a.dtype), 1.0 / a)
    return d * v * rnp.where(a >= 1.0, 1.0, factor)


@_many.defjvp
def _many_jvp(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Array, Array]:
    number = _many(*primals)
    # A number that underflows to 0 stays 0 when its parameter changes slightly.
    is_zero = number == 0.0
    slope = gamma_log_derivative(primals[1], rnp.log(rnp.where(is_zero, 1.0, number)))
    return number, tangents[1] * rnp.where(is_zero, 0.0, number * slope)


@custom_jvp
def _many_logs(keys: Key, a: Array) -> Array:
    """The logarithms of gamma numbers, even of those too small for the dtype."""
    d, v, last = _of_large(keys, a)
    log_u = rnp.log1p(-_units(last, a.dtype))
    more = rnp.where((a >= 1.0) | (log_u == 0.0), 0.0, log_u * (1.0 / a))
    return rnp.log(d) + rnp.log(v) + more


@_many_logs.defjvp
def _many_logs_jvp(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Array, Array]:
    log_number = _many_logs(*primals)
    return log_number, tangents[1] * gamma_log_derivative(primals[1], log_number)


def _draw_each(draw: Callable[[Key, Array], Array], key: ArrayLike, a: Array, shape: Shape) -> Array:
    """Numbers of a shape, each from its own key."""
    keys = split(single_key("gamma", key), product(shape))
    return draw(keys, rnp.broadcast_to(a, shape).ravel()).reshape(shape)


def _two_logs(key: ArrayLike, a: Array, b: Array, shape: Shape) -> tuple[Array, Array]:
    """Logarithms of gamma numbers with parameters a and b, drawn in one loop."""
    pair = (rnp.broadcast_to(v, shape) for v in (a, b))
    keys = vmap(lambda k: split(k, product(shape)))(split(single_key("gamma", key)))
    logs = _many_logs(keys.ravel(), rnp.stack(list(pair)).ravel()).reshape(2, *shape)
    return logs[0], logs[1]


@Sampler
def gamma(key: ArrayLike, a: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Density x**(a - 1) exp(-x), up to a factor, for x > 0; mean and variance are a.

    Shapes: a broadcasts to `shape`, which is its own by default.
    Types:  floating, f32 by default.
    The derivative with respect to a holds the distribution function fixed.
    Errors: ArgumentError if an argument is not a key or array; DtypeError for a dtype of another
            kind; ShapeError for parameters that do not broadcast to `shape`.
    Source: Marsaglia & Tsang 2000, ACM Transactions on Mathematical Software 26(3).

    >>> import rune
    >>> rune.random.gamma(rune.random.key(0), 2.0, (2,))
    Array([1.5897877, 1.7599413], f32[2], cpu:0)
    """
    _, shape, (parameter,) = real_arguments("gamma", shape, dtype, a)
    return _draw_each(_many, key, parameter, shape)


@Sampler
def loggamma(key: ArrayLike, a: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Logarithms of gamma numbers, including those that would underflow to 0.

    Shapes: a broadcasts to `shape`, which is its own by default.
    Types:  floating, f32 by default.
    Errors: ArgumentError if an argument is not a key or array; DtypeError for a dtype of another
            kind; ShapeError for parameters that do not broadcast to `shape`.
    Source: Marsaglia & Tsang 2000, ACM Transactions on Mathematical Software 26(3).

    >>> import rune
    >>> rune.random.loggamma(rune.random.key(0), 1e-3, (2,))
    Array([-110.61791,  -95.54807], f32[2], cpu:0)
    """
    _, shape, (parameter,) = real_arguments("loggamma", shape, dtype, a)
    return _draw_each(_many_logs, key, parameter, shape)


# --- distributions built on gamma numbers -----------------------------------------------------


@Sampler
def beta(
    key: ArrayLike, a: ArrayLike, b: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """Density x**(a - 1) (1 - x)**(b - 1), up to a factor, for 0 <= x <= 1.

    Shapes: a and b broadcast to `shape`, which is their own by default.
    Types:  floating, f32 by default.
    Errors: ArgumentError if an argument is not a key or array; DtypeError for a dtype of another
            kind; ShapeError for parameters that do not broadcast to `shape`.
    Source: Marsaglia & Tsang 2000, ACM Transactions on Mathematical Software 26(3).

    >>> import rune
    >>> rune.random.beta(rune.random.key(0), 2.0, 3.0, (2,))
    Array([0.23627362, 0.49045962], f32[2], cpu:0)
    """
    _, shape, (of_first, of_second) = real_arguments("beta", shape, dtype, a, b)
    first, second = _two_logs(key, of_first, of_second, shape)
    largest = ops.stop_gradient(rnp.maximum(first, second))
    x, y = rnp.exp(first - largest), rnp.exp(second - largest)
    return x / (x + y)


@Sampler
def dirichlet(key: ArrayLike, alpha: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Shares that sum to 1: density proportional to the product of x_i**(alpha_i - 1).

    Shapes: alpha [*B, N]; B broadcasts to `shape`, which is B by default -> [*shape, N].
    Types:  floating, f32 by default.
    Errors: ShapeError for alpha of rank 0.
    Source: Marsaglia & Tsang 2000, ACM Transactions on Mathematical Software 26(3).

    >>> import rune, rune.numpy as rnp
    >>> rune.random.dirichlet(rune.random.key(0), rnp.array([1.0, 2.0, 3.0]))
    Array([0.1422856 , 0.40488252, 0.4528318 ], f32[3], cpu:0)
    """
    kind = floating("dirichlet", dtype, alpha)
    params = shape_of("dirichlet", alpha)
    if not params:
        raise ShapeError("dirichlet: cannot draw shares for one number (alpha of rank 0)")
    full_shape = (*shape_for("dirichlet", shape, params[:-1]), params[-1])
    logs = loggamma.core(key, alpha, full_shape, kind)
    largest = ops.stop_gradient(rnp.max(logs, axis=-1, keepdims=True))
    terms = rnp.exp(logs - largest)
    return terms / rnp.sum(terms, axis=-1, keepdims=True)


@Sampler
def chisquare(key: ArrayLike, df: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """The sum of the squares of `df` normal numbers.

    Shapes: df broadcasts to `shape`, which is its own by default.
    Types:  floating, f32 by default.
    Errors: ArgumentError if an argument is not a key or array; DtypeError for a dtype of another
            kind; ShapeError for parameters that do not broadcast to `shape`.
    Source: Marsaglia & Tsang 2000, ACM Transactions on Mathematical Software 26(3).

    >>> import rune
    >>> rune.random.chisquare(rune.random.key(0), 4.0, (2,))
    Array([3.1795757, 3.5198827], f32[2], cpu:0)
    """
    kind, shape, (degrees,) = real_arguments("chisquare", shape, dtype, df)
    return rnp.exp(loggamma.core(key, degrees / 2.0, shape, kind)) * 2.0


@Sampler
def f(
    key: ArrayLike, dfnum: ArrayLike, dfden: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
) -> Array:
    """The ratio of two chi-square numbers, each divided by its degrees of freedom.

    Shapes: the parameters broadcast to `shape`, which is their own by default.
    Types:  floating, f32 by default.
    Errors: ArgumentError if an argument is not a key or array; DtypeError for a dtype of another
            kind; ShapeError for parameters that do not broadcast to `shape`.
    Source: Marsaglia & Tsang 2000, ACM Transactions on Mathematical Software 26(3).

    >>> import rune
    >>> rune.random.f(rune.random.key(0), 4.0, 6.0, (2,))
    Array([2.3246078, 0.30952  ], f32[2], cpu:0)
    """
    _, shape, (num, den) = real_arguments("f", shape, dtype, dfnum, dfden)
    lower, upper = _two_logs(key, den / 2.0, num / 2.0, shape)
    # By the difference of the logarithms: for few degrees of freedom both numbers may be below the
    # smallest float.
    return rnp.exp(upper - lower) * (den / num)


@Sampler
def t(key: ArrayLike, df: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Student's t: a normal number divided by the root of (chi-square / degrees of freedom).

    Shapes: df broadcasts to `shape`, which is its own by default.
    Types:  floating, f32 by default.
    Errors: ArgumentError if an argument is not a key or array; DtypeError for a dtype of another
            kind; ShapeError for parameters that do not broadcast to `shape`.
    Source: Marsaglia & Tsang 2000, ACM Transactions on Mathematical Software 26(3).

    >>> import rune
    >>> rune.random.t(rune.random.key(0), 4.0, (2,))
    Array([ 0.71600133, -2.4174414 ], f32[2], cpu:0)
    """
    kind, shape, (degrees,) = real_arguments("t", shape, dtype, df)
    first, second = split(single_key("t", key))
    half = degrees / 2.0
    # By the logarithm: for few degrees of freedom the number may be below the smallest float.
    log = loggamma.core(second, half, shape, kind)
    return standard_normal(first, shape, kind) * rnp.exp(0.5 * (rnp.log(half) - log))


@Sampler
def generalized_normal(key: ArrayLike, p: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Density exp(-|x|**p), up to a factor; uniform between -1 and 1 for p = inf.

    Shapes: p broadcasts to `shape`. Types: floating, f32 by default.
    Errors: ArgumentError if an argument is not a key or array; DtypeError for a dtype of another
            kind; ShapeError for parameters that do not broadcast to `shape`.
    Source: Marsaglia & Tsang 2000, ACM Transactions on Mathematical Software 26(3).

    >>> import rune
    >>> rune.random.generalized_normal(rune.random.key(0), 3.0, (2,))
    Array([0.89282674, 0.09650235], f32[2], cpu:0)
    """
    kind = floating("generalized_normal", dtype, p)
    # Beyond 1 / eps the density is that of the limit, uniform between -1 and 1, to the last digit.
    power = rnp.minimum(in_dtype("generalized_normal", p, kind), float(1 / rnp.finfo(kind).eps))
    first, second = split(single_key("generalized_normal", key))
    # By the logarithm: for large p many gamma numbers are below the smallest float, but no root.
    log = loggamma.core(first, 1.0 / power, shape, kind)
    return rademacher.core(second, shape, kind) * rnp.exp(log / power)


@with_static("d")
def ball(key: ArrayLike, d: int, p: ArrayLike = 2.0, shape: Shape = (), dtype: DTypeLike | None = None) -> Array:
    """Uniform points in the ball of dimension d in which the p-norm is at most 1.

    Shapes: [*shape, d].
    Types:  floating, f32 by default.
    Source: Barthe, Guédon, Mendelson & Naor 2005, The Annals of Probability 33(2).
    Errors: ArgumentError if an argument is not a key or array; DtypeError for a dtype of another
            kind.

    >>> import rune
    >>> rune.random.ball(rune.random.key(0), 3)
    Array([0.91715974, 0.3927421 , 0.0116535 ], f32[3], cpu:0)
    """
    kind = floating("ball", dtype, p)
    power = in_dtype("ball", p, kind)
    first, second = split(single_key("ball", key))
    g = generalized_normal.core(first, power, (*shape, d), kind)
    e = exponential.core(second, shape, kind)
    size = rnp.abs(g)
    norm = rnp.power(rnp.sum(rnp.power(size, power), axis=-1) + e, 1.0 / power)
    # No norm is below the largest coordinate, but for large p its power may underflow to 0.
    return g / rnp.maximum(norm, rnp.max(size, axis=-1, initial=0.0))[..., None]
