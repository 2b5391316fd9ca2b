"""The memory and state of an array, by the names of jax.Array."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.errors import ArgumentError, DeletedArrayError
from tests.support.eventually import eventually

DEVICES = [d.name for d in rune.devices() if d.target.backend != "null"]


def test_an_array_reports_its_bytes_platform_and_readiness():
    x = rnp.arange(7, dtype=rnp.int16)

    assert (x.on_device_size_in_bytes(), x.platform(), x.is_ready()) == (14, "cpu", True)
    assert x.copy_to_host_async() is None


@pytest.mark.parametrize("device", DEVICES)
def test_an_array_is_ready_once_its_device_has_computed_it(device: str):
    x = rune.device_put(rnp.ones(257), device)

    y = rune.jit(lambda x: rnp.sum(x * 2))(x)

    assert eventually(y.is_ready)
    assert y.item() == 514


@contextmanager
def busy(device: Any) -> Iterator[None]:
    """An OpenCL device of rune that computes nothing within the block."""
    gate = device.cl.UserEvent(device.context)
    with device.turns.lock:
        device.turns.last = device.cl.enqueue_marker(device.queue, wait_for=[gate])
    try:
        yield
    finally:
        gate.set_status(device.cl.command_execution_status.COMPLETE)


@pytest.mark.skipif("opencl:0" not in DEVICES, reason="no OpenCL device here")
def test_whether_an_array_is_ready_is_answered_while_its_device_is_busy():
    x, f = rune.device_put(rnp.ones(33), "opencl:0"), rune.jit(lambda x: x * 3)
    f(x).block_until_ready()
    with busy(rune.backends.device_named("opencl:0").backend):
        y = f(x)
        assert not y.is_ready()
    assert eventually(y.is_ready)
    np.testing.assert_array_equal(y, np.full(33, 3.0))


def test_a_clone_survives_the_deletion_of_its_original():
    x = rnp.arange(3)
    y = x.clone()

    x.delete()

    np.testing.assert_array_equal(y, [0, 1, 2])
    with pytest.raises(DeletedArrayError):
        x.clone()


def test_the_address_is_that_of_the_first_element():
    x = rnp.arange(5.0)

    assert x.unsafe_buffer_pointer() == np.asarray(x).ctypes.data
    with pytest.raises(ArgumentError, match="reference:0"):
        rune.device_put(x, "reference").unsafe_buffer_pointer()


@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "f2", "f4", "f8"])
def test_byteswap_agrees_with_numpy(dtype: str):
    data = np.random.default_rng(0).integers(-100, 100, (3, 5)).astype(dtype)

    for swap in (lambda x: x.byteswap(), rune.jit(lambda x: x.byteswap())):
        assert np.asarray(swap(rnp.asarray(data, data.dtype))).tobytes() == data.byteswap().tobytes()


def test_at_has_the_attributes_array_and_index():
    x = rnp.arange(3)

    assert x.at.array is x.at[1].array is x
    assert x.at[1, ...].index == (1, ...)


def test_a_device_has_a_number_and_a_kind():
    device = rune.devices()[0]

    assert (device.id, device.platform) == (0, "cpu")
    assert device.device_kind == device.target.description


def _formatted(x: object, spec: str) -> str:
    try:
        return format(x, spec)
    except TypeError:
        return "refused"


@pytest.mark.parametrize("shape", [(), (0,), (1,), (1, 1), (3,), (129,), (2, 3)])
@pytest.mark.parametrize("spec", ["", ".2f", "e", "+g", ">9"])
def test_a_format_is_of_one_number_as_in_numpy(spec: str, shape: tuple[int, ...]):
    x = np.full(shape, 1.5, np.float32)

    assert _formatted(rnp.asarray(x), spec) == _formatted(x[()], spec)


def test_an_array_that_is_formatted_as_a_number_is_named():
    with pytest.raises(ArgumentError, match=r"cannot apply '\.2f' to f32\[5\] \(one number required\)"):
        f"{rnp.zeros(5):.2f}"


ORIGINS: dict[str, Callable[[], rune.Array]] = {
    "eager": lambda: rnp.arange(3) * 2,
    "jitted": lambda: rune.jit(lambda x: x + 1)(rnp.arange(3)),
    "key": lambda: rune.random.key(0),
    "device": lambda: rune.device_put(rnp.arange(3), "reference"),
}


@pytest.mark.parametrize("origin", ORIGINS)
def test_an_array_has_attributes_of_its_users_which_its_copies_and_results_do_not_have(origin: str):
    x = ORIGINS[origin]()
    setattr(x, "trainable", False)  # noqa: B010  # the class declares none

    copies = (
        copy.copy(x),
        copy.deepcopy(x),
        pickle.loads(pickle.dumps(x)),
        x.copy(),
        x.clone(),
        rune.jit(lambda y: y)(x),
    )

    assert getattr(x, "trainable") is False  # noqa: B009
    assert not any(hasattr(y, "trainable") for y in copies)


@pytest.mark.parametrize("name", ["shape", "dtype", "ndim", "size", "T", "at", "sharding"])
def test_what_an_array_computes_of_itself_cannot_be_set(name: str):
    with pytest.raises(AttributeError, match=name):
        setattr(rnp.arange(3), name, 1)


def test_a_traced_array_has_no_attributes_of_its_users():
    for transform in (rune.jit, rune.vmap, rune.grad):
        with pytest.raises(AttributeError, match="trainable"):
            transform(lambda x: setattr(x, "trainable", False))(rnp.ones(3))


@pytest.mark.parametrize("origin", ORIGINS)
def test_an_array_whose_attribute_refers_to_it_is_collected(origin: str):
    x = ORIGINS[origin]()
    setattr(x, "cycle", [x])  # noqa: B010
    alive = weakref.ref(x)

    del x
    gc.collect()

    assert alive() is None
