"""conv_general_dilated: sums of products of windows with a kernel, in any number of dimensions.

`specs` = (lhs, rhs, out) name the axes by role: (batch, feature, *spatial) of the array and of the
result, (out feature, in feature, *spatial) of the kernel. As everywhere in machine learning, the
kernel is not flipped. Padding may be negative; `lhs_dilation` inserts zeros between the elements of
the array, `rhs_dilation` between those of the kernel. With groups, each group of features (or of
batches) is convolved with its own part of the kernel.

Zeros of the padding are multiplied by the kernel; zeros of a dilated array are not, unless there
are many phases (conv_expansion.PHASES). So an infinite weight gives NaN beside the former only.

A convolution is one equation until lowering, which expands it into matrix products over views
(conv_expansion.py). Its derivatives are convolutions with axes renamed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rune.core.interpreter import type_of
from rune.core.primitive import Primitive
from rune.core.types import ArrayType, Shape
from rune.core.values import V, Value
from rune.dims import Size, product
from rune.errors import ShapeError
from rune.ops import conv_expansion
from rune.ops.conv_parameters import Conv, Ints, arranged, counts, fields_of, pick
from rune.ops.family import KINDS, Batched, require, reshape, same_dtype, wide, zeros_of
from rune.ops.jax_forms import CONV_NAMES, product_form
from rune.ops.movement import inverse, move_axis, pad, reverse
from rune.ops.sliding import ADDED, reach, shear

if TYPE_CHECKING:
    from rune.array import Array

PATCHES = 1 << 22  # elements of windows that the reference lays out in memory at a time

# --- type -------------------------------------------------------------------------------------


def _refuse(lhs: ArrayType, rhs: ArrayType, why: str) -> ShapeError:
    return ShapeError(f"conv_general_dilated: cannot convolve {lhs} with {rhs} ({why})")


def _check_ranks(lhs: ArrayType, rhs: ArrayType, conv: Conv) -> None:
    fields = (conv.padding, conv.lhs_dilation, conv.rhs_dilation)
    if {len(f) for f in fields} != {conv.rank} or {lhs.ndim, rhs.ndim} != {conv.rank + 2}:
        raise _refuse(lhs, rhs, f"{conv.rank} strides for {lhs.ndim - 2} spatial axes")
    if any(s < 1 for s in (*conv.strides, *conv.lhs_dilation, *conv.rhs_dilation, *conv.groups)):
        raise _refuse(lhs, rhs, "strides, dilations and groups are at least 1")
    if any(sorted(spec) != list(range(lhs.ndim)) for spec in conv.specs):
        raise _refuse(lhs, rhs, f"axes {conv.specs}")
    if 1 not in conv.groups:
        raise _refuse(lhs, rhs, "groups of features or of batches, not both")


def _check_groups(lhs: ArrayType, rhs: ArrayType, conv: Conv) -> None:
    batch, features = pick(lhs.shape, conv.specs[0])[:2]
    out_features, in_features = pick(rhs.shape, conv.specs[1])[:2]
    of_features, of_batches = conv.groups
    if features != in_features * of_features:
        raise _refuse(
            lhs,
            rhs,
            f"{features} input features, feature_group_count={of_features}, against {in_features} of the kernel",
        )
    if out_features % (of_features * of_batches) != 0 or batch % of_batches != 0:
        raise _refuse(lhs, rhs, f"{out_features} output features and {batch} batches in groups {conv.groups}")


def _type_rule(lhs: ArrayType, rhs: ArrayType, **params: Any) -> ArrayType:
    conv = Conv(**params)
    require("conv_general_dilated", KINDS["numeric"], "numeric", lhs, rhs)
    dtype = same_dtype("conv_general_dilated", lhs, rhs)
    _check_ranks(lhs, rhs, conv)
    _check_groups(lhs, rhs, conv)
    batch = pick(lhs.shape, conv.specs[0])[0] // conv.groups[1]
    out_features = pick(rhs.shape, conv.specs[1])[0]
    spatial = counts(lhs.shape, rhs.shape, conv)
    if any(isinstance(size, int) and size < 0 for size in spatial):
        raise _refuse(lhs, rhs, f"padding {conv.padding} crops more than there is")
    shape = arranged((batch, out_features, *spatial), conv.specs[2])
    return ArrayType(shape, dtype, lhs.weak and rhs.weak)


# --- meaning ----------------------------------------------------------------------------------


def _reference(lhs: np.ndarray, rhs: np.ndarray, **params: Any) -> np.ndarray:
    """The zeros of a dilated array are skipped where the expansion skips them: a product of such a
    zero with an infinite weight would differ.
    """
    conv = Conv(**params)
    phases = conv_expansion.phases_of(lhs.shape, rhs.shape, conv)
    if phases is None:
        return _sums(lhs, rhs, conv)
    out = np.zeros(_type_rule(type_of(lhs), type_of(rhs), **params).shape, lhs.dtype)
    for phase_of_axes in itertools.product(*(enumerate(along) for along in phases)):
        part = conv_expansion.part_of(rhs.shape, conv, [phase for _, phase in phase_of_axes])
        at: list[Any] = [slice(None)] * out.ndim
        for axis, (first, _), along in zip(conv.specs[2][2:], phase_of_axes, phases, strict=True):
            at[axis] = slice(first, None, len(along))
        target = out[tuple(at)]
        if not part.is_zero and target.size:
            kernel = rhs[tuple(map(slice, part.start, part.limit, part.stride))]
            target[...] = _sums(lhs, kernel, part.conv)[tuple(map(slice, target.shape))]
    return out


def _sums(lhs: np.ndarray, rhs: np.ndarray, conv: Conv) -> np.ndarray:
    x, w = np.transpose(lhs, conv.specs[0]), np.transpose(rhs, conv.specs[1])
    assert pad.reference is not None
    assert shear.reference is not None
    if conv.is_padded:
        x = pad.reference(x, np.zeros((), x.dtype), **conv.pads)
    if _is_of_sequences(x, w, conv):
        sums = _correlated(x.reshape(-1), w.reshape(-1)).reshape(1, 1, -1)
        return np.ascontiguousarray(np.transpose(sums, inverse(conv.specs[2])))
    of_features, of_batches = conv.groups
    groups, sizes = product(conv.groups), w.shape[2:]
    batch, features, *spatial = x.shape
    x = x.reshape(of_batches, batch // of_batches, of_features, features // of_features, *spatial)
    spread = np.broadcast_to(x[(..., *(None,) * conv.rank)], (*x.shape, *sizes))
    axes = tuple(range(4, 4 + conv.rank))
    patches = shear.reference(
        spread, axes=axes, strides=conv.strides, dilations=conv.rhs_dilation
    )  # [bg, n, fg, c, *O, *K], one of bg and fg being 1
    last = tuple(range(4 + conv.rank, 4 + 2 * conv.rank))
    patches = np.transpose(patches, (0, 2, 1, *axes, 3, *last))
    out, total = patches.shape[2 : 3 + conv.rank], int(np.prod(w.shape[1:]))
    lhs_size = int(np.prod(patches.shape[:2])) * total
    kernel = w.reshape(groups, w.shape[0] // groups, total).astype(wide(lhs.dtype), copy=False)
    result = np.empty((groups, *out, kernel.shape[1]), lhs.dtype)
    for part in _runs(out, lhs_size):
        windows = patches[(slice(None), slice(None), *part)]
        sizes = windows.shape[2 : 3 + conv.rank]
        lhs_rows = windows.reshape(groups, math.prod(sizes), total).astype(kernel.dtype, copy=False)
        sums = np.matmul(lhs_rows, kernel.swapaxes(1, 2))
        result[(slice(None), *part)] = sums.reshape(groups, *sizes, kernel.shape[1])
    result = np.moveaxis(result, 0, -2).reshape(*out, w.shape[0])
    order = np.moveaxis(result, -1, 1)  # n, o, *O
    return np.ascontiguousarray(np.transpose(order, inverse(conv.specs[2])))


def _is_of_sequences(x: np.ndarray, w: np.ndarray, conv: Conv) -> bool:
    """Whether one sequence is correlated with another that is no longer, at every place where it
    fits.
    """
    is_plain = conv.strides == conv.rhs_dilation == (1,) and wide(x.dtype).isbuiltin != ADDED
    return is_plain and x.shape[:2] == w.shape[:2] == (1, 1) and x.size >= w.size > 0


def _correlated(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    kind = wide(x.dtype)
    sums = np.correlate(x.astype(kind, copy=False), np.conj(w.astype(kind, copy=False)), "valid")
    return sums.astype(x.dtype, copy=False)


def _runs(out: tuple[int, ...], size: int) -> Iterator[tuple[slice, ...]]:
    """Slices of the results [n, *O] whose patches fit into PATCHES; a result takes `size`
    products.
    """
    batches, first = out[0], out[1] if len(out) > 1 else 1
    rows = max(1, PATCHES // max(1, size * math.prod(out[2:])))
    if rows >= first:
        step = rows // max(1, first)
        yield from ((slice(n, n + step),) for n in range(0, batches, step))
        return
    for n in range(batches):
        yield from ((slice(n, n + 1), slice(k, k + rows)) for k in range(0, first, rows))


# --- derivatives ------------------------------------------------------------------------------


def _transpose(ct: Value, linear: Batched, lhs: Any, rhs: Any, **params: Any) -> list[Array | None]:
    conv = Conv(**params)
    if linear[0]:
        return [_wrt_lhs(ct, lhs.shape, rhs, conv), None]
    return [None, _wrt_rhs(ct, lhs, rhs.shape, conv)]


def _wrt_lhs(ct: Value, shape: Shape, rhs: Value, conv: Conv) -> Array:
    """ct convolved with the flipped kernel; strides and dilations of the array change places.

    An element of the array at i·gap meets the kernel's element k in the window that starts
    k·dilation before it; counted from the kernel's end, that is again a convolution.
    """
    x_spec, w_spec, y_spec = conv.specs
    sizes = type_of(rhs).shape
    padding = []
    for k in range(conv.rank):
        spread = reach(sizes[w_spec[k + 2]], conv.rhs_dilation[k]) - 1
        low = spread - conv.padding[k][0]
        inner = reach(type_of(ct).shape[y_spec[k + 2]], conv.strides[k])
        padding.append((low, reach(shape[x_spec[k + 2]], conv.lhs_dilation[k]) + spread - inner - low))
    groups, of_batches = product(conv.groups), conv.groups[1]
    kernel = reverse(rhs, axes=tuple(w_spec[2:]))
    kernel, spec = _features_swapped(kernel, w_spec, groups)
    back = Conv(conv.lhs_dilation, tuple(padding), conv.strides, conv.rhs_dilation, (y_spec, spec, x_spec), (groups, 1))
    cotangent = conv_general_dilated(ct, kernel, **fields_of(back))
    return _groups_moved(cotangent, x_spec[1], x_spec[0], of_batches)


def _features_swapped(kernel: Value, spec: Ints, groups: Size) -> tuple[Value, Ints]:
    """The kernel with in and out features exchanged within each group, and its axes."""
    out, inner, *spatial = spec
    return _groups_moved(kernel, out, inner, groups), (inner, out, *spatial)


def _groups_moved(x: V, source: int, target: int, groups: Size) -> V:
    """[g r] at `source` becomes r, and t at `target` becomes [g t]."""
    if groups == 1:
        return x
    shape = type_of(x).shape
    split_shape = (*shape[:source], groups, shape[source] // groups, *shape[source + 1 :])
    split = move_axis(reshape(x, shape=split_shape), source, target)
    result_shape = type_of(split).shape
    size = groups * result_shape[target + 1]
    return reshape(split, shape=(*result_shape[:target], size, *result_shape[target + 2 :]))


def _wrt_rhs(ct: Value, lhs: Value, shape: Shape, conv: Conv) -> Array:
    """The array convolved with ct: the sum runs over batches, and features take the batches'
    place.
    """
    x_spec, w_spec, y_spec = conv.specs
    sizes, results = type_of(lhs).shape, type_of(ct).shape
    padding = []
    for k in range(conv.rank):
        low = conv.padding[k][0]
        spread = reach(shape[w_spec[k + 2]], conv.rhs_dilation[k]) - 1
        window = reach(results[y_spec[k + 2]], conv.strides[k])
        extent = reach(sizes[x_spec[k + 2]], conv.lhs_dilation[k])
        padding.append((low, spread + window - extent - low))
    specs = (
        (x_spec[1], x_spec[0], *x_spec[2:]),
        (y_spec[1], y_spec[0], *y_spec[2:]),
        (w_spec[1], w_spec[0], *w_spec[2:]),
    )
    of_features, of_batches = conv.groups
    back = Conv(conv.rhs_dilation, tuple(padding), conv.lhs_dilation, conv.strides, specs, (of_batches, of_features))
    return conv_general_dilated(lhs, ct, **fields_of(back))


# --- lanes ------------------------------------------------------------------------------------


def _batch(batched: Batched, size: Size, lhs: Value, rhs: Value, **params: Any) -> tuple[Array, bool]:
    """Lanes of the array become batches, lanes of the kernel features, lanes of both groups."""
    conv = Conv(**params)
    if isinstance(size, int) and size == 0:
        return _no_lanes(batched, lhs, rhs, params), True
    (x_batch, x_feature), (w_out, _), y_spec = conv.specs[0][:2], conv.specs[1][:2], conv.specs[2]
    of_features, of_batches = conv.groups
    if batched[0] and batched[1]:
        axis = x_batch if of_batches > 1 else x_feature
        groups = (of_features, of_batches * size) if of_batches != 1 else (of_features * size, 1)
        x, w = _folded(lhs, axis, 1), _folded(rhs, w_out, 1)
        result = conv_general_dilated(x, w, **fields_of(replace(conv, groups=groups)))
        return _unfolded(result, y_spec[1], size, 1), True
    if batched[0]:
        result = conv_general_dilated(_folded(lhs, x_batch, of_batches), rhs, **params)
        return _unfolded(result, y_spec[0], size, 1), True
    groups = product(conv.groups)
    result = conv_general_dilated(lhs, _folded(rhs, w_out, groups), **params)
    return _unfolded(result, y_spec[1], size, groups), True


def _no_lanes(batched: Batched, lhs: Value, rhs: Value, params: dict[str, Any]) -> Array:
    """The result for no lanes: a convolution with zero groups does not exist."""
    types = [type_of(x).with_shape(type_of(x).shape[int(b) :]) for x, b in zip((lhs, rhs), batched)]
    one = _type_rule(*types, **params)
    return zeros_of(one.with_shape((0, *one.shape)))


def _folded(x: Value, axis: int, groups: Size) -> Array:
    """Lanes [B, …] merged into `axis`: [g, n] there becomes [g, B, n]."""
    shape = type_of(x).shape
    lanes, inner = shape[0], shape[1:]
    split_shape = (lanes, *inner[:axis], groups, inner[axis] // groups, *inner[axis + 1 :])
    split = move_axis(reshape(x, shape=split_shape), 0, axis + 1)
    return reshape(split, shape=(*inner[:axis], lanes * inner[axis], *inner[axis + 1 :]))


def _unfolded(y: Value, axis: int, lanes: Size, groups: Size) -> Array:
    """[g, B, n] in `axis` split again into lanes [B, …] and [g, n] there."""
    shape = type_of(y).shape
    inner = shape[axis] // (groups * lanes)
    split_shape = (*shape[:axis], groups, lanes, inner, *shape[axis + 1 :])
    lanes_first = move_axis(reshape(y, shape=split_shape), axis + 1, 0)
    return reshape(lanes_first, shape=(lanes, *shape[:axis], groups * inner, *shape[axis + 1 :]))


conv_general_dilated: Primitive = Primitive(
    "conv_general_dilated",
    "contraction",
    _type_rule,
    _reference,
    jvp=(
        lambda dx, x, w, y, **params: conv_general_dilated(dx, w, **params),
        lambda dw, x, w, y, **params: conv_general_dilated(x, dw, **params),
    ),
    transpose=_transpose,
    linear_in=((0,), (1,)),
    batch=_batch,
    expand=conv_expansion.expand,
    jax_names=CONV_NAMES,
    jax_form=product_form(lambda: conv_general_dilated),
)

PRIMITIVES = (conv_general_dilated,)
