"""Store jax 0.10.2's answers to the calls of calls.py. Run by hand, where JAX is installed:

python tests/as_jax/surface/store_answers.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent.parent.parent))

from tests.as_jax.surface.calls import CALLS  # noqa: E402

VERSION = "0.10.2"


def main() -> None:
    """Run every call on the CPU; leaves are stored in order."""
    import jax  # pyright: ignore[reportMissingImports]

    assert jax.__version__ == VERSION, f"jax {VERSION} required, this is {jax.__version__}"
    vectors: dict[str, np.ndarray] = {}
    for name, call in CALLS.items():
        vectors |= {f"{name} / {k}": np.asarray(x) for k, x in enumerate(jax.tree.leaves(call(jax)))}
    np.savez_compressed(FOLDER / "jax_answers_0_10_2.npz", allow_pickle=False, **vectors)


if __name__ == "__main__":
    main()
