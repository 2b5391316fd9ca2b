"""Adafactor's second moments: of a matrix only the means of squares of its rows and columns.

Memory for an n × m matrix is n + m instead of n m. Leaves with two axes of at least
`min_dim_size_to_factor` are factored over the two largest; all others keep every square.
Source: Shazeer & Stern 2018, arXiv:1804.04235.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import rune.numpy as rnp
from rune import ops, tree
from rune.array import Array
from rune.optim.deprecated.states import Optimizer, no_steps
from rune.optim.leaves import Tree, square_of
from rune.transforms.arguments import required_number


class FactoredState(NamedTuple):
    """Step count; means of squares of rows, of columns, or of elements, one number where unused."""

    count: Any
    rows: Tree
    columns: Tree
    elements: Tree


def factored_axes(shape: tuple[int, ...], least: int) -> tuple[int, int] | None:
    """The two largest axes, the larger one last, if both have at least `least` elements."""
    order = sorted(range(len(shape)), key=lambda a: shape[a])
    if len(shape) < 2 or shape[order[-2]] < least:
        return None
    return order[-2], order[-1]


def _scaled(
    g: Array, axes: tuple[int, int] | None, square: Array, decay: Array, row: Array, column: Array, element: Array
) -> tuple[Array, Array, Array, Array]:
    """A leaf over the root of its estimated squares, and the three means after this step."""

    def mean(old: Array, new: Array) -> Array:
        return rnp.astype(decay * old + (1 - decay) * new, old.dtype)

    if axes is None:
        element = mean(element, square)
        return g * ops.rsqrt(element), row, column, element
    row, column = mean(row, rnp.mean(square, axes[1])), mean(column, rnp.mean(square, axes[0]))
    # The position of the first axis once the second is removed.
    place = axes[0] - (axes[0] > axes[1])
    of_row = ops.rsqrt(row / rnp.mean(row, place, keepdims=True))
    spread = rnp.expand_dims(of_row, axes[1]) * rnp.expand_dims(ops.rsqrt(column), axes[0])
    return g * spread, row, column, element


def scale_by_factored_rms(
    factored: bool = True,
    decay_rate: float = 0.8,
    step_offset: int = 0,
    min_dim_size_to_factor: int = 128,
    epsilon: float = 1e-30,
) -> Optimizer:
    """Updates over the root of the estimated means of squares, whose decay grows with the step.

    Shapes: updates are a tree like the parameters; of the state rows and columns have leaves that
            lack one of the two factored axes, elements those of the other parameters, [1] where
            nothing is stored; the count is i32 [].
    Types:  each leaf in the dtype of its parameter, floating or complex.
    Errors: ArgumentError from `update` for trees that differ.

    >>> import rune.numpy as rnp
    >>> from rune.optim import deprecated
    >>> o, g, p = deprecated.scale_by_factored_rms(), rnp.array([3.0, -4.0]), rnp.array([1.0, 2.0])
    >>> rnp.round(o.update(g, o.init(p), p)[0], 4)
    Array([ 1., -1.], f32[2], cpu:0)
    """
    required_number("scale_by_factored_rms", "decay_rate", decay_rate, 0)
    least = min_dim_size_to_factor if factored else None

    def axes_of(x: Any) -> tuple[int, int] | None:
        return None if least is None else factored_axes(x.shape, least)

    def init(params: Tree) -> FactoredState:
        def part(number: int, p: Array) -> Array:
            axes = axes_of(p)
            if (axes is None) != (number == 2):
                return rnp.zeros((1,), rnp.real(p).dtype)
            if axes is None:
                return rnp.zeros_like(rnp.real(p))
            factored_axis = axes[1 - number]
            shape = tuple(d for a, d in enumerate(p.shape) if a != factored_axis)
            return rnp.zeros(shape, rnp.real(p).dtype)

        zeros = [tree.map(lambda p, n=n: part(n, p), params) for n in range(3)]
        return FactoredState(no_steps(), *zeros)

    def update(grads: Tree, state: FactoredState, params: Tree = None) -> tuple[Tree, FactoredState]:
        step = rnp.astype(state.count - step_offset + 1, "f32")
        decay = 1.0 - step ** (-decay_rate)
        leaves, treedef = tree.flatten(grads)
        parts = (treedef.flatten_up_to(t) for t in (state.rows, state.columns, state.elements))
        scaled_leaves = [
            _scaled(g, axes_of(g), square_of(g) + epsilon, decay, *moments)
            for g, *moments in zip(leaves, *parts, strict=True)
        ]
        columns = zip(*scaled_leaves, strict=True)
        updates, *moments = (tree.unflatten(treedef, list(column)) for column in columns)
        return updates, FactoredState(state.count + 1, *moments)

    return Optimizer(init, update)
