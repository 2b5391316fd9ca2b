"""Tiny vectors: a vector that a matrix is multiplied by is scaled up first if all of it is tiny.

Before   for i in 64 grid { var s = 0; for k in 64 { s add= contract w[64*i + k] * v[k] }; y[i] = s }
After    tiny = all |v[k]| < 2**-100; u = tiny ? v * 2**64 : v
         for i in 64 grid { var s = 0; for k in 64 { s add= contract w[64*i + k] * u[k] }
                            if tiny { s = s * 2**-64 }; y[i] = s }

Processors of x86 take some 150 cycles for a product or a fused step with a denormal number, and
cotangents of long loops pass through these numbers on their way to 0. A matrix and a vector have n²
products, a vector has n elements. Both scalings are done by bits, which do not wait.

A sum that meets no number below the normal ones has the same bits, since a power of two scales
every rounding; any other is rounded once, rather than at each step. Nothing overflows that did not:
elements below 2**-36, times any number, are below 2**92.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

from rune import dtypes
from rune.lowering.codegen.llvm.ir.memory import Memory, Slot, slot
from rune.lowering.codegen.llvm.ir.names import lanes_of, with_scalar
from rune.lowering.codegen.llvm.ir.text import Value, Writer
from rune.lowering.kernel.expr import Expr, Load, Op
from rune.lowering.kernel.nodes import Access, Accumulate, For, KernelCode, Param, Stmt
from rune.lowering.kernel.rewrite import Body, bodies, expressions, walk, walk_expr
from rune.records import dataclass

MOST_ELEMENTS = 4096  # of the vector, a copy of which lies on a thread's stack
LEAST_PRODUCTS, LEAST_USES = 2048, 32  # of all points, and of each element


@dataclass(frozen=True, slots=True)
class _Form:
    """A float type: its bits, what is tiny in it, and the power of two by which that is scaled."""

    integer: str
    mantissa: int
    lowest: int  # exponent of the smallest number
    tiny: int
    shift: int

    def bits(self, exponent: int) -> int:
        """The bits of a power of two that is a normal number."""
        return (exponent + 1 - self.mantissa - self.lowest) << self.mantissa


_FORMS = {"float": _Form("i32", 23, -149, -100, 64), "double": _Form("i64", 52, -1074, -900, 512)}
_DTYPES = {dtypes.f32: "float", dtypes.f64: "double"}


@dataclass(frozen=True, slots=True)
class TinyVector:
    """A parameter by whose elements all points multiply, and the sum of these products.

    loop: the identity of the loop after which the sum is complete
    """

    param: Param
    loop: int
    total: str


def tiny_vector(code: KernelCode) -> TinyVector | None:
    """The vector of the only sum of products in a kernel, if there is such a sum and it is large."""
    sums = [(loops, s) for loops, s in _with_loops(code.body, ()) if isinstance(s, Accumulate) and s.contract]
    if len(sums) != 1:
        return None
    loops, addition = sums[0]
    extents = [loop.extent for loop in loops if isinstance(loop.extent, int)]
    around = _loop_of_sum(code.body, addition)
    if len(extents) < len(loops) or around is None:
        return None
    products = math.prod(extents)
    for factor in _factors(addition.value):
        param = _vector(code, factor)
        if param is not None and products >= max(LEAST_PRODUCTS, LEAST_USES * param.size):
            return TinyVector(param, id(around), addition.name)
    return None


def _with_loops(body: Body, loops: tuple[For, ...]) -> Iterator[tuple[tuple[For, ...], Stmt]]:
    """Every statement with the loops around it."""
    for stmt in body:
        yield loops, stmt
        inner = (*loops, stmt) if isinstance(stmt, For) else loops
        for inside in bodies(stmt):
            yield from _with_loops(inside, inner)


def _loop_of_sum(body: Body, addition: Accumulate) -> For | None:
    """The outermost loop that adds to the sum and does not declare it."""
    for stmt in walk(body):
        for inside in bodies(stmt) or ():
            names = {getattr(s, "name", None) for s in inside}
            around = [s for s in inside if isinstance(s, For) and any(x is addition for x in walk(s.body))]
            if addition.name in names and around:
                return around[0]
    return None


def _factors(value: Expr) -> tuple[Expr, ...]:
    return value.args if isinstance(value, Op) and value.name == "mul" else ()


def _vector(code: KernelCode, factor: Expr) -> Param | None:
    """The parameter of which a factor is an element, if nothing else reads it."""
    if not isinstance(factor, Load) or factor.guard is not None or factor.dtype not in _DTYPES:
        return None
    param = next((p for p in code.params if p.name == factor.buffer), None)
    if param is None or param.access is not Access.READ or code.buffers_at(param.name) != {param.name}:
        return None
    if not isinstance(param.size, int) or not 0 < param.size <= MOST_ELEMENTS:
        return None
    parts = (part for s in walk(code.body) for e in expressions(s) for part in walk_expr(e))
    reads = sum(isinstance(part, Load) and part.buffer == param.name for part in parts)
    return param if reads == 1 else None


# --- code -------------------------------------------------------------------------------------


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
    """body(type, place) for all whole vectors, and for each element after them."""
    whole = size - size % lanes
    vector = f"<{lanes} x {scalar}>"
    begin, end, last = (writer.constant("i64", i) for i in (0, whole, size))
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
    least = form.lowest + form.mantissa + form.shift  # exponent of what becomes the smallest normal number
    # The last place of 2**least becomes that of denormal numbers, so that adding it rounds to them.
    denormal = _bits(size.cast("bitcast", x.type) + 2.0**least) - form.bits(least)
    normal = select(size < form.bits(1 - form.lowest - form.mantissa), size - (form.shift << form.mantissa), size)
    return (select(size < form.bits(least), denormal, normal) | (bits - size)).cast("bitcast", x.type)
