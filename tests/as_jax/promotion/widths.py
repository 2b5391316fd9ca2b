"""The dtypes of results that depend on the default width, with 64 bits and without.

python -m tests.as_jax.promotion.widths      with jax 0.10.2 installed: writes its answers
"""

from __future__ import annotations

import json
from pathlib import Path

import jax
import jax.numpy as jnp
from jax import lax

HERE = Path(__file__).parent
CALLS = (HERE / "widths.txt").read_text().splitlines()
ANSWERS = HERE / "widths_0_10_2.json"


def dtypes_of(call: str, x64: bool) -> list[str]:
    """The dtypes of the results of a call over arrays of the usual dtypes."""
    with jax.enable_x64(x64):
        names = {
            "jax": jax,
            "jnp": jnp,
            "lax": lax,
            "k": jax.random.key(0),
            "x": jnp.array([1.0, 0, 2]),
            "i": jnp.array([0, 1, 1]),
            "i8": jnp.array([0, 1, 1], jnp.int8),
            "i32": jnp.array([0, 1, 1], jnp.int32),
            "b": jnp.array([True, False, True]),
            "f32": jnp.ones(3, jnp.float32),
        }
        return [leaf.dtype.name for leaf in jax.tree.leaves(eval(call, names))]


if __name__ == "__main__":
    ANSWERS.write_text(json.dumps({c: [dtypes_of(c, True), dtypes_of(c, False)] for c in CALLS}, indent=0) + "\n")
