"""The uses of library primitives (use.py), each family's from a file library_<family>.py."""

from __future__ import annotations

from rune.core.primitive import Primitive
from tests.ops import library_equations, library_fourier, library_solving, library_sorting, library_spectra
from tests.ops.use import Use

USES: tuple[Use, ...] = (
    *library_sorting.USES,
    *library_fourier.USES,
    *library_solving.USES,
    *library_spectra.USES,
    *library_equations.USES,
)


def uses(primitive: Primitive) -> list[Use]:
    """The uses of a primitive. Errors: AssertionError where there is none."""
    uses_of_primitive = [u for u in USES if u.primitive is primitive]
    assert uses_of_primitive, f"add a use of {primitive} to tests/ops/library_<family>.py"
    return uses_of_primitive
