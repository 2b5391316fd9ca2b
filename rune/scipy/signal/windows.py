"""Windows: weights of samples before a transform. M points -> [M]; periodic if not `sym`.

A window of a given number of points is a constant, so the host computes it in f64 and rounds it
once to the dtype of the samples; the public functions return f32.
window_shapes.py has the formulas and their sources.
"""

from __future__ import annotations

from collections.abc import Sequence

from rune.array import Array, as_array
from rune.listing import names as _names
from rune.scipy.signal.window_shapes import Window, chosen_window, window_values

__all__ = ["barthann", "bartlett", "blackman", "blackmanharris", "bohman", "boxcar", "cosine", "exponential"]
__all__ += ["flattop", "gaussian", "general_cosine", "general_gaussian", "general_hamming", "get_window", "hamming"]
__all__ += ["hann", "kaiser", "lanczos", "nuttall", "parzen", "triang", "tukey"]


def get_window(window: Window, Nx: int, fftbins: bool = True) -> Array:
    """A window of Nx points by its name, or (name, *parameters) if it has parameters.

    fftbins: whether it is periodic, for a transform; otherwise symmetric, for the design of a
             filter.
    Shapes: [Nx]. Types: f32.
    Errors: ArgumentError for an unknown name, or missing parameters.

    >>> from rune.scipy import signal
    >>> signal.get_window("hann", 4), signal.get_window(("kaiser", 0.0), 2)
    (Array([0. , 0.5, 1. , 0.5], f32[4], cpu:0), Array([1., 1.], f32[2], cpu:0))
    """
    return as_array(chosen_window(window, Nx, fftbins=fftbins))


# --- one function for each ------------------------------------------------------------------------


def boxcar(M: int, sym: bool = True) -> Array:
    """No weighting: ones.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.boxcar(2)
    Array([1., 1.], f32[2], cpu:0)
    """
    return as_array(window_values("boxcar", M, sym=sym))


def triang(M: int, sym: bool = True) -> Array:
    """A triangle whose ends are not zero.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.triang(3)
    Array([0.5, 1. , 0.5], f32[3], cpu:0)
    """
    return as_array(window_values("triang", M, sym=sym))


def parzen(M: int, sym: bool = True) -> Array:
    """Piecewise cubic, in four pieces.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.parzen(3).round(4)
    Array([0.0741, 1.    , 0.0741], f32[3], cpu:0)
    """
    return as_array(window_values("parzen", M, sym=sym))


def bohman(M: int, sym: bool = True) -> Array:
    """The convolution of two half-cycles of a cosine.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.bohman(3).round(4)
    Array([0., 1., 0.], f32[3], cpu:0)
    """
    return as_array(window_values("bohman", M, sym=sym))


def blackman(M: int, sym: bool = True) -> Array:
    """Three cosine terms.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.blackman(3).round(4) + 0
    Array([0., 1., 0.], f32[3], cpu:0)
    """
    return as_array(window_values("blackman", M, sym=sym))


def nuttall(M: int, sym: bool = True) -> Array:
    """Four cosine terms with the lowest side lobes.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.nuttall(3).round(4)
    Array([4.e-04, 1.e+00, 4.e-04], f32[3], cpu:0)
    """
    return as_array(window_values("nuttall", M, sym=sym))


def blackmanharris(M: int, sym: bool = True) -> Array:
    """Four cosine terms.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.blackmanharris(3).round(4)
    Array([1.e-04, 1.e+00, 1.e-04], f32[3], cpu:0)
    """
    return as_array(window_values("blackmanharris", M, sym=sym))


def flattop(M: int, sym: bool = True) -> Array:
    """Five cosine terms, flat in the middle of the main lobe.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.flattop(3).round(4)
    Array([-4.e-04,  1.e+00, -4.e-04], f32[3], cpu:0)
    """
    return as_array(window_values("flattop", M, sym=sym))


def bartlett(M: int, sym: bool = True) -> Array:
    """A triangle that ends in zeros.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.bartlett(3)
    Array([0., 1., 0.], f32[3], cpu:0)
    """
    return as_array(window_values("bartlett", M, sym=sym))


def barthann(M: int, sym: bool = True) -> Array:
    """A triangle plus a cosine.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.barthann(3).round(4) + 0
    Array([0., 1., 0.], f32[3], cpu:0)
    """
    return as_array(window_values("barthann", M, sym=sym))


def hann(M: int, sym: bool = True) -> Array:
    """A raised cosine that ends in zeros.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.hann(3)
    Array([0., 1., 0.], f32[3], cpu:0)
    """
    return as_array(window_values("hann", M, sym=sym))


def hamming(M: int, sym: bool = True) -> Array:
    """A raised cosine on a pedestal.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.hamming(3).round(4)
    Array([0.08, 1.  , 0.08], f32[3], cpu:0)
    """
    return as_array(window_values("hamming", M, sym=sym))


def cosine(M: int, sym: bool = True) -> Array:
    """Half a cosine wave.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.cosine(2).round(4)
    Array([0.7071, 0.7071], f32[2], cpu:0)
    """
    return as_array(window_values("cosine", M, sym=sym))


def lanczos(M: int, sym: bool = True) -> Array:
    """The main lobe of sinc.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.lanczos(3).round(4) + 0
    Array([0., 1., 0.], f32[3], cpu:0)
    """
    return as_array(window_values("lanczos", M, sym=sym))


def tukey(M: int, alpha: float = 0.5, sym: bool = True) -> Array:
    """A plateau with cosine flanks; `alpha` is the share of the flanks.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.tukey(5)
    Array([0., 1., 1., 1., 0.], f32[5], cpu:0)
    """
    return as_array(window_values("tukey", M, alpha, sym=sym))


def kaiser(M: int, beta: float, sym: bool = True) -> Array:
    """I0(β sqrt(1 - x²)) / I0(β).

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.kaiser(3, 1.0).round(4)
    Array([0.7898, 1.    , 0.7898], f32[3], cpu:0)
    """
    return as_array(window_values("kaiser", M, beta, sym=sym))


def gaussian(M: int, std: float, sym: bool = True) -> Array:
    """A bell of standard deviation `std`, in samples.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.gaussian(3, 1.0).round(4)
    Array([0.6065, 1.    , 0.6065], f32[3], cpu:0)
    """
    return as_array(window_values("gaussian", M, std, sym=sym))


def general_gaussian(M: int, p: float, sig: float, sym: bool = True) -> Array:
    """A bell of width `sig` and exponent p; p = 1 is the normal density's shape.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.general_gaussian(3, 1.0, 1.0).round(4)
    Array([0.6065, 1.    , 0.6065], f32[3], cpu:0)
    """
    return as_array(window_values("general_gaussian", M, p, sig, sym=sym))


def general_hamming(M: int, alpha: float, sym: bool = True) -> Array:
    """`alpha` plus 1 - alpha times a cosine.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.general_hamming(3, 0.75)
    Array([0.5, 1. , 0.5], f32[3], cpu:0)
    """
    return as_array(window_values("general_hamming", M, alpha, sym=sym))


def general_cosine(M: int, a: Sequence[float], sym: bool = True) -> Array:
    """A sum of cosines with weights `a`.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.general_cosine(3, (0.5, 0.5))
    Array([0., 1., 0.], f32[3], cpu:0)
    """
    return as_array(window_values("general_cosine", M, a, sym=sym))


def exponential(M: int, center: float | None = None, tau: float = 1.0, sym: bool = True) -> Array:
    """exp(-|n - center| / tau); only a symmetric one may have another center.

    Shapes: [M]. Types: f32.
    Errors: ArgumentError if `M` is not an integer.
    Source: Harris 1978, Proceedings of the IEEE 66(1).

    >>> from rune.scipy.signal import windows
    >>> windows.exponential(3).round(4)
    Array([0.3679, 1.    , 0.3679], f32[3], cpu:0)
    """
    return as_array(window_values("exponential", M, center, tau, sym=sym))


__dir__ = _names(globals())
