"""Functions that are called often: compiled or inlined, they equal their single operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import tree
from rune.errors import RuneError
from rune.transforms.compile import tiers
from tests.numpy.cases import CASES
from tests.numpy.spelling import Case
from tests.numpy.test_eager_and_compiled import hard_values
from tests.support.close import same
from tests.support.sampling import one_in
from tests.support.surface_laws import drawn, silently, single, widened


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The third call of a kind is the first that is compiled."""
    monkeypatch.setattr(tiers, "OFTEN", 1)


def one_by_one(function: Callable[..., Any], *args: Any) -> Any:
    """The result of single operations: with this check on, nothing is compiled or inlined."""
    with rune.configure(check_keys=True):
        return function(*args)


def often(function: Callable[..., Any], *args: Any) -> Any:
    """The third call."""
    return [function(*args) for _ in range(3)][-1]


def types(result: Any) -> list[object]:
    return [getattr(x, "type", type(x)) for x in tree.leaves(result)]


def require_equal(expected: Any, result: Any) -> None:
    assert tree.structure(expected) == tree.structure(result)
    assert types(expected) == types(result)
    same(expected, result)


@pytest.mark.parametrize("case", one_in(12, CASES), ids=str)
def test_a_call_that_was_made_often_has_the_bits_of_the_first(case: Case) -> None:
    def call(*arrays: Any) -> Any:
        return silently(case, rnp, arrays)

    for arrays in (single(drawn(case)), [rnp.asarray(x) for x in widened(drawn(case))]):
        require_equal(one_by_one(call, *arrays), often(call, *arrays))


OF_ONE = (
    "nan_to_num sinc spacing signbit isinf isposinf isneginf isreal iscomplex angle round modf frexp unwrap diff "
    "ediff1d ptp max min argmax argmin sum prod any all cumsum cumprod nanmin nanmax nansum mean median "
    "count_nonzero argsort sort_complex gradient packbits unpackbits bitwise_count average std poly vander"
).split()
OF_TWO = (
    "hypot heaviside floor_divide remainder power divide divmod fmax fmin logaddexp isclose array_equal ldexp gcd lcm "
    "left_shift right_shift logical_xor cross outer dot isin take append clip polyval where"
).split()
DTYPES = "float32 float64 float16 bfloat16 int8 int32 uint8 int64 bool complex64".split()


def answers_alike(function: Callable[..., Any], *args: Any) -> None:
    """The same result or the same error."""
    expected, result = (answered(way, function, *args) for way in (one_by_one, often))
    if isinstance(expected, RuneError):
        assert type(expected) is type(result)
        assert expected.message == result.message
    else:
        require_equal(expected, result)


def answered(way: Callable[..., Any], function: Callable[..., Any], *args: Any) -> Any:
    """The result or the error."""
    try:
        return way(function, *args)
    except RuneError as error:
        return error


HARD = [(name, dtype) for name in OF_ONE for dtype in DTYPES]
HARD_PAIRS = [(name, dtype) for name in OF_TWO for dtype in DTYPES]


@pytest.mark.parametrize(("name", "dtype"), one_in(12, HARD))
def test_a_function_of_hard_values_has_the_same_bits_when_it_is_called_often(name: str, dtype: str) -> None:
    values = hard_values(dtype)

    for x in (values, values[:1], values[: len(values) // 2 * 2].reshape(2, -1)):
        answers_alike(getattr(rnp, name), rnp.asarray(x))


@pytest.mark.parametrize(("name", "dtype"), one_in(12, HARD_PAIRS))
def test_a_function_of_two_hard_values_has_the_same_bits_when_it_is_called_often(name: str, dtype: str) -> None:
    values = hard_values(dtype)
    x, y = np.repeat(values, len(values)), np.tile(values, len(values))

    answers_alike(getattr(rnp, name), rnp.asarray(x), rnp.asarray(y))
    answers_alike(getattr(rnp, name), rnp.asarray(values), 1)
    answers_alike(getattr(rnp, name), rnp.asarray(values), -0.0)


MIDDLE: dict[str, Callable[[Any], Any]] = {
    "nan_to_num": rnp.nan_to_num,
    "where": lambda x: rnp.where(x > 0, x, 1.0),
    "clip": lambda x: rnp.clip(x, -1, 1),
    "std": rnp.std,
    "std along rows": lambda x: rnp.std(x, 1),
    "std along columns": lambda x: rnp.std(x, 0),
    "mean": lambda x: rnp.mean(x, 1),
    "tril": rnp.tril,
    "diff": rnp.diff,
    "pad": lambda x: rnp.pad(x, 3, mode="reflect"),
    "round": lambda x: rnp.round(x, 2),
    "interp": lambda x: rnp.interp(x, rnp.linspace(-3, 3, 101), rnp.linspace(0, 1, 101)),
    "sinc": rnp.sinc,
    "cross": lambda x: rnp.cross(x[:, :3], x[:, 3:6]),
    "trapezoid": rnp.trapezoid,
}


@pytest.mark.parametrize("name", MIDDLE)
@pytest.mark.parametrize("is_hard", [False, True], ids=["finite", "with NaN"])
def test_tens_of_thousands_of_numbers_have_the_same_bits_when_a_call_is_made_often(name: str, is_hard: bool) -> None:
    numbers = np.random.default_rng(0).normal(size=(251, 257)).astype(np.float32)
    if is_hard:
        numbers[::7, ::11], numbers[1::7, ::13], numbers[2::7] = np.nan, np.inf, -0.0

    answers_alike(MIDDLE[name], rnp.asarray(numbers))


@pytest.mark.parametrize("size", [tiers.LARGE - 1, tiers.LARGE])
def test_a_composite_has_the_same_bits_in_every_call_on_both_sides_of_what_is_large(size: int) -> None:
    x = rnp.asarray(np.random.default_rng(0).normal(size=size).astype(np.float32))

    first, *others = [rnp.sinc(x) for _ in range(4)]

    for other in others:
        same(first, other)


@pytest.mark.parametrize("dtype", DTYPES[:-1])
def test_a_search_in_a_sorted_row_has_the_same_bits_when_it_is_made_often(dtype: str) -> None:
    values = rnp.asarray(hard_values(dtype))
    row = rnp.sort(values)

    answers_alike(rnp.searchsorted, row, values)
    answers_alike(rnp.digitize, values, row)
    answers_alike(lambda *xs: rnp.searchsorted(*xs, side="right"), row, values)


def test_after_many_similar_calls_the_next_is_one_compiled_program() -> None:
    x = rnp.arange(10.0)
    often(rnp.gradient, x)

    with rune.counting() as counts:
        rnp.gradient(x)

    assert counts.runs == 1


def test_calls_of_other_types_values_and_settings_are_other_kinds() -> None:
    x = rnp.array([-2.0, -0.5, 3.0])
    often(rnp.clip, x, -1.0, 1.0)

    assert rnp.clip(x, -1.0, 2.0).tolist() == [-1.0, -0.5, 2.0]
    assert rnp.clip(x.astype("f64"), -1.0, 1.0).dtype == "float64"
    assert rnp.clip(rnp.array([-2, 0, 3]), -1, 1).tolist() == [-1, 0, 1]
    assert rnp.clip(x[:1], -1.0, 1.0).tolist() == [-1.0]


def test_zeros_of_other_signs_are_other_arguments() -> None:
    x = rnp.array([1.0, -1.0])
    often(rnp.divide, x, 0.0)

    assert rnp.divide(x, -0.0).tolist() == [-np.inf, np.inf]
    assert rnp.divide(x, 0.0).tolist() == [np.inf, -np.inf]


def test_a_gradient_through_what_was_called_often_is_that_of_its_operations() -> None:
    x = rnp.array([0.5, 2.0, 7.0])
    often(rnp.gradient, x)

    slope = rune.grad(lambda x: rnp.sum(rnp.gradient(x) ** 2))(x)

    np.testing.assert_allclose(np.asarray(slope), [-3.0 - 3.25, 3.0 - 10.0, 10.0 + 3.25], rtol=1e-6)


def test_a_deleted_array_is_refused_by_the_function_that_was_called_often() -> None:
    x = rnp.arange(4.0)
    often(rnp.gradient, x)
    x.delete()

    with pytest.raises(RuneError, match="donated to a jitted call, or deleted"):
        rnp.gradient(x)


def test_kinds_that_are_seldom_called_push_out_no_compiled_one() -> None:
    x = rnp.arange(5.0)
    often(rnp.gradient, x)
    for distance in range(1, 2 * tiers.KINDS):
        rnp.gradient(x, float(distance))

    with rune.counting() as counts:
        rnp.gradient(x)

    assert counts.runs == 1


def test_a_size_that_depends_on_values_uses_single_operations() -> None:
    x = rnp.array([0, 1, 0, 2])

    assert [rnp.where(x)[0].tolist() for _ in range(4)] == [[1, 3]] * 4
    assert rnp.where(rnp.array([3, 0, 0, 0]))[0].tolist() == [0]


def test_a_nan_that_is_watched_is_found_in_what_was_called_often() -> None:
    x = rnp.array([0.0, 0.0])
    often(rnp.divide, x, x)

    with rune.configure(check_nans=True), pytest.raises(rune.errors.NaNError):
        rnp.divide(x, x)


@pytest.mark.parametrize("move", [rnp.ravel, rnp.flip, rnp.fliplr, lambda x: rnp.swapaxes(x, 0, 1)])
def test_a_movement_of_elements_stays_a_view(move: Callable[..., Any]) -> None:
    x = rnp.asarray(np.arange(12.0).reshape(4, 3))

    view = often(move, x)

    assert np.shares_memory(view.numpy(), x.numpy())


@pytest.mark.parametrize("dtype", ["int4", "int8", "float16", "float32"])
def test_a_product_keeps_its_dtype_however_often_it_was_made(dtype: str) -> None:
    x = rnp.asarray(np.arange(-3, 4), dtype)

    require_equal(one_by_one(rnp.dot, x, x), often(rnp.dot, x, x))
    assert often(lambda a: a @ a, x).dtype == dtype
