"""Kernel code whose narrow dtypes are kept as bits, for legalize/storage.py."""

from __future__ import annotations

from dataclasses import field, replace

import numpy as np

from rune import dtypes
from rune.lowering.kernel.expr import Cast, Const, Expr, Index, Load, Local, Op, const
from rune.lowering.kernel.nodes import (
    Accumulate,
    Alloc,
    Assign,
    Barrier,
    Fetch,
    For,
    If,
    KernelCode,
    Let,
    MatrixProduct,
    Stmt,
    Store,
    Var,
)
from rune.lowering.kernel.rewrite import Body, all_names, map_bodies, reserve
from rune.lowering.legalize.formats import FORMATS, bits_of, decode, encode, next_after, operation, to_odd
from rune.lowering.scalar.table import OPERATIONS
from rune.records import dataclass

NIBBLES = {dtypes.i4: dtypes.i8, dtypes.u4: dtypes.u8}


def container(dtype: np.dtype) -> np.dtype:
    """The unsigned integer that holds an element in memory."""
    return dtypes.u16 if dtype.itemsize == 2 else dtypes.u8


def register(dtype: np.dtype) -> np.dtype:
    """The dtype that values of a legalised dtype are computed in."""
    return NIBBLES.get(dtype, dtypes.f32)


def rewritten(code: KernelCode, foreign: frozenset[np.dtype]) -> KernelCode:
    """The code without these dtypes."""
    writer = _Writer(foreign, all_names(code))
    params = tuple(replace(p, dtype=writer.memory_dtype(p.dtype)) for p in code.params)
    return replace(code, params=params, body=writer.body(code.body))


@dataclass(slots=True)
class _Writer:
    """Rewrites statements. `lets`: the Lets that the current statement needs before it."""

    foreign: frozenset[np.dtype]
    bound_names: set[str]
    lets: list[Stmt] = field(default_factory=list)
    mutable: set[str] = field(default_factory=set)  # Vars
    known: dict[Expr, Expr] = field(default_factory=dict)  # the bits of rounded floats

    def bind(self, expr: Expr) -> Expr:
        """A name for the expression."""
        if isinstance(expr, Const | Local):
            return expr
        name = reserve("bits" if expr.dtype == dtypes.u32 else "number", self.bound_names)
        self.lets.append(Let(name, expr))
        return Local(name, expr.dtype)

    def memory_dtype(self, dtype: np.dtype) -> np.dtype:
        """The dtype of an element in memory."""
        return container(dtype) if dtype in self.foreign else dtype

    def value_dtype(self, dtype: np.dtype) -> np.dtype:
        """The dtype of a value."""
        return register(dtype) if dtype in self.foreign else dtype

    # --- statements --------------------------------------------------------------------------

    def body(self, body: Body) -> Body:
        """The statements, each after the Lets it needs."""
        statements: list[Stmt] = []
        for stmt in body:
            # The Lets of a statement go right before it and not before its loop, since they may
            # read loop variables.
            self.lets = []
            new_stmt = self.stmt(stmt)
            statements += self.lets
            statements.append(map_bodies(new_stmt, self.body))
        return tuple(statements)

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement itself; its bodies stay."""
        match stmt:
            case Let():
                return self.named(stmt)
            case Assign(value=value):
                return replace(stmt, value=self.value(value))
            case Var(name=name, init=init):
                self.mutable.add(name)
                return replace(stmt, init=self.value(init))
            case Accumulate():
                return self.accumulate(stmt)
            case Store():
                return self.store(stmt)
            case If(condition=condition):
                return replace(stmt, condition=self.value(condition))
            case Alloc(dtype=dtype):
                return replace(stmt, dtype=self.memory_dtype(dtype))
            case Fetch(guard=guard):
                return replace(stmt, guard=None if guard is None else self.value(guard))
            case For() | Barrier() | MatrixProduct():
                return stmt

    def named(self, stmt: Let) -> Stmt:
        """A Let; the name takes the known bits of its value, and loses those of an earlier one."""
        value = self.value(stmt.value)
        local = Local(stmt.name, value.dtype)
        # Two bodies may bind the same name to different values.
        self.known.pop(local, None)
        if value in self.known:
            self.known[local] = self.known[value]
        return Let(stmt.name, value)

    def accumulate(self, stmt: Accumulate) -> Stmt:
        """Integers may wrap at the end; build accumulates sums of narrow floats in f32."""
        dtype = stmt.value.dtype
        is_narrow_float = dtype in self.foreign & FORMATS.keys()
        is_closed = dtype in OPERATIONS[stmt.combine].closed_dtypes
        assert is_closed or not is_narrow_float, f"{stmt.combine} of {dtypes.short(dtype)}"
        return replace(stmt, value=self.value(stmt.value))

    def store(self, stmt: Store) -> Stmt:
        """Store the value as bits; a combination with memory reads the element first."""
        dtype = stmt.value.dtype
        value = self.value(stmt.value)
        if dtype not in self.foreign:
            return replace(stmt, value=value)
        # The device would combine the stored bits, not the numbers they stand for.
        if stmt.combine is not None:
            old = self.loaded(Load(stmt.buffer, (stmt.index,), dtype))
            value = self.computed(stmt.combine, dtype, (old, value))
        return Store(stmt.buffer, stmt.index, self.stored(value, dtype))

    # --- expressions -------------------------------------------------------------------------

    def value(self, expr: Expr) -> Expr:
        """The expression in the target's dtypes."""
        match expr:
            case Const(dtype=dtype):
                return const(expr.value, self.value_dtype(dtype)) if dtype in self.foreign else expr
            case Local(name=name, dtype=dtype) if dtype in self.foreign:
                local = Local(name, register(dtype))
                # An accumulated Var is wrapped only when read: sums in i8 wrap to the right four
                # bits.
                return self.wrapped(local, dtype) if name in self.mutable else local
            case Load(guard=guard):
                new_guard = None if guard is None else self.value(guard)
                return self.loaded(replace(expr, guard=new_guard))
            case Cast(arg=arg, dtype=dtype):
                return self.converted(self.value(arg), arg.dtype, dtype)
            case Op(name="bitcast", args=(arg,), dtype=dtype):
                return self.same_bits(self.value(arg), arg.dtype, dtype)
            case Op(name=name, args=args):
                return self.computed(name, args[-1].dtype, tuple(map(self.value, args)))
            case Local() | Index():
                return expr

    def loaded(self, load: Load) -> Expr:
        """One element as a value."""
        if load.dtype not in self.foreign:
            return load
        return self.decoded(replace(load, dtype=container(load.dtype)), load.dtype)

    def decoded(self, bits: Expr, dtype: np.dtype) -> Expr:
        """The value whose bits are in its container."""
        if dtype in FORMATS:
            word = self.bind(Cast(bits, dtypes.u32))
            number = decode(word, FORMATS[dtype], self.bind)
            # Moving a value keeps every bit, those of a NaN too.
            self.known[number] = word
            return number
        # In memory the upper half is 0; an i4 value needs its sign there.
        return self.wrapped(bits_of(bits, register(dtype)), dtype)

    def stored(self, value: Expr, dtype: np.dtype) -> Expr:
        """The bits of a value in its container."""
        if dtype in FORMATS:
            bits = self.known.get(value)
            # The bits of a value that was just rounded are known.
            bits = encode(value, FORMATS[dtype], self.bind) if bits is None else bits
            return Cast(bits, container(dtype))
        return operation("and", bits_of(value, dtypes.u8), const(15, dtypes.u8))

    def rounded(self, value: Expr, dtype: np.dtype) -> Expr:
        """The nearest value of the dtype."""
        if dtype in FORMATS:
            bits = self.bind(encode(value, FORMATS[dtype], self.bind))
            number = decode(bits, FORMATS[dtype], self.bind)
            self.known[number] = bits
            return number
        return self.wrapped(value, dtype)

    def wrapped(self, value: Expr, dtype: np.dtype) -> Expr:
        """The value of the four low bits, sign included; returns a float as it is."""
        if dtype not in NIBBLES:
            return value
        if dtype == dtypes.u4:
            return operation("and", value, const(15, dtypes.u8))
        four = const(4, dtypes.i8)
        # Shifting up and arithmetically down copies bit 3, the sign, upwards.
        return operation("shr", operation("shl", value, four), four)

    def computed(self, name: str, dtype: np.dtype, args: tuple[Expr, ...]) -> Expr:
        """An operation on operands of `dtype` that are values already."""
        if dtype not in self.foreign:
            return operation(name, *args)
        if name == "nextafter":
            return next_after(args[0], args[1], FORMATS[dtype], self.bind)
        if name in ("popcount", "clz"):
            # The upper bits of a negative i4 are ones, which must not be counted.
            low = operation("and", args[0], const(15, args[0].dtype))
            count = operation(name, low)
            four = const(4, count.dtype)
            return count if name == "popcount" else operation("sub", count, four)
        value = operation(name, *args)
        if dtype in OPERATIONS[name].closed_dtypes or value.dtype == dtypes.bool_:
            return value
        return self.rounded(value, dtype)

    def converted(self, x: Expr, source: np.dtype, target: np.dtype) -> Expr:
        """A conversion of a value of dtype `source`."""
        if source == target:
            return x
        if target not in self.foreign:
            return x if x.dtype == target else Cast(x, target)
        if target in FORMATS:
            return self.rounded(self.near(x, source, target), target)
        if x.dtype in dtypes.FLOATING:
            # Clamped to the range of four bits, because the conversion itself saturates at eight.
            low, high = (const(v, x.dtype) for v in ((-8, 7) if target == dtypes.i4 else (0, 15)))
            return Cast(operation("min", operation("max", x, low), high), register(target))
        return self.wrapped(self.converted(x, source, register(target)), target)

    def near(self, x: Expr, source: np.dtype, target: np.dtype) -> Expr:
        """The f32 to round to a narrow float; a conversion from f64 to bf16 rounds twice."""
        if source == dtypes.f64 and target == dtypes.f16:
            return to_odd(self.bind(x), self.bind)
        return self.converted(x, source, dtypes.f32)

    def same_bits(self, x: Expr, source: np.dtype, target: np.dtype) -> Expr:
        """The bits of a value read as another dtype of its size."""
        if source in self.foreign:
            x = self.stored(x, source)
        elif target in self.foreign:
            x = bits_of(x, container(target))
        if target in self.foreign:
            return self.decoded(x, target)
        return x if x.dtype == target else bits_of(x, target)
