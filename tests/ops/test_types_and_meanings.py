"""Every primitive: its type rule predicts the results' types, and its reference is right.

First that each has samples and a second, independent meaning; then shapes and dtypes; then values,
in every dtype that the type rule takes. Last the corners: integer division by zero, wide shifts,
saturating conversions, NaN.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from rune import dtypes, ops
from rune.backends.cpu.meanings import meaning_of
from rune.core.lower import Library
from rune.core.primitive import Primitive
from rune.errors import DtypeError
from tests.ops.meanings import meaning
from tests.ops.samples import (
    ELEMENTWISE,
    Sample,
    arity,
    each_primitive,
    elementwise_sample,
    samples,
    shape_combinations,
)
from tests.support.close import close, near, same
from tests.support.oracle import reference


def run_reference(sample: Sample) -> tuple[list[np.ndarray], np.ndarray]:
    """Operands and the reference's answer."""
    arrays = sample.draw()
    return arrays, reference(sample.primitive, *arrays, **sample.params)


def test_names_are_unique_and_every_primitive_is_in_the_table_once():
    primitives = (*ops.PRIMITIVES, *ops.LIBRARY)

    assert len(ops.BY_NAME) == len(primitives) == len(set(primitives))


def test_every_exported_primitive_is_in_the_table():
    exports = {v for v in vars(ops).values() if isinstance(v, Primitive)}

    assert exports <= {*ops.PRIMITIVES, *ops.LIBRARY, *ops.COLLECTIVES}


@each_primitive
def test_every_primitive_has_a_reference_a_derivative_rule_and_a_lowering(primitive: Primitive):
    assert primitive.reference is not None
    assert primitive.jvp is not None
    has_library = isinstance(primitive.lower, Library)
    assert has_library or (primitive.lower is None) != (primitive.expand is None)
    assert primitive.batch is not None or primitive.jvp == ()


@each_primitive
def test_the_type_rule_gives_the_shape_and_dtype_of_the_reference(primitive: Primitive):
    for sample in samples(primitive):
        _, result = run_reference(sample)
        type = primitive.type_rule(*sample.types, **sample.params)

        assert (type.shape, type.dtype) == (result.shape, result.dtype), str(sample)


@each_primitive
def test_the_function_of_eager_calls_gives_an_array_of_every_result_with_axes(primitive: Primitive):
    for sample in samples(primitive):
        with np.errstate(all="ignore"):
            out = meaning_of(primitive, sample.types, sample.params)(*sample.draw())
        results = out if primitive.multiple_results else [out]

        assert all(isinstance(x, np.ndarray) for x in results if np.ndim(x)), str(sample)
        assert isinstance(results, tuple | list), str(sample)


@each_primitive
def test_rank_zero_operands_combine_with_arrays(primitive: Primitive):
    if primitive.family not in ELEMENTWISE:
        return
    base = samples(primitive)[0]
    for shapes in shape_combinations(arity(primitive)):
        sample = elementwise_sample(primitive, base.types[-1].dtype, base.params, shapes)
        _, result = run_reference(sample)

        assert primitive.type_rule(*sample.types, **sample.params).shape == result.shape


@each_primitive
def test_the_reference_is_what_the_primitive_means(primitive: Primitive):
    for sample in samples(primitive):
        arrays, result = run_reference(sample)
        with np.errstate(all="ignore"):
            expected = meaning(primitive.name, arrays, result.dtype, sample.params)

        ulps = 64 if result.dtype in dtypes.COMPLEX else 8 if result.dtype in dtypes.FLOATING else 0
        expected = np.asarray(expected).astype(result.dtype)
        if primitive.family == "contraction" and result.dtype in dtypes.INEXACT:
            limit = 64 * float(ml_dtypes.finfo(result.dtype).eps)
            near(expected, result, relative=limit, why="products cancel; summed in another order")
        else:
            close(expected, result, ulps=ulps, why=f"{sample}: order, libm")


INTEGERS = sorted(dtypes.INTEGER - {dtypes.i4, dtypes.u4}, key=dtypes.short)


@pytest.mark.parametrize("dtype", INTEGERS, ids=dtypes.short)
def test_integer_division_truncates_and_never_traps(dtype: np.dtype):
    info = np.iinfo(dtype)
    a = np.array([7, 7, info.min, info.min, info.max, 0], dtype)
    b = np.array([2, 0, np.array(-1).astype(dtype), 0, 3, 0], dtype)

    quotient, remainder = ops.div(a, b), ops.rem(a, b)

    all_ones = int(np.invert(np.zeros((), dtype)))
    smallest = info.min if dtype in dtypes.SIGNED else 0
    assert quotient.tolist() == [3, all_ones, smallest, all_ones, info.max // 3, all_ones]
    assert remainder.tolist() == [1, 7, 0, info.min, info.max % 3, 0]


@pytest.mark.parametrize("dtype", INTEGERS, ids=dtypes.short)
def test_a_shift_by_the_width_or_more_leaves_only_the_fill(dtype: np.dtype):
    width = dtype.itemsize * 8
    a = np.array([5, np.iinfo(dtype).min, 5], dtype)
    by = np.array([width, width, 100], dtype)

    sign = -1 if dtype in dtypes.SIGNED else 0
    assert reference(ops.shl, a, by).tolist() == [0, 0, 0]
    assert reference(ops.shr, a, by).tolist() == [0, sign, 0]


@pytest.mark.parametrize("dtype", INTEGERS, ids=dtypes.short)
def test_float_to_integer_saturates_and_nan_becomes_zero(dtype: np.dtype):
    x = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 2.9], np.float32)

    info = np.iinfo(dtype)
    integers = reference(ops.convert, x, dtype=dtype)
    assert integers.tolist() == [0, info.max, info.min, info.max, info.min, 2]


@pytest.mark.parametrize("primitive", [ops.max, ops.min], ids=lambda p: p.name)
def test_max_and_min_propagate_nan_from_either_side(primitive: Primitive):
    a, b = np.array([np.nan, 1.0, np.nan]), np.array([1.0, np.nan, np.nan])

    assert np.isnan(reference(primitive, a, b)).all()


@pytest.mark.parametrize("primitive", [ops.argmax, ops.argmin], ids=lambda p: p.name)
def test_an_arg_reduction_gives_the_first_nan_else_the_first_extremum(primitive: Primitive):
    x = np.array([[1.0, np.nan, 3.0, np.nan], [2.0, 2.0, 2.0, 2.0]])

    assert reference(primitive, x, axis=1, dtype=dtypes.i32).tolist() == [1, 0]


def test_sums_of_half_types_accumulate_in_f32():
    x, numbers = np.ones(1000, dtypes.bf16), (((0,), (0,)), ((), ()))

    assert float(reference(ops.reduce_sum, x, axes=(0,))) == 1000.0
    assert float(reference(ops.dot_general, x, x, dimension_numbers=numbers)) == 1000.0


def test_a_conversion_never_drops_an_imaginary_part_silently():
    with pytest.raises(DtypeError, match="imaginary part would be lost"):
        ops.convert(np.ones(2, np.complex64), dtype=dtypes.f32)


def test_bytes_cannot_be_read_as_bools():
    with pytest.raises(DtypeError, match="bitcast: cannot read"):
        ops.bitcast(np.ones(2, np.uint8), dtype=dtypes.bool_)


def test_conversion_agrees_for_all_values_of_the_eight_bit_floats():
    for dtype in (dtypes.f8_e4m3, dtypes.f8_e5m2):
        numbers = np.arange(256, dtype=np.uint8).view(dtype)

        same(numbers, reference(ops.convert, numbers.astype(np.float32), dtype=dtype))
