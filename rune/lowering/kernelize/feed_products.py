"""Store factors of large products on GPUs, in an order that panels and units read.

Before   %2: bf16[8192,2048] = mul %0, %1
         %4: bf16[8192,512] = dot_general %2, %3
After    %5: bf16[8192,2048] = mul %0, %1
         %2: bf16[8192,2048] = in_memory %5
         %4: bf16[8192,512] = dot_general %2, %3

Other products compute a cheap factor again wherever they use it, which costs less than writing it.
But units for matrices multiply elements just as they were copied to shared memory. A factor of a
half type that has to be computed, or rounded from f32, leaves the whole product to ordinary
arithmetic, which takes ten times as long. So does a factor that is stored in one order and read in
another, where no stride leads from one element to the next: heads that are joined to rows.

Products of any floats copy panels of both factors to shared memory, if they know where the panels
begin. A window whose start is read from memory is stored first instead: 2,048 x 64 x 2,048 of a
factorisation took 197 µs on an H100 when it was read in place.

Invariant: the same values.
Cost: linear in the number of equations.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace

from rune import dtypes
from rune.core.lower import Contraction, View
from rune.core.program import Definitions, Equation, Program, Var, replace_equations
from rune.core.types import ArrayType
from rune.dims import Dim, Size, coefficient, flat_index, symbols
from rune.lowering.codegen.target import Target
from rune.lowering.kernelize import cost
from rune.lowering.kernelize.align_rows import FETCHED, THROUGH_REGISTERS
from rune.lowering.kernelize.product_time import LAUNCH, MEMORY
from rune.lowering.kernelize.scores import is_mapped
from rune.lowering.kernelize.tracing import generic, trace
from rune.lowering.kernelize.views import resolve
from rune.ops.contraction import free_axes
from rune.ops.memory import in_memory

FEWEST = 16  # rows, columns and products of a sum for which panels pay
# Multiply-adds of a multiprocessor in a cycle, measured on an H100: of factors read in place, and
# of panels in shared memory.
IN_PLACE, STAGED = 6.0, 50.0


def feed_products(program: Program, target: Target, stream_values: Container[Var] = ()) -> Program:
    """The program with the factors of large products in memory.

    stream_values: values that streams compute again, and their results
    """
    if not target.is_gpu:
        return program
    definitions = program.definitions
    factors: set[Var] = set()
    for equation in program.equations:
        if equation.results and equation.results[0] not in stream_values:
            factors.update(_factors(equation, definitions, target))
    if not factors:
        return program
    return replace_equations(program, lambda e: [] if factors.isdisjoint(e.results) else _in_memory(e))


def _in_memory(equation: Equation) -> tuple[Equation, Equation]:
    """An equation of one result, and that result in memory under its name."""
    (result,) = equation.results
    computation = Var(result.type)
    storage = Equation(in_memory, (computation,), {}, (result,))
    # The stored value has the result's variable, so readers need no change.
    return replace(equation, results=(computation,)), replace(storage, frame=equation.frame)


def _factors(equation: Equation, definitions: Definitions, target: Target) -> Iterator[Var]:
    """The values that a product needs in memory."""
    operands = [x for x in equation.operands if isinstance(x, Var)]
    if not isinstance(equation.primitive.lower, Contraction) or len(operands) != 2:
        return
    if all(("multiply", x.type.dtype) in target.native for x in operands):
        factor_of, rates = _computed, (THROUGH_REGISTERS, FETCHED)
    elif all(x.type.dtype in dtypes.FLOATING for x in operands):
        factor_of, rates = _window, (IN_PLACE, STAGED)
    else:
        return
    factors = [v for x in operands if (v := factor_of(x, definitions)) is not None]
    if factors and _pays(equation, [v.type for v in factors], target, rates):
        yield from factors


def _window(x: Var, definitions: Definitions) -> Var | None:
    """The view through which a factor is read at places that are read from memory, if any."""
    base, _ = trace(x, generic(x.type.shape), definitions)
    equation = definitions.get(base)
    if equation is None or not isinstance(equation.primitive.lower, View):
        return None
    pieces = resolve(equation, generic(equation.results[0].type.shape)).pieces
    return equation.results[0] if any(p.elements for p in pieces) else None


def _computed(x: Var, definitions: Definitions) -> Var | None:
    """The part of a factor that is computed where it is read, or lies in memory without strides."""
    indices = generic(x.type.shape)
    base, at = trace(x, indices, definitions)
    if not isinstance(base, Var) or not _has_strides(flat_index(at, base.type.shape), indices):
        return x
    return base if base in definitions and is_mapped(definitions[base]) else None


def _has_strides(place: Size, indices: Sequence[Dim]) -> bool:
    """Whether a place in memory is a sum of these indices, each times a constant."""
    return all(coefficient(place, s.name) is not None for index in indices for s in symbols(index))


def _pays(equation: Equation, factors: list[ArrayType], target: Target, rates: tuple[float, float]) -> bool:
    """Whether the second rate gains more than the factors' way through memory costs."""
    contracting, batch = equation.params["dimension_numbers"]
    sides = zip(equation.operands, contracting, batch, strict=True)
    free = [cost.count(tuple(x.type.shape[a] for a in free_axes(x.type.ndim, c, b))) for x, c, b in sides]
    sums = cost.count(tuple(equation.operands[0].type.shape[a] for a in contracting[0]))
    if min(*free, sums) < FEWEST:
        return False
    products = cost.count(equation.results[0].type.shape) * sums
    traffic = sum(2 * cost.count(t.shape) * t.dtype.itemsize for t in factors)
    gain = products / target.cores * (1 / rates[0] - 1 / rates[1])
    return gain > len(factors) * LAUNCH + traffic / (MEMORY * target.cores)
