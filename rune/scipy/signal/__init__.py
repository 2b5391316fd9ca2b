"""rune.scipy.signal: SciPy's names for filters, convolutions and spectra.

convolutions  convolve, fftconvolve, oaconvolve, correlate, convolve2d, correlate2d, …
filtering     lfilter, lfilter_zi, filtfilt, sosfilt, savgol_filter, savgol_coeffs
spectral      stft, istft, csd, welch, periodogram, coherence, spectrogram
trends        detrend, hilbert, resample
windows       get_window; a module with a function for each window

Not here: the design of filters and systems, wavelets, and functions whose results have a number of
elements that depends on values (find_peaks).
"""

import typing as _typing

from rune.absent import of as _absent
from rune.listing import names as _names
from rune.scipy.signal import windows as windows
from rune.scipy.signal.convolutions import (
    choose_conv_method,
    convolve,
    convolve2d,
    correlate,
    correlate2d,
    correlation_lags,
    fftconvolve,
    oaconvolve,
)
from rune.scipy.signal.filtering import filtfilt, lfilter, lfilter_zi, savgol_coeffs, savgol_filter, sosfilt
from rune.scipy.signal.spectral import coherence, csd, istft, periodogram, spectrogram, stft, welch
from rune.scipy.signal.trends import detrend, hilbert, resample
from rune.scipy.signal.windows import get_window

__all__ = ["choose_conv_method", "coherence", "convolve", "convolve2d", "correlate", "correlate2d"]
__all__ += ["correlation_lags", "csd", "detrend", "fftconvolve", "filtfilt", "get_window", "hilbert", "istft"]
__all__ += ["lfilter", "lfilter_zi", "oaconvolve", "periodogram", "resample", "savgol_coeffs", "savgol_filter"]
__all__ += ["sosfilt", "spectrogram", "stft", "welch", "windows"]

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)

__dir__ = _names(globals())
