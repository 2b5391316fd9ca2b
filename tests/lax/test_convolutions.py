"""rune.lax's convolutions and window reductions against stored answers of jax 0.10.2, eagerly,
compiled and batched; then symbolic sizes, derivatives of padded shapes, and what is refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import lax, tree
from rune.errors import ArgumentError, ShapeError
from rune.ops import convolution
from tests.lax.conv_calls import CALLS, CONVOLUTIONS, NHWC, draw
from tests.support.arrays import array

STORED = np.load(Path(__file__).parent / "jax_conv_0_10_2.npz", allow_pickle=False)
each_call = pytest.mark.parametrize("name", CALLS)


def expected(name: str) -> list[np.ndarray]:
    return [STORED[key] for key in STORED.files if key.rsplit(" / ", 1)[0] == name]


def same(name: str, outputs: Any) -> None:
    for x, y in zip(tree.leaves(outputs), expected(name), strict=True):
        assert np.shape(x) == y.shape
        np.testing.assert_allclose(np.asarray(x), y, rtol=1e-5, atol=1e-5)  # sums of f32, reordered


@each_call
@pytest.mark.parametrize("wrap", [lambda f: f, rune.jit], ids=["eager", "jit"])
def test_a_call_gives_the_result_of_jax(name: str, wrap: Any):
    call, shapes = CALLS[name]

    same(name, wrap(lambda *xs: call(lax, rnp, *xs))(*draw(name, shapes)))


@pytest.mark.parametrize("limit", [1, 50])
def test_patches_are_laid_out_a_few_at_a_time_with_the_same_results(limit: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(convolution, "PATCHES", limit)

    for name, (call, shapes) in CONVOLUTIONS.items():
        same(name, call(lax, rnp, *draw(name, shapes)))


@each_call
def test_each_lane_agrees_with_a_separate_call(name: str):
    call, shapes = CALLS[name]
    arrays = draw(name, shapes)
    lanes = [np.stack([x, 2 * x, -x]) for x in arrays]

    batch = rune.jit(rune.vmap(lambda *xs: call(lax, rnp, *xs)))(*lanes)

    same(name, tree.map(lambda x: x[0], batch))
    last = call(lax, rnp, *(x[2] for x in lanes))
    for x, y in zip(tree.leaves(batch), tree.leaves(last), strict=True):
        np.testing.assert_allclose(np.asarray(x)[2], np.asarray(y), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_reverse_mode_transposes_forward_mode(name: str):
    call, shapes = CONVOLUTIONS[name]
    arrays = [array(x.astype(np.float64)) for x in draw(name, shapes)]
    tangents = [array(np.cos(np.asarray(x))) for x in arrays]
    f = lambda *xs: call(lax, rnp, *xs)  # noqa: E731

    out, forward = rune.jvp(f, arrays, tangents)
    weights = np.sin(np.arange(out.size)).reshape(out.shape)
    backward = rune.jit(lambda xs: rune.vjp(f, *xs)[1](array(weights)))(arrays)

    forward_sum = float(np.sum(np.asarray(forward) * weights))
    backward_sum = sum(float(np.sum(np.asarray(g) * np.asarray(t))) for g, t in zip(backward, tangents, strict=True))
    np.testing.assert_allclose(forward_sum, backward_sum, rtol=1e-10)


def test_one_program_covers_every_batch_size():
    w = draw("w", ((3, 3, 4, 5),))[0]
    conv = lambda x: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=NHWC)  # noqa: E731
    function = rune.jit(conv, dims={"n": (1, 64)}, in_dims=("n,_,_,_",))

    for batch in (1, 3):
        x = draw("x", ((batch, 6, 5, 4),))[0]
        np.testing.assert_allclose(np.asarray(function(x)), np.asarray(conv(x)), atol=1e-5)


@pytest.mark.parametrize("wrap", [lambda f: f, rune.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(
    ("gap", "expected"),
    [
        (1, [np.nan, np.inf, np.inf, np.inf, np.nan]),
        (2, [2, np.inf, 5, np.inf, 8, np.inf, 3]),
        (3, [2, np.inf, 1, 4, np.inf, 2, 6, np.inf, 3]),
    ],
)
def test_an_infinite_weight_multiplies_zeros_of_padding_but_none_of_gaps(gap: int, expected: list[float], wrap: Any):
    """The values are those of JAX 0.10.2 on the CPU."""
    x = rnp.array([[[1.0, 2.0, 3.0]]])
    w = rnp.array([[[1.0, rnp.inf, 2.0]]])

    convolution = wrap(lambda x, w: lax.conv_general_dilated(x, w, (1,), [(2, 2)], lhs_dilation=(gap,)))(x, w)

    np.testing.assert_array_equal(expected, convolution[0, 0])


@pytest.mark.parametrize("stride", [1, 3])
def test_a_convolution_with_many_gaps_gives_the_same_eager_and_jitted(stride: int):
    x = rnp.arange(72.0).reshape(2, 4, 3, 3) % 7 - 3
    w = rnp.arange(48.0).reshape(4, 2, 2, 3) % 5 - 2

    def call(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(
            x, w, (stride, 2), [(3, 1), (0, 4)], lhs_dilation=(2, 5), rhs_dilation=(2, 1), feature_group_count=2
        )

    np.testing.assert_array_equal(call(x, w), rune.jit(call)(x, w))


def test_the_gradient_of_a_maximum_belongs_to_the_first_of_equals():
    x = np.array([[1.0, 3.0, 3.0, 3.0]])

    def total(x: Any) -> Any:
        maxima = lax.reduce_window(x, -np.inf, lax.max, (1, 2), (1, 1), "VALID")
        return rnp.sum(maxima * rnp.array([1.0, 10.0, 100.0]))

    for wrap in (lambda f: f, rune.jit):
        assert np.asarray(wrap(rune.grad(total))(x)).tolist() == [[0.0, 11.0, 100.0, 0.0]]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"dimension_numbers": ("NHW", "OIHW", "NCHW")}, ArgumentError),
        ({"dimension_numbers": ("NCHW", "OIHW", "NCWX")}, ArgumentError),
        ({"dimension_numbers": "NCHW"}, ArgumentError),
        ({"window_strides": (1,)}, ArgumentError),
        ({"window_strides": (0, 1)}, ArgumentError),
        ({"padding": "FULL"}, ArgumentError),
        ({"padding": ((0, 0),)}, ArgumentError),
        ({"feature_group_count": 2}, ShapeError),
        ({"batch_group_count": 3}, ShapeError),
        ({"lhs_dilation": (2, 2)}, ArgumentError),
        ({"padding": ((-9, 0), (0, 0))}, ShapeError),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments: dict[str, Any], error: type[Exception]):
    keywords = {"window_strides": (1, 1), "padding": "SAME"} | arguments

    with pytest.raises(error, match=r"(conv|padding).*: cannot "):
        lax.conv_general_dilated(rnp.ones((2, 3, 5, 5)), rnp.ones((4, 3, 3, 3)), **keywords)


def test_windows_of_a_list_want_a_start_for_each_element():
    with pytest.raises(ArgumentError, match="reduce_window: cannot start windows of"):
        lax.reduce_window([1.0, 2.0], 0.0, lax.add, (), ())
