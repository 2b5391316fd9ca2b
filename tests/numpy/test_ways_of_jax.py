"""Arguments that functions of jax.numpy and jax.lax take besides those of NumPy."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import lax
from rune.errors import ArgumentError, AxisError

RNG = np.random.default_rng(0)


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("joiner", ["r_", "c_"])
@pytest.mark.parametrize("kind", ["r", "c"])
@pytest.mark.parametrize("rank", [1, 2])
def test_the_words_r_and_c_make_a_matrix(joiner: str, kind: str, rank: int):
    parts = [np.arange(4.0).reshape((4,) if rank == 1 else (2, 2))] * 2

    np.testing.assert_array_equal(getattr(rnp, joiner)[kind, *parts], np.asarray(getattr(np, joiner)[kind, *parts]))


def test_distinct_traced_positions_are_deleted():
    x, places = RNG.normal(size=(3, 7)), np.array([5, 0, -2])[:2]

    result = rune.jit(lambda v, at: rnp.delete(v, at, 1, assume_unique_indices=True))(x, places)

    np.testing.assert_allclose(result, np.delete(x, places, 1), rtol=1e-6)


def test_a_condition_may_be_longer_than_what_it_chooses_of():
    np.testing.assert_array_equal(rnp.extract(rnp.array([1, 0, 1, 0, 0]), rnp.arange(3)), [0, 2])
    with pytest.raises(AxisError, match="beyond i32"):
        rnp.extract(rnp.array([1, 0, 1, 0, 1]), rnp.arange(3))


def test_a_function_pads_along_one_axis_after_the_other():
    def pad_by(library: str, x: np.ndarray) -> object:
        def of_numpy(row: np.ndarray, width: tuple, axis: int, options: dict) -> None:
            row[: width[0]], row[len(row) - width[1] :] = options["low"] + axis, 7

        def of_rune(row: rune.Array, width: tuple, axis: int, options: dict) -> rune.Array:
            return row.at[: width[0]].set(options["low"] + axis).at[len(row) - width[1] :].set(7)

        return (
            np.pad(x, ((1, 2), (0, 3)), of_numpy, low=-1)
            if library == "numpy"
            else rnp.pad(x, ((1, 2), (0, 3)), of_rune, low=-1)
        )

    x = np.arange(6).reshape(2, 3)

    np.testing.assert_array_equal(pad_by("rune", x), pad_by("numpy", x))


@pytest.mark.parametrize("function", ["polyadd", "polysub"])
def test_polynomials_in_columns_are_aligned_at_their_lowest_powers(function: str):
    x, y = RNG.normal(size=(3, 2)).astype("f4"), RNG.normal(size=(2, 2)).astype("f4")

    columns = [getattr(np, function)(x[:, k], y[:, k]) for k in range(2)]

    np.testing.assert_allclose(getattr(rnp, function)(x, y), np.stack(columns, 1), rtol=1e-6)


def test_negative_positions_may_be_out_of_bounds():
    x, places = rnp.arange(1.0, 5.0), rnp.array([-1, 5, 2])

    def elements(mode: str | None) -> object:
        return rnp.take_along_axis(x, places, mode=mode, wrap_negative_indices=False)

    np.testing.assert_array_equal(elements(None), [np.nan, np.nan, 3])
    np.testing.assert_array_equal(elements("clip"), [1, 4, 3])


def test_axes_are_broadcast_in_any_order():
    x = np.arange(6).reshape(3, 2)

    out = lax.broadcast_in_dim(rnp.asarray(x), (2, 3, 4), (1, 0))

    np.testing.assert_array_equal(out, np.broadcast_to(x.T[:, :, None], (2, 3, 4)))


def test_accuracy_none_is_accepted_and_any_other_refused():
    assert float(lax.exp(0.0, accuracy=None)) == 1.0
    with pytest.raises(ArgumentError, match="exp: cannot use accuracy="):
        lax.exp(0.0, accuracy=1e-3)  # type: ignore[arg-type]


def test_scalar_conditions_choose_a_function_for_all_elements():
    functions: Any = [lambda x: x * 0, lambda x: x * 10, lambda x: x * 100]

    np.testing.assert_array_equal(
        rnp.piecewise(rnp.arange(4), rnp.array([False, True, False]), functions), [0, 10, 20, 30]
    )


def test_the_flat_position_along_no_axes_is_an_array_of_0():
    position = rnp.ravel_multi_index((), ())
    assert isinstance(position, rune.Array)
    assert (position.shape, int(position)) == ((), 0)


def test_flat_positions_have_the_documented_dtype():
    positions = rnp.ravel_multi_index((rnp.array([1, 0]), rnp.array([2, 1])), (2, 3), dtype="int16")

    assert (positions.dtype, positions.tolist()) == (np.dtype("int16"), [5, 1])


def test_nothing_is_pickled_even_if_allow_pickle_is_set():
    rnp.save(file := io.BytesIO(), rnp.arange(3), allow_pickle=True)
    file.seek(0)

    np.testing.assert_array_equal(np.load(file), [0, 1, 2])


class _Sequence:
    """A shape of a class of its own, as TensorFlow Probability's."""

    def __init__(self, *sizes: int):
        self.sizes = sizes

    def __iter__(self):
        return iter(self.sizes)


SIZES = [(2, 3), [2, 3], np.array([2, 3]), rnp.array([2, 3]), _Sequence(2, 3), (np.int64(2), rnp.array(3))]


@pytest.mark.parametrize("shape", SIZES, ids=lambda s: type(s).__name__)
def test_any_sequence_of_sizes_is_a_shape(shape: Any):
    arrays = [rnp.zeros(shape), rnp.broadcast_to(0, shape), rnp.reshape(rnp.arange(6), shape)]

    assert [x.shape for x in arrays] == [(2, 3)] * 3


@pytest.mark.parametrize("shape", [[2, 3], np.array([2, 3]), _Sequence(2, 3)], ids=lambda s: type(s).__name__)
def test_any_sequence_of_sizes_is_a_shape_of_random_numbers(shape: Any):
    assert rune.random.uniform(rune.random.key(0), shape).shape == (2, 3)


@pytest.mark.parametrize("axes", [(1, 0), np.array([1, 0]), rnp.array([1, 0]), _Sequence(1, 0)])
def test_any_sequence_of_integers_is_one_of_axes(axes: Any):
    x = np.arange(6.0, dtype="f").reshape(2, 3)

    np.testing.assert_array_equal(rnp.transpose(x, axes), x.T)
    np.testing.assert_array_equal(rnp.sum(x, axis=axes), 15)
    assert rnp.expand_dims(x, axes).shape == (1, 1, 2, 3)


def test_an_array_of_one_element_is_not_a_size():
    with pytest.raises(TypeError, match="scalar"):
        rnp.zeros((np.array([2]), 3))  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["i1,1k->ik", "i_,_k->ik", "é*,*k->ék", "...1,1%->...%", "(1,1)->()", "21,13"])
def test_any_character_but_those_of_the_notation_names_an_axis(text: str):
    x, y = RNG.normal(size=(2, 3)).astype(np.float32), RNG.normal(size=(3, 4)).astype(np.float32)

    np.testing.assert_allclose(rnp.einsum(text, x, y), x @ y, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("transformation", [lambda f: f, rune.jit, rune.vmap], ids=["eager", "jit", "vmap"])
def test_pythons_round_without_digits_gives_integers(transformation: Any):
    x = np.array([2.5, -1.5, 3.7, 0.0, -0.2], np.float32)

    integers = transformation(round)(rnp.asarray(x))

    assert integers.dtype == np.int32
    np.testing.assert_array_equal(integers, [round(float(v)) for v in x])


def test_pythons_round_to_digits_keeps_the_dtype():
    assert [round(rnp.float32(2.25), n).dtype for n in (0, 1)] == [np.float32] * 2


@pytest.mark.parametrize("q", [1.5, -0.5, [-7.0, 2.0, 1.0]], ids=str)
@pytest.mark.parametrize("method", ["linear", "nearest", "hazen", "midpoint"])
def test_shares_beyond_all_are_those_of_the_ends(q: Any, method: Any):
    x, within = RNG.normal(size=(7, 3)).astype(np.float32), np.clip(q, 0, 1)
    reference = np.quantile(x, within, axis=0, method=method)

    of_numbers = rnp.quantile(x, q, axis=0, method=method)
    hundredths = rnp.percentile(x, 100 * np.asarray(q), axis=0, method=method)
    of_traced_shares = rune.jit(lambda q: rnp.nanquantile(x, q, axis=0, method=method))(rnp.array(q, dtype="float32"))

    for quantiles in (of_numbers, hundredths, of_traced_shares):
        np.testing.assert_allclose(quantiles, reference, rtol=1e-6)


@pytest.mark.parametrize("shape", [(), (7,), (3, 5), (2, 1, 3)])
def test_a_function_without_order_reduces_over_all_axes_row_by_row(shape: tuple[int, ...]):
    x = RNG.normal(size=shape).astype(np.float32)
    reference = np.subtract.reduce(x.reshape(-1))

    with_axes = rnp.subtract.reduce(x, axis=None, keepdims=True)

    assert with_axes.shape == (1,) * x.ndim
    np.testing.assert_allclose(rnp.subtract.reduce(x, axis=None), reference, rtol=1e-5)
    np.testing.assert_allclose(with_axes.reshape(()), reference, rtol=1e-5)
    mask = x > 0
    among = rune.jit(lambda x, m: rnp.subtract.reduce(x, axis=None, initial=2.0, where=m))(x, mask)
    np.testing.assert_allclose(among, 2 - x[mask].sum(), rtol=1e-5)


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_a_determinant_is_that_of_either_factorisation(n: int):
    a = RNG.normal(size=(3, n, n)).astype(np.float32)

    for ours, numpys in zip(rnp.linalg.slogdet(a, method="qr"), np.linalg.slogdet(a), strict=True):
        np.testing.assert_allclose(ours, numpys, rtol=1e-4, atol=1e-5)


class _Blocks:
    """A collection by its length and its indices alone, as SCICO's arrays of blocks are."""

    def __init__(self, *parts: np.ndarray):
        self.parts = parts

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, i: int) -> np.ndarray:
        return self.parts[i]


@pytest.mark.parametrize("join", ["concatenate", "stack", "vstack", "hstack", "dstack"])
def test_arrays_are_joined_from_any_ordered_collection(join: str):
    parts = [np.arange(5.0), np.ones(5), -np.arange(5.0)]

    np.testing.assert_array_equal(getattr(rnp, join)(_Blocks(*parts)), getattr(np, join)(parts))
    for bad_argument in ({"a": parts[0]}, "ab", (x for x in parts), 3.0):
        with pytest.raises((ArgumentError, TypeError)):
            getattr(rnp, join)(bad_argument)


@pytest.mark.parametrize(
    "axes",
    [
        (["row", "inner"], ["inner", "column"], ["row", "column"]),
        ([90, 7], [7, 1000], [1000, 90]),
        (["z", "b"], ["b", "a"]),
        ([..., "b"], ["b", ...], [...]),
    ],
)
def test_axes_of_a_sum_have_names_of_any_kind(axes: Any):
    x, y = RNG.normal(size=(3, 5)), RNG.normal(size=(5, 3))
    letters = {name: "abc"[i] for i, name in enumerate(sorted({a for term in axes for a in term if a is not ...}))}
    terms = ["".join("..." if a is ... else letters[a] for a in term) for term in axes]
    expected = np.einsum(",".join(terms[:2]) + "".join(f"->{t}" for t in terms[2:]), x, y)

    np.testing.assert_allclose(rnp.einsum(x, axes[0], y, *axes[1:]), expected, rtol=1e-5)


@pytest.mark.parametrize("axes", [([0, "a"], ["a", 1]), ([0, 1], [1, 2], [0, 9])])
def test_axes_without_an_order_or_an_operand_are_refused(axes: Any):
    with pytest.raises(ArgumentError, match="axes"):
        rnp.einsum(np.ones((3, 3)), axes[0], np.ones((3, 3)), *axes[1:])


def test_an_array_promotes_by_its_dtype():
    x = rnp.ones(3, rnp.float16)

    assert rnp.promote_types(x, rnp.int32) == np.float16
    assert rune.jit(lambda v: v.astype(rnp.promote_types(v, rnp.float32)))(x).dtype == np.float32


@pytest.mark.parametrize("name", ["float32", "int32", "bool_", "complex64", "bfloat16"])
def test_a_dtype_makes_an_array_of_lists_with_traced_values(name: str):
    def rows(x: Any) -> Any:
        return getattr(rnp, name)([[x[0], 2.75], (x[2], np.float64(-0.5))])

    x = np.array([1.5, 7.0, -3.25], np.float32)
    numbers = np.array([[1.5, 2.75], [-3.25, -0.5]])

    expected = numbers.astype(getattr(rnp, name).dtype)
    np.testing.assert_array_equal(rows(rnp.asarray(x)), expected)
    np.testing.assert_array_equal(rune.jit(rows)(x), expected)


@pytest.mark.parametrize("wrap", [lambda f: f, rune.jit], ids=["eager", "jit"])
def test_whole_arrays_are_compared_with_lists(wrap: Any):
    def compared(x: Any) -> list[Any]:
        pairs = [((x[0], x[1]), x[:2]), (x, [1.0, 2.0, 4.0]), ([[1.0], [2.0]], [[1.0, 1.0], [2.0, 2.0]])]
        return [f(a, b) for f in (rnp.array_equal, rnp.array_equiv) for a, b in pairs]

    x = np.array([1.0, 2.0, 3.0], np.float32)

    assert [bool(b) for b in wrap(compared)(x)] == [True, False, False, True, False, True]


def test_kinds_of_lists_are_those_of_their_elements():
    assert rnp.iscomplexobj([1.0, 2j])
    assert rnp.isrealobj(([1, 2], [3, 4]))
    np.testing.assert_allclose(rnp.fft.ihfft([1.0, 5.0, -2.0]), np.fft.ihfft([1.0, 5.0, -2.0]), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool"])
def test_select_takes_integers_as_conditions(dtype: str):
    which = np.array([0, 1, 1, 0, 1], dtype)
    a, b = RNG.normal(size=(2, 5)).astype(np.float32)

    np.testing.assert_array_equal(lax.select(which, a, b), np.where(which, a, b))
    np.testing.assert_array_equal(rune.jit(rune.vmap(lax.select))(which, a, b), np.where(which, a, b))
    np.testing.assert_array_equal(rune.vmap(lax.select, (0, None, None))(which, a, b), np.where(which[:, None], a, b))
