"""Lines that jax 0.10.2 refuses are refused by an error of the same Python class."""

from __future__ import annotations

import json
from functools import cache

import pytest

from tests.as_jax.surface.objects.expressions import REFUSALS, refusal, refused_lines

# Where a class of error differs on purpose.
DIFFERENCES = {
    # Batches of matrices, as SciPy has them; axes from the end, as everywhere.
    "sl.block_diag(t)",
    "lax.cumsum(x, axis=-1)",
    # An assertion or an accident of JAX's inside: a division by 0, an attribute that is not there.
    "nn.glu(x)",
    "image.scale_and_translate(x, (4, 4), (0,), v[:2], v[:2], 'linear')",
    "lax.associative_scan(lambda r, l: r[0], x)",
    "jax.custom_jvp(lambda r: r)(x)",
    "jax.grad(jax.custom_vjp(lambda r: r))(e)",
    "jax.jvp(jax.custom_jvp(lambda r: r), (e,), (e,))",
    "jnp.array_split(x, 0)",
    "jnp.arange(0, 1, 0)",
    # A meaningless argument, for which JAX says that it is not implemented.
    "scipy.fft.dct(x, type=5)",
    # Axes: a ValueError and an IndexError, as in NumPy.
    "x.transpose(0, 0)",
    "lax.transpose(x, (0, 0))",
    "lax.rev(x, (0, 0))",
}


@cache
def expected() -> dict[str, str]:
    return json.loads(REFUSALS.read_text())


@pytest.mark.filterwarnings("ignore")
def test_errors_are_of_the_classes_of_jaxs():
    lines = refused_lines()
    others = {line for line in lines if expected()[line] not in refusal(line)}

    assert len(lines) > 250
    assert sorted(others) == sorted(DIFFERENCES)
