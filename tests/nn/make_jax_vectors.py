"""Store what jax 0.10.2 answers to the calls of attention_calls.py, with the gradients of the sum
of results times fixed weights. Run by hand, where JAX is installed:

python tests/nn/make_jax_vectors.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent.parent))

from tests.nn.attention_calls import CALLS, SMOOTH, draw  # noqa: E402

VERSION = "0.10.2"
TARGET = FOLDER / "jax_nn_0_10_2.npz"


def main() -> None:
    """Run every call on the CPU."""
    import jax  # pyright: ignore[reportMissingImports]

    assert jax.__version__ == VERSION, f"jax {VERSION} required, this is {jax.__version__}"
    vectors: dict[str, np.ndarray] = {}
    for name, (call, shapes) in CALLS.items():
        arrays: Any = draw(name, shapes)
        outputs = jax.tree.leaves(call(jax.nn, *arrays))
        vectors |= {f"{name} / {k}": np.asarray(x) for k, x in enumerate(outputs)}
        if name not in SMOOTH:
            continue

        def weighted(*xs: Any, call: Any = call) -> Any:
            out = call(jax.nn, *xs)
            return (out * np.cos(np.arange(out.size, dtype="f")).reshape(out.shape)).sum()

        gradients = jax.grad(weighted, argnums=tuple(range(len(arrays))))(*arrays)
        vectors |= {f"{name} / d{k}": np.asarray(x) for k, x in enumerate(gradients)}
    np.savez_compressed(TARGET, allow_pickle=False, **vectors)


if __name__ == "__main__":
    main()
