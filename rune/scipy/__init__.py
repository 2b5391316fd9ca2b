"""rune.scipy: SciPy's names with JAX's rules."""

from rune.scipy import fft as fft
