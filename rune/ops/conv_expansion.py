"""A convolution as matrix products over views: the expansion of conv_general_dilated.

Windows are a view of the padded array (sliding.py), and the sum is a dot_general over the kernel's
axes and the input features. The order of the operands and of the sum is chosen so that neighbours
in the array's memory are neighbours in the product.

The zeros between the elements of a dilated array (in a transposed convolution, or the derivative of
a strided one) are never multiplied. Along an axis with dilation d, the outputs o, o + P, … (where P
= d / gcd(stride, d)) use the same elements of the kernel: those k for which o·stride + k·dilation -
low is divisible by d. Each such phase is a convolution without dilation, and the phases' results
are interleaved.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rune.core.interpreter import type_of
from rune.core.types import Shape
from rune.core.values import Value
from rune.dims import Size, product
from rune.ops.arithmetic import convert, mul, zero_like
from rune.ops.contraction import dot_general
from rune.ops.conv_parameters import Conv, Ints, arranged, counts, pick
from rune.ops.family import broadcast, reduce_sum, reshape, wide, zeros_of
from rune.ops.memory import in_memory
from rune.ops.movement import concatenate, inverse, move_axis, pad, slice_, transpose
from rune.ops.sliding import reach, windows
from rune.records import dataclass

if TYPE_CHECKING:
    from rune.array import Array

FEW = 4  # groups of at most this many outputs would make matrix products too narrow
PHASES = 16  # with more phases, their code costs more than multiplying the zeros


def expand(lhs: Value, rhs: Value, **params: Any) -> Array:
    """The convolution in products and movements."""
    conv = Conv(**params)
    phases = phases_of(type_of(lhs).shape, type_of(rhs).shape, conv)
    return _direct(lhs, rhs, conv) if phases is None else _interleaved(lhs, rhs, conv, phases)


# --- without gaps -----------------------------------------------------------------------------


def _transposed(x: Value, permutation: Ints) -> Any:
    return x if permutation == tuple(range(len(permutation))) else transpose(x, permutation=permutation)


def _grouped(x: Value, axis: int, groups: Size) -> Array:
    """`x` with `axis` split into groups; the axis of groups comes first."""
    shape = type_of(x).shape
    shape_of_groups = (*shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :])
    return move_axis(reshape(x, shape=shape_of_groups), axis, 0)


def _direct(lhs: Value, rhs: Value, conv: Conv) -> Array:
    if conv.is_padded:  # stored in the array's own order
        pads = {name: arranged(values, conv.specs[0]) for name, values in conv.pads.items()}
        lhs = pad(lhs, zero_like(lhs), **pads)
        # Every output reads it again: a copy costs less than testing for the edges at each read.
        lhs = lhs if _is_few(type_of(rhs).shape[conv.specs[1][0]]) else in_memory(lhs)
    x, w = _transposed(lhs, conv.specs[0]), _transposed(rhs, conv.specs[1])
    groups = product(conv.groups)
    if groups != 1:  # x [g, n, c, *S], w [g, o, c, *K]
        x = _grouped(x, 0 if conv.groups[1] != 1 else 1, groups)
        w = _grouped(w, 0, groups)
    lead = int(groups != 1)
    axes = tuple(range(2 + lead, 2 + lead + conv.rank))
    sizes = type_of(w).shape[2 + lead :]
    patches = windows(x, axes, sizes, conv.strides, conv.rhs_dilation)
    return _product(patches, w, conv, lead)


def _product(patches: Value, w: Value, conv: Conv, lead: int) -> Array:
    """The dot of patches [g?, n, c, *O, *K] with w [g?, o, c, *K], computed in the order of axes
    nearest to that of the result, and then transposed to the result's.
    """
    batch, feature, *spatial = conv.specs[2]
    rank, first = conv.rank, min(spatial, default=len(conv.specs[2]))
    is_alone = lead and type_of(w).shape[2] == 1 and _is_few(type_of(w).shape[1])
    if is_alone and feature == rank + 1:
        return _one_by_one(patches, w, conv)
    inner = (1 + lead, *range(2 + lead + rank, 2 + lead + 2 * rank))  # c, *K of the patches
    of_kernel = tuple(range(1 + lead, 2 + lead + rank))  # c, *K of w
    last = len(conv.specs[0]) - 1
    if conv.specs[0][1] == last:  # features lie side by side: the sum runs over them first
        inner, of_kernel = (*inner[1:], inner[0]), (*of_kernel[1:], of_kernel[0])
    group = tuple(range(lead))
    if batch < feature < first:
        return _batch_first(patches, w, conv, lead, inner, of_kernel)
    if conv.specs[0][0] == last:  # batches lie side by side: columns run over them first
        columns = move_axis(patches, lead, lead + rank + 1)  # [g?, c, *O, n, *K]
        numbers = ((of_kernel, (*(a - (a == 1 + lead) for a in inner),)), (group, group))
        product = dot_general(w, columns, dimension_numbers=numbers)  # [g?, o, *O, n]
        roles = (1 + rank, 0, *range(1, 1 + rank))  # where n, o, *O stand
    elif feature < first:
        numbers = ((of_kernel, inner), (group, group))
        product = dot_general(w, patches, dimension_numbers=numbers)  # [g?, o, n, *O]
        roles = (1, 0, *range(2, 2 + rank))
    else:
        numbers = ((inner, of_kernel), (group, group))
        product = dot_general(patches, w, dimension_numbers=numbers)  # [g?, n, *O, o]
        roles = (0, 1 + rank, *range(1, 1 + rank))
    return _placed(product, lead, roles, conv.specs[2])


def _is_few(size: Size) -> bool:
    return isinstance(size, int) and size <= FEW


def _one_by_one(patches: Value, w: Value, conv: Conv) -> Array:
    """Groups of one input feature (depthwise), adjacent in memory: a sum over the window alone.

    Shapes: patches [g, n, 1, *O, *K], w [g, o, 1, *K].
    """
    rank = conv.rank
    g, o, _, *kernel = type_of(w).shape
    n, spatial_sizes = type_of(patches).shape[1], type_of(patches).shape[3 : 3 + rank]
    # Axes are numbered by role: 0 is n, 1 is g, 2 is o, then come *O and *K.
    order: list[int] = []
    for role in inverse(conv.specs[2]):
        order += [1, 2] if role == 1 else [role + 1 if role else 0]
    order += range(3 + rank, 3 + 2 * rank)
    sizes = (n, g, o, *spatial_sizes, *kernel)
    shape = tuple(sizes[role] for role in order)
    spatial = tuple(range(3, 3 + 2 * rank))
    array, taps = (reshape(patches, shape=(g, n, *spatial_sizes, *kernel)), reshape(w, shape=(g, o, *kernel)))
    array = _spread_by_role(array, (1, 0, *spatial), order, shape)
    taps = _spread_by_role(taps, (1, 2, *spatial[rank:]), order, shape)
    dtype, ndim = type_of(w).dtype, len(order)
    array, taps = (convert(x, dtype=wide(dtype)) for x in (array, taps))
    sums = reduce_sum(mul(array, taps), axes=tuple(range(ndim - rank, ndim)))
    result_shape = arranged((n, g * o, *spatial_sizes), conv.specs[2])
    return reshape(convert(sums, dtype=dtype), shape=result_shape)


def _spread_by_role(x: Value, roles: Ints, order: Sequence[int], shape: Shape) -> Value:
    """`x`, whose axes have these `roles`, with axes in the order of `order`, broadcast along
    missing roles.
    """
    present = [role for role in order if role in roles]
    ordered = _transposed(x, tuple(roles.index(role) for role in present))
    return broadcast(ordered, shape=shape, axes=tuple(order.index(role) for role in present))


def _batch_first(patches: Value, w: Value, conv: Conv, lead: int, inner: Ints, of_kernel: Ints) -> Array:
    """[n, g?, o, *O]: one product for each batch, all of which share the kernel."""
    batches, ndim = type_of(patches).shape[lead], type_of(w).ndim
    shape = (batches, *type_of(w).shape)
    kernels = broadcast(w, shape=shape, axes=tuple(range(1, ndim + 1)))
    at = ((0, *range(1, 1 + lead)), (lead, *range(lead)))
    numbers = ((tuple(a + 1 for a in of_kernel), inner), at)
    product = dot_general(kernels, patches, dimension_numbers=numbers)
    if lead:
        n, g, o, *spatial = type_of(product).shape
        product = reshape(product, shape=(n, g * o, *spatial))
    return _transposed(product, inverse(conv.specs[2]))


def _placed(product: Value, lead: int, roles: Ints, spec: Ints) -> Array:
    """[g?, …] in the axis order of `spec`, groups merged into the features; `roles` names the axes
    after the groups.
    """
    if lead:
        feature = roles[1]
        product = move_axis(product, 0, feature)
        shape = type_of(product).shape
        size = shape[feature] * shape[feature + 1]
        product = reshape(product, shape=(*shape[:feature], size, *shape[feature + 2 :]))
    return _transposed(product, tuple(roles[k] for k in inverse(spec)))


# --- gaps -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Phase:
    """Along one axis, the convolution for the outputs first, first + P, …: it uses `taps` elements
    of the kernel, from `tap` on, `apart` from each other, with `padding`. Without taps its result
    is zero.
    """

    tap: int
    apart: int
    taps: int
    stride: int
    dilation: int
    padding: tuple[int, int]


def phases_of(lhs: Shape, rhs: Shape, conv: Conv) -> list[list[Phase]] | None:
    """The phases of each spatial axis; None if no axis is dilated, or there are too many phases."""
    if math.prod(_period(conv, k) for k in range(conv.rank)) not in range(2, PHASES + 1):
        return None
    sizes, kernel = pick(lhs, conv.specs[0])[2:], pick(rhs, conv.specs[1])[2:]
    results = counts(lhs, rhs, conv)
    numbers = (*sizes, *kernel, *results, *itertools.chain(*conv.padding))
    if not all(isinstance(d, int) for d in numbers) or 0 in (*sizes, *kernel, *results):
        return None
    return [_phases_along(conv, k, sizes[k], kernel[k], results[k]) for k in range(conv.rank)]


def _period(conv: Conv, axis: int) -> int:
    gap = conv.lhs_dilation[axis]
    return gap // math.gcd(conv.strides[axis], gap)


def _phases_along(conv: Conv, axis: int, size: Size, kernel: Any, result: Any) -> list[Phase]:
    gap, stride, dilation = (x[axis] for x in (conv.lhs_dilation, conv.strides, conv.rhs_dilation))
    low: Any = conv.padding[axis][0]
    period = _period(conv, axis)
    apart = gap // math.gcd(dilation, gap)
    step, spacing = stride * period // gap, dilation * apart // gap
    phases = []
    for first in range(period):
        at = first * stride - low
        tap = next((k for k in range(min(apart, kernel)) if (at + k * dilation) % gap == 0), kernel)
        taps = len(range(tap, kernel, apart))
        before = -((at + tap * dilation) // gap)
        extent = (-(-result // period) - 1) * step + reach(max(taps, 1), spacing)
        assert isinstance(extent, int)
        phases.append(Phase(tap, apart, taps, step, spacing, (before, extent - size - before)))
    return phases


def _interleaved(lhs: Value, rhs: Value, conv: Conv, phases: Sequence[Sequence[Phase]]) -> Any:
    """The results of all phases, [*B, q, …] each, interleaved: [*B, q, P, …] as [*B, q·P, …]."""
    parts = [_phase(lhs, rhs, conv, phase_of_axes) for phase_of_axes in itertools.product(*phases)]
    for k in reversed(range(conv.rank)):
        axis, period = conv.specs[2][k + 2], len(phases[k])
        parts = [_merged(parts[i : i + period], axis) for i in range(0, len(parts), period)]
    shape = list(type_of(parts[0]).shape)
    for axis, size in zip(conv.specs[2][2:], _results(lhs, rhs, conv), strict=True):
        shape[axis] = size
    zeros = (0,) * len(shape)
    return slice_(parts[0], start=zeros, limit=tuple(shape), stride=tuple(1 for _ in shape))


def _results(lhs: Value, rhs: Value, conv: Conv) -> Shape:
    return counts(type_of(lhs).shape, type_of(rhs).shape, conv)


def _merged(parts: Sequence[Value], axis: int) -> Array:
    """Element i of part p becomes element i·P + p."""
    shape = type_of(parts[0]).shape
    single = (*shape[: axis + 1], 1, *shape[axis + 1 :])
    interleaved_parts = concatenate(*(reshape(x, shape=single) for x in parts), axis=axis + 1)
    return reshape(interleaved_parts, shape=(*shape[:axis], shape[axis] * len(parts), *shape[axis + 1 :]))


@dataclass(frozen=True, slots=True)
class Part:
    """One phase along every axis: a convolution with a slice of the kernel, or zeros."""

    conv: Conv
    start: Ints
    limit: Shape
    stride: Ints
    is_zero: bool


def part_of(rhs: Shape, conv: Conv, phases: Sequence[Phase]) -> Part:
    """The part that combines one phase of each spatial axis."""
    part_conv = replace(
        conv,
        strides=tuple(p.stride for p in phases),
        padding=tuple(p.padding for p in phases),
        lhs_dilation=(1,) * conv.rank,
        rhs_dilation=tuple(p.dilation for p in phases),
    )
    start, limit, stride = [0] * (conv.rank + 2), list(rhs), [1] * (conv.rank + 2)
    for axis, p in zip(conv.specs[1][2:], phases, strict=True):
        start[axis], stride[axis] = (p.tap, p.apart) if p.taps else (0, 1)
        limit[axis] = limit[axis] if p.taps else 1
    is_zero = not all(p.taps for p in phases)
    return Part(part_conv, tuple(start), tuple(limit), tuple(stride), is_zero)


def _phase(lhs: Value, rhs: Value, conv: Conv, phases: Sequence[Phase]) -> Array:
    part = part_of(type_of(rhs).shape, conv, phases)
    kernel = slice_(rhs, start=part.start, limit=part.limit, stride=part.stride)
    result = _direct(lhs, kernel, part.conv)
    return zeros_of(type_of(result)) if part.is_zero else result
