"""Single writes: an array that is constant but for one place of each row is a select.

Before   %1 = broadcast 0.0;  %2 = scatter_add %1, %i, %u       one index vector for each row
After    %3 = iota;  %4 = eq %3, %i;  %5 = add 0.0, %u;         %2 = select %4, %5, 0.0

The gradient of `take_along_axis(scores, labels, -1)`, and so of every cross entropy, is such an
array, and so is that of `x[i]`. A scatter is a kernel of its own, which fills an array first; a
select is computed where it is read.

Not done: several writes into a row, which would be a select for each of them.
Invariant: every value keeps its bits.   Cost: linear in the number of equations.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

from rune.core.evaluate import restaged
from rune.core.interpreter import literal_like, type_of
from rune.core.primitive import Primitive
from rune.core.program import Program, Var
from rune.core.staging import Stage, StageTracer
from rune.core.types import ArrayType, Shape
from rune.core.values import Value
from rune.lowering.passes import Pass
from rune.ops import add, broadcast, eq, iota, logical_and, max, min, reshape, scatter, scatter_add, select, transpose
from rune.ops.family import fit, size_value
from rune.ops.index_dims import IndexDims
from rune.ops.index_values import signed
from rune.ops.row_scatters import component, is_of_rows
from rune.records import dataclass

Combination = Callable[[Value, Value], Value]  # the constant, the update -> the element
COMBINATIONS: Mapping[Primitive, Combination] = {scatter: lambda constant, update: update, scatter_add: add}


@dataclass(frozen=True, slots=True)
class Write:
    """A scatter into a constant array, of one window for each row. value: the constant."""

    value: Value
    indices: Value
    updates: Value
    shape: Shape
    dims: IndexDims
    mode: str

    def array(self, combine: Combination) -> Value:
        """The array after the write."""
        elements = combine(fit(self.value, type_of(self.updates).shape), self.updates)
        at_place = functools.reduce(logical_and, map(self.is_at, range(len(self.dims.start_map))))
        constant = broadcast(self.value, shape=self.shape, axes=())
        return select(at_place, self.along(elements, self.axes_of_updates()), constant)

    def is_at(self, number: int) -> Value:
        """A mask of the elements whose position along an indexed axis is the written one."""
        axis = self.dims.start_map[number]
        place = signed(component(self.indices, number), self.shape[axis])
        dtype = type_of(place).dtype
        if self.mode == "clip":
            place = max(min(place, size_value(self.shape[axis] - 1, dtype)), literal_like(0, place))
        axes = [self.axis_of_batch(k) for k in range(type_of(place).ndim)]
        return eq(iota(shape=self.shape, axis=axis, dtype=dtype), self.along(place, axes))

    def axis_of_batch(self, axis: int) -> int | None:
        """The axis of the array along a batch axis of the indices; None if that has size 1."""
        dims = self.dims
        return dims.operand_batching[dims.indices_batching.index(axis)] if axis in dims.indices_batching else None

    def axes_of_updates(self) -> list[int | None]:
        """The axis of the array along which each axis of the updates lies."""
        offset, window = self.dims.offset, self.dims.window_axes(len(self.shape))
        batch = iter(range(type_of(self.indices).ndim - 1))
        return [
            window[offset.index(k)] if k in offset else self.axis_of_batch(next(batch))
            for k in range(type_of(self.updates).ndim)
        ]

    def along(self, x: Value, axes: Sequence[int | None]) -> Value:
        """`x` repeated over the array. axes: of the array, for each of `x`; None: a size of 1."""
        sizes = [d for d, axis in zip(type_of(x).shape, axes, strict=True) if axis is not None]
        places = [axis for axis in axes if axis is not None]
        order = sorted(range(len(places)), key=places.__getitem__)
        in_order = transpose(reshape(x, shape=tuple(sizes)), permutation=tuple(order))
        return broadcast(in_order, shape=self.shape, axes=tuple(sorted(places)))


def is_single(array: ArrayType, indices: ArrayType, dims: IndexDims, slice_sizes: Shape) -> bool:
    """Whether a scatter writes one window of size 1 into each row, which spans the other axes."""
    free_sizes = [d for k, d in enumerate(indices.shape[:-1]) if k not in dims.indices_batching]
    return bool(dims.start_map) and all(d == 1 for d in free_sizes) and is_of_rows(array, dims, slice_sizes)


class _Single(Stage):
    """Writes a program again, with selects in place of single writes into constants."""

    __slots__ = ("constants", "has_changed")

    def __init__(self) -> None:
        super().__init__(None)
        self.constants: dict[Var, Value] = {}
        self.has_changed = False

    def process(self, primitive: Primitive, args: Sequence[Value], params: Mapping[str, object]) -> object:
        """The equation itself, or the select in place of a scatter."""
        combine = COMBINATIONS.get(primitive)
        write = None if combine is None else self.single_write(*args, **params)
        if combine is not None and write is not None:
            self.has_changed = True
            return write.array(combine)
        out = self.write(primitive, args, params)
        if primitive is broadcast and not isinstance(args[0], StageTracer):
            self.constants[out.variable] = args[0]
        return out

    def single_write(
        self, array: Value, indices: Value, updates: Value, *, dims: IndexDims, slice_sizes: Shape, mode: str
    ) -> Write | None:
        """The write; None if the array is not constant, or has several places written."""
        constant = self.constants.get(array.variable) if isinstance(array, StageTracer) else None
        if constant is None or not is_single(type_of(array), type_of(indices), dims, slice_sizes):
            return None
        return Write(constant, indices, updates, type_of(array).shape, dims, mode)


def single_writes(program: Program) -> Program:
    """The program with selects in place of scatters of one window a row into constants."""
    primitives = {e.primitive for e in program.equations}
    if broadcast not in primitives or primitives.isdisjoint(COMBINATIONS):
        return program
    stage = _Single()
    new_program = restaged(program, stage)
    return new_program if stage.has_changed else program


PASS = Pass("single-writes", "choose between a constant and one write a row", single_writes)
