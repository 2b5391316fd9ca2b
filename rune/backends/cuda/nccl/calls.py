"""What each place of a group does in a collective, as calls of NCCL: data, which no driver sees.

NCCL knows flat memory, and puts what comes from many places one after the other. So it speaks of a
collective along a first axis; along another one, the operand is laid out anew before (`before`) or
what was received after (`after`), each by one kernel that swaps two axes. The plan knows nothing of
it: a program is compiled alike, whichever way its devices then meet.

Sums of integers are of unsigned ones, which wrap around as NumPy's do; complex numbers are pairs of
floats, and what is only moved is bytes. Extremes of floats are not known: NCCL does not say that
they keep NaN. Nor are sums that NCCL has not (bool, 16-bit integers) or rounds otherwise (fp8).
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

# Of each dtype what NCCL adds up, and how many of them an element is.
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
    """`count` numbers, combined for everyone."""

    count: int
    dtype: DataType
    operation: Operation


@dataclass(frozen=True, slots=True)
class ReduceScatter:
    """`count` numbers for each place, added up."""

    count: int
    dtype: DataType


@dataclass(frozen=True, slots=True)
class AllGather:
    """`bytes` of each place, for everyone."""

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
        """Whether the elements lie otherwise afterwards."""
        return self.a > 1 and self.b > 1


@dataclass(frozen=True, slots=True)
class Part:
    """What a place does for one operand.

    before:   how the operand is laid out to be sent; None where it lies as it should
    after:    how what was received is laid out in the result; None where it is received there
    is_empty: nobody sends to this place, which receives zeros
    """

    calls: tuple[Call, ...]
    before: Swap | None = None
    after: Swap | None = None
    is_empty: bool = False


def is_known(call: CollectiveCall, types: Sequence[ArrayType]) -> bool:
    """Whether NCCL can do a collective on operands of these types."""
    kind = call.primitive.name
    return kind in MOVES or all(t.dtype in NUMBERS.get(kind, {}) for t in types)


def groups(call: CollectiveCall, size: int) -> tuple[tuple[int, ...], ...]:
    """The places along the axis that have to do with each other; `size` of them in all."""
    listed = dict(call.params).get("groups") or (tuple(range(size)),)
    assert isinstance(listed, tuple)
    return listed


def part(call: CollectiveCall, type: ArrayType, place: int, size: int) -> Part:
    """What a place of a group of this size does for an operand of this static type."""
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
    dtype, each = NUMBERS[kind][type.dtype]
    count = each * math.prod(static_shape(type))
    return Part((AllReduce(count, dtype, OPERATIONS.get(kind, Operation.SUM)),))


def _around(shape: Sequence[int], axis: int) -> tuple[int, int]:
    """How many elements are before and behind a place between the axes."""
    return math.prod(shape[:axis]), math.prod(shape[axis:])


def _needed(swap: Swap) -> Swap | None:
    return swap if swap.is_needed else None


def _gathered(type: ArrayType, axis: int, size: int) -> Part:
    outer, inner = _around(static_shape(type), axis)
    row = inner * type.dtype.itemsize
    return Part((AllGather(outer * row),), after=_needed(Swap(size, outer, row)))


def _scattered(type: ArrayType, axis: int) -> Part:
    shape = static_shape(type)
    (outer, _), (_, inner) = _around(shape, axis), _around(shape, axis + 1)
    dtype, each = SUMS[type.dtype]
    before = _needed(Swap(outer, shape[axis], inner * type.dtype.itemsize))
    return Part((ReduceScatter(each * outer * inner, dtype),), before)


def _exchanged(type: ArrayType, params: Params, size: int) -> Part:
    split, concat, item = axis_of(params, "split_axis"), axis_of(params, "concat_axis"), type.dtype.itemsize
    shape = static_shape(type)
    shape = (*shape[:split], *shape[split + 1 :])  # of what one place has for another
    (first, second), (outer, inner) = _around(shape, split), _around(shape, concat)
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
