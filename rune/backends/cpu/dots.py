"""Calls of matrix products in a plan of the CPU: of dense matrices, and of strided views.

Small products of a draft are functions of its module (gemm/small.py); others are in the library.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from rune import dims
from rune.backends.cpu import conventions
from rune.backends.cpu.gemm.product import DIGITS, ROLES, WORDS, Digits, Product, is_narrow
from rune.backends.cpu.gemm.shape import SCALARS, shape_for
from rune.backends.cpu.gemm.small import Small, small_of, walks_of
from rune.backends.cpu.host import Host
from rune.backends.cpu.libraries import DOT, NARROW_DOT, STRIDED_DOT, of_system
from rune.backends.cpu.module import Module
from rune.backends.cpu.watch import Watch
from rune.dims import Size
from rune.lowering.codegen.llvm.ir.text import Value, Writer
from rune.lowering.kernelize.walks import SIZES, digits_of
from rune.lowering.plan import Call, Plan, Slot, all_steps


class Run(Protocol):
    """What writing a step needs: the function being written, and the places of its values."""

    module: Module
    writer: Writer

    def size(self, size: Size) -> Value:
        """A size that may be symbolic."""
        ...

    def pointer(self, slot: Slot) -> Value:
        """The address of a slot."""
        ...

    def watch(self, operations: Size) -> Watch:
        """The watch for a routine of this many operations."""
        ...


def compile_dots(plan: Plan, host: Host) -> None:
    """Compile all code of the library for the products of a plan, in one module for each kind."""
    for (routine, dtype), products in products_of(plan, host).items():
        host.libraries.product(routine, dtype, products)


def products_of(plan: Plan, host: Host) -> dict[tuple[str, np.dtype], list[Product]]:
    """The products of a plan that the library computes, by routine and dtype."""
    products: dict[tuple[str, np.dtype], list[Product]] = defaultdict(list)
    for step in all_steps(plan):
        if isinstance(step, Call) and step.routine in (DOT, STRIDED_DOT) and _small(step, host) is None:
            products[_routine(step, host), step.outputs[0].type.dtype].append(_product(step))
    return products


def _routine(step: Call, host: Host) -> str:
    """The routine of the library that computes a product of a plan."""
    dtype = step.outputs[0].type.dtype
    is_of_blas = step.routine == DOT and of_system(dtype) != 0
    sizes = {name: n for name, n in step.parameters if isinstance(n, int)}
    if is_of_blas or dtype not in SCALARS or len(sizes) < len(step.parameters):
        return step.routine
    lanes = shape_for(host.machine, SCALARS[dtype]).lanes
    few = is_narrow(sizes["m"], sizes["n"], sizes["k"], walks_of(step, sizes)["a_inner"], lanes)
    return NARROW_DOT if few else step.routine


def _small(step: Call, host: Host) -> Small | None:
    """The product, if the module of the plan has a function for it."""
    # A draft alone: the pieces of the library take longer to compile than such a product runs.
    is_of_library = host.effort != conventions.HURRY or of_system(step.outputs[0].type.dtype)
    return None if is_of_library else small_of(step, host.machine)


def _product(step: Call) -> Product:
    """The sizes of a product, None where they are symbolic, and its transpositions."""
    parameters = dict(step.parameters)
    m, n, k = (x if isinstance(x, int) else None for x in map(parameters.get, ("m", "n", "k")))
    trans_a, trans_b = (bool(parameters.get(x, False)) for x in ("trans_a", "trans_b"))
    walks = _walks(step)
    # A symbolic size leaves open which way of packing is taken, so all of them are compiled.
    is_known = all(isinstance(number, int) for digits in walks.values() for digit in digits for number in digit)
    return Product(m, n, k, trans_a, trans_b, walks if is_known else {})


def _walks(step: Call) -> dict[str, Digits]:
    """The digits of each role, which may be symbolic in a product of views."""
    parameters = dict(step.parameters)
    sizes = {name: n for name, n in step.parameters if isinstance(n, int)}
    is_known = len(sizes) == len(parameters)
    return walks_of(step, sizes) if is_known else {role: digits_of(parameters, role) for role in ROLES}


def write_product(run: Run, step: Call) -> None:
    """A batch of matrix products."""
    small = _small(step, run.module.host)
    if small is not None:
        _call_small(run, step, small)
    else:
        _call(run, step, [*_operands(run, step), run.pointer(step.outputs[0])])


def write_entry(run: Run, step: Call, entry: Value) -> None:
    """One product of a batch whose sizes are numbers."""
    sizes = {name: n for name, n in step.parameters if isinstance(n, int)}
    sides = zip("ab", ((sizes["m"], sizes["k"]), (sizes["k"], sizes["n"])), strict=True)
    places = [
        _place(entry, digits_of(sizes, f"{side}_batch") or ((sizes["batch"], math.prod(x)),)) for side, x in sides
    ]
    starts = [*_operands(run, step), run.pointer(step.outputs[0])]
    bytes = step.outputs[0].type.dtype.itemsize
    addresses = [
        run.writer.item(start, "i8", place * bytes)
        for start, place in zip(starts, (*places, entry * (sizes["m"] * sizes["n"])), strict=True)
    ]
    # A product of its own, with a batch of one: the addresses are those of the entry already.
    alone = {name: size for name, size in sizes.items() if "_batch" not in name} | {"batch": 1}
    if step.routine == STRIDED_DOT:
        alone |= {f"{side}_batch0{x}": number for side in "ab" for x, number in (("", 1), ("_step", 0))}
    _call(run, replace(step, parameters=tuple(alone.items())), addresses)


def _place(entry: Value, digits: Sequence[tuple[int, int]]) -> Value:
    """The sum of the digits of an entry, innermost first, times their steps."""
    place, index = entry.like(0), entry
    for number, (size, step) in enumerate(digits, 1):
        is_last = number == len(digits)
        place = place + (index if is_last else index.binary("urem", size)) * step
        index = index if is_last else index.binary("udiv", size)
    return place


def _call_small(run: Run, step: Call, small: Small) -> None:
    """Call the function of a small product, which equal products share."""
    known = run.module.products
    if small not in known:
        known[small] = f"product.{len(known)}"
        run.module.add(*small.function(known[small]))
    operands = ", ".join(f"ptr {v.text}" for v in (*_operands(run, step), run.pointer(step.outputs[0])))
    run.writer.do(f"call void @{known[small]}({operands})")


def _flags(run: Run, step: Call) -> list[Value]:
    """Whether the sides of a dense product are transposed."""
    parameters = dict(step.parameters)
    return [Value(run.writer, "i1", "true" if parameters[x] else "false") for x in ("trans_a", "trans_b")]


def _walk_words(run: Run, step: Call) -> Value:
    """The walks of strided views as words on the stack."""
    walks, writer = _walks(step), run.writer
    words = writer.allocate("i64", WORDS * len(ROLES))

    def put(place: int, size: object) -> None:
        writer.store(run.size(_as_size(size)), writer.item(words, "i64", place))

    for number, role in enumerate(ROLES):
        digits = walks[role]
        # kernelize/walks.py makes no walk of an operand with more digits (MAX_DIGITS).
        assert 0 < len(digits) <= DIGITS
        put(number * WORDS, len(digits))
        for k, (size, move) in enumerate(digits):
            put(number * WORDS + 1 + 2 * k, size)
            put(number * WORDS + 2 + 2 * k, move)
    return words


def _call(run: Run, step: Call, pointers: Sequence[Value]) -> None:
    """Call the routine on A, B and C."""
    parameters, host = dict(step.parameters), run.module.host
    routine, dtype = _routine(step, host), step.outputs[0].type.dtype
    extras = _flags(run, step) if routine == DOT else [_walk_words(run, step)]
    sizes = [_as_size(parameters[x]) for x in SIZES]
    watch = run.watch(dims.product(sizes))
    extents = map(run.size, sizes)
    operands_and_sizes = [*pointers, *extents, *extras, watch.pointer]
    function = run.writer.at(host.libraries.product(routine, dtype, [_product(step)]))
    run.writer.do(f"call void {function.text}({', '.join(f'{v.type} {v.text}' for v in operands_and_sizes)})")
    watch.close()


def _operands(run: Run, step: Call) -> list[Value]:
    """The addresses at which the walks of both operands begin."""
    parameters = dict(step.parameters)
    offsets = [parameters.get(f"{side}_offset", 0) for side in "ab"]
    return [_operand_address(run, s, o) for s, o in zip(step.inputs, offsets, strict=True)]


def _operand_address(run: Run, slot: Slot, offset: object) -> Value:
    """The address of an operand, `offset` elements into its slot."""
    start = run.pointer(slot)
    if offset == 0:
        return start
    return run.writer.item(start, "i8", run.size(_as_size(offset) * slot.type.dtype.itemsize))


def _as_size(x: object) -> Size:
    assert isinstance(x, int | dims.Dim)
    return x
