"""associative_scan: all prefixes of a sequence under an associative function, in log2(n) rounds.

Source: the recursion on neighbours, Blelloch, Prefix Sums and Their Applications (1990).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from rune import tree
from rune.core.interpreter import type_of
from rune.core.values import Value
from rune.errors import ArgumentError, AxisError, TransformError
from rune.ops import concatenate, reshape
from rune.ops import reverse as reversed_axes
from rune.ops.conventions import normalised_axis
from rune.ops.movement import part
from rune.transforms.arguments import array_leaves, key_path, require_callable
from rune.transforms.tree_difference import structure_text

T = TypeVar("T")
Leaves = Sequence[Any]


def associative_scan(fn: Callable[[Any, Any], Any], elems: T, reverse: bool = False, axis: int = 0) -> T:
    """All prefixes `fn(...fn(fn(x0, x1), x2)..., xi)` of the slices of `elems` along `axis`.

    fn:       an associative function of two trees like `elems`, with any size along `axis`; it
              combines their slices pair by pair.
    elems:    a tree of arrays of equal size along `axis`.
    reverse:  suffixes instead, combined from the last slice.
    Cost:     `fn` is called 2 log2(n) times, on about 2n pairs of slices in all.

    Shapes: each leaf [*A, N, *B], with N slices along `axis` -> the same.
    Types:  those of `elems`; `fn` may not return wider ones.
    Errors: AxisError if sizes along `axis` differ; TransformError if `fn` returns another tree
            (a tuple stands for a namedtuple, or any container with as many parts);
            ArgumentError if the size is symbolic.
    Source: Blelloch, Prefix Sums and Their Applications (1990).

    >>> import rune, rune.numpy as rnp
    >>> rune.associative_scan(rnp.multiply, rnp.arange(1.0, 6.0))
    Array([  1.,   2.,   6.,  24., 120.], f32[5], cpu:0)
    """
    require_callable("associative_scan", fn)
    leaves, treedef = tree.flatten(elems)
    leaves = array_leaves("associative_scan", leaves, treedef)
    axes = [normalised_axis("associative_scan", axis, type_of(x)) for x in leaves]
    _check_sizes(leaves, axes, treedef)
    if not leaves:
        return elems

    combine = partial(_combined, fn, treedef)
    elements = [reversed_axes(x, axes=(a,)) for x, a in zip(leaves, axes)] if reverse else leaves
    prefixes = _prefixes(combine, list(elements), axes)
    if reverse:
        prefixes = [reversed_axes(x, axes=(a,)) for x, a in zip(prefixes, axes)]
    return tree.unflatten(treedef, prefixes)


def _combined(fn: Callable[..., object], treedef: tree.TreeDef, a: Leaves, b: Leaves) -> list[Value]:
    """The leaves of fn(a, b). Errors: TransformError for another tree, or other shapes."""
    out_leaves, out_tree = tree.flatten(fn(tree.unflatten(treedef, a), tree.unflatten(treedef, b)))
    if out_tree != treedef and _nesting(out_tree) != _nesting(treedef):
        raise TransformError(
            "associative_scan: cannot combine elements into another structure "
            f"({structure_text(treedef)} goes in, {structure_text(out_tree)} comes out)",
            hint="return the same nesting and keys as the elements",
        )
    values = array_leaves("associative_scan", out_leaves, out_tree)
    _check_slices(a, values, treedef)
    return values


def _nesting(treedef: tree.TreeDef) -> object:
    """The structure without the types of its containers; a dict has its keys.

    Returning a plain tuple for a namedtuple is common; their leaves have the same places.
    """
    return treedef.walk(
        lambda children, data: (children, data if isinstance(data, list) else None), None, [0] * treedef.num_leaves
    )


def _check_sizes(leaves: Leaves, axes: Sequence[int], treedef: tree.TreeDef) -> None:
    sizes = [type_of(x).shape[a] for x, a in zip(leaves, axes)]
    for i, size in enumerate(sizes):
        if not isinstance(size, int):
            raise ArgumentError(
                f"associative_scan: cannot divide a symbolic size ({size})",
                hint="use rune.scan, whose length may be symbolic",
            )
        if size != sizes[0]:
            raise AxisError(
                f"associative_scan: cannot combine {sizes[0]} slices of "
                f"elems{key_path(0, treedef)} with {size} of elems{key_path(i, treedef)}"
            )


def _check_slices(elements: Leaves, combinations: Leaves, treedef: tree.TreeDef) -> None:
    for i, (in_type, out_type) in enumerate(zip(map(type_of, elements), map(type_of, combinations), strict=True)):
        if out_type.shape != in_type.shape:
            raise TransformError(
                f"associative_scan: cannot combine slices {in_type} of elems{key_path(i, treedef)} into {out_type}",
                hint="fn works on slices side by side, and returns as many as it takes",
            )


def _prefixes(combine: Callable[[Leaves, Leaves], Leaves], x: Leaves, axes: Sequence[int]) -> Any:
    """Prefixes of pairs first, recursively; every second prefix needs one more combination."""
    n = operator.index(type_of(x[0]).shape[axes[0]])
    if n < 2:
        return x

    def cut(xs: Leaves, start: int, limit: int, step: int = 1) -> list[Value]:
        return [part(v, a, start, limit, step) for v, a in zip(xs, axes)]

    pairs = combine(cut(x, 0, n - n % 2, 2), cut(x, 1, n, 2))
    odd = _prefixes(combine, pairs, axes)  # the prefixes that end at 1, 3, 5, ...
    # The prefix that ends at 2 is the one that ends at 1, combined with slice 2; so for 4, 6, ...
    later = combine(cut(odd, 0, (n - 1) // 2), cut(x, 2, n, 2)) if n > 2 else []
    first = cut(x, 0, 1)  # slice 0 is a prefix by itself
    even = [concatenate(f, v, axis=a) for f, v, a in zip(first, later, axes)] if later else first
    return [_interleaved(e, o, a, n) for e, o, a in zip(even, odd, axes)]


def _interleaved(even: Value, odd: Value, axis: int, count: int) -> Any:
    """even[0], odd[0], even[1], odd[1], …: `count` slices."""
    shape = type_of(even).shape
    if type_of(odd).shape[axis] < shape[axis]:
        # Pairs need as many odd slices as even ones; the last slice below cuts this one off again.
        odd = concatenate(odd, part(even, axis, 0, 1), axis=axis)
    pair = (*shape[: axis + 1], 1, *shape[axis + 1 :])
    pairs = concatenate(reshape(even, shape=pair), reshape(odd, shape=pair), axis=axis + 1)
    slices = reshape(pairs, shape=(*shape[:axis], 2 * shape[axis], *shape[axis + 1 :]))
    return part(slices, axis, 0, count)
