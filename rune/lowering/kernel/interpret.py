"""Run kernel code in NumPy, with every check: the reference for what a kernel means.

All iterations of a loop run at once where the result is the same as one after the other: always for
GRID, WORKGROUP and VECTOR loops, and for a SERIAL loop without carried dependence. Each such loop
adds an axis of lanes; a value has one axis per lane axis, of length 1 where it does not vary.
Statements then run in lock step, so that a barrier only ends the race check's interval.

Checked: bounds, uninitialised reads, declared bounds of index symbols, races between grid
points, between threads from barrier to barrier, between subgroups from one barrier of all to the
next, and between iterations of a VECTOR loop.
Not done: contraction; and compiled code may combine the floats of an Accumulate in another order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, NoReturn

import numpy as np

from rune import dims, dtypes
from rune.dims import Dim, Size
from rune.errors import CheckError
from rune.lowering.kernel.carried import Carried
from rune.lowering.kernel.check import COMBINE
from rune.lowering.kernel.expr import Cast, Const, Expr, Index, Load, Local, Op
from rune.lowering.kernel.matrices import SUBGROUP, written_out
from rune.lowering.kernel.memory import View, bind, size_of
from rune.lowering.kernel.nodes import (
    Accumulate,
    Alloc,
    Assign,
    Barrier,
    Fetch,
    For,
    If,
    KernelCode,
    Kind,
    Let,
    MatrixProduct,
    Stmt,
    Store,
    Var,
)
from rune.lowering.kernel.races import Fault, Lane, Level, Storage, Touch, Visit, lifted, spread
from rune.lowering.kernel.rewrite import (
    Body,
    all_names,
    fresh,
    loop_symbol,
    names_bound,
    size_names,
    symbols_used,
    walk,
)
from rune.lowering.kernel.scalar import SCALAR_MEANING, apply_unguarded, convert_unguarded
from rune.records import dataclass

SUBGROUPS = "subgroups"  # the level on which 32 neighbouring threads count as one
LANES = 1 << 18  # values that one operation handles at once


def interpret(code: KernelCode, buffers: Sequence[np.ndarray], sizes: Mapping[str, int] | None = None) -> None:
    """Run the kernel on contiguous arrays, one per parameter; those written change in place.

    Errors: CheckError "interpret: cannot load x in kernel pad (index 12 of 10, at i=3)".
    """
    known = dict(sizes or {})
    try:
        views = bind(code, buffers, known)
    except Fault as fault:
        message = f"interpret: cannot call kernel {code.name} ({fault.message})"
        raise CheckError(message) from fault
    storages = list({id(v.storage): v.storage for v in views.values()}.values())
    machine = _Machine(code, known, views, storages, symbols_used(code))
    with np.errstate(all="ignore"):
        machine.body(code.body)


@dataclass(slots=True)
class _Machine:
    code: KernelCode
    indices: dict[str, Any]  # sizes, loop variables and integer Lets: what an index may mention
    views: dict[str, View]
    storages: list[Storage]
    symbols: dict[str, Dim]
    locals: dict[str, Any] = field(default_factory=dict)
    var_depth: dict[str, int] = field(default_factory=dict)
    shape: tuple[int, ...] = ()  # lanes: one axis per loop that runs at once
    mask: np.ndarray | bool = True  # the lanes that run; True for all
    levels: list[Level] = field(default_factory=list)
    loops: list[tuple[str, Any]] = field(default_factory=list)
    dependences: Carried = field(default_factory=Carried)
    # For each interval between barriers: its fetches, and the accesses that may outlast it.
    fetches: list[list[tuple[View, np.ndarray, np.ndarray]]] = field(default_factory=lambda: [[]])
    late: list[list[Visit]] = field(default_factory=lambda: [[]])
    is_late: bool = False
    adding: set[str] = field(default_factory=set)  # Vars to which four subgroups may still add
    products: dict[int, For] = field(default_factory=dict)  # written-out loops, by identity
    constants: dict[int, np.generic] = field(default_factory=dict)  # by identity

    # --- failures ----------------------------------------------------------------------------

    def fail(self, action: str, reason: str, lane: Lane | None = None) -> NoReturn:
        place = self.place(lane)
        raise CheckError(f"interpret: cannot {action} in kernel {self.code.name} ({reason}{place})")

    def place(self, lane: Lane | None) -> str:
        parts = []
        for name, value in self.loops:
            if np.ndim(value) == 0:
                parts.append(f"{name}={value}")
            # A loop that runs at once has an array of values; the lane says which of them failed.
            elif lane is not None and len(lane.at) >= value.ndim:
                axes = value.ndim - 1
                parts.append(f"{name}={value.reshape(-1)[lane.at[axes]]}")
        return f", at {' '.join(parts)}" if parts else ""

    # --- lanes -------------------------------------------------------------------------------

    def lift(self, value: Any) -> Any:
        """The value with one axis per lane axis."""
        return lifted(value, len(self.shape))

    def full(self, value: np.ndarray) -> np.ndarray:
        return spread(self.lift(value), self.shape)

    def size(self, x: Size) -> Any:
        if not isinstance(x, Dim):
            return x
        return size_of(x, self.index)

    def index(self, name: str) -> int | np.ndarray:
        return self.lift(self.indices[name])

    def active(self) -> Any:
        return self.mask if self.mask is True else self.lift(self.mask)

    def view(self, name: str) -> View:
        view = self.views[name]
        base = self.lift(view.base)
        return view if base is view.base else View(view.storage, view.size, base)

    # --- expressions -------------------------------------------------------------------------

    def expr(self, expr: Expr) -> Any:
        match expr:
            case Const():
                # Nodes live as long as the code.
                if id(expr) not in self.constants:
                    self.constants[id(expr)] = expr.value
                return self.constants[id(expr)]
            case Local(name=name):
                if name in self.adding:
                    self.fail(f"read {name}", "four subgroups may still add to it")
                return self.lift(self.locals[name])
            case Index(dim=dim):
                return np.asarray(self.size(dim)).astype(np.int64)
            case Op(name=name, args=args, dtype=dtype):
                return apply_unguarded(name, tuple(self.expr(a) for a in args), dtype)
            case Cast(arg=arg, dtype=dtype):
                return convert_unguarded(self.expr(arg), dtype)
            case Load():
                return self.load(expr)

    def load(self, load: Load) -> Any:
        guard = True if load.guard is None else self.expr(load.guard)
        if not self.shape:
            return self.load_one(load, bool(guard))
        active = guard & self.active() if guard is not True else self.active()
        try:
            value, at = self.view(load.buffer).read(self.size(load.indices[0]), active)
        except Fault as fault:
            self.fail(f"load {load.buffer}", fault.message, fault.lane)
        self.touch(load.buffer, at, active, Touch.READ)
        return value if guard is True else np.where(guard, value, np.zeros((), value.dtype))

    def load_one(self, load: Load, guard: bool) -> np.generic:
        """Load an element when there are no lanes."""
        view = self.views[load.buffer]
        if not guard:
            return view.storage.data.dtype.type(0)
        try:
            return view.read_one(self.size(load.indices[0]))
        except Fault as fault:
            self.fail(f"load {load.buffer}", fault.message, fault.lane)

    def touch(self, name: str, at: np.ndarray, active: np.ndarray, kind: Touch) -> None:
        storage = self.views[name].storage
        levels = [x for x in self.levels if storage.is_tracked and storage.depth <= x.depth]
        if not levels:
            return
        at = self.lift(at)
        for level in levels:
            visit = Visit(storage, level, at, active, self.shape, kind)
            try:
                visit.record()
            except Fault as fault:
                self.fail(f"{'load' if kind is Touch.READ else 'store'} {name}", fault.message)
            if self.is_late:
                self.late[-1].append(visit)

    # --- statements --------------------------------------------------------------------------

    def body(self, body: Body) -> None:
        for stmt in body:
            self.stmt(stmt)

    def stmt(self, stmt: Stmt) -> None:
        match stmt:
            case Let():
                self.let(stmt)
            case Var(name=name, init=init):
                self.locals[name] = self.expr(init)
                self.var_depth[name] = len(self.shape)
            case Assign():
                self.assign(stmt)
            case Accumulate():
                self.accumulate(stmt)
            case Store():
                self.store(stmt)
            case For():
                self.loop(stmt)
            case If():
                self.branch(stmt)
            case Alloc():
                self.alloc(stmt)
            case Fetch():
                self.fetch(stmt)
            case MatrixProduct():
                self.multiply(stmt)
            case Barrier(threads=int()):
                # Threads of other subgroups have not waited, and the subgroups' level says so.
                self.end_interval("workgroup")
            case Barrier():
                self.barrier(stmt)

    def end_interval(self, level: str) -> None:
        for storage in self.storages:
            storage.intervals.pop(level, None)

    def let(self, stmt: Let) -> None:
        value = self.locals[stmt.name] = self.expr(stmt.value)
        # Only integers that an index mentions have declared bounds to check.
        if stmt.name not in self.symbols:
            return
        wide = self.indices[stmt.name] = np.asarray(value).astype(np.int64)
        (symbol,) = dims.symbols(self.symbols[stmt.name])
        low = self.size(symbol.low)
        high = np.inf if symbol.high is None else self.size(symbol.high)
        outside = (wide < low) | (wide > high)
        if outside.ndim == 0 and not outside:
            return
        if outside.any() and np.any(outside := outside & self.active()):
            worst = np.broadcast_to(wide, outside.shape)[outside][0]
            self.fail(f"bind {stmt.name}", f"{worst} is not in {symbol.low}..{symbol.high}")

    def assign(self, stmt: Assign) -> None:
        if self.var_depth[stmt.name] != len(self.shape):
            self.fail(f"assign {stmt.name}", "members of a parallel loop share it")
        value = self.expr(stmt.value)
        if self.mask is not True:
            # Lanes that are switched off keep the value they had.
            value = np.where(self.active(), value, self.lift(self.locals[stmt.name]))
        self.locals[stmt.name] = value

    def accumulate(self, stmt: Accumulate) -> None:
        combine = COMBINE[stmt.combine]
        value = self.expr(stmt.value)
        dtype = value.dtype
        if self.mask is not True:
            value = np.where(self.active(), value, _neutral(stmt.combine, dtype))
        depth = self.var_depth[stmt.name]
        # Axes opened since the Var was declared are reduced into it.
        axes = tuple(range(depth, len(self.shape)))
        if axes:
            lanes = np.shape(value)[:depth] or (1,) * depth
            # A value that does not vary by lane has length 1, and must count once per lane.
            value = np.broadcast_to(value, lanes + self.shape[depth:])
            # Without the dtype, NumPy would sum small integers in i64; it has no 4-bit loops.
            wide = {dtypes.i4: dtypes.i8, dtypes.u4: dtypes.u8}.get(dtype, dtype)
            value = combine.function.reduce(value.astype(wide), axis=axes, dtype=wide).astype(dtype)
        old = self.locals[stmt.name]
        self.locals[stmt.name] = apply_unguarded(stmt.combine, (old, value), dtype)

    def store(self, stmt: Store) -> None:
        if not self.shape and stmt.combine is None:
            self.store_one(stmt)
            return
        value, active, view = self.full(self.expr(stmt.value)), self.active(), self.view(stmt.buffer)
        kind = Touch.ATOMIC if stmt.atomic else Touch.WRITE
        at = self.places(stmt.buffer, stmt.index, f"store {stmt.buffer}", kind)
        if active is not True:
            keep = self.full(active)
            at, value = at[keep], value[keep]
        flags = view.storage.write_flags
        if stmt.combine is not None and flags is not None and not flags[at].all():
            self.fail(f"update {stmt.buffer}", "which nothing has written")
        view.write(at, value, None if stmt.combine is None else COMBINE[stmt.combine].function)

    def store_one(self, stmt: Store) -> None:
        """Write an element when there are no lanes."""
        view = self.views[stmt.buffer]
        value = self.expr(stmt.value)
        try:
            at = view.element(self.size(stmt.index))
        except Fault as fault:
            self.fail(f"store {stmt.buffer}", fault.message, fault.lane)
        view.storage.data[at] = value
        if view.storage.write_flags is not None:
            view.storage.write_flags[at] = True

    def fetch(self, stmt: Fetch) -> None:
        dtype = self.views[stmt.target].storage.data.dtype
        view, active = self.view(stmt.target), self.active()
        self.is_late = True
        keep = slice(None) if active is True else self.full(active)
        for k in range(stmt.count):
            load = Load(stmt.source, (stmt.source_index + k,), dtype, stmt.guard)
            value = self.full(self.load(load))
            at = self.places(stmt.target, stmt.target_index + k, f"fetch into {stmt.target}")
            self.fetches[-1].append((view, at[keep], value[keep]))
        self.is_late = False

    def barrier(self, stmt: Barrier) -> None:
        count = max(0, len(self.fetches) - stmt.in_flight)
        # Fetches are written only now, so that a thread that has not waited does not see them.
        for view, at, value in itertools.chain(*self.fetches[:count]):
            view.write(at, value, None)
        if stmt.ends_sums:
            self.adding.clear()
        # Threads cannot race across a barrier; grid points still can.
        self.end_interval("workgroup")
        self.end_interval(SUBGROUPS)
        for number, visits in enumerate(self.late[count:], count - len(self.late)):
            for visit in visits:
                # Products are late by one barrier, fetches by as many as the statement says.
                if visit.kind is Touch.WRITE or (number == -1 and not stmt.ends_sums):
                    visit.record()
        self.fetches, self.late = [*self.fetches[count:], []], [*self.late[count:], []]

    def places(self, buffer: str, index: Size, action: str, kind: Touch = Touch.WRITE) -> np.ndarray:
        """Where each lane writes; recorded for the race check."""
        active = self.active()
        try:
            at = self.full(self.view(buffer).elements(self.size(index), active))
        except Fault as fault:
            self.fail(action, fault.message, fault.lane)
        # Before dropping inactive lanes, because `touch` expects one position per lane.
        self.touch(buffer, at.reshape(self.shape), active, kind)
        return at

    def multiply(self, stmt: MatrixProduct) -> None:
        thread = next(s for s in walk(self.code.body) if isinstance(s, For) and s.kind is Kind.WORKGROUP)
        axis = self.indices[thread.var].ndim - 1
        for factor in (stmt.a, stmt.b):
            at = np.moveaxis(np.broadcast_to(self.lift(np.asarray(self.size(factor.index))), self.shape), axis, -1)
            subgroups = at.reshape(*at.shape[:-1], -1, stmt.subgroups * SUBGROUP)
            if np.any(subgroups != subgroups[..., :1]):
                self.fail(f"multiply {factor.buffer}", "threads of a subgroup read different matrices")
        if id(stmt) not in self.products:
            names = all_names(self.code)
            self.products[id(stmt)] = written_out(stmt, loop_symbol(thread), lambda base: fresh(base, names))
        self.is_late = stmt.subgroups > 1
        self.loop(self.products[id(stmt)])
        if self.is_late:
            self.adding.update(stmt.names)
        self.is_late = False

    def branch(self, stmt: If) -> None:
        condition = self.expr(stmt.condition)
        if not self.shape:
            self.body(stmt.body if condition else stmt.orelse)
            return
        # Lanes may differ, so both sides run, each under its own mask.
        outer, around = self.mask, self.active()
        for body, side in ((stmt.body, condition), (stmt.orelse, ~condition)):
            self.mask = side & around
            if body and np.any(self.mask):
                self.body(body)
        self.mask = outer

    def alloc(self, stmt: Alloc) -> None:
        lanes = math.prod(self.shape)
        size = lanes * stmt.size
        # One copy per lane, side by side in one array.
        base = np.arange(lanes).reshape(self.shape) * stmt.size
        storage = Storage(np.empty(size, stmt.dtype), np.zeros(size, np.bool_), len(self.shape))
        self.storages.append(storage)
        self.views[stmt.name] = View(storage, stmt.size, base)

    # --- loops -------------------------------------------------------------------------------

    def loop(self, loop: For) -> None:
        extent = self.size(loop.extent)
        # Lanes may have different extents: all run to the longest, masked beyond their own.
        count = int(np.max(extent)) if np.size(extent) else 0
        is_ragged = bool(np.ndim(extent)) and bool(np.any(extent != count))
        outer, storage_count = self.mask, len(self.storages)
        at_once = self.at_once(loop, count)
        for start in range(0, count, at_once or 1):
            if at_once:
                stop = min(start + at_once, count)
                self.lanes(loop, count, np.arange(start, stop), extent if is_ragged else None)
            else:
                self.iteration(loop, start, extent if is_ragged else None)
            self.mask = outer
            # Scratch ends with the iteration that allocated it.
            del self.storages[storage_count:]

    def iteration(self, loop: For, value: int, extent: Any) -> None:
        self.indices[loop.var] = value
        if extent is not None:
            self.mask = (value < extent) & self.active()
        self.loops.append((loop.var, value))
        self.body(loop.body)
        self.loops.pop()

    def lanes(self, loop: For, count: int, values: np.ndarray, extent: Any) -> None:
        outer, levels = self.shape, self.levels
        axis = values.reshape((1,) * len(outer) + (-1,))
        self.shape = (*outer, values.size)
        self.indices[loop.var] = axis
        self.levels = _with_subgroups(self.levels_inside(loop, count, axis, len(outer)))
        if extent is not None:
            self.mask = (axis < self.lift(extent)) & self.active()
        self.loops.append((loop.var, axis))
        self.body(loop.body)
        self.loops.pop()
        self.shape, self.levels = outer, levels

    def levels_inside(self, loop: For, count: int, axis: np.ndarray, depth: int) -> list[Level]:
        """The levels, with this loop's members numbered; a nest of one kind is one level."""
        kind = loop.kind
        if kind not in (Kind.GRID, Kind.WORKGROUP, Kind.VECTOR):
            return self.levels
        # A new run of the loop: accesses of an earlier run no longer count.
        if kind is Kind.VECTOR and axis.flat[0] == 0:
            for storage in self.storages:
                storage.intervals.pop("vector", None)
        others = [x for x in self.levels if x.name not in (kind.value, SUBGROUPS)]
        same = [x for x in self.levels if x.name == kind.value]
        if same:
            return [*others, Level(kind.value, same[0].depth, self.lift(same[0].ids) * count + axis)]
        # Numbered across groups, since threads of different groups are different threads.
        if kind is Kind.WORKGROUP and others:
            return [*others, Level(kind.value, depth, self.lift(others[0].ids) * count + axis)]
        return [*others, Level(kind.value, depth, axis)]

    def at_once(self, loop: For, count: int) -> int:
        """How many iterations run at once; 0 if they run one after the other, as scalars."""
        room = LANES // max(1, math.prod(self.shape))
        # All threads run at once, because they meet at barriers.
        if loop.kind is Kind.WORKGROUP:
            return count
        if loop.kind in (Kind.GRID, Kind.VECTOR):
            return max(1, room // self.dependences.lanes_inside(loop))
        if self.dependences.has_dependence(loop):
            return 0
        if not self.dependences.has_nested_store(loop):
            return max(1, room)
        # Stores must keep their order, so all inner loops have to fit at once, too. If they do not,
        # the quotient is 0: one after the other.
        return room // self.iterations_inside(loop)

    def iterations_inside(self, loop: For) -> int:
        """Iterations of all inner loops together; more than any room if that number varies."""
        bound = names_bound((loop,))
        extents = [s.extent for s in walk(loop.body) if isinstance(s, For)]
        if any(isinstance(x, Dim) and size_names(x) & bound for x in extents):
            return LANES + 1
        return math.prod(max(1, int(np.max(self.size(x)))) for x in extents)


def _with_subgroups(levels: list[Level]) -> list[Level]:
    """The levels, with the subgroups of a workgroup as a level of their own."""
    threads = [x for x in levels if x.name == "workgroup"]
    others = [x for x in levels if x.name != SUBGROUPS]
    return [*others, *(Level(SUBGROUPS, x.depth, x.ids // SUBGROUP) for x in threads)]


def _neutral(combine: str, dtype: np.dtype) -> Any:
    # -0.0, unlike 0.0, changes no addend at all.
    value: Any = COMBINE[combine].identity(dtype).value
    return -value if combine == "add" else value


__all__ = ["SCALAR_MEANING", "interpret"]
