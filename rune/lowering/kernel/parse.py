"""Read kernel code from text; text.py has the grammar.

A recursive descent over tokens: one function per rule. Symbols, locals and buffers are looked up
while reading, so that every node gets its dtype and every index symbol its bounds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import NamedTuple, NoReturn, TypeVar

import numpy as np

from rune import dims, dtypes
from rune.core.reading import reading
from rune.dims import Dim, Size
from rune.errors import CheckError
from rune.lowering.kernel.expr import Cast, Const, Expr, Index, Load, Local, Op, const
from rune.lowering.kernel.nodes import (
    COMBINES,
    Access,
    Accumulate,
    AddressSpace,
    Alloc,
    Assign,
    Barrier,
    Factor,
    Fetch,
    For,
    If,
    KernelCode,
    Kind,
    Let,
    MatrixProduct,
    Param,
    Stmt,
    Store,
    Var,
)
from rune.lowering.kernel.notation import read_const
from rune.lowering.kernel.rewrite import Body
from rune.lowering.scalar.table import OPERATIONS, SIGNS, result_dtype
from rune.records import dataclass

T = TypeVar("T")
_DTYPES = "|".join(map(re.escape, dtypes.FROM_SHORT))
_TOKEN = re.compile(
    # Constants come first: `inf_f32` looks like a name and `1_f32` begins like a number.
    rf"\s+|#[^\n]*|(?P<constant>-?(?:inf|nan|\d+\.?\d*(?:e[+-]?\d+)?)_(?:{_DTYPES})\b)"
    r"|(?P<name>[^\W\d]\w*)|(?P<number>\d+)"
    r"|(?P<sign>\.\.|//|<<|>>|==|!=|<=|>=|[-+*/%&|^<>=:,(){}\[\]])"
)
_BY_SIGN = {sign: name for name, sign in SIGNS.items()}


class _Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


@dataclass(slots=True)
class Reader:
    """A position among tokens, and what the names in scope stand for."""

    text: str
    tokens: list[_Token]
    at: int = 0
    symbols: dict[str, Dim] = field(default_factory=dict)
    locals: dict[str, np.dtype] = field(default_factory=dict)
    buffers: dict[str, np.dtype] = field(default_factory=dict)

    # --- tokens ------------------------------------------------------------------------------

    def fail(self, expectation: str) -> NoReturn:
        token = self.tokens[self.at]
        line = self.text.count("\n", 0, token.start) + 1
        actual = repr(token.text) if token.text else "the end"
        raise CheckError(f"parse: cannot read kernel code (line {line}: {expectation}, not {actual})")

    def peek(self, text: str, distance: int = 0) -> bool:
        at = self.at + distance
        return at < len(self.tokens) and self.tokens[at].text == text

    def take(self, *texts: str) -> str:
        token = self.tokens[self.at]
        if token.text not in texts:
            self.fail(" or ".join(map(repr, texts)))
        self.at += 1
        return token.text

    def skip(self, text: str) -> bool:
        is_next = self.peek(text)
        self.at += is_next
        return is_next

    def word(self, kind: str = "name") -> str:
        token = self.tokens[self.at]
        if token.kind != kind:
            self.fail(f"a {kind}")
        self.at += 1
        return token.text

    def number(self) -> int:
        return int(self.word("number"))

    def listed(self, read: Callable[[], T]) -> tuple[T, ...]:
        """One or more items that `read` reads, separated by commas."""
        items = [read()]
        while self.skip(","):
            items.append(read())
        return tuple(items)

    def within(self, first: str, read: Callable[[], T], last: str) -> T:
        """The item that `read` reads, between two tokens."""
        self.take(first)
        item = read()
        self.take(last)
        return item

    def index(self) -> Size:
        """`[3*i]`."""
        return self.within("[", lambda: self.dim("]"), "]")

    def pass_over(self) -> None:
        """Skip a token that is read later."""
        if not self.tokens[self.at].text:
            self.fail("more")
        self.at += 1

    def dtype(self) -> np.dtype:
        name = self.word()
        if name not in dtypes.FROM_SHORT:
            # Step back, so that the message shows this word.
            self.at -= 1
            self.fail("a dtype")
        return dtypes.FROM_SHORT[name]

    def dim(self, *ends: str) -> Size:
        """The text up to one of `ends` outside parentheses, as a dimension."""
        # Dimensions have their own grammar, so their text is cut out for rune.dims.
        first, depth = self.at, 0
        while depth or self.tokens[self.at].text not in ends:
            token = self.tokens[self.at]
            if not token.text:
                self.fail(" or ".join(map(repr, ends)))
            depth += (token.text == "(") - (token.text == ")")
            self.at += 1
        text = self.text[self.tokens[first].start : self.tokens[self.at - 1].end]
        return dims.parse(text, self.symbols)

    def range(self, name: str, *ends: str) -> None:
        """`in low..high`: the bounds of the symbol `name` from here on."""
        if not self.skip("in"):
            return
        low = self.dim("..")
        self.take("..")
        high = None if self.tokens[self.at].text in ends else self.dim(*ends)
        self.symbols[name] = dims.symbol(name, low, high)

    # --- the kernel --------------------------------------------------------------------------

    def code(self) -> KernelCode:
        self.take("code")
        name, start = self.word(), self.at
        sizes = self.sizes()
        # Back to the parameters, now that the bounds of their sizes are known.
        self.at, end = start, self.at
        params = self.params()
        self.at = end
        aliases = self.listed(self.alias) if self.skip("aliases") else ()
        scalar_loops = self.listed(self.word) if self.skip("ordered") else ()
        body = self.body()
        if self.tokens[self.at].text:
            self.fail("the end")
        return KernelCode(name, params, sizes, body, aliases, scalar_loops)

    def sizes(self) -> tuple[str, ...]:
        # Parameters mention sizes whose bounds follow later, so the sizes are read first.
        while not self.skip(")"):
            self.pass_over()
            if self.peek("["):
                while not self.skip("]"):
                    self.pass_over()
        return self.listed(self.size) if self.skip("sizes") else ()

    def size(self) -> str:
        name = self.word()
        self.range(name, ",", "{", "aliases", "ordered")
        return name

    def alias(self) -> tuple[str, str]:
        first = self.word()
        self.take("=")
        return first, self.word()

    def params(self) -> tuple[Param, ...]:
        return self.within("(", lambda: () if self.peek(")") else self.listed(self.param), ")")

    def param(self) -> Param:
        name = self.word()
        self.take(":")
        access = Access(self.take(*(a.value for a in Access)))
        self.buffers[name] = dtype = self.dtype()
        return Param(name, dtype, self.index(), access)

    # --- statements --------------------------------------------------------------------------

    def body(self) -> Body:
        self.take("{")
        outer = self.symbols, self.locals, self.buffers
        self.symbols = dict(self.symbols)
        self.locals, self.buffers = dict(self.locals), dict(self.buffers)
        statements: list[Stmt] = []
        while not self.skip("}"):
            statements.append(self.stmt())
        self.symbols, self.locals, self.buffers = outer
        return tuple(statements)

    def stmt(self) -> Stmt:
        match self.tokens[self.at].text:
            case "for":
                return self.loop()
            case "if":
                self.at += 1
                condition, body = self.expr(), self.body()
                return If(condition, body, self.body() if self.skip("else") else ())
            case "store" | "update" | "atomic":
                return self.store()
            case "alloc":
                return self.alloc()
            case "barrier":
                self.at += 1
                return self.barrier()
            case "fetch":
                return self.fetch()
            case "multiply":
                return self.multiply()
            case "var":
                self.at += 1
                return self.binding(mutable=True)
        # `name : dtype` declares, and `name =` or `name add=` changes.
        return self.binding(mutable=False) if self.peek(":", 1) else self.change()

    def loop(self) -> For:
        self.take("for")
        var = self.word()
        self.take("in")
        kinds = tuple(k.value for k in Kind)
        extent = self.dim(*kinds)
        kind = Kind(self.take(*kinds))
        outer = self.symbols
        self.symbols = {**outer, var: dims.symbol(var, 0, extent - 1)}
        body = self.body()
        self.symbols = outer
        return For(var, extent, kind, body)

    def barrier(self) -> Barrier:
        threads, in_flight, waits_for_products = None, 0, False
        # The commas are needed: the next statement may begin with one of these words as a name.
        while self.skip(","):
            match self.take("of", "behind", "summed"):
                case "of":
                    threads = self.number()
                case "behind":
                    in_flight = self.number()
                case _:
                    waits_for_products = True
        return Barrier(threads, in_flight, waits_for_products)

    def binding(self, mutable: bool) -> Let | Var:
        name = self.word()
        self.take(":")
        dtype = self.dtype()
        self.range(name, "=")
        self.take("=")
        # Bound only now, since the value may mention an outer name that is spelled the same.
        value = self.expr()
        self.locals[name] = dtype
        return Var(name, value) if mutable else Let(name, value)

    def change(self) -> Assign | Accumulate:
        name = self.word()
        if self.skip("="):
            return Assign(name, self.expr())
        combine = self.take(*COMBINES)
        self.take("=")
        contract = self.skip("contract")
        return Accumulate(name, combine, self.expr(), contract)

    def store(self) -> Store:
        word = self.take("store", "update", "atomic")
        buffer, index = self.word(), self.index()
        combine = None if word == "store" else self.take(*COMBINES)
        self.take("=")
        contract = word == "update" and self.skip("contract")
        return Store(buffer, index, self.expr(), combine, contract, word == "atomic")

    def alloc(self) -> Alloc:
        self.take("alloc")
        name = self.word()
        self.take(":")
        self.buffers[name] = dtype = self.dtype()
        size = self.within("[", self.number, "]")
        space = AddressSpace(self.take(*(s.value for s in AddressSpace)))
        return Alloc(name, dtype, size, space)

    def fetch(self) -> Fetch:
        self.take("fetch")
        count = self.number()
        self.take("of")
        load = self.load()
        self.take("into")
        return Fetch(self.word(), self.index(), load.buffer, load.indices[0], count, load.guard)

    def multiply(self) -> MatrixProduct:
        self.take("multiply")
        subgroups = 1
        if self.skip("by"):
            subgroups = self.number()
            self.take("subgroups")
        a = self.factor()
        self.take("by")
        b = self.factor()
        self.take("into")
        return MatrixProduct(a, b, self.listed(self.row), subgroups)

    def factor(self) -> Factor:
        load = self.load()
        index, *strides = load.indices
        if len(strides) not in (2, 3) or not all(isinstance(s, int) for s in strides):
            self.fail("two or three strides")
        position, depth, *block = (int(str(s)) for s in strides)
        return Factor(load.buffer, index, position, depth, load.dtype, *block)

    def row(self) -> tuple[str, ...]:
        return self.within("(", lambda: self.listed(self.word), ")")

    # --- expressions -------------------------------------------------------------------------

    def expr(self) -> Expr:
        first = self.term()
        sign = self.tokens[self.at].text
        if sign not in _BY_SIGN:
            return first
        self.at += 1
        # At most one operator: deeper expressions are parenthesised, so there is no precedence.
        return _op(_BY_SIGN[sign], (first, self.term()))

    def term(self) -> Expr:
        token = self.tokens[self.at]
        if token.kind == "constant":
            self.at += 1
            return read_const(token.text)
        if self.peek("("):
            return self.within("(", self.expr, ")")
        # "-1_f32" is one token; a minus sign by itself negates a term.
        if self.skip("-"):
            return _op("neg", (self.term(),))
        if self.peek("(", 1):
            return self.call()
        if self.peek("[", 1):
            return self.load()
        if token.text in ("true", "false"):
            self.at += 1
            return const(token.text == "true", dtypes.bool_)
        if token.text not in self.locals:
            self.fail("an expression")
        return Local(self.word(), self.locals[token.text])

    def call(self) -> Expr:
        name = self.word()
        self.take("(")
        if name == "index":
            expr: Expr = Index(self.dim(")"))
        elif name.startswith("bits_"):
            start = self.tokens[self.at].start
            while not self.peek(")"):
                self.pass_over()
            digits = self.text[start : self.tokens[self.at].start].strip()
            # Printed with the highest byte first, stored with the lowest first.
            expr = Const(bytes.fromhex(digits)[::-1], dtypes.FROM_SHORT[name[5:]])
        elif name.startswith("bitcast_"):
            expr = Op("bitcast", (self.expr(),), dtypes.FROM_SHORT[name[8:]])
        elif name in dtypes.FROM_SHORT:
            expr = Cast(self.expr(), dtypes.FROM_SHORT[name])
        elif name in OPERATIONS:
            expr = _op(name, self.listed(self.expr))
        else:
            self.fail(f"an operation before {name!r}")
        self.take(")")
        return expr

    def load(self) -> Load:
        buffer = self.word()
        if buffer not in self.buffers:
            self.fail(f"a buffer before {buffer!r}")
        self.take("[")
        indices: list[Size] = []
        while not (self.peek("]") or self.peek("if")):
            indices.append(self.dim("]", "if", ","))
            self.skip(",")
        guard = self.expr() if self.skip("if") else None
        self.take("]")
        return Load(buffer, tuple(indices), self.buffers[buffer], guard)


def _op(name: str, args: tuple[Expr, ...]) -> Op:
    # The last operand, because the first one of a select is its condition.
    result = result_dtype(name, args[-1].dtype)
    assert result is not None
    return Op(name, args, result)


def tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            line = text.count("\n", 0, at) + 1
            raise CheckError(f"parse: cannot read kernel code (line {line}: {text[at]!r})")
        if match.lastgroup:
            tokens.append(_Token(match.lastgroup, match.group(), at, match.end()))
        at = match.end()
    return [*tokens, _Token("end", "", at, at)]


def parse_body(text: str, buffers: Mapping[str, np.dtype], symbols: Mapping[str, Dim]) -> Body:
    """The statements between braces, over known buffers and symbols."""
    with reading("kernel code"):
        return Reader(text, tokens(text), symbols=dict(symbols), buffers=dict(buffers)).body()


def parse(text: str) -> KernelCode:
    """The code that `to_text` printed.

    Errors: CheckError "parse: cannot read kernel code (line 3: 'in', not 'of')".
    """
    with reading("kernel code"):
        return Reader(text, tokens(text)).code()
