"""One complex matrix, a short transform, least squares, and quantiles, the same in rune and JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special
from cases import COMPLEX_FACTORS, Sizes, normal

Call = Callable[[], Any]


def numerics(core: Any, xp: Any, wait: Any) -> dict[str, Callable[[Sizes], Call]]:
    """The calls by name."""

    def call(function: Any, *arrays: np.ndarray) -> Call:
        compiled, operands = core.jit(function), tuple(map(xp.asarray, arrays))
        return lambda: wait(compiled(*operands))

    def qr(a: Any) -> Any:
        q, r = xp.linalg.qr(a)
        return q + r

    def factoring(name: str) -> Callable[[Sizes], Call]:
        functions = {"lu": lambda a: core.scipy.linalg.lu_factor(a)[0], "qr": qr}
        return lambda s: call(functions.get(name) or getattr(xp.linalg, name), definite(s.matrix // 4))

    def least_squares(s: Sizes) -> Call:
        return call(lambda a, b: xp.linalg.lstsq(a, b)[0], normal((100, 10), 1), normal(100, 2))

    return {
        **{f"complex_{name}": factoring(name) for name in COMPLEX_FACTORS},
        "fft_short": lambda s: call(xp.fft.fft, normal(s.elements >> 6, 1) + 1j * normal(s.elements >> 6, 2)),
        "lstsq": least_squares,
        "quantiles": lambda s: call(core.scipy.special.gammaincinv, *gamma_shares(s)),
        "quantiles_eager": lambda s: quantiles_eager(core, xp.asarray, wait, s),
    }


def numerics_of_scipy() -> dict[str, Callable[[Sizes], Call]]:
    """The calls that SciPy has."""

    def quantiles(s: Sizes) -> Call:
        a, p = gamma_shares(s)
        return lambda: scipy.special.gammaincinv(a, p)

    def few(s: Sizes) -> Call:
        a, p = (x[:1000] for x in gamma_shares(s))
        return lambda: scipy.special.gammaincinv(a, p)

    return {"quantiles": quantiles, "quantiles_eager": few}


def quantiles_eager(core: Any, array: Any, wait: Any, s: Sizes) -> Call:
    """Quantiles of a thousand elements, not compiled."""
    a, p = (array(x[:1000]) for x in gamma_shares(s))
    return lambda: wait(core.scipy.special.gammaincinv(a, p))


def gamma_shares(s: Sizes) -> tuple[np.ndarray, np.ndarray]:
    """Parameters of gamma distributions, and shares of them."""
    rng, count = np.random.default_rng(1), s.draws // 100
    return rng.uniform(0.1, 50, count).astype(np.float32), rng.uniform(0, 1, count).astype(np.float32)


def definite(n: int) -> np.ndarray:
    """A Hermitian matrix of n rows, well conditioned, in complex64."""
    a = normal((n, n), 1) + 1j * normal((n, n), 2)
    return (a @ a.conj().T / (20 * n) + np.eye(n)).astype(np.complex64)
