"""One program for all sizes: what is compiled for n and m is right for every number.

A function of symbolic sizes, its derivatives, its batches and its linear map are compared with the
same function of concrete sizes, on every executor. On the CPU everything is compiled once for all
sizes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rune
import rune.numpy as rnp
from tests.support.affine_functions import AffineFunction, affine_functions
from tests.support.close import near
from tests.support.examples import COMPILING, DRIVEN
from tests.support.sampling import in_turn

COMPUTING = [d.name for d in rune.devices() if d.target.backend != "null"]
on_every_executor = pytest.mark.parametrize("device", COMPUTING)
SIZES = st.tuples(st.integers(1, 6), st.integers(3, 6))


def symbolic(f: AffineFunction) -> Any:
    """The function compiled for all sizes."""
    return rune.jit(f, dims={"n": (1, 64), "m": (3, 64)}, in_dims=f.in_dims)


def loss(f: Any) -> Any:
    """A number, of a function of two vectors."""
    return lambda x, y: sum(rnp.sum(rnp.sin(v)) for v in f(x, y))


def agree(expected: Any, actual: Any) -> None:
    """Equal up to rounding."""
    near(expected, actual, relative=2e-3, why="f32 through a few steps, other order of sums")


@in_turn()
@on_every_executor
@DRIVEN
@given(f=affine_functions(), sizes=SIZES)
def test_one_program_is_right_for_every_size(device: str, f: AffineFunction, sizes: tuple):
    args = f.arguments(*sizes)

    with rune.configure(device=device):
        result = symbolic(f)(*args)

    agree(f(*args), result)


@in_turn()
@on_every_executor
@DRIVEN
@given(f=affine_functions(3), sizes=SIZES)
def test_its_gradient_is_that_of_the_function_of_numbers(device: str, f: AffineFunction, sizes: tuple):
    args = f.arguments(*sizes)
    program = symbolic(f)

    with rune.configure(device=device):
        gradient = rune.jit(rune.grad(loss(program), argnums=(0, 1)))(*args)

    agree(rune.grad(loss(f), argnums=(0, 1))(*args), gradient)


@in_turn()
@on_every_executor
@DRIVEN
@given(f=affine_functions(3), sizes=SIZES)
def test_its_linear_map_is_that_of_the_function_of_numbers(device: str, f: AffineFunction, sizes: tuple):
    args, tangents = f.arguments(*sizes), f.arguments(*sizes)[:2]
    out, expected = rune.jvp(f, args, tangents)

    with rune.configure(device=device):
        agree((out, expected), rune.jvp(symbolic(f), args, tangents))
        output, linear = rune.linearize(symbolic(f), *args)
        agree((out, expected), (output, linear(*tangents)))


@in_turn()
@on_every_executor
@DRIVEN
@given(f=affine_functions(3), sizes=SIZES, lanes=st.integers(1, 3))
def test_its_batch_is_every_lane(device: str, f: AffineFunction, sizes: tuple, lanes: int):
    xs, y = [f.arguments(*sizes)[0] * (k + 1.0) for k in range(lanes)], f.arguments(*sizes)[1]
    expected = [f(x, y) for x in xs]

    with rune.configure(device=device):
        batch = rune.vmap(symbolic(f), in_axes=(0, None))(rnp.stack(xs), y)

    agree([np.stack([np.asarray(e[k]) for e in expected]) for k in (0, 1)], list(batch))


@COMPILING
@given(f=affine_functions(), sizes=st.lists(SIZES, min_size=1, max_size=4))
def test_everything_is_compiled_once_for_all_sizes(f: AffineFunction, sizes: list):
    program = symbolic(f)
    gradient = rune.grad(loss(program), argnums=(0, 1))
    lanes = rune.vmap(program, in_axes=(0, None))

    def all_of(x: Any, y: Any) -> None:
        gradient(x, y)
        lanes(rnp.stack([x, x, x][: 2 + len(y) % 2]), y)
        rune.jvp(program, (x, y), (x, y))

    all_of(*f.arguments(2, 4))
    with rune.counting() as counts:
        for n, m in sizes:
            all_of(*f.arguments(n, m))

    assert (counts.traces, counts.compiles) == (0, 0)


@COMPILING
@given(f=affine_functions(3), sizes=SIZES)
def test_it_may_be_called_inside_another_symbolic_function(f: AffineFunction, sizes: tuple):
    inner = symbolic(f)
    outer = rune.jit(lambda x, y: loss(inner)(x, y) * x.shape[0], dims={"n": (1, 64), "m": (3, 64)}, in_dims=f.in_dims)
    args = f.arguments(*sizes)

    agree(loss(f)(*args) * args[0].shape[0], outer(*args))
    agree(rune.grad(lambda x, y: loss(f)(x, y) * x.shape[0])(*args), rune.grad(outer)(*args))
