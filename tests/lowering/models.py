"""Well-known functions in primitives: the graphs whose kernels are counted.

They bind primitives as the numpy layer would, on tracers of f32 arrays.
"""

from __future__ import annotations

from typing import Any

from rune import dtypes, ops
from tests.support.lowering import number


def dot(a: Any, b: Any) -> Any:
    """Matrix product."""
    return ops.dot_general(a, b, dimension_numbers=(((1,), (0,)), ((), ())))


def over_rows(op: Any, x: Any) -> Any:
    """A reduction of the last axis, broadcast back."""
    last = (x.type.ndim - 1,)
    return ops.expand_axes(op(x, axes=last), x.type.shape, last)


def columns(v: Any, x: Any) -> Any:
    """A vector along the last axis of x."""
    return ops.broadcast(v, shape=x.type.shape, axes=(x.type.ndim - 1,))


def softmax(x: Any) -> Any:
    """exp(x - max) / sum."""
    e = ops.exp(ops.sub(x, over_rows(ops.reduce_max, x)))
    return ops.div(e, over_rows(ops.reduce_sum, e))


def log_softmax(x: Any) -> Any:
    """x - max - log sum exp."""
    logits = ops.sub(x, over_rows(ops.reduce_max, x))
    total = ops.reduce_sum(ops.exp(logits), axes=(x.type.ndim - 1,))
    return ops.sub(logits, ops.expand_axes(ops.log(total), x.type.shape, (x.type.ndim - 1,)))


def layernorm(x: Any, scale: Any, shift: Any) -> Any:
    """(x - mean) / sqrt(variance + epsilon) * scale + shift."""
    size = number(x.type.shape[-1])
    mean = ops.div(over_rows(ops.reduce_sum, x), size)
    difference = ops.sub(x, mean)
    variance = ops.div(over_rows(ops.reduce_sum, ops.mul(difference, difference)), size)
    unit = ops.mul(difference, ops.rsqrt(ops.add(variance, number(1e-5))))
    return ops.add(ops.mul(unit, columns(scale, x)), columns(shift, x))


def rms_norm(x: Any, scale: Any) -> Any:
    """x / sqrt(mean of squares) * scale."""
    mean = ops.div(over_rows(ops.reduce_sum, ops.mul(x, x)), number(x.type.shape[-1]))
    return ops.mul(ops.mul(x, ops.rsqrt(ops.add(mean, number(1e-6)))), columns(scale, x))


def gelu_tanh(x: Any) -> Any:
    """0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))."""
    cube = ops.mul(x, ops.mul(x, x))
    inner = ops.mul(ops.add(x, ops.mul(cube, number(0.044715))), number(0.7978845608))
    return ops.mul(ops.mul(x, number(0.5)), ops.add(ops.tanh(inner), number(1)))


def gelu_erf(x: Any) -> Any:
    """0.5 x (1 + erf(x / sqrt 2))."""
    inner = ops.erf(ops.mul(x, number(0.70710678)))
    return ops.mul(ops.mul(x, number(0.5)), ops.add(inner, number(1)))


def linear(x: Any, w: Any, b: Any) -> Any:
    """x w + b."""
    y = dot(x, w)
    return ops.add(y, columns(b, y))


def one_hot(labels: Any, shape: tuple[int, ...]) -> Any:
    """1 where the position is the label."""
    position = ops.iota(shape=shape, axis=1, dtype=dtypes.i32)
    same = ops.eq(position, ops.broadcast(labels, shape=shape, axes=(0,)))
    return ops.convert(same, dtype=dtypes.f32)


def cross_entropy_one_hot(x: Any, labels: Any) -> Any:
    """Mean of -log_softmax at the label, picked by a mask."""
    log_probabilities = ops.mul(log_softmax(x), one_hot(labels, x.type.shape))
    return ops.neg(ops.div(ops.reduce_sum(log_probabilities, axes=(0, 1)), number(x.type.shape[0])))


def cross_entropy_gather(x: Any, labels: Any) -> Any:
    """Mean of -log_softmax at the label, picked by a gather."""
    dims = ops.IndexDims((), (1,), (1,), (0,), (0,))
    at = ops.reshape(labels, shape=(x.type.shape[0], 1))
    log_probabilities = ops.gather(log_softmax(x), at, number(float("nan")), dims=dims, slice_sizes=(1, 1), mode="fill")
    return ops.neg(ops.div(ops.reduce_sum(log_probabilities, axes=(0,)), number(x.type.shape[0])))


def adam(p: Any, m: Any, v: Any, g: Any, t: Any) -> tuple[Any, Any, Any]:
    """One step of Adam for one leaf; t is the number of the step, a rank-0 f32."""
    b1, b2 = number(0.9), number(0.999)
    m = ops.add(ops.mul(m, b1), ops.mul(g, number(0.1)))
    v = ops.add(ops.mul(v, b2), ops.mul(ops.mul(g, g), number(0.001)))
    m_hat = ops.div(m, ops.sub(number(1), ops.pow(b1, t)))
    v_hat = ops.div(v, ops.sub(number(1), ops.pow(b2, t)))
    step = ops.div(m_hat, ops.add(ops.sqrt(v_hat), number(1e-8)))
    return ops.sub(p, ops.mul(step, number(1e-3))), m, v


def attention(q: Any, k: Any, v: Any) -> Any:
    """Causal attention of [batch, heads, length, depth]."""
    numbers = (((3,), (3,)), ((0, 1), (0, 1)))
    scores = ops.mul(ops.dot_general(q, k, dimension_numbers=numbers), number(0.125))
    shape = scores.type.shape
    rows = ops.iota(shape=shape, axis=2, dtype=dtypes.i32)
    cols = ops.iota(shape=shape, axis=3, dtype=dtypes.i32)
    masked_scores = ops.select(ops.ge(rows, cols), scores, number(-1e30))
    return ops.dot_general(softmax(masked_scores), v, dimension_numbers=(((3,), (2,)), ((0, 1), (0, 1))))
