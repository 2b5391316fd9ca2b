"""Operands of kernels of given loops: which are computed where the loops read them.

An operand need not be in memory if the loops only load from it: each load may be replaced by the
expression of the element. An operand that is changed in place, fetched, or multiplied by units for
matrices has to be an array. The expression has to be cheap and read few times, and its neighbours
have to be computed from neighbours. Where an element is read twice, both have to be equal: two
compilations may round a sum of floats in two ways, and a sort that counts one key and moves another
loses both.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from rune import dtypes
from rune.core.lower import Convert, Scalar, View, Written
from rune.core.program import Definitions, Equation, Var
from rune.dims import coefficient, flat_index, symbols
from rune.lowering.kernel.expr import Load
from rune.lowering.kernel.nodes import Fetch, For, MatrixProduct
from rune.lowering.kernel.rewrite import Body, bodies, expressions, walk, walk_expr
from rune.lowering.kernelize import cost
from rune.lowering.kernelize.tracing import generic
from rune.lowering.kernelize.views import resolve
from rune.lowering.scalar.table import OPERATIONS
from rune.lowering.written import Code, code_for

NEAR = 4  # elements: up to here, neighbouring threads still read from the same sectors of memory


def loops_of(equations: Iterable[Equation]) -> dict[int, dict[Var, int]]:
    """The kernels of given loops among equations, by number, with the reads of each operand."""
    return {number: reads for number, e in enumerate(equations) if (reads := loop_reads(e))}


def loop_reads(equation: Equation) -> dict[Var, int]:
    """How many elements a kernel of given loops typically reads of an operand that it may compute.

    Empty for any other equation; operands without elements are left out.
    """
    if not isinstance(equation.primitive.lower, Written):
        return {}
    code = code_for(equation)
    arrays = _arrays(code)
    counts: dict[str, int] = {}
    for name, times in _loads(code.body, 1):
        counts[name] = counts.get(name, 0) + times
    names: dict[Var, list[str]] = {}
    for number, operand in enumerate(equation.operands):
        if isinstance(operand, Var):
            names.setdefault(operand, []).append(f"x{number}")
    return {
        operand: sum(counts.get(name, 0) for name in buffer_names)
        for operand, buffer_names in names.items()
        if 0 not in operand.type.shape and arrays.isdisjoint(buffer_names)
    }


def _arrays(code: Code) -> frozenset[str]:
    """The buffers from which more than single elements are taken."""
    # What the loops change has to be memory.
    names = {source for source, _ in code.in_place}
    for stmt in walk(code.body):
        if isinstance(stmt, Fetch):
            names.add(stmt.source)
        elif isinstance(stmt, MatrixProduct):
            names |= {stmt.a.buffer, stmt.b.buffer}
    return frozenset(names)


def _loads(body: Body, times: int) -> Iterator[tuple[str, int]]:
    """The buffer of every load, and how often the load is executed if all conditions hold."""
    for stmt in body:
        for expr in expressions(stmt):
            yield from ((part.buffer, times) for part in walk_expr(expr) if isinstance(part, Load))
        rounds = cost.count((stmt.extent,)) if isinstance(stmt, For) else 1
        for inner in bodies(stmt):
            yield from _loads(inner, times * rounds)


# --- what may be computed ---------------------------------------------------------------------


def is_computed_where_read(
    equation: Equation, reads: int, definitions: Definitions, stored_values: Container[Var]
) -> bool:
    """Whether given loops compute the value of an equation where they read it, `reads` elements.

    stored_values: those that are in memory before it
    """
    (result,) = equation.results
    elements, operations, loads = cost.count(result.type.shape), 0, set[Var]()
    pending, visited = [equation], {equation}
    while pending:
        equation = pending.pop()
        lower = equation.primitive.lower
        # So many reads mean that some element is read twice.
        if _turns(equation) or (_rounds(equation) and reads >= 2 * elements):
            return False
        operations += cost.operation(lower.op) if isinstance(lower, Scalar) else isinstance(lower, Convert)
        for operand in equation.operands:
            if not isinstance(operand, Var) or not operand.type.shape:
                continue
            definition = definitions.get(operand)
            # A value in memory costs a load wherever it is read, however it was computed.
            if definition is None or operand in stored_values:
                loads.add(operand)
            elif definition not in visited:
                visited.add(definition)
                pending.append(definition)
        if operations > cost.HIDDEN:
            return False
    return cost.is_computed_by_loops(operations, len(loads), elements, reads)


def _rounds(equation: Equation) -> bool:
    """Whether compilers may round the operation in more than one way."""
    lower, dtype = equation.primitive.lower, equation.results[0].type.dtype
    if not isinstance(lower, Scalar) or dtype not in dtypes.FLOATING:
        return False
    return dtype not in OPERATIONS[lower.op].closed_dtypes


def _turns(equation: Equation) -> bool:
    """Whether a view shows elements that lie far apart as neighbours along its last axis."""
    shape = equation.results[0].type.shape
    if not isinstance(equation.primitive.lower, View) or not shape:
        return False
    indices = generic(shape)
    (last,) = symbols(indices[-1])
    steps = (
        coefficient(flat_index(piece.indices, equation.operands[piece.operand].type.shape), last.name)
        for piece in resolve(equation, indices).pieces
    )
    return not all(isinstance(step, int) and abs(step) <= NEAR for step in steps)
