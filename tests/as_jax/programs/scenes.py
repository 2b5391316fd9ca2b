"""Whole programs of people who draw and sort places: splats, hulls, cells, regions, shocks."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def gaussian_splatting(n=33, height=17, width=19):
    """Sort by depth, blend front to back, and differentiate through the blending."""
    rng = np.random.default_rng(0)
    mu, colour = jnp.array(rng.uniform(size=(n, 2)), jnp.float32), jnp.array(rng.uniform(size=(n, 3)), jnp.float32)
    opacity, depth = jnp.array(rng.uniform(size=n), jnp.float32), rng.uniform(size=n).astype(np.float32)

    def render(mu, colour, opacity, scale):
        order = jnp.argsort(depth)
        mu, colour, opacity = mu[order], colour[order], opacity[order]
        y, x = jnp.mgrid[0:height, 0:width] / 17.0
        distance = jnp.sum((jnp.stack([x, y], -1)[:, :, None] - mu) ** 2, -1)
        alpha = jnp.minimum(0.99, opacity * jnp.exp(-distance / scale))
        through = jnp.cumprod(jnp.concatenate([jnp.ones((height, width, 1)), 1 - alpha[..., :-1]], -1), -1)
        weight = jnp.where(through > 1e-3, through * alpha, 0)
        return weight @ colour, jnp.argmax(weight, -1)

    def loss(*p):
        return jnp.mean((render(*p)[0] - 0.5) ** 2)

    picture, nearest = jax.jit(render)(mu, colour, opacity, 0.02)
    return picture, nearest, jax.grad(loss, (0, 1, 2, 3))(mu, colour, opacity, 0.02)


def regions_and_a_sandpile(height=31, width=33):
    """Labels that spread until nothing changes, grains that topple, distances by jumps."""
    rng = np.random.default_rng(1)
    mask, grains = jnp.array(rng.integers(0, 2, (height, width))), jnp.array(rng.integers(0, 9, (height, width)))

    def neighbours(a):
        p = jnp.pad(a, 1)
        return jnp.stack([p[2:, 1:-1], p[:-2, 1:-1], p[1:-1, 2:], p[1:-1, :-2]])

    def spread(state):
        labels, _ = state
        wider = jnp.where(mask > 0, jnp.maximum(labels, neighbours(labels).max(0)), 0)
        return wider, jnp.any(wider != labels)

    def topple(state):
        grains, n = state
        falls = grains // 4
        return grains - 4 * falls + neighbours(falls).sum(0), n + falls.sum()

    start = jnp.where(mask > 0, jnp.arange(height * width).reshape(height, width) + 1, 0)
    labels, _ = lax.while_loop(lambda s: s[1], spread, (start, True))
    stable, n = jax.jit(lambda g: lax.while_loop(lambda s: jnp.any(s[0] >= 4), topple, (g, 0)))(grains)
    y, x = jnp.mgrid[0:height, 0:width]
    best = jnp.where((grains == 3)[..., None], jnp.stack([y, x], -1), -1000)
    for k in (16, 8, 4, 2, 1):
        seeds = jnp.stack([jnp.roll(best, (i * k, j * k), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)])
        squares = (seeds[..., 0] - y) ** 2 + (seeds[..., 1] - x) ** 2
        best = jnp.take_along_axis(seeds, jnp.argmin(squares, 0)[None, ..., None], 0)[0]
    return labels, stable, n, best, jnp.unique(labels, size=200, fill_value=-1)


def a_convex_hull_by_a_stack(n=129):
    """Monotone chains: a while_loop in a scan that takes points back from a stack."""
    points = jnp.array(np.random.default_rng(2).normal(size=(n, 2)), jnp.float32)
    points = points[jnp.lexsort((points[:, 1], points[:, 0]))]

    def push(state, q):
        stack, top = state

        def turns_right(top):
            a, b = stack[top - 2], stack[top - 1]
            return (top >= 2) & ((b[0] - a[0]) * (q[1] - a[1]) - (b[1] - a[1]) * (q[0] - a[0]) <= 0)

        top = lax.while_loop(turns_right, lambda top: top - 1, top)
        return (stack.at[top].set(q), top + 1), top

    @jax.jit
    def chain(points):
        return lax.scan(push, (jnp.zeros((n + 1, 2)), 0), points)

    (lower, i), tops = chain(points)
    (upper, j), _ = chain(points[::-1])
    return lower[:20], i, upper[:20], j, tops


def cells_and_codes_of_places(n=127, cells=5, room=9):
    """Neighbours by cells of a grid, and the order of Morton codes."""
    rng = np.random.default_rng(3)
    x, mass = jnp.array(rng.normal(size=(n, 3)), jnp.float32), jnp.array(rng.uniform(size=n), jnp.float32)
    place = jnp.array([cells * cells, cells, 1])
    cell = jnp.clip(jnp.floor((x + 3) / 1.2).astype(jnp.int32), 0, cells - 1)
    order = jnp.argsort(cell @ place)
    cell_of_sorted = (cell @ place)[order]
    first = jnp.searchsorted(cell_of_sorted, jnp.arange(cells**3))
    table = jnp.full((cells**3, room), -1)
    table = table.at[cell_of_sorted, jnp.arange(n) - first[cell_of_sorted]].set(order, mode="drop")
    shifts = jnp.stack(jnp.meshgrid(*[jnp.arange(-1, 2)] * 3, indexing="ij"), -1).reshape(-1, 3)

    def force(i):
        near = table[jnp.clip(cell[i] + shifts, 0, cells - 1) @ place].reshape(-1)
        r = x[near] - x[i]
        square = jnp.sum(r * r, -1)
        counts = (near >= 0) & (near != i) & (square < 1.4)
        return jnp.sum(
            jnp.where(counts[:, None], r * (mass[near] / (square + 0.1) ** 1.5)[:, None], 0), 0
        ), counts.sum()

    def spread(v):
        for shift, bits in [(16, 0x030000FF), (8, 0x0300F00F), (4, 0x030C30C3), (2, 0x09249249)]:
            v = (v | (v << shift)) & bits
        return v

    q = jnp.clip((x + 4) / 8 * 1024, 0, 1023).astype(jnp.uint32)
    code = jnp.sort(spread(q[:, 0]) | (spread(q[:, 1]) << 1) | (spread(q[:, 2]) << 2))
    return jax.jit(jax.vmap(force))(jnp.arange(n)), first, code, lax.clz(code[1:] ^ code[:-1])


def _fifth_order(v, n):
    """The values at the left of each face, by weights of smoothness."""
    p = jnp.pad(v, ((0, 0), (3, 3)), mode="edge")
    a, b, c, d, e = [p[:, i : i + n + 1] for i in range(5)]
    rough = jnp.stack([
        13 / 12 * (a - 2 * b + c) ** 2 + 0.25 * (a - 4 * b + 3 * c) ** 2,
        13 / 12 * (b - 2 * c + d) ** 2 + 0.25 * (b - d) ** 2,
        13 / 12 * (c - 2 * d + e) ** 2 + 0.25 * (3 * c - 4 * d + e) ** 2,
    ])  # fmt: skip
    weight = jnp.array([0.1, 0.6, 0.3])[:, None, None] / (rough + 1e-6) ** 2
    parts = jnp.stack([2 * a - 7 * b + 11 * c, -b + 5 * c + 2 * d, 2 * c + 5 * d - e]) / 6
    return jnp.sum(weight * parts, 0) / weight.sum(0)


def a_shock_tube(n=65, gamma=1.4, end=0.1):
    """Euler's equations: faces of fifth order, three stages, adaptive steps."""
    x = (jnp.arange(n) + 0.5) / n
    density, pressure = jnp.where(x < 0.5, 1.0, 0.125), jnp.where(x < 0.5, 1.0, 0.1)
    state = jnp.stack([density, jnp.zeros(n), pressure / (gamma - 1)])

    def primitive(u):
        speed = u[1] / u[0]
        return u[0], speed, (gamma - 1) * (u[2] - 0.5 * u[0] * speed * speed)

    def flux(u):
        r, v, p = primitive(u)
        return jnp.stack([r * v, r * v * v + p, v * (u[2] + p)])

    def sound(u):
        r, _, p = primitive(u)
        return jnp.sqrt(gamma * jnp.maximum(p, 1e-6) / r)

    def rate(u):
        a, b = _fifth_order(u, n), _fifth_order(u[:, ::-1], n)[:, ::-1]
        slow = jnp.minimum(a[1] / a[0] - sound(a), b[1] / b[0] - sound(b))
        fast = jnp.maximum(a[1] / a[0] + sound(a), b[1] / b[0] + sound(b))
        between = (fast * flux(a) - slow * flux(b) + slow * fast * (b - a)) / (fast - slow)
        face = jnp.where(slow >= 0, flux(a), jnp.where(fast <= 0, flux(b), between))
        return -(face[:, 1:] - face[:, :-1]) * n

    def step(carry):
        u, t, k = carry
        dt = jnp.minimum(0.3 / n / jnp.max(jnp.abs(u[1] / u[0]) + sound(u)), end - t)
        v = u + dt * rate(u)
        w = 0.75 * u + 0.25 * (v + dt * rate(v))
        return u / 3 + 2 / 3 * (w + dt * rate(w)), t + dt, k + 1

    return jax.jit(lambda u: lax.while_loop(lambda c: c[1] < end, step, (u, 0.0, 0)))(state)
