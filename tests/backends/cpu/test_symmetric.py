"""Small symmetric matrices, decomposed without LAPACK: hard values, and the ends of the range.

The oracle is NumPy: products in long doubles, decompositions in doubles.
"""

from __future__ import annotations

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.backends.cpu import spectra
from rune.backends.cpu.linalg import lapack, symmetric
from rune.backends.cpu.spectra import spectrum_of
from rune.lowering.plan import Call, all_steps
from tests.support.sampling import IS_WHOLE, each_value

pytestmark = each_value()

SIZES = [2, 3, 4, 5, 8, 15, 16, 17, 31, 33, 64, 65, 97, 127, 128, 200, symmetric.MOST]
RNG = np.random.default_rng(3)
DECOMPOSE, VALUES = rune.jit(rnp.linalg.eigh), rune.jit(rnp.linalg.eigvalsh)
of_floats = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda d: d.__name__)


def drawn(n: int) -> np.ndarray:
    a = RNG.standard_normal((n, n))
    return a + a.T


def three_diagonals(middle: np.ndarray, neighbour: float) -> np.ndarray:
    off = np.full(len(middle) - 1, neighbour)
    return np.diag(middle) + np.diag(off, 1) + np.diag(off, -1)


def wilkinson(n: int) -> np.ndarray:
    """Pairs of values that nearly agree."""
    return three_diagonals(np.abs(np.arange(n) - (n - 1) / 2), 1.0)


def in_blocks(n: int) -> np.ndarray:
    """Two independent matrices, one of them tiny."""
    a, half = drawn(n), n // 2
    a[:half, half:], a[half:, :half] = 0, 0
    a[half:, half:] *= 1e-30
    return a


def graded(n: int) -> np.ndarray:
    sizes = 10.0 ** (-15 * np.arange(n) / n)
    return drawn(n) * np.outer(sizes, sizes)


def arrow(n: int) -> np.ndarray:
    a = np.diag(np.arange(n) * 1e-3)
    a[0], a[:, 0] = 1, 1
    return a


MATRICES = {
    "drawn": drawn,
    "wilkinson": wilkinson,
    "in blocks": in_blocks,
    "graded": graded,
    "graded from above": lambda n: graded(n)[::-1, ::-1],
    "arrow": arrow,
    "diagonal": lambda n: np.diag(np.arange(n, 0, -1) - n / 2.0),
    "zero": lambda n: np.zeros((n, n)),
    "ones": lambda n: np.ones((n, n)),
    "one and a trace of others": lambda n: np.eye(n) + 1e-20 * drawn(n),
    "minute beside a diagonal": lambda n: three_diagonals(np.arange(n) * 1.0, 1e-25),
    "zeros on the diagonal": lambda n: three_diagonals(np.zeros(n), 1.0),
    "cyclic": lambda n: np.roll(np.eye(n), 1, 0) + np.roll(np.eye(n), 1, 1),
    "alternating": lambda n: (-1.0) ** np.add.outer(np.arange(n), np.arange(n)),
}
SCALES = {  # of matrices of about 1
    "subnormal": lambda info, n: float(info.tiny) / 64,
    "next to subnormal": lambda info, n: float(info.tiny) * 8,
    "huge": lambda info, n: float(info.max) / 64 / n,
}


def require_decomposition(a: np.ndarray) -> None:
    """Values and vectors within n eps of the matrix, and values alone, of a jitted call."""
    n, info, wide = len(a), np.finfo(a.dtype), np.longdouble
    x = rnp.asarray(a, dtype=a.dtype)
    w, v = map(np.asarray, DECOMPOSE(x))
    alone = np.asarray(VALUES(x))
    size = np.max(np.abs(a.astype(wide))) or wide(1)
    # A subnormal number has an absolute error.
    error = 8 * n * (float(info.eps) * n**0.5 + float(info.smallest_subnormal / size))
    exact, unit_values, vectors = a.astype(wide) / size, w.astype(wide) / size, v.astype(wide)
    truth = np.linalg.eigvalsh(exact.astype(np.float64))
    assert np.max(np.abs(exact @ vectors - vectors * unit_values)) < error
    assert np.max(np.abs(vectors.T @ vectors - np.eye(n))) < 8 * n * float(info.eps)
    for values in (w, alone):
        assert np.max(np.abs(values.astype(wide) / size - truth)) < error
        assert (np.diff(values) >= 0).all()


def sizes(name: str, dtype: type) -> list[int]:
    """Every third size: each has both dtypes, and each matrix small, middling and large sizes."""
    place = [*MATRICES].index(name) + (dtype is np.float64)
    return SIZES if IS_WHOLE else SIZES[place % 3 :: 3]


@of_floats
@pytest.mark.parametrize("name", MATRICES)
def test_hard_matrices_are_decomposed_at_every_size(name: str, dtype: type):
    for n in sizes(name, dtype):
        a = MATRICES[name](n)
        require_decomposition(((a + a.T) / 2).astype(dtype))


@of_floats
@pytest.mark.parametrize("name", SCALES)
def test_the_ends_of_the_range_are_reached(name: str, dtype: type):
    for n in SIZES:
        require_decomposition((drawn(n) * SCALES[name](np.finfo(dtype), n)).astype(dtype))


@of_floats
def test_a_power_of_two_scales_only_the_eigenvalues(dtype: type):
    a = drawn(37).astype(dtype)
    decompose = rune.jit(rnp.linalg.eigh)

    w, v = map(np.asarray, decompose(rnp.asarray(a, dtype=dtype)))
    scaled_w, scaled_v = map(np.asarray, decompose(rnp.asarray(a * dtype(2.0**40), dtype=dtype)))

    assert np.array_equal(w * dtype(2.0**40), scaled_w)
    assert np.array_equal(v, scaled_v)


@of_floats
def test_the_other_triangle_may_be_of_any_size(dtype: type):
    a = drawn(21).astype(dtype)
    other = np.triu(np.full((21, 21), np.finfo(dtype).max, dtype), 1)

    def lower(x: rune.Array) -> rune.Array:
        return rnp.linalg.eigh(x, "L", symmetrize_input=False).eigenvalues

    w = np.asarray(rune.jit(lower)(rnp.asarray(np.tril(a) + other, dtype=dtype)))

    assert np.max(np.abs(w - np.linalg.eigvalsh(a.astype(np.float64)))) < 100 * np.finfo(dtype).eps * np.abs(a).max()


@of_floats
@pytest.mark.parametrize("n", [1, 2, 9, 16, 33])
def test_matrices_of_a_batch_have_the_same_bits_as_alone(n: int, dtype: type):
    a = np.stack([drawn(n) for _ in range(5)]).astype(dtype)
    decompose = rune.jit(rnp.linalg.eigh)

    together = [np.asarray(x) for x in decompose(rnp.asarray(a, dtype=dtype))]

    for k, matrix in enumerate(a):
        alone = [np.asarray(x) for x in decompose(rnp.asarray(matrix, dtype=dtype))]
        assert all(np.array_equal(x[k], y) for x, y in zip(together, alone, strict=True))


@of_floats
@pytest.mark.parametrize("shape", [(1, 1), (9, 9), (33, 33), (256, 256), (257, 257), (5, 7, 7), (0, 3, 3)])
def test_an_eager_call_has_the_bits_of_a_compiled_one(shape: tuple[int, ...], dtype: type):
    x = rnp.asarray(RNG.standard_normal(shape), dtype=dtype)  # each triangle is another matrix

    for function in FUNCTIONS:
        eager, of_program = (rune.tree.leaves(f(x)) for f in (function, rune.jit(function)))
        assert [np.asarray(a).tobytes() for a in eager] == [np.asarray(a).tobytes() for a in of_program]


FUNCTIONS = (
    lambda x: rnp.linalg.eigh(x, "L", symmetrize_input=False),
    lambda x: rnp.linalg.eigh(x, "U", symmetrize_input=False),
    lambda x: rnp.linalg.eigvalsh(x, "U", symmetrize_input=False),
)


@of_floats
def test_an_eager_gradient_has_the_signs_of_a_compiled_one(dtype: type):
    x = rnp.asarray(drawn(12), dtype=dtype)

    def first_vector(x: rune.Array) -> rune.Array:
        return rnp.sum(rnp.linalg.eigh(x).eigenvectors[:, 0] * rnp.arange(12, dtype=dtype))

    eager, of_program = rune.grad(first_vector)(x), rune.jit(rune.grad(first_vector))(x)
    assert np.max(np.abs(np.asarray(eager) - np.asarray(of_program))) < 1e4 * np.finfo(dtype).eps


def test_a_call_that_is_specialised_after_many_calls_keeps_its_bits():
    x = rnp.asarray(drawn(6), dtype=np.float32)
    results = [[np.asarray(a).tobytes() for a in rnp.linalg.eigh(x)] for _ in range(300)]

    assert all(result == results[0] for result in results)


def test_lapack_is_called_only_for_complex_and_larger_matrices(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lapack, "address", lambda routine, dtype: None)

    assert [is_native(n, np.float32) for n in (1, symmetric.MOST, symmetric.MOST + 1)] == [True, True, False]
    assert not is_native(3, np.complex64)
    assert symmetric.MOST < spectra.MOST


def is_native(n: int, dtype: type) -> bool:
    """Whether eigh of [n, n] is a step of native code."""
    explanation = rune.explain(lambda x: rnp.linalg.eigh(x))(rnp.zeros((n, n), dtype=dtype))
    (step,) = [s for s in all_steps(explanation.plan) if isinstance(s, Call) and s.routine == "callback"]
    return spectrum_of(step) is not None


@of_floats
@pytest.mark.parametrize("n", [3, 33, 257])
def test_a_program_of_an_open_size_gives_the_same_bits(n: int, dtype: type):
    x = rnp.asarray(drawn(n), dtype=dtype)
    decompose = rune.jit(rnp.linalg.eigh, dims={"n": (1, 300)}, in_dims=("n,n",))

    results = [np.asarray(a).tobytes() for a in decompose(x)]

    assert results == [np.asarray(a).tobytes() for a in rune.jit(rnp.linalg.eigh)(x)]


@of_floats
@pytest.mark.parametrize("n", [1, 9, 33])
def test_an_eager_call_decomposes_a_view(n: int, dtype: type):
    data = rnp.asarray(RNG.standard_normal((2 * n, 3 * n)), dtype=dtype)
    stack = rnp.asarray(RNG.standard_normal((n, 4, n)), dtype=dtype)

    for view in (data[::2, ::3], data[::2, 2 * n - 1 : n - 1 : -1].T, rnp.swapaxes(stack, 0, 1)):
        copy = rnp.asarray(np.asarray(view).copy(), dtype=dtype)
        for function in FUNCTIONS:
            of_copy, of_view = (rune.tree.leaves(function(x)) for x in (copy, view))
            assert all(map(np.array_equal, map(np.asarray, of_copy), map(np.asarray, of_view)))
