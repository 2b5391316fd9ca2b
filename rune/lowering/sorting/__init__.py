"""Sorting on a device, by the digits of keys: few launches, whatever the length.

radix.py: words in order, and the kernels of processors. digits.py and groups.py: those of GPUs.
sorts.py: `sort` and `top_k` by them, loaded for the first program that has one.
"""

from __future__ import annotations

from collections.abc import Mapping

from rune.core.lower import Rule
from rune.core.primitive import Primitive
from rune.core.values import Value
from rune.lowering import late_modules
from rune.lowering.codegen.target import Target
from rune.ops.sorting import sort, top_k


def expansions(target: Target) -> Mapping[Primitive, Rule]:
    """What a device does in place of the primitives' own expansions."""

    def sorted_rows(*operands: Value, num_keys: int) -> list[Value]:
        return late_modules.sorts().sorted_rows(target, operands, num_keys)

    def largest(x: Value, *, k: int) -> list[Value]:
        return late_modules.sorts().largest(target, x, k)

    return {sort: sorted_rows, top_k: largest}
