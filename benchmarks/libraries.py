"""How each library does each case. Each function returns a call without arguments.

rune and JAX run the same code, with other imports. Large cases wait for their result; the small
ones measure what one call costs the host, so they wait only when a burst of calls has ended.
The update in torch is eager and in place, as its users write it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import matmul
from typing import Any

import numpy as np
from cases import IN_A_ROW, MATMULS, SMALL_MATMULS, Sizes, complex_normal, mlp_data, normal
from networks import eager_composites, elementwise_functions, networks
from networks_torch import torch_networks
from numerics import numerics, numerics_of_scipy
from programs import whole_programs
from transforms import packed, transforms

Call = Callable[[], Any]
LEARNING_RATE = 0.01
RNN_BATCH = 32


@dataclass(frozen=True, slots=True)
class Library:
    """The calls by name, how to wait for a result, and the version."""

    version: str
    calls: dict[str, Callable[[Sizes], Call]] = field(repr=False)
    wait: Callable[[Any], Any]
    to_numpy: Callable[[Any], np.ndarray]


def waiting(function: Callable[..., Any], wait: Callable[[Any], Any], *args: Any) -> Call:
    """A call that ends when its result is there."""
    return lambda: wait(function(*args))


def multiplying(jit: Any, array: Any, wait: Any) -> dict[str, Callable[[Sizes], Call]]:
    """Square products: one, and several in a row, each of the last result."""

    def product(size: int, count: int, s: Sizes) -> Call:
        n = min(size, 2 * s.matrix)
        a, b = array(normal((n, n), 1)), array(normal((n, n), 2) * np.float32(n**-0.5))

        return waiting(jit(lambda a, b: reduce(matmul, [b] * count, a)), wait, a, b)

    one = {f"matmul_{n}": partial(product, n, 1) for n in MATMULS}
    return one | {f"matmuls_{n}": partial(product, n, IN_A_ROW) for n in SMALL_MATMULS}


# --- NumPy --------------------------------------------------------------------------------------


def numpy_softmax(x: np.ndarray) -> np.ndarray:
    """Softmax over the last axis."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def numpy_library() -> Library:
    """NumPy as its users write it."""

    def elementwise(s: Sizes) -> Call:
        a, b = normal(s.elements, 1), normal(s.elements, 2)
        return lambda: np.tanh(a) * b + np.exp(-a * a)

    def total(s: Sizes) -> Call:
        a = normal(s.elements, 1)
        return lambda: np.sum(a)

    def softmax(s: Sizes) -> Call:
        x = normal((s.rows, s.columns), 1)
        return lambda: numpy_softmax(x)

    def small_eager(s: Sizes) -> Call:
        x, y = normal(8, 1), normal(8, 2)
        return lambda: x + y

    def fft(s: Sizes) -> Call:
        x = complex_normal(s.elements)
        return lambda: np.fft.fft(x)

    def rfft(s: Sizes) -> Call:
        x = normal(s.elements, 1)
        return lambda: np.fft.rfft(x)

    calls = {
        "elementwise": elementwise,
        "sum": total,
        "softmax": softmax,
        "small_eager": small_eager,
        "fft": fft,
        "rfft": rfft,
        **multiplying(lambda f: f, np.asarray, lambda x: x),
        **eager_composites(np, np.asarray, lambda x: x),
        **numerics_of_scipy(),
        **transforms(lambda f: f, np.fft, np.asarray, lambda x: x),
        **packed(lambda f: f, np, lambda x: x),
    }
    return Library(np.__version__, calls, lambda x: x, np.asarray)


# --- rune and JAX -------------------------------------------------------------------------------


def mlp_step(jit: Any, value_and_grad: Any, xp: Any, nn: Any) -> Callable[..., Any]:
    """One step of gradient descent on the cross entropy, compiled as a whole."""

    def loss(weights: Any, images: Any, labels: Any) -> Any:
        w1, b1, w2, b2 = weights
        logits = nn.relu(images @ w1 + b1) @ w2 + b2
        chosen = nn.one_hot(labels, 10) * nn.log_softmax(logits)
        return -xp.mean(xp.sum(chosen, axis=-1))

    def step(weights: Any, images: Any, labels: Any) -> Any:
        value, grads = value_and_grad(loss)(weights, images, labels)
        updated_weights = tuple(w - LEARNING_RATE * g for w, g in zip(weights, grads))
        return value, updated_weights

    return jit(step)


def rnn_loss(xp: Any, scan: Any) -> Callable[..., Any]:
    """The summed squares of an Elman network's states."""

    def loss(weights: Any, xs: Any) -> Any:
        w, u, b = weights

        def step(h: Any, x: Any) -> Any:
            h = xp.tanh(h @ w + x @ u + b)
            return h, h

        _, states = scan(step, xp.zeros(xs.shape[1:], "float32"), xs)
        return xp.sum(states * states)

    return loss


def straight(xp: Any, equations: int) -> Callable[..., Any]:
    """A program of about so many equations, one after the other: maps, and a sum now and then."""

    def program(x: Any, y: Any) -> Any:
        for k in range(equations // 4):
            x = xp.sin(x) * y + xp.cos(y) if k % 3 else x * y - x
            if k % 3 == 0:
                y = y + xp.sum(x) * 0.001
        return x + y

    return program


def drawing(core: Any, wait: Any) -> dict[str, Callable[[Sizes], Call]]:
    """Random numbers, of the same key in every library."""

    def uniform(s: Sizes) -> Call:
        drawn = core.jit(lambda key: core.random.uniform(key, (s.draws,)))
        return waiting(drawn, wait, core.random.key(1))

    def gaussian(s: Sizes) -> Call:
        drawn = core.jit(lambda key: core.random.normal(key, (s.draws,)))
        return waiting(drawn, wait, core.random.key(2))

    return {"uniform": uniform, "normal": gaussian}


def convolving(core: Any, xp: Any, wait: Any) -> dict[str, Callable[[Sizes], Call]]:
    """A 3x3 convolution of 64 channels of 28x28 pixels with 64 filters, and its gradients."""

    def conv(x: Any, w: Any) -> Any:
        return core.lax.conv_general_dilated(x, w, (1, 1), "SAME")

    def arrays(s: Sizes) -> tuple[Any, Any]:
        return xp.asarray(normal((s.images, 64, 28, 28), 1)), xp.asarray(normal((64, 64, 3, 3), 2))

    def forward(s: Sizes) -> Call:
        return waiting(core.jit(conv), wait, *arrays(s))

    def gradient(s: Sizes) -> Call:
        both = core.jit(core.grad(lambda x, w: xp.sum(conv(x, w) ** 2), argnums=(0, 1)))
        operands = arrays(s)
        return lambda: wait(both(*operands)[1])

    return {"conv": forward, "conv_grad": gradient}


def transforming(core: Any, xp: Any, wait: Any) -> dict[str, Callable[[Sizes], Call]]:
    """Fourier transforms of one long vector."""

    def complex_(s: Sizes) -> Call:
        return waiting(core.jit(xp.fft.fft), wait, xp.asarray(complex_normal(s.elements)))

    def real(s: Sizes) -> Call:
        return waiting(core.jit(xp.fft.rfft), wait, xp.asarray(normal(s.elements, 1)))

    return {"fft": complex_, "rfft": real}


def factorising(core: Any, xp: Any, wait: Any) -> dict[str, Callable[[Sizes], Call]]:
    """Cholesky factors and eigenvectors of one matrix, and inverses of many tiny ones."""

    def definite(s: Sizes) -> Any:
        a = normal((s.matrix, s.matrix), 1)
        return xp.asarray(a @ a.T / np.float32(s.matrix) + np.eye(s.matrix, dtype=np.float32))

    def cholesky(s: Sizes) -> Call:
        return waiting(core.jit(xp.linalg.cholesky), wait, definite(s))

    def cholesky_eager(s: Sizes) -> Call:
        return waiting(xp.linalg.cholesky, wait, definite(s))

    def inverses(s: Sizes) -> Call:
        a = normal((s.draws // 100, 4, 4), 1) + 4 * np.eye(4, dtype=np.float32)
        return waiting(core.jit(xp.linalg.inv), wait, xp.asarray(a))

    def eigenvectors(x: Any) -> Any:
        values, vectors = xp.linalg.eigh(x)
        return vectors * values

    def symmetric(s: Sizes) -> Any:
        a = normal((s.matrix // 4, s.matrix // 4), 1)
        return xp.asarray(a + a.T)

    def eigh(s: Sizes) -> Call:
        return waiting(core.jit(eigenvectors), wait, symmetric(s))

    def eigh_eager(s: Sizes) -> Call:
        return waiting(eigenvectors, wait, symmetric(s))

    return {
        "cholesky": cholesky,
        "cholesky_eager": cholesky_eager,
        "inverses": inverses,
        "eigh": eigh,
        "eigh_eager": eigh_eager,
    }


def ordering(core: Any, xp: Any, wait: Any) -> dict[str, Callable[[Sizes], Call]]:
    """Running sums, sorting, and reading and adding at random places."""

    def random_places(s: Sizes) -> np.ndarray:
        return np.random.default_rng(1).integers(0, s.draws // 10, s.draws).astype(np.int32)

    def cumsum(s: Sizes) -> Call:
        return waiting(core.jit(xp.cumsum), wait, xp.asarray(normal(s.elements, 1)))

    def sort(s: Sizes) -> Call:
        return waiting(core.jit(xp.sort), wait, xp.asarray(normal(s.draws // 10, 1)))

    def argsort(s: Sizes) -> Call:
        return waiting(core.jit(xp.argsort), wait, xp.asarray(normal(s.draws // 10, 1)))

    def gather(s: Sizes) -> Call:
        table, places = xp.asarray(normal(s.draws // 10, 1)), xp.asarray(random_places(s))
        return waiting(core.jit(lambda x, i: x[i]), wait, table, places)

    def scatter_add(s: Sizes) -> Call:
        updates, places = xp.asarray(normal(s.draws, 1)), xp.asarray(random_places(s))
        added = core.jit(lambda i, v: xp.zeros(s.draws // 10, "float32").at[i].add(v))
        return waiting(added, wait, places, updates)

    def scatter_add_few(s: Sizes) -> Call:
        places = np.random.default_rng(1).integers(0, 1000, s.elements).astype(np.int32)
        added = core.jit(lambda i, v: xp.zeros(1000, "float32").at[i].add(v))
        return waiting(added, wait, xp.asarray(places), xp.asarray(normal(s.elements, 1)))

    return {
        "cumsum": cumsum,
        "sort": sort,
        "argsort": argsort,
        "gather": gather,
        "scatter_add": scatter_add,
        "scatter_add_few": scatter_add_few,
    }


def traced_library(version: str, core: Any, xp: Any, nn: Any, scan: Any, wait: Any) -> Library:
    """A library with JAX's names."""

    def elementwise(s: Sizes) -> Call:
        a, b = xp.asarray(normal(s.elements, 1)), xp.asarray(normal(s.elements, 2))
        return waiting(core.jit(lambda a, b: xp.tanh(a) * b + xp.exp(-a * a)), wait, a, b)

    def total(s: Sizes) -> Call:
        return waiting(core.jit(xp.sum), wait, xp.asarray(normal(s.elements, 1)))

    def softmax(s: Sizes) -> Call:
        x = xp.asarray(normal((s.rows, s.columns), 1))
        return waiting(core.jit(lambda x: nn.softmax(x, axis=-1)), wait, x)

    def mlp(s: Sizes) -> Call:
        data = mlp_data(s)
        weights = tuple(xp.asarray(w) for w in data.weights)
        step = mlp_step(core.jit, core.value_and_grad, xp, nn)
        images, labels = xp.asarray(data.images), xp.asarray(data.labels)
        return lambda: wait(step(weights, images, labels)[1][0])

    def rnn(s: Sizes) -> Call:
        u, v, x = s.units, np.float32(s.units**-0.5), normal((s.steps, RNN_BATCH, s.units), 1)
        weights = normal((u, u), 2) * v, normal((u, u), 3) * v, np.zeros(u, np.float32)
        gradient = core.jit(core.grad(rnn_loss(xp, scan)))
        operands = tuple(map(xp.asarray, weights)), xp.asarray(x)
        return lambda: wait(gradient(*operands)[0])

    def long_scan(s: Sizes) -> Call:
        def step(c: Any, x: Any) -> Any:
            return c * 0.9 + x, c

        run = core.jit(lambda xs: scan(step, xp.asarray(0.0, "float32"), xs)[1])
        return waiting(run, wait, xp.asarray(normal(s.long, 1)))

    def vector_scan(s: Sizes) -> Call:
        def step(c: Any, x: Any) -> Any:
            return c * 0.9 + x, c

        run = core.jit(lambda xs: scan(step, xp.zeros(8, "float32"), xs)[1])
        return waiting(run, wait, xp.asarray(normal((s.long, 8), 1)))

    def straight_first(s: Sizes) -> Call:
        x, y = xp.asarray(normal(64, 1)), xp.asarray(normal(64, 2))
        return waiting(core.jit(straight(xp, s.equations)), wait, x, y)

    def small_jit(s: Sizes) -> Call:
        x, y = xp.asarray(normal(8, 1)), xp.asarray(normal(8, 2))
        compiled = core.jit(lambda x, y: x * y + x)
        return lambda: compiled(x, y)

    def small_eager(s: Sizes) -> Call:
        x, y = xp.asarray(normal(8, 1)), xp.asarray(normal(8, 2))
        return lambda: x + y

    calls = {
        "elementwise": elementwise,
        "sum": total,
        "softmax": softmax,
        "mlp": mlp,
        "mlp_first": mlp,
        "mlp_compiled": mlp,
        "small_jit": small_jit,
        "small_eager": small_eager,
        "rnn": rnn,
        "scan": long_scan,
        "scan_8": vector_scan,
        "straight": straight_first,
        **multiplying(core.jit, xp.asarray, wait),
        **drawing(core, wait),
        **factorising(core, xp, wait),
        **transforming(core, xp, wait),
        **transforms(core.jit, xp.fft, xp.asarray, wait),
        **packed(core.jit, xp, wait),
        **convolving(core, xp, wait),
        **ordering(core, xp, wait),
        **whole_programs(core, xp, wait),
        **numerics(core, xp, wait),
        **networks(core, xp, nn, wait),
        **elementwise_functions(core, xp, nn, wait),
    }
    return Library(version, calls, wait, np.asarray)


def rune_library() -> Library:
    """rune on its default executor."""
    import rune
    import rune.nn
    import rune.numpy as rnp
    import rune.scipy.linalg
    import rune.scipy.special

    def wait(x: Any) -> Any:
        return x.block_until_ready()

    return traced_library(rune.__version__, rune, rnp, rune.nn, rune.scan, wait)


def jax_library() -> Library:
    """JAX on its CPU."""
    import jax
    import jax.numpy as jnp
    import jax.scipy.linalg

    jax.config.update("jax_platforms", "cpu")

    def wait(x: Any) -> Any:
        return x.block_until_ready()

    return traced_library(jax.__version__, jax, jnp, jax.nn, jax.lax.scan, wait)


# --- torch --------------------------------------------------------------------------------------


def first_leaf(result: Any) -> np.ndarray:
    """A tensor, or the first of several, as a NumPy array."""
    return (result[0] if isinstance(result, list) else result).detach().numpy()


def torch_library() -> Library:
    """torch on the CPU, eager, as its users write it."""
    import torch
    from torch.nn import functional

    tensor = torch.from_numpy

    def elementwise(s: Sizes) -> Call:
        a, b = tensor(normal(s.elements, 1)), tensor(normal(s.elements, 2))
        return lambda: torch.tanh(a) * b + torch.exp(-a * a)

    def total(s: Sizes) -> Call:
        a = tensor(normal(s.elements, 1))
        return lambda: torch.sum(a)

    def softmax(s: Sizes) -> Call:
        x = tensor(normal((s.rows, s.columns), 1))
        return lambda: torch.softmax(x, -1)

    def mlp(s: Sizes) -> Call:
        data = mlp_data(s)
        weights = [tensor(w.copy()).requires_grad_() for w in data.weights]
        images, labels = tensor(data.images), tensor(data.labels).long()

        def step() -> Any:
            w1, b1, w2, b2 = weights
            logits = functional.relu(images @ w1 + b1) @ w2 + b2
            grads = torch.autograd.grad(functional.cross_entropy(logits, labels), weights)
            with torch.no_grad():
                return [w - LEARNING_RATE * g for w, g in zip(weights, grads)]

        return step

    def small_eager(s: Sizes) -> Call:
        x, y = tensor(normal(8, 1)), tensor(normal(8, 2))
        return lambda: x + y

    def eigh(s: Sizes) -> Call:
        a = normal((s.matrix // 4, s.matrix // 4), 1)
        x = tensor(a + a.T)

        def scaled() -> Any:
            values, vectors = torch.linalg.eigh(x)
            return vectors * values

        return scaled

    calls = {
        "elementwise": elementwise,
        "sum": total,
        "softmax": softmax,
        "mlp": mlp,
        "small_eager": small_eager,
        **multiplying(lambda f: f, tensor, lambda x: x),
        **torch_networks(torch),
        **transforms(lambda f: f, torch.fft, tensor, lambda x: x, axis="dim"),
        "eigh": eigh,
        "eigh_eager": eigh,
    }
    return Library(torch.__version__, calls, lambda x: x, first_leaf)


LIBRARIES: dict[str, Callable[[], Library]] = {
    "rune": rune_library,
    "numpy": numpy_library,
    "jax": jax_library,
    "torch": torch_library,
}
