"""Calls of rune.scipy.fft: cosine and sine transforms of every type, length and norm."""

from __future__ import annotations

from tests.numpy.fourier_cases import z
from tests.numpy.spelling import case, f, named

_NAMES = ("dct", "idct", "dst", "idst")
_FORGOTTEN = {"c*": "SciPy forgets `orthogonalize` where numbers are complex"}
TRANSFORMS = [
    *[
        case(
            f"fft.{name} {type} of {n}",
            lambda sp, x, name=name, type=type: getattr(sp.fft, name)(x, type),
            f(2, n),
            module="scipy",
        )
        for name in _NAMES
        for type in (1, 2, 3, 4)
        for n in (2, 5, 8)
    ],
    *[
        case(
            f"fft.{name} {type} {norm}",
            lambda sp, x, name=name, type=type, norm=norm: getattr(sp.fft, name)(x, type, norm=norm, axis=0),
            f(6, 2),
            module="scipy",
        )
        for name in _NAMES
        for type in (1, 2, 3, 4)
        for norm in ("ortho", "forward", "backward")
    ],
    *[
        case(
            f"fft.{name}n {type}",
            lambda sp, x, name=name, type=type: getattr(sp.fft, f"{name}n")(x, type, axes=(0, 2)),
            f(3, 2, 4),
            module="scipy",
        )
        for name in _NAMES
        for type in (1, 2, 3, 4)
    ],
    case("fft.dctn of sizes", lambda sp, x: sp.fft.dctn(x, s=(5, 2), norm="ortho"), f(3, 4), module="scipy"),
    case("fft.dct padded", lambda sp, x: sp.fft.dct(x, n=7), f(4), module="scipy"),
    case("fft.dst cut", lambda sp, x: sp.fft.dst(x, n=3), f(4), module="scipy"),
    case(
        "fft.dct orthogonal", lambda sp, x: sp.fft.dct(x, orthogonalize=True), f(4), module="scipy", without=_FORGOTTEN
    ),
    case(
        "fft.idct not orthogonal",
        lambda sp, x: sp.fft.idct(x, norm="ortho", orthogonalize=False),
        f(4),
        module="scipy",
        without=_FORGOTTEN,
    ),
    case("fft.dct of complex numbers", lambda sp, x: sp.fft.dct(x), z(5), module="scipy"),
    *named("fft.fft fft.ifft fft.irfft fft.hfft", z(2, 5), module="scipy"),
    *named("fft.rfft fft.ihfft fft.fftshift fft.ifftshift", f(2, 6), module="scipy"),
    *named(
        "fft.fft2 fft.ifft2 fft.fftn fft.ifftn fft.irfft2 fft.irfftn fft.hfft2 fft.hfftn", z(2, 3, 4), module="scipy"
    ),
    *named("fft.rfft2 fft.rfftn fft.ihfft2 fft.ihfftn", f(2, 3, 4), module="scipy"),
    case("fft.fftfreq", lambda sp: (sp.fft.fftfreq(5), sp.fft.rfftfreq(6, 0.1)), module="scipy"),
    case(
        "fft.next_fast_len",
        lambda sp: [sp.fft.next_fast_len(n, real) for n in (1, 17, 1021, 4099) for real in (False, True)],
        module="scipy",
    ),
    case(
        "fft.prev_fast_len",
        lambda sp: [sp.fft.prev_fast_len(n, real) for n in (1, 17, 1021, 4099) for real in (False, True)],
        module="scipy",
    ),
]
