"""Sorting on a device by the digits of keys, with few launches for any length.

radix.py sorts words, and has the kernels of processors; digits.py and groups.py have those of GPUs.
sorts.py builds `sort` and `top_k` on them, and is loaded for the first program that has one.
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
    """The device's rules that replace the primitives' own expansions."""

    def sorted_rows(*operands: Value, num_keys: int) -> list[Value]:
        return late_modules.sorts().sorted_rows(target, operands, num_keys)

    def largest(x: Value, *, k: int) -> list[Value]:
        return late_modules.sorts().largest(target, x, k)

    return {sort: sorted_rows, top_k: largest}
