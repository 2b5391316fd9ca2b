"""Bits: the same on every executor, one equation in a program, and part of the kernel that reads.

First what bits depend on; then batches, which equal stacked calls; then how they are compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rune
import rune.numpy as rnp
from rune import dtypes, random
from rune.backends import device_named
from rune.core.higher import subprograms
from rune.core.program import Equation, Program
from rune.errors import DtypeError, ShapeError
from tests.support.close import near, same
from tests.support.sampling import in_turn

DEVICES = [d.name for d in rune.devices() if d.target.backend != "null"]
on_every_executor = pytest.mark.parametrize("device", DEVICES)
WIDTHS = ("uint8", "uint16", "uint32", "uint64")
each_width = pytest.mark.parametrize("width", WIDTHS)
each_impl = pytest.mark.parametrize("impl", ["threefry2x32", "philox4x32"])
SEEDS = st.integers(0, 2**64 - 1)


def test_bits_depend_only_on_the_position_in_row_major_order():
    key = random.key(0)
    flat = np.asarray(random.bits(key, (12,)))

    same(flat.reshape(3, 4), np.asarray(random.bits(key, (3, 4))))
    same(flat[:5], np.asarray(random.bits(key, (5,))))
    same(flat[0], np.asarray(random.bits(key)))


@each_width
def test_narrow_bits_are_the_low_ones_of_a_word(width: str):
    key = random.key(1)
    bits = np.asarray(random.bits(key, (9,), width))

    assert bits.dtype == width
    if width != "uint64":
        same(np.asarray(random.bits(key, (9,))).astype(width), bits)


@given(seed=SEEDS)
def test_every_bit_is_set_half_of_the_time(seed: int):
    sample = np.asarray(random.bits(random.key(seed), (4096,)))
    share = [(sample >> b & 1).mean() for b in range(32)]

    # Six standard deviations of 1/128.
    assert max(abs(s - 0.5) for s in share) < 6 / 128


def test_an_empty_shape_draws_nothing():
    assert random.bits(random.key(0), (3, 0)).shape == (3, 0)


def test_bits_are_unsigned():
    with pytest.raises(DtypeError, match="bits: cannot draw i32"):
        random.bits(random.key(0), (3,), "int32")


@pytest.mark.parametrize("shape", [-3, (2, -1), (1.5,), 2.0, "ab"])
def test_a_shape_is_a_size_or_a_sequence_of_them(shape: Any):
    with pytest.raises(ShapeError, match=r"bits: cannot use .* as a shape"):
        random.bits(random.key(0), shape)
    same(np.asarray(random.bits(random.key(0), (3,))), np.asarray(random.bits(random.key(0), 3)))


# --- batches ----------------------------------------------------------------------------------


@each_impl
@each_width
def test_a_batch_of_keys_gives_what_its_keys_give_one_by_one(impl: str, width: str):
    keys = random.split(random.key(2, impl=impl), 4)

    lanes = rune.vmap(lambda k: random.bits(k, (2, 3), width))(keys)

    same(np.stack([np.asarray(random.bits(k, (2, 3), width)) for k in keys]), np.asarray(lanes))


def test_two_batch_axes_are_two_loops():
    keys = random.split(random.key(2), (2, 3))

    lanes = rune.vmap(rune.vmap(lambda k: random.uniform(k, (4,))))(keys)

    same(np.stack([[np.asarray(random.uniform(k, (4,))) for k in row] for row in keys]), np.asarray(lanes))


def test_one_key_in_all_lanes_gives_the_same_bits_in_all_lanes():
    key = random.key(0)

    lanes = rune.vmap(lambda x: x + random.uniform(key, (3,)), in_axes=0)(rnp.zeros(2))

    same(np.stack([np.asarray(random.uniform(key, (3,)))] * 2), np.asarray(lanes))


# --- compiled ---------------------------------------------------------------------------------


@on_every_executor
@each_impl
def test_bits_are_the_same_on_every_executor(device: str, impl: str):
    key = random.key(2**40 + 3, impl=impl)
    device_dtypes = device_named(device).target.dtypes
    for width in ("uint8", "uint32", *(("uint64",) if dtypes.u64 in device_dtypes else ())):
        expected = np.asarray(random.bits(key, (3, 50), width))

        bits = rune.jit(lambda k, w=width: random.bits(k, (3, 50), w), device=device)(key)

        same(expected, np.asarray(bits))


@on_every_executor
def test_draws_by_exact_arithmetic_are_the_same_on_every_executor(device: str):
    key = random.key(9)

    def drawn(key: Any) -> Any:
        first, second, third = random.split(key, 3)
        return (
            random.uniform(first, (100,)),
            random.uniform(first, (64,), minval=-2.0, maxval=7.0),
            random.randint(second, (100,), -3, 12),
            random.bernoulli(third, 0.3, (100,)),
            random.key_data(random.fold_in(key, 12)),
        )

    same([np.asarray(x) for x in drawn(key)], [np.asarray(x) for x in rune.jit(drawn, device=device)(key)])


@in_turn()
@on_every_executor
def test_samplers_that_loop_run_on_every_executor(device: str):
    key = random.key(1)

    def drawn(key: Any) -> Any:
        first, second = random.split(key)
        return random.permutation(first, 20), random.gamma(second, 0.5, (10,))

    order, real = drawn(key)
    device_order, gammas = rune.jit(drawn, device=device)(key)

    same(np.asarray(order), np.asarray(device_order))
    near(real, gammas, relative=1e-5, why="logarithms of two executors")


def equations(program: Program) -> list[Equation]:
    """Those of a program and of the programs in it."""
    inner = [e for eq in program.equations for p in subprograms(eq) for e in equations(p)]
    return [*program.equations, *inner]


def test_generation_stays_one_equation_until_the_program_is_lowered():
    program = rune.make_program(lambda k: random.bits(k, (1000,)))(random.key(0))

    names = [e.primitive.name for e in equations(program)]
    assert names.count("random_bits") == 1
    assert len(names) < 5


def kernels(function: Any, *args: Any) -> Any:
    """How many kernels a call launches."""
    return rune.explain(function)(*args).costs.launches


def test_generation_is_part_of_the_kernel_that_reads_it():
    x, key = rnp.ones((64, 128)), random.key(0)

    assert kernels(lambda x, k: x * random.uniform(k, x.shape), x, key) == 1
    assert kernels(lambda x, k: rnp.sum(x * random.normal(k, x.shape), axis=1), x, key) == 1
    assert kernels(lambda x, k: rnp.where(random.bernoulli(k, 0.5, x.shape), x, 0.0), x, key) == 1
    batch = rune.vmap(lambda x, k: x * random.uniform(k, x.shape))
    assert kernels(batch, x, random.split(key, 64)) == 1


def test_a_symbolic_size_draws_as_its_number_does():
    key = random.key(0)
    add = rune.jit(lambda x: x + random.uniform(key, x.shape), dims={"n": (1, 1000)})

    for n in (5, 17, 1000):
        same(np.asarray(random.uniform(key, (n,))), np.asarray(add(rnp.zeros(n))))
    assert add.cache_size() == 1


def test_dtypes_of_uniform_numbers_keep_their_own_mantissa():
    key = random.key(4)
    for dtype, step in (("float16", 2**-10), ("bfloat16", 2**-7), ("float32", 2**-23)):
        sample = random.uniform(key, (2000,), dtype)

        numbers = np.asarray(sample).astype(np.float64)
        assert sample.dtype == dtypes.as_dtype(dtype)
        assert numbers.min() >= 0
        assert numbers.max() < 1
        assert (numbers / step == np.round(numbers / step)).all()
        assert np.unique(numbers).size > min(2000, 1 / step) / 2
