"""Expressions of kernel code in WGSL: see render.py.

Registers are bool, i32, u32 and f32. A narrow integer is extended to 32 bits and wrapped after each
operation that may leave its range; an i64 is an index, which has 32 bits here; a u64 is two words
(wide.py). WGSL guarantees little of IEEE 754 beyond +, -, * and /: helper functions (helpers.py)
do the rest on the bits of floats.

Every rendered expression can stand as an operand: a name, a call, a literal, or in parentheses.
"""

from __future__ import annotations

from dataclasses import field

import numpy as np

from rune import dtypes
from rune.dims import Size
from rune.errors import DtypeError
from rune.lowering.codegen.braces import Expressions as Shared
from rune.lowering.codegen.braces import Spelling
from rune.lowering.codegen.infix import bare
from rune.lowering.codegen.target import Native, every
from rune.lowering.codegen.wgsl import wide
from rune.lowering.kernel.expr import Const, Expr, Op
from rune.lowering.kernel.nodes import Store
from rune.lowering.kernel.rewrite import size_names
from rune.lowering.kernel.scalar import bit_width
from rune.lowering.legalize.scalars import conversion_name, function_name
from rune.lowering.scalar.number import Ability
from rune.lowering.scalar.table import COMPARISONS, OPERATIONS, ROWS, SIGNS
from rune.records import dataclass

# The type that values of a dtype have in registers; i64 is for indices alone, u64 for counters.
REGISTERS: dict[np.dtype, str] = {
    dtypes.bool_: "bool",
    **dict.fromkeys((dtypes.i8, dtypes.i16, dtypes.i32, dtypes.i64), "i32"),
    **dict.fromkeys((dtypes.u8, dtypes.u16, dtypes.u32), "u32"),
    dtypes.u64: wide.WIDE,
    dtypes.f32: "f32",
}
# The dtypes among these that memory may hold.
STORED = frozenset(REGISTERS) - {dtypes.i64, dtypes.u64}
# How a value comes from a word, or part of a word, in memory, and how it goes back. Arrays of a
# thread or its group hold values as they are, except that truth values are words there, too.
_TRUTH = {dtypes.bool_: "({0} != 0u)"}
_LOADED = _TRUTH | {
    dtypes.i8: "(i32({0} << 24u) >> 24u)",
    dtypes.i16: "(i32({0} << 16u) >> 16u)",
    dtypes.i32: "bitcast<i32>({0})",
    dtypes.f32: "bitcast<f32>({0})",
}
_WORD = {dtypes.bool_: "u32({0})"}
_STORED = {
    **dict.fromkeys((dtypes.bool_, dtypes.i8, dtypes.i16, dtypes.i32), "u32({0})"),
    dtypes.f32: "bitcast<u32>({0})",
}

_OF_BOOLS = {
    **{name: f"({{0}} {SIGNS[name]} {{1}})" for name in ("and", "or", "eq", "ne")},
    "xor": "({0} != {1})",
    "max": "({0} | {1})",
    "min": "({0} & {1})",
    "not": "(!{0})",
    "lt": "(!{0} & {1})",
    "le": "(!{0} | {1})",
    "gt": "({0} & !{1})",
    "ge": "({0} | !{1})",
}
_OF_FLOATS = {
    **{name: f"{name}({{0}})" for name in ("floor", "ceil", "trunc", "round")},
    **{n: f"rune_{n}({{0}})" for n in ("neg", "abs", "sqrt", "is_finite")},
    "copysign": "rune_copysign({0}, {1})",
    "fma": "fma({0}, {1}, {2})",
    "quotient": "({0} / {1})",
    "root": "sqrt({0})",
    "eq": "rune_equal({0}, {1})",
    "ne": "(!rune_equal({0}, {1}))",
    "lt": "rune_less({0}, {1})",
    "le": "rune_at_most({0}, {1})",
    "gt": "rune_less({1}, {0})",
    "ge": "rune_at_most({1}, {0})",
}
_ARITHMETIC = frozenset({"add", "sub", "mul", "div"})
_MOST = (1 << 31) - 1
_OF_INTEGERS = {
    **{n: f"({{0}} {SIGNS[n]} {{1}})" for n in (*sorted(COMPARISONS), "add", "sub", "mul", "and", "or", "xor")},
    **{n: f"{n}({{0}}, {{1}})" for n in ("max", "min")},
    "quotient": "({0} / {1})",
    "shift_left": "({0} << {amount})",
    "shift_right": "({0} >> {amount})",
    "neg": "(0{suffix} - {0})",
    "not": "(~{0})",
    "abs": "abs({0})",
}
_OF_WORDS = {"popcount": "countOneBits({0})", "clz": "countLeadingZeros({0})"}
_INTEGERS = REGISTERS.keys() & dtypes.INTEGER
NATIVE = Native(
    every(_ARITHMETIC | _OF_FLOATS.keys() | {"select", "bitcast", "integer_part"}, [dtypes.f32])
    | every(OPERATIONS, [dtypes.bool_, dtypes.u64])
    | every(_OF_INTEGERS.keys() | {"select", "bitcast"}, _INTEGERS)
    | every(_OF_WORDS, [dtypes.i32, dtypes.u32]),
    registers={d: dtypes.i32 if d in dtypes.SIGNED else dtypes.u32 for d in _INTEGERS},
    abilities=frozenset({Ability.COUNTS}),
)


@dataclass(frozen=True, slots=True)
class Place:
    """A buffer as expressions see it: an array of values, or elements of an array of words."""

    name: str
    memory: str = ""  # the words; "" for scratch, which holds values
    is_atomic: bool = False


@dataclass(slots=True)
class Expressions(Shared):
    """Renders expressions.

    sizes: the names whose values are in the uniform block;  native: operations that need no
    function of the module;  unsigned_locals: those that an index must convert to i32
    """

    spelling = Spelling(
        constant="let {name} = {value};",
        variable="var {name}: {type} = {value};",
        loop="for (var {name} = 0i; {name} < {value}; {name}++) {{",
        parameter="{name}: {type}",
        function="fn {name}({value}) -> {type} {{",
    )
    places: dict[str, Place]
    sizes: frozenset[str] = frozenset()
    native: Native = NATIVE
    unsigned_locals: set[str] = field(default_factory=set)
    sums: set[str] = field(default_factory=set)  # floats that a loop has accumulated, to be pinned where they are read

    def register(self, dtype: np.dtype) -> str:
        if dtype not in REGISTERS:
            raise _refusal(dtype)
        return REGISTERS[dtype]

    def symbol(self, name: str) -> str:
        identifier = self.names[name]
        if name in self.sizes:
            return f"args.size_{identifier}"
        return f"i32({identifier})" if name in self.unsigned_locals else identifier

    def index(self, dim: Size) -> str:
        return f"({self.size(dim)})" if size_names(dim) else f"{dim}i"

    def choice(self, condition: str, a: str, b: str) -> str:
        """Both are computed. Reading out of bounds is safe: it yields some value of that memory."""
        return f"select({bare(b)}, {bare(a)}, {bare(condition)})"

    def converted(self, text: str, type_: str) -> str:
        return f"{type_}({bare(text)})"

    # --- memory ------------------------------------------------------------------------------

    def element(self, buffer: str, index: Size, dtype: np.dtype) -> str:
        self.register(dtype)
        place, bits = self.places[buffer], 8 * dtype.itemsize
        if place.memory and bits < 32:
            word = f"{place.memory}_load{bits}({self.at(place, index)})"
        else:
            word = self.word(place, index)
            word = f"atomicLoad(&{word})" if place.is_atomic else word
        return (_LOADED if place.memory else _TRUTH).get(dtype, "{0}").format(word)

    def word(self, place: Place, index: Size) -> str:
        """The word of an element, or the element of an array that holds values."""
        return f"{place.memory}[{self.at(place, index)}]" if place.memory else f"{place.name}[{self.size(index)}]"

    def at(self, place: Place, index: Size) -> str:
        """The position of an element in its memory, counted in elements."""
        start, text = f"args.at_{place.name}", self.size(index)
        return start if text == "0" else f"{start} + {text}"

    def stored(self, buffer: str, index: Size, value: str, dtype: np.dtype) -> str:
        """The statement that stores a rendered value."""
        place, bits = self.places[buffer], 8 * dtype.itemsize
        content = self.content(place, value, dtype)
        if place.memory and bits < 32:
            return f"{place.memory}_store{bits}({self.at(place, index)}, {content})"
        word = self.word(place, index)
        return f"atomicStore(&{word}, {content})" if place.is_atomic else f"{word} = {content}"

    def content(self, place: Place, value: str, dtype: np.dtype) -> str:
        """What an array holds for a rendered value."""
        return bare((_STORED if place.memory else _WORD).get(dtype, "{0}").format(bare(value)))

    def changed(self, stmt: Store) -> str:
        """The statement that changes an element atomically; in memory, its word."""
        assert stmt.combine is not None
        place, value = self.places[stmt.buffer], stmt.value
        content = self.content(place, self.expr(value), value.dtype)
        return f"atomic{stmt.combine.capitalize()}(&{self.word(place, stmt.index)}, {content})"

    # --- values ------------------------------------------------------------------------------

    def local(self, name: str) -> str:
        identifier = self.names[name]
        return f"rune_pin({identifier})" if name in self.sums else identifier

    def op(self, op: Op) -> str:
        text = self.result(op)
        return f"rune_pin{text}" if self._rounds(op) else text

    def _rounds(self, op: Op) -> bool:
        """Whether it is a sum, product or quotient of the device's floats."""
        return op.name in _ARITHMETIC and op.dtype == dtypes.f32 and not self.native.lacks(op.name, op.dtype)

    def const(self, c: Const) -> str:
        """A literal; NaN, infinity, -0 and denormals by their bits."""
        register, dtype = self.register(c.dtype), c.dtype
        if dtype == dtypes.bool_:
            return "true" if c.value else "false"
        if dtype == dtypes.u64:
            return wide.literal(int(c.value))
        if dtype in dtypes.INTEGER:
            return _integer(int(c.value), dtype, register[0])
        bits = int(c.value.view(np.uint32))
        if 0 < bits & 0x7F800000 < 0x7F800000 or bits == 0:
            text = str(c.value)
            return f"({text}f)" if text.startswith("-") else f"{text}f"
        return f"rune_float(0x{bits:x}u)"

    def cast(self, arg: Expr, target: np.dtype) -> str:
        text, source = self.expr(arg), arg.dtype
        if source == target:
            return text
        from_, to = self.register(source), self.register(target)
        if dtypes.u64 in (source, target):
            return _wrap(wide.cast(text, source, target), target)
        if source == dtypes.f32:
            if target == dtypes.bool_:
                return f"rune_is_nonzero({bare(text)})"
            return f"rune_{conversion_name(source, target, NATIVE)}({bare(text)})"
        if target == dtypes.bool_:
            return f"({text} != 0{from_[0]})"
        if source == dtypes.u32 and target == dtypes.i64:
            return f"i32(min({bare(text)}, {_MOST}u))"
        return _wrapped(text if from_ == to else self.converted(text, to), source, target)

    def bitcast(self, arg: Expr, target: np.dtype) -> str:
        source = arg.dtype
        if isinstance(arg, Const):
            return self.const(Const(arg.bits, target))
        text = self.expr(arg)
        if source == target:
            return text
        from_, to = self.register(source), self.register(target)
        if target == dtypes.bool_:
            return f"({text} != 0{from_[0]})"
        if source == dtypes.bool_:
            return self.converted(text, to)
        bits = text if from_ == to else f"bitcast<{to}>({bare(text)})"
        return bits if source.itemsize == 4 else _wrap(bits, target)

    # --- operations --------------------------------------------------------------------------

    def result(self, op: Op) -> str:
        """An operation; a sum, product or quotient of floats is not pinned yet."""
        dtype = op.args[-1].dtype
        args = [self.expr(a) for a in op.args]
        if op.name == "select":
            return self.choice(*args)
        if dtype == dtypes.bool_:
            return _OF_BOOLS[op.name].format(*args)
        if dtype == dtypes.u64:
            return wide.operation(op.name, args)
        if all(isinstance(a, Const) for a in op.args):
            args[0] = self._rounding_fence(args[0], dtype)  # WGSL refuses constant expressions that overflow
        if self.native.lacks(op.name, dtype):
            name = function_name(op.name, self.native.register(op.name, dtype))
            text = f"rune_{name}({', '.join(map(bare, args))})"
        else:
            text = self._of_floats(op, args) if dtype == dtypes.f32 else self._of_integers(op, args, dtype)
        is_closed = dtype in ROWS[op.name].closed_dtypes or op.name in COMPARISONS
        return text if is_closed else _wrap(text, dtype)

    def _rounding_fence(self, text: str, dtype: np.dtype) -> str:
        register = self.register(dtype)
        return f"rune_pin({text})" if register == "f32" else f"rune_keep_{register}({text})"

    def _of_integers(self, op: Op, args: list[str], dtype: np.dtype) -> str:
        text, amount = {**_OF_INTEGERS, **_OF_WORDS}[op.name], _amount(op.args[-1], args[-1])
        return text.format(*args, amount=amount, suffix=self.register(dtype)[0])

    def _of_floats(self, op: Op, args: list[str]) -> str:
        if op.name not in _ARITHMETIC:
            return _OF_FLOATS[op.name].format(*map(bare, args))
        sides = [self._opaque(a, t) for a, t in zip(op.args, args, strict=True)]
        if sides[0] == sides[1] and op.name in ("sub", "div"):
            sides[1] = f"rune_pin({sides[1]})"  # x - x is NaN where x is infinite
        return f"({sides[0]} {SIGNS[op.name]} {sides[1]})"

    def _opaque(self, arg: Expr, text: str) -> str:
        """An operand, with a literal 0 hidden: -0 + 0 is not -0, and 0 * x not always 0, but
        compilers fold both."""
        is_zero = isinstance(arg, Const) and arg.value == 0
        return "rune_float(0u)" if is_zero and not text.startswith("rune_") else text


def require_stored(dtype: np.dtype) -> None:
    """Check that memory may hold elements of a dtype. Errors: DtypeError."""
    if dtype not in STORED:
        raise _refusal(dtype)


def _refusal(dtype: np.dtype) -> DtypeError:
    return DtypeError(
        f"render: cannot use {dtypes.short(dtype)} in WGSL (no such type in the language)",
        hint="compute in 32 bits, or on another device",
    )


def _amount(by: Expr, text: str) -> str:
    """The amount of a shift in the type that WGSL requires."""
    if isinstance(by, Const):
        return f"{int(by.value)}u"
    return text if by.dtype in dtypes.UNSIGNED else f"u32({bare(text)})"


def _integer(value: int, dtype: np.dtype, suffix: str) -> str:
    if not -_MOST - 1 <= value <= 2 * _MOST + 1:
        subject = f"{value} of {dtypes.short(dtype)}"
        raise DtypeError(f"render: cannot use {subject} in WGSL (its integers have 32 bits)")
    if value == -_MOST - 1:
        return f"i32({value})"
    return f"{value}{suffix}" if value >= 0 else f"({value}{suffix})"


def _wrap(text: str, dtype: np.dtype) -> str:
    """A register reduced to the low bits that a narrow dtype has."""
    bits = bit_width(dtype)
    if dtype == dtypes.bool_ or bits >= 32:
        return text
    if dtype in dtypes.SIGNED:
        return f"(({text} << {32 - bits}u) >> {32 - bits}u)"
    return f"({text} & 0x{(1 << bits) - 1:x}u)"


def _wrapped(text: str, source: np.dtype, target: np.dtype) -> str:
    """A converted integer, wrapped where the two dtypes show that it may not fit."""
    if target == dtypes.f32 or source == dtypes.bool_:
        return text
    wider = bit_width(source) > bit_width(target)
    changes = bit_width(source) == bit_width(target) and source != target
    to_unsigned = source in dtypes.SIGNED and target in dtypes.UNSIGNED
    return _wrap(text, target) if wider or changes or to_unsigned else text
