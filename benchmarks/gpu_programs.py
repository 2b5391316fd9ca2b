"""Larger workloads of gpu.py: linear algebra, transforms, sorts, networks, models and solvers.

Each is written once, over a module `jx` that is rune or jax. They are compared with JAX alone:
nobody has estimated their best times, and gpu_static.py does not look at them.
"""

from __future__ import annotations

from typing import Any

from gpu_workloads import Workload, attention, of

# --- linear algebra ---------------------------------------------------------------------------


def _positive(jx: Any, x: Any) -> Any:
    """A well-conditioned symmetric matrix of a square one."""
    n = x.shape[-1]
    return x @ jx.numpy.swapaxes(x, -1, -2) / n + jx.numpy.eye(n)


def cholesky(jx: Any) -> Any:
    """The factor of a positive matrix."""
    return lambda x: jx.numpy.linalg.cholesky(_positive(jx, x))


def solve(jx: Any) -> Any:
    """A square system."""
    return lambda a, b: jx.numpy.linalg.solve(_positive(jx, a), b)


def qr(jx: Any) -> Any:
    """The triangle alone: signs of columns differ between libraries."""
    return lambda a: jx.numpy.abs(jx.numpy.linalg.qr(a)[1])


def eigenvalues(jx: Any) -> Any:
    """The eigenvalues of a symmetric matrix, with vectors."""

    def values(a: Any) -> Any:
        w, v = jx.numpy.linalg.eigh(a + a.T)
        return w, jx.numpy.abs(v)

    return values


def singular_values(jx: Any) -> Any:
    """The singular values of a matrix, with vectors."""

    def values(a: Any) -> Any:
        u, s, _ = jx.numpy.linalg.svd(a, full_matrices=False)
        return s, jx.numpy.abs(u)

    return values


def inverses(jx: Any) -> Any:
    """The inverses of many small matrices."""
    return lambda a: jx.numpy.linalg.inv(_positive(jx, a))


def gaussian_process(jx: Any) -> Any:
    """The likelihood of observations, and its gradient by the kernel's parameters."""

    def likelihood(log_parameters: Any, x: Any, y: Any) -> Any:
        length, scale, noise = jx.numpy.exp(0.1 * log_parameters)
        distances = (x[:, None] - x[None, :]) ** 2
        covariance = scale * jx.numpy.exp(-distances / (2 * length**2)) + (noise + 0.1) * jx.numpy.eye(len(x))
        factor = jx.numpy.linalg.cholesky(covariance)
        whitened = jx.scipy.linalg.solve_triangular(factor, y, lower=True)
        return 0.5 * whitened @ whitened + jx.numpy.sum(jx.numpy.log(jx.numpy.diagonal(factor)))

    return jx.value_and_grad(likelihood)


# --- transforms, sorts and places -------------------------------------------------------------


def power_spectrum(jx: Any) -> Any:
    """The power spectrum of real signals."""
    return lambda x: jx.numpy.abs(jx.numpy.fft.rfft(x)) ** 2


def filtered(jx: Any) -> Any:
    """An image without its high frequencies."""

    def low(x: Any) -> Any:
        rows, columns = jx.numpy.fft.fftfreq(x.shape[0]), jx.numpy.fft.rfftfreq(x.shape[1])
        keep = rows[:, None] ** 2 + columns[None, :] ** 2 < 0.04
        return jx.numpy.fft.irfft2(jx.numpy.fft.rfft2(x) * keep, x.shape)

    return low


def histogram(jx: Any) -> Any:
    """The histogram of a million numbers in a thousand bins."""
    return lambda x: jx.numpy.histogram(x, bins=1000, range=(-4.0, 4.0))[0]


def segments(jx: Any) -> Any:
    """Rows summed by a sorted class, as in a graph's messages."""

    def sums(x: Any, i: Any) -> Any:
        return jx.numpy.zeros((len(x) // 16, x.shape[1])).at[i // 16].add(x)

    return sums


def embedding_gradient(jx: Any) -> Any:
    """The gradient by the table of rows that are looked up."""
    return jx.grad(lambda table, i: jx.numpy.sum(table[i] ** 3))


def top(jx: Any) -> Any:
    """The largest elements of every row."""
    return lambda x: jx.lax.top_k(x, 40)[0]


# --- networks and models ----------------------------------------------------------------------


def causal_attention(jx: Any) -> Any:
    """Attention of every head, of each position to those before it."""

    def of_heads(q: Any, k: Any, v: Any) -> Any:
        n = q.shape[2]
        scores = jx.numpy.einsum("bhqd,bhkd->bhqk", q, k).astype("float32") * 0.125
        scores = jx.numpy.where(jx.numpy.tril(jx.numpy.ones((n, n), bool)), scores, -1e30)
        return jx.numpy.einsum("bhqk,bhkd->bhqd", jx.nn.softmax(scores).astype(v.dtype), v)

    return of_heads


def causal_attention_gradients(jx: Any) -> Any:
    """Its gradients by queries, keys and values."""
    attend = causal_attention(jx)
    return jx.grad(lambda q, k, v: jx.numpy.sum(attend(q, k, v).astype("float32") ** 2), argnums=(0, 1, 2))


def cached_attention(jx: Any) -> Any:
    """Attention of one new position to a long cache, as in decoding."""
    return attention(jx)


def cross_entropy(jx: Any) -> Any:
    """The gradient of a language model's loss by its logits' factors."""

    def loss(h: Any, w: Any, labels: Any) -> Any:
        logits = (h @ w).astype("float32")
        peak = jx.nn.logsumexp(logits, axis=-1)
        return jx.numpy.mean(peak - jx.numpy.take_along_axis(logits, labels[:, None], axis=-1)[:, 0])

    return jx.grad(loss, argnums=(0, 1))


def block_step(jx: Any) -> Any:
    """The gradients of a decoder's block: norms, attention of 8 heads, a gated network."""

    def norm(x: Any, scale: Any) -> Any:
        wide = x.astype("float32")
        return (wide * jx.lax.rsqrt(jx.numpy.mean(wide * wide, -1, keepdims=True) + 1e-6)).astype(x.dtype) * scale

    def heads(x: Any) -> Any:
        return x.reshape(*x.shape[:2], 8, -1).transpose(0, 2, 1, 3)

    def loss(weights: Any, x: Any) -> Any:
        s1, wq, wk, wv, wo, s2, wg, wu, wd = weights
        h = norm(x, s1)
        attended = causal_attention(jx)(heads(h @ wq * 0.05), heads(h @ wk * 0.05), heads(h @ wv))
        x = x + attended.transpose(0, 2, 1, 3).reshape(x.shape) @ wo * 0.02
        h = norm(x, s2)
        x = x + (jx.nn.silu(h @ wg * 0.05) * (h @ wu * 0.05)) @ wd * 0.02
        return jx.numpy.mean(x.astype("float32") ** 2)

    return lambda x, *weights: jx.grad(loss)(weights, x)


def recurrent_gradient(jx: Any) -> Any:
    """The gradient of a scan over a sequence by its weights."""

    def loss(w: Any, xs: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            h = jx.numpy.tanh(h @ w * 0.05 + x)
            return h, None

        return jx.numpy.sum(jx.lax.scan(step, jx.numpy.zeros(xs.shape[1:]), xs)[0] ** 2)

    return jx.grad(loss)


def convolutions(jx: Any) -> Any:
    """The gradients of three layers with pooling, by the filters."""

    def loss(filters: Any, x: Any) -> Any:
        for w in filters:
            x = jx.nn.relu(jx.lax.conv_general_dilated(x, w, (1, 1), "SAME")) * 0.1
            x = jx.lax.reduce_window(x, -jx.numpy.inf, jx.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
        return jx.numpy.mean(x**2)

    return lambda x, *filters: jx.grad(loss)(filters, x)


# --- solvers ----------------------------------------------------------------------------------


def oscillators(jx: Any) -> Any:
    """Van der Pol's equation by Runge and Kutta's steps, for many starts."""

    def slope(y: Any) -> Any:
        return jx.numpy.stack([y[1], 2.0 * (1 - y[0] ** 2) * y[1] - y[0]])

    def step(_: Any, y: Any) -> Any:
        k1 = slope(y)
        k2 = slope(y + 0.005 * k1)
        k3 = slope(y + 0.005 * k2)
        k4 = slope(y + 0.01 * k3)
        return y + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    return lambda y: jx.lax.fori_loop(0, 200, step, y)


def conjugate_gradients(jx: Any) -> Any:
    """A positive system, by a while loop."""

    def solution(a: Any, b: Any) -> Any:
        a = _positive(jx, a)

        def step(state: Any) -> Any:
            x, r, p, square = state
            q = a @ p
            alpha = square / (p @ q)
            x, r = x + alpha * p, r - alpha * q
            after = r @ r
            return x, r, r + after / square * p, after

        start = (jx.numpy.zeros_like(b), b, b, b @ b)
        return jx.lax.while_loop(lambda s: s[3] > 1e-6, step, start)[0]

    return solution


def heat(jx: Any) -> Any:
    """A hundred steps of diffusion over a plane."""

    def step(_: Any, u: Any) -> Any:
        around = jx.numpy.roll(u, 1, 0) + jx.numpy.roll(u, -1, 0) + jx.numpy.roll(u, 1, 1) + jx.numpy.roll(u, -1, 1)
        return u + 0.2 * (around - 4 * u)

    return lambda u: jx.lax.fori_loop(0, 100, step, u)


def distances(jx: Any) -> Any:
    """The gradient of the energy of bodies that repel each other."""

    def energy(x: Any) -> Any:
        squares = jx.numpy.sum((x[:, None] - x[None]) ** 2, -1) + 0.1
        return jx.numpy.sum(1 / jx.numpy.sqrt(squares))

    return jx.grad(energy)


def walks(jx: Any) -> Any:
    """Prices of an option by paths of normal steps."""

    def price(key: Any) -> Any:
        steps = jx.random.normal(key, (64, 65536))
        paths = jx.numpy.exp(jx.numpy.cumsum(0.02 * steps - 0.0002, axis=0))
        return jx.numpy.mean(jx.numpy.maximum(jx.numpy.mean(paths, axis=0) - 1, 0))

    return price


_BLOCK = "{0}[512]" + 4 * " {0}[512,512]" + " {0}[512] {0}[512,2048] {0}[512,2048] {0}[2048,512]"
_HEADS = "{0}[4,8,1024,64] " * 3
_FILTERS = "f32[64,3,3,3] f32[128,64,3,3] f32[128,128,3,3]"

PROGRAMS: dict[str, Workload] = {
    "cholesky 512": Workload(cholesky, of("f32[512,512]")),
    "cholesky 2048": Workload(cholesky, of("f32[2048,2048]")),
    "solve 1024": Workload(solve, of("f32[1024,1024] f32[1024,16]")),
    "qr 512": Workload(qr, of("f32[512,512]")),
    "eigh 128": Workload(eigenvalues, of("f32[128,128]")),
    "svd 128": Workload(singular_values, of("f32[128,128]")),
    "inverses of 100k 4 x 4": Workload(inverses, of("f32[100000,4,4]")),
    "gaussian process 500": Workload(gaussian_process, of("f32[3] f32[500] f32[500]")),
    "rfft 64 x 16384": Workload(power_spectrum, of("f32[64,16384]")),
    "rfft 1M": Workload(power_spectrum, of("f32[1048576]")),
    "filter 1024 x 1024": Workload(filtered, of("f32[1024,1024]")),
    "histogram 1M": Workload(histogram, of("f32[1048576]")),
    "segments 1M x 16": Workload(segments, of("f32[1048576,16] i32[1048576]")),
    "embedding gradient": Workload(embedding_gradient, of("f32[50257,256] i32[8192]")),
    "argsort 1M": Workload(lambda jx: jx.numpy.argsort, of("f32[1048576]")),
    "sort 4096 x 1000": Workload(lambda jx: jx.numpy.sort, of("f32[4096,1000]")),
    "median 1M": Workload(lambda jx: jx.numpy.median, of("f32[1048577]")),
    "top 40 of 512 x 50257": Workload(top, of("f32[512,50257]")),
    "cumsum axis 0, 4096 x 1024": Workload(lambda jx: lambda x: jx.numpy.cumsum(x, axis=0), of("f32[4096,1024]")),
    "causal attention f32": Workload(causal_attention, of(_HEADS.format("f32"))),
    "causal attention bf16": Workload(causal_attention, of(_HEADS.format("bf16"))),
    "its gradients f32": Workload(causal_attention_gradients, of(_HEADS.format("f32"))),
    "its gradients bf16": Workload(causal_attention_gradients, of(_HEADS.format("bf16"))),
    "cached attention bf16": Workload(cached_attention, of("bf16[8,16,1,128] bf16[8,16,4096,128] bf16[8,16,4096,128]")),
    "cross entropy bf16": Workload(cross_entropy, of("bf16[4096,512] bf16[512,32000] i32[4096]")),
    "block f32": Workload(block_step, of("f32[4,512,512] " + _BLOCK.format("f32"))),
    "block bf16": Workload(block_step, of("bf16[8,1024,512] " + _BLOCK.format("bf16"))),
    "recurrent gradient": Workload(recurrent_gradient, of("f32[256,256] f32[128,64,256]")),
    "convolutions": Workload(convolutions, of("f32[32,3,64,64] " + _FILTERS)),
    "oscillators 1M": Workload(oscillators, of("f32[2,1048576]")),
    "conjugate gradients 2048": Workload(conjugate_gradients, of("f32[2048,2048] f32[2048]")),
    "heat 1024 x 1024": Workload(heat, of("f32[1024,1024]")),
    "distances 4096": Workload(distances, of("f32[4096,3]")),
    "walks 64 x 65536": Workload(walks, of("u32[2]")),
    "normal 16M": Workload(lambda jx: lambda key: jx.random.normal(key, (1 << 24,)), of("u32[2]")),
}
