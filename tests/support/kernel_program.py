"""Run kernels with NumPy, point by point in vectors, straight from their definition.

Every axis is an array dimension: the domain's first, then inner axes. Nothing is shared with the
compiler's later stages, so a KernelProgram can be compared with the Program that it came from.
Reads out of bounds, unless guarded, and double writes of one element are errors.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rune import dims
from rune.dims.factors import FloorDiv, Symbol, terms_of
from rune.lowering.kernel.check import COMBINE
from rune.lowering.kernel.expr import Cast, Const, Expr, Index, Load, Local, Op
from rune.lowering.kernel.interpret import interpret
from rune.lowering.kernel.scalar import SCALAR_MEANING, convert
from rune.lowering.kernels import (
    Fill,
    Invoke,
    Kernel,
    KernelProgram,
    Let,
    Reduce,
    Routine,
    Scan,
    Stream,
    Sum,
    Write,
    inner_axes,
)
from rune.lowering.written import code_of

MAX_INNER = 12


def size_value(x: Any, env: Mapping[str, Any]) -> Any:
    """An index expression on arrays."""
    if isinstance(x, int):
        return np.int64(x)
    total: Any = np.int64(0)
    for coefficient, factors in terms_of(x):
        product: Any = np.int64(coefficient)
        for factor in factors:
            product = product * _factor(factor, env)
        total = total + product
    return total


def _factor(factor: Any, env: Mapping[str, Any]) -> Any:
    if isinstance(factor, Symbol):
        return env[factor.name]
    a, b = size_value(factor.numerator, env), size_value(factor.denominator, env)
    return a // b if isinstance(factor, FloorDiv) else a % b


Plain = Let | Reduce | Fill | Write | Scan


class _Point:
    """All points of one kernel at once."""

    def __init__(self, kernel: Kernel, buffers: dict[str, np.ndarray], sizes: Mapping[str, int]):
        self.kernel, self.buffers = kernel, buffers
        self.sizes = dict(sizes)
        self.extents = [int(dims.evaluate(a.size, sizes)) for a in kernel.domain]
        self.rank = len(kernel.domain) + MAX_INNER
        self.env: dict[str, Any] = dict(sizes)
        self.rows: dict[str, np.ndarray] = {}
        in_place = {b for _, b in kernel.in_place}
        self.written = {b.name: np.full(buffers[b.name].shape, b.name in in_place) for b in kernel.outputs}
        for k, (axis, extent) in enumerate(zip(kernel.domain, self.extents)):
            self.env[axis.name] = self.along(k, extent)

    def along(self, axis: int, extent: int) -> np.ndarray:
        shape = [1] * self.rank
        shape[axis] = extent
        return np.arange(extent, dtype=np.int64).reshape(shape)

    def value(self, expr: Expr, env: Mapping[str, Any]) -> np.ndarray:
        match expr:
            case Const():
                return np.asarray(expr.value).reshape((1,) * self.rank)
            case Local(name=name, dtype=dtype):
                assert env[name].dtype == dtype, name
                return env[name]
            case Index(dim=dim):
                size = size_value(dim, env)
                return np.broadcast_to(size, np.shape(size) or (1,) * self.rank)
            case Cast(arg=arg, dtype=dtype):
                return convert(self.value(arg, env), dtype)
            case Op(name="bitcast", args=(arg,), dtype=dtype):
                return np.ascontiguousarray(self.value(arg, env)).view(dtype)
            case Op(name=name, args=args, dtype=dtype):
                out = SCALAR_MEANING[name](*(self.value(a, env) for a in args))
                assert out.dtype == dtype, (name, out.dtype, dtype)
                return out
            case Load():
                return self.load(expr, env)

    def load(self, load: Load, env: Mapping[str, Any]) -> np.ndarray:
        indices = [size_value(i, env) for i in load.indices]
        source = self.buffers.get(load.buffer)
        if load.buffer in self.rows:
            source = self.rows[load.buffer]
            indices = [self.along(k, e) for k, e in enumerate(self.extents)] + indices
        assert source is not None, load
        assert len(indices) == source.ndim, load
        if load.buffer in self.written:
            assert self.written[load.buffer].any() or source.size == 0
        if load.guard is not None:
            where = self.value(load.guard, env)
            indices = [np.where(where, i, 0) for i in indices]
            if source.size == 0:
                return np.zeros((1,) * self.rank, load.dtype)
            elements = self.read(source, indices)
            return np.where(where, elements, np.zeros((), load.dtype))
        return self.read(source, indices)

    def read(self, source: np.ndarray, indices: Sequence[Any]) -> np.ndarray:
        shape = np.broadcast_shapes(*(np.shape(i) for i in indices), (1,) * self.rank)
        if 0 in shape:
            return np.zeros(shape, source.dtype)
        for i, d in zip(indices, source.shape):
            assert np.all((np.asarray(i) >= 0) & (np.asarray(i) < d)), "out of bounds"
        elements = source[tuple(np.broadcast_arrays(*indices))] if indices else source
        return np.broadcast_to(elements, shape).astype(source.dtype)

    # --- statements --------------------------------------------------------------------------

    def run(self) -> None:
        for statement in self.kernel.body:
            if isinstance(statement, Stream):
                self.stream(statement)
                continue
            axes = inner_axes(statement)
            extents = [int(dims.evaluate(a.size, self.sizes)) for a in axes]
            env = dict(self.env)
            for k, (axis, extent) in enumerate(zip(axes, extents)):
                env[axis.name] = self.along(len(self.extents) + k, extent)
            if isinstance(statement, Write) and statement.ordered:
                self.ordered(statement, env, extents)
            else:
                self.statement(statement, env, extents)

    def lets(self, statement: Any, env: dict[str, Any]) -> None:
        for let in statement.lets:
            env[let.name] = self.value(let.value, env)

    def full(self, value: np.ndarray, extents: Sequence[int]) -> np.ndarray:
        pad = self.rank - len(self.extents) - len(extents)
        return np.broadcast_to(value, (*self.extents, *extents, *(1,) * pad))

    def statement(self, statement: Plain, env: dict[str, Any], extents: list[int]) -> None:
        if isinstance(statement, Let):
            self.env[statement.name] = self.value(statement.value, env)
            return
        self.lets(statement, env)
        value = self.full(self.value(statement.value, env), extents)
        first = len(self.extents)
        inner = tuple(range(first, first + len(extents)))
        match statement:
            case Reduce(name=name, combine=combine):
                ufunc, identity = COMBINE[combine].function, COMBINE[combine].identity
                start = identity(value.dtype).value
                out = ufunc.reduce(value, axis=inner, keepdims=True, initial=start)
                self.env[name] = np.asarray(out).astype(value.dtype)
            case Fill(name=name):
                shape = (*self.extents, *extents)
                self.rows[name] = np.array(value).reshape(shape)
            case Write():
                self.write(statement, env, value, extents)
            case Scan(output=output, combine=combine, indices=indices):
                out = COMBINE[combine].function.accumulate(value, axis=first)
                self.store(output, indices, convert(out, self.buffers[output].dtype), env, None)

    def stream(self, stream: Stream) -> None:
        """Two passes: one for the largest score, one for all the sums."""
        first = len(self.extents)
        env, inner = self.inside(self.env, stream.axes, first)
        at = tuple(range(first, first + len(inner)))
        for part in stream.scores:
            self.part(part, env, inner)
        if stream.peak is not None:
            value = self.full(self.value(stream.peak.value, env), inner)
            env[stream.peak.name] = self.env[stream.peak.name] = np.max(value, axis=at, keepdims=True)
        for part in stream.weights:
            self.part(part, env, inner)
        for total in stream.sums:
            self.total(total, env, inner)

    def inside(self, env: Mapping[str, Any], axes: Any, first: int) -> tuple[dict[str, Any], list[int]]:
        extents = [int(dims.evaluate(a.size, self.sizes)) for a in axes]
        along = {a.name: self.along(first + k, e) for k, (a, e) in enumerate(zip(axes, extents))}
        return {**env, **along}, extents

    def part(self, part: Let | Reduce, env: dict[str, Any], inner: list[int]) -> None:
        if isinstance(part, Let):
            env[part.name] = self.value(part.value, env)
            return
        first = len(self.extents) + len(inner)
        within, extents = self.inside(env, part.axes, first)
        self.lets(part, within)
        value = self.full(self.value(part.value, within), [*inner, *extents])
        axes = tuple(range(first, first + len(extents)))
        env[part.name] = np.add.reduce(value, axis=axes, keepdims=True).astype(part.dtype)

    def total(self, total: Sum, env: dict[str, Any], inner: list[int]) -> None:
        first = len(self.extents)
        within, extents = self.inside(env, total.columns, first + len(inner))
        self.lets(total, within)
        value = self.value(total.weight, env)
        if total.factor is not None:
            value = value * self.value(total.factor, within)
        value = self.full(value, [*inner, *extents])
        out = np.add.reduce(value, axis=tuple(range(first, first + len(inner))), keepdims=True)
        out = out.astype(value.dtype)
        if total.columns:
            self.rows[total.name] = out.reshape(*self.extents, *extents)
        else:
            self.env[total.name] = out

    def write(self, w: Write, env: Mapping[str, Any], value: np.ndarray, extents: Any) -> None:
        where = None if w.condition is None else self.full(self.value(w.condition, env), extents)
        assert w.combine is None
        self.store(w.output, w.indices, value, env, where)

    def store(self, name: str, indices: Any, value: np.ndarray, env: Any, where: Any) -> None:
        target = self.buffers[name]
        assert target.dtype == value.dtype, (name, target.dtype, value.dtype)
        arrays = [np.broadcast_to(size_value(i, env), value.shape) for i in indices]
        mask = np.ones(value.shape, bool) if where is None else where
        at = tuple(a[mask] for a in arrays)
        for i, d in zip(at, target.shape):
            assert np.all((i >= 0) & (i < d)), f"{name}: written out of bounds"
        flat = np.ravel_multi_index(at, target.shape) if at else np.zeros(mask.sum(), int)
        assert len(np.unique(flat)) == flat.size, f"{name}: an element is written twice"
        target.reshape(-1)[flat] = value[mask]
        self.written[name].reshape(-1)[flat] = True

    def ordered(self, w: Write, env: dict[str, Any], extents: list[int]) -> None:
        """Inner points one after another, all points of the domain at once."""
        for point in itertools.product(*map(range, extents)):
            scope = dict(env)
            for axis, p in zip(w.axes, point):
                scope[axis.name] = np.full((1,) * self.rank, p, np.int64)
            self.lets(w, scope)
            value = self.full(self.value(w.value, scope), [])
            arrays = [np.broadcast_to(size_value(i, scope), value.shape) for i in w.indices]
            if w.condition is not None:
                mask = np.broadcast_to(self.value(w.condition, scope), value.shape)
                arrays, value = [a[mask] for a in arrays], value[mask]
            target, at = self.buffers[w.output], tuple(arrays)
            assert value.size <= 1 or len(set(zip(*(a.ravel() for a in at)))) == value.size
            new = value if w.combine is None else COMBINE[w.combine].function(target[at], value)
            target[at] = new


def run_kernel(
    kernel: Kernel, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], sizes: Mapping[str, int]
) -> None:
    """Run one kernel; `outputs` are written in place."""
    buffers = dict(zip((b.name for b in kernel.inputs), inputs, strict=True))
    buffers |= dict(zip((b.name for b in kernel.outputs), outputs, strict=True))
    for source, output in kernel.in_place:
        buffers[output][...] = buffers[source]
    if kernel.code:
        interpret(code_of(kernel), list(buffers.values()), sizes)
        return
    with np.errstate(all="ignore"):
        _Point(kernel, buffers, sizes).run()


def run_dot(inputs: Sequence[np.ndarray], shape: tuple[int, ...], parameters: Mapping[str, Any]) -> np.ndarray:
    """The routine `dot`."""
    batch, m, n, k = (parameters[name] for name in ("batch", "m", "n", "k"))
    a, b = inputs
    if parameters["trans_a"]:
        matrices = a.reshape(batch, k, m).swapaxes(1, 2)
    else:
        matrices = a.reshape(batch, m, k)
    if parameters["trans_b"]:
        right = b.reshape(batch, n, k).swapaxes(1, 2)
    else:
        right = b.reshape(batch, k, n)
    return np.matmul(matrices, right).reshape(shape)


def run_kernel_program(
    program: KernelProgram, args: Sequence[np.ndarray], sizes: Mapping[str, int] | None = None
) -> list[np.ndarray]:
    """The results of a kernel program whose memory starts out as garbage."""
    sizes = sizes or {}
    memory = dict(zip((v.number for v in program.inputs), args, strict=True))

    def shape(type: Any) -> tuple[int, ...]:
        return tuple(int(dims.evaluate(d, sizes)) for d in type.shape)

    def fresh(value: Any) -> np.ndarray:
        if value.number not in memory:
            buffer = np.empty(shape(value.type), value.type.dtype)
            buffer.view(np.uint8).fill(0xA5) if buffer.size and buffer.ndim else None
            memory[value.number] = buffer
        return memory[value.number]

    for step in program.steps:
        inputs = [fresh(v) for v in step.operands]
        if isinstance(step, Invoke):
            outputs = [fresh(v) for v in step.results]
            run_kernel(program.kernels[step.kernel], inputs, outputs, sizes)
        else:
            assert isinstance(step, Routine), "programs with loops and branches run as plans"
            p = {k: dims.evaluate(v, sizes) if not isinstance(v, bool) else v for k, v in step.parameters}
            memory[step.results[0].number] = run_dot(inputs, shape(step.results[0].type), p)
    return [fresh(v).reshape(shape(t)) for v, t in zip(program.outputs, program.output_types)]
