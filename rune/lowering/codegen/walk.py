"""The walk over kernel code that renderers share: which method renders which node.

A renderer says what each node becomes. T is what an expression becomes: text, or a value of the
function under construction. accesses.py adds accesses of several elements.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

import numpy as np

from rune.dims import Size
from rune.lowering.codegen.units import refuse_unit
from rune.lowering.kernel.expr import Cast, Const, Expr, Index, Load, Local, Op
from rune.lowering.kernel.nodes import (
    Accumulate,
    Alloc,
    Assign,
    Barrier,
    Fetch,
    For,
    If,
    Let,
    MatrixProduct,
    Stmt,
    Store,
    Var,
)
from rune.lowering.kernel.rewrite import Body, updated

T = TypeVar("T")
_CONVERSIONS = frozenset({"bitcast", "integer_part"})


class ExpressionWalk(ABC, Generic[T]):
    """Renders expressions."""

    __slots__ = ()

    def expr(self, expr: Expr) -> T:
        """What an expression becomes."""
        match expr:
            # The most frequent nodes first: a match tries one class after another.
            case Local(name=name):
                return self.local(name)
            case Op(name=name):
                return self.op(expr) if name not in _CONVERSIONS else self.conversion(expr)
            case Const():
                return self.const(expr)
            case Load():
                return self.load(expr)
            case Index(dim=dim):
                return self.index(dim)
            case Cast(arg=arg, dtype=dtype):
                return self.cast(arg, dtype)

    def conversion(self, op: Op) -> T:
        """What a conversion among the operations becomes."""
        (arg,) = op.args
        return self.bitcast(arg, op.dtype) if op.name == "bitcast" else self.integer_part(arg, op.dtype)

    @abstractmethod
    def const(self, c: Const) -> T:
        """A literal."""

    @abstractmethod
    def local(self, name: str) -> T:
        """What a name stands for now."""

    @abstractmethod
    def index(self, dim: Size) -> T:
        """An index expression as a value."""

    @abstractmethod
    def load(self, load: Load) -> T:
        """An element, or 0 where the guard does not hold."""

    @abstractmethod
    def cast(self, arg: Expr, target: np.dtype) -> T:
        """A conversion."""

    @abstractmethod
    def bitcast(self, arg: Expr, target: np.dtype) -> T:
        """The same bits in another dtype of the same size."""

    @abstractmethod
    def integer_part(self, arg: Expr, target: np.dtype) -> T:
        """A float truncated towards zero; the integer dtype can hold the result."""

    @abstractmethod
    def op(self, op: Op) -> T:
        """An operation."""


class StatementWalk(ABC):
    """Writes statements."""

    __slots__ = ()

    def body(self, body: Body) -> None:
        """Write statements in order."""
        for stmt in body:
            self.stmt(stmt)

    def stmt(self, stmt: Stmt) -> None:
        """Write one statement."""
        match stmt:
            case Let(name=name, value=value):
                self.let(name, value)
            case Var(name=name, init=init):
                self.var(name, init)
            case Assign(name=name, value=value):
                self.assign(name, value)
            case Accumulate():
                self.accumulate(stmt)
            case Store():
                self.store(stmt)
            case If():
                self.branch(stmt)
            case For():
                self.loop(stmt)
            case Alloc():
                self.alloc(stmt)
            case Barrier():
                self.barrier(stmt)
            case Fetch():
                self.fetch(stmt)
            case MatrixProduct():
                self.multiply(stmt)

    @property
    @abstractmethod
    def language(self) -> str:
        """The language's name, for error messages."""

    @abstractmethod
    def let(self, name: str, value: Expr) -> None:
        """Name a value."""

    @abstractmethod
    def var(self, name: str, init: Expr) -> None:
        """Declare a mutable scalar."""

    @abstractmethod
    def assign(self, name: str, value: Expr) -> None:
        """Give a mutable scalar a value."""

    def accumulate(self, stmt: Accumulate) -> None:
        """Combine a value into a mutable scalar."""
        self.assign(stmt.name, updated(stmt))

    @abstractmethod
    def store(self, stmt: Store) -> None:
        """Write an element."""

    @abstractmethod
    def branch(self, stmt: If) -> None:
        """Write an If."""

    @abstractmethod
    def loop(self, loop: For) -> None:
        """Write a loop."""

    @abstractmethod
    def alloc(self, stmt: Alloc) -> None:
        """Declare an array that belongs to a thread or to its group."""

    @abstractmethod
    def barrier(self, stmt: Barrier) -> None:
        """Wait for the threads of a group."""

    def fetch(self, stmt: Fetch) -> None:
        """Copy into shared memory."""
        refuse_unit(stmt, self.language)

    def multiply(self, stmt: MatrixProduct) -> None:
        """Multiply matrices."""
        refuse_unit(stmt, self.language)
