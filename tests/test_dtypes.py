"""Dtypes as users name them: classes that construct arrays, explicit 64 bits, and kinds."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes
from rune.errors import DtypeError, PromotionError

NARROW = {"float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64"}
x = rnp.ones(2)
MAKERS = {
    "zeros": lambda dtype: rnp.zeros(2, dtype),
    "array": lambda dtype: rnp.array([1, 2], dtype),
    "asarray": lambda dtype: rnp.asarray(np.ones(2), dtype=dtype),
    "astype": lambda dtype: x.astype(dtype),
    "arange": lambda dtype: rnp.arange(3, dtype=dtype),
    "full": lambda dtype: rnp.full(2, 1, dtype),
    "zeros_like": lambda dtype: rnp.zeros_like(x, dtype),
    "eye": lambda dtype: rnp.eye(2, dtype=dtype),
    "sum": lambda dtype: rnp.sum(x, dtype=dtype),
    "cumsum": lambda dtype: rnp.cumsum(x, dtype=dtype),
    "linspace": lambda dtype: rnp.linspace(0, 1, 3, dtype=dtype),
    "frombuffer": lambda dtype: rnp.frombuffer(b"", dtype),
    "iota": lambda dtype: rune.lax.iota(dtype, 3),
    "convert_element_type": lambda dtype: rune.lax.convert_element_type(x, dtype),
    "jit": lambda dtype: rune.jit(lambda: rnp.zeros(2, dtype))(),
    "class": lambda dtype: getattr(rnp, dtype)(1),
}


# --- explicit 64 bits -------------------------------------------------------------------------


@pytest.mark.parametrize("wide", NARROW)
def test_explicit_64_bits_are_honoured(wide: str):
    assert {name: make(wide).dtype for name, make in MAKERS.items()} == dict.fromkeys(MAKERS, np.dtype(wide))


@pytest.mark.parametrize("wide", NARROW)
def test_explicit_64_bits_are_truncated_where_that_is_set(wide: str):
    narrow = np.dtype(NARROW[wide])

    with rune.configure(wide_dtypes="truncated"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert {name: make(wide).dtype for name, make in MAKERS.items()} == dict.fromkeys(MAKERS, narrow)
        with rune.enable_x64():
            assert MAKERS["zeros"](wide).dtype == np.dtype(wide)


def test_truncation_warns_at_the_line_of_the_request():
    with rune.configure(wide_dtypes="truncated"), pytest.warns(UserWarning, match="dtype float64 is not av") as records:
        rnp.zeros(2, "float64")

    assert records[0].filename == __file__


@pytest.mark.parametrize("wide", NARROW)
def test_each_function_that_makes_an_array_warns_once_of_truncation(wide: str):
    with rune.configure(wide_dtypes="truncated"):
        for name, make in MAKERS.items():
            with warnings.catch_warnings(record=True) as records:
                warnings.simplefilter("always")
                make(wide)
            assert len(records) == (name != "frombuffer"), name  # whose bytes arrive from NumPy


def test_default_dtypes_and_numpy_arrays_are_truncated_silently():
    with rune.configure(wide_dtypes="truncated"):
        arrays = (
            rnp.zeros(2, float),
            rnp.asarray(np.arange(2)),
            rnp.result_type(1, np.float32),
            rnp.arange(3, dtype=int),
        )

    assert [getattr(a, "dtype", a) for a in arrays] == [np.float32, np.int32, np.float32, np.int32]


def test_a_dtype_that_is_only_spoken_of_keeps_its_bits():
    with rune.configure(wide_dtypes="truncated"):
        assert rnp.dtype("float64") == np.float64
        assert rnp.finfo("float64").bits == rnp.iinfo("int64").bits == 64
        assert rnp.promote_types(np.dtype("int64"), "int32") == np.int64
        assert rnp.issubdtype("float64", rnp.float64)
        assert not rnp.can_cast("float64", "float32")
        assert rune.ShapeDtypeStruct((2,), "float64").dtype == np.float64


def test_the_dtype_of_a_result_is_truncated_without_a_word():
    with rune.configure(wide_dtypes="truncated"):
        types = [rnp.result_type(x) for x in ("float64", np.float64, np.dtype("float64"), rnp.float64)]

    assert types == [np.float32] * 4


def test_python_types_mean_64_bits_where_these_are_on():
    with rune.enable_x64():
        assert [rnp.result_type(t) for t in (bool, int, float, complex)] == ["bool", "int64", "float64", "complex128"]
        assert rnp.result_type(float, "int8") == rnp.promote_types(float, int) == np.float64
        assert rnp.result_type(float, "float32") == rnp.promote_types("float32", float) == np.float32


def test_bytes_are_read_in_the_dtype_that_they_have():
    numbers = np.arange(3.0)

    with rune.configure(wide_dtypes="truncated"):
        out = rnp.frombuffer(numbers.tobytes(), "float64")

    assert out.dtype == np.float32
    np.testing.assert_array_equal(out, numbers)


def test_a_trace_belongs_to_the_setting_that_it_was_made_under():
    f = rune.jit(lambda: rnp.zeros(2, "int64"))

    with rune.configure(wide_dtypes="truncated"), pytest.warns(UserWarning, match="int64"):
        narrow = f().dtype

    assert (narrow, f().dtype) == (np.int32, np.int64)


def test_types_of_64_bits_are_arguments_of_32_where_they_are_truncated():
    wide = rune.ShapeDtypeStruct((2,), "float64")

    with rune.configure(wide_dtypes="truncated"):
        assert rune.eval_shape(lambda v: v + 1, wide).dtype == np.float32
    assert rune.eval_shape(lambda v: v + 1, wide).dtype == np.float64


# --- classes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["float32", "bfloat16", "int4", "uint8", "bool_", "complex64"])
def test_a_dtype_is_a_class(name: str):
    cls = getattr(rnp, name)

    assert isinstance(cls, type)
    assert cls.__name__ == name
    assert np.dtype(cls) == cls.dtype == cls
    assert cls == cls.dtype.type
    assert hash(cls) == hash(cls.dtype.type)
    assert pickle.loads(pickle.dumps(cls)) is copy.deepcopy(cls) is cls


def test_a_class_constructs_arrays_also_of_traced_values():
    assert (rnp.int8(3).dtype, rnp.float32(np.ones(2)).shape, rnp.bool_(1).item()) == (np.int8, (2,), True)
    assert rune.jit(rnp.bfloat16)(3).dtype == rnp.bfloat16


def test_numbers_of_numpy_are_instances_and_arrays_are_not():
    assert isinstance(np.float32(1), rnp.float32)
    assert not isinstance(np.float64(1), rnp.float32)
    assert not isinstance(rnp.ones(2), rnp.float32)
    assert not issubclass(rnp.float32, np.generic)


# --- what is known of them --------------------------------------------------------------------


def test_a_canonical_dtype_has_32_bits_unless_64_are_the_default():
    assert [dtypes.canonicalize_dtype(w) for w in NARROW] == [np.dtype(n) for n in NARROW.values()]
    with rune.enable_x64():
        assert [dtypes.canonicalize_dtype(w) for w in NARROW] == [np.dtype(w) for w in NARROW]


def test_keys_are_canonical_on_request():
    keys = rune.random.key(0).dtype

    assert dtypes.canonicalize_dtype(keys, allow_extended_dtype=True) == keys
    with pytest.raises(DtypeError, match="cannot take key<fry>"):
        dtypes.canonicalize_dtype(keys)


@pytest.mark.parametrize(("dtype", "bits"), [("int4", 4), ("bool", 8), ("bf16", 16), ("complex128", 128)])
def test_elements_have_bits(dtype: str, bits: int):
    assert dtypes.itemsize_bits(dtype) == bits


@pytest.mark.parametrize("value", [1, 1.5, True, 1j])
def test_the_python_type_is_that_of_a_number(value: complex):
    for same in (value, np.asarray(value)[()], rnp.asarray(value), np.asarray(value).dtype, type(value)):
        assert dtypes.scalar_type_of(same) is type(value)


def test_keys_have_no_python_type():
    with pytest.raises(DtypeError, match="cannot find a Python type"):
        dtypes.scalar_type_of(rune.random.key(0))


def test_promotion_without_a_path_is_a_value_error_too():
    with pytest.raises(PromotionError, match="no implicit path"):
        rnp.add(rnp.float8_e5m2(1), rnp.float16(1))
    assert issubclass(PromotionError, ValueError)


# --- equal dtypes that are other objects ------------------------------------------------------


def unpickled(contents: np.ndarray) -> np.ndarray:
    return pickle.loads(pickle.dumps(contents))


def annotated(contents: np.ndarray) -> np.ndarray:
    return contents.view(np.dtype(contents.dtype, metadata={"unit": "m"}))


OTHERS = {"unpickled": unpickled, "annotated": annotated}
IN_NUMPY = sorted(d.name for d in dtypes.ANY if d.isbuiltin == 1)


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", IN_NUMPY)
def test_a_type_has_one_object_per_dtype_in_any_order_of_creation(name: str, other: str):
    contents = OTHERS[other](np.zeros((3, 1, len(other), 41), name))  # a shape of this test alone

    assert contents.dtype is not np.dtype(name)
    assert rnp.asarray(contents, contents.dtype).dtype is np.dtype(name)
    assert rnp.zeros(contents.shape, name).dtype is np.dtype(name)
    assert dtypes.named(contents.dtype) is np.dtype(name)


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", IN_NUMPY)
def test_programs_take_such_arrays_together_with_others(name: str, other: str):
    def accumulate(a, b):
        return rune.lax.scan(lambda c, _: (c ^ b if name == "bool" else c + b, c), a, length=3)[0]

    plain = np.array([1, 0, 1, 1, 0], name)
    strange = OTHERS[other](plain)
    expected = plain ^ plain ^ plain ^ plain if name == "bool" else plain + 3 * plain

    for function in (accumulate, rune.jit(accumulate)):
        for operands in ((strange, plain), (plain, strange), (strange, strange), (plain, plain)):
            result = function(*map(rnp.asarray, operands))
            np.testing.assert_array_equal(result, expected.astype(name))
            np.testing.assert_array_equal(function(*operands), expected.astype(name))
