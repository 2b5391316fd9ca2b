"""rune.scipy: SciPy's names with JAX's rules."""

import typing as _typing

from rune.absent import of as _absent
from rune.scipy import cluster as cluster
from rune.scipy import fft as fft
from rune.scipy import integrate as integrate
from rune.scipy import interpolate as interpolate
from rune.scipy import linalg as linalg
from rune.scipy import ndimage as ndimage
from rune.scipy import optimize as optimize
from rune.scipy import signal as signal
from rune.scipy import sparse as sparse
from rune.scipy import spatial as spatial
from rune.scipy import special as special
from rune.scipy import stats as stats

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)
