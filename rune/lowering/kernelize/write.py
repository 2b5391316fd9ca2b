"""Write the kernel of one group: its members in order, each as a statement or two.

A member that is one scalar at each point of the domain becomes a Let or a Reduce; one with inner
axes that others read becomes a Fill if it fits scratch memory. If it does not fit, readers load it
back from the output, or compute it again if it is not an output. Values that are needed outside the
group are written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from rune import dims
from rune.core.lower import Contraction, Cumulative, Reduction, Scatter
from rune.core.program import Var
from rune.dims import Dim, Size, symbol
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.check import COMBINE
from rune.lowering.kernel.expr import Expr, Local
from rune.lowering.kernelize import cost
from rune.lowering.kernelize.emit import Emitter, Term
from rune.lowering.kernelize.group import Group
from rune.lowering.kernelize.groups import Fusion
from rune.lowering.kernelize.originals import with_originals
from rune.lowering.kernelize.roots import (
    Kind,
    Root,
    dot_operands,
    inner_places,
    reduced_sizes,
    reduction_operand,
    scatter_axes,
    scatter_piece,
    window_piece,
)
from rune.lowering.kernelize.stored import Storage
from rune.lowering.kernelize.tracing import generic
from rune.lowering.kernelize.views import Indices
from rune.lowering.kernelize.write_stream import StreamWriter
from rune.lowering.kernels import Axis, Buffer, Fill, Kernel, Reduce, Scan, Write
from rune.ops.family import wide
from rune.records import dataclass

NAMES = {"add": "sum", "mul": "prod", "and": "all", "or": "any"}


@dataclass(frozen=True, slots=True)
class KernelCall:
    """A kernel, and the variables that its inputs and outputs stand for."""

    kernel: Kernel
    inputs: tuple[Var, ...]
    outputs: tuple[Var, ...]


@dataclass(slots=True)
class _Writer:
    """The kernel of one group, while it is being written.

    scratch: members that are rows of scratch memory. pairs: inputs that outputs are changes of.
    """

    state: Fusion
    storage: Storage
    group: Group
    emit: Emitter
    domain: tuple[Axis, ...]
    scratch: frozenset[Var] = frozenset()
    symbols: tuple[Dim, ...] = ()
    pairs: list[tuple[str, str]] = field(default_factory=list)

    # --- axes --------------------------------------------------------------------------------

    def inner(self, sizes: Iterable[Size]) -> tuple[Axis, ...]:
        """Inner axes of these sizes."""
        reserved_names = self.emit.reserved_names
        return tuple(Axis(_free(f"j{k}", reserved_names), size) for k, size in enumerate(sizes))

    def axes(self, root: Root) -> tuple[tuple[Axis, ...], Indices]:
        """The inner axes of a root, and the indices of its generic element."""
        places = self.group.places[root.number]
        inner_axes = inner_places(root, places)
        inner = self.inner(root.sizes[k] for k in inner_axes)
        at: dict[int, Size] = dict.fromkeys(range(len(root.sizes)), 0)
        at |= {k: s for k, s in zip(places, self.symbols)}
        at |= {k: axis_symbol(axis) for k, axis in zip(inner_axes, inner)}
        return inner, tuple(o + at[k] for k, o in enumerate(root.offsets))

    def begin(self, axes: Iterable[Axis]) -> None:
        """Start a statement over inner axes."""
        self.emit.begin(axis.name for axis in axes)

    # --- members -----------------------------------------------------------------------------

    def member(self, root: Root) -> None:
        """Add the statements of one root."""
        match root.kind:
            case Kind.MAP:
                self.mapped(root)
            case Kind.REDUCE | Kind.DOT:
                self.reduced(root)
            case Kind.SCAN:
                self.scan(root)
            case Kind.SCATTER:
                self.scatter(root)
            case Kind.WINDOW:
                self.window(root)
            case Kind.STREAM:
                self.stream(root)
            case Kind.ROUTINE | Kind.WRITTEN | Kind.CONTROL:
                raise AssertionError(f"a {root.kind.value} has no kernel")

    def mapped(self, root: Root) -> None:
        """A value for every point: Let, Fill or Write."""
        inner, indices = self.axes(root)
        if not inner:
            self.hold(root, indices, self.emit.computed(root.var, indices))
        elif root.var in self.scratch:
            self.fill(root, inner, indices)
        else:
            self.begin(inner)
            value = self.emit.computed(root.var, indices)
            self.write(root, indices, value.expr, inner)

    def fill(self, root: Root, inner: tuple[Axis, ...], indices: Indices) -> None:
        """A scratch row, and its copy in memory where others need it."""
        self.begin(inner)
        value = self.emit.computed(root.var, indices)
        name = self.emit.fresh("row")
        self.emit.body.append(Fill(name, inner, self.emit.end(), value.expr))
        inner_axes = inner_places(root, self.group.places[root.number])
        self.emit.rows[root.var] = (name, inner_axes)
        if root.var in self.emit.outputs:
            self.begin(inner)
            self.write(root, indices, self.emit.value(root.var, indices).expr, inner)

    def reduced(self, root: Root) -> None:
        """A reduction or dot: a scalar of the point."""
        _, indices = self.axes(root)
        inner = self.inner(reduced_sizes(root.equation))
        if any(axis.size == 0 for axis in inner):
            self.nothing_reduced(root, indices)
            return
        self.begin(inner)
        at = tuple(axis_symbol(axis) for axis in inner)
        lower = root.equation.primitive.lower
        if isinstance(lower, Contraction):
            combine, value = "add", self.product(root, indices, at)
        else:
            assert isinstance(lower, Reduction)
            combine, value = lower.combine, self.summand(root, indices, at)
        name = self.emit.fresh(NAMES.get(combine, combine))
        contract = isinstance(lower, Contraction)
        lets = self.emit.end()
        self.emit.body.append(Reduce(name, combine, inner, lets, value.expr, contract))
        result = self.emit.cast(Term(Local(name, value.expr.dtype), 0), root.var.type.dtype)
        self.hold(root, indices, result)

    def stream(self, root: Root) -> None:
        """All sinks of the group in one pass, when the first of them comes up."""
        sinks = [r for m in self.group.members if (r := self.state.roots[m]).kind is Kind.STREAM]
        # One statement computes all sinks, so the others have nothing left to add.
        if root is not sinks[0]:
            return
        writer = StreamWriter(self.storage, self.group, self.emit, self.symbols)
        statement, names = writer.stream(sinks)
        self.emit.body.append(statement)
        for sink in sinks:
            self.sum_of(sink, names[sink.var])

    def sum_of(self, root: Root, name: str) -> None:
        """Let other members read a sum of a stream, and write it where it is needed."""
        inner, indices = self.axes(root)
        if not inner:
            self.hold(root, indices, Term(Local(name, root.var.type.dtype), 0))
            return
        self.emit.rows[root.var] = (name, inner_places(root, self.group.places[root.number]))
        if root.var in self.emit.outputs:
            self.begin(inner)
            self.write(root, indices, self.emit.value(root.var, indices).expr, inner)

    def nothing_reduced(self, root: Root, indices: Indices) -> None:
        """A reduction of no elements: the identity of its operation."""
        lower = root.equation.primitive.lower
        combine = lower.combine if isinstance(lower, Reduction) else "add"
        self.hold(root, indices, Term(COMBINE[combine].identity(root.var.type.dtype), 0))

    def hold(self, root: Root, indices: Indices, value: Term) -> None:
        """Let other members read a scalar of the point, and write it where it is needed."""
        # Bound, so that other members and the write share one local.
        if self.is_read_inside(root.var):
            value = self.emit.bind(value)
            self.emit.scalars[root.var] = value.expr
        self.write(root, indices, value.expr)

    def summand(self, root: Root, indices: Indices, at: Indices) -> Term:
        """What a reduction combines, in the accumulator's dtype."""
        lower = root.equation.primitive.lower
        assert isinstance(lower, Reduction)
        value = self.emit.value(*reduction_operand(root.equation, indices, at))
        dtype = root.var.type.dtype
        return self.emit.cast(value, wide(dtype) if lower.combine in ("add", "mul") else dtype)

    def product(self, root: Root, indices: Indices, at: Indices) -> Term:
        """What a dot sums, in the accumulator's dtype."""
        dtype = wide(root.var.type.dtype)
        factors = [
            self.emit.cast(self.emit.value(*request), dtype) for request in dot_operands(root.equation, indices, at)
        ]
        return self.emit.operation("mul", factors, dtype)

    def scan(self, root: Root) -> None:
        """A cumulative operation along one axis."""
        lower = root.equation.primitive.lower
        assert isinstance(lower, Cumulative)
        (axis,), indices = self.axes(root)
        along = root.equation.params["axis"]
        if root.equation.params["reverse"]:
            # The loop of a scan counts upwards: a reverse one is indexed from the end instead.
            last = root.sizes[along] - 1
            indices = (*indices[:along], last - axis_symbol(axis), *indices[along + 1 :])
        self.begin((axis,))
        value = self.emit.value(root.equation.operands[0], indices)
        dtype = root.var.type.dtype
        value = self.emit.cast(value, wide(dtype) if lower.combine in ("add", "mul") else dtype)
        output = self.emit.outputs[root.var].name
        lets = self.emit.end()
        self.emit.body.append(Scan(output, lower.combine, axis, indices, lets, value.expr))

    def scatter(self, root: Root) -> None:
        """The updates in order, after a copy of the operand unless they change it in place."""
        if not self.take_place(root):
            inner, indices = self.axes(root)
            self.begin(inner)
            value = self.emit.value(root.equation.operands[0], indices)
            self.write(root, indices, value.expr, inner)
        self.updates(root)

    def window(self, root: Root) -> None:
        """The elements of an update, at their place in the whole array."""
        equation = root.equation
        assert self.take_place(root)
        _, at = self.axes(root)
        # The view maps a position of the whole to an element of the update, and the inverse is
        # needed here. The two differ by the start, which a generic position shows.
        position = generic(root.var.type.shape, "_w")
        piece = window_piece(equation, position)
        for need in self.emit.element_needs(equation, piece, None):
            self.emit.answer(need)
        (place,) = self.emit.renamed_pieces(equation, (piece,), None)
        # At a position p of the whole the update shows its element p - start.
        starts = (p - i for p, i in zip(position, place.indices))
        value = self.emit.value(equation.operands[1], at)
        self.write(root, tuple(a + s for a, s in zip(at, starts)), value.expr)

    def take_place(self, root: Root) -> bool:
        """Declare that the output starts out as operand 0, if it is to be changed in place."""
        operand = root.equation.operands[0]
        if root.var not in self.storage.in_place or not isinstance(operand, Var):
            return False
        self.pairs.append((self.emit.buffer(operand), self.emit.outputs[root.var].name))
        return True

    def updates(self, root: Root) -> None:
        """The ordered writes of a scatter."""
        equation, lower = root.equation, root.equation.primitive.lower
        assert isinstance(lower, Scatter)
        # Points of the domain change different elements; within one, updates keep their order.
        index_of = {u: self.symbols[d] for d, u in enumerate(scatter_axes(equation).values())}
        operand = equation.operands[lower.updates]
        if 0 in operand.type.shape:
            return
        inner_axes = [u for u in range(operand.type.ndim) if u not in index_of]
        inner = self.inner(operand.type.shape[u] for u in inner_axes)
        index_of |= {u: axis_symbol(axis) for u, axis in zip(inner_axes, inner)}
        at = tuple(index_of[u] for u in range(operand.type.ndim))
        self.begin(inner)
        value = self.emit.value(operand, at)
        where, indices = self.target(root, at)
        output = self.emit.outputs[root.var].name
        lets = self.emit.end()
        self.emit.body.append(Write(output, inner, indices, lets, value.expr, where, lower.combine, ordered=True))

    def target(self, root: Root, at: Indices) -> tuple[Expr | None, Indices]:
        """The condition under which one update is written, and its place."""
        piece = scatter_piece(root.equation, at)
        for need in self.emit.element_needs(root.equation, piece, None):
            self.emit.answer(need)
        (place,) = self.emit.renamed_pieces(root.equation, (piece,), None)
        condition = self.emit.condition(place.where)
        return (None if condition is None else condition.expr), place.indices

    # --- results -----------------------------------------------------------------------------

    def is_read_inside(self, var: Var) -> bool:
        """Whether a member of the group reads the value."""
        return any(r in self.group.places for r in self.state.needs.readers.get(var, ()))

    def write(self, root: Root, indices: Indices, value: Expr, inner: tuple[Axis, ...] = ()) -> None:
        """Write a value to its output, if it has one; ends the statement over `inner`."""
        lets = self.emit.end() if inner else ()
        if root.var in self.emit.outputs:
            output = self.emit.outputs[root.var].name
            self.emit.body.append(Write(output, inner, indices, lets, value))


def axis_symbol(axis: Axis) -> Dim:
    """The symbol of an axis. An axis of size 0 has no points, so any bounds are right for it."""
    if isinstance(axis.size, int):
        return symbol(axis.name, 0, max(0, axis.size - 1))
    return axis.symbol


def _free(name: str, reserved_names: frozenset[str]) -> str:
    return name if name not in reserved_names else _free(name + "_", reserved_names)


def write_kernel(
    state: Fusion, group: Group, storage: Storage, target: Target, reserved_names: frozenset[str]
) -> KernelCall:
    """The kernel of one group; it has no name yet."""
    roots = [state.roots[m] for m in group.members]
    outputs: dict[Var, Buffer] = {}
    for root in roots:
        if root.var not in outputs and root.var in group.written:
            outputs[root.var] = Buffer(f"y{len(outputs)}", root.var.type.strong())
    scratch, recomputed_values = _place(state, group, roots, outputs, target)
    # A copy of the set for every kernel would make kernelize quadratic.
    in_memory = storage.values - recomputed_values if recomputed_values else storage.values
    values = storage.definitions, in_memory, storage.uses, storage.views
    emit = Emitter(*values, outputs=outputs, reserved_names=reserved_names)
    domain = tuple(Axis(_free(f"i{k}", reserved_names), size) for k, size in enumerate(group.domain))
    symbols = tuple(map(axis_symbol, domain))
    writer = _Writer(state, storage, group, emit, domain, scratch, symbols)
    for root in roots:
        if root.var not in recomputed_values:
            writer.member(root)
    kernel = Kernel(
        "", tuple(emit.inputs.values()), tuple(outputs.values()), domain, tuple(emit.body), tuple(writer.pairs)
    )
    kernel, inputs = with_originals(kernel, tuple(emit.inputs))
    return KernelCall(kernel, inputs, tuple(outputs))


def _place(
    state: Fusion, group: Group, roots: list[Root], outputs: dict[Var, Buffer], target: Target
) -> tuple[frozenset[Var], frozenset[Var]]:
    """The members that live in scratch, and those that are computed again."""
    scratch, recomputed_values = set(), set()
    room, slow_room = target.scratch_bytes, cost.SLOW_SCRATCH
    loads: dict[Var, int] = {}  # of an element that is computed again
    # In the order in which they are computed: the first rows get the room, and nothing is weighed.
    for root in roots:
        places = group.places[root.number]
        read = any(r in group.places for r in state.needs.readers.get(root.var, ()))
        if root.kind is not Kind.MAP or not inner_places(root, places) or not read:
            continue
        size = _row_bytes(root, places)
        loads_again = loads.get(root.var, 0) + sum(loads.get(v, 1) * len(at) for v, at in root.reads.items())
        if size is not None and size <= room:
            scratch.add(root.var)
            room -= size
        elif size is not None and size <= slow_room and loads_again > cost.MAX_AGAIN and root.var not in outputs:
            # Each member that is written out in its readers may double the code.
            scratch.add(root.var)
            slow_room -= size
        elif root.var not in outputs:
            loads[root.var] = loads_again
            # Not in memory, and too long for scratch: each reader computes its elements.
            recomputed_values.add(root.var)
    return frozenset(scratch), frozenset(recomputed_values)


def _row_bytes(root: Root, places: tuple[int, ...]) -> int | None:
    """The most bytes that the inner axes take; None if there is no bound."""
    total = root.var.type.dtype.itemsize
    for k in inner_places(root, places):
        high = dims.bounds(root.sizes[k])[1]
        # Scratch has a static size, so a row without a bound cannot be there.
        if high is None:
            return None
        total *= high
    return total


__all__ = ["KernelCall", "write_kernel"]
