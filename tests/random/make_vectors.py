"""Store what jax 0.10.2 answers to the calls of calls.py. Run by hand, where JAX is installed:

python tests/random/make_vectors.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent.parent))

from tests.random import calls  # noqa: E402

VERSION = "0.10.2"
TARGET = FOLDER / "jax_random_0_10_2.npz"
HALVES = FOLDER / "jax_random_halves_0_10_2.npz"


def main() -> None:
    """Run every call on the CPU, those of BITS_64 with 64-bit types."""
    import jax  # pyright: ignore[reportMissingImports]

    assert jax.__version__ == VERSION, f"jax {VERSION} required, this is {jax.__version__}"
    jax.config.update("jax_platforms", "cpu")
    vectors: dict[str, np.ndarray] = {}
    for group in (calls.BITS, calls.EXACT, calls.CHOSEN, calls.CLOSE):
        vectors |= {name: np.asarray(call(jax.random)) for name, call in group.items()}
    for name, call in calls.INITIALIZERS.items():
        vectors[name] = np.asarray(call(jax.random, jax.nn.initializers))
    with jax.enable_x64(True):
        vectors |= {name: np.asarray(call(jax.random)) for name, call in calls.BITS_64.items()}
    np.savez_compressed(TARGET, allow_pickle=False, **vectors)
    store_halves()


def store_halves() -> None:
    """Run the calls whose counters are the halves of one range."""
    import jax  # pyright: ignore[reportMissingImports]

    with jax.threefry_partitionable(False):
        vectors = {name: np.asarray(call(jax.random)) for name, call in calls.HALVES.items()}
        with jax.enable_x64(True):
            vectors |= {name: np.asarray(call(jax.random)) for name, call in calls.HALVES_64.items()}
    np.savez_compressed(HALVES, allow_pickle=False, **vectors)


if __name__ == "__main__":
    main()
