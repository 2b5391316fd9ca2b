"""Expressions in JAX's names answer as jax 0.10.2 did: values, vmap, jit, tangents and gradients.

A run tries a share of the expressions in each way, chosen by their text; RUNE_TEST_WHOLE=1 tries
all of them in every way.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from functools import cache
from math import prod
from typing import Any

import jax
import numpy as np
import pytest

from tests.as_jax.surface.functions.letters import (
    FAMILIES,
    FOLDER,
    MANY,
    UNUSUAL,
    WAYS,
    Expression,
    expressions,
    is_inexact,
    stored_in,
)
from tests.support.sampling import IS_WHOLE

# Answers that differ on purpose, or where JAX is wrong, and the ways in which they differ.
EVERY, SLOPES, GRAD = ("value", "vmap", "jit", "jvp", "grad"), ("jvp", "grad"), ("grad",)
DIFFERENCES = {
    # jax 0.10.2 is wrong: transposed products of COO and CSR have slopes of other elements; those
    # of bisection are made up; recurrences overflow; the slope of E_0 is NaN.
    "sparse.coo_matvec(sparse.COO.fromdense(x * b, nse=15), v[:3], transpose=True)": SLOPES,
    "sparse.csr_matmat(sparse.CSR.fromdense(x * b, nse=15), y, transpose=True)": SLOPES,
    "sparse.CSC.fromdense(x * b, nse=15) @ v": SLOPES,
    "sl.eigh_tridiagonal(v, w[:4], eigvals_only=True)": SLOPES,
    "special.bessel_jn(x, v=3, n_iter=40)": EVERY,
    "special.expn(k, v**2 + 0.1)": SLOPES,
    # NumPy's and SciPy's answers: floats as counts, whole ranks.
    "jnp.histogram2d(v, w, 3)": EVERY,
    "jnp.histogramdd(x.T, 2)": EVERY,
    "stats.rankdata(i, method='dense')": EVERY,
    # z / |z| turns with z; JAX has no slope of it.
    "jnp.sign(z)": SLOPES,
    "lax.sign(z)": SLOPES,
    # JAX has NaN where the sum and the series meet.
    "stats.poisson.entropy(3 * p)": SLOPES,
    # Only one triangle is read, so it has the gradient; JAX's is that of (a + aᵀ) / 2.
    "jnp.linalg.pinv(s, hermitian=True)": GRAD,
    "lax.linalg.eigh(s, symmetrize_input=False)[1]": GRAD,
    "sl.cho_solve(sl.cho_factor(s), x.T[:4])": GRAD,
    "sl.cholesky(s, lower=True)": GRAD,
    "sl.eigh(s, eigvals_only=True)": GRAD,
    "sl.solve(s, n, assume_a='pos')": GRAD,
    # What should be triangular is not: rune reads the triangle alone.
    "lax.linalg.cholesky_update(s, v[:4])": EVERY,
    "sl.expm(m, upper_triangular=True)": EVERY,
    # Signs and order of eigenvectors and eigenvalues are open.
    "sl.rsf2csf(*sl.schur(m))[0]": EVERY,
    "jnp.roots(v, strip_zeros=False)": ("vmap",),
    # A correlation of 1 is clipped there: half of a slope that is rounding.
    "jnp.corrcoef(x, rowvar=False)": ("jvp",),
    # Integers as in NumPy: JAX's are floats, or lose bits of exponents.
    "jnp.power(S, u)": EVERY,
    "stats.rankdata(i, method='min')": EVERY,
    "jnp.histogram(i, jnp.array([-3, 0, 2, 2, 9]))": EVERY,
    "jnp.histogram2d(v, w, (jnp.array([-1.0, 0, 1]), 2), weights=k)": EVERY,
    "jnp.convolve(S[0], u[1, :3])": EVERY,
    "jnp.convolve(b[0], c[0])": EVERY,
    "jnp.polymul(S[0], u[0, :2])": EVERY,
    "sl.pascal(4)": EVERY,
    "sl.invpascal(4)": EVERY,
    # Running sums and products of small integers are promoted, as the array API says.
    "jnp.cumprod(S, axis=-1)": EVERY,
    "jnp.nancumsum(S)": EVERY,
    "jnp.nancumprod(S)": EVERY,
    # Their number must be known.
    "jnp.mask_indices(3, jnp.triu, 1)": ("jit",),
    "jnp.compress(np.array([0, 1, 1]), S, axis=-2)": ("jit",),
    # Sizes, which jit makes arrays of.
    "jnp.broadcast_shapes((2, 1), (3,))": ("jit",),
    "jnp.iscomplexobj(z), jnp.isrealobj(S), jnp.isscalar(e), jnp.ndim(x), jnp.shape(x), jnp.size(x), jnp.size(x, 1)": (
        "jit",
    ),
    # Zeros at the end come last, as in NumPy; the number of zeros at the start must be known.
    "jnp.roots(jnp.array([0.0, 0.0, 1.0, -3.0, 2.0, 0.0]) + 0 * e)": EVERY,
    # The polynomial of a real matrix is real.
    "jnp.poly(m)": EVERY,
    # Half types are computed in f32 and rounded once; JAX rounds partial results.
    "jnp.i0(F)": SLOPES,
    "jnp.nancumsum(F)": EVERY,
    "jnp.mean(x, axis=0, dtype='float16')": GRAD,
    "jnp.nanstd(x, axis=0, dtype='bfloat16')": GRAD,
    "jnp.cumprod(x, axis=0, dtype='float16')": GRAD,
    # Of nothing, and without a degree of freedom, the mean and its slope are NaN.
    "jnp.var(O)": SLOPES,
    "jnp.nanvar(x, ddof=5, axis=1)": SLOPES,
    # JAX's slopes are NaN at the elements that are not changed, too, where a logarithm would be.
    "x.at[1, ::2].power(y[0, ::2])": SLOPES,
    "x.at[-3:, -9].power(e)": ("jvp",),
    # A mask of lanes is traced, which JAX refuses, too.
    "x.at[b].set(0)": ("vmap", "jit"),
    # The gradient goes through 16 bits there.
    "lax.ragged_dot(x, jnp.ones((2, 5, 2)) * e, jnp.array([1, 2]), preferred_element_type='float16')": GRAD,
}
# Those of unusual arguments stand in a text: after "#" the reason, then "ways: expression".
_LISTED = [line for line in (FOLDER / "more_differences.txt").read_text().splitlines() if line and line[0] != "#"]
DIFFERENCES |= {text: tuple(ways.split()) for ways, _, text in (line.partition(": ") for line in _LISTED)}
# One in this many ways of an expression is tried: fewer for large families.
SHARE, SHARE_OF_MANY = (1, 1) if IS_WHOLE else (32, 80)
STEMS = {"value": "value", "vmap": "value", "jit": "value", "jvp": "jvp", "grad": "grad", "vjp": "vjp"}


@cache
def stored(family: str) -> dict[str, dict[str, Any]]:
    """For each expression: lists of arrays, or the name of JAX's error."""
    with np.load(stored_in(family)) as vectors:
        index, data, place = json.loads(str(vectors["index"])), vectors["data"].tobytes(), 0
    for entry in index.values():
        for name, types in entry.items():
            if not isinstance(types, str):
                entry[name] = arrays = []
                for dtype, shape in types:
                    arrays.append(np.frombuffer(data, np.dtype(dtype), prod(shape), place).reshape(shape))
                    place += arrays[-1].nbytes
    return index


def expected(e: Expression, way: str) -> list[np.ndarray] | None:
    """JAX's answer; None if it has none."""
    if way == "vmap" and e.family in UNUSUAL:
        return None
    arrays = stored(e.family)[e.text].get(STEMS[way])
    if arrays is None or isinstance(arrays, str) or way in DIFFERENCES.get(e.text, ()):
        return None
    return [x[0] for x in arrays] if way in ("value", "jit") else arrays


def disagreements(e: Expression, way: str) -> Iterator[str]:
    """How the answers differ."""
    answers = [np.asarray(x) for x in jax.tree.leaves(WAYS[way](e))]
    reference = expected(e, way)
    assert reference is not None
    if [x.shape for x in answers] != [x.shape for x in reference]:
        yield f"{e.text}: {way}: shapes {[x.shape for x in answers]} for {[x.shape for x in reference]}"
        return
    for x, y in zip(answers, reference, strict=True):
        if x.dtype != y.dtype:
            yield f"{e.text}: {way}: {x.dtype} for {y.dtype}"
        elif not is_close(x, y, 0.01 if e.family in OF_ALL_SIZES else None):
            yield f"{e.text}: {way}:\n{x}\nfor\n{y}"


# Families whose results of one call differ in size by many orders: each is held against its own.
OF_ALL_SIZES = ("more_special",)


def is_close(x: np.ndarray, y: np.ndarray, scale: float | None = None) -> bool:
    """Whether arrays are equal up to the rounding of two libraries' sums, logarithms and sines.

    scale: the size of the terms that cancel; by default that of the greatest element
    """
    if not is_inexact(y):
        return np.array_equal(x, y)
    digits = 3e-3 if y.dtype.itemsize == 2 else 3e-5
    if scale is None:
        scale = max(float(np.max(np.abs(y), initial=0, where=np.isfinite(y))), 1.0)
    return np.allclose(x, y, rtol=4 * digits, atol=digits * scale, equal_nan=True)


def is_tried(e: Expression, way: str) -> bool:
    share = SHARE_OF_MANY if e.family in MANY else SHARE
    return expected(e, way) is not None and zlib.crc32(f"{way} {e.text}".encode()) % share == 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "hard"])
@pytest.mark.filterwarnings("ignore")
def test_the_answers_are_those_of_jax(family: str, way: str):
    assert [line for e in expressions(family) if is_tried(e, way) for line in disagreements(e, way)] == []


@pytest.mark.parametrize("family", FAMILIES)
def test_every_expression_is_stored(family: str):
    assert {e.text for e in expressions(family)} == set(stored(family))


# Families whose expressions stay within their arrays, but for those that ask for what is outside.
BOUNDED = ("numpy", "linalg", "nn", "more_orders", "more_shapes", "more_names")
OUTSIDE = {"x.at[i].max(v)", "x.at[k[:2]].min(e)", "x[i, k]", "v[i]"}


@pytest.mark.parametrize("family", BOUNDED)
@pytest.mark.filterwarnings("ignore")
def test_checks_of_bounds_find_nothing_where_every_index_is_within(family: str):
    with jax.configure(check_bounds=True):
        for e in expressions(family):
            if is_tried(e, "value") and e.text not in OUTSIDE:
                WAYS["value"](e)
