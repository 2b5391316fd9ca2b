"""Convolutions in one to three dimensions, and transposed ones, on channels-first arrays.

    conv1d x [N, C, L]    conv2d x [N, C, H, W]    conv3d x [N, C, D, H, W]
    weight [O, C / groups, *K], transposed [C, O / groups, *K];  bias [O]

Functions and arguments are those of torch; a single number applies to every axis. The kernel is not
flipped. For other layouts use `rune.lax.conv_general_dilated`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import rune.numpy as rnp
from rune import lax
from rune.array import Array
from rune.errors import ArgumentError, ShapeError
from rune.ops.sliding import reach
from rune.typing import ArrayLike

Each = int | Sequence[int]
Padding = str | int | Sequence[Any]


def each(name: str, parameter: str, value: Each, rank: int) -> tuple[int, ...]:
    """A whole number per axis. Errors: ArgumentError for a wrong count, or other values."""
    numbers = (value,) * rank if isinstance(value, int) else whole_numbers(name, parameter, value)
    if len(numbers) != rank:
        raise ArgumentError(f"{name}: cannot use {parameter} {numbers} ({rank} numbers required)")
    return numbers


def whole_numbers(name: str, parameter: str, values: Any) -> tuple[Any, ...]:
    """Whole numbers or symbolic sizes, unchanged. Errors: ArgumentError for other values."""
    is_many = isinstance(values, Sequence) and not isinstance(values, str)
    if not is_many or any(isinstance(v, float | str) or v is None for v in values):
        raise ArgumentError(f"{name}: cannot use {parameter} {values!r} (whole numbers required)")
    return tuple(values)


def _pads(name: str, padding: Padding, rank: int) -> Any:
    if isinstance(padding, str):
        return padding.upper()
    if isinstance(padding, int):
        return ((padding, padding),) * rank
    pairs = tuple((p, p) if isinstance(p, int) else tuple(p) for p in padding)
    if len(pairs) != rank:
        raise ArgumentError(f"{name}: cannot use padding {padding} (one entry per axis required: {rank})")
    return pairs


def _operands(name: str, x: ArrayLike, weight: ArrayLike, rank: int) -> tuple[Array, Array, bool]:
    x, weight = rnp.asarray(x), rnp.asarray(weight)
    if x.ndim not in (rank + 1, rank + 2) or weight.ndim != rank + 2:
        raise ShapeError(
            f"{name}: cannot convolve {x.type} with {weight.type} (x needs {rank + 2} axes, or "
            f"{rank + 1} without a batch; the weight {rank + 2})"
        )
    alone = x.ndim == rank + 1
    return (x[None] if alone else x), weight, alone


def _finished(y: Array, bias: ArrayLike | None, alone: bool) -> Array:
    if bias is not None:
        y = y + rnp.reshape(bias, (-1, *(1,) * (y.ndim - 2)))
    return y[0] if alone else y


def _conv(name: str, rank: int) -> Callable[..., Array]:
    def conv(
        x: ArrayLike,
        weight: ArrayLike,
        bias: ArrayLike | None = None,
        stride: Each = 1,
        padding: Padding = 0,
        dilation: Each = 1,
        groups: int = 1,
    ) -> Array:
        x, weight, alone = _operands(name, x, weight, rank)
        y = lax.conv_general_dilated(
            x,
            weight,
            each(name, "stride", stride, rank),
            _pads(name, padding, rank),
            rhs_dilation=each(name, "dilation", dilation, rank),
            feature_group_count=groups,
        )
        return _finished(y, bias, alone)

    conv.__name__ = name
    return conv


conv1d = _conv("conv1d", 1)
conv1d.__doc__ = """Sums of products of the windows of x with weight, plus bias.

padding: a number, a pair, "same" or "valid".
Shapes: x [N, C, L] or [C, L], weight [O, C/groups, K], bias [O] -> [N, O, T] or [O, T].
Types:  numeric, promoted together.
Errors: ShapeError, ArgumentError for arguments that do not fit.

>>> import rune.nn as nn, rune.numpy as rnp
>>> nn.conv1d(rnp.arange(4.0)[None], rnp.ones((1, 1, 2)))
Array([[1., 3., 5.]], f32[1,3], cpu:0)
"""
conv2d = _conv("conv2d", 2)
conv2d.__doc__ = """`conv1d` along two axes.

Shapes: x [N, C, H, W], weight [O, C/groups, *K], bias [O] -> [N, O, *T].
Types:  as `conv1d`.
Errors: as `conv1d`.

>>> import rune.nn as nn, rune.numpy as rnp
>>> nn.conv2d(rnp.ones((1, 1, 4, 4)), rnp.ones((8, 1, 3, 3)), padding="same").shape
(1, 8, 4, 4)
"""
conv3d = _conv("conv3d", 3)
conv3d.__doc__ = """`conv1d` along three axes.

Shapes: x [N, C, D, H, W], weight [O, C/groups, *K], bias [O] -> [N, O, *T].
Types:  as `conv1d`.
Errors: as `conv1d`.

>>> import rune.nn as nn, rune.numpy as rnp
>>> nn.conv3d(rnp.ones((1, 1, 4, 4, 4)), rnp.ones((8, 1, 2, 2, 2)), stride=2).shape
(1, 8, 2, 2, 2)
"""


# --- transposed -------------------------------------------------------------------------------


def _conv_transpose(name: str, rank: int) -> Callable[..., Array]:
    def conv(
        x: ArrayLike,
        weight: ArrayLike,
        bias: ArrayLike | None = None,
        stride: Each = 1,
        padding: Each = 0,
        output_padding: Each = 0,
        groups: int = 1,
        dilation: Each = 1,
    ) -> Array:
        x, weight, alone = _operands(name, x, weight, rank)
        strides = each(name, "stride", stride, rank)
        dilations = each(name, "dilation", dilation, rank)
        extra = each(name, "output_padding", output_padding, rank)
        if any(e >= max(s, d) for e, s, d in zip(extra, strides, dilations, strict=True)):
            raise ArgumentError(
                f"{name}: cannot use output_padding {extra} (less than stride {strides} or "
                f"dilation {dilations} required)"
            )
        spans = [reach(k, d) - 1 for k, d in zip(weight.shape[2:], dilations, strict=True)]
        sides = each(name, "padding", padding, rank)
        pads = [(n - p, n - p + e) for n, p, e in zip(spans, sides, extra, strict=True)]
        y = lax.conv_general_dilated(
            x, _swapped(weight, groups), (1,) * rank, pads, strides, dilations, feature_group_count=groups
        )
        return _finished(y, bias, alone)

    conv.__name__ = name
    return conv


def _swapped(weight: Array, groups: int) -> Array:
    """[C, O/groups, *K] -> [O, C/groups, *K], flipped."""
    reversed_kernel = rnp.flip(weight, tuple(range(2, weight.ndim)))
    ins, outs, *sizes = reversed_kernel.shape
    split = rnp.reshape(reversed_kernel, (groups, ins // groups, outs, *sizes))
    return rnp.reshape(rnp.swapaxes(split, 1, 2), (groups * outs, ins // groups, *sizes))


conv_transpose1d = _conv_transpose("conv_transpose1d", 1)
conv_transpose1d.__doc__ = """The gradient of `conv1d` with respect to its x, as a function of it.

Shapes: x [N, C, L], weight [C, O/groups, K] -> [N, O, (L - 1) stride - 2 padding +
        (K - 1) dilation + output_padding + 1].
Types:  numeric, promoted together.
Errors: ArgumentError unless output_padding is less than stride or dilation.

>>> import rune.nn as nn, rune.numpy as rnp
>>> nn.conv_transpose1d(rnp.ones((1, 2)), rnp.ones((1, 1, 2)), stride=2)
Array([[1., 1., 1., 1.]], f32[1,4], cpu:0)
"""
conv_transpose2d = _conv_transpose("conv_transpose2d", 2)
conv_transpose2d.__doc__ = """`conv_transpose1d` along two axes.

Shapes: x [N, C, H, W], weight [C, O/groups, *K], bias [O] -> [N, O, *T].
Types:  as `conv_transpose1d`.
Errors: as `conv_transpose1d`.

>>> import rune.nn as nn, rune.numpy as rnp
>>> nn.conv_transpose2d(rnp.ones((1, 3, 4, 4)), rnp.ones((3, 8, 2, 2)), stride=2).shape
(1, 8, 8, 8)
"""
conv_transpose3d = _conv_transpose("conv_transpose3d", 3)
conv_transpose3d.__doc__ = """`conv_transpose1d` along three axes.

Shapes: x [N, C, D, H, W], weight [C, O/groups, *K], bias [O] -> [N, O, *T].
Types:  as `conv_transpose1d`.
Errors: as `conv_transpose1d`.

>>> import rune.nn as nn, rune.numpy as rnp
>>> nn.conv_transpose3d(rnp.ones((1, 3, 2, 2, 2)), rnp.ones((3, 8, 2, 2, 2)), stride=2).shape
(1, 8, 4, 4, 4)
"""
