"""Taylor coefficients by jax 0.10.2, order 10 in 64 bits, for test_taylor.py.

python tests/transforms/derivatives/make_taylor_vectors.py     writes taylor_vectors.json beside it
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import jax  # pyright: ignore[reportMissingImports]
import jax.numpy as jnp  # pyright: ignore[reportMissingImports]
from functions_of_a_curve import CURVES, FUNCTIONS, ORDER  # beside this script
from jax.experimental.jet import jet  # pyright: ignore[reportMissingImports]

jax.config.update("jax_enable_x64", True)


def vectors() -> dict[str, list[float]]:
    """The value and the derivatives along the curve, of each function that JAX has rules for."""
    rows = {}
    for name, (function, curve) in FUNCTIONS.items():
        terms = [[jnp.float64(d) for d in argument] for argument in CURVES[curve]]
        try:
            first, terms_of_result = jet(partial(function, jnp), [t[0] for t in terms], [t[1:] for t in terms])
        except (NotImplementedError, TypeError, KeyError) as error:
            print(name, type(error).__name__, str(error)[:60])
            continue
        rows[name] = [float(first), *map(float, terms_of_result)]
        assert len(rows[name]) == ORDER + 1
    return rows


if __name__ == "__main__":
    path = Path(__file__).with_name("taylor_vectors.json")
    path.write_text(json.dumps({"jax": jax.__version__, "rows": vectors()}, indent=0))
