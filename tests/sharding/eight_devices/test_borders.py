"""Operations on neighbours along an axis that is split: devices send borders, and not the array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
from rune import numpy as rnp
from rune.sharding import Mesh, NamedSharding, P, make_mesh
from rune.transforms.compile.run import on_mesh
from rune.transforms.sharding.exchanges import exchanges

EIGHT, GRID = make_mesh((8,), ("x",)), make_mesh((4, 2), ("a", "b"))
SIZES = [*range(1, 41), 64, 65, 127, 131]


def numbers(*shape: int) -> np.ndarray:
    return np.sin(np.arange(np.prod(shape), dtype="f") * 1.3 + 1).reshape(shape)


def split(x: np.ndarray, mesh: Mesh = EIGHT, spec: P | None = None) -> Any:
    """The array in equal parts on the devices of a mesh."""
    return rune.device_put(x, NamedSharding(mesh, P(*mesh.axis_names[: x.ndim]) if spec is None else spec))


def sent(function: Callable[..., Any], x: np.ndarray, mesh: Mesh = EIGHT) -> dict[str, int]:
    """The bytes that a device puts into messages of each kind, in one run of all loops."""
    program_on_mesh = on_mesh(rune.make_program(function)(x), [split(x, mesh)])
    assert program_on_mesh is not None
    totals: dict[str, int] = {}
    for message in exchanges(program_on_mesh.local, mesh):
        totals[message.kind] = totals.get(message.kind, 0) + int(message.bytes_in)
    return totals


def rounded_up(size: int, devices: int) -> int:
    return -(-size // devices) * devices


# --- meaning ------------------------------------------------------------------------------------

# Functions of (numpy or rune.numpy, x), of which NumPy is the meaning.
ALONG_ONE_AXIS: dict[str, Callable[[Any, Any], Any]] = {
    "slice": lambda xp, x: x[1:-1],
    "slices of slices": lambda xp, x: x[1:][:-2][1:],
    "every second": lambda xp, x: (x[::2], x[1::2], x[1::3]),
    "difference": lambda xp, x: x[1:] - x[:-1],
    "wide difference": lambda xp, x: x[5:] - x[:-5],
    "second difference": lambda xp, x: x[2:] - 2 * x[1:-1] + x[:-2],
    "differences of differences": lambda xp, x: xp.diff(xp.diff(xp.diff(x))),
    "padded": lambda xp, x: (xp.pad(x, 1), xp.pad(x, (0, 3))[2:], xp.pad(x[1:], (2, 1))),
    "padded difference": lambda xp, x: xp.pad(x[1:] * x[:-1], (1, 0)),
    "shifted": lambda xp, x: xp.concatenate([x[1:], x[:1]]) + xp.concatenate([x[-2:], x[:-2]]),
    "rolled": lambda xp, x: xp.roll(x, 1) - xp.roll(x, -3),
    "periodic": lambda xp, x: xp.concatenate([x[-1:], x, x[:1]])[2:] - x,
    "joined": lambda xp, x: xp.concatenate([x[1:], x[:1] * 2, x[:-1]]),
    "sums": lambda xp, x: ((x[1:] * x[:-1]).sum(), (x[2:] - x[:-2])[1:].sum(), x[1:].prod()),
    "product": lambda xp, x: x[1:] @ x[:-1],
    "reversed": lambda xp, x: (x[1:] - x[:-1])[::-1],
    "running sums": lambda xp, x: xp.cumsum(x[1:] + x[:-1]),
}
OF_TWO_ELEMENTS: dict[str, Callable[[Any, Any], Any]] = {
    "extrema": lambda xp, x: ((x[1:] + x[:-1]).max(), x[1:].min(), (x[1:] > x[:-1]).any(), xp.argmax(x[1:])),
    "ends": lambda xp, x: (x[1:][0], x[:-1][-1], (x[1:] + x[:-1])[0]),
}


def results_of(xp: Any, x: Any) -> list[Any]:
    functions = [*ALONG_ONE_AXIS.values(), *(OF_TWO_ELEMENTS.values() if len(x) > 1 else ())]
    return rune.tree.leaves([function(xp, x) for function in functions])


@pytest.mark.parametrize("size", SIZES)
def test_results_along_an_axis_of_any_size_are_those_of_numpy(size: int):
    # The devices divide the array, and need not divide the part that is used.
    x = numbers(rounded_up(size, 8))

    results = rune.jit(lambda x: results_of(rnp, x[:size]))(split(x))
    for number, (a, b) in enumerate(zip(results, results_of(np, x[:size]), strict=True)):
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-5, atol=1e-5, err_msg=str(number))


def differences(xp: Any, x: Any) -> list[Any]:
    """Programs for elements of any dtype, which only move and compare them."""
    rotated = xp.concatenate([x[1:], x[:2]])[:-1]
    return [xp.pad(x[1:], (1, 0)), xp.where(x[1:] == x[:-1], x[1:], x[:-1]), rotated, xp.roll(x, 2), x[2:-1] != x[1:-2]]


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "?", "c8", "u1", "f2"])
@pytest.mark.parametrize("size", [8, 23, 39, 40])
def test_elements_of_every_dtype_are_sent(dtype: str, size: int):
    x = (numbers(rounded_up(size, 8)) * 3).astype(dtype)

    results = rune.jit(lambda x: differences(rnp, x[:size]))(split(x))
    for a, b in zip(results, differences(np, x[:size]), strict=True):
        np.testing.assert_array_equal(np.asarray(a), b)


@pytest.mark.parametrize("devices", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("shares", [1, 2, 5])
def test_any_number_of_devices_may_split_an_axis(devices: int, shares: int):
    x = numbers(devices * shares)
    mesh = Mesh(np.array(EIGHT.devices[:devices]), ("x",))

    results = rune.jit(lambda x: results_of(rnp, x))(split(x, mesh))
    for number, (a, b) in enumerate(zip(results, results_of(np, x), strict=True)):
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-5, atol=1e-5, err_msg=str(number))


def laplacian(u: Any) -> Any:
    return u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]


ALONG_TWO_AXES: dict[str, Callable[[Any, Any], Any]] = {
    "laplacian": lambda xp, u: laplacian(u),
    "step": lambda xp, u: u + 0.1 * xp.pad(laplacian(u), 1),
    "corners": lambda xp, u: u[1:, 1:] * u[:-1, :-1] + u[1:, :-1],
    "sums": lambda xp, u: (laplacian(u).sum(), laplacian(u).sum(0), xp.diff(u, axis=0).max(1), u[1:].T[1:].sum(1)),
    "product": lambda xp, u: (u[1:].T @ u[:-1], u[1:] @ u[:-1].T, u[:, 1:] @ u[:, :-1].T),
    "rolled": lambda xp, u: xp.roll(u, (1, -2), (0, 1)) + xp.roll(u, 1, 1),
    "turned": lambda xp, u: u[1:, 1:].T[:, :-1][:, None] + u[2:, 0],
    "shaped": lambda xp, u: (u[1:].reshape(-1), u[1:, 2:][:, :, None].reshape(1, len(u) - 1, -1)),
    "beside another": lambda xp, u: u[1:] + xp.arange(len(u) - 1)[:, None] * u[0] + u[:-1, :1],
}


SPECS = [P("a", "b"), P("b", "a"), P(None, "a"), P("b"), P(("a", "b"))]
SHAPES = [(8, 6), (12, 10), (4, 2), (20, 34), (64, 4)]
IN_PARTS = [
    (shape, spec)
    for spec in SPECS
    for shape in SHAPES
    if not any(size % NamedSharding(GRID, spec).parts(axis) for axis, size in enumerate(shape))
]


@pytest.mark.parametrize(("shape", "spec"), IN_PARTS, ids=str)
def test_results_along_two_axes_are_those_of_numpy(shape: tuple[int, int], spec: P):
    u = numbers(*shape)

    def all_of_them(xp: Any, u: Any) -> Any:
        return rune.tree.leaves([function(xp, u) for function in ALONG_TWO_AXES.values()])

    results = rune.jit(lambda u: all_of_them(rnp, u))(split(u, GRID, spec))
    for number, (a, b) in enumerate(zip(results, all_of_them(np, u), strict=True)):
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-4, atol=1e-4, err_msg=str(number))


# --- traffic ------------------------------------------------------------------------------------


def heat(u: Any) -> Any:
    """A step of the heat equation with fixed ends."""
    return u.at[1:-1].add(0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]))


@pytest.mark.parametrize(
    ("function", "messages"),
    [
        (lambda x: rnp.pad(x[1:] - x[:-1], (0, 1)), {"ppermute": 4}),
        (lambda x: rnp.pad(x[2:] - 2 * x[1:-1] + x[:-2], 1), {"ppermute": 8}),
        (lambda x: rnp.pad(x[8:] * x[:-8], 4), {"ppermute": 32}),
        (lambda x: ((x[1:] - x[:-1]) ** 2).sum(), {"ppermute": 4, "psum": 4}),
        (rune.grad(lambda x: ((x[1:] - x[:-1]) ** 2).sum()), {"ppermute": 8}),
        (lambda x: x[::2], {}),
        (lambda x: rnp.roll(x, 3), {"ppermute": 12, "psum": 12}),
        (lambda x: rnp.pad(rnp.diff(rnp.diff(x)), 1), {"ppermute": 8}),
    ],
    ids=["difference", "second difference", "wide", "energy", "gradient", "every second", "roll", "twice"],
)
def test_borders_are_sent_and_not_the_array(function: Any, messages: dict[str, int]):
    assert sent(function, numbers(128)) == messages


def test_a_laplacian_sends_the_four_edges_of_each_block():
    assert sent(lambda u: rnp.pad(laplacian(u), 1), numbers(40, 12), GRID) == {"ppermute": 4 * (2 * 6 + 2 * 10)}


def test_what_is_asked_for_on_every_device_is_gathered():
    assert sent(lambda x: x[1:-1], numbers(128)) == {"all_gather": 64}


def test_an_array_is_gathered_if_a_device_would_have_much_more_than_its_share():
    assert sent(lambda x: rnp.pad(x[1:], (0, 200)), numbers(128)) == {"all_gather": 64}
