"""rune.scipy.fft: SciPy's names for Fourier, cosine and sine transforms.

fft ifft rfft irfft hfft ihfft and their variants for two and n axes are those of `rune.numpy.fft`;
dct idct dst idst and their variants for n axes, of the types 1 to 4, are in trigonometric.py.
Not here: `fht`, whose kernel is a quotient of complex gamma functions; `workers`, `overwrite_x`
and `plan`, which have no meaning for compiled programs of immutable arrays.
"""

import typing as _typing

from rune.absent import of as _absent
from rune.listing import names as _names
from rune.numpy.fft import (
    fft,
    fft2,
    fftfreq,
    fftn,
    fftshift,
    hfft,
    ifft,
    ifft2,
    ifftn,
    ifftshift,
    ihfft,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftfreq,
    rfftn,
)
from rune.scipy.fft.hermitian import hfft2, hfftn, ihfft2, ihfftn
from rune.scipy.fft.lengths import next_fast_len, prev_fast_len
from rune.scipy.fft.trigonometric import dct, dctn, dst, dstn, idct, idctn, idst, idstn

__all__ = ["dct", "dctn", "dst", "dstn", "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn"]
__all__ += ["idct", "idctn", "idst", "idstn", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "ihfft2", "ihfftn"]
__all__ += ["irfft", "irfft2", "irfftn", "next_fast_len", "prev_fast_len", "rfft", "rfft2", "rfftfreq", "rfftn"]

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)

__dir__ = _names(globals())
