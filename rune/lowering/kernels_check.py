"""Check kernels: every rule on which order, memory and build rely.

Names     are bound once, and before use; an index symbol is an axis, a size or an integer Let
Types     of every expression, of writes and sums; as many indices as a buffer has axes
Outputs   every output is written; a kernel reads back only what it has written before
Programs  a step reads inputs and what earlier steps wrote; kernels and types match

Bounds of indices are checked by the interpreter.
"""

from __future__ import annotations

from dataclasses import field
from typing import NoReturn

import numpy as np

from rune import dims, dtypes
from rune.core.types import ArrayType
from rune.dims import Dim, Size, product
from rune.errors import CheckError
from rune.lowering.kernel.check import check as check_code
from rune.lowering.kernel.check import require_combine
from rune.lowering.kernel.expr import Expr, Load, Local
from rune.lowering.kernel.rewrite import expr_sizes, walk_expr
from rune.lowering.kernel.types import type_error
from rune.lowering.kernels import (
    Axis,
    Choose,
    Fill,
    Invoke,
    Kernel,
    KernelProgram,
    KernelStep,
    Let,
    Reduce,
    Repeat,
    Scan,
    Statement,
    Stream,
    Sum,
    Value,
    Write,
    inner_axes,
    inner_lets,
    inner_programs,
)
from rune.lowering.kernels_text import kernel_sizes
from rune.lowering.written import code_of
from rune.records import dataclass


@dataclass(slots=True)
class _Checker:
    kernel: Kernel
    locals: dict[str, np.dtype] = field(default_factory=dict)
    symbols: set[str] = field(default_factory=set)
    buffers: dict[str, tuple[np.dtype, int]] = field(default_factory=dict)
    written_buffers: set[str] = field(default_factory=set)

    def require(self, holds: object, reason: str) -> None:
        if not holds:
            self.fail(reason)

    def fail(self, reason: str) -> NoReturn:
        raise CheckError(f"check: cannot accept kernel {self.kernel.name} ({reason})")

    def run(self) -> None:
        kernel = self.kernel
        for b in (*kernel.inputs, *kernel.outputs):
            self.new(b.name)
            self.buffers[b.name] = (b.type.dtype, b.type.ndim)
        self.in_place()
        if kernel.code:
            self.require(not kernel.domain and not kernel.body, "it has loops of both kinds")
            check_code(code_of(kernel))
            return
        # Sizes are in scope everywhere; axes and integer Lets join as they are bound.
        self.symbols.update(kernel_sizes(kernel))
        self.axes(kernel.domain)
        for statement in kernel.body:
            self.statement(statement)
        missing = [b.name for b in kernel.outputs if b.name not in self.written_buffers]
        self.require(not missing, f"{', '.join(missing)} is never written")

    def in_place(self) -> None:
        types = {b.name: b.type for b in (*self.kernel.inputs, *self.kernel.outputs)}
        inputs, outputs = ({b.name for b in bs} for bs in (self.kernel.inputs, self.kernel.outputs))
        for a, b in self.kernel.in_place:
            fits = a in inputs and b in outputs and self.is_one(types[a], types[b])
            self.require(fits, f"{b} cannot be {a} in place")
            # It starts out with the input's contents, so it may be read before it is written.
            self.written_buffers.add(b)

    def is_one(self, a: ArrayType, b: ArrayType) -> bool:
        """Whether an array may become the other in place; given loops do not see shapes."""
        if not self.kernel.code:
            return a is b
        return a.dtype == b.dtype and product(a.shape) == product(b.shape)

    # --- names -------------------------------------------------------------------------------

    def new(self, name: str) -> None:
        bound = name in self.locals or name in self.buffers or name in self.symbols
        self.require(name.isidentifier() and not bound, f"{name} is bound already")

    def axes(self, axes: tuple[Axis, ...]) -> None:
        for axis in axes:
            self.new(axis.name)
            self.size(axis.size)
            self.symbols.add(axis.name)

    def size(self, x: Size) -> None:
        if isinstance(x, Dim):
            for s in dims.symbols(x):
                if s.name not in self.symbols:
                    self.fail(f"{s.name} in [{x}] is not an index symbol here")

    def expr(self, expr: Expr) -> None:
        for part in walk_expr(expr):
            wrong = type_error(part)
            if wrong is not None:
                self.fail(wrong)
            for size in expr_sizes(part):
                self.size(size)
            if isinstance(part, Local):
                if self.locals.get(part.name) != part.dtype:
                    self.fail(f"{part.name} is not a {part.dtype} local here")
            elif isinstance(part, Load):
                self.load(part)

    def load(self, load: Load) -> None:
        self.require(load.buffer in self.buffers, f"{load.buffer} is not a buffer of the kernel")
        dtype, ndim = self.buffers[load.buffer]
        if dtype != load.dtype:
            self.fail(f"{load.buffer} does not hold {load.dtype}")
        self.require(len(load.indices) == ndim, f"{load.buffer} has {ndim} axes")
        output = any(b.name == load.buffer for b in self.kernel.outputs)
        self.require(not output or load.buffer in self.written_buffers, f"{load.buffer} is read too early")

    def let(self, let: Let) -> None:
        self.expr(let.value)
        self.new(let.name)
        self.locals[let.name] = let.value.dtype
        if let.value.dtype in dtypes.INTEGER:
            self.symbols.add(let.name)

    # --- statements --------------------------------------------------------------------------

    def statement(self, statement: Statement) -> None:
        if isinstance(statement, Let):
            self.let(statement)
            return
        if isinstance(statement, Stream):
            self.stream(statement)
            return
        # Inner axes and lets end with the statement.
        before = dict(self.locals), set(self.symbols)
        self.axes(inner_axes(statement))
        for let in inner_lets(statement):
            self.let(let)
        self.expr(statement.value)
        if isinstance(statement, Write | Scan):
            self.write(statement)
        self.locals, self.symbols = before
        if isinstance(statement, Reduce):
            require_combine(self.require, statement.combine, statement.dtype)
            self.new(statement.name)
            self.locals[statement.name] = statement.dtype
        elif isinstance(statement, Fill):
            self.new(statement.name)
            self.buffers[statement.name] = (statement.value.dtype, len(statement.axes))

    def stream(self, stream: Stream) -> None:
        before = dict(self.locals), set(self.symbols)
        self.axes(stream.axes)
        for part in stream.scores:
            self.statement(part)
        if stream.peak is not None:
            self.expr(stream.peak.value)
            self.new(stream.peak.name)
            self.locals[stream.peak.name] = stream.peak.value.dtype
        for part in stream.weights:
            self.statement(part)
        for total in stream.sums:
            self.total(total, stream)
        self.locals, self.symbols = before
        if stream.peak is not None:
            self.locals[stream.peak.name] = stream.peak.value.dtype
        for total in stream.sums:
            self.new(total.name)
            if total.columns:
                self.buffers[total.name] = (total.weight.dtype, len(total.columns))
            else:
                self.locals[total.name] = total.weight.dtype

    def total(self, total: Sum, stream: Stream) -> None:
        self.expr(total.weight)
        require_combine(self.require, "add", total.weight.dtype)
        before = dict(self.locals), set(self.symbols)
        self.axes(total.columns)
        for let in total.lets:
            self.let(let)
        if total.factor is not None:
            self.expr(total.factor)
            self.require(total.factor.dtype == total.weight.dtype, f"{total.name} multiplies two dtypes")
        self.require(not total.columns or total.factor is not None, f"{total.name} has columns of nothing")
        self.require(total.degree >= 0, f"{total.name} has degree {total.degree}")
        self.require(total.degree == 0 or stream.peak is not None, f"{total.name} has a degree in no peak")
        self.locals, self.symbols = before

    def write(self, statement: Write | Scan) -> None:
        name = statement.output
        outputs = {b.name: b.type for b in self.kernel.outputs}
        self.require(name in outputs, f"{name} is written but is not an output")
        self.require(len(statement.indices) == outputs[name].ndim, f"{name} has other axes")
        for index in statement.indices:
            self.size(index)
        same = outputs[name].dtype == statement.value.dtype
        # A scan may accumulate in another dtype and convert when it writes.
        self.require(same or isinstance(statement, Scan), f"{name} holds {outputs[name].dtype}")
        if statement.combine is not None:
            require_combine(self.require, statement.combine, statement.value.dtype)
        if isinstance(statement, Write) and statement.condition is not None:
            self.expr(statement.condition)
            self.require(statement.condition.dtype == dtypes.bool_, "a condition is not bool")
        self.written_buffers.add(name)


def check_kernel(kernel: Kernel) -> None:
    """Check one kernel.

    Errors: CheckError "check: cannot accept kernel f (y0 is never written)".
    """
    _Checker(kernel).run()


def check(program: KernelProgram) -> None:
    """Check a kernel program and all its kernels.

    Errors: CheckError "check: cannot accept kernels of f (step 2 reads %3 before it is written)".
    """
    for name, kernel in program.kernels.items():
        if name != kernel.name:
            _fail(program, f"kernel {kernel.name} is known as {name}")
        check_kernel(kernel)
    pending = _writers(program)
    known = set(program.inputs)
    for number, step in enumerate(program.steps):
        for value in step.operands:
            # A value written in parts is complete after its last writer; an empty one has none.
            if not _is_empty(value.type) and (value not in known or pending.get(value)):
                _fail(program, f"step {number} reads {value} before it is written")
        _check_types(program, number, step)
        for value in step.results:
            pending[value] -= 1
            known.add(value)
    for value, type in zip(program.outputs, program.output_types):
        unwritten = value not in known and not _is_empty(type)
        if unwritten or not _same_memory(value, type.shape):
            _fail(program, f"result {value} of type {value.type} is not written, or is not {type}")


def _is_empty(type: ArrayType) -> bool:
    """Whether an array has no elements, so that no step writes it."""
    return any(isinstance(d, int) and d == 0 for d in type.shape)


def _fail(program: KernelProgram, reason: str) -> NoReturn:
    raise CheckError(f"check: cannot accept kernels of {program.name} ({reason})")


def _writers(program: KernelProgram) -> dict[Value, int]:
    writers: dict[Value, int] = {}
    for step in program.steps:
        for value in step.results:
            writers[value] = writers.get(value, 0) + 1
    return writers


def _check_types(program: KernelProgram, number: int, step: KernelStep) -> None:
    for inner in inner_programs(step):
        _check_within(program, number, step, inner)
    if not isinstance(step, Invoke):
        return
    kernel = program.kernels.get(step.kernel)
    if kernel is None:
        _fail(program, f"step {number} runs {step.kernel}, which does not exist")
    # Weak and strong values share kernels, because their memory is the same.
    actual_types = [v.type.strong() for v in (*step.operands, *step.results)]
    expected_types = [b.type.strong() for b in (*kernel.inputs, *kernel.outputs)]
    if actual_types != expected_types:
        _fail(program, f"step {number} gives {step.kernel} other types than it takes")


def _check_within(program: KernelProgram, number: int, step: KernelStep, inner: KernelProgram) -> None:
    """Check that a program of a loop or branch takes and returns the types of the step."""
    operand_types = [v.type for v in step.operands]
    expected_types = [v.type for v in inner.inputs]
    if isinstance(step, Choose):
        operand_types = operand_types[1:]
    elif isinstance(step, Repeat):
        # The first input is the step number; arrays behind the carries have no operand.
        expected_types = expected_types[1 : 1 + len(operand_types)]
    fits = len(operand_types) == len(expected_types) and all(map(_same_type, operand_types, expected_types))
    if not fits:
        _fail(program, f"step {number} gives {inner.name} other types than it takes")
    output_types = [t.strong() for t in inner.output_types]
    if isinstance(step, Repeat) and inner is step.condition:
        if output_types != [ArrayType((), dtypes.bool_)]:
            _fail(program, f"the condition of step {number} does not yield bool[]")
    elif output_types != [v.type.strong() for v in step.results]:
        _fail(program, f"step {number} takes other types than {inner.name} gives")
    check(inner)


def _same_type(a: ArrayType, b: ArrayType) -> bool:
    """Whether memory of type a may be read as b: a reshaped value is the value itself."""
    return a.dtype == b.dtype and product(a.shape) == product(b.shape)


def _same_memory(value: Value, shape: tuple[Size, ...]) -> bool:
    return product(value.type.shape) == product(shape)
