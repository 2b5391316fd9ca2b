"""Summed products: contract a batch axis along which the products are only added up.

Before   %2: f32[1000,64,64] = dot_general %0, %1   (batch 1000);   %3 = reduce_sum %2 {axes=(0,)}
After    %3: f32[64,64] = dot_general %0, %1        (contracts axes of 1000, too)

The gradient by a matrix that multiplies a batch is such a sum, and so is that of a function under
vmap. The products of the batch, often many times as large as what they are made of, are not stored.

Not done: products of few elements, whose sums have too little work side by side; products that
something else reads. It leaves products that nothing needs.
Invariant: every value is a sum of the same products.  Cost: linear in the number of equations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rune import dims
from rune.core.program import Equation, Program, Var, replace_equations
from rune.lowering.passes import Pass
from rune.lowering.simplify.fold_constants import type_of_result
from rune.ops.contraction import dot_general
from rune.ops.family import reduce_sum
from rune.records import replace

LEAST = 1 << 12  # elements of one product


def summed_products(program: Program) -> Program:
    """The program without sums over a batch of products."""
    if not any(equation.primitive is dot_general for equation in program.equations):
        return program
    readers = Counter(atom for e in program.equations for atom in e.operands)
    readers.update(program.outputs)
    products = {e.results[0]: e for e in program.equations if e.primitive is dot_general and readers[e.results[0]] == 1}
    return replace_equations(program, lambda equation: _contracted(equation, products))


def _contracted(equation: Equation, products: Mapping[Var, Equation]) -> list[Equation]:
    """The equations in place of a sum over a batch; none for other equations."""
    operand = equation.operands[0] if equation.primitive is reduce_sum else None
    product = products.get(operand) if isinstance(operand, Var) else None
    if product is None:
        return []
    contracting, batch = product.params["dimension_numbers"]
    axes, shape = equation.params["axes"], product.results[0].type.shape
    count = len(batch[0])
    summed = [axis for axis in axes if axis < count]
    if not summed or dims.less(dims.product(shape[count:]), LEAST) is True:
        return []
    numbers = (
        tuple((*(side[i] for i in summed), *inner) for side, inner in zip(batch, contracting, strict=True)),
        tuple(tuple(axis for i, axis in enumerate(side) if i not in summed) for side in batch),
    )
    single = _typed(replace(product, params={"dimension_numbers": numbers}))
    remaining = [axis for axis in range(len(shape)) if axis not in summed]
    other_axes = tuple(remaining.index(axis) for axis in axes if axis >= count)
    if not other_axes:
        return [replace(single, results=equation.results)]
    return [single, replace(equation, operands=single.results, params={"axes": other_axes})]


def _typed(equation: Equation) -> Equation:
    return replace(equation, results=(Var(type_of_result(equation)),))


PASS = Pass("summed-products", "contract a batch axis over which products are summed", summed_products)
