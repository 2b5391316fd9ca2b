"""Turn: a group of threads reads a square along its other axis, and turns it in shared memory.

Before   for i in 2048, j in 2048 grid: y[2048*i + j] = x[i + 2048*j]
After    for i in 64, j in 64 grid                            turn(i=32)
           alloc square: f32[32 * 33] shared
           for thread in 256 workgroup
             square[33*d + p] = x[32*i + p + 2048*(32*j + d)]   neighbours p by neighbouring threads
             barrier
             y[2048*(32*i + r) + 32*j + c] = square[33*c + r]   neighbours c by neighbouring threads

So both arrays are walked along their rows. The 33rd column keeps threads that walk down the square
in different banks. Points beyond the ends are neither read nor written.

Invariant: the same points, each once.
Source: G. Ruetsch and P. Micikevicius, "Optimizing Matrix Transpose in CUDA", 2009.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rune import dims
from rune.dims import Dim, Size
from rune.lowering.build import loops
from rune.lowering.build.conditions import every, less
from rune.lowering.build.flatten import map_statement
from rune.lowering.build.panels import placed, step
from rune.lowering.build.schedule import Turn
from rune.lowering.build.squares import is_pointwise
from rune.lowering.build.tile import axis_of, place_body
from rune.lowering.kernel.expr import Expr, Load, Local
from rune.lowering.kernel.nodes import AddressSpace, Alloc, Barrier, For, If, Kind, Let, Stmt, Store
from rune.lowering.kernel.rewrite import loads, map_expr, names_in
from rune.lowering.kernels import Axis, Kernel, expressions
from rune.records import dataclass

THREADS = 256  # of a group


@dataclass(frozen=True, slots=True)
class Group:
    """The threads that turn a square of a kernel."""

    kernel: Kernel
    turn: Turn

    @property
    def axes(self) -> tuple[Axis, Axis]:
        """The axis along which turned arrays are contiguous, and the one that writes run along."""
        return axis_of(self.kernel.domain, self.turn.axis), self.kernel.domain[-1]

    @property
    def thread(self) -> Dim:
        """The number of a thread."""
        return dims.symbol("thread", 0, THREADS - 1)

    @property
    def domain(self) -> list[Axis]:
        """The axes of the grid: a point is a square."""
        names = [a.name for a in self.axes]
        return [Axis(a.name, -(-a.size // self.turn.side)) if a.name in names else a for a in self.kernel.domain]

    @property
    def rounds(self) -> range:
        """The points of a thread."""
        return range(-(-(self.turn.side**2) // THREADS))

    def place(self, number: int) -> tuple[Size, Size]:
        """A point of the square in the order of the threads: its line, and its place in that."""
        point = number * THREADS + self.thread
        return point // self.turn.side, point % self.turn.side

    def at(self, along: Size, within: Size) -> dict[str, Size]:
        """The axes of the domain at a point of the square."""
        first, last = (axis_of(self.domain, a.name).symbol * self.turn.side for a in self.axes)
        return {self.axes[0].name: first + along, self.axes[1].name: last + within}

    def inside(self, at: Mapping[str, Size]) -> list[Expr]:
        """Conditions for a point not to be beyond an end; none if squares divide the axes."""
        return [less(at[a.name], a.size) for a in self.axes if a.size % self.turn.side != 0]


def turned_loads(kernel: Kernel, axis: str) -> list[Load]:
    """The loads of a pointwise kernel whose neighbours lie along this axis, and not the last one.

    Loads whose index or guard depends on a let of the point are left out: a square is read before
    points compute anything.
    """
    last, bound = kernel.domain[-1].name, {s.name for s in kernel.body if isinstance(s, Let)}
    reads = dict.fromkeys(x for s in kernel.body for x in loads(expressions(s)))
    across = (x for x in reads if step(x.indices[0], axis) == 1 and step(x.indices[0], last) not in (0, 1))
    return [x for x in across if not names_in(x) & bound]


def choose_turn(kernel: Kernel, side: int) -> Turn | None:
    """The squares to turn, if some array is read across its rows."""
    if side == 0 or not is_pointwise(kernel) or len(kernel.domain) < 2:
        return None
    last = kernel.domain[-1]
    for axis in reversed(kernel.domain[:-1]):
        are_long = all(not isinstance(a.size, int) or a.size >= side for a in (axis, last))
        if are_long and turned_loads(kernel, axis.name):
            return Turn(axis.name, side)
    return None


def shared_bytes(kernel: Kernel, turn: Turn) -> int:
    """The bytes of shared memory of a group."""
    squares = (_square(turn, k, load) for k, load in enumerate(turned_loads(kernel, turn.axis)))
    return sum(s.size * s.dtype.itemsize for s in squares)


def turned(kernel: Kernel, turn: Turn) -> tuple[list[Axis], list[Stmt]]:
    """The axes of the grid, and what a group does at one of its points."""
    group, loads = Group(kernel, turn), turned_loads(kernel, turn.axis)
    memory = [_square(turn, k, load) for k, load in enumerate(loads)]
    reads = [s for square, load in zip(memory, loads) for s in _read(group, square, load)]
    points = [s for number in group.rounds for s in _point(group, number, memory, loads)]
    inside = (*reads, Barrier(), *points)
    return group.domain, [*memory, For("thread", THREADS, Kind.WORKGROUP, inside)]


def _square(turn: Turn, number: int, load: Load) -> Alloc:
    size = turn.side * (turn.side + 1)
    return Alloc(f"{load.buffer}_square_{number}", load.dtype, size, AddressSpace.SHARED)


def _read(group: Group, square: Alloc, load: Load) -> Iterator[Stmt]:
    """A thread's share of an array's square, read along the array's rows."""
    for number in group.rounds:
        line, position = group.place(number)
        # Neighbouring threads read along the turned axis, in which the array is contiguous.
        at = group.at(position, line)
        element = placed(load, at)
        assert isinstance(element, Load)
        guards = [*group.inside(at), *([element.guard] if element.guard is not None else [])]
        name = f"{square.name}_element_{number}"
        yield Let(name, replace(element, guard=every(guards) if guards else None))
        store = Store(square.name, line * (group.turn.side + 1) + position, Local(name, load.dtype))
        yield from _where(group, number, (store,))


def _point(group: Group, number: int, memory: Sequence[Alloc], loads: Sequence[Load]) -> Iterator[Stmt]:
    """The statements of one point of a thread, which read turned elements from the squares."""
    row, column = group.place(number)
    at = group.at(row, column)
    # Here neighbouring threads are along the last axis: they read the square across its lines.
    index = column * (group.turn.side + 1) + row
    elements = {load: Load(s.name, (index,), load.dtype) for s, load in zip(memory, loads)}

    def on_node(part: Expr) -> Expr:
        return elements.get(part, part) if isinstance(part, Load) else part

    body = tuple(map_statement(s, lambda e: map_expr(on_node, e)) for s in group.kernel.body)
    names = {s.name: f"{s.name}_{number}" for s in body if isinstance(s, Let)}
    statements = tuple(loops.body(place_body(body, at, names), {}, {}))
    conditions = group.inside(at)
    yield from _where(group, number, (If(every(conditions), statements),) if conditions else statements)


def _where(group: Group, number: int, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The statements of a round; in the last one some threads may have no point of the square."""
    point = number * THREADS + group.thread
    points = group.turn.side**2
    return body if (number + 1) * THREADS <= points else (If(less(point, points), body),)
