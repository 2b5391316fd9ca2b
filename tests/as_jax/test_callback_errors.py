"""An error in a callback is a JaxRuntimeError that quotes it, in programs written for JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.experimental
import jax.numpy as jnp
import numpy as np
import pytest
from jax.errors import JaxRuntimeError

import rune


class NoGoodError(ValueError):
    """The error that the callbacks raise."""


def fail(*args: object) -> Any:
    raise NoGoodError("no good at all")


SCALAR = jax.ShapeDtypeStruct((), jnp.float32)
CALLS: dict[str, Callable[[Any], Any]] = {
    "pure": lambda x: jax.pure_callback(fail, SCALAR, x),
    "io": lambda x: jax.experimental.io_callback(fail, SCALAR, x),
    "ordered io": lambda x: jax.experimental.io_callback(fail, SCALAR, x, ordered=True),
    "debug": lambda x: (jax.debug.callback(fail, x), x)[1],
    "in a loop": lambda x: jax.lax.fori_loop(0, 3, lambda i, y: jax.pure_callback(fail, SCALAR, y), x),
    "in a branch": lambda x: jax.lax.cond(x > 0, lambda y: jax.pure_callback(fail, SCALAR, y), lambda y: y, x),
}


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", CALLS)
def test_an_error_in_a_callback_is_quoted_in_a_jax_runtime_error(name: str, transform: Callable[..., Any]):
    with pytest.raises(JaxRuntimeError, match=r"CpuCallback error(?s:.)*NoGoodError: no good at all") as info:
        jax.block_until_ready(transform(CALLS[name])(jnp.float32(1)))

    assert not isinstance(info.value, ValueError)
    assert isinstance(info.value.__cause__, NoGoodError)


def test_the_lines_of_the_callback_are_quoted():
    with pytest.raises(JaxRuntimeError, match=r"test_callback_errors.py.*in fail"):
        jax.jit(CALLS["pure"])(1.0)


def test_an_interrupt_in_a_callback_is_raised_as_keyboardinterrupt():
    def interrupt(x: object) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        jax.jit(lambda x: jax.pure_callback(interrupt, SCALAR, x))(1.0)


def test_errors_are_unchanged_in_a_block_that_says_so():
    f = jax.jit(CALLS["pure"])

    with rune.configure(callback_errors="unchanged"), pytest.raises(NoGoodError):
        f(1.0)
    with pytest.raises(RuntimeError, match="NoGoodError"):
        f(1.0)


def test_a_failed_check_of_equinox_is_its_own_error_in_filter_jit():
    eqx = pytest.importorskip("equinox", reason="scripts/environment.sh installs it")

    @eqx.filter_jit
    def root(x: Any) -> Any:
        return jnp.sqrt(eqx.error_if(x, x < 0, "x must not be negative"))

    with pytest.raises(eqx.EquinoxRuntimeError, match="x must not be negative"):
        root(jnp.float32(-1))
    np.testing.assert_allclose(root(jnp.float32(4)), 2)
