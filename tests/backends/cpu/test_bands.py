"""Bands: steps of a batch that run entry by entry have the bits that each entry has alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.backends.cpu import band, bands, costs
from rune.lowering import bands as lowering_bands
from rune.transforms.compile.executables import compiled, device_for
from tests.support.close import near, same


@pytest.fixture(autouse=True)
def _low_limits(monkeypatch):
    """Bands of small arrays, in plans that do not begin as drafts."""
    monkeypatch.setattr(costs, "MOST_WORK", -1.0)
    monkeypatch.setattr(lowering_bands, "LEAST_BYTES", 1 << 10)
    monkeypatch.setattr(band, "UNEVEN", 100.0)


def attention(q, k, v):
    return rune.nn.softmax(q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5, axis=-1) @ v


def gradients(q, k, v):
    return rune.grad(lambda q, k, v: rnp.sum(attention(q, k, v) ** 2), argnums=(0, 1, 2))(q, k, v)


def of_joined_heads(q, k, v):
    """Queries, keys and values are parts of one array, which products read by strides."""
    parts = rnp.concatenate([q, k, v], -1).swapaxes(0, 1).reshape(q.shape[1], -1)
    split = parts.reshape(q.shape[1], q.shape[0], 3, -1)
    return attention(*(split[:, :, n].swapaxes(0, 1) for n in range(3)))


def of_other_entries(q, k, v):
    """The second product reads scores of the entry before."""
    return rnp.roll(rnp.exp(q @ k.swapaxes(-1, -2) * 0.1), 1, 0) @ v


def with_a_total(q, k, v):
    """A sum over all entries between the products."""
    scores = rnp.tanh(q @ k.swapaxes(-1, -2))
    return (scores - rnp.mean(scores, 0)) @ v


def with_results_between(q, k, v):
    scores = rnp.tanh(q @ k.swapaxes(-1, -2))
    return scores, scores @ v


FUNCTIONS = (attention, gradients, of_joined_heads, of_other_entries, with_a_total, with_results_between)
SIZES = ((2, 64, 64), (3, 65, 37), (7, 131, 33), (16, 48, 80))


def operands(shape, dtype=np.float32) -> Any:
    rng = np.random.default_rng(5)
    return [rng.standard_normal(shape).astype(dtype) for _ in range(3)]


def text(f, *args) -> str:
    # A new function, as programs of known ones are compiled already.
    executable: Any = compiled(rune.jit(lambda *x: f(*x)).program(*args), device_for(None))
    return executable.rendering.text


def bands_in(f, *args) -> int:
    """How many bands the code has."""
    return text(f, *args).count("define internal void @band.")


@pytest.mark.parametrize("shape", SIZES, ids=str)
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_program_with_bands_has_the_bits_that_it_has_without(f, shape, monkeypatch):
    args = operands(shape)
    results = rune.jit(f)(*args)

    monkeypatch.setattr(lowering_bands, "LEAST_BYTES", 1 << 60)
    assert bands_in(f, *args) == 0
    same(rune.jit(lambda *x: f(*x))(*args), results)


@pytest.mark.parametrize("f", [attention, gradients, of_joined_heads])
def test_attention_and_its_gradients_are_bands(f):
    assert bands_in(f, *operands((16, 65, 64))) == 1


def test_each_entry_has_the_bits_that_it_has_alone():
    args = operands((16, 65, 64))
    each = [rune.jit(attention)(*(x[n : n + 1] for x in args)) for n in range(16)]

    same(np.concatenate(each), rune.jit(attention)(*args))


@pytest.mark.parametrize("block_bytes", [1, 100_000, 1 << 30])
@pytest.mark.parametrize("f", [attention, gradients, of_joined_heads])
def test_blocks_of_any_number_of_entries_give_the_same_bits(f, block_bytes, monkeypatch):
    args = operands((7, 65, 64))
    expected = rune.jit(lambda *x: f(*x))(*args)

    monkeypatch.setattr(bands, "BLOCK_BYTES", block_bytes)
    same(expected, rune.jit(lambda *x: f(*x))(*args))


def test_a_long_band_checks_for_signals_between_its_parts(monkeypatch):
    monkeypatch.setattr(bands, "PART_OPERATIONS", 1)
    q, k, v = (rnp.asarray(x) for x in operands((7, 65, 64)))

    result = rune.jit(lambda q, k, v: attention(q, k, v))(q, k, v)
    near(attention(q, k, v), result, relative=1e-5, why="f32")


def test_a_donated_argument_is_not_overwritten_while_entries_read_it():
    args = operands((16, 65, 64))
    expected = rune.jit(attention)(*args)

    donated = rune.jit(lambda q, k, v: attention(q, k, v), donate_argnums=(0, 1, 2))
    same(expected, donated(*(rnp.array(x) for x in args)))


def test_few_entries_for_many_cores_run_step_by_step(monkeypatch):
    monkeypatch.setattr(band, "UNEVEN", 1.25)

    assert not band.is_even(3, 2)
    assert band.is_even(16, 2)
    assert band.is_even(7, 2)
    assert not band.is_even(16, 64)
