"""The NCCL calls of each place of a group in a collective, as data.

NCCL knows flat memory, and concatenates what it receives from several places. So its collectives
are along the first axis; along another one, the operand is transposed before the calls (`before`)
or the received data after them (`after`), each by one kernel that swaps two axes. Plans do not
depend on this: a program is compiled in the same way, however its devices exchange values.

Integers are summed as unsigned ones, which wrap around as NumPy's do; complex numbers are pairs of
floats; data that is only moved is bytes. Not supported are maxima and minima of floats, since NCCL
does not promise to propagate NaN, and sums that NCCL lacks (bool, 16-bit integers) or rounds in
another way (fp8).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from rune import dtypes
from rune.backends.cuda.nccl.library import DataType, Operation
from rune.backends.shared.executor import static_shape
from rune.core.types import ArrayType
from rune.lowering.meetings import CollectiveCall, Params, axis_of
from rune.records import dataclass

# By dtype: the type in which NCCL adds, and how many of its numbers make an element.
SUMS: Mapping[np.dtype, tuple[DataType, int]] = {
    dtypes.i8: (DataType.UINT8, 1),
    dtypes.u8: (DataType.UINT8, 1),
    dtypes.i32: (DataType.UINT32, 1),
    dtypes.u32: (DataType.UINT32, 1),
    dtypes.i64: (DataType.UINT64, 1),
    dtypes.u64: (DataType.UINT64, 1),
    dtypes.f16: (DataType.FLOAT16, 1),
    dtypes.bf16: (DataType.BFLOAT16, 1),
    dtypes.f32: (DataType.FLOAT32, 1),
    dtypes.f64: (DataType.FLOAT64, 1),
    dtypes.c64: (DataType.FLOAT32, 2),
    dtypes.c128: (DataType.FLOAT64, 2),
}
EXTREMES: Mapping[np.dtype, tuple[DataType, int]] = {
    dtypes.bool_: (DataType.UINT8, 1),
    dtypes.i8: (DataType.INT8, 1),
    dtypes.u8: (DataType.UINT8, 1),
    dtypes.i32: (DataType.INT32, 1),
    dtypes.u32: (DataType.UINT32, 1),
    dtypes.i64: (DataType.INT64, 1),
    dtypes.u64: (DataType.UINT64, 1),
}
NUMBERS = {"psum": SUMS, "psum_scatter": SUMS, "pmax": EXTREMES, "pmin": EXTREMES}
MOVES = ("all_gather", "all_to_all", "ppermute")
OPERATIONS = {"pmax": Operation.MAX, "pmin": Operation.MIN}


@dataclass(frozen=True, slots=True)
class AllReduce:
    """`count` numbers, combined and given to every place."""

    count: int
    dtype: DataType
    operation: Operation


@dataclass(frozen=True, slots=True)
class ReduceScatter:
    """Sums of `count` numbers for each place."""

    count: int
    dtype: DataType


@dataclass(frozen=True, slots=True)
class AllGather:
    """`bytes` of each place, concatenated for every place."""

    bytes: int


@dataclass(frozen=True, slots=True)
class Send:
    """`bytes` from an offset of the operand on, to the place `peer` of the group."""

    bytes: int
    offset: int
    peer: int


@dataclass(frozen=True, slots=True)
class Receive:
    """`bytes` to an offset of the result, from the place `peer` of the group."""

    bytes: int
    offset: int
    peer: int


Call = AllReduce | ReduceScatter | AllGather | Send | Receive


@dataclass(frozen=True, slots=True)
class Swap:
    """[a, b] elements of `bytes` bytes, laid out as [b, a]."""

    a: int
    b: int
    bytes: int

    @property
    def is_needed(self) -> bool:
        """Whether the swap changes the order of the elements."""
        return self.a > 1 and self.b > 1


@dataclass(frozen=True, slots=True)
class Part:
    """The calls of a place for one operand.

    before:   the swap of the operand before it is sent; None to send it as it is
    after:    the swap of the received data into the result; None to receive into the result
    is_empty: no place sends to this one, whose result is zeros
    """

    calls: tuple[Call, ...]
    before: Swap | None = None
    after: Swap | None = None
    is_empty: bool = False


def is_known(call: CollectiveCall, types: Sequence[ArrayType]) -> bool:
    """Whether NCCL supports a collective on operands of these types."""
    kind = call.primitive.name
    return kind in MOVES or all(t.dtype in NUMBERS.get(kind, {}) for t in types)


def groups(call: CollectiveCall, size: int) -> tuple[tuple[int, ...], ...]:
    """The groups of places, among `size` along the axis, that exchange values with each other."""
    places = dict(call.params).get("groups") or (tuple(range(size)),)
    assert isinstance(places, tuple)
    return places


def part(call: CollectiveCall, type: ArrayType, place: int, size: int) -> Part:
    """The calls of a place, in a group of this size, for an operand of this static type."""
    # Every place of a group has the same type, so all of them skip the calls.
    if type.dtype.itemsize * math.prod(static_shape(type)) == 0:
        return Part(())
    kind, params = call.primitive.name, dict(call.params)
    match kind:
        case "all_gather":
            return _gathered(type, axis_of(params, "axis"), size)
        case "all_to_all":
            return _exchanged(type, params, size)
        case "ppermute":
            return _permuted(type, params, place)
        case "psum_scatter":
            return _scattered(type, axis_of(params, "scatter_axis"))
    dtype, numbers_per_element = NUMBERS[kind][type.dtype]
    count = numbers_per_element * math.prod(static_shape(type))
    return Part((AllReduce(count, dtype, OPERATIONS.get(kind, Operation.SUM)),))


def _around(shape: Sequence[int], axis: int) -> tuple[int, int]:
    """The products of the extents before `axis`, and from it on."""
    return math.prod(shape[:axis]), math.prod(shape[axis:])


def _needed(swap: Swap) -> Swap | None:
    return swap if swap.is_needed else None


def _gathered(type: ArrayType, axis: int, size: int) -> Part:
    outer, inner = _around(static_shape(type), axis)
    row = inner * type.dtype.itemsize
    # NCCL gives [size, outer, row]; the result is [outer, size, row].
    return Part((AllGather(outer * row),), after=_needed(Swap(size, outer, row)))


def _scattered(type: ArrayType, axis: int) -> Part:
    shape = static_shape(type)
    (outer, _), (_, inner) = _around(shape, axis), _around(shape, axis + 1)
    dtype, numbers_per_element = SUMS[type.dtype]
    # The operand [outer, n, inner] goes to NCCL as [n, outer, inner]: a place's part is contiguous.
    before = _needed(Swap(outer, shape[axis], inner * type.dtype.itemsize))
    return Part((ReduceScatter(numbers_per_element * outer * inner, dtype),), before)


def _exchanged(type: ArrayType, params: Params, size: int) -> Part:
    split, concat, item = axis_of(params, "split_axis"), axis_of(params, "concat_axis"), type.dtype.itemsize
    shape = static_shape(type)
    shape = (*shape[:split], *shape[split + 1 :])  # the shape of what one place sends to another
    (first, second), (outer, inner) = _around(shape, split), _around(shape, concat)
    # The operand [first, size, second] is sent as [size, first, second]. What arrives,
    # [size, outer, inner], becomes [outer, size, inner].
    block = outer * inner * item
    calls = [kind(block, n * block, n) for n in range(size) for kind in (Send, Receive)]
    return Part(tuple(calls), _needed(Swap(first, size, second * item)), _needed(Swap(size, outer, inner * item)))


def _permuted(type: ArrayType, params: Params, place: int) -> Part:
    permutation = params["permutation"]
    assert isinstance(permutation, tuple)
    nbytes = type.dtype.itemsize * math.prod(static_shape(type))
    sends = [Send(nbytes, 0, receiver) for sender, receiver in permutation if sender == place]
    receives = [Receive(nbytes, 0, sender) for sender, receiver in permutation if receiver == place]
    return Part((*sends, *receives), is_empty=not receives)
