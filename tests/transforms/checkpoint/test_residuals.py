"""saved_residuals: what reverse mode saves, where it is from, under names of the user's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rune
import rune.numpy as rnp
from rune.debug import print_saved_residuals, saved_residuals

X, W = rnp.ones(3), rnp.ones((3, 3))


def named(x: rune.Array, w: rune.Array) -> rune.Array:
    y = rune.checkpoint_name(rnp.tanh(rnp.sin(x) * w), "y")
    return rnp.sum(rune.jit(lambda a: rnp.exp(a))(y))


def of_parameters(p: dict[str, rune.Array], *xs: rune.Array, scale: rune.Array) -> rune.Array:
    return rnp.sin(p["w"] @ xs[0]).sum() * scale


SAVED: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "the arguments of a checkpoint": (
        lambda: saved_residuals(rune.checkpoint(named), X, X),
        ["f32[3] from the argument x", "f32[3] from the argument w"],
    ),
    "a named value": (
        lambda: saved_residuals(
            rune.checkpoint(named, policy=rune.checkpoint_policies.save_only_these_names("y")), X, X
        ),
        ["f32[3] from the argument x", "f32[3] from the argument w", "f32[3] named 'y'"],
    ),
    "a constant": (
        lambda: saved_residuals(lambda x: rnp.sum(rnp.cos(W @ x)), X),
        ["f32[3,3] from a constant", "f32[3] output of neg"],
    ),
    "parts of arguments": (
        lambda: saved_residuals(of_parameters, {"w": W}, X, scale=X[0]),
        [
            "f32[3,3] from the argument p['w']",
            "f32[3] from the argument xs[0]",
            "f32[] from the argument scale",
            "f32[3] output of cos",
            "f32[] output of reduce_sum",
        ],
    ),
    "a linear function": (lambda: saved_residuals(lambda x: rnp.sum(2.0 * x), X), []),
    "shapes": (lambda: saved_residuals(rnp.square, rune.ShapeDtypeStruct((5,), "float32")), ["f32[5]"]),
}


@pytest.mark.parametrize("name", SAVED)
def test_residuals_are_listed_with_their_origin(name: str):
    call, lines = SAVED[name]

    texts = [f"{type} {text}" for type, text in call()]

    assert len(texts) == len(lines)
    assert all(map(str.startswith, texts, lines)), texts


def test_a_jitted_function_is_named():
    (_, text) = saved_residuals(named, X, X)[-1]

    assert text.startswith("output of jitted function 'lambda' from test_residuals.py:")


def test_they_are_printed_a_line_for_each(capsys: pytest.CaptureFixture[str]):
    print_saved_residuals(lambda x, y: x * y, 1.0, X)

    assert capsys.readouterr().out.splitlines() == ["f32*[] from the argument x", "f32[3] from the argument y"]
