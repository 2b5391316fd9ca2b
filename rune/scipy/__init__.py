"""rune.scipy: SciPy's names with JAX's rules."""

from rune.scipy import cluster as cluster
from rune.scipy import fft as fft
from rune.scipy import integrate as integrate
from rune.scipy import interpolate as interpolate
from rune.scipy import linalg as linalg
from rune.scipy import ndimage as ndimage
from rune.scipy import optimize as optimize
from rune.scipy import signal as signal
from rune.scipy import spatial as spatial
from rune.scipy import special as special
from rune.scipy import stats as stats
