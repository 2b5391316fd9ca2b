"""measure_devices: the speeds of devices, measured by programs that rune runs on them.

Each time is the median of several calls, less the overhead of a call.
Devices compute alone first, and then the first two, four, ... and all of them at the same time:
they may share cores or memory.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations
from time import perf_counter

import numpy as np

from rune import dtypes, ops
from rune.array import Array
from rune.backends import Device, device_of
from rune.core.values import Value
from rune.errors import ArgumentError
from rune.lowering.kernelize.cost import operation
from rune.sharding import Mesh, NamedSharding, PartitionSpec
from rune.sharding.meshes import default_devices
from rune.transforms.compile.jit import jit
from rune.transforms.compile.placement import block_until_ready, device_put
from rune.transforms.placement import storage
from rune.transforms.placement.curves import Curve, curve
from rune.transforms.placement.records import Group, Link, Measurements, Speed
from rune.transforms.sharding.shard_map import shard_map

Step = Callable[[Value], Value]  # does not change shape and dtype, so that it can be repeated

SAMPLES, SAMPLE_S = 7, 0.015  # each program is called at least this often, for at least this long
LONG_S = 0.05  # once an amount takes this long, larger ones are not tried
CHAIN = 5  # steps of the longer programs
PRODUCTS = (32, 128, 512, 1024)  # rows of square matrices
# Caches end between two amounts, so these are close to each other.
STREAMS = (1 << 12, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24)  # elements
MESSAGES = (1, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22)  # elements, of a group
OF_LINK = (1, 1 << 20)  # elements, between two devices
ARITHMETIC = 1 << 16  # elements, in the cache
OPERATIONS = ("sin", "exp", "tanh", "div", "mul", "add")  # of each of them
# A kernel of twelve operations. In a longer one each costs more, as elements overlap less in time.
KERNEL = 2
BYTES = dtypes.f32.itemsize


def measure_devices(devices: Sequence[str | Device] | None = None, *, again: bool = False) -> Measurements:
    """The speeds of devices, alone, together and between each other: measured once, then stored.

    `rune.explain` predicts the time of programs on a mesh from them, and `rune.plan_sharding`
    chooses meshes. It takes a few seconds for two devices, and more with more links. Other work on
    the machine affects the figures. They are stored on disk with compiled kernels, for these
    devices with these drivers.

    devices: the devices; None for those of the default device's kind
    again:   whether to repeat measurements that are stored
    Units:   seconds, bytes and operations per second; a multiply-add is two operations.
    Errors:  DeviceError for an unknown device, ArgumentError for no device or one named twice.

    >>> import rune
    >>> measured = rune.measure_devices(["cpu:0"])
    >>> measured.devices, measured.speed("cpu:0").products.rate > 1e6
    (('cpu:0',), True)
    """
    machines = devices_of("measure_devices", devices)
    record = None if again else storage.load(machines)
    if record is None:
        record = _measured(machines)
        storage.store(record, machines)
    return record


def devices_of(name: str, devices: object) -> tuple[Device, ...]:
    """The devices of an argument; None for those of the default device's kind.

    Errors: ArgumentError if it is not a list, is empty, or has a device twice.
    """
    if devices is None:
        return default_devices()
    if not isinstance(devices, str | Device | list | tuple):
        raise ArgumentError(f"{name}: cannot use {type(devices).__name__} as devices (a list of them required)")
    machines = tuple(map(device_of, (devices,) if isinstance(devices, str | Device) else devices))
    if not machines or len(set(machines)) < len(machines):
        device_names = ", ".join(d.name for d in machines) or "none"
        raise ArgumentError(f"{name}: cannot use these devices: {device_names} (each once, and at least one)")
    return machines


def _measured(machines: Sequence[Device]) -> Measurements:
    speeds = tuple(map(_speed, machines))
    return Measurements(
        speeds,
        tuple(_link(a, b) for a, b in combinations(machines, 2)),
        tuple(_group(machines[:n], speeds[:n]) for n in _group_sizes(len(machines))),
    )


def _group_sizes(devices: int) -> list[int]:
    """2, 4, 8, ... and all.

    >>> _group_sizes(1), _group_sizes(6)
    ([], [2, 4, 6])
    """
    powers = [1 << level for level in range(1, devices.bit_length())]
    return sorted({n for n in (*powers, devices) if 1 < n <= devices})


# --- one device -------------------------------------------------------------------------------


def _speed(device: Device) -> Speed:
    # Of one element, so the call itself is nearly all of its time.
    call = _seconds(jit(lambda x: ops.add(x, x)), device_put(np.zeros(1, np.float32), device))

    def alone(step: Step, x: np.ndarray, times: int = 1) -> float:
        return _seconds(jit(partial(_chained, step, times)), device_put(x, device)) - call

    elements = np.full(ARITHMETIC, 0.5, np.float32)
    additions = KERNEL * ARITHMETIC * sum(map(operation, OPERATIONS))
    # Noise may make a difference of two times negative, and rates divide by it: hence the 1e-9.
    return Speed(
        device.name,
        device.target.description,
        call,
        max(1e-9, _per_step(lambda times: alone(_prefix_sums, np.zeros(8, np.float32), times))),
        curve(_growing((2 * m**3, lambda m=m: alone(_product, _square(m))) for m in PRODUCTS)),
        curve(_growing((2 * BYTES * n, lambda n=n: alone(_increment, np.zeros(n, np.float32))) for n in STREAMS)),
        additions / max(1e-9, alone(_arithmetic, elements, KERNEL)),
    )


def _prefix_sums(x: Value) -> Array:
    return ops.cumsum(x, axis=0, reverse=False)  # never fused with another step


def _increment(x: Value) -> Array:
    return ops.add(x, np.ones((), np.float32))


def _arithmetic(x: Value) -> Array:
    """One of each of OPERATIONS."""
    return ops.tanh(ops.add(ops.sin(ops.mul(x, x)), ops.div(x, ops.exp(x))))


def _product(x: Value) -> Array:
    return ops.dot_general(x, x, dimension_numbers=(((1,), (0,)), ((), ())))


def _square(rows: int) -> np.ndarray:
    return np.zeros((rows, rows), np.float32)


# --- several ----------------------------------------------------------------------------------


def _link(first: Device, second: Device) -> Link:
    return Link(first.name, second.name, _collectives((first, second), _ring(2), OF_LINK)[1])


def _group(machines: Sequence[Device], speeds: Sequence[Speed]) -> Group:
    """The speeds of devices that work at the same time, compared with each of them alone."""
    call, by_bytes = _collectives(machines, lambda x: ops.psum(x, axis_name="i"), MESSAGES)
    share = 2 * (len(machines) - 1) / len(machines)  # the share of a psum's input that is sent
    sums = Curve(tuple((share * amount, seconds) for amount, seconds in by_bytes.points))
    _, moves = _collectives(machines, _ring(len(machines)), MESSAGES)
    rows = PRODUCTS[-2]

    def together(step: Step, block: np.ndarray) -> float:
        return _seconds(*_on_all(machines, step, block)) - call

    slower = together(_product, _square(rows)) / max(s.products.seconds(2 * rows**3) for s in speeds)
    streams = ((2 * BYTES * n, lambda n=n: together(_increment, np.zeros(n, np.float32))) for n in STREAMS[1:])
    return Group(len(machines), call, max(1.0, slower), curve(_growing(streams)), moves, sums)


def _ring(devices: int) -> Step:
    """Each device sends its block to the next."""
    pairs = tuple((n, (n + 1) % devices) for n in range(devices))
    return lambda x: ops.ppermute(x, axis_name="i", permutation=pairs)


def _collectives(machines: Sequence[Device], step: Step, sizes: Sequence[int]) -> tuple[float, Curve]:
    """The cost of a call in which devices meet, and of each meeting, by its bytes."""

    def together(elements: int, times: int) -> float:
        return _seconds(*_on_all(machines, partial(_chained, step, times), np.zeros(elements, np.float32)))

    # Of a chain of small collectives, one more costs only its meeting; a call costs the rest.
    once = together(sizes[0], 1)
    least = max(1e-9, (together(sizes[0], CHAIN) - once) / (CHAIN - 1))
    call = max(1e-9, once - least)
    others = ((BYTES * n, lambda n=n: together(n, 1) - call) for n in sizes[1:])
    return call, curve([(BYTES * sizes[0], least), *_growing(others)])


def _on_all(machines: Sequence[Device], step: Step, block: np.ndarray) -> tuple[Callable[[Array], object], Array]:
    """A function that all devices run, and blocks like this one for it."""
    mesh, cut = Mesh(list(machines), "i"), PartitionSpec("i")
    blocks = np.zeros((len(machines) * block.shape[0], *block.shape[1:]), block.dtype)
    function = shard_map(step, mesh=mesh, in_specs=cut, out_specs=cut, check_vma=False)
    return jit(function), device_put(blocks, NamedSharding(mesh, cut))


# --- clocks -----------------------------------------------------------------------------------


def _seconds(function: Callable[[Array], object], x: Array) -> float:
    """The median time of a call, after two that warm up."""
    for _ in range(2):
        block_until_ready(function(x))
    samples: list[float] = []
    end = perf_counter() + SAMPLE_S
    while len(samples) < SAMPLES or perf_counter() < end:
        start = perf_counter()
        block_until_ready(function(x))
        samples.append(perf_counter() - start)
    return statistics.median(samples)


def _chained(step: Step, times: int, x: Value) -> Value:
    """The result of a step repeated on its own results."""
    for _ in range(times):
        x = step(x)
    return x


def _per_step(seconds: Callable[[int], float]) -> float:
    """The cost of one more step, from a program of one step and a longer one."""
    return (seconds(CHAIN) - seconds(1)) / (CHAIN - 1)


def _growing(amounts: Iterator[tuple[int, Callable[[], float]]]) -> Iterator[tuple[int, float]]:
    """The seconds of growing amounts, until one takes long."""
    for amount, measure in amounts:
        seconds = measure()
        yield amount, seconds
        if seconds > LONG_S:
            return
