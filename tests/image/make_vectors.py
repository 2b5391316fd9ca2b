"""Write jax_image_0_10_2.npz: what jax.image of jax 0.10.2 answers to the calls of calls.py.

PYTHONPATH=. python tests/image/make_vectors.py        with jax 0.10.2 installed
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax  # pyright: ignore[reportMissingImports]
import numpy as np

from tests.image.calls import CALLS, answers

PATH = Path(__file__).with_name("jax_image_0_10_2.npz")

if __name__ == "__main__":
    assert jax.__version__ == "0.10.2"
    vectors: Any = {name: np.asarray(x) for name, x in answers(jax, CALLS).items()}
    np.savez_compressed(PATH, **vectors)
