"""reduce_window under jax.lax's name, and sums, products and extrema of windows by name.

A monoid is recognised by the function that combines two elements: one of rune.numpy, rune.lax or
`operator`, or any that traces to one of these operations. Any other associative function is folded
over the elements of the windows, by halves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

import rune.numpy as rnp
from rune import ops, tree
from rune.array import Array
from rune.core.types import ArrayType, Shape
from rune.dims import Size
from rune.errors import ArgumentError
from rune.lax.conv_layouts import pads_of
from rune.lax.convolution import Pads
from rune.numpy.arguments import static_ints, static_sizes
from rune.ops.sliding import reach, windows
from rune.ops.window_reductions import MONOIDS, Slide, counts, fields_of
from rune.transforms.programs.make_program import make_program
from rune.tree import TreeDef
from rune.typing import ArrayLike

NAMES = {"add": "add", "mul": "mul", "max": "max", "min": "min", "logical_and": "and", "logical_or": "or"}


def reduce_window(
    operand: object,
    init_value: ArrayLike,
    computation: Callable[..., object],
    window_dimensions: Sequence[Size],
    window_strides: Sequence[int] | None = None,
    padding: str | Pads = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Array:
    """Every window of `operand` combined to one element by an associative `computation`.

    Shapes: operand [*D] -> the number of windows along each axis; `operand` and `init_value` may
            be trees, whose leaves are then combined together.
    Types:  that of `operand`.
    init_value: the start value of each window. Padding adds nothing for the known operations; for
            any other function it consists of elements equal to init_value.
    padding: "SAME", "SAME_LOWER", "VALID", or (low, high) per axis; a name stands for the padding
             of `operand` without its `base_dilation`.
    Errors: ArgumentError or ShapeError for inconsistent parameters.

    >>> import rune, rune.numpy as rnp
    >>> rune.lax.reduce_window(rnp.arange(5.0), 0.0, rnp.add, (2,), (2,))
    Array([1., 5.], f32[2], cpu:0)
    """
    leaves, treedef = tree.flatten(operand)
    arrays = [rnp.asarray(x) for x in leaves]
    if treedef != tree.structure(init_value):
        raise ArgumentError(
            f"reduce_window: cannot start windows of {treedef} from {tree.structure(init_value)} (trees differ)",
            hint="a list is a tree of its elements; rune.numpy.array(...) makes an array of it",
        )
    starts = tree.leaves(init_value)
    inits = [rnp.astype(rnp.asarray(v), x.dtype) for v, x in zip(starts, arrays, strict=True)]
    slide = slide_of(arrays[0].shape, window_dimensions, window_strides, padding, base_dilation, window_dilation)
    combine = _monoid(computation, arrays[0]) if len(arrays) == 1 else None
    if combine is not None:
        # The operation starts from its identity; any other start is combined with the result.
        results = [ops.reduce_window(arrays[0], combine=combine, **fields_of(slide))]
        if not _is_identity(inits[0], combine):
            results = [computation(rnp.broadcast_to(inits[0], results[0].shape), results[0])]
    else:
        results = _folded(arrays, inits, _on_leaves(computation, treedef), slide)
    return tree.unflatten(treedef, results)


def slide_of(
    shape: Shape,
    window: Sequence[Size],
    strides: Sequence[int] | None,
    padding: object,
    base_dilation: Sequence[int] | None,
    window_dilation: Sequence[int] | None,
) -> Slide:
    """The parameters by axis. Errors: ArgumentError unless there is one for each axis."""
    unit = (1,) * len(shape)
    sizes = static_sizes("reduce_window", "a window", window)
    steps, base, dilation = (
        unit if v is None else static_ints("reduce_window", "a stride or a dilation", v)
        for v in (strides, base_dilation, window_dilation)
    )
    if any(len(values) != len(shape) for values in (sizes, steps, base, dilation)):
        raise ArgumentError(
            f"reduce_window: cannot slide {sizes} over {len(shape)} axes (strides {steps}, "
            f"dilations {base} and {dilation}; one number per axis required)"
        )
    spans = [reach(k, d) for k, d in zip(sizes, dilation, strict=True)]
    # A name stands for the padding of the array as it is, before `base_dilation` spreads it.
    pads = pads_of("reduce_window", padding, shape, spans, steps)
    return Slide(sizes, steps, pads, base, dilation)


def _monoid(computation: Callable[..., object], like: Array) -> str | None:
    """The name of the operation that `computation` performs, or None."""
    scalar = ArrayType((), like.dtype)
    program = make_program(computation)(scalar, scalar)
    if len(program.equations) != 1:
        return None
    (equation,) = program.equations
    name = NAMES.get(equation.primitive.name)
    is_plain = set(equation.operands) == set(program.inputs)
    is_result = program.outputs == equation.results
    return name if is_plain and is_result else None


def _is_identity(value: ArrayLike, combine: str) -> bool:
    """Whether a known value is the monoid's identity."""
    if not hasattr(value, "__array__"):
        return False
    try:
        known = np.asarray(value)
    except TypeError:  # traced: its value is not known
        return False
    return bool(known == np.asarray(MONOIDS[combine].identity(known.dtype)).astype(known.dtype))


def _on_leaves(computation: Callable[..., object], treedef: TreeDef) -> Callable[..., list[Array]]:
    def combine(first: list[Array], second: list[Array]) -> list[Array]:
        result = computation(tree.unflatten(treedef, first), tree.unflatten(treedef, second))
        return tree.leaves(result)

    return combine


def _folded(arrays: list[Array], inits: list[Array], combine: Callable[..., list[Array]], slide: Slide) -> list[Array]:
    """All elements of the windows along one axis, combined by halves."""
    ndim = len(slide.window)
    axes = tuple(range(ndim))
    rows = []
    for x, init in zip(arrays, inits, strict=True):
        source = ops.pad(x, init, **slide.pads)
        views = windows(source, axes, slide.window, slide.strides, slide.window_dilation)
        rows.append(rnp.reshape(views, (*counts(x.shape, slide), -1)))
    # Neighbours are combined, never elements further apart: `computation` need not commute.
    while rows[0].shape[-1] > 1:
        half = rows[0].shape[-1] // 2
        pairs = combine([x[..., : 2 * half : 2] for x in rows], [x[..., 1 : 2 * half : 2] for x in rows])
        rows = [rnp.concatenate([p, x[..., 2 * half :]], -1) for p, x in zip(pairs, rows, strict=True)]
    starts = [rnp.broadcast_to(v, x.shape[:-1]) for v, x in zip(inits, rows, strict=True)]
    return combine(starts, [x[..., 0] for x in rows])


def reduce_window_shape_tuple(
    operand_shape: Shape,
    window_dimensions: Sequence[Size],
    window_strides: Sequence[int],
    padding: object,
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Shape:
    """The shape of `reduce_window`.

    Errors: ArgumentError for an unknown `padding`.

    >>> import rune
    >>> rune.lax.reduce_window_shape_tuple((5, 5), (2, 2), (2, 1), "VALID")
    (2, 4)
    """
    shape = tuple(operand_shape)
    return counts(shape, slide_of(shape, window_dimensions, window_strides, padding, base_dilation, window_dilation))
