"""Products of block-scaled matrices: narrow numbers, and one scale for each block of them.

Formats are those of the OCP Microscaling specification 1.0 (mxfp8: 32 numbers f8_e4m3 a scale that
is a power of two) and of NVIDIA's nvfp4 (16 numbers e2m1 a scale f8_e4m3). There is no array of
e2m1 or e8m0 here: such numbers are f32 rounded to the format.
Products and sums are f32.
"""

from __future__ import annotations

from typing import Any, Literal

import rune.numpy as rnp
from rune import dtypes, ops
from rune.array import Array
from rune.dims import product
from rune.errors import ArgumentError, ShapeError
from rune.records import dataclass
from rune.transforms.custom.shares import summed
from rune.transforms.custom.vjp import custom_vjp
from rune.typing import ArrayLike, DTypeLike

MAXIMA = {"mxfp8": 448.0, "nvfp4": 6.0}  # the largest number of each format
BLOCKS = {"mxfp8": 32, "nvfp4": 16}
LARGEST_SCALE = 448.0  # of f8_e4m3


@dataclass(frozen=True, slots=True)
class BlockScaleConfig:
    """How a matrix is quantised along its contracted axis."""

    mode: Literal["mxfp8", "nvfp4"]
    block_size: int
    global_scale: ArrayLike | None = None


def get_scaled_dot_general_config(
    mode: Literal["nvfp4", "mxfp8"], global_scale: ArrayLike | None = None
) -> BlockScaleConfig:
    """The configuration of a format, for `scaled_dot_general`.

    global_scale: first divides an nvfp4 operand; 1 by default.
    Shapes: global_scale [].
    Errors: ArgumentError for an unknown mode.

    >>> import rune.nn as nn
    >>> nn.get_scaled_dot_general_config("mxfp8").block_size
    32
    """
    if mode not in BLOCKS:
        raise ArgumentError(f"get_scaled_dot_general_config: cannot use mode {mode!r} (nvfp4 or mxfp8)")
    scale = None if mode == "mxfp8" else 1.0 if global_scale is None else global_scale
    return BlockScaleConfig(mode, BLOCKS[mode], scale)


def scaled_matmul(
    lhs: ArrayLike,
    rhs: ArrayLike,
    lhs_scales: ArrayLike,
    rhs_scales: ArrayLike,
    preferred_element_type: DTypeLike = "f32",
) -> Array:
    """(lhs times its scales) (rhs times its scales)ᵀ, each scale for a block of columns.

    Shapes: lhs [B, M, K], rhs [B, N, K], scales [B, M, K / block] and [B, N, K / block] ->
            [B, M, N].
    Types:  real operands -> preferred_element_type.
    Errors: ShapeError for scales that do not divide K.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> a, s = rnp.ones((1, 1, 4)), rnp.full((1, 1, 2), 0.5)
    >>> nn.scaled_matmul(a, a, s, s)
    Array([[[1.]]], f32[1,1,1], cpu:0)
    """
    lhs_values, rhs_values = _unscaled(lhs, lhs_scales), _unscaled(rhs, rhs_scales)
    product = ops.dot_general(lhs_values, rhs_values, dimension_numbers=(((2,), (2,)), ((0,), (0,))))
    return rnp.astype(product, dtypes.as_dtype(preferred_element_type))


def _unscaled(x: ArrayLike, scales: ArrayLike) -> Array:
    x, scales = rnp.asarray(x), rnp.asarray(scales)
    blocks = scales.shape[-1] if scales.ndim else 0
    if x.ndim != 3 or not blocks or scales.shape[:-1] != x.shape[:-1] or x.shape[-1] % blocks != 0:
        raise ShapeError(f"scaled_matmul: cannot scale {x.type} by {scales.type} ([B, M, K] by [B, M, K/block])")
    split = rnp.reshape(x.astype("f32"), (*x.shape[:-1], blocks, x.shape[-1] // blocks))
    return rnp.reshape(split * scales.astype("f32")[..., None], x.shape)


def scaled_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: Any,
    preferred_element_type: DTypeLike = "f32",
    configs: Any = None,
    implementation: object = None,
) -> Array:
    """dot_general of operands that are first quantised in blocks along the contracted axes.

    configs: for lhs, rhs and the gradients, each of `get_scaled_dot_general_config`; None: no
             quantisation. The derivative is that of the product of the operands as they were
             given, computed by products quantised in the same way.
    Shapes: the result's axes are the batch axes, the others of lhs, the others of rhs.
    Types:  real operands -> preferred_element_type.
    Errors: ArgumentError for a contracted size that blocks do not divide.
    Source: OCP Microscaling Formats 1.0; straight-through, Bengio et al. 2013, arXiv:1308.3432.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> configs = [nn.get_scaled_dot_general_config("mxfp8")] * 3
    >>> x = rnp.ones((2, 32))
    >>> nn.scaled_dot_general(x, x, (((1,), (1,)), ((), ())), configs=configs)
    Array([[32., 32.],
           [32., 32.]], f32[2,2], cpu:0)
    """
    dtype = dtypes.as_dtype(preferred_element_type)
    (ca, cb), (ba, bb) = dimension_numbers
    numbers = (tuple(ca), tuple(cb)), (tuple(ba), tuple(bb))
    lhs, rhs = rnp.asarray(lhs), rnp.asarray(rhs)
    if configs is None:
        lhs_values, rhs_values = lhs.astype(dtype), rhs.astype(dtype)
        return ops.dot_general(lhs_values, rhs_values, dimension_numbers=numbers)
    a, shape_a = _as_matrices(lhs, numbers[0][0], numbers[1][0])
    b, shape_b = _as_matrices(rhs, numbers[0][1], numbers[1][1])
    of_a, of_b, of_gradient = configs
    product = _quantised(of_a, of_b, of_gradient)(a.astype("f32"), b.astype("f32"))
    batch = tuple(lhs.shape[i] for i in numbers[1][0])
    return rnp.reshape(product, (*batch, *shape_a, *shape_b)).astype(dtype)


def _as_matrices(x: Array, contraction_axes: tuple, batch: tuple) -> tuple[Array, tuple]:
    """[B, M, K], and the shape that M stands for."""
    free = tuple(i for i in range(x.ndim) if i not in contraction_axes and i not in batch)
    matrix = rnp.transpose(x, (*batch, *free, *contraction_axes))
    shape, inner = tuple(x.shape[i] for i in free), tuple(x.shape[i] for i in contraction_axes)
    sizes = [product(x.shape[i] for i in batch), product(shape), product(inner)]
    return rnp.reshape(matrix, sizes), shape


def _quantised(of_a: BlockScaleConfig, of_b: BlockScaleConfig, of_gradient: BlockScaleConfig) -> custom_vjp:
    """[B, M, K], [B, N, K] -> [B, M, N] of quantised operands, gradients by quantised products."""

    def forward(a: Array, b: Array) -> tuple[Array, tuple[Array, Array]]:
        return _multiply(a, b, of_a, of_b), (a, b)

    def backward(residuals: tuple[Array, Array], ct: Array) -> tuple[Array, Array]:
        a, b = residuals
        of_left = _multiply(ct, rnp.swapaxes(b, 1, 2), of_gradient, of_b)
        cotangent_t = rnp.swapaxes(ct, 1, 2)
        return summed((of_left, _multiply(cotangent_t, rnp.swapaxes(a, 1, 2), of_gradient, of_a)), residuals)

    product = custom_vjp(lambda a, b: _multiply(a, b, of_a, of_b))
    product.defvjp(forward, backward)
    return product


def _multiply(a: Array, b: Array, of_a: BlockScaleConfig, of_b: BlockScaleConfig) -> Array:
    matrix_product = scaled_matmul(*_interleaved(_quantise(a, of_a), _quantise(b, of_b)))
    for config in (of_a, of_b):
        if config.global_scale is not None:
            matrix_product = matrix_product * config.global_scale
    return matrix_product


def _interleaved(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array, Array, Array]:
    return a[0], b[0], a[1], b[1]


def _quantise(x: Array, config: BlockScaleConfig) -> tuple[Array, Array]:
    """Numbers of the format, as f32, and the scale of every block."""
    size, most = config.block_size, MAXIMA[config.mode]
    if x.shape[-1] % size != 0:
        raise ArgumentError(f"scaled_dot_general: cannot quantise {x.type} (blocks of {size} contracted elements)")
    blocks = rnp.reshape(x, (*x.shape[:-1], x.shape[-1] // size, size))
    if config.global_scale is not None:
        blocks = blocks / config.global_scale
    scales = rnp.max(rnp.abs(blocks), -1) / most
    scales = _powers_above(scales) if config.mode == "mxfp8" else _as_f8(scales)
    # A block with scale 0 adds 0 whatever its numbers are; dividing by 1 avoids 0 / 0.
    safe = rnp.where(scales == 0, 1.0, scales)[..., None]
    inside = rnp.clip(blocks / safe, -most, most)
    numbers = _as_f8(inside) if config.mode == "mxfp8" else _as_e2m1(inside)
    return rnp.reshape(numbers, x.shape), scales


def _powers_above(x: Array) -> Array:
    """The least power of two that is not below x, within the range of f32 exponents."""
    exponent = rnp.ceil(rnp.log2(rnp.maximum(x, 2.0**-126)))
    power = rnp.exp2(exponent)
    # log2 and exp2 are rounded: correct a power that is too low, or twice too high.
    power = rnp.where(power < x, power * 2, power)
    return rnp.where(power * 0.5 >= rnp.maximum(x, 2.0**-126), power * 0.5, power)


def _as_f8(x: Array) -> Array:
    bounded = rnp.clip(x, -LARGEST_SCALE, LARGEST_SCALE)
    return bounded.astype(dtypes.f8_e4m3).astype("f32")


def _as_e2m1(x: Array) -> Array:
    """To the nearest of ±{0, 0.5, 1, 1.5, 2, 3, 4, 6}, ties to the even mantissa."""
    size = rnp.abs(x)
    step = rnp.where(size < 2, 0.5, rnp.where(size < 4, 1.0, 2.0))
    return rnp.copysign(rnp.round(size / step) * step, x)
