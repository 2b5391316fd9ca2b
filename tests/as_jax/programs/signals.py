"""Whole programs of people with signals and pictures."""

import functools

import jax
import jax.numpy as jnp
import jax.scipy.ndimage
import jax.scipy.signal
import numpy as np
from jax import lax


def spectrogram_and_inverse():
    t = jnp.arange(1003) / 500
    x = jnp.sin(2 * jnp.pi * (4 + 3 * t) * t) + 0.2 * jnp.cos(2 * jnp.pi * 11 * t)
    f, tt, z = jax.scipy.signal.stft(x, fs=500.0, nperseg=64, noverlap=48)
    _, y = jax.scipy.signal.istft(z, fs=500.0, nperseg=64, noverlap=48)
    fw, p = jax.scipy.signal.welch(x, fs=500.0, nperseg=100)
    return f, tt, jnp.abs(z), y, fw, p, jnp.abs(z).argmax(0)


def filters_by_scan_and_by_convolution():
    rng = np.random.default_rng(13)
    x = jnp.asarray(rng.normal(size=257), jnp.float32)
    b, a = jnp.array([0.2, 0.3, 0.2]), jnp.array([1.0, -0.5, 0.25])

    def direct(z, u):
        y = b[0] * u + z[0]
        return jnp.array([b[1] * u - a[1] * y + z[1], b[2] * u - a[2] * y]), y

    y = lax.scan(direct, jnp.zeros(2), x)[1]
    h = lax.scan(direct, jnp.zeros(2), jnp.zeros(64).at[0].set(1.0))[1]
    back = lax.scan(direct, jnp.zeros(2), y[::-1])[1][::-1]
    return (
        y,
        jnp.convolve(x, h)[:257],
        back,
        jax.scipy.signal.fftconvolve(x, h, mode="same"),
        jax.scipy.signal.detrend(y),
    )


def haar_wavelets():
    rng = np.random.default_rng(13)
    x = jnp.asarray(rng.normal(size=(64,)), jnp.float32)

    def analyse(x):
        out = []
        while x.shape[0] > 1:
            a, d = (x[::2] + x[1::2]) / jnp.sqrt(2.0), (x[::2] - x[1::2]) / jnp.sqrt(2.0)
            out.append(d)
            x = a
        return x, out[::-1]

    def synthesise(a, ds):
        for d in ds:
            a = jnp.stack([(a + d), (a - d)], -1).ravel() / jnp.sqrt(2.0)
        return a

    a, ds = jax.jit(analyse)(x)
    ds = [jnp.sign(d) * jnp.maximum(jnp.abs(d) - 0.3, 0) for d in ds]
    return a, ds, synthesise(a, ds), jax.jacobian(lambda x: analyse(x)[0])(x)


def fft_convolution_gradients():
    rng = np.random.default_rng(13)
    x = jnp.asarray(rng.normal(size=(3, 50)), jnp.float32)
    k = jnp.asarray(rng.normal(size=11), jnp.float32)

    def f(k, x):
        n = x.shape[-1] + k.shape[-1] - 1
        y = jnp.fft.irfft(jnp.fft.rfft(x, n) * jnp.fft.rfft(k, n), n)
        return jnp.sum(jnp.tanh(y) ** 2)

    H = jnp.fft.fftshift(jnp.fft.fftn(x))
    return (
        jax.value_and_grad(f, (0, 1))(k, x),
        H,
        jnp.angle(H),
        jnp.unwrap(jnp.angle(H), axis=-1),
        jax.grad(lambda x: jnp.sum(jnp.abs(jnp.fft.fft(x)) ** 1.5))(x[0]),
    )


def canny_like_edges():
    rng = np.random.default_rng(13)
    img = jnp.asarray(rng.random((29, 31)), jnp.float32)
    g = jnp.exp(-0.5 * jnp.arange(-2, 3.0) ** 2)
    g = g / g.sum()
    sm = jax.scipy.signal.convolve2d(img, g[:, None] * g[None], mode="same", boundary="fill")
    gy, gx = jnp.gradient(sm)
    mag, ang = jnp.hypot(gx, gy), jnp.arctan2(gy, gx)
    q = jnp.round(ang / (jnp.pi / 4)).astype(int) % 4
    pad = jnp.pad(mag, 1, mode="edge")
    off = jnp.array([[0, 1], [1, 1], [1, 0], [1, -1]])
    ii, jj = jnp.meshgrid(jnp.arange(29), jnp.arange(31), indexing="ij")
    o = off[q]
    a = pad[ii + 1 + o[..., 0], jj + 1 + o[..., 1]]
    b = pad[ii + 1 - o[..., 0], jj + 1 - o[..., 1]]
    nms = jnp.where((mag >= a) & (mag >= b), mag, 0)
    strong = nms > jnp.quantile(nms, 0.9)
    weak = nms > jnp.quantile(nms, 0.8)

    def grow(s):
        e, _ = s
        p = jnp.pad(e, 1)
        n = functools.reduce(jnp.logical_or, [p[i : i + 29, j : j + 31] for i in range(3) for j in range(3)])
        return (n & weak) | strong, e

    return mag, q, lax.while_loop(lambda s: (s[0] != s[1]).any(), grow, (strong, ~strong))[0]


def image_registration():
    y, x = jnp.mgrid[0:21, 0:23].astype(jnp.float32)
    src = jnp.exp(-((x - 10) ** 2 + 1.5 * (y - 9) ** 2) / 20)
    dst = jnp.exp(-((x - 11.3) ** 2 + 1.5 * (y - 8.2) ** 2) / 20)

    def warp(p):
        c, s = jnp.cos(p[2]), jnp.sin(p[2])
        yy, xx = c * (y - 10) - s * (x - 11) + 10 + p[0], s * (y - 10) + c * (x - 11) + 11 + p[1]
        return jax.scipy.ndimage.map_coordinates(src, [yy, xx], order=1, mode="constant")

    loss = lambda p: jnp.mean((warp(p) - dst) ** 2)

    @jax.jit
    def step(p, _):
        v, g = jax.value_and_grad(loss)(p)
        return p - 20 * g * jnp.array([1, 1, 0.01]), v

    p, vs = lax.scan(step, jnp.zeros(3), None, length=15)
    return (
        p,
        vs,
        jax.image.resize(src, (11, 40), "bilinear"),
        jax.image.resize(src, (42, 46), "cubic"),
        jax.image.resize(src, (9, 9), "nearest"),
    )


def median_and_morphology():
    rng = np.random.default_rng(13)
    x = jnp.asarray(rng.integers(0, 256, (19, 17)), jnp.uint8)
    p = jnp.pad(x, 1, mode="reflect")
    w = jnp.stack([p[i : i + 19, j : j + 17] for i in range(3) for j in range(3)])
    er = lax.reduce_window(x, jnp.uint8(255), lax.min, (3, 3), (1, 1), "SAME")
    di = lax.reduce_window(er, jnp.uint8(0), lax.max, (3, 3), (1, 1), "SAME")
    hist = jnp.bincount(x.ravel(), length=256)
    cdf = jnp.cumsum(hist)
    eq = jnp.round((cdf[x] - cdf.min()) / (x.size - cdf.min()) * 255).astype(jnp.uint8)
    integral = jnp.cumsum(jnp.cumsum(x.astype(jnp.int32), 0), 1)
    return (
        jnp.median(w, axis=0).astype(jnp.uint8),
        er,
        di,
        eq,
        integral,
        (x.astype(jnp.float32) / 255) ** 2.2,
        x + jnp.uint8(200),
        x.mean(),
        x // 7,
        jnp.right_shift(x, 3),
        x.astype(jnp.int8),
    )


def seam_carving():
    rng = np.random.default_rng(13)
    e = jnp.asarray(rng.random((14, 16)), jnp.float32)

    def row(c, r):
        p = jnp.pad(c, 1, constant_values=jnp.inf)
        s = jnp.stack([p[:-2], p[1:-1], p[2:]])
        c = s.min(0) + r
        return c, (c, s.argmin(0) - 1)

    last, (c, back) = lax.scan(row, e[0], e[1:])
    j = last.argmin()

    def up(j, b):
        return j + b[j], j

    first, path = lax.scan(up, j, back, reverse=True)
    seam = jnp.concatenate([first[None], path])
    keep = jnp.arange(15) + (jnp.arange(15) >= seam[:, None])
    return seam, jnp.take_along_axis(e, keep, 1)


def colour_spaces():
    rng = np.random.default_rng(13)
    rgb = jnp.asarray(rng.random((7, 9, 3)), jnp.float32)

    def hsv(c):
        mx, mn = c.max(), c.min()
        d = mx - mn
        r, g, b = c
        h = jnp.where(mx == r, ((g - b) / d) % 6, jnp.where(mx == g, (b - r) / d + 2, (r - g) / d + 4)) / 6
        return jnp.stack([jnp.where(d == 0, 0, h), jnp.where(mx == 0, 0, d / mx), mx])

    def back(c):
        h, s, v = c
        i = jnp.floor(h * 6)
        f = h * 6 - i
        p, q, t = v * (1 - s), v * (1 - f * s), v * (1 - (1 - f) * s)
        return jnp.stack(
            jnp.array([[v, t, p], [q, v, p], [p, v, t], [p, q, v], [t, p, v], [v, p, q]])[i.astype(int) % 6]
        )

    H = jnp.vectorize(hsv, signature="(c)->(c)")(rgb)
    lin = jnp.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return (
        H,
        jnp.apply_along_axis(back, -1, H),
        lin,
        jnp.einsum(
            "...c,dc->...d",
            lin,
            jnp.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]),
        ),
    )


def tomography_by_rays():
    n = 15
    ang = jnp.linspace(0, jnp.pi, 12, endpoint=False)
    y, x = jnp.mgrid[0:n, 0:n] - (n - 1) / 2
    img = ((x / 5) ** 2 + (y / 3) ** 2 < 1).astype(jnp.float32)

    def project(img):
        def one(a):
            c, s = jnp.cos(a), jnp.sin(a)
            yy, xx = s * x + c * y + (n - 1) / 2, c * x - s * y + (n - 1) / 2
            return jax.scipy.ndimage.map_coordinates(img, [yy, xx], 1).sum(0)

        return jax.vmap(one)(ang)

    sino = project(img)
    adj = jax.linear_transpose(project, img)
    (bp,) = adj(sino)

    def landweber(z, _):
        r = sino - project(z)
        return jnp.maximum(z + 0.005 * adj(r)[0], 0), jnp.sum(r**2)

    z, rs = lax.scan(landweber, jnp.zeros_like(img), None, length=10)
    return sino, bp, z, rs


def total_variation_denoising():
    rng = np.random.default_rng(13)
    x = jnp.asarray(np.repeat(rng.normal(size=6), 10) + 0.1 * rng.normal(size=60), jnp.float32)

    def body(s):
        u, p, i = s
        p = jnp.clip(p + 0.25 * jnp.diff(u), -0.4, 0.4)
        u = x + jnp.diff(p, prepend=0.0, append=0.0)
        return u, p, i + 1

    u, p, _ = lax.while_loop(lambda s: s[2] < 60, body, (x, jnp.zeros(59), 0))
    return (
        u,
        jnp.sum(jnp.abs(jnp.diff(u))),
        jnp.ediff1d(u, to_begin=0.0),
        jnp.piecewise(u, [u < 0, u > 1], [lambda v: -v, 1.0, lambda v: v**2]),
    )


def compressed_sensing_ista():
    rng = np.random.default_rng(13)
    A = jnp.asarray(rng.normal(size=(20, 51)), jnp.float32) / np.sqrt(20).astype(np.float32)
    z = jnp.zeros(51).at[jnp.array([3, 17, 40])].set(jnp.array([1.0, -2.0, 1.5]))
    y = A @ z
    L = jnp.linalg.norm(A, 2) ** 2
    soft = lambda v, t: jnp.sign(v) * jax.nn.relu(jnp.abs(v) - t)

    def fista(s, _):
        x, w, t = s
        x1 = soft(w - A.T @ (A @ w - y) / L, 0.01 / L)
        t1 = (1 + jnp.sqrt(1 + 4 * t**2)) / 2
        return (x1, x1 + (t - 1) / t1 * (x1 - x), t1), jnp.sum((x1 - z) ** 2)

    (x, _, _), err = lax.scan(fista, (jnp.zeros(51), jnp.zeros(51), 1.0), None, length=50)
    return x, err, L, jnp.linalg.cond(A), jnp.linalg.matrix_rank(A), jnp.linalg.pinv(A) @ y


def audio_features():
    x = jnp.sin(jnp.arange(2000.0) * 0.3) * jnp.exp(-jnp.arange(2000.0) / 900)
    frames = x[jnp.arange(0, 1600, 160)[:, None] + jnp.arange(400)] * jnp.hanning(400)
    spec = jnp.abs(jnp.fft.rfft(frames, 512)) ** 2
    mel = lambda f: 2595 * jnp.log10(1 + f / 700)
    pts = 700 * (10 ** (jnp.linspace(mel(0.0), mel(4000.0), 15) / 2595) - 1)
    f = jnp.linspace(0, 4000, 257)
    lo, mid, hi = pts[:-2, None], pts[1:-1, None], pts[2:, None]
    bank = jnp.maximum(0, jnp.minimum((f - lo) / (mid - lo), (hi - f) / (hi - mid)))
    e = jnp.log(spec @ bank.T + 1e-3)
    n = jnp.arange(13)
    dct = jnp.cos(jnp.pi * jnp.outer(n, n + 0.5) / 13)
    zc = (jnp.diff(jnp.signbit(frames), axis=1)).sum(1)
    ac = jnp.fft.irfft(jnp.abs(jnp.fft.rfft(frames, 1024)) ** 2)[:, :200]
    return (
        e,
        e @ dct.T,
        zc,
        ac[:, 15:].argmax(1),
        jax.scipy.fft.dct(e, norm="ortho"),
        20 * jnp.log10(jnp.max(jnp.abs(frames), 1)),
    )
