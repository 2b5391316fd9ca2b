"""Spans become spans with another share in rounds: each device sends what one other needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
from rune import numpy as rnp
from rune.sharding import NamedSharding, P, make_mesh
from rune.transforms.sharding.rounds import Rounds, rounds
from rune.transforms.sharding.span import Span
from tests.sharding.eight_devices.test_turned_layouts import bytes_of

EIGHT, GRID = make_mesh((8,), ("x",)), make_mesh((4, 2), ("a", "b"))


def numbers(*shape: int) -> np.ndarray:
    return np.sin(np.arange(np.prod(shape), dtype="f") * 1.3 + 1).reshape(shape)


# --- plans --------------------------------------------------------------------------------------


def received(plan: Rounds, source: Span, devices: int) -> list[np.ndarray]:
    """The indices of the elements that each device has after the rounds, computed by hand."""
    blocks = [source.first + d * source.share + np.arange(source.width) for d in range(devices)]
    together = [[block] for block in blocks]
    for pairs, starts in zip(plan.pairs, plan.starts, strict=True):
        messages = {receiver: blocks[sender][starts[sender] :][: plan.size] for sender, receiver in pairs}
        for device in range(devices):
            together[device].append(messages.get(device, np.full(plan.size, -1)))
    rows = [np.concatenate(parts) for parts in together]
    return [np.concatenate([row[s[d] :][: plan.size] for s in plan.chunks]) for d, row in enumerate(rows)]


@pytest.mark.parametrize("seed", range(40))
def test_rounds_bring_every_element_of_the_axis_that_a_device_needs(seed: int):
    random = np.random.default_rng(seed)
    devices, unit = int(random.integers(1, 9)), int(random.integers(1, 5))
    a, b = (int(n) * unit for n in random.integers(1, 9, 2))
    first = -int(random.integers(0, 3)) * unit
    length = max(1, devices * a + first - int(random.integers(0, a)))
    width = a + max(0, length - first - devices * a)
    source = Span(("x",), a, first, width + int(random.integers(0, 3)))
    target = Span(("x",), b, int(random.integers(-9, 9)), int(random.integers(1, 3 * b)))

    plan = rounds(source, target, length, devices)

    for device, indices in enumerate(received(plan, source, devices) if plan else []):
        positions = target.first + device * target.share + np.arange(target.width)
        is_there = (positions >= 0) & (positions < length)
        np.testing.assert_array_equal(indices[: target.width][is_there], positions[is_there])
    # A device sends one chunk in a round, and gets one.
    for pairs in plan.pairs if plan else ():
        assert len({s for s, _ in pairs}) == len({r for _, r in pairs}) == len(pairs)


# --- meaning ------------------------------------------------------------------------------------

FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "a half": lambda xp, x: x[: len(x) // 2] * 2,
    "the other half": lambda xp, x: xp.sin(x[len(x) // 2 :]),
    "halves": lambda xp, x: x[: len(x) // 2] - x[len(x) - len(x) // 2 :] ** 2,
    "the middle": lambda xp, x: x[len(x) // 5 : -(len(x) // 7) or None] + 1,
    "every third": lambda xp, x: x[1::3] * x[1::3],
    "every seventh": lambda xp, x: xp.cos(x[::7]),
    "parts": lambda xp, x: xp.concatenate([x[: len(x) // 2] ** 2, x[len(x) // 2 :]]),
}
# Odd, prime, multiples of the devices and of their shares.
SIZES = [8, 13, 16, 24, 48, 64, 97, 128]


@pytest.mark.parametrize(("number", "size"), [*enumerate(SIZES)])
def test_slices_in_parts_and_their_gradients_are_those_of_numpy(number: int, size: int):
    mesh, spec = [(EIGHT, P("x")), (GRID, P(("b", "a")))][number % 2]
    x = numbers(size)
    parts = NamedSharding(mesh, spec if size % 8 == 0 else P())
    for function in [*FUNCTIONS.values()][number % 4 :: 4]:
        expected = function(np, x)
        layout = NamedSharding(mesh, spec if len(expected) % 8 == 0 else P())
        results = rune.jit(lambda x, f=function: f(rnp, x), in_shardings=parts, out_shardings=layout)(x)
        gradient = rune.jit(rune.grad(lambda x, f=function: (f(rnp, x) ** 2).sum()), in_shardings=parts)(x)

        np.testing.assert_allclose(results, expected, rtol=1e-6, atol=1e-6)
        expected_gradient = rune.grad(lambda x, f=function: (f(rnp, x) ** 2).sum())(x)
        np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("shape", "offset"), [((16, 5), 1), ((24, 24), -2), ((64, 48), 0), ((48, 64), 1)])
def test_diagonals_of_rows_are_those_of_numpy(shape: tuple[int, int], offset: int):
    x = numbers(*shape)
    rows = rune.device_put(x, NamedSharding(EIGHT, P("x")))
    f = rune.jit(lambda x: (rnp.diagonal(x, offset) * 2, rnp.trace(x, offset)))

    diagonal, total = f(rows)

    np.testing.assert_array_equal(diagonal, np.diagonal(x, offset) * 2)
    np.testing.assert_allclose(total, np.trace(x, offset), rtol=1e-5, atol=1e-5)
    gradient = rune.jit(rune.grad(lambda x: (rnp.diagonal(x, offset) ** 2).sum()))(rows)
    np.testing.assert_allclose(gradient, 2 * x * np.eye(*shape, offset, dtype="f"), rtol=1e-6)


# --- bytes --------------------------------------------------------------------------------------

ROWS = P("x")
# A program, the shapes, the layout of its result, what a device sends, and what it sends by XLA
# (jax 0.10.2).
SENT: dict[str, tuple[Callable[..., Any], tuple[int, ...], P | None, int, int]] = {
    "a half": (lambda x: x[:32], (64, 48), ROWS, 1536, 2304),
    "both halves": (lambda x: x[:32] + x[32:], (64, 48), ROWS, 3072, 3840),
    "a half of a vector": (lambda x: x[:64], (128,), ROWS, 64, 96),
    "a diagonal": (lambda x: rnp.diagonal(x), (64, 48), None, 56, 336),
    "a trace": (lambda x: rnp.trace(x), (64, 48), None, 8, 8),
}


@pytest.mark.parametrize("name", SENT)
def test_a_device_sends_no_more_than_by_xla(name: str):
    function, shape, out, sent, by_xla = SENT[name]

    assert bytes_of(function, "x", (ROWS,), out, numbers(*shape)) == sent
    assert sent <= by_xla


SUMS: dict[str, tuple[tuple[P, P], P, int]] = {
    "other axes": ((P(None, "a"), P("a")), P("b"), 6144),
    "the same axis": ((P(None, "a"), P("a")), P("a"), 6144),
}


@pytest.mark.parametrize("name", SUMS)
def test_a_sum_is_of_the_part_that_a_device_keeps(name: str):
    specs, out, sent = SUMS[name]

    assert bytes_of(rnp.matmul, "ab", specs, out, numbers(64, 48), numbers(48, 32)) == sent


def test_a_sum_that_is_read_whole_too_is_taken_once():
    def both(x: Any, y: Any) -> Any:
        product = x @ y
        return product, rune.lax.with_sharding_constraint(product, NamedSharding(GRID, P("b")))

    sent = bytes_of(both, "ab", (P(None, "a"), P("a")), None, numbers(64, 48), numbers(48, 32))

    assert sent == 12288
