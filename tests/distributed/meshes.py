"""Programs on a mesh of all processes: `python -m tests.distributed.meshes NAME [STEP]`.

Each process makes the arrays that its oracle needs with NumPy alone, and knows the whole answer.
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import rune
from rune import data, distributed, lax
from rune import numpy as rnp
from rune.errors import DistributedError, NaNError, ShapeError
from rune.sharding import Mesh, NamedSharding, P, make_mesh
from tests.distributed import program
from tests.sharding.checked_programs import CHECKED
from tests.sharding.eight_devices.test_programs import IN_BODIES, UNCHECKED, library
from tests.sharding.programs import PROGRAMS as PROGRAMS_OF_EIGHT
from tests.sharding.programs import Program
from tests.support.sampling import one_in

STEPS, FAULTY = program.STEPS, program.FAULTY


def numbers(*shape: int) -> np.ndarray:
    """Values whose sums round."""
    return np.random.default_rng(0).standard_normal(shape).astype("f")


def line() -> Mesh:
    """All devices in a row."""
    return make_mesh((len(distributed.devices()),), ("d",))


def full_array(array: Any) -> np.ndarray:
    """All of an array, wherever its blocks are."""
    return np.asarray(array if array.is_fully_addressable else distributed.process_allgather(array))


def refused(error: type[Exception], function: Callable[[], object]) -> str:
    """The message of an error. Errors: AssertionError if there is none."""
    try:
        function()
    except error as refusal:
        return str(refusal)
    raise AssertionError(f"no {error.__name__}")


# --- programs -----------------------------------------------------------------------------------


def _require_stored(name: str, programs: dict[str, Program], is_checked: bool, vectors: Any) -> None:
    everywhere = functools.partial(rune.pmap, devices=distributed.devices())
    lib = SimpleNamespace(**{**vars(library(is_checked)), "pmap": everywhere})
    for number, ours in enumerate(programs[name](lib)):
        expected = vectors[f"{name} {number}"]
        np.testing.assert_allclose(full_array(ours), expected, rtol=2e-5, atol=2e-5, err_msg=f"{name}: result {number}")
        assert full_array(ours).dtype == expected.dtype


def stored() -> None:
    """Programs on eight devices give JAX's results, whichever processes own the devices.

    A twelfth of them: all run on eight devices of one process.
    """
    for name in one_in(12, list(PROGRAMS_OF_EIGHT)):
        _require_stored(name, PROGRAMS_OF_EIGHT, False, UNCHECKED)


def checked() -> None:
    """So do derivatives in bodies."""
    for name in CHECKED:
        _require_stored(name, CHECKED, True, IN_BODIES)


def sums() -> None:
    """Sums of every size, shared by processes, have the bits of one process."""
    devices = len(distributed.devices())
    f = rune.jit(rune.shard_map(lambda x: lax.psum(x, "d"), mesh=line(), in_specs=P("d"), out_specs=P()))
    for size in (0, 1, 2, 3, 127, 8_191, 8_192, 8_193, 65_537):
        x = numbers(devices, size)
        level = list(x)
        while len(level) > 1:
            level = [a + b for a, b in zip(level[::2], level[1::2], strict=False)] + level[len(level) // 2 * 2 :]
        np.testing.assert_array_equal(full_array(f(x))[0], level[0])


def operands() -> None:
    """Several operands of several dtypes in one message, in a loop, both ways round."""

    def body(x: Any, n: Any) -> Any:
        def step(carry: Any, _: object) -> Any:
            return {"x": lax.pmean(carry["x"], "d") + x, "n": lax.psum(carry["n"], "d") // 2}, carry["x"].sum()

        return lax.scan(step, {"x": x, "n": n}, length=3)

    devices = len(distributed.devices())
    x, n = numbers(devices, 5), np.arange(devices, dtype="int16")[:, None]
    last, sums = rune.jit(
        rune.shard_map(body, mesh=line(), in_specs=(P("d"), P("d")), out_specs=(P("d"), P("d")), check_vma=False)
    )(x, n)
    xs, ns = x, n
    for _ in range(3):
        xs, ns = xs.mean(0, keepdims=True) + x, np.broadcast_to(ns.sum(0, keepdims=True) // 2, n.shape)
    np.testing.assert_allclose(full_array(last["x"]), xs, rtol=1e-5)
    np.testing.assert_array_equal(full_array(last["n"]), ns)
    assert sums.shape == (3 * devices,)


def arrays() -> None:
    """Arrays are laid out, computed with, moved, read, printed and refused."""
    devices = distributed.devices()
    rows, columns = NamedSharding(line(), P("d")), NamedSharding(line(), P(None, "d"))
    x = numbers(2 * len(devices), len(devices))
    y = rune.device_put(x, rows)
    assert not y.is_fully_addressable
    assert [s.device.is_local for s in y.global_shards] == [d.is_local for d in devices]
    assert "several processes" in repr(y) == str(y)
    np.testing.assert_allclose(full_array(rnp.sin(y) * 2 + y), np.sin(x) * 2 + x, rtol=1e-6)
    np.testing.assert_allclose(y.sum(axis=0), x.sum(axis=0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(float((y @ y.T).trace()), np.trace(x @ x.T), rtol=1e-4)
    by_columns = rune.device_put(y, columns)
    assert by_columns.sharding == columns
    np.testing.assert_array_equal(full_array(by_columns), x)
    np.testing.assert_array_equal(rune.device_put(y, "cpu:0"), x)
    other = Mesh(devices[::-1], "z")
    np.testing.assert_array_equal(full_array(rune.device_put(y, NamedSharding(other, P("z")))), x)
    for block in y.addressable_shards:
        np.testing.assert_array_equal(block.data, x[block.index])
    assert "process_allgather" in refused(DistributedError, lambda: y.numpy())
    rows_of_process = np.full((len(devices), 2), distributed.process_index(), "f")
    assert "make_array_from_process_local_data" in refused(
        DistributedError, lambda: rune.device_put(rows_of_process, rows)
    )


def made_of_parts() -> None:
    """Arrays assembled from the parts of all processes."""
    index, count, devices = distributed.process_index(), distributed.process_count(), len(distributed.devices())
    rows, copies = NamedSharding(line(), P("d")), NamedSharding(line(), P())
    x = numbers(3 * devices, 2)
    first = sum(d.process_index < index for d in distributed.devices()) * 3
    share = x[first : first + 3 * sum(d.is_local for d in distributed.devices())]
    for shape in (None, x.shape, (None, 2)):
        y = rune.make_array_from_process_local_data(rows, share, shape)
        np.testing.assert_array_equal(full_array(y), x)
    np.testing.assert_array_equal(rune.make_array_from_process_local_data(copies, x), x)
    np.testing.assert_array_equal(full_array(rune.make_array_from_process_local_data(rows, x, x.shape)), x)
    blocks = []
    z = rune.make_array_from_callback(x.shape, rows, lambda block: blocks.append(block) or x[block])
    np.testing.assert_array_equal(full_array(z), x)
    assert len(blocks) == len(z.addressable_shards) < devices or count == 1
    assert "rows along axis 0 in this process" in refused(
        ShapeError, lambda: rune.make_array_from_process_local_data(rows, share, (2, 2))
    )


def batches() -> None:
    """Batches: each process loads its part, while it does other things with the others."""
    size, count = 2 * len(distributed.devices()), distributed.process_count()
    if len({*Counter(d.process_index for d in distributed.devices()).values()}) > 1:
        return  # the parts are equally long, so the processes have equally many devices
    x = numbers(3 * size, 2)
    shares = data.arrays(x).shuffle(0).shard().batch(size // count)
    for number, batch in enumerate(shares.prefetch(NamedSharding(line(), P("d")))):
        parts = [data.arrays(x).shuffle(0).shard(n, count).batch(size // count)[number] for n in range(count)]
        np.testing.assert_array_equal(full_array(batch), np.concatenate(parts))


def training() -> None:
    """A data-parallel step, by sharded jit and by shard_map, equals that of one process."""
    devices = len(distributed.devices())
    x, w = numbers(4 * devices, 5), numbers(5, 3)
    rows, copies = NamedSharding(line(), P("d")), NamedSharding(line(), P())

    def loss(w: Any, x: Any) -> Any:
        return (rnp.tanh(x @ w) ** 2).mean()

    def step(w: Any, x: Any) -> Any:
        value, gradient = rune.value_and_grad(loss)(w, x)
        return w - 0.1 * gradient, value

    by_jit = rune.jit(step, in_shardings=(copies, rows), out_shardings=copies)
    by_hand = rune.jit(
        rune.shard_map(
            lambda w, x: rune.tree.map(lambda v: lax.pmean(v, "d"), step(w, x)),
            mesh=line(),
            in_specs=(P(), P("d")),
            out_specs=P(),
            check_vma=False,
        )
    )
    alone, a, b, data = rnp.asarray(w), w, w, rune.device_put(x, rows)
    for _ in range(3):
        (a, one), (b, two), (alone, three) = by_jit(a, data), by_hand(b, data), step(alone, x)
        np.testing.assert_allclose([float(one), float(two)], float(three), rtol=1e-5)
    np.testing.assert_allclose(a, alone, rtol=1e-5)
    np.testing.assert_allclose(b, alone, rtol=1e-5)


def callbacks() -> None:
    """A callback outside of a body is called once in each process, and one in it by each device."""
    calls: list[int] = []
    x = rune.device_put(numbers(len(distributed.devices())), NamedSharding(line(), P("d")))

    def total(x: Any) -> Any:
        rune.debug.callback(lambda v: calls.append(len(v)), x)
        return x.sum()

    float(rune.jit(total)(x))
    assert calls == [len(distributed.devices())]


def numbers_that_are_none() -> None:
    """A check for NaN names the device of this process; other processes continue."""
    size = len(distributed.devices())
    x = rune.device_put(np.where(np.arange(size) == size - 1, -1.0, 1.0).astype("f"), NamedSharding(line(), P("d")))
    with rune.debug.checks(nans=True):
        if distributed.devices()[-1].is_local:
            assert "cpu:" in refused(NaNError, lambda: rune.jit(rnp.log)(x))
        else:
            rune.jit(rnp.log)(x)


def checkpoints() -> None:
    """Each process writes its blocks, and they load by another layout."""
    folder = Path(tempfile.gettempdir()) / f"rune-blocks-{os.environ.get('PMIX_NAMESPACE', 'alone')}"
    size = len(distributed.devices())
    x, half = numbers(2 * size, size), rnp.full((size, 3), 0.5, "bfloat16")
    tree = {
        "x": rune.device_put(x, NamedSharding(line(), P("d"))),
        "half": rune.device_put(half, NamedSharding(line(), P())),
        "here": rnp.arange(3),
    }
    try:
        distributed.save_checkpoint(folder, tree)
        files = [f.name for f in folder.glob("*/*.*")]
        assert {int(name.split(".")[1]) for name in files} == set(range(distributed.process_count()))
        assert len(files) == size + 2
        columns = NamedSharding(line(), P(None, "d"))
        copy = distributed.load_checkpoint(folder, tree, {"x": columns, "half": None, "here": None})
        assert copy["x"].sharding == columns
        np.testing.assert_array_equal(full_array(copy["x"]), x)
        np.testing.assert_array_equal(distributed.load_checkpoint(folder, tree, "cpu")["x"], x)
        np.testing.assert_array_equal(copy["here"], [0, 1, 2])
        distributed.sync_global_devices("all have read")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def soak() -> None:
    """Thousands of steps use no more memory; more processes than two show nothing else."""
    if distributed.process_count() > 2:
        return
    x = rune.device_put(numbers(4 * len(distributed.devices()), 64), NamedSharding(line(), P("d")))
    f = rune.jit(rune.shard_map(lambda x: lax.psum(x, "d"), mesh=line(), in_specs=P("d"), out_specs=P()))
    sizes = []
    for _ in range(4):
        for _ in range(STEPS_OF_SOAK // 4):
            rune.block_until_ready(f(x))
        sizes.append(_resident_bytes())
    assert sizes[-1] - sizes[0] < 8 << 20, sizes


STEPS_OF_SOAK = 2_000


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# --- faults -------------------------------------------------------------------------------------

USUAL, OTHER, NONE = 0, 1, 2  # the orders in which a device may meet the others
_errors: list[str] = []  # what a device of this process raises


def _raise(order: np.ndarray) -> None:
    if _errors:
        raise ValueError(_errors[0])


def _body(scale: float, x: Any, order: Any, rate: Any) -> Any:
    """A call of Python, and collectives in an order that data decide."""
    rune.debug.callback(_raise, order)
    orders = [lambda x: lax.pmax(lax.psum(x, "d"), "d"), lambda x: lax.psum(lax.pmax(x, "d"), "d"), lambda x: x]
    return lax.switch(order[0], orders, x * rate * scale)


def step(order: int, scale: float = 2.0, rate: float = 0.5) -> None:
    """The step of all processes, unless one of them fails."""
    rows = NamedSharding(line(), P("d"))
    local = sum(d.is_local for d in distributed.devices())
    x = rune.device_put(np.ones((len(distributed.devices()), 5), "f"), rows)
    orders = rune.make_array_from_process_local_data(rows, np.full(local, order, "int32"))
    body = functools.partial(_body, scale)
    f = rune.shard_map(body, mesh=line(), in_specs=(P("d"), P("d"), P()), out_specs=P("d"), check_vma=False)
    rune.block_until_ready(rune.jit(f)(x, orders, rate))


def meet_in_another_order() -> None:
    """The same program, in which the devices of one process take another branch."""
    step(OTHER)


def meet_nobody() -> None:
    """A branch without any collective, and a long rest."""
    step(NONE)
    program.hang()


def run_another_program() -> None:
    """A program with another number in it."""
    step(USUAL, scale=3.0)


def run_on_other_numbers() -> None:
    """The same program, on a number that a process has made itself."""
    step(USUAL, rate=0.25)


def raise_on_a_device() -> None:
    """An error of a device, in the middle of the program."""
    _errors.append("the device is bad")
    step(USUAL)


def all_but_stored() -> None:
    """Programs for any number of devices, one after another."""
    for f in (
        sums,
        operands,
        arrays,
        made_of_parts,
        batches,
        training,
        callbacks,
        numbers_that_are_none,
        checkpoints,
        soak,
    ):
        f()


PROGRAMS: dict[str, Callable[[], object]] = {"stored": stored, "checked": checked, "all": all_but_stored}
FAULTS: dict[str, Callable[[], object]] = {
    f.__name__: f
    for f in (
        program.fail,
        program.leave,
        program.die,
        program.hang,
        meet_in_another_order,
        meet_nobody,
        run_another_program,
        run_on_other_numbers,
        raise_on_a_device,
    )
}


def with_fault(name: str, at: int) -> None:
    """Some steps of all processes, until one of them fails."""
    for number in range(STEPS):
        if number == at and name in ("hang", "meet_nobody"):
            program.be_impatient()
        if number == at and distributed.process_index() == FAULTY:
            FAULTS[name]()
        step(USUAL)


if __name__ == "__main__":
    name, *at = sys.argv[1:]
    distributed.initialize(deadline=program.PATIENCE_S)
    with_fault(name, int(*at)) if name in FAULTS else PROGRAMS[name]()
