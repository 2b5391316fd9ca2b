"""Store the dtypes and values of products of two dtypes in jax 0.10.2.

    python -m tests.as_jax.promotion.make_products > products_jax_0_10_2.txt

One line for each pair, `bfloat16 float32: float32 18.0`: (3, 3) times (3, 3) by `lax.dot_general`,
which is also what `lax.ragged_dot` of one group gives.
"""

from __future__ import annotations

from itertools import product

import jax.numpy as jnp
from jax import lax

DTYPES = """
bool int4 int8 int16 int32 uint8 uint16 uint32 float8_e4m3fn float8_e5m2 bfloat16 float16 float32 complex64
""".split()


def line(a: str, b: str) -> str:
    """The product of two threes by two threes by both functions, which must agree."""
    x, y = jnp.full((1, 2), 3, a), jnp.full((1, 2, 1), 3, b)
    plain = lax.dot_general(x[0], y[0, :, 0], (((0,), (0,)), ((), ())))
    ragged = lax.ragged_dot(x, y, jnp.array([1]))[0, 0]
    assert (plain.dtype, complex(plain)) == (ragged.dtype, complex(ragged))
    return f"{a} {b}: {plain.dtype} {complex(plain).real}"


def lines() -> list[str]:
    """All pairs."""
    return [line(a, b) for a, b in product(DTYPES, DTYPES)]


if __name__ == "__main__":
    print(*lines(), sep="\n")
