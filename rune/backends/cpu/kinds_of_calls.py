"""The modules that write the calls of a plan, imported for the first plan with a call of the
kind."""

from __future__ import annotations

from rune import locks

# Steps that run entry by entry.
bands = locks.late_module("rune.backends.cpu.bands")
# Matrix products.
dots = locks.late_module("rune.backends.cpu.dots")
# Factorisations.
factors = locks.late_module("rune.backends.cpu.factors")
# Fourier transforms.
transforms = locks.late_module("rune.backends.cpu.transforms")
# Calls of NumPy that native code may make instead.
library_calls = locks.late_module("rune.backends.cpu.library_calls")
# Sorts.
sorts = locks.late_module("rune.backends.cpu.sorts")
# Eigenvalues and singular values.
spectra = locks.late_module("rune.backends.cpu.spectra")
# Collectives, and queries for a device's place.
talks = locks.late_module("rune.backends.cpu.crew.talk")
