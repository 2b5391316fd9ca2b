"""The array API standard on arrays and functions beyond their values (those: test_array_api.py).

Assignment, dtypes of reductions, copies, indices, names of results, limits, conversions. NumPy must
pass each claim, too, since it follows the standard: this reveals claims that the standard lacks.

Source: https://data-apis.org/array-api/2025.12
"""

from __future__ import annotations

import itertools
import math
import operator
from array import array
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import array_api_strict as strict
import numpy as np
import pytest

import rune
import rune.numpy as rnp

INTEGERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
FLOATS, COMPLEX = ["float32", "float64"], ["complex64", "complex128"]
NUMBERS = [*INTEGERS, *FLOATS, *COMPLEX]
ALL = ["bool", *NUMBERS]
HOST = np.arange(24).reshape(2, 3, 4)
ON_THREE_AXES = [
    0,
    -1,
    (0, 1),
    (0, 1, 2),
    (slice(None), 0),
    (..., 0),
    (slice(None, None, -1),),
    (),
    ...,
    (slice(1, None), slice(0, 2)),
    (slice(None), slice(None), slice(-100, 100)),
    slice(5, 9),
]


@pytest.fixture(params=["numpy", "rune", "rune with 64 bits"])
def xp(request: pytest.FixtureRequest) -> Iterable[Any]:
    """The namespace of the standard, as libraries ask arrays for it."""
    if request.param == "numpy":
        yield np
        return
    with rune.enable_x64(request.param != "rune"):
        yield rnp.ones(1).__array_namespace__()


def new_array(xp: Any, data: Any, dtype: str | None = None) -> Any:
    return xp.asarray(data, dtype=None if dtype is None else getattr(xp, dtype))


def cuboid(xp: Any) -> Any:
    return xp.reshape(xp.arange(24), (2, 3, 4))


def equal(actual: Any, reference: Any) -> None:
    np.testing.assert_array_equal(np.asarray(actual), np.asarray(reference))


# --- indexing and assignment ------------------------------------------------------------------


@pytest.mark.parametrize("index", [*ON_THREE_AXES, None, (None, ...), (0, ..., None)], ids=str)
def test_an_index_reads_what_numpy_reads(xp: Any, index: Any):
    equal(cuboid(xp)[index], HOST[index])


@pytest.mark.parametrize("index", ON_THREE_AXES, ids=str)
def test_an_assignment_writes_what_numpy_writes(xp: Any, index: Any):
    x, reference = cuboid(xp), HOST.copy()

    x[index] = -5
    x[index] = x[index] + xp.asarray(7)
    reference[index] = 2

    equal(x, reference)


def test_masks_read_and_write(xp: Any):
    x, y = cuboid(xp), cuboid(xp)

    x[x > 5] = 0
    y[y > 5] = xp.arange(18, dtype=y.dtype)

    equal(y[y < 18], [*range(6), *range(18)])
    assert int(xp.sum(x)) == 15
    assert x[xp.asarray(True)].shape == (1, 2, 3, 4)
    assert x[xp.asarray([True, False])].shape == (1, 3, 4)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0), (0, 0, 4), (2, 3, 0), (0, 0, 0)], ids=str)
def test_a_mask_with_a_size_of_0_selects_nothing(xp: Any, shape: tuple[int, ...]):
    x, mask = cuboid(xp), xp.ones(shape, dtype=xp.bool)

    equal(x[mask], HOST[np.ones(shape, bool)])
    x[mask] = -1
    equal(x, HOST)


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
@pytest.mark.parametrize("way", [lambda f: f, rune.jit], ids=["eagerly", "compiled"])
def test_one_number_is_written_under_a_mask_of_any_rank(rank: int, way: Callable[[Any], Any]):
    xp = rnp.ones(1).__array_namespace__()

    def written(x: Any, mask: Any) -> Any:
        y = xp.asarray(x, copy=True)
        y[mask] = -7
        return y

    for odd in (0, 1):
        mask, reference = HOST[(..., *[0] * (3 - rank))] // 4 % 2 == odd, HOST.copy()
        reference[mask] = -7
        equal(way(written)(rnp.asarray(HOST), rnp.asarray(mask)), reference)


@pytest.mark.parametrize("shape", [(3,), (1,), (0, 2), (1, 0), (2, 3, 4, 1)], ids=str)
def test_a_mask_of_another_size_is_an_error_of_index(xp: Any, shape: tuple[int, ...]):
    with pytest.raises(IndexError):
        cuboid(xp)[xp.ones(shape, dtype=xp.bool)]


def test_integer_arrays_index_together(xp: Any):
    x = cuboid(xp)

    elements = x[new_array(xp, [0, 1], "int64"), new_array(xp, [2, 0], "int64"), 1]

    equal(elements, HOST[[0, 1], [2, 0], 1])


IN_PLACE = [
    *itertools.product("add sub mul truediv floordiv mod pow".split(), FLOATS),
    *itertools.product("add sub mul floordiv mod and_ or_ xor lshift rshift".split(), INTEGERS),
]


@pytest.mark.parametrize(("name", "dtype"), IN_PLACE)
def test_an_operator_in_place_keeps_the_object(xp: Any, name: str, dtype: str):
    x, y = new_array(xp, [[3, 2], [5, 1]], dtype), new_array(xp, [[1, 2], [2, 1]], dtype)
    reference = getattr(operator, name)(x, y)

    result = getattr(operator, f"i{name.rstrip('_')}")(x, y)

    assert result is x
    assert x.dtype == getattr(xp, dtype)
    equal(x, reference)


# --- creation and conversion ------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ALL)
def test_copy_says_whether_memory_is_shared(xp: Any, dtype: str):
    x = new_array(xp, [1, 1], dtype)

    xp.asarray(x, copy=True)[0] = 0
    xp.astype(x, x.dtype)[0] = 0
    xp.reshape(x, (2, 1), copy=True)[0] = 0
    equal(x, [1, 1])
    xp.asarray(x, copy=False)[0] = 0
    equal(x, [0, 1])
    assert xp.astype(x, x.dtype, copy=False) is x


def lent(x: Any) -> memoryview:
    """The memory of an array of NumPy's."""
    return memoryview(x)


LENT = {
    "bytes": b"ab",
    "bytearray": bytearray(3),
    "doubles": array("d", [0.1, 2.5]),
    "a view": lent(np.arange(6, dtype=np.int64)[::2]),
    "rows": lent(np.eye(2)),
    "complex": lent(np.array([1j, 0.1])),
    "of rank 0": lent(np.float32(0.5)),
}


@pytest.mark.parametrize("name", LENT)
def test_memory_that_is_lent_is_an_array_of_its_dtype(name: str):
    xp, reference = rnp.ones(1).__array_namespace__(), np.asarray(memoryview(LENT[name]))

    assert xp.asarray(LENT[name]).dtype == reference.dtype
    equal(xp.asarray(LENT[name]), reference)
    equal(xp.asarray(LENT[name], dtype=xp.complex128), reference)


@pytest.mark.parametrize("number", [True, 3, -3, 2.5, 1j])
def test_a_python_number_has_the_default_dtype_of_its_kind(xp: Any, number: Any):
    kinds = {bool: "bool", int: "integral", float: "real floating", complex: "complex floating"}
    x = xp.asarray(number)

    assert x.shape == ()
    assert xp.isdtype(x.dtype, kinds[type(number)])
    assert type(number)(x) == number
    assert xp.full((2,), number).dtype == x.dtype
    if type(number) is not bool:
        defaults = xp.__array_namespace_info__().default_dtypes()
        assert defaults[kinds[type(number)]] == x.dtype


@pytest.mark.parametrize("number", [2**40, -(2**40), 2**63 - 1])
def test_integers_of_64_bits_are_kept(xp: Any, number: int):
    assert int(xp.asarray(number, dtype=xp.int64)) == number


@pytest.mark.parametrize("bounds", [(5,), (2.5,), (1, 5), (1, 10, 3), (5, 1, -2), (0, 1, 0.25), (3, 3), (10, 0, -1)])
def test_arange_has_numpys_length_and_kind(xp: Any, bounds: tuple):
    numbers, reference = xp.arange(*bounds), np.arange(*bounds)

    np.testing.assert_allclose(np.asarray(numbers), reference)
    assert xp.isdtype(numbers.dtype, "real floating") == (reference.dtype.kind == "f")


@pytest.mark.parametrize("count", [0, 1, 5])
@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize("stop", [1, 0, -3.5, 4j])
def test_linspace_agrees_with_numpy(xp: Any, stop: Any, endpoint: bool, count: int):
    numbers = xp.linspace(0, stop, num=count, endpoint=endpoint)

    np.testing.assert_allclose(np.asarray(numbers), np.linspace(0, stop, count, endpoint=endpoint), rtol=1e-6)


def test_a_zero_dimensional_array_converts_to_pythons_numbers(xp: Any):
    for dtype in ALL:
        x = new_array(xp, 1, dtype)
        assert bool(x) is True
        assert complex(x) == 1
        if dtype not in COMPLEX:
            assert (int(x), float(x)) == (1, 1.0)
    assert operator.index(new_array(xp, 3, "int16")) == 3
    for dtype, convert in (("float32", operator.index), ("complex64", float), ("complex64", int)):
        with pytest.raises(TypeError):
            convert(new_array(xp, 1, dtype))


WIDE = [
    ("int64", -(2**62), 2**62, 2**58 + 1),
    ("int64", 2**62, -(2**62), -(2**58) - 1),
    ("uint64", 3, 2**64 - 2, 2**63 + 1),
    ("int64", 2**53, 2**53 + 3, 1),
    ("int32", 0, 2**31 - 1, 2**29),
    ("uint8", 10, 0, -3),
    ("int8", -128, 127, 200),
    ("uint64", 2**64 - 1, 5, -(2**62)),
]


@pytest.mark.parametrize(("dtype", "start", "stop", "step"), WIDE)
def test_arange_counts_integers_of_64_bits_to_the_last(dtype: str, start: int, stop: int, step: int):
    xp = rnp.ones(1).__array_namespace__()  # NumPy's length is that of a quotient of floats

    numbers = xp.arange(start, stop, step, dtype=getattr(xp, dtype))

    assert np.asarray(numbers).tolist() == list(range(start, stop, step))


@pytest.mark.parametrize(("dtype", "start", "stop", "step"), WIDE)
@pytest.mark.parametrize("count", [1, 2, 7, 32_768, 32_769, 70_001])
def test_linspace_has_integers_for_ends(dtype: str, start: int, stop: int, step: int, count: int):
    xp = rnp.ones(1).__array_namespace__()  # NumPy's ends are floats, too

    numbers = np.asarray(xp.linspace(start, stop, count, dtype=getattr(xp, dtype))).tolist()

    parts = max(count - 1, 1)
    assert numbers == [start + (stop - start) * k // parts for k in range(count)]


@pytest.mark.parametrize("k", [3, -3, 5, 2**31 - 2, 2**31, -(2**31), 2**62, -(2**62)])
def test_a_diagonal_may_be_far_outside_a_matrix(k: int):
    x = np.arange(1.0, 7).reshape(2, 3)

    equal(rnp.eye(2, 3, k=k), np.eye(2, 3, k=k))
    equal(rnp.tri(2, 3, k), np.tri(2, 3, k))
    for name in ("tril", "triu"):
        triangle, reference = partial(getattr(rnp, name), k=k), getattr(np, name)(x, k=k)
        equal(triangle(rnp.asarray(x)), reference)
        equal(rune.jit(triangle)(rnp.asarray(x)), reference)


# --- dtypes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ALL)
def test_a_dtype_equals_only_itself(xp: Any, dtype: str):
    dtype_there = xp.ones(1, dtype=getattr(xp, dtype)).dtype

    assert [o for o in ALL if dtype_there == getattr(xp, o)] == [dtype]
    assert [o for o in ALL if getattr(xp, o) == dtype_there] == [dtype]
    assert {getattr(xp, dtype): 1}[getattr(xp, dtype)] == 1


@pytest.mark.parametrize("dtype", ALL)
def test_a_number_with_an_array_promotes_as_the_standard_prescribes(xp: Any, dtype: str):
    for number in (True, 1, 1.5, 1j):
        try:
            reference = strict.result_type(strict.ones(1, dtype=getattr(strict, dtype)), number)
        except TypeError:
            continue
        result_dtype = xp.result_type(xp.ones(1, dtype=getattr(xp, dtype)), number)
        assert result_dtype == getattr(xp, str(reference).rsplit(".", 1)[-1])


def test_no_operands_have_no_dtype():
    with pytest.raises(ValueError, match="result_type: cannot find the dtype of no operands"):
        rnp.result_type()


def test_an_array_can_be_cast_where_its_dtype_can():
    xp = rnp.ones(1).__array_namespace__()
    for one, other in itertools.product(ALL, ALL):
        verdict = xp.can_cast(xp.ones(2, dtype=getattr(xp, one)), getattr(xp, other))

        assert verdict is xp.can_cast(getattr(xp, one), getattr(xp, other))


@pytest.mark.parametrize("name", ["sum", "prod", "cumulative_sum", "cumulative_prod"])
def test_sums_of_small_integers_are_of_the_default_width(xp: Any, name: str):
    bits = xp.iinfo(xp.asarray(0).dtype).bits
    for dtype in NUMBERS:
        x = xp.ones(3, dtype=getattr(xp, dtype))
        is_small = dtype in INTEGERS and xp.iinfo(x.dtype).bits < bits
        wide = f"{'u' if dtype[0] == 'u' else ''}int{bits}"

        assert getattr(xp, name)(x).dtype == getattr(xp, wide if is_small else dtype)
        assert getattr(xp, name)(x, dtype=x.dtype).dtype == x.dtype


INDICES: dict[str, Callable[[Any, Any], list[Any]]] = {
    "argmax": lambda xp, x: [xp.argmax(x), xp.argmin(x, keepdims=True)],
    "argsort": lambda xp, x: [xp.argsort(x)],
    "searchsorted": lambda xp, x: [xp.searchsorted(xp.sort(x), x)],
    "nonzero": lambda xp, x: list(xp.nonzero(x)),
    "count_nonzero": lambda xp, x: [xp.count_nonzero(x)],
    "ranks": lambda xp, x: [xp.linalg.matrix_rank(y) for y in (xp.reshape(x, (3, 1)), xp.ones((4, 2, 1)))],
    "unique_all": lambda xp, x: list(xp.unique_all(x))[1:],
    "unique_counts": lambda xp, x: [xp.unique_counts(x).counts],
    "unique_inverse": lambda xp, x: [xp.unique_inverse(x).inverse_indices],
}


@pytest.mark.parametrize("name", INDICES)
def test_positions_and_counts_have_the_announced_index_dtype(xp: Any, name: str):
    index_dtype = xp.__array_namespace_info__().default_dtypes()["indexing"]

    for result in INDICES[name](xp, new_array(xp, [3.0, 1.0, 1.0])):
        assert result.dtype == index_dtype


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX])
def test_limits_are_those_of_the_parts(xp: Any, dtype: str):
    limits, reference = xp.finfo(getattr(xp, dtype)), np.finfo(dtype)

    for name in ("eps", "max", "min", "smallest_normal"):
        assert float(getattr(limits, name)) == float(getattr(reference, name))
    assert limits.dtype == reference.dtype
    assert limits.bits == reference.bits
    assert xp is np or type(limits.eps) is float


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_sorting_is_stable_both_ways(dtype: str):
    xp = rnp.ones(1).__array_namespace__()  # NumPy has no descending=
    data = np.array([[3, 1, 2, 1], [0, 5, 5, 4]], dtype)
    for axis in (0, -1):
        reverse = np.flip(data, axis)
        last = data.shape[axis] - 1
        down = last - np.flip(np.argsort(reverse, axis=axis, kind="stable"), axis)
        x = new_array(xp, data, dtype)

        equal(xp.argsort(x, axis=axis, descending=True, stable=True), down)
        equal(xp.sort(x, axis=axis, descending=True), np.flip(np.sort(data, axis=axis), axis))


# --- shapes and results -----------------------------------------------------------------------

REDUCTIONS = "sum prod max min mean std var all any count_nonzero".split()


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions_take_every_choice_of_axes(xp: Any, name: str, keepdims: bool):
    data = np.arange(1.0, 25).reshape(2, 3, 4)
    for axis in (None, 0, -1, (0, 1), (0, 2), ()):
        result = getattr(xp, name)(new_array(xp, data, "float64"), axis=axis, keepdims=keepdims)
        reference = getattr(np, name)(data, axis=axis, keepdims=keepdims)

        assert result.shape == np.shape(reference)
        np.testing.assert_allclose(np.asarray(result), reference)


SEVERAL: dict[str, Callable[[Any], Any]] = {
    "meshgrid": lambda xp: xp.meshgrid(xp.arange(2), xp.arange(3)),
    "meshgrid of one": lambda xp: xp.meshgrid(xp.arange(2)),
    "broadcast_arrays": lambda xp: xp.broadcast_arrays(xp.ones((2, 1)), xp.ones(3)),
    "broadcast_shapes": lambda xp: xp.broadcast_shapes((2, 1), (3,)),
    "nonzero": lambda xp: xp.nonzero(xp.arange(3)),
    "unstack": lambda xp: xp.unstack(xp.ones((2, 3))),
    "devices": lambda xp: xp.__array_namespace_info__().devices(),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_several_results_are_a_tuple(name: str):
    assert type(SEVERAL[name](rnp.ones(1).__array_namespace__())) is tuple


@pytest.mark.parametrize("sizes", [(2, 2), (3, 2), (2, 3), (3, 1), (4, 4)])
def test_a_cross_product_takes_three_components(xp: Any, sizes: tuple[int, int]):
    with pytest.raises(ValueError, match=r"cross|3"):
        xp.linalg.cross(*(xp.ones((2, n)) for n in sizes))


def test_shapes_that_do_not_fit_are_errors_of_value(xp: Any):
    with pytest.raises(ValueError, match="squeeze"):
        xp.squeeze(xp.ones((2, 1)), axis=0)
    with pytest.raises(ValueError, match=r"shape|broadcast"):
        xp.broadcast_to(xp.ones(3), (2,))
    with pytest.raises(ValueError, match=r"shape|broadcast"):
        xp.broadcast_arrays(xp.ones(3), xp.ones(2))
    for axis in (3, -4):
        with pytest.raises(IndexError):
            xp.expand_dims(xp.ones((2, 3)), axis=axis)


def test_each_nan_counts_as_a_unique_value(xp: Any):
    x = new_array(xp, [math.nan, 1.0, math.nan])
    rune_has_more = xp is not np  # np.unique_values(x) alone does as the standard says

    assert xp.unique_values(x).shape == (3,)
    if rune_has_more:
        equal(xp.unique_counts(x).counts, [1, 1, 1])
        assert xp.unique_all(x).values.shape == xp.unique_inverse(x).values.shape == (3,)


NAMED = {
    "eigh": ("eigenvalues", "eigenvectors"),
    "eig": ("eigenvalues", "eigenvectors"),
    "qr": ("Q", "R"),
    "slogdet": ("sign", "logabsdet"),
    "svd": ("U", "S", "Vh"),
}


@pytest.mark.parametrize("name", NAMED)
def test_results_of_factorisations_have_names(xp: Any, name: str):
    matrix = new_array(xp, [[2.0, 1.0], [1.0, 3.0]], "float64")

    for x in (matrix, xp.stack([matrix, matrix])):
        results = getattr(xp.linalg, name)(x)
        assert isinstance(results, tuple)
        for part, result in zip(NAMED[name], results, strict=True):
            equal(getattr(results, part), result)


@pytest.mark.parametrize("name", "fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft".split())
def test_transforms_keep_the_width(xp: Any, name: str):
    takes_real = name in ("rfft", "rfftn", "ihfft")
    gives_real = name in ("irfft", "irfftn", "hfft")
    for bits in (32, 64):
        x = new_array(xp, [1, 2, 3, 4], f"float{bits}" if takes_real else f"complex{2 * bits}")
        reference = f"float{bits}" if gives_real else f"complex{2 * bits}"

        assert getattr(xp.fft, name)(x).dtype == getattr(xp, reference)


def test_the_namespace_of_an_array_is_found_from_its_results(xp: Any):
    x = xp.ones((2, 3))

    for result in (x + 1, x[0], x.mT, xp.sum(x), xp.linalg.svd(x)[0], xp.fft.fft(x + 0j)):
        assert xp is np or result.__array_namespace__() is xp
    assert x.to_device(x.device).device == x.device
    assert x.device in xp.__array_namespace_info__().devices()
    equal(xp.from_dlpack(x), x)
    equal(np.from_dlpack(x), np.ones((2, 3)))
