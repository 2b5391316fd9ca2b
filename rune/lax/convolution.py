"""Convolutions under the names of jax.lax, over one primitive (ops/convolution.py).

Layouts are named by `dimension_numbers`: a ConvDimensionNumbers, three strings such as
("NHWC", "HWIO", "NHWC") (batch N, features C, input and output features I and O, any other letters
for spatial axes), or None for NCHW, OIHW, NCHW. Precision arguments are accepted and change
nothing: the products of f32 are f32 everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import rune.numpy as rnp
from rune import dtypes, ops
from rune.array import Array
from rune.core.types import Shape
from rune.dims import Size
from rune.errors import ArgumentError
from rune.lax.conv_layouts import ConvDimensionNumbers, conv_dimension_numbers, ints, pads_of
from rune.ops.sliding import reach, window_count
from rune.typing import ArrayLike, DTypeLike

Pads = Sequence[tuple[Size, Size]]


# --- convolutions -----------------------------------------------------------------------------


def _operands(lhs: ArrayLike, rhs: ArrayLike, element_type: DTypeLike | None) -> tuple[Array, Array]:
    """Both operands in the dtype of the result, or in the wider `preferred` one."""
    lhs, rhs = rnp.asarray(lhs), rnp.asarray(rhs)
    dtype = rnp.result_type(lhs, rhs) if element_type is None else dtypes.as_dtype(element_type)
    return rnp.astype(lhs, dtype), rnp.astype(rhs, dtype)


def conv_general_dilated(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Pads,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: object = None,
) -> Array:
    """Sums of products of the windows of `lhs` with the kernel `rhs`, which is not flipped.

    Shapes: lhs [N, C, *S], rhs [O, C / feature_group_count, *K] -> [N / batch_group_count, O, *T],
            axes in the order that `dimension_numbers` names.
    padding: "SAME", "SAME_LOWER", "VALID", or (low, high) per spatial axis; negative ones crop.
    lhs_dilation, rhs_dilation: the distance between elements of the array and of the kernel, with
            zeros between. Unlike padding zeros, these are never multiplied: an infinite weight
            makes no NaN (as long as the product of lhs_dilation is at most 16).
    Types:  one numeric dtype; operands are converted to `preferred_element_type`. Half types
            accumulate in f32.
    Errors: ArgumentError or ShapeError for inconsistent parameters.
    Source: the definition of XLA's ConvGeneralDilated; derivatives in ops/convolution.py.

    >>> import rune, rune.numpy as rnp
    >>> x, w = rnp.arange(4.0).reshape(1, 1, 4), rnp.ones((1, 1, 2))
    >>> rune.lax.conv_general_dilated(x, w, (1,), "VALID")
    Array([[[1., 3., 5.]]], f32[1,1,3], cpu:0)
    """
    name = "conv_general_dilated"
    lhs, rhs = _operands(lhs, rhs, preferred_element_type)
    numbers = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    rank = lhs.ndim - 2
    strides = ints(name, "strides", window_strides, rank)
    lhs_gaps = ints(name, "lhs_dilation", lhs_dilation, rank)
    rhs_gaps = ints(name, "rhs_dilation", rhs_dilation, rank)
    spread = [reach(lhs.shape[a], d) for a, d in zip(numbers.lhs_spec[2:], lhs_gaps, strict=True)]
    window = [reach(rhs.shape[a], d) for a, d in zip(numbers.rhs_spec[2:], rhs_gaps, strict=True)]
    if isinstance(padding, str) and padding.upper() != "VALID" and any(d != 1 for d in lhs_gaps):
        raise ArgumentError(
            f"{name}: cannot pad by {padding!r} with lhs_dilation {lhs_gaps} (the size of the output is ambiguous)",
            hint="use conv_transpose, or pairs of numbers",
        )
    return ops.conv_general_dilated(
        lhs,
        rhs,
        strides=strides,
        padding=pads_of(name, padding, spread, window, strides),
        lhs_dilation=lhs_gaps,
        rhs_dilation=rhs_gaps,
        specs=tuple(map(tuple, numbers)),
        groups=(feature_group_count, batch_group_count),
    )


def conv(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """`conv_general_dilated` in the order NCHW, OIHW with neither dilation nor groups.

    Shapes: lhs [N, C, *S], rhs [O, C, *K] -> [N, O, *T].
    Types:  numeric, promoted together.
    Errors: ArgumentError for an unknown `padding`; DtypeError if an argument is not an array;
            ShapeError if the shapes do not match.

    >>> import rune, rune.numpy as rnp
    >>> rune.lax.conv(rnp.ones((1, 1, 3)), rnp.ones((1, 1, 2)), (1,), "SAME")
    Array([[[2., 2., 1.]]], f32[1,1,3], cpu:0)
    """
    return conv_general_dilated(lhs, rhs, window_strides, padding, preferred_element_type=preferred_element_type)


def conv_with_general_padding(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Pads,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """`conv_general_dilated` in the order NCHW, OIHW without groups.

    Shapes: lhs [N, C, *S], rhs [O, C, *K] -> [N, O, *T].
    Types:  numeric, promoted together.
    Errors: DtypeError if an argument is not an array; ShapeError if the shapes do not match.

    >>> import rune, rune.numpy as rnp
    >>> x, w = rnp.ones((1, 1, 2)), rnp.ones((1, 1, 2))
    >>> rune.lax.conv_with_general_padding(x, w, (1,), ((1, 1),), (2,), (1,))
    Array([[[1., 1., 1., 1.]]], f32[1,1,4], cpu:0)
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, preferred_element_type=preferred_element_type
    )


# --- transposed -------------------------------------------------------------------------------


def conv_transpose(
    lhs: ArrayLike,
    rhs: ArrayLike,
    strides: Sequence[int],
    padding: str | Pads,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    transpose_kernel: bool = False,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    use_consistent_padding: bool = False,
) -> Array:
    """Upsampling: a convolution over an array whose elements are spread `strides` apart.

    dimension_numbers: None means channels last, ("NHWC", "HWIO", "NHWC") and the like.
    transpose_kernel:  the kernel is flipped and its features swapped, so that the result is the
                       gradient of a convolution with that kernel.
    padding: a name stands for the padding of the convolution that this one undoes. Pairs pad the
             input of this one or, with `use_consistent_padding`, belong to the undone convolution.
    Source: Zeiler et al. 2010, Deconvolutional networks; sizes as in arXiv:1603.07285.
    Shapes: lhs [N, *S, C], rhs [*K, C, O] -> [N, *T, O], or as `dimension_numbers` says.
    Types:  numeric, promoted together.
    Errors: ArgumentError for an unknown `padding`; DtypeError if an argument is not an array;
            ShapeError if the shapes do not match.

    >>> import rune, rune.numpy as rnp
    >>> x, w = rnp.ones((1, 2, 1)), rnp.ones((2, 1, 1))
    >>> rune.lax.conv_transpose(x, w, (2,), "VALID").reshape(-1)
    Array([1., 1., 1., 1.], f32[4], cpu:0)
    """
    lhs, rhs = _operands(lhs, rhs, preferred_element_type)
    rank = lhs.ndim - 2
    layout = _channels_last(rank) if dimension_numbers is None else dimension_numbers
    numbers = conv_dimension_numbers(lhs.shape, rhs.shape, layout)
    strides = ints("conv_transpose", "strides", strides, rank)
    dilation = ints("conv_transpose", "rhs_dilation", rhs_dilation, rank)
    sizes = [reach(rhs.shape[a], d) for a, d in zip(numbers.rhs_spec[2:], dilation, strict=True)]
    if isinstance(padding, str):
        pads = [_undone(k, s, padding) for k, s in zip(sizes, strides, strict=True)]
    elif use_consistent_padding:
        pads = [(k - 1 - lo, k - 1 - hi) for k, (lo, hi) in zip(sizes, padding, strict=True)]
    else:
        pads = padding
    if transpose_kernel:
        rhs = rnp.flip(rhs, tuple(numbers.rhs_spec[2:]))
        out, inner, *spatial = numbers.rhs_spec
        numbers = numbers._replace(rhs_spec=(inner, out, *spatial))
    return conv_general_dilated(lhs, rhs, (1,) * rank, pads, strides, dilation, numbers)


def _channels_last(rank: int) -> ConvDimensionNumbers:
    outer = (0, rank + 1, *range(1, rank + 1))
    return ConvDimensionNumbers(outer, (rank + 1, rank, *range(rank)), outer)


def _undone(size: Size, stride: int, padding: str) -> tuple[Size, Size]:
    """The padding under which a convolution of one step undoes the sizes of one of `stride`."""
    word = padding.upper()
    if word == "SAME":
        total = size + stride - 2
        low = size - 1 if stride > size - 1 else -(-total // 2)
    elif word == "VALID":
        total = size + stride - 2 + max(size - stride, 0)
        low = size - 1
    else:
        raise ArgumentError(f"conv_transpose: cannot pad by {padding!r} (SAME or VALID)")
    return low, total - low


# --- patches ----------------------------------------------------------------------------------


def conv_general_dilated_patches(
    lhs: Any,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Pads,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """The windows that a convolution sees, as features: C times the elements of a window.

    Shapes: lhs [N, C, *S] -> [N, C·∏filter_shape, *T]; feature c·∏K + k is element k, row-major,
            of the window in feature c.
    Types:  that of `lhs`.
    Errors: ArgumentError for an unknown `padding`; DtypeError if an argument is not an array or is
            boolean; ShapeError for any other rank.

    >>> import rune, rune.numpy as rnp
    >>> x = rnp.arange(3.0).reshape(1, 1, 3)
    >>> rune.lax.conv_general_dilated_patches(x, (2,), (1,), "VALID")
    Array([[[0., 1.],
            [1., 2.]]], f32[1,2,2], cpu:0)
    """
    (lhs, _), filters = _operands(lhs, lhs, preferred_element_type), tuple(filter_shape)
    rank = len(filters)
    shape = (1, 1, *filters)
    if dimension_numbers is None or isinstance(dimension_numbers, ConvDimensionNumbers):
        numbers = conv_dimension_numbers(lhs.shape, shape, dimension_numbers)
    else:
        numbers = conv_dimension_numbers(lhs.shape, lhs.shape, dimension_numbers)
    features = lhs.shape[numbers.lhs_spec[1]]
    count = int(np.prod(filters))
    # Each output feature is one element of the window: a kernel with a single 1.
    kernel = rnp.eye(count, dtype=lhs.dtype).reshape(count, 1, *filters)
    kernel = rnp.tile(kernel, (features, 1, *(1,) * rank))
    order = [0] * (rank + 2)
    for role, axis in enumerate(numbers.rhs_spec):
        order[axis] = role
    return conv_general_dilated(
        lhs,
        rnp.transpose(kernel, order),
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        numbers,
        feature_group_count=features,
    )


def conv_general_dilated_local(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Pads,
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: object = None,
) -> Array:
    """A convolution with a separate kernel for every position of the result.

    Shapes: lhs [N, C, *S], rhs [O, C·∏filter_shape, *T] -> [N, O, *T], features of the kernel in
            the order of `conv_general_dilated_patches`.
    Types:  bools and integers become floats.
    Errors: ArgumentError for an unknown `padding`; DtypeError if an argument is not an array;
            ShapeError if the shapes do not match.

    >>> import rune, rune.numpy as rnp
    >>> x, w = rnp.ones((1, 1, 3)), rnp.array([[[1.0, 2.0], [1.0, 2.0]]])
    >>> rune.lax.conv_general_dilated_local(x, w, (1,), "VALID", (2,))
    Array([[[2., 4.]]], f32[1,1,2], cpu:0)
    """
    lhs, rhs = _operands(lhs, rhs, None)
    numbers = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    patches = conv_general_dilated_patches(
        lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, numbers
    )
    out = ops.dot_general(  # [*T, N, O]
        rnp.transpose(patches, (*numbers.out_spec[2:], *numbers.out_spec[:2])),
        rnp.transpose(rhs, (*numbers.rhs_spec[2:], *numbers.rhs_spec[:2])),
        dimension_numbers=_local_numbers(lhs.ndim - 2),
    )
    rank = lhs.ndim - 2
    order = [0] * (rank + 2)
    for axis, place in zip(numbers.out_spec, (rank, rank + 1, *range(rank)), strict=True):
        order[axis] = place
    return rnp.transpose(out, order)


def _local_numbers(rank: int) -> Any:
    spatial = tuple(range(rank))
    return ((rank + 1,), (rank + 1,)), (spatial, spatial)


# --- shapes -----------------------------------------------------------------------------------


def conv_shape_tuple(
    lhs_shape: Sequence[Size],
    rhs_shape: Sequence[Size],
    strides: Sequence[int],
    pads: object,
    batch_group_count: int = 1,
) -> Shape:
    """The shape of a convolution in the order NCHW, OIHW.

    Errors: ArgumentError for invalid `pads`.

    >>> import rune
    >>> rune.lax.conv_shape_tuple((1, 3, 8, 8), (4, 3, 3, 3), (1, 1), "SAME")
    (1, 4, 8, 8)
    """
    pairs = pads_of("conv_shape_tuple", pads, lhs_shape[2:], rhs_shape[2:], strides)
    spatial = (
        window_count(size + lo + hi, window, stride, 1)
        for size, window, stride, (lo, hi) in zip(lhs_shape[2:], rhs_shape[2:], strides, pairs, strict=True)
    )
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *spatial)


def conv_general_shape_tuple(
    lhs_shape: Sequence[Size],
    rhs_shape: Sequence[Size],
    window_strides: Sequence[int],
    padding: object,
    dimension_numbers: Any,
) -> Shape:
    """The shape of a convolution whose axes `dimension_numbers` names.

    Errors: ArgumentError for an unknown `padding`.

    >>> import rune
    >>> layout = ("NWC", "WIO", "NWC")
    >>> rune.lax.conv_general_shape_tuple((1, 8, 3), (3, 3, 4), (2,), "VALID", layout)
    (1, 3, 4)
    """
    numbers = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    lhs, rhs = ([s[a] for a in spec] for s, spec in zip((lhs_shape, rhs_shape), numbers))
    shape = conv_shape_tuple(lhs, rhs, window_strides, padding)
    return tuple(shape[list(numbers.out_spec).index(a)] for a in range(len(shape)))


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[Size],
    rhs_shape: Sequence[Size],
    window_strides: Sequence[int],
    padding: object,
    dimension_numbers: Any,
) -> Shape:
    """The shape of `conv_transpose`, axes named by `dimension_numbers`.

    Errors: ArgumentError for an unknown `padding`.

    >>> import rune
    >>> layout = ("NWC", "WIO", "NWC")
    >>> rune.lax.conv_transpose_shape_tuple((1, 8, 3), (3, 3, 4), (2,), "SAME", layout)
    (1, 16, 4)
    """
    numbers = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    lhs, rhs = ([s[a] for a in spec] for s, spec in zip((lhs_shape, rhs_shape), numbers))
    pairs = padding
    if isinstance(padding, str):
        pairs = [_undone(k, s, padding) for k, s in zip(rhs[2:], window_strides, strict=True)]
    spread = [reach(size, s) for size, s in zip(lhs[2:], window_strides, strict=True)]
    shape = conv_shape_tuple([*lhs[:2], *spread], rhs, (1,) * len(spread), pairs)
    return tuple(shape[list(numbers.out_spec).index(a)] for a in range(len(shape)))
