"""rune.scipy: SciPy's names with JAX's rules."""
