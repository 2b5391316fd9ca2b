"""Scaling of a vector that is tiny, and of sums of its products, in LLVM IR: by bits alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rune.lowering.codegen.llvm.ir.memory import Memory, Slot, slot
from rune.lowering.codegen.llvm.ir.names import lanes_of, with_scalar
from rune.lowering.codegen.llvm.ir.text import Value, Writer
from rune.lowering.codegen.llvm.tiny.vectors import TinyVector
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class _Form:
    """The bits of a float type. A vector below 2**tiny is scaled by 2**shift."""

    integer: str
    mantissa: int
    lowest: int  # exponent of the smallest number
    tiny: int
    shift: int

    def bits(self, exponent: int) -> int:
        """The bits of a power of two that is a normal number."""
        return (exponent + 1 - self.mantissa - self.lowest) << self.mantissa


_FORMS = {"float": _Form("i32", 23, -149, -100, 64), "double": _Form("i64", 52, -1074, -900, 512)}


def scaled(writer: Writer, vector: TinyVector, memory: Memory, vector_bytes: int) -> tuple[Value, Memory]:
    """Whether a vector is tiny, and where its elements are read: a scaled copy of them if it is."""
    size, form, lanes = vector.param.size, _FORMS[memory.type], vector_bytes // memory.dtype.itemsize
    assert isinstance(size, int)
    tiny = _largest(writer, memory, size, lanes) < form.bits(form.tiny)

    def copies() -> Value:
        copy = Memory(writer.allocate(memory.type, size), memory.dtype)

        def put(type: str, i: Value) -> None:
            writer.store(_raised(_element(memory, type, i)), copy.address(i), memory.dtype.itemsize)

        _each(writer, memory.type, size, lanes, put)
        return copy.pointer

    return tiny, Memory(writer.choose(tiny, copies, lambda: memory.pointer), memory.dtype)


def lower_sum(writer: Writer, tiny: Value, total: Slot) -> None:
    """Scale a sum of products back if their vector was scaled."""
    writer.either(tiny, lambda: total.write(_lowered(total.read())))


def _each(writer: Writer, scalar: str, size: int, lanes: int, body: Callable[[str, Value], None]) -> None:
    """body(type, place) for all even vectors, and for each element after them."""
    even = size - size % lanes
    vector = f"<{lanes} x {scalar}>"
    begin, end, last = (writer.constant("i64", i) for i in (0, even, size))
    writer.count_up(begin, end, lanes, partial(body, vector))
    writer.count_up(end, last, 1, partial(body, scalar))


def _largest(writer: Writer, memory: Memory, size: int, lanes: int) -> Value:
    """The bits of the largest absolute value; those of NaN are above those of infinity."""
    integer = _FORMS[memory.type].integer
    types = (memory.type, f"<{lanes} x {memory.type}>")
    slots = {type: slot(writer.constant(integer, 0), lanes_of(type)) for type in types}

    def compare(type: str, i: Value) -> None:
        size = _signless(_bits(_element(memory, type, i)))
        slots[type].write(slots[type].read().call("smax", size))

    _each(writer, memory.type, size, lanes, compare)
    most = slots[types[1]].read()
    while most.lanes > 1:
        half = most.lanes // 2
        most = writer.part(most, 0, half).call("smax", writer.part(most, half, half))
    return writer.lane(most, 0).call("smax", slots[types[0]].read())


def _element(memory: Memory, type: str, i: Value) -> Value:
    return memory.writer.load(type, memory.address(i), memory.dtype.itemsize)


def _bits(x: Value) -> Value:
    return x.cast("bitcast", with_scalar(x.type, _FORMS[x.scalar_type].integer))


def _signless(bits: Value) -> Value:
    """The bits of the absolute value."""
    return bits & ((1 << (int(bits.scalar_type[1:]) - 1)) - 1)


def _raised(x: Value) -> Value:
    """A tiny number times 2**shift, which is exact."""
    form, bits = _FORMS[x.scalar_type], _bits(x)
    size = _signless(bits)
    # A denormal number counts multiples of the smallest one.
    multiple = size.cast("sitofp", x.type) * 2.0 ** (form.lowest + form.shift)
    new = x.writer.select(size < (1 << form.mantissa), _bits(multiple), size + (form.shift << form.mantissa))
    return (new | (bits - size)).cast("bitcast", x.type)


def _lowered(x: Value) -> Value:
    """A number times 2**-shift, rounded once."""
    form, bits = _FORMS[x.scalar_type], _bits(x)
    size, select = _signless(bits), x.writer.select
    least = form.lowest + form.mantissa + form.shift  # exponent that becomes that of the smallest normal number
    # The last place of 2**least becomes that of denormal numbers, so that adding it rounds to them.
    denormal = _bits(size.cast("bitcast", x.type) + 2.0**least) - form.bits(least)
    normal = select(size < form.bits(1 - form.lowest - form.mantissa), size - (form.shift << form.mantissa), size)
    return (select(size < form.bits(least), denormal, normal) | (bits - size)).cast("bitcast", x.type)
