"""Random functions of vectors whose sizes are affine in n and m, for laws about symbolic sizes.

A function takes x [a*n + b] and y [m]. Each step makes a new vector from the existing ones: it
joins, pads, cuts, reverses, sums, contracts, gathers, selects, splits or merges them. So sizes such
as n + m, 2*n + 1, n*m and (n + 1)//2 arise. The last two vectors are the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import rune.numpy as rnp
from tests.support.arrays import array

Step = Callable[[Any, Any], Any]

STEPS: dict[str, Step] = {
    "sin": lambda x, y: rnp.sin(x),
    "concatenate": lambda x, y: rnp.concatenate([x, y * 0.5]),
    "pad": lambda x, y: rnp.pad(x, (1, 2)),
    "pad by a size": lambda x, y: rnp.pad(x, (y.shape[0], 0)),
    "every second": lambda x, y: x[::2],
    "rest": lambda x, y: rnp.concatenate([y, x])[y.shape[0] :],
    "reverse": lambda x, y: x[::-1],
    "cumsum": lambda x, y: rnp.cumsum(x * 0.3),
    "scaled": lambda x, y: x * rnp.sum(y) / y.shape[0],
    "outer": lambda x, y: rnp.sum(rnp.tanh(x[:, None] * y), 0),
    "merged": lambda x, y: (x[:, None] + rnp.concatenate([y, y])[:2]).reshape(-1),
    "split": lambda x, y: rnp.sum(rnp.concatenate([x, x * x]).reshape(2, -1), 0),
    "product": lambda x, y: (x[:, None] * y) @ y * 0.2,
    "gather": lambda x, y: x[rnp.arange(y.shape[0]) % 2],
    "select": lambda x, y: rnp.where(x > 0.3, x, 0.1 * x),
    "repeat": lambda x, y: rnp.repeat(x, 2),
}


@dataclass(frozen=True)
class AffineFunction:
    """`factor` and `offset` of the size of x; each step with the vectors it takes."""

    factor: int
    offset: int
    steps: tuple[tuple[str, int, int], ...]

    def __call__(self, x: Any, y: Any) -> tuple[Any, Any]:
        """The last two vectors."""
        values = [x, y]
        for name, i, j in self.steps:
            values.append(STEPS[name](values[i % len(values)], values[j % len(values)]))
        return values[-1], values[-2]

    @property
    def in_dims(self) -> tuple[str, str]:
        """The patterns of x and y."""
        return f"{self.factor}*n + {self.offset}", "m"

    def arguments(self, n: int, m: int) -> tuple[Any, Any]:
        """Arrays for these sizes; the same for the same sizes."""
        rng = np.random.default_rng(100 * n + m)
        shapes = self.factor * n + self.offset, m
        x, y = (array(rng.normal(size=s), np.float32) for s in shapes)
        return x, y


def affine_functions(most: int = 4) -> st.SearchStrategy[AffineFunction]:
    """Functions of one to `most` steps."""
    step = st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 9), st.integers(0, 9))
    steps = st.lists(step, min_size=1, max_size=most).map(tuple)
    return st.builds(AffineFunction, st.integers(1, 3), st.integers(0, 2), steps)
