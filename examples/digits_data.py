"""The UCI handwritten digits: 1,797 images of 8×8 pixels, and the fifth that is held out.

The file lies beside this one, see data/README.md for its origin and licence. Nothing is fetched.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

FILE = Path(__file__).parent / "data" / "digits.csv.gz"
SPLIT_SEED = 1797  # the permutation that decides which fifth is held out; never changed


@dataclass(frozen=True, slots=True)
class Digits:
    """Images and what they show.

    Shapes: images [N, 64] float32 in 0..1, row by row; labels [N] int32 in 0..9.
    """

    images: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, chosen: np.ndarray) -> Digits:
        """The chosen images, by number or by truth."""
        return Digits(self.images[chosen], self.labels[chosen])


def load() -> tuple[Digits, Digits]:
    """The training set and the held-out fifth, by one fixed permutation."""
    with gzip.open(FILE, "rt") as file:
        table = np.loadtxt(file, delimiter=",", dtype=np.int32)
    digits = Digits((table[:, :64] / 16).astype(np.float32), table[:, 64])
    order = np.random.default_rng(SPLIT_SEED).permutation(len(digits))
    held_out = (len(digits) + 4) // 5
    return digits.take(order[held_out:]), digits.take(order[:held_out])


def minibatches(digits: Digits, size: int, seed: int) -> Iterator[Digits]:
    """Every image once, in an order that `seed` decides; the last batch may be smaller."""
    order = np.random.default_rng(seed).permutation(len(digits))
    for start in range(0, len(digits), size):
        yield digits.take(order[start : start + size])
