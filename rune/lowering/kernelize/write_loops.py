"""Write the kernel of an equation whose loops are given; operands are computed where it reads them.

Before   place: i32 in 0..9 = x1[u]                          x1 = select(i < 0, i + 9, i), stored
After    t1: bool = x1[u] < 0; t2: i32 = x1[u] + 9           x1 = i
         t3: i32 = select(t1, t2, x1[u])
         place: i32 in 0..9 = t3

The element of an operand that is not stored replaces its load, after the statements that compute
it. These come just before the statement of the load, so nothing is computed that was not read.

Invariant: the loops see the same elements.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace

from rune.core.program import Equation, Var
from rune.core.types import Shape
from rune.dims import Size, flat_index
from rune.lowering.kernel.expr import Expr, Load, Local
from rune.lowering.kernel.nodes import Let, Stmt
from rune.lowering.kernel.rewrite import Body, map_expr, map_parts, map_stmts, names_bound, rename, reserve
from rune.lowering.kernelize.emit import Emitter, Term
from rune.lowering.kernelize.stored import Storage, memory_operands
from rune.lowering.kernelize.write import KernelCall
from rune.lowering.kernels import Buffer, Kernel
from rune.lowering.written import buffers, code_for
from rune.records import dataclass


def write_loops(equation: Equation, storage: Storage, reserved_names: frozenset[str]) -> KernelCall:
    """The kernel of an equation whose lowering is Written; it has no name yet.

    reserved_names: those of symbolic sizes
    """
    code = code_for(equation)
    operands = {f"x{n}": var for n, var in enumerate(memory_operands(equation, storage.definitions))}
    arrays = {name: var for name, var in operands.items() if storage.is_in_memory(var)}
    # Operands that are computed need names that the loops do not use, as loads of them disappear.
    local = set(names_bound(code.body) | reserved_names)
    names = {name: f"x{n}" for n, name in enumerate(arrays)}
    names |= {name: reserve("operand", local) for name in operands if name not in arrays}
    inputs = _Inputs.of(arrays, frozenset(source for source, _ in code.in_place))
    element_operands = {names[name]: var for name, var in operands.items() if name not in arrays}
    body = _Elements(storage, element_operands, inputs.buffers, frozenset(local)).within(rename(code.body, names))
    kernel = Kernel(
        "",
        tuple(inputs.buffers.values()),
        buffers("y", (v.type for v in equation.results)),
        (),
        (),
        tuple((names[source], result) for source, result in code.in_place),
        body,
    )
    return KernelCall(kernel, inputs.arrays(), equation.results)


@dataclass(frozen=True, slots=True)
class _Inputs:
    """The buffers of the arrays that a kernel reads.

    An array that the loops change has a buffer of its own: expressions read what was there before,
    from another buffer, and the plan separates the two (originals.py).
    """

    buffers: dict[Var, Buffer]
    aliases: Mapping[Var, Var]  # the array behind each variable that stands for a further buffer

    @classmethod
    def of(cls, arrays: Mapping[str, Var], mutated_names: Set[str]) -> _Inputs:
        """The buffers of operands by their names; some of them are changed in place."""
        inputs: dict[Var, Buffer] = {}
        aliases: dict[Var, Var] = {}
        for number, (name, array) in enumerate(arrays.items()):
            key = array
            if name in mutated_names or array in inputs:
                key = Var(array.type)
                aliases[key] = array
            inputs[key] = Buffer(f"x{number}", array.type.strong())
        return cls(inputs, aliases)

    def arrays(self) -> tuple[Var, ...]:
        """The array of each buffer."""
        return tuple(self.aliases.get(key, key) for key in self.buffers)


@dataclass(slots=True)
class _Elements:
    """Puts the elements of some operands in place of their loads."""

    storage: Storage
    operands: Mapping[str, Var]
    inputs: dict[Var, Buffer]  # what elements are computed from joins them
    reserved_names: frozenset[str]
    names: int = 0

    def within(self, body: Body) -> Body:
        """The statements, each after what its loads need."""
        return map_stmts(self.statement, body) if self.operands else body

    def statement(self, stmt: Stmt) -> Body:
        """One statement, after what its loads need."""
        before: list[Stmt] = []

        def on_expr(expr: Expr) -> Expr:
            if isinstance(expr, Load) and expr.buffer in self.operands:
                return self.element(expr, before)
            return expr

        replacement = map_parts(stmt, lambda e: map_expr(on_expr, e), lambda size: size)
        return (*before, replacement)

    def element(self, load: Load, before: list[Stmt]) -> Expr:
        """The element that a load reads; statements that compute it are appended to `before`."""
        var = self.operands[load.buffer]
        # One for each load: locals that it binds are not in scope at another load.
        emit = Emitter(
            self.storage.definitions,
            self.storage.values,
            self.storage.uses,
            self.storage.views,
            inputs=self.inputs,
            reserved_names=self.reserved_names,
            names=self.names,
        )
        guard = load.guard
        # To the emitter a guard is a local (`expr_level`).
        if not (guard is None or isinstance(guard, Local)):
            guard = emit.bind(Term(guard, 0), "c").expr
        value = emit.bind(emit.value(var, unflattened(load.indices[0], var.type.shape), guard)).expr
        self.names = emit.names
        shapes = {buffer.name: buffer.type.shape for buffer in self.inputs.values()}
        for let in emit.body:
            assert isinstance(let, Let), "an operand of given loops is elementwise"
            before.append(Let(let.name, map_expr(lambda e: _flat(e, shapes), let.value)))
        return map_expr(lambda e: _flat(e, shapes), value)


def _flat(expr: Expr, shapes: Mapping[str, Shape]) -> Expr:
    """The expression; a load gets its index among all elements, since the buffers are flat."""
    if not isinstance(expr, Load):
        return expr
    return replace(expr, indices=(flat_index(expr.indices, shapes[expr.buffer]),))


def unflattened(place: Size, shape: Shape) -> tuple[Size, ...]:
    """The indices of the element at a place among all elements."""
    indices: list[Size] = []
    for size in reversed(shape[1:]):
        indices.append(0 if size == 1 else place % size)
        place = place if size == 1 else place // size
    return (*([place] if shape else []), *reversed(indices))
