"""Lines: neighbours that the threads of a subgroup read, by addresses that all threads share.

    a: f32 = x[1024*i + 8*n + thread]   ->   all threads load the eight elements of a line,
                                             and each selects the one of its lane
    a: f32 = x[1024*thread + 8*n]       ->   the same for the eight elements of a column

This is for Mesa's processors. There an access is a loop over the lanes of a subgroup, unless the
driver can prove that all lanes have the same address: then it is a single load, and a line with its
selections becomes one vector load (decision 0105). The driver can prove it for push constants and
for what is computed from them, outside loops and branches, where all threads are active. Vulkan
requires the index of a push constant to be the same for all threads, so the driver takes the value
to be the same. The push constants therefore hold a table of the numbers 0 to 15, and an address
is looked up there digit by digit: twelve look-ups for each array and subgroup, 6 ns each.

Invariant: reads what each thread would read by itself.
Source: Mesa 22.3, nir_src_is_always_uniform and emit_load_global of gallivm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial

from rune import dims, dtypes
from rune.dims import Size
from rune.lowering.codegen.groups import Spread, spread, threads_of_launch
from rune.lowering.codegen.spirv.binary.words import (
    ALIGNED,
    SUBGROUP_SCOPE,
    Capability,
    Decoration,
    Op,
    StorageClass,
    instruction,
)
from rune.lowering.codegen.spirv.binary.writer import Pointer, Writer
from rune.lowering.codegen.spirv.scalar import Value, constant, resized
from rune.lowering.codegen.subgroups import is_alike
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.expr import Load
from rune.lowering.kernel.nodes import KernelCode, Kind, Let
from rune.lowering.kernel.rewrite import loop_symbol, perfect_nest
from rune.records import dataclass

LEAST_LINES = 16  # of an array, for which threads are worth a group of their own
DIGITS = 16  # push constants 0, 1, 2, ... from DIGITS_AT on, of 32 bits
DIGITS_AT = 16  # bytes
_ADDRESS_BITS = 48
_VECTOR = 4  # elements of a load: SPIR-V has no longer vectors
_KINDS = frozenset({"f32", "i32"})


@dataclass(frozen=True, slots=True)
class Subgroup:
    """A group whose threads are one subgroup, all of them active.

    thread:  the symbol by which they differ, whose values are neighbours in neighbouring threads
    names:   symbols that have the same value in all of them
    columns: arrays that threads may read at equal distances of more than a line's elements, each
             with all indices that they read
    """

    thread: Size
    threads: int
    names: frozenset[str]
    columns: Mapping[str, frozenset[Size]] = field(default_factory=dict)


def spread_for(code: KernelCode, target: Target) -> tuple[Spread, Subgroup | None]:
    """How a kernel is spread over groups, and its subgroup if the groups read lines."""
    columns, width = _often_read(code, target), target.subgroup_threads
    shape = spread(code, (lambda _: width) if columns else partial(threads_of_launch, target))
    is_nest = len(shape.nest) == 1 and shape.threads == width and target.has_lines
    # Groups beyond one dimension of a launch may have no point.
    if not (columns or is_nest) or not dims.at_most(shape.count, target.launch_groups):
        return shape, None
    (*loops, last) = (*shape.grid, *shape.nest)
    return shape, Subgroup(loop_symbol(last), width, frozenset((*code.sizes, *(loop.var for loop in loops))), columns)


def push_constants(writer: Writer, members: tuple[int, ...], target: Target) -> int:
    """The push constants of a kernel: members of 8 bytes, and behind them the digits."""
    if target.has_lines:
        members = (*members, _digits_type(writer))
    offsets = tuple(8 * number for number in range(len(members)))
    structure = writer.module.structure(members, offsets, ((),) * len(members))
    return writer.module.variable(StorageClass.PushConstant, structure)


def truth(writer: Writer, lane: int, arguments: int) -> int:
    """A condition that always holds: a thread's number in its subgroup is at most the last digit.

    The driver cannot know that it holds. A store is a loop over lanes there, and where a value
    is the result of arithmetic, LLVM computes it within the loop, lane by lane, once for each: all
    exponentials of a sum, for example. A choice by this condition keeps it outside.
    """
    module = writer.module
    module.need(Capability.GroupNonUniform)
    last = digit(writer, arguments, module.constant("i32", DIGITS - 1))
    return writer.emit(Op.ULessThanEqual, module.type("bool"), lane, last)


def digit(writer: Writer, arguments: int, number: int) -> int:
    """A number below DIGITS, as the push constant of that index."""
    module = writer.module
    word, member = module.type("i32"), module.constant("i32", DIGITS_AT // 8)
    pointer, id = module.pointer(StorageClass.PushConstant, word), module.new_id()
    writer.lines += instruction(Op.AccessChain, pointer, id, arguments, member, number)
    return writer.effect(Op.Load, word, id)


def _digits_type(writer: Writer) -> int:
    module, tag = writer.module, ("stride",)
    operands = module.type("i32"), module.constant("i32", DIGITS)
    is_known = (Op.TypeArray, operands, *tag) in module.known
    type = module.declare(Op.TypeArray, *operands, tag=tag)
    if not is_known:
        module.decorate(type, Decoration.ArrayStride, 4)
    return type


def _often_read(code: KernelCode, target: Target) -> Mapping[str, frozenset[Size]]:
    """The arrays of which subgroups of grid points read so many lines that each should be a group,
    with the indices that they read.

    Their points are neighbours along the last loop of the grid, and their code straight.
    """
    grid, body = perfect_nest(code.body, Kind.GRID)
    is_whole = target.has_lines and grid and dims.divides(target.subgroup_threads, grid[-1].extent)
    if is_whole is not True:
        return {}
    names = frozenset((*code.sizes, *(loop.var for loop in grid[:-1])))
    lines = dict[str, set[Size]]()
    for load in (s.value for s in body if isinstance(s, Let) and isinstance(s.value, Load) and s.value.guard is None):
        if _distance(load.indices[0], loop_symbol(grid[-1]), names):
            lines.setdefault(load.buffer, set()).add(load.indices[0])
    return {name: frozenset(indices) for name, indices in lines.items() if len(indices) >= LEAST_LINES}


def _distance(index: Size, thread: Size, names: frozenset[str]) -> int:
    """The distance of what neighbouring threads read; 0 if none is known, or it differs."""
    step = dims.coefficient(index, *dims.symbol_names(thread))
    return step if isinstance(step, int) and step > 0 and is_alike(index - step * thread, names) else 0


@dataclass(slots=True)
class Lines:
    """The lines that a subgroup has read so far.

    lane:    a thread's number, of 32 bits
    arguments: the id of the push constants, whose last member is the table
    buffers: those that may be read by lines
    starts:  by array, the elements at which lines begin, each with its address: one for all threads
    turned:  elements of columns that were read with others, by array and index
    """

    writer: Writer
    subgroup: Subgroup
    lane: Value
    arguments: int
    buffers: frozenset[str]
    starts: dict[str, list[tuple[Size, int, Value]]] = field(default_factory=dict)
    turned: dict[tuple[str, Size], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.writer.module.need(Capability.GroupNonUniform)
        self.writer.barrier_scope = SUBGROUP_SCOPE

    def read(self, name: str, array: Pointer, index: Size, count: int, place: Callable[[], int]) -> Sequence[int]:
        """A thread's part of a line or a column: an element, or two neighbours; else empty.

        place: returns the index, if it is needed
        """
        step, kind = _distance(index, self.subgroup.thread, self.subgroup.names), array.kind
        is_read = step == count or (step > 0 and name in self.subgroup.columns)
        if not is_read or name not in self.buffers or kind not in _KINDS:
            return ()
        address, distance = self.start(name, index, 4 * step, lambda: self.writer.element(array, place()))
        threads, type = self.subgroup.threads, self.writer.module.type(kind)
        if step != count:
            self.turn(name, kind, index, address, distance, step)
            places = (range(distance + n, distance + n + step * threads, step) for n in range(count))
            return [
                self.turned.get((name, index + n))
                or self.of_lane(kind, [self.load(type, address, 4 * at) for at in column])
                for n, column in enumerate(places)
            ]
        elements = self.elements(kind, address, 4 * distance, count * threads)
        parts = [self.of_lane(kind, elements[n : n + threads]) for n in range(0, len(elements), threads)]
        return parts if count == 1 else self.neighbours(kind, parts)

    def turn(self, name: str, kind: str, index: Size, address: Value, distance: int, step: int) -> None:
        """Read a square: as many neighbours of an index as there are threads, for each thread.

        Threads read the rows of the square as lines, and exchange what lies across its diagonal:
        of single elements, then of twos and fours. Only neighbours that are read anyway are read.
        """
        indices, threads = self.subgroup.columns.get(name, ()), self.subgroup.threads
        square = [index + n for n in range(threads)]
        if (name, index) in self.turned or not all(i in indices for i in square):
            return
        starts = range(4 * distance, 4 * (distance + step * threads), 4 * step)
        rows = [self.of_lane(kind, self.elements(kind, address, start, threads)) for start in starts]
        bits = [1 << n for n in range(threads.bit_length() - 1)]
        for bit in bits:
            for first in (n for n in range(threads) if not n & bit):
                rows[first], rows[first | bit] = self.exchanged(kind, rows[first], rows[first | bit], bit)
        self.turned |= {(name, i): row for i, row in zip(square, rows, strict=True)}

    def exchanged(self, kind: str, low: int, high: int, bit: int) -> tuple[int, int]:
        """Two rows after an exchange: threads with the bit give the first row's value to those
        without it, for the second row's."""
        type = self.writer.module.type(kind)
        is_low = self.lane.emit(Op.BitwiseAnd, bit).emit(Op.IEqual, 0, dtype=dtypes.bool_).id
        other = self.lane.emit(Op.BitwiseXor, bit).id
        from_low, from_high = (self.writer.of_lanes(kind, row, other) for row in (low, high))
        first = self.writer.emit(Op.Select, type, is_low, low, from_high)
        return first, self.writer.emit(Op.Select, type, is_low, from_low, high)

    def elements(self, kind: str, address: Value, distance: int, count: int) -> list[int]:
        """Elements from an address on, the same for all threads; `distance` bytes further."""
        module, emit = self.writer.module, self.writer.emit
        vector, type = module.vector(kind, _VECTOR), module.type(kind)
        loads = [self.load(vector, address, distance + 4 * first) for first in range(0, count, _VECTOR)]
        return [emit(Op.CompositeExtract, type, load, n) for load in loads for n in range(_VECTOR)]

    def load(self, type: int, address: Value, distance: int) -> int:
        """What lies so many bytes after an address that is the same for all threads."""
        pointer = self.writer.module.pointer(StorageClass.PhysicalStorageBuffer, type)
        at = self.writer.emit(Op.ConvertUToPtr, pointer, address.emit(Op.IAdd, distance).id)
        return self.writer.effect(Op.Load, type, at, ALIGNED, 4)

    def of_lane(self, kind: str, items: Sequence[int]) -> int:
        """The value with the number of the thread's lane."""
        value = items[0]
        for number, item in enumerate(items[1:], 1):
            is_lane = self.lane.emit(Op.IEqual, number, dtype=dtypes.bool_).id
            value = self.writer.emit(Op.Select, self.writer.module.type(kind), is_lane, item, value)
        return value

    def neighbours(self, kind: str, parts: Sequence[int]) -> Sequence[int]:
        """Two neighbours for each thread, from two halves of a line with an element for each.

        LLVM makes this two permutations; read as integers of 64 bits, lines take a third longer.
        """
        threads, type = self.subgroup.threads, self.writer.module.type(kind)
        in_first = self.lane.emit(Op.ULessThan, threads // 2, dtype=dtypes.bool_).id
        even = self.lane.emit(Op.ShiftLeftLogical, 1).emit(Op.BitwiseAnd, threads - 1)
        values = []
        for lane in (even, even.emit(Op.BitwiseOr, 1)):
            first, second = (self.writer.of_lanes(kind, part, lane.id) for part in parts)
            values.append(self.writer.emit(Op.Select, type, in_first, first, second))
        return values

    def start(self, name: str, index: Size, item_bytes: int, place: Callable[[], int]) -> tuple[Value, int]:
        """The address of a line of the array, and how many elements further this one begins."""
        for first, bytes, address in self.starts.setdefault(name, []):
            distance = index - first
            if bytes == item_bytes and isinstance(distance, int):
                return address, distance
        address = self.same(self.first(place(), item_bytes))
        self.starts[name].append((index, item_bytes, address))
        return address, 0

    def first(self, pointer: int, item_bytes: int) -> Value:
        """The address at which the line of a thread's element begins."""
        address = self.writer.emit(Op.ConvertPtrToU, self.writer.module.type("i64"), pointer)
        before = resized(self.lane, "i64").emit(Op.IMul, item_bytes)
        return Value(self.writer, before.dtype, address).emit(Op.ISub, before)

    def same(self, address: Value) -> Value:
        """An address, computed so that the driver knows it to be the same for all threads."""
        halves = address, address.emit(Op.ShiftRightLogical, 32)
        low, high = (self.same_word(resized(half, "i32"), bits) for half, bits in zip(halves, (32, _ADDRESS_BITS - 32)))
        return resized(low, "i64").emit(Op.BitwiseOr, resized(high, "i64").emit(Op.ShiftLeftLogical, 32))

    def same_word(self, value: Value, bits: int) -> Value:
        """The low bits of a number, digit by digit from the table."""
        total = constant(self.writer, value.dtype, 0)
        for shift in range(0, bits, 4):
            number = value.emit(Op.ShiftRightLogical, shift).emit(Op.BitwiseAnd, DIGITS - 1)
            known = Value(self.writer, value.dtype, digit(self.writer, self.arguments, number.id))
            total = total.emit(Op.BitwiseOr, known.emit(Op.ShiftLeftLogical, shift))
        return total
