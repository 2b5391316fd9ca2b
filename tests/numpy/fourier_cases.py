"""Calls of Fourier transforms, polynomials, windows, and functions of sampled signals."""

from __future__ import annotations

from typing import Any

from tests.numpy.spelling import Spec, case, f, i, named, pos


def z(*shape: int) -> Spec:
    """Complex numbers."""
    return Spec("z", shape)


FOURIER = [
    *named("fft.fft fft.ifft fft.irfft fft.hfft", z(2, 5)),
    *named("fft.rfft fft.ihfft fft.fft fft.rfftn fft.fftshift fft.ifftshift", f(3, 6)),
    *named("fft.fft2 fft.ifft2 fft.fftn fft.ifftn fft.irfft2 fft.irfftn", z(2, 3, 4)),
    *named("fft.rfft2 fft.rfftn", f(2, 3, 4)),
    *[
        case(f"fft.{name} {norm}", lambda xp, x, name=name, norm=norm: getattr(xp.fft, name)(x, norm=norm), z(5))
        for name in ("fft", "ifft", "irfft", "hfft")
        for norm in ("ortho", "forward", "backward")
    ],
    *[
        case(f"fft.{name} {norm}", lambda xp, x, name=name, norm=norm: getattr(xp.fft, name)(x, norm=norm), f(6))
        for name in ("rfft", "ihfft", "rfftn")
        for norm in ("ortho", "forward", "backward")
    ],
    *[
        case(f"fft.{name} of length {n}", lambda xp, x, name=name, n=n: getattr(xp.fft, name)(x, n, axis=0), z(4, 2))
        for name in ("fft", "ifft", "irfft", "hfft")
        for n in (1, 3, 7)
    ],
    case("fft.rfft cut", lambda xp, x: xp.fft.rfft(x, 3, 0), f(4, 2)),
    case("fft.rfft padded", lambda xp, x: xp.fft.rfft(x, 7, 0), f(4, 2)),
    case("fft.fftn of some axes", lambda xp, x: xp.fft.fftn(x, axes=(2, 0)), z(2, 3, 4)),
    case("fft.fftn of sizes", lambda xp, x: xp.fft.fftn(x, (2, 6), axes=(0, 1)), z(2, 3, 4)),
    case("fft.rfftn of some axes", lambda xp, x: xp.fft.rfftn(x, axes=(2, 0)), f(3, 2, 4)),
    case("fft.irfftn of sizes", lambda xp, x: xp.fft.irfftn(x, (4, 5), axes=(1, 0)), z(3, 4)),
    case("fft.irfftn ortho", lambda xp, x: xp.fft.irfftn(x, norm="ortho"), z(3, 4)),
    case("fft.fft of integers", lambda xp, x: xp.fft.fft(x), i(5), smooth=False),
    case("fft.fftfreq", lambda xp: (xp.fft.fftfreq(6, 0.1), xp.fft.fftfreq(7))),
    case("fft.rfftfreq", lambda xp: (xp.fft.rfftfreq(6, 0.1), xp.fft.rfftfreq(7))),
    case("fft.fftshift of an axis", lambda xp, x: xp.fft.fftshift(x, 1), f(2, 5)),
    case("fft.ifftshift of an axis", lambda xp, x: xp.fft.ifftshift(x, (1, 0)), f(2, 5)),
]

POLYNOMIALS = [
    *named("poly", f(4)),
    case("poly of complex roots", lambda xp, x: xp.poly(x), z(3)),
    case("poly of a matrix", lambda xp, x: xp.poly(x), f(3, 3), slack=4.0, plain=True),
    # Eigenvalues come in any order, so what all of them say together is compared.
    case("roots", lambda xp, p: _symmetric(xp, xp.roots(p)), pos(5), static=True, smooth=False, plain=True),
    case(
        "roots among zeros",
        lambda xp, p: _symmetric(xp, xp.roots(xp.concatenate([0 * p, p, 0 * p]))),
        pos(3),
        static=True,
        smooth=False,
        plain=True,
    ),
    case("polyfit", lambda xp, x, y: xp.polyfit(x, y, 2), f(7), f(7), slack=20.0, plain=True),
    case(
        "polyfit of columns, weighted",
        lambda xp, x, y, w: xp.polyfit(x, y, 3, w=w),
        f(9),
        f(9, 2),
        pos(9),
        slack=50.0,
        plain=True,
    ),
    case(
        "polyfit in full", lambda xp, x, y: list(xp.polyfit(x, y, 1, full=True)[:4]), f(7), f(7), slack=20.0, plain=True
    ),
    case(
        "polyfit with a covariance", lambda xp, x, y: xp.polyfit(x, y, 1, cov=True), f(7), f(7), slack=20.0, plain=True
    ),
    case(
        "polyfit with an unscaled covariance",
        lambda xp, x, y: xp.polyfit(x, y, 1, cov="unscaled"),
        f(7),
        f(7),
        slack=20.0,
        plain=True,
    ),
    *named("polyadd polysub polymul", f(4), f(2)),
    *named("polyadd polysub", i(2), i(4), smooth=False),
    case("polymul of integers", lambda xp, x, y: xp.polymul(x + 10, y + 10), i(2), i(4), smooth=False),
    *named("polyval", f(4), f(2, 3)),
    *named("polyder polyint", f(4)),
    case("polydiv", lambda xp, u, v: xp.polydiv(u, v)[0], f(5), pos(3)),
    # NumPy cuts leading zeros off, so what is divided is put together again.
    case(
        "polydiv, and back",
        lambda xp, u, v: xp.polyadd(xp.polymul(xp.polydiv(u, v)[0], v), xp.polydiv(u, v)[1]),
        f(5),
        pos(3),
    ),
    case("polydiv by a longer one", lambda xp, u, v: xp.polydiv(u, v), f(2), pos(3)),
    case("polyval of a number", lambda xp, p: xp.polyval(p, 2.0), f(8)),
    case("polyder twice", lambda xp, p: xp.polyder(p, 2), f(5)),
    case("polyder of integers", lambda xp, p: xp.polyder(p), i(5), smooth=False),
    case("polyder of a constant", lambda xp, p: xp.polyder(p, 3), f(2), smooth=False),
    case("polyint twice", lambda xp, p: xp.polyint(p, 2, [1.0, 2.0]), f(3)),
    case("polyint with a constant", lambda xp, p: xp.polyint(p, 2, 3.0), f(3)),
    case("vander", lambda xp, x: xp.vander(x), f(4)),
    case("vander increasing", lambda xp, x: xp.vander(x, 5, increasing=True), f(3)),
    case("vander of no columns", lambda xp, x: xp.vander(x, 0), f(3), smooth=False),
]


def _symmetric(xp: Any, roots: Any) -> Any:
    """Sums of powers of roots, and how many there are."""
    return [roots.shape[0], *(xp.sum(roots**k).real for k in (1, 2, 3))]


_MODES = ("full", "same", "valid")
SIGNALS = [
    *[
        case(
            f"{name} {mode} {m}, {n}", lambda xp, x, y, name=name, mode=mode: getattr(xp, name)(x, y, mode), f(m), f(n)
        )
        for name in ("convolve", "correlate")
        for mode in _MODES
        for m, n in ((5, 3), (4, 4), (2, 5), (6, 1))
    ],
    case("convolve", lambda xp, x, y: xp.convolve(x, y), i(5), i(2), smooth=False),
    case("correlate", lambda xp, x, y: xp.correlate(x, y), z(5), z(2)),
    case("interp", lambda xp, x, y: xp.interp(x, xp.arange(-2.0, 3.0), y), f(2, 4), f(5)),
    case("interp outside", lambda xp, x, p, y: xp.interp(x, xp.cumsum(p), y, left=-1.0, right=7.0), f(6), pos(3), f(3)),
    case("interp with a period", lambda xp, x, p, y: xp.interp(x, p, y, period=1.5), f(6), pos(4), f(4)),
    case("interp through one point", lambda xp, x, y: xp.interp(x, xp.zeros(1), y), f(6), f(1)),
    *named("gradient trapezoid", f(5)),
    *named("gradient trapezoid", f(3, 4)),
    case("gradient of an axis", lambda xp, x: xp.gradient(x, 0.5, axis=1, edge_order=2), f(2, 5)),
    case("gradient at places", lambda xp, x, p: xp.gradient(x, xp.cumsum(p)), f(5), pos(5)),
    case(
        "gradient at places, second order",
        lambda xp, x, p: xp.gradient(x, 2.0, xp.cumsum(p), edge_order=2),
        f(3, 4),
        pos(4),
    ),
    case("trapezoid at places", lambda xp, y, x: xp.trapezoid(y, x, axis=0), f(4, 2), f(4)),
    case("trapezoid of distances", lambda xp, y, x: xp.trapezoid(y, x), f(2, 4), f(2, 4)),
    case("trapezoid by dx", lambda xp, y: xp.trapezoid(y, dx=0.5), f(4)),
    case("unwrap", lambda xp, x: xp.unwrap(3 * x), f(2, 6)),
    case("unwrap an axis", lambda xp, x: xp.unwrap(x, 2.0, axis=0, period=3.0), f(6, 2)),
    case("unwrap integers", lambda xp, x: xp.unwrap(x, period=5), i(9), smooth=False),
    case("unwrap integers by an even period", lambda xp, x: xp.unwrap(x, period=4), i(9), smooth=False),
]

WINDOWS = [
    *[
        case(f"{name} of {size}", lambda xp, name=name, size=size: getattr(xp, name)(size))
        for name in ("bartlett", "blackman", "hamming", "hanning")
        for size in (0, 1, 2, 7, 8)
    ],
    *[case(f"kaiser of {size}", lambda xp, size=size: xp.kaiser(size, 8.6)) for size in (0, 1, 9)],
    case("i0", lambda xp, x: xp.i0(3 * x), f(20)),
    case("i0 far out", lambda xp, x: xp.i0(20 * x) * xp.exp(-abs(20 * x)), f(20), plain=True),
]

SAMPLED = [*FOURIER, *POLYNOMIALS, *SIGNALS, *WINDOWS]
