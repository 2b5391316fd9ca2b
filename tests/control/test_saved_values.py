"""A policy sees into loops and branches: which of their values a checkpoint around them saves.

Which residuals are saved (the expected lists are those of jax.ad_checkpoint.print_saved_residuals,
jax 0.10.2), what is recomputed, that derivatives do not change, and that side effects in a body
happen once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import checkpoint_policies as policies
from rune.core.higher import subprograms
from rune.core.interpreter import type_of
from rune.core.program import Program
from rune.transforms.derivatives.linearize import linearize_flat
from tests.support.arrays import array
from tests.support.close import near

X, W = array([0.0, 1.0, 2.0]), array(np.full((4, 3), 0.7, np.float32))
F32 = "f32, other order of operations"


def named(x: Any) -> Any:
    return rune.checkpoint_name(x, "keep")


def scanned(x: Any, w: Any) -> Any:
    return rune.scan(lambda c, row: (rnp.exp(rnp.cos(named(rnp.sin(c * row)))), None), x, w)[0]


def nested(x: Any, w: Any) -> Any:
    return rune.scan(lambda c, row: (scanned(c * row, w[:2]), None), x, w)[0]


def jitted(x: Any, w: Any) -> Any:
    return rune.scan(lambda c, row: (rune.jit(scanned)(c * row, w[:2]), None), x, w)[0]


def branching(x: Any, w: Any) -> Any:
    def step(c: Any, row: Any) -> Any:
        c = rune.cond(
            c.sum() > 1.0, lambda v: named(rnp.sin(v * row)) * 2.0, lambda v: rnp.exp(rnp.cos(named(v * row))), c
        )
        return c, c

    last, ys = rune.scan(step, x, w)
    return last * ys.sum()


FUNCTIONS: tuple[Callable[..., Any], ...] = (scanned, nested, jitted, branching)
POLICIES: dict[str, Any] = {
    "nothing": None,
    "keep": policies.save_only_these_names("keep"),
    "all but keep": policies.save_anything_except_these_names("keep"),
    "everything": policies.everything_saveable,
}


def total(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: function(*args).sum()


def residuals(function: Callable[..., Any], *args: Any) -> list[str]:
    """The types of the residuals of a gradient."""
    _, linear = linearize_flat(lambda *xs: [function(*xs)], args, [True] * len(args))
    return [str(type_of(r)) for r in linear.residuals]


def count(program: Program, name: str) -> int:
    """How often a primitive occurs in a program and in the programs that it holds."""
    own_count = sum(e.primitive.name == name for e in program.equations)
    return own_count + sum(count(p, name) for e in program.equations for p in subprograms(e))


# --- what is kept -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "expected"), [("nothing", ["f32[3]", "f32[4,3]"]), ("keep", ["f32[3]", "f32[4,3]", "f32[4,3]"])]
)
def test_a_named_value_in_the_body_of_a_scan_is_stacked_and_nothing_else(policy: str, expected: list[str]):
    checkpoint = rune.checkpoint(total(scanned), policy=POLICIES[policy])

    assert residuals(checkpoint, X, W) == expected


def test_a_named_value_in_branches_is_kept_in_one_slot():
    def saved_types(policy: str) -> list[str]:
        checkpoint = rune.checkpoint(lambda x: branching(x, W).sum(), policy=POLICIES[policy])
        return sorted(residuals(checkpoint, X))

    assert saved_types("nothing") == ["f32[3]", "f32[4,3]"]
    assert saved_types("keep") == ["f32[3]", "f32[4,3]", "f32[4,3]"]


def test_a_named_value_in_an_inner_loop_is_stacked_over_both():
    checkpoint = rune.checkpoint(total(nested), policy=POLICIES["keep"])

    assert residuals(checkpoint, X, W) == ["f32[3]", "f32[4,3]", "f32[4,2,3]"]


def test_a_scan_with_all_values_saved_is_not_recomputed():
    checkpoint = rune.checkpoint(total(scanned), policy=POLICIES["everything"])

    program = rune.make_program(rune.grad(checkpoint))(X, W)

    assert count(program, "sin") == count(rune.make_program(rune.grad(total(scanned)))(X, W), "sin")


def test_a_saved_value_is_read_and_not_recomputed():
    def function(x: Any, w: Any) -> Any:
        return rune.scan(lambda c, row: (named(rnp.sin(c @ row)) @ row, None), x, w)[0].sum()

    w = array(np.full((4, 3, 3), 0.3, np.float32))
    saving, recomputing = (
        rune.make_program(rune.grad(rune.checkpoint(function, policy=p)))(X, w) for p in (POLICIES["keep"], None)
    )

    assert count(saving, "sin") == 1
    assert count(recomputing, "sin") == 2


# --- what stays the same ------------------------------------------------------------------------

ORDERS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: rune.grad(f, (0, 1)),
    "jit of grad": lambda f: rune.jit(rune.grad(f, (0, 1))),
    "grad of jit": lambda f: rune.grad(rune.jit(f), (0, 1)),
    "hessian": lambda f: rune.hessian(f),
    "grad on lanes": lambda f: lambda x, w: rune.vmap(rune.grad(f), (0, None))(rnp.stack([x, -x]), w),
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("order", ORDERS)
def test_no_policy_changes_a_derivative(function: Callable[..., Any], policy: str, order: str):
    of = ORDERS[order]
    checkpoint = rune.checkpoint(total(function), policy=POLICIES[policy])

    near(of(total(function))(X, W), of(checkpoint)(X, W), relative=2e-5, absolute=1e-6, why=F32)


def test_the_number_of_steps_may_be_symbolic():
    checkpoint = rune.checkpoint(total(scanned), policy=POLICIES["keep"])

    expected = rune.grad(total(scanned))(X, W)

    program = rune.jit(rune.grad(checkpoint), dims={"n": (1, 16)}, in_dims=(None, "n,3"))
    near(expected, program(X, W), relative=1e-5, why=F32)


def test_side_effects_in_a_body_happen_once(capsys: pytest.CaptureFixture[str]):
    def step(c: Any, row: Any) -> Any:
        rune.debug.print("row {}", row, ordered=True)
        return rnp.sin(c * row), None

    def function(x: Any, w: Any) -> Any:
        return rune.scan(step, x, w)[0].sum()

    rune.jit(rune.grad(rune.checkpoint(function)))(X, W[:2])

    assert capsys.readouterr().out.count("row") == 2
