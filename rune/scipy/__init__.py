"""rune.scipy: SciPy's names with JAX's rules."""

from rune.scipy import fft as fft
from rune.scipy import linalg as linalg
from rune.scipy import signal as signal
from rune.scipy import special as special
from rune.scipy import stats as stats
