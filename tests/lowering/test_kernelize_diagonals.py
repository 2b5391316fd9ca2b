"""A value and its diagonal, both stored: the two have different points.

Examples as users write them, on every executor; tests/laws/test_shared_values.py has the law.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
from rune import numpy as rnp
from rune.scipy.linalg import cho_solve
from tests.support.close import near
from tests.support.sampling import in_turn

COMPUTING = [d.name for d in rune.devices() if d.target.backend != "null"]
on_every_executor = pytest.mark.parametrize("device", COMPUTING)
X = np.arange(9, dtype=np.float32).reshape(3, 3)
AT = np.arange(3)

# Each returns a value and a function of its diagonal.
BESIDE = {
    "diag": lambda m, x: (x * 2, m.diag(x * 2)),
    "einsum": lambda m, x: (x * 2, m.einsum("ii->i", x * 2)),
    "trace": lambda m, x: (x * 2, m.trace(x * 2)),
    "positions": lambda m, x: (x * 2, (x * 2)[AT, AT]),
    "diagonal of a transpose": lambda m, x: (x.T + x * 2, m.diagonal(x.T + x * 2)),
    "both and the rows": lambda m, x: (y := x * 2, m.diag(y), y.sum(1), m.diag(y) + y.sum(1)),
    "of a sum": lambda m, x: (s := (x[:, :, None] * x[:, None, :]).sum(0), m.diag(s)),
    "spread again": lambda m, x: (s := x.cumsum(0) * 2, m.diag(m.diag(s)) + s),
}


@in_turn()
@on_every_executor
@pytest.mark.parametrize("name", BESIDE)
def test_a_value_and_its_diagonal_may_both_be_stored(name: str, device: str):
    expected = [np.asarray(a) for a in BESIDE[name](np, X)]

    outputs = rune.jit(lambda x: BESIDE[name](rnp, x), device=device)(X)

    near(expected, [np.asarray(a) for a in outputs], relative=1e-6, why="whole numbers in f32")


POINTS = np.random.default_rng(0).normal(size=(9, 2))
VALUES = np.sin(POINTS.sum(1))


def _likelihood(module: Any, cholesky: Any, solve: Any, t: Any) -> Any:
    """The negative log-likelihood of a Gaussian process, its constant left out."""
    length, scale, noise = (module.exp(t[k]) for k in range(3))
    squares = ((POINTS[:, None] - POINTS[None]) ** 2).sum(-1)
    factor = cholesky(scale * module.exp(-squares / (2 * length * length)) + noise * module.eye(9))
    return 0.5 * VALUES @ solve(factor, VALUES) + module.log(module.diag(factor)).sum()


def _by_rune(t: Any) -> Any:
    return _likelihood(rnp, rnp.linalg.cholesky, lambda f, y: cho_solve((f, True), y), t)


def _by_differences(t: np.ndarray, step: float = 1e-4) -> np.ndarray:
    def value(t: np.ndarray) -> float:
        solve = lambda f, y: np.linalg.solve(f @ f.T, y)  # noqa: E731
        return float(_likelihood(np, np.linalg.cholesky, solve, t))

    def second(a: np.ndarray, b: np.ndarray) -> float:
        return value(t + a + b) - value(t + a - b) - value(t - a + b) + value(t - a - b)

    steps = step * np.eye(3)
    return np.array([[second(a, b) for b in steps] for a in steps]) / (4 * step * step)


def test_the_hessian_of_a_compiled_gaussian_process_is_that_of_its_differences():
    at = np.array([0.1, -0.2, 0.3])

    with rune.enable_x64():
        hessian = rune.hessian(rune.jit(_by_rune))(at)

    near([_by_differences(at)], [np.asarray(hessian)], relative=1e-5, why="second differences")
