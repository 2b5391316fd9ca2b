"""Expressions of kernel code as PTX instructions: see ptx.py. Tables first, then the walk.

A bool is a predicate register. Floats are rounded explicitly; max, min and conversions to integers
treat NaN as kernel/scalar.py says, which PTX's own do not in every dtype.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np

from rune import dtypes
from rune.dims import Dim, FloorDiv, Mod, Size, Symbol, Term
from rune.errors import CompileError, DtypeError
from rune.lowering.codegen.index_width import lifted, may_be_zero
from rune.lowering.codegen.registers import Kind, Step, Value
from rune.lowering.kernel.expr import COMPARISONS, Cast, Const, Expr, Index, Load, Local, Op
from rune.lowering.kernel.nodes import Accumulate, Store


def _in_words(name: str, type_: str, words: int) -> Kind:
    load, store = f"ld.local.{type_} {{0}}, [local_{name}+{{1}}];", f"st.local.{type_}"
    return Kind(name, "words", words, 4 * words, load, f"{store} [local_{name}+{{1}}], {{0}};")


# Kinds of registers: what stands behind the % of their names. Predicates are a file of their own,
# without instructions to and from memory.
WORD, LONG = _in_words("r", "b32", 1), _in_words("d", "b64", 2)
FLOAT, DOUBLE = _in_words("f", "f32", 1), _in_words("g", "f64", 2)
PREDICATE = Kind(
    "p", "predicates", 1, 4, "setp.ne.u32 {0}, {1}, 0;", "selp.u32 {0}, 1, 0, {1};", via=WORD
)
DECLARED = {PREDICATE: "pred", WORD: "b32", LONG: "b64", FLOAT: "f32", DOUBLE: "f64"}

# dtype -> type of an instruction, kind of register
_TYPES = {
    dtypes.bool_: ("pred", PREDICATE),
    dtypes.i32: ("s32", WORD),
    dtypes.u32: ("u32", WORD),
    dtypes.i64: ("s64", LONG),
    dtypes.u64: ("u64", LONG),
    dtypes.f32: ("f32", FLOAT),
    dtypes.f64: ("f64", DOUBLE),
}
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


Operand = Value | str  # a register, or what PTX writes instead: a number, "%tid.x"


@dataclass(slots=True)
class Values:
    """Instructions of one kernel, over as many values as it likes.

    names: value and dtype of locals, loop variables and sizes; bases: addresses of buffers
    """

    kernel: str
    read_only: frozenset[str]
    names: dict[str, tuple[Value, np.dtype]] = field(default_factory=dict)
    bases: dict[str, Value] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    _named: set[Value] = field(default_factory=set)
    _numbers: count[int] = field(default_factory=count)

    def emit(
        self,
        code: str,
        writes: tuple[Value, ...] = (),
        reads: tuple[Value, ...] = (),
        nests: int = 0,
    ) -> None:
        """Add an instruction, or a label."""
        self.steps.append(Step(code, writes, reads, nests=nests))

    def new(self, kind: Kind) -> Value:
        """A fresh value."""
        return Value(next(self._numbers), kind)

    def fresh(self, dtype: np.dtype) -> Value:
        """A fresh value of a dtype."""
        type_of(dtype)
        return self.new(_TYPES[dtype][1])

    def bind(self, name: str, value: Value, dtype: np.dtype) -> None:
        """Give a value a name, by which later instructions find it."""
        self.names[name] = value, dtype
        self._named.add(value)

    def do(self, instruction: str, kind: Kind, *operands: Operand) -> Value:
        """What an instruction gives."""
        made = self.new(kind)
        self.compute(made, instruction, *operands)
        return made

    def compute(self, made: Value, instruction: str, *operands: Operand) -> None:
        """Write what an instruction gives to a value."""
        reads = tuple(x for x in operands if isinstance(x, Value))
        places = count(1)
        texts = (f"{{{next(places)}}}" if isinstance(x, Value) else x for x in operands)
        self.emit(f"{instruction} {', '.join(['{0}', *texts])};", (made,), reads)

    def move(self, target: Value, source: Value, dtype: np.dtype) -> None:
        """Give the target what the source holds, which nothing reads later unless it has a name."""
        last = self.steps[-1]
        if last.writes == (source,) and source not in (*last.reads, *self._named):
            self.steps[-1] = replace(last, writes=(target,))
        else:
            self.compute(target, f"mov.{type_of(dtype)}", source)

    def copied(self, source: Value, dtype: np.dtype) -> Value:
        """A value of its own that is the same."""
        made = self.fresh(dtype)
        self.move(made, source, dtype)
        return made

    # --- index expressions -------------------------------------------------------------------

    def size(self, x: Size) -> Operand:
        """An index expression: a value, or a number."""
        if not isinstance(x, Dim):
            return str(x)
        total: Operand = ""
        for term in x.terms:
            part = self._term(term)
            total = self.do("add.s64", LONG, total, part) if total else part
        return total

    def index(self, x: Size) -> Value:
        """An index expression as a value."""
        made = self.size(x)
        return made if isinstance(made, Value) else self.do("mov.b64", LONG, made)

    def _term(self, term: Term) -> Operand:
        made: Operand = str(term.coefficient)
        for number, factor in enumerate(term.factors):
            value = self._factor(factor)
            plain = number == 0 and term.coefficient == 1
            made = value if plain else self.do("mul.lo.s64", LONG, value, made)
        return made

    def _factor(self, factor: Symbol | FloorDiv | Mod) -> Value:
        if isinstance(factor, Symbol):
            value, dtype = self.names[factor.name]
            return self.cast(value, dtype, dtypes.i64)
        d = factor.denominator
        moved, up, is_plain = lifted(factor.numerator, d)
        if not is_plain:
            raise CompileError(
                f"ptx: cannot render {self.kernel} (the sign of {moved} or {d} is not known)"
            )
        quotient = isinstance(factor, FloorDiv)
        divisor = self.do("max.s64", LONG, self.size(d), "1") if may_be_zero(d) else self.size(d)
        result = self.do("div.s64" if quotient else "rem.s64", LONG, self.size(moved), divisor)
        return self.do("sub.s64", LONG, result, str(up)) if up and quotient else result

    def address(self, buffer: str, index: Size, dtype: np.dtype) -> Value:
        """Of one element."""
        operands = self.index(index), str(dtype.itemsize), self.bases[buffer]
        return self.do("mad.lo.s64", LONG, *operands)

    # --- values ------------------------------------------------------------------------------

    def expr(self, expr: Expr) -> Value:
        """The value of an expression."""
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

    def const(self, c: Const) -> Value:
        """The constant's bits."""
        kind = self.fresh(c.dtype).kind
        if c.dtype == dtypes.bool_:
            return self.do("setp.eq.u32", kind, str(int(bool(c.value))), "1")
        prefix = {dtypes.f32: "0f", dtypes.f64: "0d"}.get(c.dtype, "0x")
        return self.do(f"mov.{self._moved(c.dtype)}", kind, prefix + c.bits[::-1].hex().upper())

    def _moved(self, dtype: np.dtype) -> str:
        return type_of(dtype) if dtype in dtypes.FLOATING else _bits(dtype)

    def load(self, load: Load) -> Value:
        """One element; where the guard fails, 0 and no access."""
        dtype, address = load.dtype, self.address(load.buffer, load.indices[0], load.dtype)
        is_bool = dtype == dtypes.bool_
        made, type_ = (self.new(WORD), "u8") if is_bool else (self.fresh(dtype), type_of(dtype))
        code = f"ld.global{'.nc' if load.buffer in self.read_only else ''}.{type_}"
        if load.guard is None:
            self.emit(f"{code} {{0}}, [{{1}}];", (made,), (address,))
        else:
            guard = self.expr(load.guard)
            zero = {dtypes.f32: "0f00000000", dtypes.f64: "0d0000000000000000"}.get(dtype, "0")
            self.compute(made, f"mov.{'b32' if is_bool else self._moved(dtype)}", zero)
            # What is written under a condition keeps its value otherwise: it is read, too.
            self.emit(f"@{{3}} {code} {{0}}, [{{2}}];", (made,), (made, address, guard))
        return self.do("setp.ne.u32", PREDICATE, made, "0") if is_bool else made

    def bitcast(self, value: Value, source: np.dtype, target: np.dtype) -> Value:
        """The same bits in another dtype of the same size."""
        if source == target:
            return value
        return self.do(f"mov.{_bits(target)}", self.fresh(target).kind, value)

    def cast(self, value: Value, source: np.dtype, target: np.dtype) -> Value:
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
            is_nan = self.do(f"setp.nan.{from_}", PREDICATE, value, value)
            return self.do(f"selp.{to}", kind, "0", made, is_nan)
        if source.itemsize == target.itemsize and target in dtypes.INTEGER:
            return self.do(f"mov.{_bits(target)}", kind, value)
        rounds = target in dtypes.FLOATING and (source, target) != (dtypes.f32, dtypes.f64)
        return self.do(f"cvt{'.rn' if rounds else ''}.{to}.{from_}", kind, value)

    # --- operations --------------------------------------------------------------------------

    def combined(self, stmt: Accumulate | Store, old: Value) -> Value:
        """The old value combined with a new one; as one fma where the statement allows it."""
        value, name = stmt.value, stmt.combine or ""
        if stmt.contract and name == "add" and value.dtype in dtypes.FLOATING:
            if isinstance(value, Op) and value.name == "mul":
                return self.op("fma", [*map(self.expr, value.args), old], value.dtype)
        return self.op(name, [old, self.expr(value)], value.dtype)

    def op(self, name: str, args: list[Value], dtype: np.dtype) -> Value:
        """One operation on values of a dtype."""
        type_, kind = type_of(dtype), _TYPES[dtype][1]
        if name in COMPARISONS:
            return self.compare(name, args[0], args[1], dtype)
        if name == "select":
            return self.select(args, dtype)
        if dtype == dtypes.bool_ and name in _BOOL:
            return self.do(f"{_BOOL[name]}.pred", PREDICATE, *args)
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

    def compare(self, name: str, a: Value, b: Value, dtype: np.dtype) -> Value:
        """A predicate; `ne` holds where an operand is NaN."""
        if dtype == dtypes.bool_:
            a, b = (self.do("selp.u32", WORD, "1", "0", x) for x in (a, b))
            dtype = dtypes.u32
        unordered = "u" if name == "ne" and dtype in dtypes.FLOATING else ""
        return self.do(f"setp.{name}{unordered}.{type_of(dtype)}", PREDICATE, a, b)

    def select(self, args: list[Value], dtype: np.dtype) -> Value:
        """a where the condition holds, else b."""
        condition, a, b = args
        if dtype != dtypes.bool_:
            return self.do(f"selp.{type_of(dtype)}", _TYPES[dtype][1], a, b, condition)
        taken = self.do("and.pred", PREDICATE, condition, a)
        other = self.do("not.pred", PREDICATE, condition)
        other = self.do("and.pred", PREDICATE, other, b)
        return self.do("or.pred", PREDICATE, taken, other)

    def extremum(self, name: str, args: list[Value], dtype: np.dtype) -> Value:
        """max or min: the first where it is NaN or lies beyond the second."""
        type_, (a, b) = type_of(dtype), args
        beyond = self.do(f"setp.{'gt' if name == 'max' else 'lt'}.{type_}", PREDICATE, a, b)
        is_nan = self.do(f"setp.nan.{type_}", PREDICATE, a, a)
        first = self.do("or.pred", PREDICATE, beyond, is_nan)
        return self.do(f"selp.{type_}", _TYPES[dtype][1], a, b, first)
