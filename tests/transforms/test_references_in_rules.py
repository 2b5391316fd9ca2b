"""References in checkpoints and in functions with rules of their own are written once.

The meaning is that of the same code without checkpoint; what a bwd rule writes is the cotangent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import checkify
from rune.errors import ArgumentError, TransformError
from rune.ref import new_ref
from tests.support.close import near

WAYS = {"eager": lambda f: f, "jit": rune.jit}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("transform", [lambda f: f, rune.grad, lambda f: rune.vmap(f, axis_size=3, in_axes=None)])
def test_a_checkpoint_writes_a_reference_once(way: str, transform: Callable[..., Any]):
    counts = new_ref(rnp.zeros(2))

    @rune.checkpoint
    def f(x: Any) -> Any:
        counts[0] += 1.0
        return rnp.sin(x) * 3.0

    WAYS[way](transform(f))(1.0)

    np.testing.assert_array_equal(counts[...], [1.0, 0.0])


def test_a_write_to_a_reference_in_a_checkpoint_has_its_derivative():
    def f(x: Any) -> Any:
        box = new_ref(x)

        @rune.checkpoint
        def step(y: Any) -> None:
            box[...] = rnp.sin(box[...] * y)

        step(x)
        step(2.0)
        return box[...]

    near(
        np.float32(np.cos(2 * np.sin(0.49)) * 2 * np.cos(0.49) * 1.4),
        rune.jit(rune.grad(f))(0.7),
        relative=1e-6,
        why="one function, two formulas",
    )


def test_a_checkpoint_takes_references():
    box = new_ref(rnp.arange(3.0))

    def write(ref: Any, x: Any) -> Any:
        ref[1] = x
        return ref[...].sum()

    assert rune.jit(lambda x: rune.checkpoint(write)(box, x))(5.0) == 7.0
    np.testing.assert_array_equal(box[...], [0.0, 5.0, 2.0])


@pytest.mark.parametrize("way", WAYS)
def test_a_reference_is_not_a_result_of_a_checkpoint(way: str):
    box = new_ref(rnp.arange(3.0))

    with pytest.raises(ArgumentError, match=r"checkpoint: cannot return a reference \(f32\[3\]\)"):
        WAYS[way](lambda x: rune.checkpoint(lambda ref, y: (y, ref))(box, x))(1.0)


@pytest.mark.parametrize("transform", [lambda f: f, rune.grad], ids=["value", "grad"])
def test_a_check_in_a_checkpoint_is_reported(transform: Callable[..., Any]):
    def f(x: Any) -> Any:
        checkify.check(x > 0, "not positive: {}", x)
        return rnp.log(x)

    error, _ = rune.jit(checkify.checkify(transform(rune.checkpoint(f))))(-1.0)

    assert error.get() == "not positive: -1.0 (`check` failed)"


def stashing(ref: Any) -> Callable[..., Any]:
    """x, whose cotangent is written to the reference."""

    @rune.custom_vjp
    def stash(x: Any, ref: Any) -> Any:
        return x

    def bwd(ref: Any, ct: Any) -> tuple[Any, None]:
        ref[...] = ct
        return ct, None

    stash.defvjp(lambda x, ref: (x, ref), bwd)
    return lambda x: stash(x, ref)


@pytest.mark.parametrize("way", WAYS)
def test_a_bwd_rule_writes_the_cotangent_to_a_reference(way: str):
    ref = new_ref(0.0)
    stash = stashing(ref)

    slope = WAYS[way](rune.grad(lambda x: rnp.sin(stash(x * x))))(2.0)

    near(np.float32(np.cos(4.0)), ref[...], relative=1e-6, why="one function, two formulas")
    near(np.float32(4 * np.cos(4.0)), slope, relative=1e-6, why="one function, two formulas")


def test_a_function_with_rules_writes_its_reference():
    ref = new_ref(1.0)

    @rune.custom_vjp
    def count(x: Any, ref: Any) -> Any:
        ref[...] += x
        return x

    count.defvjp(lambda x, ref: (count(x, ref), None), lambda _, ct: (3.0 * ct, None))

    assert count(2.0, ref) == 2.0
    assert rune.grad(lambda x: count(x, ref))(5.0) == 3.0
    assert ref[...] == 8.0


def test_a_forward_rule_takes_a_reference():
    ref = new_ref(4.0)

    @rune.custom_jvp
    def scaled(x: Any, ref: Any) -> Any:
        return x * ref[...]

    scaled.defjvp(lambda primals, tangents: (scaled(*primals), 10.0 * tangents[0]))

    assert rune.grad(lambda x: scaled(x, ref))(3.0) == 10.0


def test_a_function_with_rules_cannot_return_a_reference():
    same = rune.custom_vjp(lambda ref: ref)
    same.defvjp(lambda ref: (ref, None), lambda _, ct: (ct,))

    with pytest.raises((ArgumentError, TransformError), match="cannot"):
        same(new_ref(1.0))
