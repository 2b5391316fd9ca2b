"""ShapeDtypeStruct: a shape and a dtype replace an array wherever its values do not matter."""

from __future__ import annotations

import copy
import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.errors import ArgumentError
from rune.sharding import SingleDeviceSharding

zeros_like: Any = rnp.zeros_like  # of structs, too, which are no arrays to a type checker
struct: Any = rune.ShapeDtypeStruct
ROWS = rune.ShapeDtypeStruct((2, 3), "float32")
DUCK: Any = SimpleNamespace(shape=(2, 3), dtype=np.dtype("float32"))


def test_a_struct_has_the_attributes_of_an_array():
    assert (ROWS.shape, ROWS.dtype, ROWS.ndim, ROWS.size, len(ROWS)) == ((2, 3), np.float32, 2, 6, 2)
    assert (ROWS.sharding, ROWS.weak_type) == (None, False)


def test_structs_are_compared_by_value():
    weak = rune.ShapeDtypeStruct((2, 3), rnp.float32, weak_type=True)

    assert ROWS == rune.ShapeDtypeStruct([2, 3], np.float32)
    assert hash(ROWS) == hash(rune.ShapeDtypeStruct([2, 3], np.float32))
    assert ROWS != weak
    assert pickle.loads(pickle.dumps(weak)) == copy.deepcopy(weak) == weak


@pytest.mark.parametrize("x", [np.ones((2, 3)), rnp.ones((2, 3)), ROWS, DUCK])
def test_a_struct_like_an_array_has_its_shape_and_dtype(x: Any):
    assert rune.ShapeDtypeStruct.like(x) == ROWS


def test_a_struct_like_a_number_is_weak_and_one_like_keys_has_their_dtype():
    assert rune.ShapeDtypeStruct.like(2.5) == rune.ShapeDtypeStruct((), "float32", weak_type=True)
    assert str(rune.ShapeDtypeStruct.like(rune.random.key(0)).dtype) == "key<fry>"


def test_a_struct_like_a_committed_array_has_its_sharding():
    array = rune.device_put(rnp.ones(2), "cpu")

    assert rune.ShapeDtypeStruct.like(array).sharding == SingleDeviceSharding("cpu")
    assert "sharding=SingleDeviceSharding(cpu:0)" in repr(rune.ShapeDtypeStruct.like(array))


def test_an_update_changes_some_fields():
    sharding = SingleDeviceSharding("cpu")
    result = ROWS.update(shape=(4,), dtype="int8", sharding=sharding)

    assert result == rune.ShapeDtypeStruct((4,), "int8", sharding=sharding)
    with pytest.raises(TypeError, match="colour"):
        ROWS.update(colour="red")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rune.ShapeDtypeStruct((), None), "without a dtype"),
        (lambda: struct((), "f32", sharding=3), "sharding=3"),
        (lambda: rune.ShapeDtypeStruct((), "f32", is_ref=True), "cannot use is_ref=True"),
    ],
)
def test_a_struct_that_describes_no_array_is_refused(make: Any, message: str):
    with pytest.raises(ArgumentError, match=message):
        make()


# --- where a type is enough -------------------------------------------------------------------


@pytest.mark.parametrize("x", [ROWS, DUCK], ids=["struct", "any object"])
def test_a_type_is_enough_where_values_do_not_matter(x: Any):
    assert (rnp.shape(x), rnp.ndim(x), rnp.size(x)) == ((2, 3), 2, 6)
    assert rnp.result_type(x, rnp.int8) == np.float32
    assert not rnp.iscomplexobj(x)
    assert rnp.isrealobj(x)
    np.testing.assert_array_equal(rnp.zeros_like(x), np.zeros((2, 3), np.float32))
    np.testing.assert_array_equal(rnp.ones_like(x, dtype=int), np.ones((2, 3), np.int32))
    np.testing.assert_array_equal(rnp.full_like(x, 7), np.full((2, 3), 7, np.float32))
    np.testing.assert_array_equal(rune.lax.full_like(x, 7), np.full((2, 3), 7, np.float32))
    assert rnp.empty_like(x).shape == (2, 3)
    assert rune.eval_shape(lambda v: v.T, x) == rune.ShapeDtypeStruct((3, 2), "float32")


def test_eval_shape_returns_and_accepts_structs():
    out = rune.eval_shape(lambda x: {"sum": x.sum(), "keys": rune.random.split(rune.random.key(0))}, ROWS)

    assert out["sum"] == rune.ShapeDtypeStruct((), "float32")
    assert rune.tree.map(rnp.zeros_like, out)["keys"].shape == (2,)
    assert rune.eval_shape(lambda o: o["sum"] + 1, out) == out["sum"]


def test_the_weakness_of_a_struct_matters_only_while_tracing():
    weak = rune.ShapeDtypeStruct((), "float32", weak_type=True)

    assert rune.eval_shape(lambda x: x * 2, weak).weak_type
    assert not zeros_like(weak).weak_type  # as in JAX


def test_a_struct_is_not_an_array():
    with pytest.raises(ArgumentError, match="cannot take ShapeDtypeStruct as an array"):
        rnp.sin(ROWS)  # type: ignore[arg-type]


def test_results_of_eval_shape_may_be_types():
    weak = rune.ShapeDtypeStruct((2,), "f32", weak_type=True)

    assert rune.eval_shape(lambda x: (x.T, {"rows": ROWS}, weak), ROWS) == (
        rune.ShapeDtypeStruct((3, 2), "f32"),
        {"rows": ROWS},
        weak,
    )


def test_a_function_that_returns_structs_has_their_types():
    out = rune.eval_shape(lambda x: (x + 1, ROWS, {"k": DUCK}), rune.ShapeDtypeStruct((3,), "int8"))

    assert out == (rune.ShapeDtypeStruct((3,), "int8"), ROWS, {"k": ROWS})


def test_a_program_cannot_return_a_struct():
    f: Any = rune.jit(lambda: ROWS)

    with pytest.raises(ArgumentError, match="cannot take ShapeDtypeStruct as an array"):
        f()
