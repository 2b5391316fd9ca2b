"""A driver that does not exist, as cuda-bindings shows it: devices, memory, streams, events.

Its calls do what pycuda's do in fake.py, and are logged under the same names. It is as strict as
the real driver: addresses and handles must be integers and sizes must fit, and results begin with
an error code.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

ATTRIBUTES = {"COMPUTE_CAPABILITY_MAJOR": 9, "COMPUTE_CAPABILITY_MINOR": 0}


def host(address: int, nbytes: int) -> np.ndarray:
    """Bytes of the host."""
    assert type(address) is type(nbytes) is int
    return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address))


def device_calls(fake: Any) -> dict[str, Callable[..., Any]]:
    """Those that need no context."""
    return {
        "cuDeviceGet": lambda number: number,
        "cuDeviceGetCount": lambda: 1,
        "cuDeviceGetName": lambda nbytes, device: b"Fake\0".ljust(nbytes, b" "),
        "cuDeviceGetAttribute": lambda attribute, device: attribute,
        "cuDeviceTotalMem": lambda device: fake.total,
        "cuDevicePrimaryCtxRetain": lambda device: fake.context.handle,
    }


def answered(fake: Any, function: Callable[..., Any]) -> Callable[..., tuple[Any, ...]]:
    def answer(*arguments: Any) -> tuple[Any, ...]:
        try:
            value = function(*arguments)
        except fake.MemoryError:
            return (fake.codes.CUDA_ERROR_OUT_OF_MEMORY,)
        except fake.Error:
            return (fake.fault,)
        values = value if isinstance(value, tuple) else () if value is None else (value,)
        return fake.codes.CUDA_SUCCESS, *values

    return answer


def memory_calls(fake: Any) -> dict[str, Any]:
    """The functions of cuda.bindings.driver beyond modules, launches and graphs."""

    def push(handle: int) -> None:
        assert handle == fake.context.handle
        fake.context.push()

    def htod(target: int, source: int, nbytes: int, stream: int) -> None:
        assert stream == fake.stream
        fake.htod(target, host(source, nbytes), stream)

    def dtoh(target: int, source: int, nbytes: int, stream: int) -> None:
        assert stream == fake.stream
        fake.dtoh(host(target, nbytes), source, stream)

    def memset(target: int, number: int, count: int, stream: int) -> None:
        assert 0 <= number < 2**32
        fake.memset(target, int(np.uint32(number).view(np.int32)), count, stream)

    def free(address: int) -> None:
        fake.allocation(address).free()

    functions = {
        **device_calls(fake),
        "cuCtxPushCurrent": push,
        "cuCtxPopCurrent": fake.context.pop,
        "cuCtxSynchronize": fake.synchronize,
        "cuStreamCreate": lambda flags: fake.stream,
        "cuStreamSynchronize": lambda stream: fake.synchronize(),
        "cuMemAlloc": lambda nbytes: int(fake.mem_alloc(nbytes)),
        "cuMemFree": free,
        "cuMemGetInfo": lambda: (fake.total - fake.live_bytes, fake.total),
        "cuMemHostAlloc": lambda nbytes, flags: fake.pinned(nbytes).ctypes.data,
        "cuMemcpyHtoDAsync": htod,
        "cuMemcpyDtoHAsync": dtoh,
        "cuMemcpyDtoDAsync": fake.dtod,
        "cuStreamWaitEvent": lambda stream, event, flags: fake.waits.append((stream, fake.enqueue_count)),
        "cuStreamWaitValue32": lambda stream, word, number, flags: fake.gates.append(
            (word, number, fake.enqueue_count)
        ),
        "cuMemsetD32Async": memset,
        "cuMemsetD8Async": lambda target, number, count, stream: fake.memset_bytes(target, number, count, stream),
    }
    prefix = "CU_DEVICE_ATTRIBUTE_"
    attributes = {f"{prefix}{name}": value for name, value in (fake.attributes | ATTRIBUTES).items()}
    calls: dict[str, Any] = {name: answered(fake, function) for name, function in functions.items()}
    calls |= event_calls(fake) | {"CUdevice_attribute": SimpleNamespace(**attributes)}
    return calls | {"cuGetProcAddress": lambda name, version, flags: (fake.codes.CUDA_SUCCESS, native(fake, name), 0)}


_LETTERS = {"p": ctypes.c_void_p, "a": ctypes.c_uint64, "z": ctypes.c_size_t}
_NATIVE = {
    "cuCtxPushCurrent": "p",
    "cuCtxPopCurrent": "p",
    "cuMemcpyHtoDAsync": "apzp",
    "cuGraphLaunch": "pp",
    "cuEventRecord": "pp",
    "cuEventQuery": "p",
}


def native(fake: Any, name: bytes) -> int:
    """The address of a C function that does what the one of the bindings does."""
    text = name.decode()

    def call(*arguments: Any) -> int:
        inputs = () if text == "cuCtxPopCurrent" else arguments
        return int(getattr(fake.bindings, text)(*inputs)[0])

    function = ctypes.CFUNCTYPE(ctypes.c_int, *(_LETTERS[letter] for letter in _NATIVE[text]))(call)
    fake.callbacks.append(function)
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return address


def event_calls(fake: Any) -> dict[str, Any]:
    """Those of events, by handle."""
    events: dict[int, Any] = {}

    def event(flags: int) -> int:
        assert fake.is_current()
        handle = 1000 + len(events)
        events[handle] = fake.event(flags)
        return handle

    def query(handle: int) -> tuple[Any, ...]:
        try:
            has_come = events[handle].query()
        except fake.Error:
            return (fake.fault,)
        return (fake.codes.CUDA_SUCCESS if has_come else fake.codes.CUDA_ERROR_NOT_READY,)

    functions = {
        "cuEventCreate": event,
        "cuEventRecord": lambda handle, stream: events[handle].record(stream),
        "cuEventSynchronize": lambda handle: events[handle].synchronize(),
        "cuEventElapsedTime": lambda start, end: events[start].time_till(events[end]),
        "cuEventDestroy": lambda handle: events.pop(handle) and None,
    }
    calls: dict[str, Any] = {name: answered(fake, function) for name, function in functions.items()}
    return calls | {"cuEventQuery": query}
