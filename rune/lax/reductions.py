"""Reductions and scans along axes: sums, products, extrema, bitwise operations, any monoid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from rune import dtypes, ops, tree
from rune.array import Array
from rune.control import associative_scan
from rune.core.interpreter import type_of
from rune.core.primitive import Primitive
from rune.dims import product
from rune.errors import ArgumentError, DtypeError, ShapeError
from rune.lax import bits, elementwise
from rune.lax.arguments import given_axes
from rune.lax.movement import reshape, transpose
from rune.numpy.arguments import laid_out, value
from rune.numpy.transcendental import logaddexp
from rune.ops.conventions import distinct
from rune.ops.family import types_text
from rune.sharding.shardings import Sharding
from rune.transforms.batching.vmap import vmap
from rune.tree import TreeDef
from rune.typing import ArrayLike, DTypeLike

_TEXT = """{doc}

    Shapes: [*S] -> [*S] without the axes, which count from the front or the end.
    Types:  that of `operand`.
    Errors: ArgumentError if an argument is not an array or the axes are not a tuple; AxisError for
            one that is out of range; DtypeError for {rejects}.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.{name}(rnp.array({example}), (1,))
    {result}
    """

T = TypeVar("T")  # an array, or a tree of arrays


def _reduction(name: str, primitive: Callable[..., Array], doc: str, example: str, result: str, rejects: str) -> Any:
    def function(operand: ArrayLike, axes: Sequence[int], *, out_sharding: Sharding | None = None) -> Array:
        x = value(name, operand)
        return laid_out(primitive(x, axes=given_axes(name, x, axes)), out_sharding)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _TEXT.format(name=name, doc=doc, example=example, result=result, rejects=rejects)
    return function


_FLOATS, _WHOLE, _BOOLS = "[[1.0, 3.0]]", "[[6, 3]]", "[[True, False]]"
reduce_sum = _reduction(
    "reduce_sum",
    ops.reduce_sum,
    "The sum over axes, in the operand's dtype.",
    _FLOATS,
    "Array([4.], f32[1], cpu:0)",
    "bools",
)
reduce_prod = _reduction(
    "reduce_prod", ops.reduce_prod, "The product over axes.", _FLOATS, "Array([3.], f32[1], cpu:0)", "bools"
)
reduce_max = _reduction(
    "reduce_max",
    ops.reduce_max,
    "The greatest over axes; NaN where there is one.",
    _FLOATS,
    "Array([3.], f32[1], cpu:0)",
    "complex numbers",
)
reduce_min = _reduction(
    "reduce_min",
    ops.reduce_min,
    "The least over axes; NaN where there is one.",
    _FLOATS,
    "Array([1.], f32[1], cpu:0)",
    "complex numbers",
)
reduce_and = _reduction(
    "reduce_and", ops.reduce_and, "The bits that all elements have.", _WHOLE, "Array([2], i32[1], cpu:0)", "floats"
)
reduce_or = _reduction(
    "reduce_or", ops.reduce_or, "The bits that some element has.", _BOOLS, "Array([ True], bool[1], cpu:0)", "floats"
)


def _xor(x: Array, *, axes: tuple[int, ...]) -> Array:
    return reduce(x, ops.zero_like(x), bits.bitwise_xor, axes)


reduce_xor = _reduction(
    "reduce_xor", _xor, "The bits that an odd number of elements has.", _WHOLE, "Array([5], i32[1], cpu:0)", "floats"
)

# Monoids with their own primitive, by the function that combines two elements.
_KNOWN: dict[Callable[..., Array], Primitive] = {
    elementwise.add: ops.reduce_sum,
    elementwise.mul: ops.reduce_prod,
    elementwise.max: ops.reduce_max,
    elementwise.min: ops.reduce_min,
    bits.bitwise_and: ops.reduce_and,
    bits.bitwise_or: ops.reduce_or,
}


def reduce(
    operands: T,
    init_values: object,
    computation: Callable[[Array, Array], Array],
    dimensions: Sequence[int],
    *,
    out_sharding: Sharding | None = None,
) -> T:
    """All elements along `dimensions` combined, starting each result from its initial value.

    operands, init_values:  trees of the same structure; arrays of one shape, and rank-0 values
    computation:  an associative function of two trees of rank-0 values, with the initial values as
                  its neutral element: the order in which elements are combined is unspecified.
                  `lax.add`, `mul`, `max`, `min`, `bitwise_and` and `bitwise_or` become dedicated
                  reductions; any other function is applied to halves of the arrays, log2(size)
                  times.
    out_sharding: the sharding of the result; None leaves the choice to rune.
    Shapes: operands [*S], init_values [] -> [*S] without `dimensions`. Types: those of operands.
    Errors: ArgumentError if an argument is not an array; AxisError for an axis out of range.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.reduce(rnp.arange(1.0, 5.0), 1.0, lambda x, y: x * y, (0,))
    Array(24., f32[], cpu:0)
    """
    leaves, treedef = tree.flatten(operands)
    firsts = tree.leaves(init_values)
    if not leaves or len(firsts) != len(leaves):
        raise ArgumentError(f"reduce: cannot reduce {len(leaves)} arrays with {len(firsts)} initial values")
    xs = [value("reduce", x) for x in leaves]
    starts = [ops.cast(value("reduce", f), type_of(x).dtype) for f, x in zip(firsts, xs)]
    axes = given_axes("reduce", xs[0], dimensions)
    if any(type_of(x).shape != type_of(xs[0]).shape for x in xs):
        types = types_text([type_of(x) for x in xs])
        raise ShapeError(f"reduce: cannot reduce {types} together (shapes differ)")
    known = _KNOWN.get(computation) if len(xs) == 1 else None
    if known is not None:
        return laid_out(tree.unflatten(treedef, [computation(known(xs[0], axes=axes), starts[0])]), out_sharding)
    totals = _folded(_over_arrays(computation, treedef), [_rows(x, axes) for x in xs], starts)
    return laid_out(tree.unflatten(treedef, totals), out_sharding)


def _rows(x: Array, axes: tuple[int, ...]) -> Array:
    """The reduced axes merged into one, in front."""
    shape = type_of(x).shape
    other_axes = tuple(a for a in range(len(shape)) if a not in axes)
    reduced_first = transpose(x, (*axes, *other_axes))
    return reshape(reduced_first, (product(shape[a] for a in axes), *(shape[a] for a in other_axes)))


def _over_arrays(computation: Callable[..., Array], treedef: TreeDef) -> Callable[..., list[Array]]:
    """The function of scalars, as a function of two flat lists of whole arrays."""

    def combine(first: Sequence[ArrayLike], second: Sequence[ArrayLike]) -> list[Array]:
        shape = type_of(first[0]).shape

        def one(*leaves: ArrayLike) -> list[Array]:
            half = len(leaves) // 2
            a, b = (tree.unflatten(treedef, x) for x in (leaves[:half], leaves[half:]))
            return tree.leaves(computation(a, b))

        flat = [reshape(x, (product(shape),)) for x in (*first, *second)]
        return [reshape(x, shape) for x in vmap(one)(*flat)]

    return combine


def _folded(combine: Callable[..., list[Array]], rows: list[Array], starts: list[Array]) -> list[Any]:
    """Halves combined until one row is left, which is combined with the initial values."""
    shape = type_of(rows[0]).shape[1:]
    initial = [ops.fit(s, shape) for s in starts]
    count = type_of(rows[0]).shape[0]
    while count > 1:
        half = count // 2
        pairs = combine([x[:half] for x in rows], [x[half : 2 * half] for x in rows])
        remainder = [x[2 * half :] for x in rows]
        rows = [ops.concatenate(m, r, axis=0) for m, r in zip(pairs, remainder, strict=True)]
        count -= half
    return combine(initial, [x[0] for x in rows]) if count else initial


def _arg(name: str, primitive: Primitive, which: str, result: str) -> Callable[..., Array]:
    def function(operand: Array, axis: int, index_dtype: DTypeLike) -> Array:
        x = value(name, operand)
        (place,) = given_axes(name, x, (axis,))
        return primitive(x, axis=place, dtype=dtypes.as_dtype(index_dtype))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""The first position of the {which} along an axis, or of a NaN.

    Shapes: [*S] -> [*S] without the axis. Types: index_dtype.
    Errors: ArgumentError if an argument is not an array; AxisError for an axis out of range;
            ShapeError for no elements.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.{name}(rnp.array([1.0, 3.0, 0.0]), 0, "i32")
    Array({result}, i32[], cpu:0)
    """
    return function


argmax = _arg("argmax", ops.argmax, "greatest", "1")
argmin = _arg("argmin", ops.argmin, "least", "2")


# --- cumulative -------------------------------------------------------------------------------


def _cumulative(name: str, primitive: Primitive, quantity: str, result: str, rejects: str) -> Callable[..., Array]:
    def function(operand: Array, axis: int = 0, reverse: bool = False) -> Array:
        x = value(name, operand)
        (place,) = given_axes(name, x, (axis,))
        return primitive(x, axis=place, reverse=bool(reverse))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""The {quantity} of all elements up to each one; `reverse`: from each one on.

    Shapes: any, unchanged. Types: that of `operand`.
    Errors: ArgumentError if an argument is not an array; AxisError for an axis out of range;
            DtypeError for {rejects}.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.{name}(rnp.array([1.0, 3.0, 2.0]))
    Array({result}, f32[3], cpu:0)
    """
    return function


cumsum = _cumulative("cumsum", ops.cumsum, "sum", "[1., 4., 6.]", "bools")
cumprod = _cumulative("cumprod", ops.cumprod, "product", "[1., 3., 6.]", "bools")
cummax = _cumulative("cummax", ops.cummax, "greatest", "[1., 3., 3.]", "complex numbers")
cummin = _cumulative("cummin", ops.cummin, "least", "[1., 1., 1.]", "complex numbers")


def cumlogsumexp(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """log of the sum of exp of all elements up to each one, without intermediate overflow.

    Shapes: any, unchanged.
    Types:  floating or complex, that of `operand`.
    Errors: ArgumentError if an argument is not an array; DtypeError for bools and integers;
            AxisError for an axis out of range.

    >>> from rune import lax
    >>> import rune.numpy as rnp
    >>> lax.cumlogsumexp(rnp.zeros(2)).round(4)
    Array([0.    , 0.6931], f32[2], cpu:0)
    """
    x = value("cumlogsumexp", operand)
    if type_of(x).dtype not in dtypes.INEXACT:
        raise DtypeError(f"cumlogsumexp: cannot take {type_of(x)} (floating or complex required)")
    return distinct(associative_scan(logaddexp, x, reverse=bool(reverse), axis=axis), operand)
