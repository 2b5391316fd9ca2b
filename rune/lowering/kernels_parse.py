"""Read kernels from text; kernels_text.py has the grammar.

Expressions, sizes and ranges are read by the parser of kernel code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from rune import dims, dtypes
from rune.core.reading import next_line, reading
from rune.core.types import ArrayType
from rune.dims import Dim, Size
from rune.lowering.kernel.expr import Expr
from rune.lowering.kernel.nodes import Let
from rune.lowering.kernel.parse import Reader, tokens
from rune.lowering.kernels import (
    Axis,
    Buffer,
    Choose,
    Fill,
    Invoke,
    Kernel,
    KernelProgram,
    KernelStep,
    Peak,
    Reduce,
    Repeat,
    Routine,
    Scan,
    Statement,
    Stream,
    Sum,
    Value,
    Write,
    kernel_names,
)
from rune.lowering.kernels_text import COMBINE_WORDS

_BY_WORD = {word: name for name, word in COMBINE_WORDS.items()}
_SIZES = re.compile(r"(\w+) in (\d+)\.\.(\d*)")
_BINDING = re.compile(r"%(\d+): (\w+\*?\[[^\]]*\])")
_TYPE = re.compile(r"(\w+)(\*?)\[(.*)\]$")
_PARAMETERS = re.compile(r"\s*\{(.*)\}$")
_REASON = re.compile(r"^#.*$", re.MULTILINE)
_REPEAT = re.compile(r"repeat (.+) consts (\d+)")
_NOTHING = KernelProgram("", (), (), (), (), {})


class _KernelReader(Reader):
    """Reads one kernel."""

    def kernel(self) -> Kernel:
        """`kernel name(...) -> (...) sizes ... { ... }`."""
        self.take("kernel")
        # Buffer types mention sizes whose bounds are declared after them, so those are read first.
        name, start = self.word(), self.at
        self.declare_sizes()
        self.at = start
        inputs = self.typed_buffers()
        self.take("-")
        self.take(">")
        outputs = self.typed_buffers()
        in_place: list[tuple[str, str]] = []
        while self.skip("in"):
            self.take("place")
            in_place.append(self.alias())
        # Skip the sizes, which were read above.
        while not self.skip("{"):
            self.pass_over()
        if self.skip("code"):
            code = self.body()
            self.take("}")
            return Kernel(name, inputs, outputs, (), (), tuple(in_place), code)
        domain = self.domain()
        body: list[Statement] = []
        while not self.skip("}"):
            body.append(self.statement())
        if domain:
            self.take("}")
        return Kernel(name, inputs, outputs, domain, tuple(body), tuple(in_place))

    def declare_sizes(self) -> None:
        """Read sizes first: they come after the buffers whose types mention them."""
        while not self.peek("{"):
            if self.peek("sizes"):
                self.at += 1
                self.listed(self.size)
                return
            self.pass_over()

    def typed_buffers(self) -> tuple[Buffer, ...]:
        """`(x0: f32[3,n], ...)`."""
        return self.within("(", lambda: () if self.peek(")") else self.listed(self.typed_buffer), ")")

    def typed_buffer(self) -> Buffer:
        name = self.word()
        self.take(":")
        dtype = self.buffers[name] = self.dtype()
        return Buffer(name, ArrayType(self.indices(), dtype))

    def indices(self) -> tuple[Size, ...]:
        """`[i0, j0 + 3]`."""
        self.take("[")
        indices: list[Size] = []
        while not self.skip("]"):
            indices.append(self.dim("]", ","))
            self.skip(",")
        return tuple(indices)

    def domain(self) -> tuple[Axis, ...]:
        """`for i0 in 3, i1 in n parallel {`, or nothing."""
        if not self.skip("for"):
            return ()
        axes = self.axes("parallel")
        self.take("parallel")
        self.take("{")
        return axes

    def axes(self, *ends: str) -> tuple[Axis, ...]:
        """`j0 in 3, j1 in n`, whose symbols are in scope from here on."""
        axes: list[Axis] = []
        while not axes or self.skip(","):
            name = self.word()
            self.take("in")
            size = self.dim(",", *ends)
            # An axis of size 0 gets the bounds 0..0, since 0..-1 would be out of order.
            last = max(0, size - 1) if isinstance(size, int) else size - 1
            self.symbols = {**self.symbols, name: dims.symbol(name, 0, last)}
            axes.append(Axis(name, size))
        return tuple(axes)

    # --- statements --------------------------------------------------------------------------

    def statement(self) -> Statement:
        """One statement of the body."""
        # The scope of a statement's axes and lets ends here; the name it binds is added below.
        symbols, outer = self.symbols, dict(self.locals)
        if self.peek(":", 1):
            return self.let()
        statement = self.compound()
        self.symbols, self.locals = symbols, outer
        if isinstance(statement, Reduce):
            self.locals[statement.name] = statement.dtype
        elif isinstance(statement, Fill):
            self.buffers[statement.name] = statement.value.dtype
        elif isinstance(statement, Stream):
            self.results(statement)
        return statement

    def results(self, stream: Stream) -> None:
        """Declare what later statements may read of a stream."""
        if stream.peak is not None:
            self.locals[stream.peak.name] = stream.peak.value.dtype
        for total in stream.sums:
            names = self.buffers if total.columns else self.locals
            names[total.name] = total.weight.dtype

    def stream(self) -> Stream:
        """`stream j0 in 7 { parts peak m = ... parts totals }`."""
        axes = self.axes("{")
        self.take("{")
        scores = self.parts()
        peak = None
        if self.skip("peak"):
            name = self.word()
            self.take("=")
            peak = Peak(name, self.expr())
            self.locals[name] = peak.value.dtype
        else:
            # Without a peak nothing separates scores from weights, so all of them are weights.
            return Stream(axes, (), None, scores, self.totals())
        return Stream(axes, scores, peak, self.parts(), self.totals())

    def parts(self) -> tuple[Let | Reduce, ...]:
        """Scalars of an inner point."""
        parts: list[Let | Reduce] = []
        while not (self.peek("peak") or self.peek("total") or self.peek("}")):
            part = self.statement()
            assert isinstance(part, Let | Reduce)
            parts.append(part)
        return tuple(parts)

    def totals(self) -> tuple[Sum, ...]:
        """The sums, up to the end of the stream."""
        totals: list[Sum] = []
        while not self.skip("}"):
            symbols, outer = self.symbols, dict(self.locals)
            self.take("total")
            name = self.word()
            columns = self.columns() if self.peek("[") else ()
            self.take("degree")
            degree = self.number()
            lets, weight, factor = self.tail("by")
            totals.append(Sum(name, weight, degree, columns, lets, factor))
            self.symbols, self.locals = symbols, outer
        return tuple(totals)

    def columns(self) -> tuple[Axis, ...]:
        """`[j0 in 3, j1 in n]`."""
        return self.within("[", lambda: self.axes("]"), "]")

    def let(self) -> Let:
        """`t1: f32 = ...`."""
        statement = self.binding(mutable=False)
        assert isinstance(statement, Let)
        return statement

    def compound(self) -> Statement:
        """A statement over inner axes."""
        if self.skip("fill"):
            name, axes = self.word(), self.columns()
            lets, value, _ = self.tail()
            return Fill(name, axes, lets, value)
        if self.skip("scan"):
            return self.scan()
        if self.skip("stream"):
            return self.stream()
        if self.peek("ordered") or self.peek("write"):
            return self.write()
        name = self.word()
        self.take("=")
        combine = _BY_WORD[self.take(*_BY_WORD)]
        contract = self.skip("contract")
        axes = () if self.peek(":") or self.peek("{") else self.axes(":", "{")
        lets, value, _ = self.tail()
        return Reduce(name, combine, axes, lets, value, contract)

    def scan(self) -> Scan:
        """`scan y0[i0, j0] sum j0 in 7 ...`: the indices mention an axis that follows."""
        output, start = self.word(), self.at
        self.skip_brackets()
        combine = _BY_WORD[self.take(*_BY_WORD)]
        (axis,) = self.axes(":", "{")
        indices = self.indices_at(start)
        lets, value, _ = self.tail()
        return Scan(output, combine, axis, indices, lets, value)

    def write(self) -> Write:
        """`write y0[i0, j0] over j0 in 7 ...`: indices may mention axes and lets that follow."""
        is_ordered = self.skip("ordered")
        self.take("write")
        output, start = self.word(), self.at
        self.skip_brackets()
        combine = _BY_WORD[self.take(*_BY_WORD)] if self.tokens[self.at].text in _BY_WORD else None
        axes = self.axes(":", "{") if self.skip("over") else ()
        lets, value, condition = self.tail()
        indices = self.indices_at(start)
        return Write(output, axes, indices, lets, value, condition, combine, is_ordered)

    def skip_brackets(self) -> None:
        """Move past `[...]`."""
        while not self.skip("]"):
            self.pass_over()

    def indices_at(self, start: int) -> tuple[Size, ...]:
        """Read indices at an earlier place, now that their symbols are known."""
        position, self.at = self.at, start
        indices = self.indices()
        self.at = position
        return indices

    def tail(self, word: str = "if") -> tuple[tuple[Let, ...], Expr, Expr | None]:
        """`: expr if expr`, or `{ lets : expr if expr }`, possibly with another word than `if`."""
        lets: list[Let] = []
        block = self.skip("{")
        while block and not self.peek(":"):
            lets.append(self.let())
        self.take(":")
        value = self.expr()
        second = self.expr() if self.skip(word) else None
        if block:
            self.take("}")
        return tuple(lets), value, second


def parse(text: str) -> Kernel:
    """The kernel that `to_text` printed.

    Errors: CheckError "parse: cannot read kernel code (line 3: 'in', not 'of')".
    """
    with reading("a kernel"):
        return _KernelReader(text, tokens(text)).kernel()


# --- programs ---------------------------------------------------------------------------------


def parse_program(text: str) -> KernelProgram:
    """The kernel program that `program_text` printed, without the reasons.

    Errors: CheckError "parse: cannot read kernels (...)".
    """
    # Reasons are comments and not part of the program.
    text = _REASON.sub("", text)
    head, *chunks = re.split(r"^kernel ", text, flags=re.MULTILINE)
    with reading("kernels"):
        kernels = {k.name: k for k in (parse(f"kernel {chunk}") for chunk in chunks)}
        lines = iter([line.strip() for line in head.strip().splitlines()])
        return _block(next_line(lines), lines, kernels)


def _block(first: str, lines: Iterator[str], kernels: Mapping[str, Kernel]) -> KernelProgram:
    """The program with this first line; its other lines are taken from `lines`."""
    symbols = {
        name: dims.symbol(name, int(low), int(high) if high else None)
        for name, low, high in _SIZES.findall(first.rpartition(" sizes ")[2])
    }
    values: dict[str, Value] = {}
    inputs = _bindings(first, values, symbols)
    steps: list[KernelStep] = []
    while not (line := next_line(lines)).startswith("return"):
        step = _step(line, values, symbols)
        steps.append(_with_programs(step, lines, kernels) if line.endswith(" {") else step)
    results = _BINDING.findall(line)
    for number, type in results:  # a result of no elements has no step
        values.setdefault(number, Value(int(number), _type(type, symbols)))
    assert next_line(lines) == "}"
    names = {name for step in steps for name in kernel_names(step)}
    return KernelProgram(
        first.removeprefix("kernels ").partition("(")[0],
        inputs,
        tuple(steps),
        tuple(values[n] for n, _ in results),
        tuple(_type(t, symbols) for _, t in results),
        {name: kernel for name, kernel in kernels.items() if name in names},
    )


def _with_programs(step: KernelStep, lines: Iterator[str], kernels: Mapping[str, Kernel]) -> KernelStep:
    """A loop or branch with the programs that follow its line."""
    programs: list[KernelProgram] = []
    while (first := next_line(lines)) != "}":
        programs.append(_block(first, lines, kernels))
    if isinstance(step, Repeat):
        # A condition comes before the body, as in `inner_programs`.
        condition = programs[0] if len(programs) > 1 else None
        return replace(step, condition=condition, body=programs[-1])
    assert isinstance(step, Choose)
    return replace(step, branches=tuple(programs))


def _bindings(text: str, values: dict[str, Value], symbols: dict[str, Dim]) -> tuple[Value, ...]:
    pairs = _BINDING.findall(text)
    # Only bindings carry types; operands are bare numbers.
    values.update((n, Value(int(n), _type(type, symbols))) for n, type in pairs)
    return tuple(values[n] for n, _ in pairs)


def _type(text: str, symbols: dict[str, Dim]) -> ArrayType:
    match = _TYPE.match(text)
    assert match is not None
    shape = tuple(dims.parse(d, symbols) for d in match[3].split(",")) if match[3] else ()
    return ArrayType(shape, dtypes.FROM_SHORT[match[1]], bool(match[2]))


def _step(line: str, values: dict[str, Value], symbols: dict[str, Dim]) -> KernelStep:
    """One step; a loop or branch without its programs."""
    targets, _, call = line.partition(" = ")
    results = _bindings(targets, values, symbols)
    words = _PARAMETERS.sub("", call).replace(",", " ").split()
    operands = tuple(values[w[1:]] for w in words if w.startswith("%"))
    if repeat := _REPEAT.match(call):
        count = None if repeat[1] == "while" else dims.parse(repeat[1], symbols)
        # The programs follow on later lines; `_with_programs` adds them.
        return Repeat(results, operands, int(repeat[2]), _NOTHING, None, count)
    if words[0] == "choose":
        return Choose(results, operands, ())
    if words[0] != "call":
        return Invoke(words[0], results, operands)
    match = _PARAMETERS.search(call)
    pairs = (p.split("=") for p in match[1].split(", ")) if match else ()
    parameters = tuple((k, v == "True" if v in ("True", "False") else dims.parse(v, symbols)) for k, v in pairs)
    return Routine(words[1], results, operands, parameters)
