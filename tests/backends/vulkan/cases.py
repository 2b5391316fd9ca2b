"""Plans and programs for the tests of the Vulkan executor, and a device for one test."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import control
from rune.backends import vulkan
from rune.backends.vulkan import driver
from rune.backends.vulkan.memory_types import CACHED, COHERENT, NEAR, VISIBLE
from rune.core.program import Program
from rune.lowering.plan import Copy, Launch, Plan, Slot, Space
from rune.lowering.stages import stages
from tests.backends.plans import DOUBLE, SOURCES, VECTOR

TARGETS, WHY = vulkan.probe()
needs_device = pytest.mark.skipif(not TARGETS, reason=f"no Vulkan device: {WHY}")


def physical() -> driver.Physical:
    """The properties that the first device's driver reports."""
    return driver.physical_devices(driver.instance())[0]


# What the first device may pretend to have, by the properties of its types in order.
HOST = VISIBLE | COHERENT | CACHED
MEMORIES: dict[str, tuple[int, ...]] = {
    "shared": (NEAR | HOST,),
    "staged": (NEAR, HOST, NEAR | VISIBLE | COHERENT),
    "apart": (NEAR, HOST),  # a device without memory that the host can write
    # The host's caches must be flushed before the device reads, and invalidated after it writes.
    "cached apart": (NEAR | VISIBLE | CACHED, NEAR | VISIBLE | COHERENT),
    "cached and staged": (NEAR, VISIBLE | CACHED, VISIBLE | COHERENT),
}


def with_memory(name: str) -> driver.Physical:
    """The first device as if it had these types of memory; skips where it has none like them."""
    device = physical()
    real = [next((k for k in device.memory_types if k.has(flags)), None) for flags in MEMORIES[name]]
    if None in real:
        pytest.skip(f"{device.name} has no memory that is {name}")
    types = [replace(k, flags=flags) for k, flags in zip(real, MEMORIES[name]) if k is not None]
    return replace(device, memory_types=tuple(types))


@contextmanager
def opened(memory: str | None = None) -> Iterator[vulkan.VulkanBackend]:
    """The first device, opened for the block only. memory: one of MEMORIES; None: the real
    types."""
    backend = vulkan.VulkanBackend(TARGETS[0], with_memory(memory) if memory else physical())
    yield backend
    backend.close()


def counted(backend: vulkan.VulkanBackend, patch: pytest.MonkeyPatch) -> list[str]:
    """A log of the driver's functions that are called from here on."""
    calls: list[str] = []
    functions = backend.session().device.vk

    def listed(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            calls.append(name)
            return function(*args)

        return call

    for name, function in vars(functions).copy().items():
        patch.setattr(functions, name, listed(name, function))
    # Machine code has its own way to the driver, as far as recordings are made from here on.
    device = backend.session().device
    kinds = ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p
    submit = ctypes.CFUNCTYPE(*kinds)
    original = submit(device.submit_address)
    wrapper = submit(lambda *args: (calls.append("vkQueueSubmit"), original(*args))[1])
    device.callback = wrapper  # type: ignore[attr-defined]
    patch.setattr(device, "submit_address", ctypes.cast(wrapper, ctypes.c_void_p).value)
    return calls


# --- plans ------------------------------------------------------------------------------------


def chain(length: int) -> Plan:
    """2 to the power of `length` times x, through the arena, and a copy of x."""
    places = [Slot(Space.ARENA, VECTOR, offset=400 * (k % 2)) for k in range(length - 1)]
    slots = [Slot(Space.ARGUMENT, VECTOR), *places, Slot(Space.RESULT, VECTOR)]
    steps = [Launch("double", pair) for pair in itertools.pairwise(slots)]
    copy = Copy(Slot(Space.RESULT, VECTOR, 1), slots[0])
    return Plan("chain", "", (VECTOR,), (VECTOR, VECTOR), (*steps, copy), {"double": DOUBLE}, 800, SOURCES)


# --- programs ---------------------------------------------------------------------------------

X = np.linspace(-1, 1, 6, dtype=np.float32)


def many_steps(x: Any) -> Any:
    """A loop of more steps than fit into one command buffer."""
    return control.fori_loop(0, 1001, lambda i, v: v * 0.5 + i, x)


def turns(x: Any) -> Any:
    """Carries that swap: after an odd number of steps each is in the memory of the other."""
    return control.fori_loop(0, 7, lambda i, ab: (ab[1] + 1.0, ab[0][::-1]), (x, x * 2.0))


def branches_in_steps(x: Any) -> Any:
    """A branch within a branch, in a loop."""

    def last(v: Any) -> Any:
        return control.cond(v.sum() > 0, lambda v: v * v, lambda v: v - 3.0, v)

    def step(i: Any, v: Any) -> Any:
        return control.switch(i % 4, [lambda v: v + 1.0, lambda v: v * 2.0, last], v)

    return control.fori_loop(0, 9, step, x)


def doubled_to(limit: float) -> Callable[[Any], Any]:
    """How often x doubles until its sum of squares is beyond a limit; a branch within."""

    def step(state: Any) -> Any:
        count, v = state
        return count + 1, control.cond(count % 3 == 1, lambda v: v * 2.5, lambda v: v * 2.0, v)

    return lambda x: control.while_loop(lambda s: (s[1] * s[1]).sum() < limit, step, (0, x))


def turns_until(count: int) -> Callable[[Any], Any]:
    """A while loop whose carries take turns."""

    def step(state: Any) -> Any:
        i, a, b = state
        return i + 1, b[::-1], a * 0.5 + 1.0

    return lambda x: control.while_loop(lambda s: s[0] < count, step, (0, x, x + 1.0))


def loop_in_branch(k: Any, x: Any) -> Any:
    """A branch of more launches than a gate covers."""
    long = many_steps
    return control.cond(k, long, lambda x: x, x)


def while_in_while(x: Any) -> Any:
    """A loop that asks the host, within one that asks the host."""

    def inner(v: Any) -> Any:
        return control.while_loop(lambda v: v.sum() < 50.0, lambda v: v * 2.0 + 1.0, v)

    return control.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, inner(s[1]) * 0.1), (0, x))


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "many steps": (many_steps, (X,)),
    "turns": (turns, (X,)),
    "branches in steps": (branches_in_steps, (X,)),
    "no step of a while": (doubled_to(0.0), (X,)),
    "a few steps of a while": (doubled_to(100.0), (X,)),
    "many steps of a while": (doubled_to(1e38), (X,)),
    **{f"{k} turns of a while": (turns_until(k), (X,)) for k in (0, 1, 2, 3, 6, 11)},
    "a long branch taken": (loop_in_branch, (np.array(True), X)),
    "a long branch not taken": (loop_in_branch, (np.array(False), X)),
    "a while within a while": (while_in_while, (X,)),
}


def lowered(name: str) -> tuple[Program, Plan, list[np.ndarray]]:
    """The program of a case, its plan for Vulkan, and its arguments."""
    function, args = CASES[name]
    program = rune.make_program(function)(*map(rnp.asarray, args))
    return program, stages(program, TARGETS[0]).plan, [np.asarray(a) for a in args]
