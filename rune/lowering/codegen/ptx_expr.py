"""Expressions of kernel code as PTX instructions: see ptx.py. Tables first, then the walk.

A bool is a predicate register. Floats are rounded explicitly; max, min and conversions to integers
treat NaN as kernel/scalar.py says, which PTX's own do not in every dtype.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rune import dtypes
from rune.dims import Dim, FloorDiv, Mod, Size, Symbol, Term
from rune.errors import CompileError, DtypeError
from rune.lowering.codegen.index_width import lifted
from rune.lowering.kernel.expr import COMPARISONS, Cast, Const, Expr, Index, Load, Local, Op
from rune.lowering.kernel.nodes import Accumulate, Store

# dtype -> type of an instruction, kind of register
_TYPES = {
    dtypes.bool_: ("pred", "p"),
    dtypes.i32: ("s32", "r"),
    dtypes.u32: ("u32", "r"),
    dtypes.i64: ("s64", "d"),
    dtypes.u64: ("u64", "d"),
    dtypes.f32: ("f32", "f"),
    dtypes.f64: ("f64", "g"),
}
_REGISTERS = {"p": "pred", "r": "b32", "d": "b64", "f": "f32", "g": "f64"}
# {t}: type, {s}: the signed one, {b}: untyped bits of the size
_FLOAT = {
    "add": "add.rn.{t}", "sub": "sub.rn.{t}", "mul": "mul.rn.{t}", "div": "div.rn.{t}",
    "neg": "neg.{t}", "abs": "abs.{t}", "sqrt": "sqrt.rn.{t}", "fma": "fma.rn.{t}",
}  # fmt: skip
_INTEGER = {
    "add": "add.{t}", "sub": "sub.{t}", "mul": "mul.lo.{t}", "neg": "neg.{s}",
    "max": "max.{t}", "min": "min.{t}",
    "and": "and.{b}", "or": "or.{b}", "xor": "xor.{b}", "not": "not.{b}",
}  # fmt: skip
_BOOL = {"and": "and", "or": "or", "xor": "xor", "not": "not", "max": "or", "min": "and"}


def type_of(dtype: np.dtype) -> str:
    """The type of an instruction. Errors: DtypeError."""
    if dtype not in _TYPES:
        raise DtypeError(
            f"ptx: cannot use {dtypes.short(dtype)} (32- and 64-bit numbers and bool only)",
            hint="CUDA C renders every dtype",
        )
    return _TYPES[dtype][0]


def _bits(dtype: np.dtype) -> str:
    return f"b{8 * dtype.itemsize}"


@dataclass(slots=True)
class Values:
    """Registers and instructions of one kernel.

    names: register and dtype of locals, loop variables and sizes; bases: addresses of buffers
    """

    kernel: str
    read_only: frozenset[str]
    names: dict[str, tuple[str, np.dtype]] = field(default_factory=dict)
    bases: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def emit(self, line: str) -> None:
        """Add an instruction, or a label, which stands at the margin."""
        self.lines.append(line if line.endswith(":") else f"  {line}")

    def new(self, kind: str) -> str:
        """A fresh register."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        return f"%{kind}{self.counts[kind]}"

    def fresh(self, dtype: np.dtype) -> str:
        """A fresh register for a value."""
        type_of(dtype)
        return self.new(_TYPES[dtype][1])

    def declarations(self) -> list[str]:
        """All registers in use."""
        return [f"  .reg .{_REGISTERS[k]} %{k}<{n + 1}>;" for k, n in self.counts.items()]

    def do(self, instruction: str, kind: str, *operands: str) -> str:
        """The register with what an instruction gives."""
        made = self.new(kind)
        self.emit(f"{instruction} {', '.join([made, *operands])};")
        return made

    def move(self, target: str, source: str, dtype: np.dtype) -> None:
        """Give a register a new value."""
        self.emit(f"mov.{'pred' if dtype == dtypes.bool_ else type_of(dtype)} {target}, {source};")

    def copied(self, source: str, dtype: np.dtype) -> str:
        """A register of its own with the same value."""
        made = self.fresh(dtype)
        self.move(made, source, dtype)
        return made

    # --- index expressions -------------------------------------------------------------------

    def size(self, x: Size) -> str:
        """An index expression as an operand: a register, or a number."""
        if not isinstance(x, Dim):
            return str(x)
        total = ""
        for term in x.terms:
            part = self._term(term)
            total = self.do("add.s64", "d", total, part) if total else part
        return total

    def index(self, x: Size) -> str:
        """An index expression in a register."""
        made = self.size(x)
        return made if made.startswith("%") else self.do("mov.b64", "d", made)

    def _term(self, term: Term) -> str:
        made = str(term.coefficient)
        for number, factor in enumerate(term.factors):
            value = self._factor(factor)
            plain = number == 0 and term.coefficient == 1
            made = value if plain else self.do("mul.lo.s64", "d", value, made)
        return made

    def _factor(self, factor: Symbol | FloorDiv | Mod) -> str:
        if isinstance(factor, Symbol):
            register, dtype = self.names[factor.name]
            return self.cast(register, dtype, dtypes.i64)
        d = factor.denominator
        moved, up, is_plain = lifted(factor.numerator, d)
        if not is_plain:
            raise CompileError(
                f"ptx: cannot render {self.kernel} (the sign of {moved} or {d} is not known)"
            )
        quotient = isinstance(factor, FloorDiv)
        operands = self.size(moved), self.size(d)
        made = self.do("div.s64" if quotient else "rem.s64", "d", *operands)
        return self.do("sub.s64", "d", made, str(up)) if up and quotient else made

    def address(self, buffer: str, index: Size, dtype: np.dtype) -> str:
        """Of one element."""
        operands = self.index(index), str(dtype.itemsize), self.bases[buffer]
        return self.do("mad.lo.s64", "d", *operands)

    # --- values ------------------------------------------------------------------------------

    def expr(self, expr: Expr) -> str:
        """The register that holds the value."""
        match expr:
            case Const():
                return self.const(expr)
            case Local(name=name):
                return self.names[name][0]
            case Index(dim=dim):
                return self.index(dim)
            case Load():
                return self.load(expr)
            case Cast(arg=arg, dtype=dtype):
                return self.cast(self.expr(arg), arg.dtype, dtype)
            case Op(name="bitcast", args=(arg,), dtype=dtype):
                return self.bitcast(self.expr(arg), arg.dtype, dtype)
            case Op():
                return self.op(expr.name, [self.expr(a) for a in expr.args], expr.args[-1].dtype)

    def const(self, c: Const) -> str:
        """A register with the constant's bits."""
        made = self.fresh(c.dtype)
        if c.dtype == dtypes.bool_:
            self.emit(f"setp.eq.u32 {made}, {int(bool(c.value))}, 1;")
            return made
        prefix = {dtypes.f32: "0f", dtypes.f64: "0d"}.get(c.dtype, "0x")
        self.emit(f"mov.{self._moved(c.dtype)} {made}, {prefix}{c.bits[::-1].hex().upper()};")
        return made

    def _moved(self, dtype: np.dtype) -> str:
        return type_of(dtype) if dtype in dtypes.FLOATING else _bits(dtype)

    def load(self, load: Load) -> str:
        """One element; where the guard fails, 0 and no access."""
        dtype, address = load.dtype, self.address(load.buffer, load.indices[0], load.dtype)
        is_bool = dtype == dtypes.bool_
        made, type_ = (self.new("r"), "u8") if is_bool else (self.fresh(dtype), type_of(dtype))
        only = ".nc" if load.buffer in self.read_only else ""
        guard = ""
        if load.guard is not None:
            guard = f"@{self.expr(load.guard)} "
            zero = {dtypes.f32: "0f00000000", dtypes.f64: "0d0000000000000000"}.get(dtype, "0")
            self.emit(f"mov.{'b32' if is_bool else self._moved(dtype)} {made}, {zero};")
        self.emit(f"{guard}ld.global{only}.{type_} {made}, [{address}];")
        return self.do("setp.ne.u32", "p", made, "0") if is_bool else made

    def bitcast(self, value: str, source: np.dtype, target: np.dtype) -> str:
        """The same bits in another dtype of the same size."""
        if source == target:
            return value
        made = self.fresh(target)
        self.emit(f"mov.{_bits(target)} {made}, {value};")
        return made

    def cast(self, value: str, source: np.dtype, target: np.dtype) -> str:
        """A conversion: floats to integers saturate, NaN becomes 0."""
        from_, to = type_of(source), type_of(target)
        if source == target:
            return value
        kind = _TYPES[target][1]
        if source == dtypes.bool_:
            one = {dtypes.f32: "0f3F800000", dtypes.f64: "0d3FF0000000000000"}.get(target, "1")
            zero = {dtypes.f32: "0f00000000", dtypes.f64: "0d0000000000000000"}.get(target, "0")
            return self.do(f"selp.{to}", kind, one, zero, value)
        if target == dtypes.bool_:
            zero = self.const(Const(bytes(source.itemsize), source))
            return self.compare("ne", value, zero, source)
        if source in dtypes.FLOATING and target in dtypes.INTEGER:
            made = self.do(f"cvt.rzi.{to}.{from_}", kind, value)
            is_nan = self.do(f"setp.nan.{from_}", "p", value, value)
            return self.do(f"selp.{to}", kind, "0", made, is_nan)
        if source.itemsize == target.itemsize and target in dtypes.INTEGER:
            return self.do(f"mov.{_bits(target)}", kind, value)
        rounds = target in dtypes.FLOATING and (source, target) != (dtypes.f32, dtypes.f64)
        return self.do(f"cvt{'.rn' if rounds else ''}.{to}.{from_}", kind, value)

    # --- operations --------------------------------------------------------------------------

    def combined(self, stmt: Accumulate | Store, old: str) -> str:
        """The old value combined with a new one; as one fma where the statement allows it."""
        value, name = stmt.value, stmt.combine or ""
        if stmt.contract and name == "add" and value.dtype in dtypes.FLOATING:
            if isinstance(value, Op) and value.name == "mul":
                return self.op("fma", [*map(self.expr, value.args), old], value.dtype)
        return self.op(name, [old, self.expr(value)], value.dtype)

    def op(self, name: str, args: list[str], dtype: np.dtype) -> str:
        """One operation on values of a dtype."""
        type_, kind = type_of(dtype), _TYPES[dtype][1]
        if name in COMPARISONS:
            return self.compare(name, args[0], args[1], dtype)
        if name == "select":
            return self.select(args, dtype)
        if dtype == dtypes.bool_ and name in _BOOL:
            return self.do(f"{_BOOL[name]}.pred", "p", *args)
        if dtype in dtypes.FLOATING and name in ("max", "min"):
            return self.extremum(name, args, dtype)
        known = _FLOAT if dtype in dtypes.FLOATING else _INTEGER
        if name not in known or dtype == dtypes.bool_:
            raise DtypeError(
                f"ptx: cannot render {name} of {dtypes.short(dtype)} in {self.kernel} "
                "(elementwise kernels and sums only)",
                hint="CUDA C renders every operation",
            )
        signed = "s" + type_[1:]
        text = known[name].format(t=type_, s=signed, b=_bits(dtype))
        return self.do(text, kind, *args)

    def compare(self, name: str, a: str, b: str, dtype: np.dtype) -> str:
        """A predicate; `ne` holds where an operand is NaN."""
        if dtype == dtypes.bool_:
            a, b = (self.do("selp.u32", "r", "1", "0", x) for x in (a, b))
            dtype = dtypes.u32
        unordered = "u" if name == "ne" and dtype in dtypes.FLOATING else ""
        return self.do(f"setp.{name}{unordered}.{type_of(dtype)}", "p", a, b)

    def select(self, args: list[str], dtype: np.dtype) -> str:
        """a where the condition holds, else b."""
        condition, a, b = args
        if dtype != dtypes.bool_:
            return self.do(f"selp.{type_of(dtype)}", _TYPES[dtype][1], a, b, condition)
        taken = self.do("and.pred", "p", condition, a)
        other = self.do("not.pred", "p", condition)
        other = self.do("and.pred", "p", other, b)
        return self.do("or.pred", "p", taken, other)

    def extremum(self, name: str, args: list[str], dtype: np.dtype) -> str:
        """max or min: the first where it is NaN or lies beyond the second."""
        type_, (a, b) = type_of(dtype), args
        beyond = self.do(f"setp.{'gt' if name == 'max' else 'lt'}.{type_}", "p", a, b)
        is_nan = self.do(f"setp.nan.{type_}", "p", a, a)
        first = self.do("or.pred", "p", beyond, is_nan)
        return self.do(f"selp.{type_}", _TYPES[dtype][1], a, b, first)
