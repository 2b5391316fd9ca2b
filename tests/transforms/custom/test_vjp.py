"""custom_vjp: fwd and bwd take the place of the derivative, in every order of transformations.

First what the rules mean, then what they may give and take, then what a function may close over,
last what is refused. The rule disagrees with the function on purpose, so that it shows.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import lax
from rune.errors import TransformError
from tests.support.arrays import array
from tests.support.close import near, same
from tests.support.derivatives import WHY, differences, inner
from tests.transforms.custom.orders import GRADIENTS, LANES, over_x, total

X = array([0.5, 1.0, 2.0])
F32 = "f32, other order of operations"


@rune.custom_vjp
def wave(x: Any, y: Any) -> Any:
    """sin(x) y, whose rule gives ten times its derivative with respect to x."""
    return rnp.sin(x) * y


def _forward(x: Any, y: Any) -> Any:
    return wave(x, y), (x, y)


def _backward(residuals: Any, ct: Any) -> Any:
    x, y = residuals
    return 10.0 * rnp.cos(x) * y * ct, rnp.sin(x) * ct


wave.defvjp(_forward, _backward)


def with_rules(function: Any, fwd: Any, bwd: Any, **options: Any) -> Any:
    """A custom_vjp function."""
    operation = rune.custom_vjp(function, **options)
    operation.defvjp(fwd, bwd)
    return operation


# --- what the rules mean ------------------------------------------------------------------------


def test_without_a_derivative_the_function_itself_runs():
    ran: list[str] = []
    function = with_rules(
        lambda x: (ran.append("function"), x)[1], lambda x: (ran.append("fwd"), (x, None))[1], lambda _, ct: (ct,)
    )

    function(1.0)
    rune.grad(function)(1.0)

    assert ran == ["function", "fwd"]


def test_grad_calls_bwd():
    dx, dy = rune.grad(wave, argnums=(0, 1))(1.0, 2.0)

    near(20 * np.cos(1.0), dx, relative=1e-6, why=F32)
    near(np.sin(1.0), dy, relative=1e-6, why=F32)


ORDERS: dict[str, Callable[[Any], Any]] = {
    **GRADIENTS,
    "vjp": lambda f: lambda x, y: rune.vjp(f, x, y)[1](1.0)[0],
    "jacrev": lambda f: rune.jacrev(f),
    "jacobian": lambda f: rune.jacobian(f),
}


@pytest.mark.parametrize("name", ORDERS)
def test_the_rules_survive_jit_in_every_order(name: str):
    near(20 * np.cos(1.0), ORDERS[name](wave)(1.0, 2.0), relative=1e-6, why=F32)


@pytest.mark.parametrize("name", LANES)
def test_the_rules_survive_vmap_in_every_order(name: str):
    near(20 * np.cos(np.asarray(X)), LANES[name](wave)(X, 2.0), relative=1e-5, why=F32)


def test_a_value_shared_by_lanes_gets_the_sum_of_their_cotangents():
    for lanes in (over_x(wave), rune.jit(over_x(wave))):
        gradient = rune.grad(total(lanes), argnums=1)(X, 2.0)
        near(np.sin(np.asarray(X)).sum(), gradient, relative=1e-6, why=F32)


@pytest.mark.parametrize("wrap", [lambda f: f, rune.jit], ids=["eager", "jit"])
def test_a_rules_cotangent_without_lanes_counts_once_as_in_jax(wrap: Any):
    function = with_rules(lambda x, y: x * y, lambda x, y: (x * y, y), lambda y, ct: (ct, 2.0 * y))
    once, twice = over_x(function), over_x(over_x(function))

    assert float(wrap(rune.grad(lambda y: once(X, y).sum()))(1.5)) == 3.0
    assert float(wrap(rune.grad(lambda y: twice(X[None], y).sum()))(1.5)) == 3.0


@pytest.mark.parametrize("wrap", [lambda f: f, rune.jit], ids=["eager", "jit"])
def test_a_second_derivative_differentiates_fwd_and_bwd(wrap: Any):
    # bwd is 10 cos(x) y ct, whose derivative with respect to x is -10 sin(x) y ct.
    gradient = rune.grad(wrap(rune.grad(wrap(wave))))(1.0, 2.0)

    near(-20 * np.sin(1.0), gradient, relative=1e-6, why=F32)


def test_honest_rules_agree_with_differences_and_are_adjoint():
    function = with_rules(rnp.sin, lambda x: (rnp.sin(x), x), lambda x, ct: (ct * rnp.cos(x),))
    x, v = array(np.array([-1.0, 0.3, 2.0])), array(np.array([0.5, 1.0, -1.0]))

    (cotangent,) = rune.vjp(function, x)[1](v)

    near(inner([v], [differences(function, [x], [v])]), inner([cotangent], [v]), relative=1e-6, why=WHY)


def test_the_rules_work_in_a_scan():
    def run(x: Any) -> Any:
        return rune.scan(lambda c, t: (wave(c, t), None), x, rnp.arange(1.0, 4.0))[0]

    def written_out(x: Any) -> Any:
        for t in (1.0, 2.0, 3.0):
            x = wave(x, t)
        return x

    expected = rune.grad(written_out)(0.3)
    for f in (rune.grad(run), rune.jit(rune.grad(run)), rune.grad(rune.jit(run))):
        near(expected, f(0.3), relative=1e-5, why=F32)


# --- what rules give and take -------------------------------------------------------------------


def test_none_is_a_zero_cotangent_of_an_argument_or_of_a_part_of_it():
    function = with_rules(
        lambda p, y: p["a"] * p["b"] * y,
        lambda p, y: (p["a"] * p["b"] * y, None),
        lambda _, ct: ({"a": None, "b": 3.0 * ct}, None),
    )

    dp, dy = rune.grad(function, argnums=(0, 1))({"a": 1.0, "b": 2.0}, 3.0)

    assert [float(dp["a"]), float(dp["b"]), float(dy)] == [0.0, 3.0, 0.0]


ABSENT: dict[str, Any] = {
    "an argument": (None, None),
    "a part of one": ({"a": None, "b": ()}, {"a": None, "b": ()}),
    "a part, with None for the whole": ({"a": [None], "b": ((), None)}, None),
    "beside a value": ((None, 2.0, [None]), (None, 7.0, [None])),
    "beside a value, with None for the whole": ((None, 2.0, [None]), None),
}


@pytest.mark.parametrize("absent", ABSENT)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_none_argument_has_no_cotangent(absent: str, is_first: bool):
    argument, cotangent = ABSENT[absent]

    def ordered(x: Any, other: Any) -> tuple[Any, Any]:
        return (other, x) if is_first else (x, other)

    function = with_rules(
        lambda *args: args[is_first] * 2.0,
        lambda *args: (args[is_first] * 2.0, None),
        lambda _, ct: ordered(10.0 * ct, cotangent),
    )

    def call(x: Any) -> Any:
        return function(*ordered(x, argument))

    for run in (rune.grad(call), rune.jit(rune.grad(call)), rune.grad(rune.jit(call))):
        assert float(run(3.0)) == 10.0
    same(np.full(3, 10.0, np.float32), rune.vmap(rune.grad(call))(X))


def test_the_cotangent_of_an_integer_argument_is_float0_for_any_result_of_bwd():
    function = with_rules(lambda x, n: x * n, lambda x, n: (x * n, n), lambda n, ct: (ct * 100.0, None))

    dx, dn = rune.vjp(function, 2.0, 3)[1](1.0)

    assert float(dx) == 100.0
    assert dn.dtype == rune.float0


def test_bwd_sees_zeros_for_results_that_nothing_depends_on():
    cotangents: list[Any] = []
    function = with_rules(
        lambda x: (x, x * 2.0), lambda x: ((x, x * 2.0), None), lambda _, cts: (cotangents.append(cts), (cts[0],))[1]
    )

    rune.grad(lambda x: function(x)[0])(1.0)

    assert [float(ct) for ct in cotangents[0]] == [1.0, 0.0]


@rune.custom_vjp
def _measured(x: Any, largest: Any) -> Any:
    """x; the rule gives `largest` its next value, no derivative, as scales of 8-bit products do."""
    return x * 1.0


_measured.defvjp(
    lambda x, largest: (_measured(x, largest), (x, largest)),
    lambda residuals, ct: (ct, rnp.maximum(residuals[1], rnp.abs(residuals[0]))),
)
_shut = with_rules(lambda x, y: 2.0 * x, lambda x, y: (2.0 * x, None), lambda _, ct: (ct, None))

READERS: dict[str, tuple[Callable[[Any, Any], Any], float]] = {
    "a rule that gives None": (lambda x, h: _shut(x, _measured(x, h)), 5.0),
    "more on the way": (lambda x, h: _shut(x, rnp.sin(_measured(x, h))), 5.0),
    "nothing": (lambda x, h: (_measured(x, h), x)[1], 0.0),
    "a stopped gradient": (lambda x, h: x * rune.lax.stop_gradient(_measured(x, h)), 0.0),
    "a function without slope": (lambda x, h: x * rnp.sign(_measured(x, h)), 0.0),
}
IN_CONTEXT: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda f: f,
    "jit": rune.jit,
    "checkpoint": rune.checkpoint,
    "cond": lambda f: lambda *xs: rune.lax.cond(xs[0] > 0, f, f, *xs),
}


@pytest.mark.parametrize("context", IN_CONTEXT)
@pytest.mark.parametrize("reader", READERS)
def test_bwd_is_asked_if_the_result_depends_on_its_function_though_a_later_rule_says_none(reader: str, context: str):
    function, expected = READERS[reader]

    derivative = rune.grad(IN_CONTEXT[context](function), argnums=1)

    assert float(derivative(5.0, 3.0)) == expected
    assert float(rune.jit(derivative)(5.0, 3.0)) == expected


def test_symbolic_zeros_mark_perturbed_inputs_and_zero_cotangents():
    flags: list[Any] = []

    def fwd(x: Any, y: Any) -> Any:
        flags.append((x.perturbed, y.perturbed))
        return (x.value * 2.0, y.value * 3.0), None

    def bwd(_: Any, cts: Any) -> Any:
        flags.append(isinstance(cts[1], rune.SymbolicZero))
        return cts[0] * 2.0, None

    function = rune.custom_vjp(lambda x, y: (x * 2.0, y * 3.0))
    function.defvjp(fwd, bwd, symbolic_zeros=True)

    assert float(rune.grad(lambda x: function(x, 1.0)[0])(1.0)) == 2.0
    assert flags == [(True, False), True]


def test_arguments_that_are_not_differentiated_come_first_in_bwd():
    def bwd(f: Any, x: Any, ct: Any) -> Any:
        return (ct * 7.0 * f(x),)

    function = with_rules(lambda f, x: f(x), lambda f, x: (f(x), x), bwd, nondiff_argnums=(0,))
    by_name = with_rules(lambda f, x: f(x), lambda f, x: (f(x), x), bwd, nondiff_argnames="f")

    for variant in (function, by_name):
        near(7 * np.sin(1.0), rune.grad(variant, argnums=1)(rnp.sin, 1.0), relative=1e-6, why=F32)


def test_bwd_may_close_over_arrays_in_compiled_code():
    weights = array([1.0, 10.0, 100.0])
    function = with_rules(lambda x: (x * x).sum(), lambda x: ((x * x).sum(), x), lambda x, ct: (x * weights * ct,))

    for f in (function, rune.jit(function), rune.jit(rune.jit(function))):
        same(np.array([0.5, 10.0, 200.0], np.float32), rune.grad(f)(X))


def test_residuals_are_freed_with_the_vjp_function():
    function = with_rules(lambda x: x * 2.0, lambda x: (x * 2.0, x), lambda x, ct: (ct * x,))

    pull = rune.vjp(function, X)[1]

    same(np.asarray(X), pull(array([1.0, 1.0, 1.0]))[0])
    same(np.asarray(X), pull(array([1.0, 1.0, 1.0]))[0])


# --- what a function may close over -------------------------------------------------------------


def product_with(y: Any) -> Any:
    """x ↦ x y with rules that use y as well."""
    return with_rules(lambda x: x * y, lambda x: (x * y, None), lambda _, ct: (ct * y * 5.0,))


def test_a_traced_value_of_an_outer_transformation_may_be_closed_over():
    same(np.asarray(X) * 5.0, rune.vmap(lambda y: rune.grad(product_with(y))(2.0))(X))
    assert float(rune.jit(lambda y: rune.grad(product_with(y))(2.0))(3.0)) == 15.0


@pytest.mark.parametrize("wrap", [lambda f: f, rune.jit], ids=["eager", "jit"])
def test_a_closed_over_value_cannot_be_differentiated(wrap: Any):
    with pytest.raises(TransformError, match=r"with respect to a value f32.* that it closes over"):
        rune.grad(lambda y: wrap(product_with(y))(2.0))(3.0)


@pytest.mark.parametrize("wrap", [lambda f: f, rune.jit], ids=["eager", "jit"])
def test_an_object_closed_over_may_have_values_that_the_function_does_not_read(wrap: Any):
    def weighted(y: Any) -> Any:
        layer = {"scale": array([2.0, 3.0, 5.0]), "bias": y}
        function = with_rules(lambda x: x * layer["scale"], lambda x: (x, None), lambda _, ct: (7.0 * ct,))
        return (wrap(function)(X * y) + layer["bias"]).sum()

    near(7.0 * 3.5 + 3.0, rune.grad(weighted)(1.5), relative=1e-6, why=F32)
    near(7.0 * 3.5 + 3.0, rune.jit(rune.grad(weighted))(1.5), relative=1e-6, why=F32)


def test_closure_convert_makes_it_an_argument():
    def solved(y: Any) -> Any:
        closed_form, captures = rune.closure_convert(lambda x: x * y, 1.0)

        @functools.partial(rune.custom_vjp, nondiff_argnums=(0,))
        def apply(f: Any, x: Any, *values: Any) -> Any:
            return f(x, *values)

        apply.defvjp(
            lambda f, x, *values: (f(x, *values), (x, values)),
            lambda f, residuals, ct: (ct * residuals[1][0], *(ct * residuals[0] for _ in residuals[1])),
        )
        return apply(closed_form, 2.0, *captures)

    assert float(rune.grad(solved)(3.0)) == 2.0


# --- what is refused ----------------------------------------------------------------------------

FORWARD: dict[str, Callable[[], Any]] = {
    "jvp": lambda: rune.jvp(wave, (1.0, 2.0), (1.0, 0.0)),
    "jvp of jit": lambda: rune.jvp(rune.jit(wave), (1.0, 2.0), (1.0, 0.0)),
    "jit of jvp": lambda: rune.jit(lambda x: rune.jvp(wave, (x, 2.0), (1.0, 0.0)))(1.0),
    "jvp of vmap": lambda: rune.jvp(rune.vmap(wave, (0, None)), (X, 2.0), (X, 0.0)),
    "jacfwd": lambda: rune.jacfwd(wave)(1.0, 2.0),
}


@pytest.mark.parametrize("name", FORWARD)
def test_forward_mode_is_refused(name: str):
    with pytest.raises(TypeError, match="cannot apply forward-mode"):
        FORWARD[name]()


def _beside_unread(x: Any) -> Any:
    wave(x, 2.0)
    return x * x


DEAD: dict[str, Callable[[Any], Any]] = {
    "jit": rune.jit(_beside_unread),
    "cond": lambda x: lax.cond(x > 0.0, _beside_unread, lambda x: x, x),
    "map": lambda x: lax.map(_beside_unread, x[None])[0],
    "scan": lambda x: lax.scan(lambda c, _: (_beside_unread(c), None), x, length=1)[0],
    "while": lambda x: lax.while_loop(lambda c: c < 2.0, _beside_unread, x),
    "checkpoint": rune.checkpoint(_beside_unread),
}


@pytest.mark.parametrize("name", DEAD)
def test_forward_mode_passes_by_a_call_in_a_held_program_that_no_result_reads(name: str):
    x = array(1.5)
    outs = rune.jvp(DEAD[name], (x,), (array(1.0),)), rune.jit(lambda x: rune.jvp(DEAD[name], (x,), (x,)))(x)
    same([*outs[0], *outs[1]], [array(v) for v in (2.25, 3.0, 2.25, 4.5)])


UNREAD: dict[str, Callable[[Any], Any]] = {
    "jvp": lambda x: rune.jvp(wave, (x, 2.0), (1.0, 0.0))[0],
    "jvp of jit": lambda x: rune.jvp(rune.jit(wave), (x, 2.0), (1.0, 0.0))[0],
    "jvp of vmap": lambda x: rune.jvp(rune.vmap(wave, (0, None)), (x[None], 2.0), (x[None], 0.0))[0][0],
    "jvp of checkpoint": lambda x: rune.jvp(rune.checkpoint(wave), (x, 2.0), (1.0, 0.0))[0],
    "scan": lambda x: rune.jvp(lambda v: lax.scan(lambda c, _: (c, wave(c, 2.0)), v, length=2)[1], (x,), (x,))[0][1],
    "linearize": lambda x: rune.linearize(lambda v: wave(v, 2.0), x)[0],
}


@pytest.mark.parametrize("name", UNREAD)
def test_a_tangent_that_nothing_reads_needs_no_rule_where_it_is_compiled(name: str):
    np.testing.assert_array_equal(rune.jit(UNREAD[name])(rnp.float32(1.25)), rune.jit(wave)(1.25, 2.0))


WRONG: list[tuple[str, Any, Any, str]] = [
    ("fwd gives no pair", lambda p: p["a"] * 2.0, None, "fwd rule of lambda .a pair of result"),
    (
        "another shape",
        None,
        lambda r, ct: ({"a": array([1.0, 2.0])},),
        r"argument\[0\]\['a'\] is f32.*, its cotangent f32\[2\]",
    ),
    ("another dtype", None, lambda r, ct: ({"a": rnp.asarray(1)},), "its cotangent i32"),
    ("another tree", None, lambda r, ct: ({"b": ct},), r"argument\[0\]\['a'\] has no cotangent"),
    ("no tuple", None, lambda r, ct: ct, "a tuple like .* required, not a single value"),
    ("too many", None, lambda r, ct: ({"a": ct}, ct), r"cotangent\[1\] belongs to no argument"),
]


@pytest.mark.parametrize(("name", "fwd", "bwd", "message"), WRONG, ids=[w[0] for w in WRONG])
def test_a_rule_that_returns_something_else_is_refused(name: str, fwd: Any, bwd: Any, message: str):
    function = with_rules(
        lambda p: p["a"] * 2.0, fwd or (lambda p: (p["a"] * 2.0, None)), bwd or (lambda r, ct: ({"a": ct},))
    )

    with pytest.raises(TransformError, match=message):
        rune.grad(function)({"a": 1.0})


def test_fwd_must_give_what_the_function_gives():
    function = with_rules(lambda x: x, lambda x: ((x, x), None), lambda _, ct: (ct[0],))

    with pytest.raises(TransformError, match="the function gives a single value, the rule"):
        rune.grad(lambda x: rune.jit(function)(x))(1.0)


def test_optimize_remat_changes_no_gradient():
    function = rune.custom_vjp(rnp.sin)
    function.defvjp(lambda x: (rnp.sin(x), x), lambda x, ct: (3.0 * ct * rnp.cos(x),), optimize_remat=True)

    for f in (function, rune.checkpoint(function), rune.jit(rune.checkpoint(function))):
        near(3.0, rune.grad(f)(0.0), relative=1e-6, why="f32")


def test_a_residual_of_rank_0_keeps_its_digits():
    function = with_rules(rnp.sin, lambda x: (rnp.sin(x), x), lambda x, ct: (ct * rnp.cos(x),))
    x = array(np.float64(0.3))

    for f in (function, rune.jit(function)):
        near(np.cos(0.3), rune.grad(f)(x), relative=1e-14, why="f64")


def test_a_number_among_the_residuals_stays_a_number():
    def forward(x: Any) -> Any:
        return x * 2.0, {"x": x, "is_odd": True, "order": 3}

    def backward(residuals: Any, ct: Any) -> Any:
        return (ct * residuals["x"] ** residuals["order"] if residuals["is_odd"] else ct,)

    function = with_rules(lambda x: x * 2.0, forward, backward)
    for f in (function, rune.jit(function), lambda x: rune.vmap(function)(x[None])[0]):
        near(8.0, rune.grad(f)(rnp.array(2.0)), relative=1e-6, why="f32")


def test_a_rule_keeps_no_argument_of_the_call_alive():
    function = with_rules(lambda x: x * 2.0, lambda x: (x * 2.0, None), lambda _, ct: (ct,))
    program = rune.make_program(rune.vmap(function))(rnp.ones(3))

    rule = program.equations[-1].params["rule"].rule
    assert rule.arguments.leaves == []


def test_a_traced_value_cannot_be_a_nondifferentiated_argument():
    function = with_rules(lambda n, x: x * n, lambda n, x: (x * n, None), lambda n, _, ct: (ct,), nondiff_argnums=(0,))

    with pytest.raises(TransformError, match="cannot take a traced value as argument 0"):
        rune.jit(lambda n: function(n, 1.0))(2.0)


def test_a_function_without_rules_cannot_be_called():
    with pytest.raises(TransformError, match="it has no rule"):
        rune.custom_vjp(lambda x: x)(1.0)
