"""Whole programs that estimate, conserve and select: filters, lattices, updates in every mode."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def _normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def kalman_filter_in_square_roots():
    """Factors of covariances by QR, a smoother backwards, and the likelihood's gradient."""
    transition, observe = jnp.eye(4) + 0.1 * jnp.eye(4, k=2), jnp.eye(3, 4)

    def filtered(noise, measurements):
        def step(state, y):
            mean, factor = state
            mean = transition @ mean
            factor = jnp.abs(jnp.linalg.qr(jnp.concatenate([(transition @ factor).T, noise.T]), mode="r")).T
            joint = jnp.block([[0.3 * jnp.eye(3), observe @ factor], [jnp.zeros((4, 3)), factor]])
            lower = jnp.linalg.qr(joint.T, mode="r").T
            head, gain, behind = lower[:3, :3], lower[3:, :3], lower[3:, 3:]
            e = lax.linalg.triangular_solve(head, (y - observe @ mean)[:, None], left_side=True, lower=True)[:, 0]
            likelihood = -0.5 * jnp.sum(e**2) - jnp.sum(jnp.log(jnp.abs(jnp.diag(head))))
            mean = mean + gain @ e
            return (mean, behind), (mean, behind @ behind.T, likelihood)

        _, (means, covariances, likelihoods) = lax.scan(step, (jnp.zeros(4), jnp.eye(4)), measurements)

        def back(state, now):
            (mean_after, covariance_after), (mean, covariance) = state, now
            predicted = transition @ covariance @ transition.T + noise @ noise.T
            gain = jnp.linalg.solve(predicted, transition @ covariance).T
            mean = mean + gain @ (mean_after - transition @ mean)
            covariance = covariance + gain @ (covariance_after - predicted) @ gain.T
            return (mean, covariance), (mean, jnp.diag(covariance))

        smoothed = lax.scan(back, (means[-1], covariances[-1]), (means[:-1], covariances[:-1]), reverse=True)[1]
        return likelihoods.sum(), (means, smoothed)

    noise, measurements = 0.5 * jnp.eye(4), _normal(1, 17, 3)
    return jax.jit(jax.value_and_grad(filtered, (0, 1), has_aux=True))(noise, measurements)


def charges_in_a_periodic_box():
    """Ewald's sums: erfc in space, complex phases in waves, and forces through both."""
    positions = np.random.default_rng(4).uniform(size=(7, 3)).astype(np.float32)
    charges = _normal(5, 7)
    charges = charges - charges.mean()
    waves = 2 * jnp.pi * jnp.mgrid[-3:4, -3:4, -3:4].reshape(3, -1).T
    squares = jnp.sum(waves**2, -1)

    def energy(positions, width):
        offsets = positions[:, None] - positions
        offsets = offsets - jnp.round(offsets)
        square = jnp.sum(offsets**2, -1)
        apart = square > 1e-8
        distance = jnp.sqrt(jnp.where(apart, square, 1.0))
        near = jnp.where(apart, charges[:, None] * charges * jax.scipy.special.erfc(width * distance) / distance, 0.0)
        phases = jnp.sum(charges * jnp.exp(1j * (waves @ positions.T)), -1)
        damping = jnp.where(squares == 0, 0.0, jnp.exp(-squares / (4 * width**2)) / jnp.where(squares == 0, 1, squares))
        own_charge = width / jnp.sqrt(jnp.pi) * jnp.sum(charges**2)
        return 0.5 * jnp.sum(near) + 2 * jnp.pi * jnp.sum(damping * jnp.abs(phases) ** 2) - own_charge

    return jax.jit(jax.value_and_grad(energy, (0, 1)))(positions, 5.0)


def waves_that_break():
    """Burgers' equation by limited slopes and Godunov's flux: slopes through where and roll."""

    def minmod(a, b):
        return jnp.where(a * b > 0, jnp.where(jnp.abs(a) < jnp.abs(b), a, b), 0.0)

    def change(u):
        slope = minmod(jnp.roll(u, -1) - u, u - jnp.roll(u, 1))
        lower, upper = u + slope / 2, jnp.roll(u - slope / 2, -1)
        shock = jnp.maximum(lower**2, upper**2) / 2
        fan = jnp.where(lower > 0, lower**2 / 2, jnp.where(upper < 0, upper**2 / 2, 0.0))
        flux = jnp.where(lower > upper, shock, fan)
        return jnp.roll(flux, 1) - flux

    @jax.jit
    def run(u):
        def step(u, _):
            once = u + 0.1 * change(u)
            twice = 0.75 * u + 0.25 * (once + 0.1 * change(once))
            u = u / 3 + 2 / 3 * (twice + 0.1 * change(twice))
            return u, (u.max(), jnp.abs(jnp.diff(u)).sum())

        return lax.scan(step, u, None, 8)

    u = _normal(6, 65)
    return run(u), jax.grad(lambda u: jnp.sum(run(u)[0] ** 3))(u)


def places_in_every_mode():
    """Repeated, negative and distant indices; windows that do not fit; columns of truth values."""
    x, v = jnp.asarray(_normal(7, 3, 2)), jnp.asarray(_normal(8, 9, 2))
    i = jnp.array([0, 1, 1, -1, -4, 8, 2**31 - 1, -(2**31), 2])

    def updated(x, v):
        each = {}
        for mode in ("drop", "fill", "clip"):
            at = x.at[i]
            each[mode] = [getattr(at, name)(v, mode=mode) for name in ("add", "subtract", "max", "min", "multiply")]
        wrapped = [x[i], x[i, 0], jnp.take(x, i, axis=0, mode="wrap"), jnp.take(x, i, axis=0, mode="clip")]
        filled = [jnp.take(x, i, axis=0), x.at[i].get(mode="fill", fill_value=-3.0), jnp.take(x.astype(jnp.uint8), i)]
        windows = [lax.dynamic_slice(x, (i[5], i[3]), (2, 1)), lax.dynamic_update_slice(x, v[:2], (i[6], i[7]))]
        slices = [x.at[::-1].set(1), x.at[3:].set(1), x.at[1:0].add(9), x.at[..., 0].set(3), x.at[None, 0].set(4)]
        return each, wrapped, filled, windows, slices

    slope = jax.grad(lambda x, v: (x.at[i].add(v**2, mode="drop") ** 2).sum() + jnp.sum(x[i] ** 3), (0, 1))
    return jax.jit(updated)(x, v), slope(x, v), jax.vmap(lambda i: x.at[i].min(-9.0))(i)


def ties_and_sets_in_order():
    """Sorts, ranks, sets of a size and quantiles among ties, signed zeros, NaN and infinities."""
    x = jnp.array([0.0, -0.0, 1, 1, -1, np.nan, np.inf, -np.inf, 2, 1, np.nan, 0.5, -0.0])
    k = jnp.array([3, 1, 1, 0, 2, 3, 3, 1, 0, 2, 2, 1, 0])
    finite = jnp.where(jnp.isfinite(x), x, 0)
    orders = [jnp.argsort(x), jnp.argsort(x, descending=True), jnp.lexsort((x, k)), jnp.lexsort((k, x))]
    several = lax.sort((k, x, jnp.arange(13)), num_keys=2), lax.top_k(x, 4), lax.top_k(k, 13)
    sides = [jnp.searchsorted(jnp.sort(x), x, side=s, method=m) for s in ("left", "right") for m in ("scan", "sort")]
    sets = [
        jnp.unique(x, size=11, fill_value=-7, return_index=True, return_inverse=True, return_counts=True),
        jnp.unique(jnp.stack([k, k % 2], 1), axis=0, size=6, fill_value=9),
        jnp.union1d(k, jnp.array([9, 1]), size=8),
        jnp.setdiff1d(k, jnp.array([1, 2]), size=3, fill_value=-1),
        jnp.setxor1d(k, jnp.array([1, 7]), size=6, fill_value=-1),
    ]
    running = [lax.cummax(x), lax.cummin(x, reverse=True), lax.cumlogsumexp(x, reverse=True), jnp.nancumprod(x)]
    places = [x.argmax(), x.argmin(), jnp.nanargmin(x), jnp.median(x), jnp.nanmedian(x), jnp.fmin(x, x[::-1])]
    bins = [jnp.digitize(x, jnp.array([1.0, 0, -1]), right=True), jnp.histogram(x, jnp.array([-1.0, 0, 1, 2]))]
    quantiles = [jnp.quantile(finite, jnp.array([0, 0.3, 1]), method=m) for m in ("lower", "nearest", "midpoint")]
    return orders, several, sides, sets, running, places, bins, quantiles, jax.scipy.stats.rankdata(finite)


def totals_of_nothing():
    """Axes without elements, under sums, products, loops, gathers and factorisations."""
    e, z = jnp.zeros((0, 3)), jnp.zeros((4, 0))
    totals = [e.sum(0), e.prod(1), e.mean(0), z.sum(1), jnp.all(z, 1), jnp.max(e, 0, initial=-1.0), e.max(1)]
    products = [z @ z.T, z.T @ jnp.ones((4, 3)), jnp.kron(e, z), jnp.einsum("ij,kj->ik", z, z), jnp.outer(e, e)]
    matrices = [jnp.linalg.det(jnp.zeros((0, 0))), jnp.linalg.inv(jnp.zeros((2, 0, 0))), jnp.linalg.norm(z, axis=1)]
    loops = [
        lax.scan(lambda c, r: (c + r.sum(), r), 0.0, e),
        lax.map(lambda r: r * 2, e),
        jax.vmap(lambda r: r.sum())(e),
        lax.fori_loop(3, 1, lambda i, c: c + 1.0, 0.0),
        lax.associative_scan(jnp.add, e),
    ]
    indexed = [
        jnp.ones((2, 3)).at[jnp.zeros(0, int)].add(e),
        jnp.take(jnp.ones((2, 3)), jnp.zeros(0, int), axis=0),
        jax.ops.segment_max(e, jnp.zeros(0, int), 2),
        jnp.bincount(jnp.zeros(0, int), length=3),
        jnp.unique(jnp.zeros(0), size=2, fill_value=3),
        jnp.histogram(e, 3, range=(0.0, 1.0)),
        lax.reduce_window(jnp.zeros((3, 0)), 0.0, lax.add, (2, 1), (1, 1), "VALID"),
    ]
    slopes = jax.grad(lambda e: jax.nn.logsumexp(e, 0, b=2.0).sum() + e.sum())(e), jax.grad(lambda z: z.sum() ** 2)(z)
    return totals, products, matrices, loops, indexed, slopes
