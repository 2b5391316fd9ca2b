"""The functions of the scalar library as LLVM IR, in the loop that calls them.

`Written` is a Number whose arithmetic appends instructions to a writer, for all lanes at once: a
function is part of the loop that calls it. A kernel that uses one very often calls it instead,
since LLVM's time grows with the text. Processors are assumed to have fused multiply-adds; LLVM
calls the C library's fma on those that lack it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from rune import dtypes
from rune.lowering.codegen.llvm import scalar as llvm_scalar
from rune.lowering.codegen.llvm.ir.memory import Slot, slot
from rune.lowering.codegen.llvm.ir.names import suffix
from rune.lowering.codegen.llvm.ir.text import Value, Writer
from rune.lowering.codegen.llvm.ir.types import round_to
from rune.lowering.scalar import floats
from rune.lowering.scalar.number import Ability, Number, Plain, Variable
from rune.lowering.scalar.table import OPERATIONS, ROWS, result_dtype
from rune.records import dataclass

HALVES = frozenset({dtypes.f16, dtypes.bf16})
ABILITIES = frozenset({Ability.FUSED, Ability.DENORMALS, Ability.ASSISTED, Ability.WIDE, Ability.LIBRARY})
# Those long enough to be called where a kernel has many of them.
FUNCTIONS = frozenset(name for name, op in OPERATIONS.items() if op.instructions >= 20 or not op.is_exact)
# One instruction, whatever the dtype: most of a function's text, so the first call feels it.
_PLAIN = frozenset("add sub mul neg and or xor".split())


def operation(name: str, dtype: np.dtype, args: tuple[Value, ...], operand: np.dtype) -> Value:
    """The result, of `dtype`, of an operation on values of dtype `operand`.

    For `select`, `operand` is that of the values.
    """
    spelling = llvm_scalar.spelling_of(name, operand)
    if spelling is not None:
        result = spelling(operand, *args)
    else:
        apply = _called if name in args[0].writer.out_of_line else _in_place
        is_wide = operand not in HALVES or OPERATIONS[name].of_bits
        result = apply(name, operand if is_wide else dtypes.f32, args)
    # f16 and bf16 are f32 in registers (types.py), and rounded afterwards.
    is_exact = operand not in HALVES or dtype != operand or operand in ROWS[name].closed_dtypes
    return result if is_exact else round_to(result, operand)


def convert(x: Value, source: np.dtype, target: np.dtype) -> Value:
    """A value of dtype `source` as one of `target`; floats saturate, and round once."""
    if source in dtypes.FLOATING and target in dtypes.INTEGER:
        wide = dtypes.f64 if source == dtypes.f64 else dtypes.f32
        # LLVM's own fptosi.sat takes lanes one by one.
        return value_of(floats.to_integer(Written(x, wide, []), target))
    if (source, target) == (dtypes.f64, dtypes.f16):
        odd = floats.to_odd(Written(x, dtypes.f64, []))
        return llvm_scalar.convert(value_of(odd), dtypes.f32, target)
    return llvm_scalar.convert(x, source, target)


def value_of(number: Number) -> Value:
    """The registers of a number that was written."""
    assert isinstance(number, Written)
    return number.value


def combine(name: str, dtype: np.dtype, a: Value, b: Value) -> Value:
    """Two partial results of a reduction as one."""
    return operation(name, dtype, (a, b), dtype)


def _in_place(name: str, dtype: np.dtype, args: tuple[Value, ...]) -> Value:
    """Append the function to the writer of its arguments."""
    write = OPERATIONS[name].expansion(dtype, ABILITIES)
    assert write is not None
    masks = list[Value]()  # of all values of the function
    return value_of(write(*(Written(a, dtype, masks) for a in args)))


def _called(name: str, dtype: np.dtype, args: tuple[Value, ...]) -> Value:
    """Append a call of the function."""
    writer, types = args[0].writer, tuple(a.type for a in args)
    # The definition is added to the set of declarations, so a module gets it once.
    text, declarations = _out_of_line(name, dtype, types, writer.scalef)
    writer.declarations |= {text, *declarations}
    return writer.call(types[0], _symbol(name, dtype, types[0]), *args)


@functools.cache
def _out_of_line(
    name: str, dtype: np.dtype, types: tuple[str, ...], scalef: frozenset[str]
) -> tuple[str, frozenset[str]]:
    """A function's definition, and the declarations that it needs."""
    # A separate writer, because the definition lies outside the kernel's function.
    writer = Writer(scalef=scalef, block="start")
    args = tuple(Value(writer, type, f"%x{k}") for k, type in enumerate(types))
    value = _in_place(name, dtype, args)
    parameters = ", ".join(f"{a.type} {a.text}" for a in args)
    writer.do(f"ret {value.type} {value.text}")
    head = f"internal {value.type} {_symbol(name, dtype, types[0])}({parameters})"
    return writer.definition(head), frozenset(writer.declarations)


def _symbol(name: str, dtype: np.dtype, type: str) -> str:
    # The type alone says nothing of the sign.
    return f"@math.{name}.{dtypes.short(dtype)}.{suffix(type)}"


@dataclass(frozen=True, slots=True)
class Written(Number):
    """A value of one or many lanes.

    masks: the lanes alive in each branch around it, for all values of a function
    """

    value: Value
    kind: np.dtype
    masks: list[Value]

    @property
    def dtype(self) -> np.dtype:
        return self.kind

    @property
    def writer(self) -> Writer:
        """The writer that instructions are appended to."""
        return self.value.writer

    def of(self, value: Value, dtype: np.dtype) -> Written:
        """A value in the same place of the function."""
        return Written(value, dtype, self.masks)

    def like(self, other: Number | Plain) -> Written:
        if isinstance(other, Number):
            assert isinstance(other, Written)
            return other
        return self.of(self.value.like(other), self.dtype)

    def apply(self, name: str, *others: Number | Plain) -> Written:
        if name in _PLAIN:
            operands = (o.value if isinstance(o, Written) else self.like(o).value for o in others)
            return Written(self.value.apply(name, *operands), self.kind, self.masks)
        result = result_dtype(name, self.dtype)
        assert result is not None
        return self.of(operation(name, result, (self.value, *(self.like(o).value for o in others)), self.dtype), result)

    def convert(self, dtype: np.dtype) -> Written:
        return self.of(convert(self.value, self.dtype, dtype), dtype)

    def integer_part(self, dtype: np.dtype) -> Written:
        return self.of(llvm_scalar.integer_part(self.value, dtype), dtype)

    def bits_as(self, dtype: np.dtype) -> Written:
        return self.of(llvm_scalar.bitcast(self.value, self.dtype, dtype), dtype)

    def choose(self, a: Number | Plain, b: Number | Plain) -> Written:
        known = a if isinstance(a, Written) else b
        assert isinstance(known, Written)
        values = known.like(a).value, known.like(b).value
        return self.of(self.writer.select(self.value, *values), known.dtype)

    def is_literal_besides(self, *numbers: int) -> bool:
        return self.value.is_constant and all(self.value.text != self.like(n).value.text for n in numbers)

    def is_nan(self) -> Written:
        return self.of(self.value.is_nan(), dtypes.bool_)

    def has(self, ability: Ability) -> bool:
        if ability is Ability.SCALED:
            return self.value.type in self.writer.scalef
        return ability in ABILITIES

    def scaled(self, n: Number, where: Number | None = None) -> Written:
        return self.of(self.writer.scale_register(self.value, value_of(n), where and value_of(where)), self.dtype)

    def by_library(self, name: str) -> Written:
        return self.of(self.writer.by_lane(name, self.value), self.dtype)

    def variable(self) -> WrittenVariable:
        return WrittenVariable(self, slot(self.value, self.value.lanes))

    def when(self, then: Callable[[], None], orelse: Callable[[], None] | None = None) -> None:
        # Lanes may take different sides, so both are emitted, each under its own mask.
        for condition, write in ((self, then), (~self, orelse)):
            if write is not None:
                assert isinstance(condition, Written)
                condition.inside(write)

    def inside(self, write: Callable[[], None]) -> None:
        """Run `write` for the lanes where this holds, behind a branch on any of them."""
        masks = self.masks
        # Branches nest: only lanes alive outside can be alive inside.
        alive = self.value & masks[-1] if masks else self.value
        masks.append(alive)
        self.writer.either(self.writer.any_lane(alive), write)
        masks.pop()

    def repeat(self, most: int, body: Callable[[], None]) -> None:
        counter = self.like(0).variable()

        def step(_: Value) -> None:
            # Each lane stops at its own count; the loop runs for the longest.
            (counter.get() < self).when(body)
            counter.set(counter.get() + 1)

        self.writer.count_up(self.writer.constant("i64", 0), self._longest(), 1, step)

    def _longest(self) -> Value:
        """The largest count of a lane that is alive, as an i64."""
        value, kind = self.value, self.value.scalar_type
        if self.masks:  # the count of a lane that takes no part may be anything
            value = self.writer.select(self.masks[-1], value, 0)
        if value.lanes:
            name = f"@llvm.vector.reduce.umax.{suffix(value.type)}"
            value = self.writer.call(kind, name, value)
        return value.cast("zext", "i64")


@dataclass(frozen=True, slots=True)
class WrittenVariable(Variable):
    """A place on the stack, which LLVM turns into registers."""

    start: Written
    slot: Slot

    def get(self) -> Written:
        return self.start.of(self.slot.read(), self.start.dtype)

    def set(self, value: Number) -> None:
        """In the lanes that are alive."""
        assert isinstance(value, Written)
        masks, new = self.start.masks, value.value
        if masks:
            # Other lanes keep what they had.
            new = self.start.writer.select(masks[-1], new, self.slot.read())
        self.slot.write(new)
