"""Operations on neighbours along a split axis: devices send only borders, not the array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import pytest

import rune
from rune import lax
from rune import numpy as rnp
from rune.sharding import Mesh, NamedSharding, P, make_mesh
from rune.transforms.compile.run import on_mesh
from rune.transforms.sharding.exchanges import exchanges
from tests.support.sampling import IS_WHOLE, each_value

T = TypeVar("T")

EIGHT, GRID = make_mesh((8,), ("x",)), make_mesh((4, 2), ("a", "b"))
# Eight parts of an axis, by one axis of a mesh or by two.
LAYOUTS = [(EIGHT, P("x")), (GRID, P(("a", "b"))), (GRID, P(("b", "a")))]
# Fewer than the devices, some more than they divide, one less, and as many as they divide: each
# function meets one of each row.
SIZES = [*(1, 2, 3, 7), *(9, 17, 65, 131), *(15, 23, 39, 127), *(8, 16, 24, 40)]


def numbers(*shape: int) -> np.ndarray:
    return np.sin(np.arange(np.prod(shape), dtype="f") * 1.3 + 1).reshape(shape)


def split(x: np.ndarray, mesh: Mesh = EIGHT, spec: P | None = None) -> Any:
    """The array in equal parts on the devices of a mesh."""
    return rune.device_put(x, NamedSharding(mesh, P(*mesh.axis_names[: x.ndim]) if spec is None else spec))


def messages_of(
    function: Callable[..., Any], x: np.ndarray, mesh: Mesh = EIGHT, spec: P | None = None
) -> list[tuple[str, int, int | None]]:
    """The kinds, bytes and steps of the messages of a device."""
    program_on_mesh = on_mesh(rune.make_program(function)(x), [split(x, mesh, spec)])
    assert program_on_mesh is not None
    return [(m.kind, int(m.bytes_in), m.steps) for m in exchanges(program_on_mesh.local, mesh)]


def sent(function: Callable[..., Any], x: np.ndarray, mesh: Mesh = EIGHT, spec: P | None = None) -> dict[str, int]:
    """The bytes that a device puts into messages of each kind."""
    totals: dict[str, int] = {}
    for kind, size, _ in messages_of(function, x, mesh, spec):
        totals[kind] = totals.get(kind, 0) + size
    return totals


def rounded_up(size: int, devices: int) -> int:
    return -(-size // devices) * devices


# --- meaning ------------------------------------------------------------------------------------

# Functions of (numpy or rune.numpy, x); NumPy says what they mean.
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
    "wrapped": lambda xp, x: xp.pad(x, (2, 1), mode="wrap")[3:] * x,
    "repeated": lambda xp, x: xp.concatenate([x, x]) + xp.tile(x, 2)[::-1],
    "joined": lambda xp, x: xp.concatenate([x[1:], x[:1] * 2, x[:-1]]),
    "sums of more": lambda xp, x: (xp.pad(x + 1, 1).sum(), xp.concatenate([x[1:], x[:2], x[:1] + 1]).sum()),
    "sums": lambda xp, x: ((x[1:] * x[:-1]).sum(), (x[2:] - x[:-2])[1:].sum(), x[1:].prod()),
    "product": lambda xp, x: x[1:] @ x[:-1],
    "reversed": lambda xp, x: ((x[1:] - x[:-1])[::-1], x[::-1] - x, x[::-1][1:] * x[:-1], xp.flip(x[2:])[1:]),
    "strides": lambda xp, x: (x[::3], x[::5].sum(), x[1::3] + x[:-1:3], xp.repeat(x[::3], 2), x[::-3]),
    "running sums": lambda xp, x: xp.cumsum(x[1:] + x[:-1]),
}
OF_TWO_ELEMENTS: dict[str, Callable[[Any, Any], Any]] = {
    "extrema": lambda xp, x: ((x[1:] + x[:-1]).max(), x[1:].min(), (x[1:] > x[:-1]).any(), xp.argmax(x[1:])),
    "ends": lambda xp, x: (x[1:][0], x[:-1][-1], (x[1:] + x[:-1])[0]),
}


def functions_of(size: int) -> list[Callable[[Any, Any], Any]]:
    """The functions of arrays with this many elements."""
    return [*ALONG_ONE_AXIS.values(), *(OF_TWO_ELEMENTS.values() if size > 1 else ())]


def in_turn(table: Sequence[T], number: int, count: int) -> Sequence[T]:
    """A share of a table, by the number of a case; all of it where nothing is left out."""
    return table if IS_WHOLE else table[number % count :: count]


def require_numpy(functions: Sequence[Callable[[Any, Any], Any]], x: np.ndarray, on_devices: Any, size: int) -> None:
    """Results for the first elements of an array on devices are NumPy's."""

    def all_of_them(xp: Any, x: Any) -> list[Any]:
        return rune.tree.leaves([function(xp, x[:size]) for function in functions])

    results = rune.jit(lambda x: all_of_them(rnp, x))(on_devices)
    for number, (a, b) in enumerate(zip(results, all_of_them(np, x), strict=True)):
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-4, atol=1e-4, err_msg=str(number))


@pytest.mark.parametrize(("number", "size"), [*enumerate(SIZES)])
def test_results_along_an_axis_of_any_size_are_those_of_numpy(number: int, size: int):
    # The devices divide the array, and need not divide the part that is used.
    x = numbers(rounded_up(size, 8))

    for layout in in_turn(LAYOUTS, number, 3):
        require_numpy(in_turn(functions_of(size), number, 4), x, split(x, *layout), size)


@pytest.mark.parametrize("size", [8, 24, 37])
def test_an_array_is_rolled_by_any_number(size: int):
    x = numbers(rounded_up(size, 8))
    shifts = range(-size - 1, size + 1, 1 + size // 12)

    require_numpy([lambda xp, x: xp.stack([xp.roll(x, shift) for shift in shifts])], x, split(x), size)
    require_numpy(
        [lambda xp, x: [xp.concatenate([x[n:], x[:n]]) for n in shifts[len(shifts) // 2 :]]], x, split(x), size
    )


def differences(xp: Any, x: Any) -> list[Any]:
    """Programs for elements of any dtype, which only move and compare them."""
    rotated = xp.concatenate([x[1:], x[:2]])[:-1]
    return [xp.pad(x[1:], (1, 0)), xp.where(x[1:] == x[:-1], x[1:], x[:-1]), rotated, xp.roll(x, 2), x[2:-1] != x[1:-2]]


@each_value()
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "?", "c8", "u1", "f2"])
@pytest.mark.parametrize("size", [8, 23, 39, 40])
def test_elements_of_every_dtype_are_sent(dtype: str, size: int):
    x = (numbers(rounded_up(size, 8)) * 3).astype(dtype)

    results = rune.jit(lambda x: differences(rnp, x[:size]))(split(x))
    for a, b in zip(results, differences(np, x[:size]), strict=True):
        np.testing.assert_array_equal(np.asarray(a), b)


@pytest.mark.parametrize("devices", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("shares", [1, 5])
def test_any_number_of_devices_may_split_an_axis(devices: int, shares: int):
    x = numbers(devices * shares)
    mesh = Mesh(np.array(EIGHT.devices[:devices]), ("x",))

    require_numpy(in_turn(functions_of(len(x)), devices + shares, 4), x, split(x, mesh), len(x))


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
    "flipped": lambda xp, u: (u[::-1, ::-1] - u, xp.flip(u[1:], 1)[:, 1:], u[::3, ::2], u[:, ::-3]),
    "beside another": lambda xp, u: u[1:] + xp.arange(len(u) - 1)[:, None] * u[0] + u[:-1, :1],
}


SPECS = [P("a", "b"), P("b", "a"), P(None, "a"), P("b"), P(("a", "b")), P(None, ("b", "a"))]
SHAPES = [(8, 6), (12, 10), (4, 2), (20, 34), (64, 4), (5, 24)]
IN_PARTS = [
    (shape, spec)
    for spec in SPECS
    for shape in SHAPES
    if not any(size % NamedSharding(GRID, spec).parts(axis) for axis, size in enumerate(shape))
]


@pytest.mark.parametrize(("number", "shape", "spec"), [(n, *case) for n, case in enumerate(IN_PARTS)], ids=str)
def test_results_along_two_axes_are_those_of_numpy(number: int, shape: tuple[int, int], spec: P):
    u = numbers(*shape)

    require_numpy(in_turn([*ALONG_TWO_AXES.values()], number, 4), u, split(u, GRID, spec), shape[0])


def test_borders_work_next_to_an_axis_that_several_mesh_axes_split():
    u = numbers(8, 12)
    functions = [ALONG_TWO_AXES[name] for name in ("laplacian", "rolled", "corners", "sums")]

    cube = make_mesh((2, 2, 2), ("a", "b", "c"))
    require_numpy(functions, u, split(u, cube, P(("a", "b"), "c")), 8)
    require_numpy([lambda xp, u: xp.roll(u, 1, 1)], u, split(u, cube, P(("a", "b"), "c")), 8)


# --- loops and branches -------------------------------------------------------------------------


def heat(u: Any) -> Any:
    """A step of the heat equation with fixed ends."""
    inner = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u.at[1:-1].set(inner) if hasattr(u, "at") else np.concatenate([u[:1], inner, u[-1:]])


def repeated(xp: Any, step: Callable[[Any], Any], u: Any, count: int = 4) -> Any:
    """The value after several steps, by a loop."""
    if xp is rnp:
        return lax.fori_loop(0, count, lambda _, u: step(u), u)
    for _ in range(count):
        u = step(u)
    return u


def walked(xp: Any, x: Any) -> Any:
    """The sums of each state of a heat equation."""
    if xp is rnp:
        return lax.scan(lambda u, _: (heat(u), (u[1:] * u[:-1]).sum()), x, None, length=4)
    sums = []
    for _ in range(4):
        sums.append((x[1:] * x[:-1]).sum())
        x = heat(x)
    return x, np.array(sums)


def chosen(xp: Any, x: Any) -> Any:
    """One of two programs for a difference that both read."""
    change = x[1:] - x[:-1]
    if xp is rnp:
        return lax.cond(x[1] > 0, lambda d: rnp.pad(d * 2, (1, 0)), lambda d: rnp.pad(d[1:] + d[:-1], 1), change)
    return np.pad(change * 2, (1, 0)) if x[1] > 0 else np.pad(change[1:] + change[:-1], 1)


IN_LOOPS: dict[str, Callable[[Any, Any], Any]] = {
    "heat": lambda xp, x: repeated(xp, heat, x),
    "ring": lambda xp, x: repeated(xp, lambda u: u + 0.1 * (xp.roll(u, 1) - u), x),
    "of a constant": lambda xp, x: repeated(xp, lambda u: u + xp.pad(x[2:] - x[:-2], 1), x),
    "of a difference": lambda xp, x: repeated(xp, lambda d: d * 2 + (x[1:] - x[:-1]), x[1:]),
    "scan": walked,
    "choice": chosen,
}


@pytest.mark.parametrize(("number", "size"), [*enumerate([8, 13, 16, 23, 24, 40])])
def test_loops_and_branches_have_borders(number: int, size: int):
    x = numbers(rounded_up(size, 8))

    require_numpy(in_turn([*IN_LOOPS.values()], number, 2), x, split(x, *LAYOUTS[number // 2]), size)


# --- convolutions and gradients -----------------------------------------------------------------


KERNEL = np.array([0.5, -1.0, 2.0, 0.25, 1.5], "f")
LINEAR: dict[str, Callable[[Any, Any], Any]] = {
    "same": lambda xp, x: xp.convolve(x, KERNEL, "same"),
    "full": lambda xp, x: xp.convolve(x, KERNEL[:4], "full"),
    "valid": lambda xp, x: xp.convolve(x, KERNEL[:3], "valid"),
    "twice": lambda xp, x: xp.convolve(xp.convolve(x, KERNEL[:2], "full"), KERNEL, "valid"),
    "second difference": lambda xp, x: x[2:] - 2 * x[1:-1] + x[:-2],
    "every second": lambda xp, x: x[::2] - xp.pad(x[1::2], (0, len(x) % 2)),
    "padded": lambda xp, x: xp.pad(x[3:] - x[:-3], (1, 2)) + xp.roll(x, 2),
    "heat": lambda xp, x: repeated(xp, heat, x),
    "mirrored": lambda xp, x: x[::-1] * 2 - x,
    "strides": lambda xp, x: xp.repeat(x[::3], 3)[: len(x)] - x + xp.pad(x[1::3], (2, 1)).sum(),
}


@pytest.mark.parametrize(("number", "size"), [*enumerate([8, 15, 17, 24, 61, 64])])
def test_convolutions_and_their_gradients_are_those_of_a_matrix(number: int, size: int):
    x = numbers(rounded_up(size, 8))

    for name, function in in_turn([*LINEAR.items()], number, 3):
        # The matrix has the images of unit vectors for columns.
        matrix = np.stack([function(np, unit) for unit in np.eye(size, dtype="f")], axis=1)
        energy = rune.value_and_grad(lambda x, f=function: (f(rnp, x[:size]) ** 2).sum())
        value, gradient = rune.jit(energy)(split(x, *LAYOUTS[number % 2]))

        image = matrix @ x[:size]
        np.testing.assert_allclose(np.asarray(value), (image**2).sum(), rtol=1e-4, err_msg=name)
        expected = np.pad(2 * matrix.T @ image, (0, len(x) - size))
        np.testing.assert_allclose(np.asarray(gradient), expected, rtol=1e-4, atol=1e-4, err_msg=name)


IMAGES = numbers(2, 3, 16, 24)
FILTERS = numbers(4, 3, 3, 5)


@pytest.mark.parametrize(
    ("spec", "strides"),
    [(P(None, None, "a", "b"), (1, 1)), (P("b", None, None, "a"), (2, 1)), (P(None, None, "b"), (2, 2))],
    ids=str,
)
def test_convolutions_of_images_in_parts_are_those_on_one_device(spec: P, strides: tuple[int, int]):
    def loss(images: Any, filters: Any) -> Any:
        result = lax.conv_general_dilated(images, filters, strides, "SAME")
        pools = lax.reduce_window(result, -np.inf, lax.max, (1, 1, 2, 2), (1, 1, 1, 2), "VALID")
        return (result**2).sum() + (pools * pools).sum(), (result, pools)

    gradient = rune.value_and_grad(loss, (0, 1), has_aux=True)
    results = rune.jit(gradient)(split(IMAGES, GRID, spec), FILTERS)
    for a, b in zip(rune.tree.leaves(results), rune.tree.leaves(gradient(IMAGES, FILTERS)), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("size", "strides", "padding", "dilation"),
    [(16, (1,), "SAME", (1,)), (40, (3,), "VALID", (1,)), (56, (1,), [(5, 0)], (2,)), (24, (2,), [(1, 3)], (3,))],
    ids=["same", "every third", "causal", "far apart"],
)
def test_gradients_of_filters_are_those_on_one_device(size: int, strides: Any, padding: Any, dilation: Any):
    x, filters = numbers(3, 2, size), numbers(2, 2, 3)

    def loss(x: Any, filters: Any) -> Any:
        return (lax.conv_general_dilated(x, filters, strides, padding, rhs_dilation=dilation) ** 2).sum()

    layouts = (EIGHT, P(None, None, "x")), (GRID, P(None, "b", "a")), (GRID, P(None, None, ("a", "b")))
    for layout in in_turn(layouts, size // 8, 3):
        compiled: Any = rune.jit(rune.grad(loss, (0, 1)))
        for a, b in zip(compiled(split(x, *layout), filters), rune.grad(loss, (0, 1))(x, filters), strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=1e-4)


def test_operations_outside_of_jit_have_borders():
    x = numbers(40)
    on_devices = split(x)

    change = on_devices[2:] - 2 * on_devices[1:-1] + on_devices[:-2]
    np.testing.assert_allclose(np.asarray(change), x[2:] - 2 * x[1:-1] + x[:-2], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(np.asarray(rnp.roll(on_devices, 3)), np.roll(x, 3))
    np.testing.assert_array_equal(np.asarray(rnp.pad(on_devices, 4)[:-8]), np.pad(x, 4)[:-8])


# --- traffic ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "messages"),
    [
        (lambda x: rnp.pad(x[1:] - x[:-1], (0, 1)), {"ppermute": 4}),
        (lambda x: rnp.pad(x[2:] - 2 * x[1:-1] + x[:-2], 1), {"ppermute": 8}),
        (lambda x: rnp.pad(x[8:] * x[:-8], 4), {"ppermute": 32}),
        (lambda x: ((x[1:] - x[:-1]) ** 2).sum(), {"ppermute": 4, "psum": 4}),
        (rune.grad(lambda x: ((x[1:] - x[:-1]) ** 2).sum()), {"ppermute": 8}),
        (lambda x: x[::2], {}),
        (lambda x: rnp.pad(x[::3], (0, 5)), {"ppermute": 56}),
        (rune.grad(lambda x: (x[::3] ** 2).sum()), {"ppermute": 112}),
        (lambda x: x[::-1], {"ppermute": 64}),
        (lambda x: (x[::-1] * x).sum(), {"ppermute": 64, "psum": 4}),
        (lambda x: rnp.roll(x, 3), {"ppermute": 12}),
        (lambda x: rnp.roll(x, 64), {"ppermute": 64}),
        (lambda x: rnp.roll(x, 1) + rnp.roll(x, -1) - 2 * x, {"ppermute": 8}),
        (lambda x: rnp.pad(x, 2, mode="wrap")[4:] * x, {"ppermute": 16}),
        (lambda x: rnp.pad(rnp.diff(rnp.diff(x)), 1), {"ppermute": 8}),
        (heat, {"ppermute": 8}),
        (rune.grad(lambda x: (heat(x) ** 2).sum()), {"ppermute": 16}),
        (lambda x: rnp.convolve(x, KERNEL, "same"), {"ppermute": 16}),
        (lambda x: rune.vjp(lambda x: rnp.convolve(x, KERNEL, "same"), x)[1](x)[0], {"ppermute": 32}),
        (rune.grad(lambda x: (lax.conv(x[None, None], KERNEL[None, None], (1,), "SAME") ** 2).sum()), {"ppermute": 32}),
        (lambda x: lax.conv(x[None, None], KERNEL[None, None], (3,), "SAME").sum(), {"ppermute": 72, "psum": 4}),
        (lambda x: x[2:, None] * x[None, :-2], {"all_gather": 64}),
        (lambda x: x[2:] - 2 * x[1:-1] + x[:-2], {"ppermute": 8, "all_gather": 64}),
    ],
    ids=[
        *("difference", "second difference", "wide", "energy", "gradient"),
        *("every second", "every third", "gradient of every third", "reversed", "product with itself reversed"),
        *("roll", "half a turn", "ring", "wrapped"),
        *("twice", "heat", "gradient of heat", "convolution", "transpose of a convolution", "gradient of conv"),
        *("every third window", "outer product", "all of it"),
    ],
)
def test_borders_are_sent_and_not_the_array(function: Any, messages: dict[str, int]):
    assert sent(function, numbers(128)) == messages


@pytest.mark.parametrize("spec", [P(("a", "b")), P(("b", "a"))], ids=str)
def test_devices_along_two_axes_of_a_mesh_send_what_they_would_along_one(spec: P):
    for function in (heat, rune.grad(lambda x: (heat(x) ** 2).sum()), lambda x: rnp.pad(x[::3] - x[::-3], (0, 5))):
        assert sent(function, numbers(128), GRID, spec) == sent(function, numbers(128))


def test_gradients_of_filters_are_sums_of_the_devices_parts():
    def along_time(x: Any) -> Any:
        def loss(k: Any) -> Any:
            return (lax.conv_general_dilated(x, k, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")) ** 2).sum()

        return rune.grad(loss)(numbers(5, 6, 6))

    def of_images(x: Any) -> Any:
        return rune.grad(lambda k: (lax.conv(x, k, (1, 1), "SAME") ** 2).sum())(numbers(4, 3, 3, 3))

    # Borders of two elements on either side, for the result and for the gradient; and the gradient.
    borders = 2 * 2 * 2 * 2 * 6 * 4
    assert sent(along_time, numbers(2, 64, 6), EIGHT, P(None, "x")) == {"ppermute": borders, "psum": 5 * 6 * 6 * 4}
    messages = sent(of_images, numbers(2, 3, 16, 16), GRID, P(None, None, "a", "b"))
    assert messages == {"ppermute": 1344, "psum": 2 * 4 * 27 * 4}  # as XLA sends borders


def test_steps_of_a_loop_send_borders():
    assert messages_of(lambda x: repeated(rnp, heat, x), numbers(128)) == [("ppermute", 4, 4)] * 2


def test_what_a_loop_reads_is_sent_before_it():
    def steps(x: Any) -> Any:
        return repeated(rnp, lambda u: u + rnp.pad(x[2:] * x[:-2], 1), x)

    assert {steps for _, _, steps in messages_of(steps, numbers(128))} == {1}


def test_a_laplacian_sends_the_four_edges_of_each_block():
    assert sent(lambda u: rnp.pad(laplacian(u), 1), numbers(40, 12), GRID) == {"ppermute": 4 * (2 * 6 + 2 * 10)}


def test_what_is_asked_for_on_every_device_is_gathered():
    assert sent(lambda x: x[1:-1], numbers(128)) == {"all_gather": 64}


def test_an_array_is_gathered_if_a_device_would_have_much_more_than_its_share():
    assert sent(lambda x: rnp.pad(x[1:], (0, 200)), numbers(128)) == {"all_gather": 64}


# --- checks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["check_nans", "check_infs"])
def test_elements_outside_an_axis_are_not_faults(setting: str):
    x = np.arange(40, dtype="f")
    x[39] = 0

    with rune.configure(**{setting: True}):
        # x[39] / x[0] and x[0] / x[0] are no elements of the quotient.
        results = rune.jit(lambda x: rnp.pad(x[2:] / x[1:-1] - 1, 1))(split(x))
        np.testing.assert_allclose(np.asarray(results), np.pad(x[2:] / x[1:-1] - 1, 1), rtol=1e-6)


def test_a_fault_next_to_a_border_is_reported():
    with rune.configure(check_infs=True), pytest.raises(rune.errors.NaNError, match="div: found infinity"):
        rune.jit(lambda x: rnp.pad(x[1:] / x[:-1], (1, 0)))(split(np.arange(40, dtype="f")))
