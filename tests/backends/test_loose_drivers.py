"""Devices declared to compute loosely: their quotients, roots and comparisons are NumPy's.

Each GPU driver here, and Mesa's CPU devices as if they were such, run what Target.loose asks for.
The operands include denormal numbers: on WebGPU these are the only operations that must keep them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes
from rune.backends import vulkan, wgpu
from rune.lowering.stages import lower
from tests.lowering.scalar.test_divisions import numbers
from tests.support.close import same

LOOSE = frozenset({"div", "sqrt", "comparisons", "denormals"})
BACKENDS: dict[str, Any] = {"vulkan": vulkan, "wgpu": wgpu}
FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "divided": (lambda a, b: a / b, np.divide),
    "rooted": (lambda a, b: rnp.sqrt(a), lambda a, b: np.sqrt(a)),
    "less": (lambda a, b: a < b, np.less),
    "at most": (lambda a, b: a <= b, np.less_equal),
    "equal": (lambda a, b: a == b, np.equal),
    "other": (lambda a, b: a != b, np.not_equal),
    "positive": (lambda a, b: a > 0, lambda a, b: a > 0),
    "true": (lambda a, b: a.astype(bool), lambda a, b: a.astype(bool)),
    "larger": (rnp.maximum, np.maximum),
    "signs": (lambda a, b: rnp.sign(a), lambda a, b: np.sign(a)),
}


def on_loose(name: str) -> Any:
    """The first device of a backend, opened with a target that declares this."""
    targets, why = BACKENDS[name].probe()
    if not targets:
        pytest.skip(f"no device: {why}")
    return BACKENDS[name].open_device(replace(targets[0], loose=LOOSE))


def results(device: Any, function: Callable[..., Any], *arrays: np.ndarray) -> list[np.ndarray]:
    """The results of a function on the device."""
    program = rune.make_program(function)(*map(rnp.asarray, arrays))
    executable = device.record(lower(program, device.target))
    return [device.copy_out(r, r.type) for r in executable([device.copy_in(a) for a in arrays])]


def operands() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    a = numbers(1_500)
    return np.concatenate([a, a]), np.concatenate([rng.permutation(a), a])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_loose_device_is_as_exact_as_numpy(backend: str):
    a, b = operands()

    outs = results(on_loose(backend), lambda a, b: [f(a, b) for f, _ in FUNCTIONS.values()], a, b)

    for (name, (_, meaning)), out in zip(FUNCTIONS.items(), outs, strict=True):
        with np.errstate(all="ignore"):
            expected = np.asarray(meaning(a, b))
        equal = (expected == out) | (np.isnan(expected) & np.isnan(out)) if out.dtype == np.float32 else expected == out
        assert equal.all(), (name, a[~equal][:5], b[~equal][:5], expected[~equal][:5], out[~equal][:5])


def test_denormals_of_another_width_are_kept_where_a_driver_drops_them():
    device = on_loose("vulkan")
    if dtypes.f64 not in device.target.dtypes:
        pytest.skip("no f64 on the device")
    a = numbers(1_500)
    a = a[~np.isnan(a)]
    exact = a.astype(np.float64)
    wide = np.concatenate([exact, exact * (1 + 2.0**-25), -exact / 3])

    with rune.enable_x64(), np.errstate(all="ignore"):
        (up,) = results(device, lambda x: [x.astype("float64")], a)
        (down,) = results(device, lambda x: [x.astype("float32")], wide)

        same(exact, up)
        same(wide.astype(np.float32), down)
