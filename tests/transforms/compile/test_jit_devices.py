"""A jitted function with its own device keeps it: under derivatives, in lanes, within programs.

The reference executor plays the other device: it is on every machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.errors import DeviceError
from tests.support.arrays import array
from tests.support.close import near

OTHER = "reference:0"
HOST = np.array([1.0, 2.0, 3.0], np.float32)


def free() -> Any:
    return array(HOST)


def where(x: Any) -> tuple[str, bool]:
    """The name of the device, and whether `x` is committed to it."""
    return x.device.name, x.committed


def elsewhere(x: Any) -> Any:
    """A jitted function with its own device."""
    return rune.jit(lambda x: rnp.sum(rnp.sin(x) * x), device=OTHER)(x)


TRANSFORMED = {
    "grad": lambda x: rune.grad(elsewhere)(x),
    "value_and_grad": lambda x: rune.value_and_grad(elsewhere)(x),
    "vmap": lambda x: rune.vmap(elsewhere)(x[:, None]),
    "jvp": lambda x: rune.jvp(elsewhere, (x,), (x,)),
    "vjp": lambda x: rune.vjp(elsewhere, x)[1](rune.vjp(elsewhere, x)[0]),
    "linearize": lambda x: rune.linearize(elsewhere, x)[1](x),
    "hessian": lambda x: rune.hessian(elsewhere)(x),
    "vmap of grad": lambda x: rune.vmap(rune.grad(elsewhere))(x[:, None]),
    "grad of checkpoint": lambda x: rune.grad(rune.checkpoint(elsewhere))(x),
    "jit": lambda x: rune.jit(elsewhere)(x),
    "jit of grad": lambda x: rune.jit(rune.grad(elsewhere))(x),
    "grad of jit": lambda x: rune.grad(rune.jit(elsewhere))(x),
    "grad beside other work": lambda x: rune.jit(rune.grad(lambda x: elsewhere(x * 2)))(x),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_transformations_of_a_jitted_function_run_on_its_device(name: str, monkeypatch: pytest.MonkeyPatch):
    results = TRANSFORMED[name](free())
    monkeypatch.setattr(rune, "jit", lambda f, **_: f)

    near(TRANSFORMED[name](free()), results, relative=1e-5, why="compiled sines")
    if name != "grad beside other work":  # whose last operation is not the jitted function's
        assert {where(x) for x in rune.tree.leaves(results)} == {(OTHER, True)}


def test_a_jitted_function_without_arguments_keeps_its_device_within_another():
    ones = rune.jit(lambda: rnp.ones(3), device=OTHER)

    assert where(rune.jit(lambda: ones())()) == (OTHER, True)


def test_in_a_loop_a_jitted_function_runs_where_the_loop_does_or_is_refused():
    def total(device: str) -> Any:
        step = rune.jit(lambda c, x: c + x, device=device)
        return rune.lax.scan(lambda c, x: (step(c, x), None), rnp.float32(0), free())[0]

    assert float(total("cpu")) == float(np.sum(HOST))
    with pytest.raises(DeviceError, match="cannot move a value inside scan"):
        total(OTHER)
