"""Collectives: operations between the lanes of a named axis (core/axes.py).

Inside the axis, an array is that of one lane. `vmap` replaces a collective over its own axis by
operations on all lanes (`over_lanes`), and maps a collective over another axis like any other
operation. So a collective is never evaluated or compiled there, and needs only a shape rule, a
derivative and a transpose.

psum, psum_scatter, all_gather, ppermute and all_to_all are linear. As in JAX, psum is its own
transpose: under vmap(grad(f)) every lane's cotangent is summed. Where types tell along which axes
values vary (core/varying.py), the result of psum is the same on all devices, and so is its
cotangent: each device has all of it. pmax and pmin have no derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rune import dtypes
from rune.core.interpreter import literal_like, type_of
from rune.core.lower import Exchange
from rune.core.primitive import NOT_DIFFERENTIABLE, Collective, Primitive, Rule
from rune.core.types import ArrayType, Axes
from rune.core.values import Value
from rune.core.varying import spread, united
from rune.dims import Size
from rune.ops import among
from rune.ops.arithmetic import mul
from rune.ops.creation import iota
from rune.ops.family import Batched, reduce_sum
from rune.ops.lane_groups import among_groups, lanes_in_groups, picked
from rune.ops.movement import move_axis, repeat_lane
from rune.ops.reduction import reduce_max, reduce_min

if TYPE_CHECKING:
    from rune.array import Array

Permutation = tuple[tuple[int, int], ...]  # (lane that sends, lane that receives)


def _same(x: ArrayType, **_: object) -> ArrayType:
    return x.strong()


def _mapped(itself: Callable[[], Primitive]) -> Rule:
    """The batch rule, for another axis, of a collective whose parameters name no axis of its
    operand.
    """

    def batch(batched: Batched, size: Size, *args: Value, **params: object) -> tuple[Array, bool]:
        return itself()(*args, **params), any(batched)

    return batch


def _shifted(itself: Callable[[], Primitive], *axes: str) -> Rule:
    """The batch rule, for another axis, of a collective whose parameters `axes` name axes of its
    operand.
    """

    def batch(batched: Batched, size: Size, x: Value, **params: Any) -> tuple[Array, bool]:
        return itself()(x, **{**params, **{name: params[name] + 1 for name in axes}}), True

    return batch


def _linear(itself: Callable[[], Primitive]) -> tuple[Rule]:
    return (lambda tangent, x, output, **params: itself()(tangent, **params),)


def _all_lanes(x: Value, batched: bool, size: Size) -> Any:
    return x if batched else repeat_lane(x, size)


# --- reductions over the lanes ------------------------------------------------------------------


def _psum_over_lanes(batched: Batched, size: Size, x: Value, axis_name: Hashable) -> tuple[Array, bool]:
    if not batched[0] and isinstance(size, int):
        return mul(x, literal_like(size, x)), False
    return reduce_sum(_all_lanes(x, batched[0], size), axes=(0,)), False


def _transposed_psum(ct: Value, linear: Sequence[bool], x: ArrayType, **params: object) -> list[Value]:
    # A value that is the same on all devices has one cotangent, and each device gets all of it.
    alike = params["axis_name"] in x.varying and "groups" not in params
    return [ct if alike else psum(ct, **params)]


psum: Collective = Collective(
    "psum",
    "collective",
    _same,
    jvp=_linear(lambda: psum),
    transpose=_transposed_psum,
    batch=_mapped(lambda: psum),
    vary=united,
    over_lanes=lanes_in_groups(_psum_over_lanes),
    lower=Exchange(),
    among=among_groups(among.psum),
)


def _extremum(name: str, reduce: Primitive, among_devices: Rule) -> Collective:
    def over_lanes(batched: Batched, size: Size, x: Value, axis_name: Hashable) -> tuple[Value, bool]:
        return reduce(x, axes=(0,)) if batched[0] else x, False

    primitive = Collective(
        name,
        "collective",
        _same,
        jvp=(NOT_DIFFERENTIABLE("use all_gather, and reduce what it gives"),),
        batch=_mapped(lambda: primitive),
        vary=united,
        over_lanes=lanes_in_groups(over_lanes),
        lower=Exchange(),
        among=among_groups(among_devices),
    )
    return primitive


pmax = _extremum("pmax", reduce_max, among.pmax)
pmin = _extremum("pmin", reduce_min, among.pmin)


# --- exchange -----------------------------------------------------------------------------------


def _gather_over_lanes(
    batched: Batched, size: Size, x: Value, *, axis: int, lanes: Size, axis_name: Hashable
) -> tuple[Array, bool]:
    return move_axis(_all_lanes(x, batched[0], size), 0, axis), False


all_gather: Collective = Collective(
    "all_gather",
    "collective",
    lambda x, *, axis, lanes, **_: x.strong().with_shape((*x.shape[:axis], lanes, *x.shape[axis:])),
    jvp=_linear(lambda: all_gather),
    transpose=lambda ct, linear, x, axis, **p: [psum_scatter(ct, scatter_axis=axis, **p)],
    batch=_shifted(lambda: all_gather, "axis"),
    vary=spread,
    over_lanes=lanes_in_groups(_gather_over_lanes),
    lower=Exchange(),
    among=among_groups(among.all_gather),
)


def _scattered_type(x: ArrayType, *, scatter_axis: int, lanes: Size, **_: object) -> ArrayType:
    return x.strong().with_shape((*x.shape[:scatter_axis], *x.shape[scatter_axis + 1 :]))


def _scatter_over_lanes(
    batched: Batched, size: Size, x: Value, *, scatter_axis: int, lanes: Size, axis_name: Hashable
) -> tuple[Array, bool]:
    total, _ = _psum_over_lanes(batched, size, x, axis_name)
    return move_axis(total, scatter_axis, 0), True


psum_scatter: Collective = Collective(
    "psum_scatter",
    "collective",
    _scattered_type,
    jvp=_linear(lambda: psum_scatter),
    transpose=lambda ct, linear, x, scatter_axis, **p: [all_gather(ct, axis=scatter_axis, **p)],
    batch=_shifted(lambda: psum_scatter, "scatter_axis"),
    vary=spread,
    over_lanes=lanes_in_groups(_scatter_over_lanes),
    lower=Exchange(),
    among=among_groups(among.psum_scatter),
)


def _exchanged_type(x: ArrayType, *, split_axis: int, concat_axis: int, lanes: Size, **_: object) -> ArrayType:
    shape = [*x.shape[:split_axis], *x.shape[split_axis + 1 :]]
    shape.insert(concat_axis, lanes)
    return x.strong().with_shape(tuple(shape))


def _exchange_over_lanes(
    batched: Batched, size: Size, x: Value, *, split_axis: int, concat_axis: int, lanes: Size, axis_name: Hashable
) -> tuple[Array, bool]:
    senders_first = _all_lanes(x, batched[0], size)
    receivers_first = move_axis(senders_first, split_axis + 1, 0)  # then the senders
    return move_axis(receivers_first, 1, concat_axis + 1), True


all_to_all: Collective = Collective(
    "all_to_all",
    "collective",
    _exchanged_type,
    jvp=_linear(lambda: all_to_all),
    transpose=lambda ct, linear, x, split_axis, concat_axis, **p: [
        all_to_all(ct, split_axis=concat_axis, concat_axis=split_axis, **p)
    ],
    batch=_shifted(lambda: all_to_all, "split_axis", "concat_axis"),
    vary=spread,
    over_lanes=lanes_in_groups(_exchange_over_lanes),
    lower=Exchange(),
    among=among_groups(among.all_to_all),
)


def _permute_over_lanes(
    batched: Batched, size: Size, x: Value, *, permutation: Permutation, axis_name: Hashable
) -> tuple[Array, bool]:
    lanes = _all_lanes(x, batched[0], size)
    sender = {receiver: sender for sender, receiver in permutation}
    return picked(lanes, [sender.get(i) for i in range(size)]), True


ppermute: Collective = Collective(
    "ppermute",
    "collective",
    _same,
    jvp=_linear(lambda: ppermute),
    transpose=lambda ct, linear, x, permutation, axis_name: [
        ppermute(ct, permutation=tuple((b, a) for a, b in permutation), axis_name=axis_name)
    ],
    batch=_mapped(lambda: ppermute),
    vary=spread,
    over_lanes=_permute_over_lanes,
    lower=Exchange(),
    among=among.ppermute,
)


def _index_over_lanes(batched: Sequence[bool], size: Size, axis_name: Hashable) -> tuple[Array, bool]:
    return iota(shape=(size,), axis=0, dtype=dtypes.i32), True


axis_index: Collective = Collective(
    "axis_index",
    "collective",
    lambda *, axis_name: ArrayType((), np.dtype(dtypes.i32)),
    jvp=(),
    batch=_mapped(lambda: axis_index),
    vary=spread,
    over_lanes=_index_over_lanes,
    lower=Exchange(),
)

# --- copies -------------------------------------------------------------------------------------

# From a value that is the same on all devices to each device's own. It costs nothing: no plan has
# it.
pvary: Collective = Collective(
    "pvary",
    "collective",
    _same,
    jvp=_linear(lambda: pvary),
    transpose=lambda ct, linear, x, axis_name: [ct],
    batch=_mapped(lambda: pvary),
    vary=spread,
    over_lanes=lambda batched, size, x, axis_name: (x, batched[0]),
    lower=Exchange(),
    among=lambda operands, axis_name: list(operands),
)


def varying(x: Value, axes: Axes) -> Value:
    """The value, marked as varying along these axes too."""
    for name in _ordered(axes - type_of(x).varying):
        x = pvary(x, axis_name=name)
    return x


def cotangent(ct: Value, axes: Axes) -> Value:
    """The cotangent of a value that varies along these axes: the copies' cotangents are summed."""
    for name in _ordered(type_of(ct).varying - axes):
        ct = psum(ct, axis_name=name)
    return varying(ct, axes)


def _ordered(axes: Axes) -> list[Hashable]:
    return sorted(axes, key=str)


COLLECTIVES = (psum, pmax, pmin, all_gather, psum_scatter, all_to_all, ppermute, axis_index, pvary)
