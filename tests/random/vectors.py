"""The stored answers of jax 0.10.2 to the calls of calls.py (make_vectors.py stored them)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

import numpy as np

FILE = Path(__file__).parent / "jax_random_0_10_2.npz"
HALVES = Path(__file__).parent / "jax_random_halves_0_10_2.npz"


@functools.cache
def answers() -> Mapping[str, np.ndarray]:
    """By the name of the call."""
    with np.load(FILE) as archive:
        return dict(archive)


@functools.cache
def answers_of_halves() -> Mapping[str, np.ndarray]:
    """By the name of the call, under jax_threefry_partitionable=False."""
    with np.load(HALVES) as archive:
        return dict(archive)
