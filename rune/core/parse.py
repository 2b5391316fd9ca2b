"""Parse the text of a program: the inverse of printer.py, by recursive descent.

    parse(str(p), primitives) prints the same text, and is `same_program` as p

The grammar is in program.py. The caller passes the primitives by name, because the language does
not know them: `rune.control.parse_program` knows all. Comments (source lines) are skipped. A
constant that was printed shortened cannot be read back, which is an error here. Nor can a Python
function: the caller passes it by its text, or it remains a name (`Unread`).
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping
from typing import NoReturn, TypeVar

import numpy as np

from rune import dtypes
from rune.core.primitive import Effect, Primitive
from rune.core.program import Atom, Equation, Literal, Program, Var
from rune.core.reading import reading
from rune.core.types import NONE, ArrayType, Axes, Shape
from rune.dims import Dim, Size, symbol
from rune.dims import parse as parse_size
from rune.errors import CheckError, DimensionError
from rune.records import dataclass

T = TypeVar("T")

_SPACE = re.compile(r"(?:\s+|#[^\n]*)*")
_WORD = re.compile(r"[^\W\d]\w*")
_NUMBER, _BINDING = re.compile(r"%\d+"), re.compile(r"%\d+\s*:")
_BOUND = re.compile(r"[^.,{}\n]+")
_STRING = re.compile(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"")
_SCALAR = re.compile(r"\([^()\n]*\)|[^\s:,\[\](){}]+")
_SHAPE = re.compile(r"[^\[\]\n]*")
_CONST, _RETURN, _WHERE = (re.compile(rf"{word}\b") for word in ("const", "return", "where"))
_NESTED, _RECORD = re.compile(r"program\s+\w+\("), re.compile(r"([^\W\d]\w*)\(")
_DTYPE = re.compile(r"[^\W\d]\w*(?:<\w+>)?")
_AXES = re.compile(r"\{([^{}=\n]+)\}")
_TYPE = re.compile(_DTYPE.pattern + r"\*?\[")
_FUNCTION = re.compile(r"<[^<>\n]*>")
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_WORDS: Mapping[str, object] = {"true": True, "false": False, "None": None, **{str(e): e for e in Effect}}
_FLOAT = re.compile(r"-?(?:inf|nan|\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+)")


class UnreadError(CheckError, AttributeError):
    """A Python function was used that the text of a program only names."""


@dataclass(frozen=True, slots=True, repr=False)
class Unread:
    """The name of a Python function in a text, `<rule of f>`; the function itself is not there."""

    text: str

    def _refuse(self) -> NoReturn:
        raise UnreadError(
            f"parse: cannot call {self.text} (the text of a program only names it)",
            hint="pass functions= to parse_program",
        )

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Errors: UnreadError, always."""
        self._refuse()

    def __getattr__(self, _: str) -> NoReturn:
        self._refuse()

    def __repr__(self) -> str:
        return self.text


def parse(
    text: str,
    primitives: Mapping[str, Primitive],
    records: Mapping[str, type] | None = None,
    functions: Mapping[str, Callable[..., object]] | None = None,
) -> Program:
    """The program that `text` prints.

    primitives: by name. records: the dataclasses that may occur in parameters, by name.
    functions: Python functions by their text.
    Errors: CheckError "parse: cannot read <what> (<why>)" with the line and its number.
    """
    with reading("a program"):
        reader = _Reader(text, primitives, records or {}, functions or {})
        program = reader.program()
        if reader.peek():
            reader.fail("what follows the program", "one program expected")
    return program


class _Reader:
    """A position in the text, and the names in scope."""

    def __init__(
        self,
        text: str,
        primitives: Mapping[str, Primitive],
        records: Mapping[str, type],
        functions: Mapping[str, object],
    ) -> None:
        self.text, self.primitives, self.records = text, primitives, records
        self.functions = functions
        self.at = 0
        self.sizes: dict[str, Dim] = {}
        self.vars: dict[str, Var] = {}

    # --- reading characters -----------------------------------------------------------------

    def skip(self) -> None:
        """Move past blanks and comments."""
        blanks = _SPACE.match(self.text, self.at)
        self.at = blanks.end() if blanks else self.at

    def peek(self) -> str:
        """The next character after blanks and comments; "" at the end."""
        self.skip()
        return self.text[self.at : self.at + 1]

    def find(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Read `pattern` if it comes next."""
        self.skip()
        match = pattern.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return match

    def take(self, pattern: re.Pattern[str], kind: str) -> str:
        """Read `pattern`, which must come next."""
        match = self.find(pattern)
        return match.group() if match else self.fail(kind, "something else stands here")

    def accept(self, token: str) -> bool:
        """Read `token` if it comes next."""
        self.skip()
        is_next = self.text.startswith(token, self.at)
        self.at += len(token) if is_next else 0
        return is_next

    def expect(self, token: str) -> None:
        """Read `token`, which must come next."""
        if not self.accept(token):
            self.fail(f"{token!r}", "something else stands here")

    def word(self, keyword: str) -> None:
        """Read this keyword."""
        if self.take(_WORD, keyword) != keyword:
            self.fail(keyword, "another word stands here")

    def fail(self, text: str, why: str) -> NoReturn:
        """Raise CheckError for the current line."""
        number = self.text.count("\n", 0, self.at) + 1
        line = self.text.split("\n")[number - 1]
        raise CheckError(f"parse: cannot read {text} ({why})\nline {number}: {line.strip()}")

    def listed(self, item: Callable[[], T]) -> list[T]:
        """One or more items between commas."""
        items = [item()]
        while self.accept(","):
            items.append(item())
        return items

    def span(self, stops: str) -> str:
        """The text up to a character of `stops` that no bracket or string encloses."""
        start, open_ = self.at, []
        while self.at < len(self.text):
            character = self.text[self.at]
            if not open_ and character in stops:
                break
            self._step(character, open_)
        return self.text[start : self.at]

    def _step(self, character: str, open_: list[str]) -> None:
        string = _STRING.match(self.text, self.at)
        if character in _CLOSING:
            open_.append(_CLOSING[character])
        elif open_ and character == open_[-1]:
            open_.pop()
        self.at = string.end() if string else self.at + 1

    # --- programs ---------------------------------------------------------------------------

    def program(self) -> Program:
        """A whole program; its sizes and variables are its own."""
        outside = self.sizes, self.vars
        self.sizes, self.vars = {}, {}
        self.word("program")
        name = self.take(_WORD, "the program's name")
        inputs = self.header()
        constants, equations = [], []
        while self.find(_CONST):
            constants.append(self.constant())
        while not self.find(_RETURN):
            equations.append(self.equation())
        outputs = () if self.peek() == "}" else tuple(self.listed(self.atom))
        self.expect("}")
        self.sizes, self.vars = outside
        return Program(inputs, tuple(equations), outputs, tuple(constants), name)

    def header(self) -> tuple[Var, ...]:
        """Inputs. The sizes in their types are declared after them, so these are read first."""
        self.expect("(")
        start = self.at
        self.span(")")
        self.expect(")")
        if self.find(_WHERE):
            self.listed(self.size)
        self.expect("{")
        end, self.at = self.at, start
        inputs = () if self.peek() == ")" else tuple(self.listed(self.binding))
        self.expect(")")
        self.at = end
        return inputs

    def size(self) -> None:
        """`n in 1..4096`; a bound may be an expression in sizes declared before."""
        name = self.take(_WORD, "the name of a size")
        self.word("in")
        low = self.dimension(self.take(_BOUND, "a lower bound"))
        self.expect("..")
        high = self.take(_BOUND, "an upper bound").strip()
        self.sizes[name] = symbol(name, low, None if high == "inf" else self.dimension(high))

    def constant(self) -> tuple[Var, np.ndarray]:
        """A binding and its value."""
        var = self.binding()
        self.expect("=")
        if self.peek() != "[":
            value = self.scalar_of(var.type.dtype)
            return var, np.asarray(value).reshape(())
        values = self.elements(var.type.dtype)
        if len(values) != math.prod(var.type.shape):
            self.fail("a constant", f"{len(values)} elements for {var.type}")
        return var, np.array(values, var.type.dtype).reshape(var.type.shape)

    def elements(self, dtype: np.dtype) -> list[np.ndarray]:
        """The elements of nested lists, in order."""
        self.expect("[")
        scalars: list[np.ndarray] = []
        while not self.accept("]"):
            if self.accept("..."):
                self.fail("a constant", "it was printed shortened; its values are not in the text")
            scalars += self.elements(dtype) if self.peek() == "[" else [self.scalar_of(dtype)]
            self.accept(",")
        return scalars

    def binding(self) -> Var:
        """`%3: f32[4]`, a new variable."""
        name = self.take(_NUMBER, "a variable")
        if name in self.vars:
            self.fail(name, "it is bound twice")
        self.expect(":")
        self.vars[name] = Var(self.type())
        return self.vars[name]

    def equation(self) -> Equation:
        """Results, primitive, operands, parameters."""
        results = () if self.peek() == "=" else tuple(self.listed(self.binding))
        self.expect("=")
        name = self.take(_WORD, "an equation or return")
        if name not in self.primitives:
            self.fail(name, "there is no such primitive")
        operands = tuple(self.listed(self.atom)) if self.at_operand() else ()
        params = self.params() if self.accept("{") else {}
        return Equation(self.primitives[name], operands, params, results)

    def at_operand(self) -> bool:
        """Whether an operand follows, not the binding of the next equation."""
        if self.peek() in "{}=":
            return False
        return not (_BINDING.match(self.text, self.at) or _RETURN.match(self.text, self.at))

    def atom(self) -> Atom:
        """A variable in scope, or a literal with its type."""
        variable = self.find(_NUMBER)
        if variable:
            if variable.group() not in self.vars:
                self.fail(variable.group(), "it is not bound")
            return self.vars[variable.group()]
        text = self.take(_SCALAR, "an operand")
        self.expect(":")
        type = self.type()
        return Literal(self.number(text, type.dtype), type)

    # --- types and values -------------------------------------------------------------------

    def type(self) -> ArrayType:
        """`f32*[n,4]{data}`."""
        name = self.take(_DTYPE, "a dtype")
        if name not in dtypes.FROM_SHORT:
            self.fail(name, "there is no such dtype")
        weak = self.accept("*")
        self.expect("[")
        text = self.take(_SHAPE, "a shape")
        self.expect("]")
        return ArrayType(self.shape(text), dtypes.FROM_SHORT[name], weak, self.axes())

    def axes(self) -> Axes:
        """The axes of a mesh directly after a type: `{data,model}`."""
        match = _AXES.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return frozenset(match.group(1).split(",")) if match else NONE

    def shape(self, text: str) -> Shape:
        """The dimensions between the brackets of a type."""
        return tuple(map(self.dimension, text.split(","))) if text.strip() else ()

    def dimension(self, text: str) -> Size:
        """An integer, or an expression in the declared sizes."""
        try:
            return parse_size(text, self.sizes)
        except DimensionError as error:
            return self.fail(f"{text.strip()!r}", str(error).splitlines()[0])

    def scalar_of(self, dtype: np.dtype) -> np.ndarray:
        """A rank-0 value of `dtype`."""
        return self.number(self.take(_SCALAR, "a number"), dtype)

    def number(self, text: str, dtype: np.dtype) -> np.ndarray:
        """The rank-0 array with this text."""
        try:
            if dtype == dtypes.bool_:
                return np.array({"true": True, "false": False}[text])
            if dtype in dtypes.KEYS:
                return dtypes.stored_keys(divmod(int(text, 16), 1 << 32), dtype)
            kind = int if dtype in dtypes.INTEGER else complex if dtype in dtypes.COMPLEX else float
            return np.array(kind(text), dtype)
        except (KeyError, ValueError, OverflowError):
            return self.fail(f"{text!r}", f"no value of {dtypes.short(dtype)}")

    def params(self) -> dict[str, object]:
        """The parameters of an equation, after the brace."""
        params = dict(self.listed(self.param))
        self.expect("}")
        return params

    def param(self) -> tuple[str, object]:
        """`name=value`."""
        name = self.take(_WORD, "the name of a parameter")
        self.expect("=")
        return name, self.value()

    def value(self) -> object:
        """A static value: program, record, string, function, type, tuple, dtype, number, size."""
        self.skip()
        if _NESTED.match(self.text, self.at):
            return self.program()
        record = _RECORD.match(self.text, self.at)
        if record:
            return self.record(record)
        string = self.find(_STRING)
        if string:
            return ast.literal_eval(string.group())
        function = self.find(_FUNCTION)
        if function:
            return self.functions.get(function.group()) or Unread(function.group())
        if _TYPE.match(self.text, self.at):
            return self.type()
        start = self.at
        text = self.span(",)}\n").strip()
        if text.startswith("(") and _is_tuple(text):
            self.at = start
            return self.tuple()
        return self.plain(text)

    def record(self, name: re.Match[str]) -> object:
        """`IndexDims(offset=(0,), ...)`."""
        if name.group(1) not in self.records:
            self.fail(name.group(1), "there is no such kind of parameter")
        self.at = name.end()
        fields = {} if self.peek() == ")" else dict(self.listed(self.param))
        self.expect(")")
        return self.records[name.group(1)](**fields)

    def tuple(self) -> tuple[object, ...]:
        """`()`, `(1,)`, `(1, 2)`."""
        self.expect("(")
        items = []
        while not self.accept(")"):
            items.append(self.value())
            self.accept(",")
        return tuple(items)

    def plain(self, text: str) -> object:
        """A word, a number, a dtype, or a size."""
        if text in _WORDS:
            return _WORDS[text]
        if text in dtypes.FROM_SHORT and text not in self.sizes:
            return dtypes.FROM_SHORT[text]
        if _FLOAT.fullmatch(text):
            return float(text)
        return self.dimension(text)


def _is_tuple(text: str) -> bool:
    """Whether the brackets around `text` are those of a tuple, not of a size."""
    depth, commas = 0, 0
    for number, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        commas += depth == 1 and character == ","
        if depth == 0:
            return number == len(text) - 1 and (commas > 0 or not text[1:-1].strip())
    return False
