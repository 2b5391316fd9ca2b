"""Traced values: what they refuse, what they show, and when they end.

A traced value has a type and no contents: reading it is an error that names the line where it
was made. After its transformation has ended it cannot be used at all.
"""

from __future__ import annotations

import copy
import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune
from rune import ops
from rune.errors import (
    EscapedTracerError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerError,
    TracerIntegerConversionError,
)
from rune.ops.operators import Operators
from rune.sharding import Mesh, NamedSharding, PartitionSpec
from tests.support.arrays import array

X = array([1.0, 2.0, 3.0])
ON_ONE = NamedSharding(Mesh(["cpu:0"], "rows"), PartitionSpec("rows"))
TRANSFORMS = {
    "jit": rune.jit,
    "grad": rune.grad,
    "vmap": rune.vmap,
    "jvp": lambda f: lambda x: rune.jvp(f, (x,), (x,)),
    "make_program": rune.make_program,
    "linearize": lambda f: lambda x: rune.linearize(f, x),
}
BLIND = {
    "jit": rune.jit,
    "vmap": lambda f: lambda x: rune.vmap(lambda y: f(x * y))(x),
    "make_program": rune.make_program,
    "jit of grad": lambda f: rune.jit(rune.grad(f)),
    "grad of jit": lambda f: rune.grad(rune.jit(f)),
    "vmap of grad": lambda f: lambda x: rune.vmap(rune.grad(lambda y: f(x * y)))(x),
}
each_blind = pytest.mark.parametrize("transform", BLIND.values(), ids=BLIND)
each_transform = pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)


@each_blind
def test_a_traced_value_has_no_truth_value(transform: Any):
    with pytest.raises(TracerBoolConversionError, match="as a truth value"):
        transform(lambda x: x if x.sum() > 0 else -x)(X)


@each_blind
def test_a_traced_value_cannot_become_a_python_integer(transform: Any):
    with pytest.raises(TracerIntegerConversionError, match="as a Python integer"):
        transform(lambda x: range(x.sum()))(X)


@each_blind
def test_a_traced_value_cannot_become_a_python_float(transform: Any):
    with pytest.raises(TracerError, match="to a Python number"):
        transform(lambda x: float(x.sum()))(X)


@pytest.mark.parametrize("transform", ["jit", "grad", "vmap", "linearize"])
def test_a_traced_value_has_the_methods_of_an_array(transform: str):
    def function(x: Any) -> Any:
        for name in (n for n in vars(Operators) if not n.startswith("_")):
            assert type(getattr(type(x), name)) is type(getattr(Operators, name)), name
        return (x * x.var()).sum() if x.shape else x * x.var()

    TRANSFORMS[transform](function)(X)


@pytest.mark.parametrize("name", ["grad", "jvp", "linearize"])
def test_a_derivative_of_concrete_values_may_read_them(name: str):
    def function(x: Any) -> Any:
        assert float(x.sum()) == 6.0
        assert int(x.max()) == 3
        assert x[0].item() == 1.0
        return x.sum() if x.sum() > 0 else -x.sum()

    assert TRANSFORMS[name](function)(X) is not None


def test_python_may_branch_on_the_value_under_nested_derivatives():
    def piecewise(x: Any) -> Any:
        return x * x * x if x > 0 else -x

    assert [float(rune.grad(rune.grad(piecewise))(x)) for x in (2.0, -2.0)] == [12.0, 0.0]


@each_transform
def test_a_traced_value_cannot_become_a_numpy_array(transform: Any):
    with pytest.raises(TracerArrayConversionError, match="hand a traced value to NumPy"):
        transform(lambda x: np.asarray(x))(X)


@each_transform
def test_numpy_functions_do_not_convert_silently(transform: Any):
    with pytest.raises(TypeError):
        transform(lambda x: np.sin(x))(X)


def test_the_message_names_the_line_that_made_the_value():
    def function(x: Any) -> Any:
        y = ops.sin(x)  # the line that made it
        return bool(y)

    with pytest.raises(TracerBoolConversionError, match=r"y = ops.sin\(x\)  # the line that made"):
        rune.jit(function)(X)


@each_transform
def test_a_traced_value_used_after_its_transformation_is_an_error(transform: Any):
    values = []

    def function(x: Any) -> Any:
        values.append(x * 2.0)
        return x.sum()

    try:
        transform(function)(X)
    except Exception:
        raise AssertionError("the transformation itself must work") from None

    with pytest.raises(EscapedTracerError, match="after its transformation ended"):
        ops.neg(values[0])


def test_the_error_of_an_escaped_value_names_the_line_that_made_it():
    values = []

    def function(x: Any) -> Any:
        values.append(x * 2.0)  # this line
        return x

    rune.jit(function)(X)

    with pytest.raises(EscapedTracerError, match="# this line"):
        ops.sin(values[0])


def test_an_escaped_value_is_refused_by_every_other_transformation():
    values = []
    rune.jit(lambda x: values.append(x) or x)(X)

    for transform in TRANSFORMS.values():
        with pytest.raises(EscapedTracerError):
            transform(lambda x: (x * values[0]).sum())(X)


def test_an_escaped_value_of_an_inner_transformation_is_refused_by_the_outer_one():
    def outer(x: Any) -> Any:
        values = []
        rune.vmap(lambda y: values.append(y) or y)(x)
        return values[0] * x

    with pytest.raises(EscapedTracerError):
        rune.jit(outer)(X)


def test_everything_works_after_an_error_while_tracing():
    def broken(x: Any) -> Any:
        raise KeyError("from the user")

    for transform in TRANSFORMS.values():
        with pytest.raises(KeyError, match="from the user"):
            transform(broken)(X)

    assert float(rune.grad(lambda x: x * x)(3.0)) == 6.0


def test_a_traced_value_shows_its_type_and_not_its_value():
    texts = []

    rune.jit(lambda x: texts.append(repr(x)) or x)(X)

    assert texts == ["Traced<f32[3]>"]


def test_a_traced_value_has_shape_dtype_and_methods():
    def function(x: Any) -> Any:
        assert (x.shape, x.ndim, x.size, x.dtype) == ((3,), 1, 3, np.float32)
        return x.sum() + x.max() + len(x)

    assert float(rune.jit(function)(X)) == 12.0


def test_arrays_and_numpy_on_the_left_defer_to_traced_values():
    host = np.ones(3, np.float32)

    results = rune.jit(lambda x: (host * x, 2.0 - x, X + x))(X)

    assert np.asarray(results[0]).tolist() == [1.0, 2.0, 3.0]
    assert np.asarray(results[1]).tolist() == [1.0, 0.0, -1.0]


def answer_within(transform: Any, look: Any) -> Any:
    """The result of `look` on a traced value."""
    answers: list[Any] = []
    transform(lambda x: (answers.append(look(x)), x.sum())[1])(X)
    return answers[0]


@each_transform
def test_a_traced_value_is_an_array(transform: Any):
    assert answer_within(transform, lambda x: isinstance(x, rune.Array)) is True


@each_blind
def test_a_tree_is_searched_for_arrays_with_the_same_result_when_traced(transform: Any):
    def tripled(x: Any) -> Any:
        leaves = {"array": x, "text": "name"}
        tripled_leaves = rune.tree.map(lambda v: v * 3 if isinstance(v, rune.Array) else v, leaves)
        return tripled_leaves["array"].sum()

    expected = transform(lambda x: (x * 3).sum())(X)
    assert str(transform(tripled)(X)) == str(expected).replace("lambda", "tripled")


@each_transform
def test_a_copy_of_a_traced_value_is_the_value(transform: Any):
    assert answer_within(transform, lambda x: copy.copy(x) is x and copy.deepcopy([x])[0] is x) is True


@each_transform
def test_a_traced_value_has_no_hash(transform: Any):
    with pytest.raises(TypeError, match="unhashable"):
        transform(lambda x: {x: 1}[x])(X)


def test_a_function_that_remembers_its_arguments_keeps_no_traced_value():
    cache = functools.lru_cache(lambda x: x * 2)

    with pytest.raises(TypeError, match="unhashable"):
        rune.jit(cache)(X)

    assert cache.cache_info().currsize == 0


@each_blind
@pytest.mark.parametrize(
    "read",
    [
        lambda x: rune.viz.shards(x),
        lambda x: rune.tree.save("never.safetensors", x),
        lambda x: rune.distributed.save_checkpoint("never", x),
        lambda x: rune.distributed.process_allgather(x),
        lambda x: rune.distributed.broadcast_one_to_all(x),
        lambda x: rune.make_array_from_process_local_data(ON_ONE, x),
    ],
    ids=["shards", "save", "save_checkpoint", "process_allgather", "broadcast", "make_array"],
)
def test_attributes_of_concrete_arrays_are_refused_on_traced_values(transform: Any, read: Any):
    with pytest.raises(rune.errors.RuneError, match=r"an Array|no value yet"):
        transform(lambda x: (read(x), x.sum())[1])(X)


@each_transform
def test_copying_a_traced_value_returns_the_value_itself(transform: Any):
    transform(lambda x: rune.device_put(x, may_alias=False).sum())(X)


def test_a_checkpoint_is_read_as_a_traced_value(tmp_path: Path):
    rune.distributed.save_checkpoint(tmp_path, X)

    double = rune.jit(lambda like: like + rune.distributed.load_checkpoint(tmp_path, like))(X)

    np.testing.assert_array_equal([2.0, 4.0, 6.0], double)
