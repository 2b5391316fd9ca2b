"""Whole programs, the same in rune and in JAX: what a user writes, with many small steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from cases import Sizes, normal

Call = Callable[[], Any]
END = 10.0  # of the solvers' time

# Dormand and Prince's pair of orders 5 and 4: slopes, weights, and those of the error.
SLOPES = (
    (),
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
WEIGHTS = (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0)
ERRORS = (71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)


def whole_programs(core: Any, xp: Any, wait: Any) -> dict[str, Callable[[Sizes], Call]]:
    """The calls by name."""

    def call(function: Any, *arrays: np.ndarray) -> Call:
        compiled, operands = core.jit(function), tuple(map(xp.asarray, arrays))
        return lambda: wait(compiled(*operands))

    def recurrence(s: Sizes) -> tuple[np.ndarray, ...]:
        return normal((s.units, s.units), 1) * np.float32(0.1), normal((s.steps, s.units), 2), normal(s.units, 3)

    def rolled(w: Any, xs: Any, h: Any) -> Any:
        last, _ = core.lax.scan(lambda h, x: (xp.tanh(h @ w + x), None), h, xs)
        return xp.sum(last**2)

    def process(s: Sizes) -> Call:
        points = s.batch * 3 // 2
        both = core.value_and_grad(lambda p, x, y: likelihood(core, xp, p, x, y))
        parameters = np.array([0, 0, -2], np.float32)
        compiled, operands = core.jit(both), map(xp.asarray, (parameters, normal((points, 3), 1), normal(points, 2)))
        arrays = tuple(operands)
        return lambda: wait(compiled(*arrays)[1])

    return {
        "rolled": lambda s: call(rolled, *recurrence(s)),
        "rolled_grad": lambda s: call(core.grad(rolled), *recurrence(s)),
        "flow": lambda s: call(lambda w: spectral_flow(core, xp, s.batch, w), normal((s.batch, s.batch), 1)),
        "solver": lambda s: call(
            core.vmap(lambda mu: oscillator(core, xp, mu)), np.linspace(0.5, 3, s.units).astype(np.float32)
        ),
        "spheres": lambda s: call(lambda pixels: traced_spheres(core, xp, pixels), pixels_of(s.matrix // 4)),
        "process": process,
    }


def spectral_flow(core: Any, xp: Any, n: int, vorticity: Any) -> Any:
    """Ten steps of two-dimensional incompressible flow on a torus, by transforms of n x n."""
    k = np.fft.fftfreq(n, 1 / n).astype(np.float32)
    across, along = np.meshgrid(k, k, indexing="ij")
    square = across**2 + along**2
    inverse = 1 / np.where(square == 0, np.float32(1), square)

    def step(spectrum: Any, _: Any) -> Any:
        stream = spectrum * inverse
        pairs = [(along * stream, across * spectrum), (-across * stream, along * spectrum)]
        parts = [[xp.real(xp.fft.ifft2(1j * x)) for x in pair] for pair in pairs]
        advection = xp.fft.fft2(sum(velocity * slope for velocity, slope in parts))
        return xp.astype(spectrum - 0.001 * (advection + 1e-3 * square * spectrum), "complex64"), None

    last, _ = core.lax.scan(step, xp.fft.fft2(vorticity), None, length=10)
    return xp.real(xp.fft.ifft2(last))


def oscillator(core: Any, xp: Any, mu: Any) -> Any:
    """Van der Pol's oscillator up to END, with steps as long as the error allows."""

    def slope(y: Any) -> Any:
        return xp.stack([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]])

    def step(state: Any) -> Any:
        t, y, h = state
        h = xp.minimum(h, END - t)
        slopes: list[Any] = []
        for row in SLOPES:
            slopes.append(slope(y + h * sum(c * k for c, k in zip(row, slopes, strict=True))))
        after, error = (h * sum(c * k for c, k in zip(row, slopes, strict=True)) for row in (WEIGHTS, ERRORS))
        size = xp.sqrt(xp.mean((error / (1e-5 + 1e-4 * xp.maximum(abs(y), abs(y + after)))) ** 2))
        good = size <= 1
        longer = h * xp.clip(0.9 * (size + 1e-10) ** -0.2, 0.2, 5.0)
        return xp.where(good, t + h, t), xp.where(good, y + after, y), longer

    start = xp.asarray(0.0, "float32"), xp.asarray([2.0, 0.0], "float32"), xp.asarray(0.1, "float32")
    return core.lax.while_loop(lambda state: state[0] < END, step, start)[1]


def pixels_of(n: int) -> np.ndarray:
    """The places of n x n pixels on a screen from -1 to 1."""
    side = np.linspace(-1, 1, n, dtype=np.float32)
    return np.stack(np.meshgrid(side, side, indexing="ij"), -1).reshape(-1, 2)


def traced_spheres(core: Any, xp: Any, pixels: Any) -> Any:
    """How far each ray goes before it meets one of three spheres or a plane, by sphere tracing.

    Source: Hart 1996, "Sphere tracing", The Visual Computer 12(10).
    """
    centres = np.array([[0, 0, 4], [-1.5, 0.5, 5], [1.2, -0.4, 3]], np.float32)
    radii = np.array([1, 0.8, 0.4], np.float32)
    near, far = 1e-3, 20.0

    def distance(point: Any) -> Any:
        to_centres = xp.sqrt(xp.sum((point - centres) ** 2, -1)) - radii
        return xp.minimum(xp.min(to_centres), point[1] + 1)  # the plane is y = -1

    def length(pixel: Any) -> Any:
        ray = xp.concatenate([pixel, xp.ones(1, "float32")])
        ray = ray / xp.sqrt(xp.sum(ray**2))

        def is_going(state: Any) -> Any:
            t, gap = state
            return (gap > near) & (t < far)

        def step(state: Any) -> Any:
            t = state[0] + state[1]
            return t, distance(t * ray)

        start = xp.asarray(0.0, "float32")
        return core.lax.while_loop(is_going, step, (start, distance(start * ray)))[0]

    return core.vmap(length)(pixels)


def likelihood(core: Any, xp: Any, parameters: Any, x: Any, y: Any) -> Any:
    """The negative log marginal likelihood of a Gaussian process."""
    distance = xp.sum((x[:, None] - x[None]) ** 2 * xp.exp(-parameters[0]), -1)
    covariance = xp.exp(parameters[1]) * xp.exp(-0.5 * distance) + xp.exp(parameters[2]) * xp.eye(len(y))
    factor = xp.linalg.cholesky(covariance)
    weights = core.scipy.linalg.cho_solve((factor, True), y)
    return 0.5 * y @ weights + xp.sum(xp.log(xp.diag(factor)))
