"""The cases, their data, and the bars that rune should stay under.

A case names one piece of work; `libraries.py` says how each library does it. The data comes from a
fixed seed, so every library, in its own process, works on the same arrays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Bar:
    """rune's time must be at most `limit` times the peer's, or `limit` seconds without a peer.

    `added` seconds are granted on top.
    """

    limit: float
    peer: str | None = None
    added: float = 0.0

    def holds(self, rune: float, peer: float | None) -> bool:
        """Whether a measured time, with the peer's, is under the bar."""
        return rune <= self.limit * (peer if peer is not None else 1.0) + self.added

    def __str__(self) -> str:
        if self.peer is None:
            return f"≤ {self.limit * 1e6:g} µs"
        if self.added:
            return f"≤ {self.peer} + {self.added:g} s"
        return f"≤ {self.limit:g} × {self.peer}"


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table. `how`: "warm" calls, the "first" call, or the "import"."""

    name: str
    title: str
    bar: Bar
    peers: tuple[str, ...]
    how: str = "warm"


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the arrays are."""

    elements: int
    rows: int
    columns: int
    batch: int
    hidden: int
    matrix: int
    steps: int  # of a recurrent network
    units: int
    long: int  # steps of a loop with a tiny body
    equations: int  # of a straight program
    draws: int  # random numbers
    images: int  # of a convolution
    positions: int  # of attention
    context: int  # of a small GPT
    width: int  # of a small GPT


SIZES = {
    "full": Sizes(1 << 22, 512, 4096, 128, 512, 1024, 256, 64, 10_000, 2_000, 10_000_000, 32, 512, 128, 128),
    "tiny": Sizes(1 << 10, 8, 64, 8, 16, 16, 8, 4, 100, 40, 1 << 10, 1, 16, 8, 16),
}

# Sizes of square products. Several small ones in one call tell the product from the call.
MATMULS = (64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048)
SMALL_MATMULS = (64, 96, 128)
IN_A_ROW = 10

FUNCTIONS = ("exp", "exp2", "expm1", "sigmoid", "softplus", "log", "sin", "cos", "tanh", "erf", "pow")
COMPLEX_FACTORS = ("cholesky", "lu", "qr", "inv", "det")
TRANSFORMS = {
    "fft2": "fft2 of c64[256,256]",
    "rfft2": "rfft2 of f32[256,256]",
    "fft_rows": "fft of c64[64,1024]",
    "fft_columns": "fft of c64[256,256] along axis 0",
    "rfft_rows": "rfft of f32[64,1024]",
}
COMPOSITES = ("sinc", "hypot", "ldexp", "deviations")

_ALL = ("numpy", "jax", "torch")
_TRACED = ("jax", "torch")


def _peers(size: int) -> tuple[str, ...]:
    """All peers at one size: NumPy alone has the bar."""
    return _ALL if size == 1024 else ("numpy",)


_PRODUCTS = [Case(f"matmul_{n}", f"matmul of f32[{n},{n}]", Bar(1.0, "numpy"), _peers(n)) for n in MATMULS]
_PRODUCTS += [
    Case(f"matmuls_{n}", f"{IN_A_ROW} matmuls of f32[{n},{n}] in a row", Bar(1.0, "numpy"), _peers(n))
    for n in SMALL_MATMULS
]
CASES = (
    Case("elementwise", "tanh(a)*b + exp(-a*a), 4 M f32", Bar(0.9, "jax"), _ALL),
    Case("sum", "sum of 4 M f32", Bar(1.3, "jax"), _ALL),
    Case("softmax", "softmax of f32[512,4096]", Bar(1.2, "jax"), _ALL),
    Case("mlp", "gradient step, MLP 784-512-10, batch 128", Bar(1.3, "jax"), _TRACED),
    Case("mlp_compiled", "the same step, torch compiled", Bar(1.0, "torch"), ("torch",)),
    Case("mlp_first", "the same step, first call", Bar(1.5, "jax"), ("jax",), "first"),
    *_PRODUCTS,
    Case("rnn", "gradient of an RNN scan, 256 x 64 units, batch 32", Bar(1.0, "jax"), ("jax",)),
    Case("scan", "scan of a tiny body, 10,000 steps", Bar(1.5, "jax"), ("jax",)),
    Case("scan_8", "the same of 8 elements", Bar(1.0, "jax"), ("jax",)),
    Case("straight", "first call of 2,000 equations", Bar(0.5, "jax"), ("jax",), "first"),
    Case("uniform", "uniform numbers, 10 M f32", Bar(0.5, "jax"), ("jax",)),
    Case("normal", "normal numbers, 10 M f32", Bar(0.6, "jax"), ("jax",)),
    Case("conv", "conv 32x64x28x28 by 64 filters 3x3", Bar(1.0, "torch"), _TRACED),
    Case("conv_grad", "gradients of that conv by both", Bar(1.0, "torch"), _TRACED),
    Case("attention", "attention 2 x 8 x 512 x 64", Bar(0.8, "torch"), _TRACED),
    Case("attention_grad", "gradients of that attention", Bar(0.8, "torch"), _TRACED),
    Case("gpt", "training step of a GPT, 2 x 128 wide, 8 x 128 tokens", Bar(0.8, "torch"), _TRACED),
    Case("vae", "training step of a VAE 784-256-16, with draws", Bar(1.0, "jax"), ("jax",)),
    Case("decode", "sampling 128 tokens of that GPT in a while_loop", Bar(1.0, "jax"), ("jax",)),
    *[Case(f"each_{name}", f"{name} of 4 M f32", Bar(1.0, "jax"), ("jax",)) for name in FUNCTIONS],
    *[Case(f"eager_{name}", f"{name} of 1 M, not compiled", Bar(1.5, "numpy"), ("numpy",)) for name in COMPOSITES],
    Case("cholesky", "cholesky of f32[1024,1024]", Bar(1.2, "jax"), ("jax",)),
    Case("cholesky_eager", "the same, not jitted", Bar(1.2, "jax"), ("jax",)),
    Case("eigh", "eigh of f32[256,256]", Bar(1.0, "torch"), _TRACED),
    Case("eigh_eager", "the same, not jitted", Bar(1.0, "torch"), _TRACED),
    Case("inverses", "inverses of 100,000 f32[4,4]", Bar(1.0, "jax"), ("jax",)),
    *[Case(f"complex_{x}", f"{x} of c64[256,256]", Bar(1.0, "jax"), ("jax",)) for x in COMPLEX_FACTORS],
    Case("lstsq", "lstsq of f32[100,10]", Bar(1.1, "jax"), ("jax",)),
    Case("quantiles", "gammaincinv of 100,000 f32", Bar(0.5, "numpy"), ("numpy",)),
    Case("quantiles_eager", "gammaincinv of 1,000 f32, not jitted", Bar(0.5, "numpy"), ("numpy",)),
    Case("fft_short", "fft of 65,536 c64", Bar(1.0, "jax"), ("jax",)),
    Case("fft", "fft of 4 M c64", Bar(1.2, "jax"), ("numpy", "jax")),
    Case("fft_million", "fft of 1 M c64", Bar(1.0, "torch"), _TRACED),
    *[Case(f"{name}_eager", f"{title}, not jitted", Bar(1.0, "torch"), _ALL) for name, title in TRANSFORMS.items()],
    Case("packbits", "packbits of 1 M truths", Bar(1.0, "numpy"), ("numpy", "jax")),
    Case("packbits_eager", "the same, not jitted", Bar(1.0, "numpy"), ("numpy", "jax")),
    Case("rfft", "rfft of 4 M f32", Bar(1.2, "jax"), ("numpy", "jax")),
    Case("rolled", "rolled scan of tanh(h @ w + x), one h of 64", Bar(1.0, "jax"), ("jax",)),
    Case("rolled_grad", "gradient of that scan", Bar(1.0, "jax"), ("jax",)),
    Case("flow", "pseudo-spectral flow of 128 x 128, 10 steps", Bar(1.0, "jax"), ("jax",)),
    Case("solver", "64 adaptive Dormand-Prince solvers in a while_loop", Bar(1.0, "jax"), ("jax",)),
    Case("spheres", "sphere tracing of 256 x 256 rays by while_loop under vmap", Bar(1.0, "jax"), ("jax",)),
    Case("process", "Gaussian process of 200 points, value and gradient", Bar(1.0, "jax"), ("jax",)),
    Case("cumsum", "cumsum of 4 M f32", Bar(0.5, "jax"), ("jax",)),
    Case("sort", "sort of 1 M f32", Bar(0.05, "jax"), ("jax",)),
    Case("argsort", "argsort of 1 M f32", Bar(0.15, "jax"), ("jax",)),
    Case("gather", "10 M random elements of 1 M f32", Bar(1.2, "jax"), ("jax",)),
    Case("scatter_add", "10 M f32 added at random places of 1 M", Bar(1.2, "jax"), ("jax",)),
    Case("scatter_add_few", "4 M f32 added at random places of 1,000", Bar(1.0, "jax"), ("jax",)),
    Case("small_jit", "small cached jit call", Bar(12e-6), ("jax",)),
    Case("small_eager", "small eager add", Bar(5e-6), _ALL),
    Case("import", "import", Bar(1.0, "numpy", 0.15), _ALL, "import"),
)


def normal(size: int | tuple[int, ...], seed: int) -> np.ndarray:
    """float32 normals, the same in every process."""
    return np.random.default_rng(seed).standard_normal(size, dtype=np.float32)


def complex_normal(size: int | tuple[int, ...]) -> np.ndarray:
    """complex64 normals."""
    return normal(size, 1) + 1j * normal(size, 2)


@dataclass(frozen=True, slots=True)
class Mlp:
    """Weights, images and labels of the MLP step."""

    weights: tuple[np.ndarray, ...]
    images: np.ndarray
    labels: np.ndarray


def mlp_data(sizes: Sizes) -> Mlp:
    """A batch and He-scaled weights for 784-hidden-10."""
    scale_in, scale_out = np.float32((2 / 784) ** 0.5), np.float32((2 / sizes.hidden) ** 0.5)
    weights = (
        normal((784, sizes.hidden), 1) * scale_in,
        np.zeros(sizes.hidden, np.float32),
        normal((sizes.hidden, 10), 2) * scale_out,
        np.zeros(10, np.float32),
    )
    labels = np.random.default_rng(3).integers(0, 10, sizes.batch).astype(np.int32)
    return Mlp(weights, normal((sizes.batch, 784), 4), labels)
