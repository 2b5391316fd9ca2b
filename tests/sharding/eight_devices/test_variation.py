"""Types in the body of a shard_map record the axes of the mesh along which a value varies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
from rune import lax
from rune import numpy as rnp
from rune.control.text import parse_program
from rune.errors import ArgumentError, TransformError
from rune.scipy.integrate import odeint
from rune.sharding import P, make_mesh

W = np.sin(np.arange(1.0, 4.0, dtype="f"))
X = np.cos(np.arange(48.0, dtype="f")).reshape(16, 3)


def on_eight(body: Any, out_specs: Any, **options: Any) -> Any:
    """The body on copies of the first argument and rows of the second."""
    mesh = make_mesh((8,), ("a",))
    return rune.shard_map(body, mesh=mesh, in_specs=(P(), P("a")), out_specs=out_specs, **options)


def type_in_body(value: Any) -> str:
    """The type of what a body computes from W and rows of X."""
    types: list[str] = []

    def body(w: Any, x: Any) -> Any:
        types.append(str(value(w, x).type))
        return x

    on_eight(body, P("a"))(W, X)
    return types[0]


# --- types --------------------------------------------------------------------------------------


def test_an_input_varies_along_the_axes_that_cut_it():
    assert type_in_body(lambda w, x: x) == "f32[2,3]{a}"
    assert type_in_body(lambda w, x: w) == "f32[3]"


def test_a_result_varies_where_an_operand_does():
    assert type_in_body(lambda w, x: w + 1) == "f32[3]"
    assert type_in_body(lambda w, x: w + x) == "f32[2,3]{a}"
    assert type_in_body(lambda w, x: rnp.argsort(x @ x.T, axis=0)) == "i32[2,2]{a}"


def test_sums_and_extremes_over_an_axis_are_the_same_along_it():
    assert type_in_body(lambda w, x: lax.psum(x, "a")) == "f32[2,3]"
    assert type_in_body(lambda w, x: lax.pmax(x, "a")) == "f32[2,3]"


def test_results_of_other_collectives_vary_between_devices():
    assert type_in_body(lambda w, x: lax.all_gather(x, "a")) == "f32[8,2,3]{a}"
    assert type_in_body(lambda w, x: lax.ppermute(w, "a", [(0, 1)])) == "f32[3]{a}"
    assert type_in_body(lambda w, x: lax.axis_index("a")) == "i32[]{a}"
    assert type_in_body(lambda w, x: lax.pvary(w, "a")) == "f32[3]{a}"


def test_a_carry_varies_as_it_starts_and_as_the_body_makes_it():
    sums = lambda w, x: lax.scan(lambda c, r: (c + r, c[0]), w, x)  # noqa: E731

    assert type_in_body(lambda w, x: sums(w, x)[0]) == "f32[3]{a}"
    assert type_in_body(lambda w, x: sums(w, x)[1]) == "f32[2]{a}"
    assert type_in_body(lambda w, x: sums(w, lax.psum(x, "a"))[0]) == "f32[3]"


def test_a_carry_varies_with_the_number_of_steps():
    loop = lambda w, x: lax.while_loop(lambda c: c[0] < x[0, 0], lambda c: c + 1, w)  # noqa: E731

    assert type_in_body(loop) == "f32[3]{a}"


def test_the_result_of_a_branch_varies_where_its_predicate_does():
    assert type_in_body(lambda w, x: lax.cond(x[0, 0] > 0, rnp.sin, rnp.cos, w)) == "f32[3]{a}"
    assert type_in_body(lambda w, x: lax.cond(w[0] > 0, lambda: w, lambda: x[0])) == "f32[3]{a}"
    assert type_in_body(lambda w, x: lax.cond(w[0] > 0, rnp.sin, rnp.cos, w)) == "f32[3]"


def test_a_jitted_part_is_typed_for_each_variation_of_its_arguments():
    double = rune.jit(lambda v: v * 2)

    assert type_in_body(lambda w, x: double(w)) == "f32[3]"
    assert type_in_body(lambda w, x: double(x[0])) == "f32[3]{a}"


def test_programs_print_variation_and_are_read_back_with_it():
    texts: list[Any] = []

    def body(w: Any, x: Any) -> Any:
        texts.append(rune.make_program(lambda w, x: rnp.tanh(x @ w) + lax.psum(w.sum(), "a"))(w, x))
        return x

    on_eight(body, P("a"))(W, X)
    text = str(texts[0])

    assert "f32[2,3]{a}" in text
    assert str(parse_program(text)) == text


def test_without_the_check_types_do_not_record_variation():
    types: list[str] = []

    def body(w: Any, x: Any) -> Any:
        types.append(str(x.type))
        return lax.pvary(x, "a")

    on_eight(body, P("a"), check_vma=False)(W, X)

    assert types == ["f32[2,3]"]


# --- derivatives --------------------------------------------------------------------------------


def require_gradient(loss: Any, rtol: float = 2e-5) -> None:
    """Taken in the body, the gradient of the sum of all losses is that taken around it."""
    inside = on_eight(rune.grad(loss, (0, 1)), (P(), P("a")))
    around = rune.grad(
        lambda w, x: on_eight(lambda w, x: loss(w, x)[None], P("a"), check_vma=False)(w, x).sum(), (0, 1)
    )

    expected = around(W, X)
    for gradients in (inside(W, X), rune.jit(inside)(W, X)):
        for ours, reference in zip(gradients, expected, strict=True):
            np.testing.assert_allclose(ours, reference, rtol=rtol, atol=1e-5)


def test_a_branch_that_each_device_chooses_sums_cotangents_after_it():
    require_gradient(lambda w, x: lax.cond(x[0, 0] > 0, lambda: (x @ w).sum(), lambda: (w**2).sum()))


def test_cotangents_of_a_loop_with_unequal_steps_are_summed_after_it():
    def loss(w: Any, x: Any) -> Any:
        steps = lambda s: s[0] < 3 + 4 * x[0, 0]  # noqa: E731
        return lax.while_loop(steps, lambda s: (s[0] + 1, rnp.tanh(s[1] * w + x[1])), (0.0, x[0]))[1].sum()

    require_gradient(loss)


def test_a_loop_from_constants_joins_what_differs():
    require_gradient(lambda w, x: lax.scan(lambda c, r: (rnp.tanh(c * w + r), c.sum()), rnp.zeros(3), x)[0].sum())


def test_a_choice_of_three_branches_by_an_index_that_differs():
    branches = [lambda w, x: (w * x).sum(), lambda w, x: w[0], lambda w, x: x.max()]
    require_gradient(lambda w, x: lax.switch(lax.axis_index("a") % 3, branches, w, x))


def test_a_nested_region_sums_along_its_own_axis_and_the_one_around():
    mesh, w, x = make_mesh((4, 2), ("a", "b")), W, X[:8]

    def outer(w: Any, x: Any) -> Any:
        inner = rune.shard_map(
            lambda w, x: lax.psum(rnp.tanh(x * w).sum(), "b"), in_specs=(P(), P("b")), out_specs=P(), axis_names={"b"}
        )
        return rune.grad(lambda w: inner(w, x) ** 2)(w)

    f = rune.shard_map(outer, mesh=mesh, in_specs=(P(), P("a")), out_specs=P(), axis_names={"a"})
    rows = x.reshape(4, 2, 3)
    total = np.tanh(rows * w).sum((1, 2))
    expected = sum(2 * t * ((1 - np.tanh(r * w) ** 2) * r).sum(0) for t, r in zip(total, rows, strict=True))

    np.testing.assert_allclose(rune.jit(f)(w, x), expected, rtol=2e-5)


def test_a_weight_that_a_loop_reads_is_summed_once_after_the_loop():
    def body(w: Any, x: Any) -> Any:
        def loss(w: Any, x: Any) -> Any:
            return lax.scan(lambda h, r: (rnp.tanh(h * w + r) - w, None), x[0], x)[0].sum()

        program = rune.make_program(rune.grad(loss))(w, x)
        assert str(program).count("psum") == 1
        assert program.equations[-1].primitive.name == "psum"
        return rune.grad(loss)(w, x)

    on_eight(body, P())(W, X)


def test_all_readers_of_a_weight_make_one_sum_of_its_gradient():
    w = np.sin(np.arange(9.0, dtype="f")).reshape(3, 3)

    def body(w: Any, x: Any) -> Any:
        def loss(w: Any, x: Any) -> Any:
            return (rnp.tanh(x @ w) @ w.T).sum() - (w.reshape(9) * x[0, 0]).sum()

        program = rune.make_program(rune.grad(loss))(w, x)
        assert str(program).count("psum") == 1
        return rune.grad(loss)(w, x)

    around = on_eight(lambda w, x: (rnp.tanh(x @ w) @ w.T).sum()[None] - (w.reshape(9) * x[0, 0]).sum(), P("a"))
    np.testing.assert_allclose(
        on_eight(body, P())(w, X), rune.grad(lambda w: around(w, X).sum())(w), rtol=2e-5, atol=1e-5
    )


def test_an_equation_of_each_device_sums_what_weights_add_to_its_gradient():
    times = np.linspace(0.0, 1.0, 3, dtype="f")

    def loss(w: Any, x: Any) -> Any:
        path = odeint(lambda y, t, w: -y * w * w.sum(), x[0], times, w)
        common_path = odeint(lambda y, t: -y * w, w, times)
        return (path**2).sum() + (common_path * x[1]).sum()

    require_gradient(loss, rtol=1e-3)


# --- refusals -----------------------------------------------------------------------------------


def test_a_cotangent_that_differs_is_refused_where_the_result_is_the_same_on_all_devices():
    def body(w: Any, x: Any) -> Any:
        _, pull = rune.vjp(lambda w: w * 2, w)
        return pull(x[0])[0]

    with pytest.raises(TransformError, match=r"cannot use a cotangent f32\[3\]\{a\} for an output f32\[3\]"):
        on_eight(body, P())(W, X)


def test_a_rule_that_forgets_to_sum_is_refused():
    @rune.custom_vjp
    def scaled(w: Any, x: Any) -> Any:
        return (w * x).sum()

    scaled.defvjp(lambda w, x: ((w * x).sum(), (w, x)), lambda r, ct: (ct * r[1].sum(axis=0), ct * r[0]))

    with pytest.raises(TransformError, match=r"bwd rule of scaled \(argument\[0\] is the same along 'a'"):
        on_eight(rune.grad(scaled), P())(W, X)


def test_pcast_refuses_what_varies_and_what_it_does_not_know():
    with pytest.raises(ArgumentError, match=r"cannot make f32\[2,3\]\{a\} vary along 'a'"):
        on_eight(lambda w, x: lax.pcast(x, "a", to="varying"), P("a"))(W, X)
    with pytest.raises(ArgumentError, match="cannot make a value 'reduced'"):
        on_eight(lambda w, x: lax.pcast(x, "a", to="reduced"), P("a"))(W, X)
