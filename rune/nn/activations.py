"""Activations: elementwise, smooth where the function is smooth.

Where a function has a corner the derivative is a convention, JAX's: relu'(0) = 0, elu'(0) = 1,
leaky_relu'(0) = 1, hard_tanh'(±1) = 1, relu6'(0) = relu6'(6) = 0. Seams of smooth functions are
chosen by `where` on safe operands, so that derivatives of every order hold on both sides.
"""

from __future__ import annotations

import math
from typing import Any

import rune.numpy as rnp
from rune import ops
from rune.array import Array
from rune.nn.support import ordered, real
from rune.numpy.composites import composite
from rune.typing import ArrayLike


def identity(x: ArrayLike) -> Array:
    """x itself, as an array.

    Shapes: any, unchanged. Types: that of `x`.
    Errors: ArgumentError if x is not an array.

    >>> import rune.nn as nn
    >>> nn.identity(2.0)
    Array(2., f32*[], cpu:0)
    """
    return rnp.array(x)


@composite
def relu(x: ArrayLike) -> Array:
    """The larger of x and 0; the derivative at 0 is 0. Source: Nair & Hinton 2010.

    Shapes: any, unchanged.
    Types:  real, unchanged; bools become i32.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.relu(rnp.array([-1.0, 2.0]))
    Array([0., 2.], f32[2], cpu:0)
    """
    return rnp.where(rnp.less_equal(ordered("relu", x), 0), 0, x)  # so that NaN stays NaN


@composite
def relu6(x: ArrayLike) -> Array:
    """x clipped to [0, 6]; the derivative at both ends is 0.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.relu6(rnp.array([-1.0, 8.0]))
    Array([0., 6.], f32[2], cpu:0)
    """
    x = ordered("relu6", x)
    inside = rnp.logical_and(rnp.greater(x, 0), rnp.less(x, 6))
    return rnp.where(inside, x, rnp.clip(ops.stop_gradient(x), 0, 6.0))


@composite
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 1e-2) -> Array:
    """x, and negative_slope x below 0.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.leaky_relu(rnp.array([-100.0, 2.0]))
    Array([-1.,  2.], f32[2], cpu:0)
    """
    above = rnp.greater_equal(ordered("leaky_relu", x), 0)
    return rnp.where(above, x, rnp.multiply(x, negative_slope))


def sparse_plus(x: Any) -> Array:
    """0 below -1, x above 1, and (x + 1)² / 4 between. Source: Martins & Astudillo 2016.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: DtypeError if an argument is not an array or is complex.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.sparse_plus(rnp.array([-2.0, 0.0, 2.0]))
    Array([0.  , 0.25, 2.  ], f32[3], cpu:0)
    """
    x = ordered("sparse_plus", x)
    middle = rnp.where(rnp.greater_equal(x, 1), x, rnp.square(rnp.add(x, 1.0)) / 4)
    return rnp.where(rnp.less_equal(x, -1), 0.0, middle)


def sparse_sigmoid(x: ArrayLike) -> Array:
    """The derivative of sparse_plus: (x + 1) / 2 clipped to [0, 1].

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: DtypeError if an argument is not an array or is complex.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.sparse_sigmoid(rnp.array([-2.0, 0.0, 2.0]))
    Array([0. , 0.5, 1. ], f32[3], cpu:0)
    """
    return 0.5 * rnp.clip(rnp.add(ordered("sparse_sigmoid", x), 1.0), 0.0, 2.0)


def hard_tanh(x: ArrayLike) -> Array:
    """x clipped to [-1, 1]; the derivative at both ends is 1.

    Shapes: any, unchanged. Types: that of `x`; bools become i32.
    Errors: ArgumentError if x is not an array; DtypeError if x is complex.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.hard_tanh(rnp.array([-2.0, 0.5]))
    Array([-1. ,  0.5], f32[2], cpu:0)
    """
    x = ordered("hard_tanh", x)
    if rnp.result_type(x) == rnp.bool_:
        return rnp.asarray(x, int)
    inside = rnp.logical_not(rnp.greater(rnp.abs(x), 1))
    return rnp.where(inside, x, rnp.sign(x))


def _limited(x: ArrayLike, low: int | None, high: int) -> Any:
    """x clipped to bounds; complex numbers, which have no order, are returned unchanged."""
    return x if rnp.iscomplexobj(x) else rnp.clip(x, low, high)


# --- exponential ------------------------------------------------------------------------------


@composite
def sigmoid(x: ArrayLike) -> Array:
    """1 / (1 + exp(-x)).

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: DtypeError if an argument is not an array.

    >>> import rune.nn as nn
    >>> nn.sigmoid(0.0)
    Array(0.5, f32*[], cpu:0)
    """
    return ops.logistic(real(x))


def tanh(x: ArrayLike) -> Array:
    """Hyperbolic tangent.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.nn as nn
    >>> nn.tanh(0.0)
    Array(0., f32*[], cpu:0)
    """
    return rnp.tanh(x)


@composite
def softplus(x: ArrayLike) -> Array:
    """log(1 + exp(x)), without overflow.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.

    >>> import rune.nn as nn
    >>> nn.softplus(1e4)
    Array(10000., f32*[], cpu:0)
    """
    return rnp.logaddexp(x, 0)


@composite
def log_sigmoid(x: ArrayLike) -> Array:
    """log(sigmoid(x)), without underflow.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for bools and complex numbers.

    >>> import rune.nn as nn
    >>> nn.log_sigmoid(-1e4)
    Array(-10000., f32*[], cpu:0)
    """
    return rnp.negative(softplus(rnp.negative(x)))


@composite
def log1mexp(x: ArrayLike) -> Array:
    """log(1 - exp(-x)) for x >= 0, without cancellation on either side of log 2.

    Source: Mächler 2012, Accurately computing log(1 - exp(-|a|)), the Rmpfr package.
    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: DtypeError if an argument is not an array or is complex.

    >>> import rune.nn as nn
    >>> nn.log1mexp(1e4)
    Array(-0., f32*[], cpu:0)
    """
    x = real(x)
    near = rnp.less(x, math.log(2.0))
    # Each branch has its own safe operand, so that infinities of the other give no NaN gradient.
    low = rnp.log(-rnp.expm1(-rnp.where(near, x, 1.0)))
    high = rnp.log1p(-rnp.exp(-rnp.where(near, 1.0, x)))
    return rnp.where(near, low, high)


@composite
def silu(x: ArrayLike) -> Array:
    """x sigmoid(x). Source: Hendrycks & Gimpel 2016, arXiv:1606.08415.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: DtypeError if an argument is not an array.

    >>> import rune.nn as nn
    >>> nn.silu(0.0)
    Array(0., f32*[], cpu:0)
    """
    return rnp.multiply(x, sigmoid(x))


swish = silu


@composite
def mish(x: ArrayLike) -> Array:
    """x tanh(softplus(x)). Source: Misra 2019, arXiv:1908.08681.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.

    >>> import rune.nn as nn
    >>> nn.mish(0.0)
    Array(0., f32*[], cpu:0)
    """
    # From 64 on tanh is 1, and the terms of its second derivative may overflow.
    return rnp.multiply(x, rnp.tanh(softplus(_limited(x, None, 64))))


@composite
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """x, and alpha (exp(x) - 1) below 0. Source: Clevert et al. 2015, arXiv:1511.07289.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.elu(rnp.array([-1e4, 2.0]))
    Array([-1.,  2.], f32[2], cpu:0)
    """
    above = rnp.greater(ordered("elu", x), 0)
    below = rnp.expm1(rnp.where(above, 0.0, x))
    return rnp.where(above, x, rnp.multiply(below, alpha))


@composite
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """x, and alpha (exp(x / alpha) - 1) below 0. Source: Barron 2017, arXiv:1704.07483.

    Shapes: broadcast together.
    Types:  real; bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers; ShapeError
            if the shapes do not match.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.celu(rnp.array([-1e4, 2.0]), 2.0)
    Array([-2.,  2.], f32[2], cpu:0)
    """
    above = rnp.greater(ordered("celu", x), 0)
    below = rnp.expm1(rnp.divide(rnp.where(above, 0.0, x), alpha))
    return rnp.where(above, x, rnp.multiply(below, alpha))


@composite
def selu(x: ArrayLike) -> Array:
    """elu scaled to keep mean 0 and variance 1. Source: Klambauer et al. 2017, arXiv:1706.02515.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.

    >>> import rune.nn as nn
    >>> nn.selu(1.0)
    Array(1.050701, f32*[], cpu:0)
    """
    return rnp.multiply(elu(x, 1.6732632423543772), 1.0507009873554805)


@composite
def gelu(x: Any, approximate: bool = True) -> Array:
    """x Φ(x), Φ the normal distribution; by tanh if `approximate`, else by erf.

    Source: Hendrycks & Gimpel 2016, arXiv:1606.08415.
    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: DtypeError if an argument is not an array.

    >>> import rune.nn as nn
    >>> nn.gelu(0.0)
    Array(0., f32[], cpu:0)
    """
    x = real(x)
    x = rnp.astype(x, x.dtype)  # not weak, as in JAX
    if not approximate:
        return 0.5 * x * ops.erfc(-x * math.sqrt(0.5))
    # Beyond ±32 tanh is ±1, and the cube may overflow.
    near = _limited(x, -32, 32)
    inner = math.sqrt(2 / math.pi) * (near + 0.044715 * (near * near * near))
    return 0.5 * x * (1.0 + rnp.tanh(inner))


@composite
def squareplus(x: Any, b: ArrayLike = 4) -> Array:
    """(x + sqrt(x² + b)) / 2. Source: Barron 2021, arXiv:2112.11687.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: DtypeError if an argument is not an array.

    >>> import rune.nn as nn
    >>> nn.squareplus(0.0)
    Array(1., f32*[], cpu:0)
    """
    x = real(x)
    # Any scale is correct; with |x| nothing overflows, and no factor of the slope underflows.
    scale = rnp.clip(rnp.abs(ops.stop_gradient(x)), 1, float(rnp.finfo(x.dtype).max))
    part = x / scale
    root = scale * rnp.sqrt(part * part + b / scale / scale)
    # (x + root) (root - x) = b, and only one of the two factors cancels.
    mean = 0.5 * root + 0.5 * rnp.abs(x)
    return rnp.where(x < 0, 0.25 * (b / mean), mean)


@composite
def soft_sign(x: ArrayLike) -> Array:
    """x / (1 + |x|).

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.nn as nn
    >>> nn.soft_sign(1.0)
    Array(0.5, f32*[], cpu:0)
    """
    return rnp.divide(x, rnp.abs(x) + 1)


def hard_sigmoid(x: ArrayLike) -> Array:
    """relu6(x + 3) / 6.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.

    >>> import rune.nn as nn
    >>> nn.hard_sigmoid(0.0)
    Array(0.5, f32*[], cpu:0)
    """
    return relu6(rnp.add(x, 3.0)) / 6.0


@composite
def hard_silu(x: ArrayLike) -> Array:
    """x hard_sigmoid(x). Source: Howard et al. 2019, arXiv:1905.02244.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers.

    >>> import rune.nn as nn
    >>> nn.hard_silu(3.0)
    Array(3., f32*[], cpu:0)
    """
    return rnp.multiply(x, hard_sigmoid(x))


hard_swish = hard_silu


def glu(x: ArrayLike, axis: int = -1) -> Array:
    """The first half along an axis times the sigmoid of the second.

    Source: Dauphin et al. 2016, arXiv:1612.08083.
    Shapes: [*A, 2·N, *B] -> [*A, N, *B].
    Types:  bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; AxisError for an axis out of range.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.glu(rnp.array([3.0, 0.0]))
    Array([1.5], f32[1], cpu:0)
    """
    first, second = rnp.split(x, 2, axis)
    return first * sigmoid(second)
