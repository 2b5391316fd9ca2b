"""JAX primitives that rune composes of other operations, with the parameters of JAX's equations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

import rune.numpy as rnp
from rune import checkpoint_name, lax, random
from rune.array import Array
from rune.as_jax.primitive import Primitive
from rune.ops.window_reductions import MONOIDS
from rune.typing import ArrayLike


class WrittenOut(Primitive):
    """A primitive that appears in no rune equation: binding it calls its function."""

    def __init__(self, name: str, function: Callable[..., object]):
        super().__init__(name)
        self.function = function
        self.def_impl(function)

    def bind(self, *args: object, **params: object) -> object:
        """Call the function, which applies other operations."""
        return self.function(*args, **params)


def _in_total_order(compare: Callable[..., Array], x: ArrayLike, y: ArrayLike) -> Array:
    """Compare by the total order of IEEE 754: -0 before 0, NaN at either end by its sign."""
    return compare(_place(rnp.asarray(x)), _place(rnp.asarray(y)))


def _place(x: Array) -> Array:
    """Integers that are ordered like the floats x; other numbers unchanged."""
    if not rnp.issubdtype(x.dtype, rnp.floating):
        return x
    integer = np.dtype(f"i{x.dtype.itemsize}")
    bits = lax.bitcast_convert_type(x, integer)
    # Floats are sign and magnitude: among negative ones, larger bits mean a smaller number.
    signs = lax.shift_right_arithmetic(bits, rnp.full_like(bits, 8 * integer.itemsize - 1))
    return lax.bitwise_xor(bits, lax.bitwise_and(signs, rnp.full_like(bits, np.iinfo(integer).max)))


def _windowed(
    combine: Callable[..., Array],
    monoid: str,
    x: ArrayLike,
    *,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int],
    window_dilation: Sequence[int],
) -> Array:
    x = rnp.asarray(x)
    identity = np.asarray(MONOIDS[monoid].identity(x.dtype)).astype(x.dtype)
    dilations = base_dilation, window_dilation
    return lax.reduce_window(x, identity, combine, window_dimensions, window_strides, padding, *dilations)


def _approx_top_k(
    x: ArrayLike,
    *,
    k: int,
    reduction_dimension: int,
    recall_target: float,
    is_max_k: bool,
    reduction_input_size_override: int,
    aggregate_to_topk: bool,
) -> tuple[Array, Array]:
    search = lax.approx_max_k if is_max_k else lax.approx_min_k
    return search(x, k, reduction_dimension, recall_target, reduction_input_size_override, aggregate_to_topk)


WRITTEN_OUT: Mapping[str, Callable[..., object]] = {
    "approx_top_k": _approx_top_k,
    "bessel_i0e": lax.bessel_i0e,
    "bessel_i1e": lax.bessel_i1e,
    "clamp": lax.clamp,
    "copy": rnp.copy,
    "cumlogsumexp": lambda x, *, axis, reverse: lax.cumlogsumexp(x, axis, reverse),
    "digamma": lax.digamma,
    "eq_to": partial(_in_total_order, lax.eq),
    "igamma": lax.igamma,
    "igamma_grad_a": lax.igamma_grad_a,
    "igammac": lax.igammac,
    "le_to": partial(_in_total_order, lax.le),
    "lgamma": lax.lgamma,
    "lt_to": partial(_in_total_order, lax.lt),
    "name": lambda x, *, name: checkpoint_name(x, name),
    "polygamma": lax.polygamma,
    "random_gamma": lambda key, a, *, log_space: (random.loggamma if log_space else random.gamma)(key, a),
    "reduce_window_max": partial(_windowed, lax.max, "max"),
    "reduce_window_min": partial(_windowed, lax.min, "min"),
    "reduce_window_sum": partial(_windowed, lax.add, "add"),
    "reduce_xor": lambda x, *, axes: lax.reduce_xor(x, axes),
    "regularized_incomplete_beta": lax.betainc,
    "rng_bit_generator": lax.rng_bit_generator,
    "shift_right_logical": lax.shift_right_logical,
    "squeeze": lambda x, *, dimensions: lax.squeeze(x, dimensions),
    "zeta": lax.zeta,
}
