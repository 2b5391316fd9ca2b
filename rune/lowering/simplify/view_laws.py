"""Laws of movement: views that change nothing, and pairs of views that equal one view.

They compute no element, so they hold for all dtypes. Kernelize would compose the views anyway; here
they disappear for good, and more equations become equal.
"""

from __future__ import annotations

from collections.abc import Mapping

from rune.core.lower import Reduction
from rune.core.primitive import Primitive
from rune.core.program import Equation
from rune.core.types import Shape
from rune.lowering.simplify.scalar_laws import Answer, Law, Site
from rune.ops.family import broadcast, reshape
from rune.ops.movement import concatenate, pad, reverse, slice_, transpose
from rune.records import replace


def _with(site: Site, inner: Equation, **params: object) -> Equation:
    """The equation on the inner one's operand."""
    return replace(site.equation, operands=inner.operands, params=params)


def same_shape(site: Site) -> Answer:
    """A reshape to the same shape."""
    return site.operands[0] if site.operands[0].type.shape == site.type.shape else None


def reshape_twice(site: Site) -> Answer:
    """reshape reshape x = reshape x."""
    inner = site.inner(0, reshape)
    return None if inner is None else _with(site, inner, shape=site.type.shape)


def transpose_nothing(site: Site) -> Answer:
    """A transposition that leaves the axes in order."""
    order = site.equation.params["permutation"]
    return site.operands[0] if order == tuple(range(len(order))) else None


def transpose_twice(site: Site) -> Answer:
    """Two transpositions are one."""
    inner = site.inner(0, transpose)
    if inner is None:
        return None
    first, second = inner.params["permutation"], site.equation.params["permutation"]
    # Axis k of the result is axis second[k] of the middle, which is axis first[second[k]] of x.
    return _with(site, inner, permutation=tuple(first[p] for p in second))


def broadcast_nothing(site: Site) -> Answer:
    """A broadcast to the same shape, axis by axis."""
    same = site.operands[0].type.shape == site.type.shape
    in_order = site.equation.params["axes"] == tuple(range(site.type.ndim))
    return site.operands[0] if same and in_order else None


def broadcast_twice(site: Site) -> Answer:
    """Two broadcasts are one."""
    inner = site.inner(0, broadcast)
    if inner is None:
        return None
    outer = site.equation.params["axes"]
    # `axes` maps each operand axis to a result axis, so the two maps compose.
    axes = tuple(outer[a] for a in inner.params["axes"])
    return _with(site, inner, shape=site.type.shape, axes=axes)


def broadcast_reshaped(site: Site) -> Answer:
    """A broadcast of x[:, None] is a broadcast of x."""
    inner = site.inner(0, reshape)
    if inner is None:
        return None
    source, shape = inner.operands[0].type.shape, inner.results[0].type.shape
    axis_map = _axis_map(source, shape)
    if axis_map is None:
        return None
    # The axes that the reshape inserted have size 1: broadcasting them is the same as adding them.
    axes = tuple(site.equation.params["axes"][k] for k in axis_map)
    return _with(site, inner, shape=site.type.shape, axes=axes)


def _axis_map(source: Shape, shape: Shape) -> tuple[int, ...] | None:
    """Where the axes of `source` are after a reshape that only inserted axes of size 1."""
    axes = tuple(k for k, d in enumerate(shape) if d != 1)
    return axes if tuple(shape[k] for k in axes) == source else None


def reverse_nothing(site: Site) -> Answer:
    """A reversal of no axis, or of the same axes twice."""
    axes = site.equation.params["axes"]
    if not axes:
        return site.operands[0]
    inner = site.inner(0, reverse)
    same = inner is not None and set(inner.params["axes"]) == set(axes)
    return inner.operands[0] if inner is not None and same else None


def slice_nothing(site: Site) -> Answer:
    """A slice that takes everything."""
    params = site.equation.params
    steps = all(s == 1 for s in params["stride"]) and not any(s != 0 for s in params["start"])
    # Equal types mean that the limits are the ends, for symbolic sizes too.
    return site.operands[0] if steps and site.operands[0].type is site.type else None


def pad_nothing(site: Site) -> Answer:
    """A padding by nothing."""
    params = site.equation.params
    widths = (*params["low"], *params["high"], *params["interior"])
    return site.operands[0] if all(w == 0 for w in widths) else None


def join_one(site: Site) -> Answer:
    """A concatenation of one array."""
    return site.operands[0] if len(site.operands) == 1 else None


def reduce_nothing(site: Site) -> Answer:
    """A reduction over no axes."""
    return None if site.equation.params["axes"] else site.operands[0]


VIEW_LAWS: Mapping[Primitive, tuple[Law, ...]] = {
    reshape: (same_shape, reshape_twice),
    transpose: (transpose_nothing, transpose_twice),
    broadcast: (broadcast_nothing, broadcast_twice, broadcast_reshaped),
    reverse: (reverse_nothing,),
    slice_: (slice_nothing,),
    pad: (pad_nothing,),
    concatenate: (join_one,),
}


def laws_of(primitive: Primitive) -> tuple[Law, ...]:
    """The laws about movement that a primitive obeys."""
    if isinstance(primitive.lower, Reduction):
        return (reduce_nothing,)
    return VIEW_LAWS.get(primitive, ())
