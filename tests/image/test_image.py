"""rune.image: stored answers of jax 0.10.2, exact cases, derivatives, batches, refusals."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.errors import ArgumentError, ShapeError
from rune.image import ResizeMethod, resize, scale_and_translate
from rune.test_util import check_grads
from tests.image.calls import CALLS, METHODS, answers, image
from tests.support.close import near, same

STORED = np.load(Path(__file__).with_name("jax_image_0_10_2.npz"))
SMOOTH = METHODS[1:]


@pytest.mark.parametrize("name", CALLS)
def test_an_image_is_resized_as_by_jax(name: str):
    actual = answers(rune, {name: CALLS[name]})[name]

    near(STORED[name], actual, relative=1e-5, why="sums of weights in another order")


def test_every_stored_answer_is_used():
    assert set(STORED) == set(CALLS)


@pytest.mark.parametrize("method", METHODS)
def test_an_image_of_the_same_size_is_the_image(method: str):
    same(image((5, 7)), resize(image((5, 7)), (5, 7), method))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [1, 2, 17, 64])
def test_a_constant_image_stays_constant(method: str, size: int):
    result = resize(rnp.full((7,), 3.0), (size,), method)

    near(np.full(size, 3.0, np.float32), result, relative=1e-6, why="weights sum to 1 up to rounding")


def test_an_area_is_a_mean():
    x = image((12, 6))

    near(x.reshape(4, 3, 2, 3).mean((1, 3)), resize(x, (4, 2), "area"), relative=1e-6, why="two orders of a sum")


@pytest.mark.parametrize("method", METHODS)
def test_a_batch_is_resized_image_by_image(method: str):
    x = image((3, 5, 7))

    results = rune.vmap(lambda v: resize(v, (8, 4), method))(rnp.asarray(x))

    near(np.stack([resize(v, (8, 4), method) for v in x]), results, relative=1e-6, why="products of other shapes")


@pytest.mark.parametrize("method", METHODS)
def test_a_jitted_resize_gives_the_same(method: str):
    x = rnp.asarray(image((5, 7)))

    result = rune.jit(lambda v: resize(v, (8, 4), method))(x)

    near(resize(x, (8, 4), method), result, relative=1e-6, why="products in another order")


@pytest.mark.parametrize("method", SMOOTH)
def test_resizing_has_its_derivatives(method: str):
    check_grads(partial(resize, shape=(4, 9), method=method), (image((5, 7)),), order=2, eps=1.0)


def test_moving_has_derivatives_in_scale_and_translation():
    x = rnp.asarray(image((9,)), rnp.float64)

    def scaled_image(scale: rune.Array, translation: rune.Array) -> rune.Array:
        return scale_and_translate(x, (11,), (0,), scale, translation, "cubic", antialias=False)

    check_grads(scaled_image, (rnp.array([1.3], rnp.float64), rnp.array([0.2], rnp.float64)), order=2, eps=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "complex64"])
def test_floating_dtypes_are_kept(dtype: str):
    assert str(resize(rnp.ones((3,), dtype), (5,), "linear").dtype) == dtype


def test_integers_become_float32_but_the_nearest_is_an_integer():
    assert resize(rnp.arange(3), (5,), "linear").dtype == rnp.float32
    same(np.array([0, 0, 1, 2, 2], "i4"), resize(rnp.arange(3), (5,), ResizeMethod.NEAREST))


@pytest.mark.parametrize("method", METHODS)
def test_an_image_without_pixels_can_be_requested(method: str):
    assert resize(rnp.ones((3, 4)), (3, 0), method).shape == (3, 0)


REFUSALS = {
    "another rank": (ShapeError, lambda: resize(rnp.ones((3, 3)), (3,), "linear")),
    "no pixels": (ShapeError, lambda: resize(rnp.ones((3, 0)), (3, 7), "linear")),
    "no pixels, the nearest": (ShapeError, lambda: resize(rnp.ones((0, 2)), (3, 2), "nearest")),
    "a negative size": (ShapeError, lambda: resize(rnp.ones(3), (-3,), "linear")),
    "an unknown name": (ArgumentError, lambda: resize(rnp.ones(3), (3,), "magic")),
    "a number for a method": (ArgumentError, lambda: resize(rnp.ones(3), (3,), 1)),  # type: ignore[arg-type]
    "the nearest, moved": (
        ArgumentError,
        lambda: scale_and_translate(rnp.ones(3), (3,), (0,), rnp.ones(1), rnp.ones(1), "nearest"),
    ),
    "scales for other axes": (
        ShapeError,
        lambda: scale_and_translate(rnp.ones(3), (3,), (0,), rnp.ones(2), rnp.ones(2), "linear"),
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_resize_that_makes_no_sense_is_refused(case: str):
    error, call = REFUSALS[case]

    with pytest.raises(error, match=r"resize|scale_and_translate|image"):
        call()
