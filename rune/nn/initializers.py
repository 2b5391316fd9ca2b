"""Initial values of parameters, under JAX's names.

An initializer is a function of a key, a shape and a dtype that returns an array; without a key it
draws one from `with rune.random.seed(…)`. `he_normal()` and similar functions make initializers;
`zeros` and `ones` are initializers themselves. The numbers are JAX's, within the rounding of normal
numbers. All but `uniform` and `truncated_normal` support complex dtypes: `variance_scaling` then
truncates normal numbers by magnitude, and draws uniform numbers from a disc.
"""

from __future__ import annotations

import math
import typing as _typing
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

import rune.numpy as rnp
from rune import dtypes, ops, random
from rune.absent import of as _absent
from rune.array import Array
from rune.core.types import Shape
from rune.errors import ArgumentError
from rune.listing import names as _names
from rune.numpy.arguments import laid_out
from rune.ops.complex_numbers import PART
from rune.random.keys import split, static_shape
from rune.random.sampler import floating
from rune.random.streams import take_key
from rune.records import dataclass
from rune.sharding.shardings import Sharding
from rune.transforms.arguments import required_number
from rune.typing import ArrayLike, DTypeLike

Axes = int | Sequence[int]
Mode = Literal["fan_in", "fan_out", "fan_avg", "fan_geo_avg"]
Distribution = Literal["truncated_normal", "normal", "uniform"]

TRUNCATED_STD = 0.87962566103423978  # the standard deviation of a normal number within -2…2
TRUNCATED_COMPLEX_STD = 0.95311164380491208  # and of a complex one of magnitude at most 2


@dataclass(frozen=True, slots=True)
class Initializer:
    """Initial values of a parameter, by default in `dtype`.

    Shapes: any, `shape` when it is called.
    Types:  floating or complex; any dtype where nothing is drawn; f32 by default.
    Errors: ArgumentError, when it is called, if `key` is not a key or `shape` is not a shape.

    >>> import rune, rune.nn as nn
    >>> init = nn.initializers.he_normal()
    >>> init(rune.random.key(0), (256, 3)).shape
    (256, 3)
    """

    draw: Callable[[Any, Shape, np.dtype], Any]  # key, shape, dtype
    name: str
    dtype: Any = None
    needs_key: bool = True

    def __call__(
        self,
        key: Any = None,
        shape: object = (),
        dtype: DTypeLike | None = None,
        out_sharding: Sharding | None = None,
        *,
        name: str | None = None,
    ) -> Array:
        """The array; names and `out_sharding` as for samplers. Errors: ShapeError, DtypeError."""
        requested_dtype = self.dtype if dtype is None else dtype
        explicit = None if requested_dtype is None else dtypes.as_dtype(requested_dtype)
        # Values that are not drawn may be integers.
        kind = explicit if explicit is not None and not self.needs_key else _inexact(self.name, explicit)
        draw_key = take_key(self.name, key, name) if self.needs_key else key
        return laid_out(self.draw(draw_key, static_shape(self.name, shape), kind), out_sharding)

    def __repr__(self) -> str:
        return f"<initializer {self.name}>"


def _inexact(name: str, dtype: np.dtype | None) -> np.dtype:
    return dtype if dtype is not None and dtype in PART else floating(name, dtype)


# --- the same number everywhere ---------------------------------------------------------------


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """Every element is `value`, which may also be an array that broadcasts to the shape.

    Shapes: any, `shape` when it is called, to which `value` broadcasts.
    Types:  floating or complex; dtype, f32 without one.
    Errors: ArgumentError, when it is called, if an argument is not a key; ShapeError if `shape` is
            not a shape.

    >>> import rune.nn as nn
    >>> nn.initializers.constant(2.0)(shape=(2,))
    Array([2., 2.], f32[2], cpu:0)
    """

    def draw(key: Array, shape: Shape, kind: np.dtype) -> Array:
        return rnp.full(shape, value, kind)

    return Initializer(draw, "constant", dtype, needs_key=False)


zeros = Initializer(lambda key, shape, kind: rnp.zeros(shape, kind), "zeros", needs_key=False)
ones = Initializer(lambda key, shape, kind: rnp.ones(shape, kind), "ones", needs_key=False)


# --- one distribution -------------------------------------------------------------------------


def uniform(scale: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Uniform numbers in [0, scale).

    Shapes: any, `shape` when it is called. Types: floating; dtype, f32 without one.
    Errors: ArgumentError, when it is called, if an argument is not a key; ShapeError if `shape` is
            not a shape.

    >>> import rune, rune.nn as nn, rune.numpy as rnp
    >>> drawn = nn.initializers.uniform(2.0)(rune.random.key(0), (1000,))
    >>> bool(rnp.all((drawn >= 0) & (drawn < 2)))
    True
    """

    def draw(key: Array, shape: Shape, kind: np.dtype) -> Any:
        return random.uniform(key, shape, kind) * rnp.asarray(scale, kind)

    return Initializer(draw, "uniform", dtype)


def normal(stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Normal numbers of standard deviation `stddev`.

    Shapes: any, `shape` when it is called. Types: floating or complex; dtype, f32 without one.
    Errors: ArgumentError, when it is called, if an argument is not a key; ShapeError if `shape` is
            not a shape.

    >>> import rune, rune.nn as nn, rune.numpy as rnp
    >>> drawn = nn.initializers.normal(2.0)(rune.random.key(0), (10_000,))
    >>> rnp.round(rnp.std(drawn), 1)
    Array(2., f32[], cpu:0)
    """

    def draw(key: Array, shape: Shape, kind: np.dtype) -> Any:
        return random.normal(key, shape, kind) * rnp.asarray(stddev, kind)

    return Initializer(draw, "normal", dtype)


def truncated_normal(
    stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None, lower: ArrayLike = -2.0, upper: ArrayLike = 2.0
) -> Initializer:
    """Normal numbers within lower…upper, times `stddev`.

    Shapes: any, `shape` when it is called. Types: floating; dtype, f32 without one.
    Errors: ArgumentError, when it is called, if an argument is not a key; ShapeError if `shape` is
            not a shape.

    >>> import rune, rune.nn as nn, rune.numpy as rnp
    >>> drawn = nn.initializers.truncated_normal(1.0)(rune.random.key(0), (1000,))
    >>> bool(rnp.all(rnp.abs(drawn) <= 2))
    True
    """

    if isinstance(lower, int | float) and isinstance(upper, int | float) and lower >= upper:
        raise ArgumentError(f"truncated_normal: cannot draw within {lower}…{upper}")

    def draw(key: Array, shape: Shape, kind: np.dtype) -> Any:
        sample = random.truncated_normal(key, lower, upper, shape, kind)
        return sample * rnp.asarray(stddev, kind)

    return Initializer(draw, "truncated_normal", dtype)


# --- scaled by the shape ----------------------------------------------------------------------


def variance_scaling(
    scale: Any,
    mode: Mode,
    distribution: Distribution,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axis: Axes = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """Random numbers with variance scale / n, where `mode` selects n.

    mode:   "fan_in" or "fan_out", the number of inputs or outputs of a unit; "fan_avg" or
            "fan_geo_avg", the arithmetic or geometric mean of both.
    in_axis, out_axis, batch_axis:  the axes of a weight over which units are counted; all others
            belong to the receptive field.
    Shapes: any with these axes. Types: floating or complex; dtype, f32 without one.
    Errors: ArgumentError for an unknown mode or distribution, or a shape without these axes.
    Source: He et al. 2015, arXiv:1502.01852; Glorot & Bengio 2010, AISTATS.

    >>> import rune, rune.nn as nn
    >>> init = nn.initializers.variance_scaling(1.0, "fan_avg", "uniform")
    >>> init(rune.random.key(0), (2, 2))
    Array([[ 1.0965558 ,  1.1722765 ],
           [-0.4108003 , -0.07674628]], f32[2,2], cpu:0)
    """
    if mode not in FANS or distribution not in DISTRIBUTIONS:
        raise ArgumentError(
            f"variance_scaling: cannot use {mode!r} with {distribution!r} "
            f"(one of {', '.join(FANS)}, with one of {', '.join(DISTRIBUTIONS)})"
        )

    required_number("variance_scaling", "scale", scale, 0)

    def draw(key: ArrayLike, shape: Shape, kind: np.dtype) -> Array:
        count = FANS[mode](*fans(shape, in_axis, out_axis, batch_axis))
        return DISTRIBUTIONS[distribution](key, shape, kind, rnp.asarray(scale / count if count else 0.0, kind))

    return Initializer(draw, "variance_scaling", dtype)


FANS: dict[str, Callable[[float, float], float]] = {
    "fan_in": lambda fan_in, fan_out: fan_in,
    "fan_out": lambda fan_in, fan_out: fan_out,
    "fan_avg": lambda fan_in, fan_out: (fan_in + fan_out) / 2,
    "fan_geo_avg": lambda fan_in, fan_out: math.sqrt(fan_in * fan_out),
}


def _truncated(key: ArrayLike, shape: Shape, dtype: np.dtype, variance: ArrayLike) -> Array:
    if dtype in PART:
        stddev = rnp.sqrt(variance) / rnp.asarray(TRUNCATED_COMPLEX_STD, dtype)
        return _polar(key, shape, PART[dtype], _truncated_magnitude) * stddev
    stddev = rnp.sqrt(variance) / rnp.asarray(TRUNCATED_STD, dtype)
    return random.truncated_normal(key, -2.0, 2.0, shape, dtype) * stddev


def _uniform(key: Array, shape: Shape, dtype: np.dtype, variance: Array) -> Array:
    if dtype in PART:
        disc = _polar(key, shape, PART[dtype], lambda u: rnp.sqrt(2 * u))
        return disc * rnp.sqrt(variance)
    return random.uniform(key, shape, dtype, -1.0) * rnp.sqrt(3 * variance)


def _polar(key: ArrayLike, shape: Shape, part: np.dtype, magnitude: Callable[[Array], Array]) -> Array:
    """Complex numbers of random magnitude and uniformly distributed direction."""
    first, second = split(key)
    radius = magnitude(random.uniform(first, shape, part))
    angle = 2 * math.pi * random.uniform(second, shape, part)
    return ops.complex(radius * rnp.cos(angle), radius * rnp.sin(angle))


def _truncated_magnitude(u: Array) -> Array:
    """The magnitude of a complex normal number, at most 2."""
    return rnp.sqrt(-rnp.log1p(math.expm1(-(2**2)) * u))


DISTRIBUTIONS: dict[str, Callable[..., Array]] = {
    "truncated_normal": _truncated,
    "normal": lambda key, shape, dtype, variance: random.normal(key, shape, dtype) * rnp.sqrt(variance),
    "uniform": _uniform,
}


def fans(shape: Shape, in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = ()) -> tuple[float, float]:
    """The number of inputs and of outputs of a unit of a weight; 0 and 0 if it has no elements.

    Errors: ArgumentError for a shape without these axes.
    """
    try:
        ins, outs, batch = (_product(shape, axes) for axes in (in_axis, out_axis, batch_axis))
    except IndexError:
        raise ArgumentError(
            f"fans: cannot count the inputs and outputs of shape {shape} (axes {in_axis} and {out_axis})",
            hint="a weight has at least two axes, unless in_axis and out_axis say otherwise",
        ) from None
    field = math.prod(shape) / (ins * outs * batch) if 0 not in shape else 0  # type: ignore[arg-type]
    return ins * field, outs * field


def _product(shape: Shape, axes: Axes) -> int:
    axis_numbers = (axes,) if isinstance(axes, int) else axes
    return math.prod(shape[a] for a in axis_numbers)  # type: ignore[misc]


def _scaled(name: str, scale: float, mode: Mode, distribution: Distribution) -> Callable[..., Initializer]:
    def make(
        in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: DTypeLike | None = None
    ) -> Initializer:
        scaling = variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)
        return Initializer(scaling.draw, name, dtype)

    make.__name__ = name
    make.__doc__ = f"""variance_scaling({scale}, {mode!r}, {distribution!r}).

    Shapes: any of two axes or more. Types: dtype, f32 without one. Errors: as `variance_scaling`.

    >>> import rune, rune.nn as nn
    >>> nn.initializers.{name}()(rune.random.key(0), (256, 3)).shape
    (256, 3)
    """
    return make


glorot_uniform = xavier_uniform = _scaled("glorot_uniform", 1.0, "fan_avg", "uniform")
glorot_normal = xavier_normal = _scaled("glorot_normal", 1.0, "fan_avg", "truncated_normal")
lecun_uniform = _scaled("lecun_uniform", 1.0, "fan_in", "uniform")
lecun_normal = _scaled("lecun_normal", 1.0, "fan_in", "truncated_normal")
he_uniform = kaiming_uniform = _scaled("he_uniform", 2.0, "fan_in", "uniform")
he_normal = kaiming_normal = _scaled("he_normal", 2.0, "fan_in", "truncated_normal")


# --- orthogonal -------------------------------------------------------------------------------


def orthogonal(scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None) -> Initializer:
    """Orthonormal columns along `column_axis`, times scale; rows where there are more columns.

    Shapes: any of two axes or more. Types: floating or complex; dtype, f32 without one.
    Errors: ArgumentError for a shape with less than two axes.
    Source: Saxe et al. 2013, arXiv:1312.6120; uniformly distributed, Mezzadri 2007,
    arXiv:math-ph/0609050.

    >>> import rune, rune.nn as nn, rune.numpy as rnp
    >>> q = nn.initializers.orthogonal()(rune.random.key(0), (3, 3))
    >>> bool(rnp.allclose(q @ q.T, rnp.eye(3), atol=1e-6))
    True
    """

    def draw(key: ArrayLike, shape: Shape, kind: np.dtype) -> Array:
        return _orthogonal(key, shape, kind, column_axis) * rnp.asarray(scale, kind)

    return Initializer(draw, "orthogonal", dtype)


def _orthogonal(key: ArrayLike, shape: Shape, kind: np.dtype, column_axis: int) -> Array:
    if len(shape) < 2:
        raise ArgumentError(f"orthogonal: cannot make an array of shape {shape} (two axes or more)")
    if not -len(shape) <= column_axis < len(shape):
        raise ArgumentError(f"orthogonal: cannot find axis {column_axis} in shape {shape}")
    columns = shape[column_axis]
    others = [size for axis, size in enumerate(shape) if axis != column_axis % len(shape)]
    rows = math.prod(others)  # type: ignore[arg-type]
    tall = (rows, columns) if rows > columns else (columns, rows)
    q, r = rnp.linalg.qr(random.normal(key, tall, kind))
    # With the signs of r's diagonal, q is unique, and every orthogonal matrix equally likely.
    q = q * rnp.sign(rnp.diagonal(r))
    q = rnp.transpose(q) if rows < columns else q
    return rnp.moveaxis(rnp.reshape(q, (*others, columns)), -1, column_axis)


def delta_orthogonal(scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None) -> Initializer:
    """A kernel that is 0 except for an orthogonal matrix at its centre.

    Shapes: [*K, I, O], K of one to three axes. Types: floating or complex; dtype, f32 without one.
    Errors: ArgumentError unless the shape has 3 to 5 axes, and no more inputs than outputs.
    Source: Xiao et al. 2018, arXiv:1806.05393.

    >>> import rune, rune.nn as nn
    >>> nn.initializers.delta_orthogonal()(rune.random.key(0), (3, 4, 4)).shape
    (3, 4, 4)
    """

    def draw(key: Array, shape: Shape, kind: np.dtype) -> Any:
        if len(shape) not in (3, 4, 5) or shape[-1] < shape[-2]:
            raise ArgumentError(
                f"delta_orthogonal: cannot make an array of shape {shape} ([*K, I, O] with one to "
                "three sizes K, and I <= O)"
            )
        matrix = _orthogonal(key, shape[-2:], kind, column_axis) * rnp.asarray(scale, kind)
        middle = tuple((size - 1) // 2 for size in shape[:-2])
        return rnp.zeros(shape, kind).at[middle].set(matrix)

    return Initializer(draw, "delta_orthogonal", dtype)


__all__ = ["Initializer", "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform", "he_normal"]
__all__ += ["he_uniform", "kaiming_normal", "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal", "ones"]
__all__ += ["orthogonal", "truncated_normal", "uniform", "variance_scaling", "xavier_normal", "xavier_uniform"]
__all__ += ["zeros"]

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)

__dir__ = _names(globals())
