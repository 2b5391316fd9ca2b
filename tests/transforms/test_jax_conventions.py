"""Arguments of programs written for JAX: defaults, objects, and objects in place of arrays."""

from __future__ import annotations

import enum
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import lax, random
from rune.errors import ArgumentError, ShapeError
from rune.sharding import NamedSharding, P, make_mesh
from rune.typing import ArrayLike
from tests.support.close import same

X = rnp.arange(6.0).reshape(2, 3)
KEY = random.key(0)
Y: Any = X  # for calls that a type checker would refuse

# --- arguments at JAX's defaults --------------------------------------------------------------

LAID_OUT = {
    "zeros": lambda s: rnp.zeros((2, 3), out_sharding=s),
    "ones": lambda s: rnp.ones((2, 3), out_sharding=s),
    "full": lambda s: rnp.full((2, 3), 7.0, out_sharding=s),
    "zeros_like": lambda s: rnp.zeros_like(X, out_sharding=s),
    "arange": lambda s: rnp.arange(4, out_sharding=s),
    "array": lambda s: rnp.array([1, 2], out_sharding=s),
    "asarray": lambda s: rnp.asarray(np.ones(2), out_sharding=s),
    "reshape": lambda s: rnp.reshape(X, (6,), out_sharding=s),
    "x.reshape": lambda s: Y.reshape(6, out_sharding=s),
    "ravel": lambda s: rnp.ravel(X, out_sharding=s),
    "repeat": lambda s: rnp.repeat(X, 2, axis=0, out_sharding=s),
    "broadcast_to": lambda s: rnp.broadcast_to(X, (2, 2, 3), out_sharding=s),
    "dot": lambda s: rnp.dot(X, X.T, out_sharding=s),
    "x.dot": lambda s: X.dot(X.T, precision=None, out_sharding=s),
    "matmul": lambda s: rnp.matmul(X, X.T, out_sharding=s),
    "tensordot": lambda s: rnp.tensordot(X, X.T, 1, out_sharding=s),
    "einsum": lambda s: rnp.einsum("ij,kj", X, X, out_sharding=s, _dot_general=lax.dot_general),
    "lax.dot": lambda s: lax.dot(X, X.T, out_sharding=s),
    "lax.dot_general": lambda s: lax.dot_general(X, X, (((1,), (1,)), ((), ())), out_sharding=s),
    "lax.broadcast": lambda s: lax.broadcast(X, (2,), out_sharding=s),
    "lax.reshape": lambda s: lax.reshape(X, (6,), out_sharding=s),
    "lax.full": lambda s: lax.full((2,), 1.0, sharding=s),
    "lax.reduce_sum": lambda s: lax.reduce_sum(X, (1,), out_sharding=s),
    "normal": lambda s: random.normal(KEY, (2,), out_sharding=s),
    "permutation": lambda s: random.permutation(KEY, 4, out_sharding=s),
    "initializer": lambda s: rune.nn.initializers.he_normal()(KEY, (2, 3), out_sharding=s),
}


@pytest.mark.parametrize("name", LAID_OUT)
def test_a_result_has_the_requested_layout(name: str):
    rows = NamedSharding(make_mesh((1,), ("data",)), P("data"))
    plain = LAID_OUT[name](None)

    for out in (LAID_OUT[name](rows), rune.jit(lambda: LAID_OUT[name](rows))()):
        assert out.sharding == rows
        np.testing.assert_array_equal(out, plain)


AT_DEFAULTS = {
    "linear_transpose": lambda: rune.linear_transpose(lambda v: 2 * v, 1.0, reduce_axes=())(3.0)[0],
    "grad": lambda: rune.grad(lambda v: 3 * v * v, reduce_axes=())(1.0),
    "value_and_grad": lambda: rune.value_and_grad(lambda v: 3 * v * v, reduce_axes=[])(1.0)[1],
    "vjp": lambda: rune.vjp(lambda v: 2 * v, 1.0, reduce_axes=())[1](3.0)[0],
    "vmap": lambda: rune.vmap(lambda v: 2 * v, spmd_axis_name=None, sum_match=False)(rnp.full(1, 3.0))[0],
    "checkpoint": lambda: rune.checkpoint(lambda v: 2 * v, concrete=False)(3.0),
    "scan": lambda: lax.scan(lambda c, _: (c + 1.0, None), 4.0, length=2, _split_transpose=False)[0],
    "at.get": lambda: rnp.full(1, 6.0).at[0].get(out_sharding=None),
    "at.set": lambda: rnp.zeros(1).at[0].set(6.0, out_sharding=None)[0],
    "segment_sum": lambda: rune.ops.segment_sum(rnp.full(1, 6.0), rnp.array([0]), 1, out_sharding=None)[0],
}


@pytest.mark.parametrize("name", AT_DEFAULTS)
def test_an_argument_at_its_default_changes_nothing(name: str):
    assert AT_DEFAULTS[name]() == 6.0


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: rune.linear_transpose(lambda v: 2 * v, 1.0, reduce_axes=("data",)), "reduce_axes"),
        (lambda: rune.grad(rnp.sin, reduce_axes=("data",)), "reduce_axes"),
        (lambda: rune.vjp(rnp.sin, 1.0, reduce_axes=("data",)), "reduce_axes"),
        (lambda: rune.vmap(rnp.sin, sum_match=True), "sum_match"),
        (lambda: rune.checkpoint(rnp.sin, concrete=True), "concrete"),
        (lambda: lax.scan(lambda c, _: (c, c), 0.0, length=2, _split_transpose=True), "_split_transpose"),
        (lambda: rnp.einsum("i,i", X[0], X[0], _dot_general=lambda *a: X), "contract by"),
    ],
)
def test_another_value_is_refused_by_name(call: Any, argument: str):
    with pytest.raises(ArgumentError, match=f"cannot .*{argument}"):
        call()


def test_negative_positions_are_out_of_bounds_where_they_do_not_wrap():
    last = -np.ones((2, 1), int)

    np.testing.assert_array_equal(rnp.take_along_axis(X, last, 1), [[2], [5]])
    np.testing.assert_array_equal(rnp.take_along_axis(X, last, 1, wrap_negative_indices=False), [[np.nan], [np.nan]])
    out = rnp.take_along_axis(X, last, 1, mode="clip", wrap_negative_indices=False)
    np.testing.assert_array_equal(out, [[0], [3]])


# --- a branch for each operand ----------------------------------------------------------------


@pytest.mark.parametrize(("pred", "expected"), [(True, 3.0), (False, 12.0)])
def test_each_branch_of_cond_may_have_its_own_operand(pred: bool, expected: float):
    cond: Any = rune.cond

    def f(p: Any) -> Any:
        return cond(p, {"x": 2.0}, lambda t: t["x"] + 1.0, (3.0, 4.0), lambda t: t[0] * t[1])

    assert f(pred) == rune.jit(f)(pred) == expected
    assert rune.vmap(f)(rnp.array([pred]))[0] == expected


def test_the_derivative_of_cond_reaches_the_operand_of_the_branch_that_ran():
    cond: Any = rune.cond

    gradients = rune.grad(lambda x, y: cond(False, x, rnp.sin, y, lambda v: v * v), argnums=(0, 1))(1.0, 3.0)

    assert [float(g) for g in gradients] == [0.0, 6.0]


# --- objects in vmap --------------------------------------------------------------------------


def test_an_object_is_passed_to_every_lane_if_in_axes_is_none():
    settings = SimpleNamespace(scale=3.0)

    out = rune.vmap(lambda x, s: x * s.scale, in_axes=(0, None))(rnp.arange(3.0), settings)

    np.testing.assert_array_equal(out, [0, 3, 6])


def test_objects_and_arrays_of_one_tree_keep_their_places():
    def f(tree: dict[str, Any], x: Any) -> Any:
        return tree["function"](x) * tree["scale"] + len(tree["name"])

    parts = {"function": rnp.negative, "name": "ab", "scale": rnp.array([1.0, 10.0])}
    axes = {"function": None, "name": None, "scale": 0}

    out = rune.vmap(f, in_axes=(axes, None))(parts, 3.0)

    np.testing.assert_array_equal(out, [-1, -28])


def test_an_object_that_would_be_split_over_lanes_is_refused():
    f: Any = rune.vmap(lambda x, name: x)

    with pytest.raises(ArgumentError, match="cannot take str as an array"):
        f(rnp.ones(2), "name")


# --- objects in place of arrays ---------------------------------------------------------------


class Variable:
    """An object that JAX's functions take for an array."""

    def __init__(self, value: Any):
        self.value = value

    def __jax_array__(self) -> Any:
        return self.value


class _Forwarding:
    """A box with the attributes of its array except `type`, like Flax's variables."""

    type = float

    def __init__(self, array: rune.Array):
        self.array = array

    def __getattr__(self, name: str) -> Any:
        return getattr(self.array, name)

    def __jax_array__(self) -> Any:
        return self.array


V: Any = Variable(rnp.array([1.0, 2.0, 3.0]))
AS_ARRAY = {
    "sin": lambda v: rnp.sin(v),
    "add": lambda v: X + v,
    "matmul": lambda v: X @ v,
    "compare": lambda v: X < v,
    "equal": lambda v: X == v,
    "asarray": lambda v: rnp.asarray(v),
    "dtype": lambda v: rnp.asarray(v, "int32"),
    "array": lambda v: rnp.array([v, v]),
    "stack": lambda v: rnp.stack([v, X[0]]),
    "where": lambda v: rnp.where(X > 1, v, X),
    "set": lambda v: X.at[0].set(v),
    "lax": lambda v: lax.mul(v, X[0]),
    "jit": lambda v: rune.jit(lambda a: a * 2)(v),
    "shape": lambda v: rnp.asarray(rnp.shape(v)),
    "zeros_like": lambda v: rnp.zeros_like(v),
    "twice": lambda v: rnp.add(v, v),
    "number": lambda v: rnp.multiply(v, 2),
    "less": lambda v: rnp.less(v, v),
    "maximum": lambda v: rnp.maximum(v, v),
    "power": lambda v: rnp.power(v, 2),
    "mean": lambda v: rnp.mean(v),
    "einsum": lambda v: rnp.einsum("i,i->", v, v),
    "reshape": lambda v: rnp.reshape(v, (3, 1)),
    "clip": lambda v: rnp.clip(v, 1.5, v),
    "relu": lambda v: rune.nn.relu(v),
    "softmax": lambda v: rune.nn.softmax(v),
    "gamma": lambda v: rune.scipy.special.gammaln(v),
    "norm": lambda v: rnp.linalg.norm(v),
    "grad": lambda v: rune.grad(lambda x: rnp.sum(rnp.sin(v) * x))(X[0]),
}


@pytest.mark.parametrize("box", [Variable, _Forwarding])
@pytest.mark.parametrize("name", AS_ARRAY)
def test_an_object_with_jax_array_is_one(name: str, box: Any):
    np.testing.assert_array_equal(AS_ARRAY[name](box(V.value)), AS_ARRAY[name](V.value))


# --- numbers of classes of one's own ----------------------------------------------------------


class Mode(enum.IntEnum):
    FAST, EXACT = 1, 6


class Metres(float):
    pass


OF_NUMBERS = {
    "add": lambda n: X + n,
    "radd": lambda n: n * X,
    "compare": lambda n: X == n,
    "where": lambda n: rnp.where(X > 1, n, X),
    "asarray": lambda n: rnp.asarray(n),
    "full": lambda n: rnp.full((2,), n),
    "set": lambda n: X.at[0].set(n),
    "jit": lambda n: rune.jit(lambda v: v * 2)(n),
    "jit inside": lambda n: rune.jit(lambda v: v * n)(X),
    "scan": lambda n: rune.scan(lambda c, _: (c, n), 0, None, length=2),
    "cond": lambda n: rune.cond(True, lambda: n, lambda: n),
    "vmap": lambda n: rune.vmap(lambda v: v + n)(X),
    "typeof": lambda n: rnp.zeros(2, rune.typeof(n).dtype),
}


@pytest.mark.parametrize("name", OF_NUMBERS)
@pytest.mark.parametrize("number", [Mode.EXACT, Metres(2.0)])
def test_a_number_of_a_user_defined_class_is_converted(name: str, number: Any):
    plain = int(number) if isinstance(number, int) else float(number)

    same(OF_NUMBERS[name](plain), OF_NUMBERS[name](number))


# --- polynomials side by side -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "x"), [((3, 2), (2,)), ((3, 2), ()), ((4, 2), (5, 2)), ((1, 3, 1), (2,)), ((0, 2), (2,)), ((3,), (2, 2))]
)
def test_polynomials_side_by_side_broadcast_with_their_points(p: tuple[int, ...], x: tuple[int, ...]):
    draw = np.random.default_rng(0)
    coefficients, points = draw.integers(-3, 4, p).astype(np.float32), draw.integers(-3, 4, x).astype(np.float32)

    expected = np.zeros(np.broadcast_shapes(p[1:], x), np.float32)
    for row in coefficients:
        expected = expected * points + row

    np.testing.assert_array_equal(rnp.polyval(coefficients, points), expected)
    np.testing.assert_array_equal(rune.jit(rnp.polyval)(coefficients, points), expected)


def test_polynomials_that_do_not_fit_their_points_are_refused():
    with pytest.raises(ShapeError, match="polyval: cannot broadcast"):
        rnp.polyval(np.ones((2, 3)), np.ones(2))


def test_a_box_that_forwards_attributes_is_opened():
    x = rnp.ones((2, 2))
    box: Any = _Forwarding(x)

    np.testing.assert_array_equal(x @ box, x @ x)
    np.testing.assert_array_equal(rnp.dot(box, x), x @ x)


WRAPPERS = {
    "jit": rune.jit,
    "jit again": lambda f: rune.jit(rune.jit(f)),
    "vmap of jit": lambda f: rune.vmap(rune.jit(f)),
    "grad": rune.grad,
    "value_and_grad": rune.value_and_grad,
    "jacrev": rune.jacrev,
    "pmap": rune.pmap,
    "checkpoint": rune.checkpoint,
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_attributes_of_a_function_are_those_of_its_wrapper(name: str):
    def function(x):
        return x * x

    function.purpose = "squares"  # type: ignore[attr-defined]
    function.marked = "by the user"  # type: ignore[attr-defined]  # an attribute of jitted functions, too
    wrapper = WRAPPERS[name](function)

    results = wrapper(rnp.ones(1) if "map" in name else 1.0)

    assert wrapper.purpose == "squares"
    assert rune.tree.leaves(results)[0] in (1.0, 2.0)


class Nameless:
    """A callable whose name is not a string, like tinygp's mean functions."""

    __name__ = None
    __qualname__ = "Nameless"

    def __call__(self, x):
        return x * 2.0


@pytest.mark.parametrize(
    "call",
    [
        lambda f: rune.jit(f)(3.0),
        lambda f: rune.vmap(f)(rnp.full(1, 3.0))[0],
        lambda f: 3 * rune.grad(f)(3.0),
        lambda f: 3 * rune.jacfwd(f)(3.0),
        lambda f: 3 * rune.jacrev(f)(3.0),
        lambda f: rune.checkpoint(f)(3.0),
        lambda f: rune.custom_vjp(f).function(3.0),
        lambda f: rune.linearize(f, 3.0)[0],
        lambda f: rune.jaxpr_as_fun(rune.make_jaxpr(f)(3.0))(3.0)[0],
        lambda f: rune.pmap(f)(rnp.full(1, 3.0))[0],
        lambda f: rune.lax.map(f, rnp.full(2, 3.0))[1],
        lambda f: rune.lax.cond(True, f, f, 3.0),
        lambda f: rune.lax.while_loop(lambda c: c < 6.0, f, 3.0),
        lambda f: rune.checkify.checkify(f)(3.0)[1],
    ],
)
def test_a_callable_needs_no_name(call):
    assert float(call(Nameless())) == 6.0


@pytest.mark.parametrize("value", [rnp.ones(2), np.ones(2), np.float32(1), True, 1, 1.5, 1j, random.key(0)])
def test_an_array_like_value_is_an_instance_of_the_alias(value):
    assert isinstance(value, ArrayLike)
    assert isinstance(value, get_args(ArrayLike))


@pytest.mark.parametrize("value", [[1, 2], (1,), "text", None, {"a": 1}, rnp])
def test_any_other_value_is_not_an_instance_of_the_alias(value):
    assert not isinstance(value, ArrayLike)


class Quantity:
    """A number with its own operators, whose other attributes raise, as jaxquantum's `Qarray`."""

    def __init__(self, value: float):
        self.value = value

    def __getattr__(self, name: str) -> Any:
        raise NotImplementedError(f"no method {name}")

    def __rmul__(self, other: Any) -> Any:
        return other * self.value

    def __gt__(self, other: Any) -> Any:
        return other < self.value


@pytest.mark.parametrize("wrap", [lambda f: f, rune.jit], ids=["eager", "jit"])
def test_operators_of_arrays_leave_objects_of_others_to_their_own_operators(wrap: Callable[[Any], Any]):
    x = np.array([1.0, 4.0], np.float32)

    np.testing.assert_array_equal(wrap(lambda v: v * Quantity(3.0))(rnp.asarray(x)), 3 * x)
    np.testing.assert_array_equal(wrap(lambda v: v < Quantity(3.0))(rnp.asarray(x)), x < 3)
