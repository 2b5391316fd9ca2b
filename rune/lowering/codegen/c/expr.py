"""Expressions of kernel code in a language of the C family: see render.py.

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
from rune.lowering.codegen.c.dialect import Dialect, Scalar
from rune.lowering.codegen.infix import bare
from rune.lowering.codegen.runs import LoadRun
from rune.lowering.kernel.expr import Const, Expr, Op
from rune.lowering.kernel.scalar import unsigned_of
from rune.lowering.legalize.scalars import conversion_name, function_name
from rune.lowering.scalar.table import COMPARISONS, OPERATIONS, SIGNS
from rune.records import dataclass

# The scalar library calls these only with operands for which C defines them. Of narrow integers
# they give an int.
_PARTIAL = {"quotient": "/", "remainder": "%", "shift_right": ">>"}


@dataclass(slots=True)
class Expressions(Shared):
    """Renders expressions. `index_type`: of index arithmetic.

    `narrow`: index symbols that may have another type. `read_only`: buffers that nothing writes.
    """

    spelling = Spelling(
        constant="const {type} {name} = {value};",
        variable="{type} {name} = {value};",
        loop="for ({type} {name} = 0; {name} < {value}; {name}++) {{",
        parameter="{type} {name}",
        function="{type} {name}({value}) {{",
    )
    dialect: Dialect
    index_type: str = ""
    read_only: frozenset[str] = frozenset()
    narrow: set[str] = field(default_factory=set)
    dtypes_used: set[np.dtype] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.index_type = self.index_type or self.dialect.index_type

    def scalar(self, dtype: np.dtype) -> Scalar:
        """How the dialect represents a dtype."""
        if dtype not in self.dialect.scalars:
            subject = f"{dtypes.short(dtype)} in {self.dialect.name}"
            raise DtypeError(f"render: cannot use {subject} (no such type in the language)")
        self.dtypes_used.add(dtype)
        return self.dialect.scalars[dtype]

    def register(self, dtype: np.dtype) -> str:
        return self.scalar(dtype).register

    def symbol(self, name: str) -> str:
        identifier = self.names[name]
        return f"({self.index_type}){identifier}" if name in self.narrow else identifier

    def index(self, dim: Size) -> str:
        return f"({self.register(dtypes.i64)})({self.size(dim)})"

    def choice(self, condition: str, a: str, b: str) -> str:
        return f"({condition} ? {a} : {b})"

    def converted(self, text: str, type_: str) -> str:
        return f"({type_}){text}"

    # --- memory ------------------------------------------------------------------------------

    def neighbours(self, run: LoadRun) -> str:
        """A piece of neighbours in memory."""
        piece = self.piece(run.dtype, len(run.lets))
        address = f"&{self.names[run.buffer]}[{self.size(run.index)}]"
        if run.buffer in self.read_only and self.dialect.read_only:
            value = self.dialect.read_only.format(f"(const {piece}*){address}")
        else:
            value = self.dialect.piece_load.format(piece, address, len(run.lets))
        if run.guard is None:
            return value
        return f"{self.expr(run.guard)} ? {value} : {self.dialect.no_piece.format(piece)}"

    def piece(self, dtype: np.dtype, count: int) -> str:
        """The type of a piece of `count` neighbours."""
        return f"{self.dialect.pieces[dtype][0]}{count}"

    def element(self, buffer: str, index: Size, dtype: np.dtype) -> str:
        element = f"{self.names[buffer]}[{self.size(index)}]"
        if buffer in self.read_only and self.dialect.read_only:
            element = self.dialect.read_only.format(f"&{element}")
        return self.scalar(dtype).load.format(element)

    # --- values ------------------------------------------------------------------------------

    def const(self, c: Const) -> str:
        """A literal; NaN and infinity by their bits."""
        scalar, dtype = self.scalar(c.dtype), c.dtype
        if dtype == dtypes.bool_:
            return "true" if c.value else "false"
        if dtype in dtypes.INTEGER:
            return self._integer(int(c.value), dtype, scalar)
        wide = scalar.computes_as or dtype
        value = c.value.astype(wide)
        if not np.isfinite(value):
            bits, unsigned_scalar = int(value.view(unsigned_of(wide))), self.scalar(unsigned_of(wide))
            return self.dialect.from_bits[wide].format(f"0x{bits:x}{unsigned_scalar.suffix}")
        text = repr(float(value)) if wide == dtypes.f64 else str(value)
        text += self.scalar(wide).suffix
        return f"({text})" if text.startswith("-") else text

    def _integer(self, value: int, dtype: np.dtype, scalar: Scalar) -> str:
        if dtype.itemsize < 4:
            return f"({scalar.register}){value if value >= 0 else f'({value})'}"
        least = -(1 << (8 * dtype.itemsize - 1))
        if value == least and dtype in dtypes.SIGNED:
            return f"({value + 1}{scalar.suffix} - 1)"
        return f"{value}{scalar.suffix}" if value >= 0 else f"({value}{scalar.suffix})"

    def cast(self, arg: Expr, target: np.dtype) -> str:
        text, source = self.expr(arg), arg.dtype
        if source == target:
            return text
        to = self.scalar(target)
        self.scalar(source)
        if (source, target) in self.dialect.casts:
            return self.dialect.casts[source, target].format(text)
        if target == dtypes.bool_:
            return f"({text} != 0)"
        if source in dtypes.FLOATING and target in dtypes.INTEGER:
            return f"rune_{conversion_name(source, target, self.dialect.native)}({text})"
        wide = self.scalar(source).computes_as or source
        if to.computes_as is not None:
            plain = text if wide == to.computes_as else f"({to.register}){text}"
            return self.rounded(plain, target)
        return f"({to.register}){text}"

    def bitcast(self, arg: Expr, target: np.dtype) -> str:
        text, source = self.expr(arg), arg.dtype
        if source == target:
            return text
        from_, to = self.scalar(source), self.scalar(target)
        if from_.computes_as is not None or source == dtypes.bool_:
            text = self._element(text, from_)
        elif source in dtypes.FLOATING:
            text = self.dialect.to_bits[source].format(text)
        if to.computes_as is not None or target == dtypes.bool_:
            return to.load.format(f"({self.register(unsigned_of(target))}){text}")
        if target in dtypes.FLOATING:
            unsigned_type = self.register(unsigned_of(target))
            return self.dialect.from_bits[target].format(f"({unsigned_type}){text}")
        return f"({to.register}){text}"

    def rounded(self, text: str, dtype: np.dtype) -> str:
        """A value computed in a wider register, rounded to what the dtype can hold."""
        scalar = self.scalar(dtype)
        return scalar.load.format(scalar.store.format(text))

    def stored(self, value: Expr) -> str:
        """The value as an element in memory."""
        return bare(self._element(self.expr(value), self.scalar(value.dtype)))

    def _element(self, text: str, scalar: Scalar) -> str:
        """A register value as in memory; a loaded value is stored back with all its bits."""
        before = scalar.load.partition("{0}")[0]
        if scalar.computes_as is not None and text.startswith(before):
            inner = text[len(before) - 1 :]
            if bare(inner) != inner:
                return inner
        return scalar.store.format(text)

    # --- operations --------------------------------------------------------------------------

    def op(self, op: Op) -> str:
        args = [self.expr(a) for a in op.args]
        dtype = op.args[-1].dtype
        if op.name == "select":
            return self.choice(*args)
        if op.name in COMPARISONS:
            return f"({args[0]} {SIGNS[op.name]} {args[1]})"
        if dtype == dtypes.bool_:
            return self._of_bools(op.name, args)
        if dtype in dtypes.INTEGER:
            return self._of_integers(op.name, args, dtype)
        text = self._of_floats(op.name, args, dtype)
        narrow = self.scalar(dtype).computes_as is not None and op.dtype == dtype
        is_closed = dtype in OPERATIONS[op.name].closed_dtypes
        return self.rounded(text, dtype) if narrow and not is_closed else text

    def _of_bools(self, name: str, args: list[str]) -> str:
        if name == "not":
            return f"(!{args[0]})"
        return f"({args[0]} {SIGNS[{'max': 'or', 'min': 'and'}.get(name, name)]} {args[1]})"

    def _of_integers(self, name: str, args: list[str], dtype: np.dtype) -> str:
        type_ = self.register(dtype)
        known = self.dialect.functions.get(dtype, {})
        if name in known:
            return known[name].format(*args)
        if self.dialect.native.lacks(name, dtype):
            return f"rune_{function_name(name, dtype)}({', '.join(args)})"
        if name in _PARTIAL or name in ("and", "or", "xor"):
            return f"({type_})({args[0]} {_PARTIAL.get(name) or SIGNS[name]} {args[1]})"
        if name == "not":
            return f"({type_})(~{args[0]})"
        # Signed overflow is undefined in C, and narrow types promote to int: wrap as unsigned.
        wide = self.register(unsigned_of(dtype) if dtype.itemsize >= 4 else dtypes.u32)
        if name == "neg":
            return f"({type_})(({wide})0 - ({wide}){args[0]})"
        sign = "<<" if name == "shift_left" else SIGNS[name]
        if type_ == wide:
            return f"({args[0]} {sign} {args[1]})"
        return f"({type_})(({wide}){args[0]} {sign} ({wide}){args[1]})"

    def _of_floats(self, name: str, args: list[str], dtype: np.dtype) -> str:
        if name in ("add", "sub", "mul", "div"):
            return f"({args[0]} {SIGNS[name]} {args[1]})"
        if name == "neg":
            return f"(-{args[0]})"
        register = self.dialect.native.register(name, dtype)
        known = self.dialect.functions.get(register, {})
        if name in known:
            return known[name].format(*args)
        return f"rune_{function_name(name, register)}({', '.join(args)})"
