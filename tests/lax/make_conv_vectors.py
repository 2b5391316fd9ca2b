"""Store what jax 0.10.2 answers to the calls of conv_calls.py. Run by hand, where JAX is installed:

python tests/lax/make_conv_vectors.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent.parent))

from tests.lax.conv_calls import CALLS, draw  # noqa: E402

VERSION = "0.10.2"
TARGET = FOLDER / "jax_conv_0_10_2.npz"


def main() -> None:
    """Run every call on the CPU."""
    import jax  # pyright: ignore[reportMissingImports]

    assert jax.__version__ == VERSION, f"jax {VERSION} required, this is {jax.__version__}"
    vectors: dict[str, np.ndarray] = {}
    for name, (call, shapes) in CALLS.items():
        outputs = jax.tree.leaves(call(jax.lax, jax.numpy, *draw(name, shapes)))
        vectors |= {f"{name} / {k}": np.asarray(x) for k, x in enumerate(outputs)}
    np.savez_compressed(TARGET, allow_pickle=False, **vectors)


if __name__ == "__main__":
    main()
