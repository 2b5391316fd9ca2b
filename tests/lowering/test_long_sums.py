"""Sums of more like-signed f32 than one accumulator can count: none ends at 2**24.

The operand is one number broadcast, so that nothing is read and the sum is known. RUNE_TEST_WHOLE=1
tries every executor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import rune
import rune.numpy as rnp
from rune import dtypes, lax
from rune.core.types import ArrayType
from rune.lowering.kernelize import cost
from rune.lowering.kernelize.two_step import Parallelism, choose
from rune.ops import long_sums
from tests.support.sampling import IS_WHOLE

DEVICES = [d.name for d in rune.devices() if d.target.backend in ("cpu", "opencl")]
SHAPES: dict[str, tuple[tuple[int, ...], Any]] = {
    "one row": ((2**30,), 0),
    "a prime of elements": ((2**30 + 3,), 0),
    "rows side by side": ((64, 2**26 + 1), 1),
    "columns": ((2**25 + 7, 520), 0),
    "two axes": ((40, 8192, 8192), (1, 2)),
    "three axes": ((300, 300, 17, 300), (0, 1, 3)),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("device", DEVICES if IS_WHOLE else DEVICES[:1])
def test_a_long_sum_of_ones_is_their_number(device: str, name: str):
    shape, axis = SHAPES[name]
    axes = axis if isinstance(axis, tuple) else (axis,)
    program = rune.jit(lambda x: rnp.broadcast_to(x, shape).sum(axis), device=device)

    total = np.asarray(program(np.float32(1)))

    expected = np.float32(np.prod([shape[a] for a in axes]))
    np.testing.assert_allclose(total, np.broadcast_to(expected, total.shape), rtol=1e-6)


# A sum of n*m numbers, where neither size has a bound, and the largest m that is tried.
OPEN_SUMS: dict[str, tuple[Any, int]] = {
    "one row": (lambda x, n, m: rnp.broadcast_to(x, (n * m,)).sum(), 2**15 + 1),
    "two axes": (lambda x, n, m: rnp.broadcast_to(x, (n, m)).sum(), 2**15 + 1),
    "columns": (lambda x, n, m: rnp.broadcast_to(x, (n * m, 8)).sum(0)[4], 2**10 + 1),
    "rows": (lambda x, n, m: rnp.broadcast_to(x, (8, n * m)).sum(1)[4], 2**12 + 1),
    "halves": (lambda x, n, m: rnp.broadcast_to(x.astype("f2"), (n * m,)).mean().astype("f4") * n * m, 2**15),
}


@pytest.mark.parametrize("name", OPEN_SUMS)
@pytest.mark.parametrize("device", DEVICES if IS_WHOLE else DEVICES[:1])
def test_a_sum_over_an_open_size_counts_its_ones(device: str, name: str):
    function, most = OPEN_SUMS[name]
    program = rune.jit(
        lambda x, a, b: function(x, a.shape[0], b.shape[0]),
        dims={"n": (1, None), "m": (1, None)},
        in_dims=(None, "n", "m"),
        device=device,
    )
    for n, m in [(1, 1), (4, 1024), (17, 241), (2**15, most)]:
        total = program(np.float32(1), np.zeros(n, np.int8), np.zeros(m, np.int8))

        np.testing.assert_allclose(np.asarray(total), n * m, rtol=1e-6)


ONES = 2**24 + 2_051  # more than an accumulator of f32 counts


def ones(*shape: int) -> Any:
    return rnp.broadcast_to(np.float32(1), shape)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("device", DEVICES if IS_WHOLE else DEVICES[:1])
def test_a_running_sum_of_ones_counts_beyond_2_to_the_24(device: str, reverse: bool):
    program = rune.jit(lambda x: lax.cumsum(rnp.broadcast_to(x, (ONES,)), reverse=reverse), device=device)

    total = np.asarray(program(np.float32(1)))[0 if reverse else -1]

    np.testing.assert_allclose(total, ONES, rtol=1e-6)


def test_an_eager_running_sum_of_ones_counts_beyond_2_to_the_24():
    np.testing.assert_allclose(np.asarray(rnp.cumsum(ones(ONES)))[-1], ONES, rtol=1e-6)


EAGER: dict[str, tuple[Any, float]] = {
    "sum": (lambda: rnp.sum(ones(ONES, 2), 0), ONES),
    "sum of two axes": (lambda: rnp.sum(ones(2, 2, ONES // 2, 2), (1, 2)), ONES - 1),
    "sum of a transposed array": (lambda: rnp.sum(ones(2, ONES).T, 0), ONES),
    "mean": (lambda: rnp.mean(ones(ONES, 2), 0), 1),
    "cotangent": (lambda: rune.grad(lambda b: (ones(ONES, 2) + b).sum())(rnp.ones(2)), ONES),
    "histogram": (lambda: rnp.histogram(ones(ONES), 2, (0, 1.5))[0][1], ONES),
    "histogramdd": (lambda: rnp.histogramdd(ones(ONES, 1), 1)[0], ONES),
}


@pytest.mark.parametrize("name", EAGER)
def test_an_eager_sum_of_ones_is_their_number(name: str):
    function, expected = EAGER[name]

    np.testing.assert_allclose(np.asarray(function()), expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8"])
@pytest.mark.parametrize("size", [1, 1023, 1024, 1025, 2047, 2049, 4099, 65_537])
def test_running_sums_are_those_of_wider_numbers(size: int, dtype: str):
    x = np.random.default_rng(size).random((2, size, 3)).astype(dtype)
    program = rune.jit(lambda x: rnp.cumsum(x, 1))
    expected = np.cumsum(x, 1, np.promote_types(dtype, np.longdouble))
    bound = 16 * np.finfo(np.dtype(dtype)).eps * np.maximum(np.abs(expected), 1)

    for way in (program, lambda x: rnp.cumsum(rnp.asarray(x), 1)):
        with rune.enable_x64():
            assert (np.abs(np.asarray(way(x)) - expected) <= bound).all()


@pytest.mark.parametrize("device", [d.name for d in rune.devices() if d.target.backend not in ("reference", "null")])
@pytest.mark.parametrize(("axis", "reverse"), [(0, False), (1, True)])
def test_running_sums_of_many_rows_are_right_on_every_device(axis: int, reverse: bool, device: str):
    # So many rows that no device cuts them: each is the loop of a thread, in blocks.
    x = np.random.default_rng(0).random((1027, 2111) if axis == 0 else (2111, 1027), np.float32)
    forward = np.flip(x, axis) if reverse else x
    expected = np.cumsum(forward, axis, np.float64)

    sums, doubled = rune.jit(lambda x: (y := lax.cumsum(x, axis, reverse), y * 2), device=device)(x)

    np.testing.assert_allclose(np.flip(sums, axis) if reverse else sums, expected, rtol=3e-6)
    np.testing.assert_array_equal(doubled, 2 * np.asarray(sums))


EQUAL: dict[str, tuple[tuple[int, ...], Any]] = {
    "rows": ((8, 700_001), 1),
    "rows of odd length": ((3, 131_073), 1),
    "columns": ((400_001, 3), 0),
    "columns beyond one accumulator": ((1_031, 600), 0),
    "many columns": ((20_011, 40), 0),
    "axes around": ((3, 700_001, 2), (0, 1)),
    "an axis between": ((2, 65_537, 7), 1),
    "images": ((3_001, 3, 5, 5), (0, 2, 3)),
}


@pytest.mark.parametrize("name", EQUAL)
@pytest.mark.parametrize("device", DEVICES)
def test_a_long_sum_of_equal_numbers_has_no_large_error(device: str, name: str):
    shape, axis = EQUAL[name]
    x = np.full(shape, 0.1, np.float32)
    program = rune.jit(lambda x: (sums := (x + 0 * x).sum(axis), sums * 2), device=device)
    expected = x.sum(axis, np.float64)
    # Threads of a device have no lanes, and those of a group add up a hundredth part each.
    bound = 4e-6 if device == "cpu:0" else 4e-5

    compiled, doubled = program(x)

    for sums, rtol in ((compiled, bound), (rnp.sum(rnp.asarray(x), axis), 4e-6)):
        np.testing.assert_allclose(np.asarray(sums), expected, rtol=rtol)
    np.testing.assert_array_equal(doubled, 2 * np.asarray(compiled))


@pytest.mark.parametrize("size", [1_025, 2_049, 65_537, 131_071, 131_072, 131_073, 2_500_001])
def test_a_running_sum_has_no_large_error_and_the_same_bits_eagerly(size: int):
    x = np.stack([np.full(size, 0.1), np.random.default_rng(size).random(size)], 1).astype(np.float32)

    eager = np.asarray(rnp.cumsum(rnp.asarray(x), 0))

    np.testing.assert_allclose(eager, np.cumsum(x, 0, np.float64), rtol=4e-6)
    np.testing.assert_array_equal(eager, np.asarray(rune.jit(lambda x: rnp.cumsum(x, 0))(x)))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8"])
@pytest.mark.parametrize("size", [65_537, 69_632, 1_000_003])
def test_an_eager_product_of_long_vectors_is_that_of_wider_numbers(size: int, dtype: str):
    with rune.enable_x64():
        x = rnp.full(size, 0.1, dtype)

        product = np.asarray(rnp.vdot(x, x[::-1]))

    expected = float(abs(x[0])) ** 2 * size
    np.testing.assert_allclose(product, expected, rtol=2e-3 if dtype == "f2" else 3e-5)


def test_a_sum_of_ones_around_its_columns_counts_beyond_2_to_the_24():
    program = rune.jit(lambda x: rnp.broadcast_to(x, (3, ONES, 2)).sum((0, 1)))

    for sums in (program(np.float32(1)), rnp.sum(ones(3, ONES // 2, 2), (0, 1)) * 2):
        np.testing.assert_allclose(np.asarray(sums), 3 * ONES, rtol=1e-6)


@given(data=st.data())
def test_a_sum_over_any_axes_of_any_layout_is_that_of_wider_numbers(data: st.DataObject):
    shape = data.draw(st.lists(st.sampled_from([1, 2, 3, 40, 1100, 2500]), min_size=1, max_size=4))
    assume(np.prod(shape) <= 400_000)
    x = np.random.default_rng(0).random(shape).astype(np.float32)
    x = x.transpose(data.draw(st.permutations(range(x.ndim))))
    x = x[tuple(slice(None, None, data.draw(st.sampled_from([1, 2, -1]))) for _ in shape)]
    axes = tuple(data.draw(st.sets(st.sampled_from(range(x.ndim)), min_size=1)))

    sums = long_sums.total(x, axes, x.dtype)

    assert sums.dtype == x.dtype
    np.testing.assert_allclose(sums, x.sum(axes, np.float64), rtol=2e-6)


@pytest.mark.parametrize(
    ("size", "part"), [(2048, None), (2064, 688), (4096, 2048), (6144, 2048), (8200, None), (65536, 2048)]
)
def test_rows_too_long_to_be_read_by_lines_are_cut_into_whole_lines(size: int, part: int | None):
    step = choose(ArrayType((512, size), dtypes.f32), (1,), Parallelism(8, 512, part=2048, lines=True))

    assert (step and step.size) == part


def test_rows_are_cut_where_they_are_long():
    def is_cut(size: int) -> bool:
        return choose(ArrayType((64, size), dtypes.f32), (1,), Parallelism(64, 512)) is not None

    assert not is_cut(cost.LONG_ROW)
    assert is_cut(cost.LONG_ROW + 1)
