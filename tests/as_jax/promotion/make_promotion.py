"""Store how jax 0.10.2 promotes: every pair of dtypes, weak ones and Python's numbers among them.

    python -m tests.as_jax.promotion.make_promotion > promotion_jax_0_10_2.txt

One line for each pair, with 64 bits off and on: `off int8 uint32: int32`. `int`, `float` and
`complex` are Python's own numbers, `int*` and so on weak arrays, and `refused`: JAX raises.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement
from typing import Any

import jax
import jax.numpy as jnp

STRONG = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 bfloat16 float16 float32 float64 complex64 complex128"
NARROW = "int4 uint4 float8_e4m3fn float8_e5m2"
NUMBERS: dict[str, Any] = {"True": True, "int": 1, "float": 1.0, "complex": 1j}
WEAK: dict[str, Any] = {"int*": 1, "float*": 1.0, "complex*": 1j}
OPERANDS = [*STRONG.split(), *NARROW.split(), *WEAK, *NUMBERS]


def operand(name: str) -> Any:
    """The operand of that name: an array of rank 0, or a Python number."""
    if name in NUMBERS:
        return NUMBERS[name]
    return jnp.asarray(WEAK[name]) if name in WEAK else jnp.ones((), name)


def text(x: Any) -> str:
    """The dtype of an array, with `*` where it is weak."""
    return f"{x.dtype}{'*' if x.aval.weak_type else ''}"


def line(is_wide: bool, a: str, b: str) -> str:
    """The dtype of the sum of two operands."""
    try:
        result = text(jnp.add(operand(a), operand(b)))
    except ValueError:  # JAX's and rune's class for dtypes that do not meet, and its base
        result = "refused"
    return f"{'on' if is_wide else 'off'} {a} {b}: {result}"


def lines() -> Iterator[str]:
    """Every pair, with 64 bits off and on."""
    for is_wide in (False, True):
        with jax.enable_x64(is_wide):
            yield from (line(is_wide, a, b) for a, b in combinations_with_replacement(OPERANDS, 2))


if __name__ == "__main__":
    print(*lines(), sep="\n")
