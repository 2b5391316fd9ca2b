"""Functions that accept functions or trees of arrays treat boxes (`mutable`) as arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import optim, random
from rune.array import Array
from rune.errors import TransformError
from rune.optim import deprecated
from tests.support.close import same

X = rnp.arange(3.0)
box = rnp.mutable


def loss(v: Any) -> tuple[Any, Any]:
    return v.sum(), {"seen": box(v)}


@pytest.mark.parametrize(
    "aux",
    [
        lambda: rune.grad(loss, has_aux=True)(X)[1],
        lambda: rune.value_and_grad(loss, has_aux=True)(X)[0][1],
        lambda: rune.vjp(loss, X, has_aux=True)[2],
        lambda: rune.jvp(loss, (X,), (X,), has_aux=True)[2],
        lambda: rune.linearize(loss, X, has_aux=True)[2],
        lambda: rune.jacfwd(loss, has_aux=True)(X)[1],
        lambda: rune.jacrev(loss, has_aux=True)(X)[1],
        lambda: rune.hessian(loss, has_aux=True)(X)[1],
    ],
    ids=["grad", "value_and_grad", "vjp", "jvp", "linearize", "jacfwd", "jacrev", "hessian"],
)
def test_aux_in_a_box_comes_out_a_concrete_array(aux: Callable[[], Any]):
    value = aux()["seen"]

    assert isinstance(value, Array)
    same(X.numpy(), value)


@pytest.mark.parametrize("call", [rune.pure_callback, rune.io_callback])
def test_a_callback_is_given_the_array_in_a_traced_box(call: Any):
    struct = rune.ShapeDtypeStruct((3,), "f32")

    same(X.numpy() + 1, rune.jit(lambda v: call(lambda w: w + 1, struct, box(v)))(X))


def test_debug_prints_the_values_in_a_box(capsys: pytest.CaptureFixture[str]):
    rune.jit(lambda v: rune.debug.print("{} {w}", box(v), w=box(v + 1)))(X)

    assert capsys.readouterr().out == "[0. 1. 2.] [1. 2. 3.]\n"


@pytest.mark.parametrize(
    "function",
    [
        lambda v: rune.device_put(box(v)),
        lambda v: rune.device_put(box(v), "cpu"),
        rune.checkpoint(lambda v: box(v)),
        lambda v: rune.switch(0, [lambda w: box(w)], v),
    ],
    ids=["device_put", "device_put on a device", "checkpoint", "switch"],
)
def test_a_function_that_returns_a_box_returns_its_array(function: Callable[..., Any]):
    for output in (function(X), rune.jit(function)(X)):
        assert isinstance(output, Array)
        same(X.numpy(), output)


def test_tangents_and_cotangents_may_be_in_boxes():
    out, tangent = rune.jvp(lambda v: v * v, (box(X),), (box(X),))
    (cotangent,) = rune.vjp(lambda v: v * v, box(X))[1](box(X))

    same(np.square(X), out)
    same(2 * np.square(X), tangent)
    same(2 * np.square(X), cotangent)


def test_custom_rules_may_give_boxes():
    forward = rune.custom_jvp(lambda v: v * 2)
    forward.defjvp(lambda primals, tangents: (box(primals[0] * 2), box(tangents[0] * 3)))
    backward = rune.custom_vjp(lambda v: box(v * 2))
    backward.defvjp(lambda v: (box(v * 2), box(v)), lambda residual, ct: (box(residual * ct),))

    for function, expected in ((forward, np.full(3, 3, np.float32)), (backward, X.numpy())):
        gradient = rune.grad(lambda v, f=function: f(v).sum())
        for output in (gradient(X), rune.jit(gradient)(X)):
            assert isinstance(output, Array)
            same(expected, output)


def test_a_custom_rule_does_not_lose_the_derivative_of_a_box_closed_over():
    def hidden(v: Any) -> Any:
        scale = box(v * 2)
        function = rune.custom_jvp(lambda w: w * scale)
        function.defjvps(lambda t, y, w: t)
        return function(v).sum()

    with pytest.raises(TransformError, match="closes over"):
        rune.grad(hidden)(X)


def test_seeds_and_keys_may_be_in_boxes():
    raw = random.PRNGKey(3)

    same(random.key_data(random.key(3)), random.key_data(random.key(box(rnp.array(3)))))
    same(random.fold_in(raw, 1), random.fold_in(box(raw), box(rnp.array(1))))
    same(raw, random.key_data(random.wrap_key_data(box(raw))))


def test_a_hyperparameter_in_a_box_or_traced_is_kept_in_the_state():
    def rate_of(number: Any) -> Any:
        state: Any = deprecated.inject_hyperparams(optim.sgd)(learning_rate=number).init(X)
        return state.hyperparams["learning_rate"]

    half = rnp.array(0.5)
    for output in (rate_of(box(half)), rune.jit(rate_of)(half)):
        assert isinstance(output, Array)
        assert float(output) == 0.5


@pytest.mark.parametrize(
    ("index", "axis"),
    [
        ((9, rnp.array([0, 1])), 0),
        ((rnp.array([0, 1]), ..., -5), 2),
        ((box(rnp.ones((2, 3), "bool")), 4), 2),
        ((None, np.array([0]), 3), 1),
    ],
    ids=range(4),
)
def test_an_out_of_bounds_number_with_an_array_is_an_error_for_boxes(index: Any, axis: int):
    zeros = box(rnp.zeros((2, 3, 4)))

    with pytest.raises(IndexError, match=f"mutable: cannot index axis {axis} of"):
        zeros[index]
    with pytest.raises(IndexError, match=f"mutable: cannot index axis {axis} of"):
        zeros[index] = 5


def test_an_in_bounds_number_with_an_array_is_written_as_in_numpy():
    host, ours = np.zeros((2, 3, 4), np.float32), box(rnp.zeros((2, 3, 4)))
    mask = np.eye(2, 3, dtype=bool)

    for x in (host, ours):
        x[mask, 3] = 1
        x[np.array([0, 1]), ..., -4] = 2
        x[1, np.array([0, 2])] = 3

    same(host, ours.value)
