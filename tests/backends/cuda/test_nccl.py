"""Collectives of CUDA devices through NCCL: values, which ones use NCCL, and what is refused.

Four devices that do not exist (fake_machine.py) and an NCCL that checks every call (fake_nccl.py);
NumPy is the oracle. Work waits on the streams until its results are needed, so work that is
enqueued in the wrong order gives wrong numbers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import rune
from rune import dtypes, lax
from rune import numpy as rnp
from rune.backends import Device
from rune.backends.cuda.nccl import library
from rune.errors import CollectiveError, DeviceError
from rune.lowering.meetings import CollectiveCall, Table
from rune.sharding import P, make_mesh
from tests.backends.cuda.fake_machine import Machine, machine_of
from tests.backends.cuda.fake_nccl import FakeNccl, installed

DRAW = np.random.default_rng(0)
GROUPS = [[0, 2], [3, 1]]


@pytest.fixture(scope="module")
def setting() -> Iterator[tuple[Machine, list[Device], FakeNccl]]:
    with machine_of(4) as (machine, devices), pytest.MonkeyPatch.context() as patch:
        yield machine, devices, installed(patch, machine)


@pytest.fixture
def machine(setting: tuple[Machine, list[Device], FakeNccl]) -> Machine:
    return setting[0]


@pytest.fixture
def devices(setting: tuple[Machine, list[Device], FakeNccl]) -> list[Device]:
    return setting[1]


@pytest.fixture
def nccl(setting: tuple[Machine, list[Device], FakeNccl]) -> Iterator[FakeNccl]:
    del setting[2].log[:]
    yield setting[2]
    assert setting[2].problems == []
    assert setting[0].depths() == [0] * 4


def on_devices(devices: Sequence[Device], body: Any, shape: Any = None, names: Any = ("a",)) -> Any:
    mesh = make_mesh(shape or (len(devices),), names, devices=devices)
    return rune.jit(rune.shard_map(body, mesh=mesh, in_specs=P(names), out_specs=P(names), check_vma=False))


def each(devices: Sequence[Device], body: Any, x: np.ndarray) -> np.ndarray:
    """The results of each device for its row of x."""
    return np.asarray(on_devices(devices, lambda v: body(v[0])[None])(x))


def refuse(*args: Any) -> Any:
    raise AssertionError("the host combines operands")


# --- values -----------------------------------------------------------------------------------


def test_collectives_need_no_host(nccl: FakeNccl, devices: list[Device], machine: Machine, monkeypatch: Any):
    monkeypatch.setattr(CollectiveCall, "among", refuse)
    monkeypatch.setattr(Table, "exchange", refuse)
    f = on_devices(devices, lambda v: lax.psum(rnp.sin(v), "a") * 2)
    x = rune.device_put(
        np.ones((4, 3), "f"), rune.sharding.NamedSharding(make_mesh((4,), ("a",), devices=devices), P("a"))
    )
    f(x)
    for device in machine.devices:
        del device.log[:]

    y = f(x)

    assert all("dtoh" not in d.log and "synchronize" not in d.log for d in machine.devices)
    np.testing.assert_allclose(np.asarray(y), np.full((4, 3), 8 * np.sin(1.0)), rtol=1e-6)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_sums_of_any_number_of_devices_are_sums(nccl: FakeNccl, devices: list[Device], count: int):
    x = DRAW.normal(size=(count, 7)).astype("f")

    sums = each(devices[:count], lambda v: lax.psum(v, "a"), x)
    np.testing.assert_allclose(sums, np.broadcast_to(x.sum(0), x.shape), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [dtypes.i8, dtypes.u8, dtypes.i32, dtypes.u32, dtypes.i64, dtypes.u64])
def test_sums_and_extremes_of_integers_agree_with_numpy(nccl: FakeNccl, devices: list[Device], dtype: np.dtype):
    info = np.iinfo(dtype)
    x = DRAW.integers(info.min, info.max, size=(4, 50), dtype=dtype, endpoint=True)

    with rune.configure(x64=True):
        for collective, combine in ((lax.psum, np.add), (lax.pmax, np.maximum), (lax.pmin, np.minimum)):
            result = each(devices, lambda v, c=collective: c(v, "a"), x)
            np.testing.assert_array_equal(result, np.broadcast_to(combine.reduce(x, 0, dtype), x.shape))
    assert "ncclAllReduce" in nccl.log


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "bf16", "c8", "c16"])
def test_sums_of_floats_and_complex_numbers_are_sums(nccl: FakeNccl, devices: list[Device], dtype: str):
    x = (DRAW.normal(size=(4, 9)) + (1j * DRAW.normal(size=(4, 9)) if dtype[0] == "c" else 0)).astype(
        dtypes.bf16 if dtype == "bf16" else dtype
    )

    with rune.configure(x64=True):
        sums = each(devices, lambda v: lax.psum(v, "a"), x)
    reference = np.broadcast_to(x.astype("c16").sum(0), x.shape)
    np.testing.assert_allclose(sums.astype("c16"), reference, rtol=0.1 if dtype in ("f2", "bf16") else 1e-5, atol=0.05)
    assert "ncclAllReduce" in nccl.log


@pytest.mark.parametrize("dtype", ["f4", "?", "i2", "c8", "u1"])
def test_blocks_that_move_arrive_whole(nccl: FakeNccl, devices: list[Device], dtype: str):
    x = (DRAW.normal(size=(4, 4, 3, 5)) * 9).astype(dtype)
    senders = {3: 0, 1: 3, 2: 2}

    for axis in range(3):
        rows = each(devices, lambda v, axis=axis: lax.all_gather(v, "a", axis=axis), x)
        np.testing.assert_array_equal(rows, np.broadcast_to(np.stack([*x], axis), rows.shape))
    for concat in range(3):
        exchange = each(devices, lambda v, concat=concat: lax.all_to_all(v, "a", 0, concat), x)
        np.testing.assert_array_equal(exchange, [np.stack([*x[:, n]], concat) for n in range(4)])
    back = each(devices, lambda v: lax.all_to_all(rnp.moveaxis(v, 0, 2), "a", 2, 1), x)
    np.testing.assert_array_equal(back, [np.stack([*x[:, n]], 1) for n in range(4)])
    permutation = each(devices, lambda v: lax.ppermute(v, "a", [(s, r) for r, s in senders.items()]), x)
    np.testing.assert_array_equal(permutation, [x[senders[n]] if n in senders else 0 * x[n] for n in range(4)])
    assert {"ncclAllGather", "ncclSend", "ncclRecv"} <= set(nccl.log)
    assert "ncclAllReduce" not in nccl.log


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_scattered_sums_are_the_parts_of_the_sum(nccl: FakeNccl, devices: list[Device], axis: int):
    x = DRAW.normal(size=(4, 3, 4, 5)).astype("f")
    x = np.moveaxis(x, 2, 1 + axis)

    parts = each(devices, lambda v: lax.psum_scatter(v, "a", scatter_dimension=axis), np.ascontiguousarray(x))
    np.testing.assert_allclose(parts, np.moveaxis(x.sum(0), axis, 0), rtol=1e-5, atol=1e-5)
    assert "ncclReduceScatter" in nccl.log


def test_groups_of_an_axis_have_their_own_communicators(nccl: FakeNccl, devices: list[Device]):
    x = DRAW.normal(size=(4, 6)).astype("f")

    sums = each(devices, lambda v: lax.psum(v, "a", axis_index_groups=GROUPS), x)
    rows = each(devices, lambda v: lax.all_gather(v, "a", axis=1, axis_index_groups=GROUPS), x)
    for group in GROUPS:
        np.testing.assert_allclose(sums[group], np.broadcast_to(x[group].sum(0), (2, 6)), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(rows[group], np.broadcast_to(x[group].T, (2, 6, 2)))
    assert nccl.log.count("ncclCommInitAll") == 2


def test_collectives_along_both_axes_of_a_mesh_are_right(nccl: FakeNccl, devices: list[Device]):
    def body(v: Any) -> Any:
        return lax.psum(v, "a") * 10 + lax.ppermute(v, "b", [(0, 1), (1, 0)]) + lax.psum(v, ("a", "b"))

    x = DRAW.normal(size=(4, 3)).astype("f")
    grid = x.reshape(2, 2, 3)
    reference = 10 * grid.sum(0, keepdims=True) + grid[:, ::-1] + grid.sum((0, 1))
    result = np.asarray(on_devices(devices, body, (2, 2), ("a", "b"))(x))
    np.testing.assert_allclose(result, reference.reshape(4, 3), rtol=1e-5, atol=1e-5)


def test_several_operands_are_one_group_of_calls(nccl: FakeNccl, devices: list[Device]):
    def body(v: Any) -> Any:
        return lax.psum(v, "a") + lax.psum(rnp.sin(v), "a")[::-1]

    x = DRAW.normal(size=(4, 3)).astype("f")
    result = each(devices, body, x)
    np.testing.assert_allclose(result[1], x.sum(0) + np.sin(x).sum(0)[::-1], rtol=1e-5, atol=1e-5)
    assert (nccl.log.count("ncclGroupEnd"), nccl.log.count("ncclAllReduce")) == (1, 8)


def test_loops_and_branches_communicate_each_time_they_run(nccl: FakeNccl, devices: list[Device]):
    def body(v: Any) -> Any:
        def step(i: Any, x: Any) -> Any:
            return lax.cond(i % 2 == 0, lambda y: lax.psum(y, "a") / 4, lambda y: rnp.flip(y) + lax.axis_index("a"), x)

        x = rune.fori_loop(0, 3, step, v)
        return rune.while_loop(lambda c: lax.psum(c[0], "a") < 40, lambda c: (c[0] + 1, c[1] * 2), (0, x))[1]

    x = DRAW.normal(size=(4, 3)).astype("f")
    mean = x.mean(0)
    reference = (np.flip(mean) + 1.5) * 2**10
    np.testing.assert_allclose(each(devices, body, x), np.broadcast_to(reference, x.shape), rtol=1e-5, atol=1e-5)


def test_a_gradient_through_a_collective_is_right(nccl: FakeNccl, devices: list[Device]):
    mesh = make_mesh((4,), ("a",), devices=devices)
    f = rune.shard_map(lambda w, v: lax.psum((w * v).sum(), "a"), mesh=mesh, in_specs=(P(), P("a")), out_specs=P())
    x = DRAW.normal(size=(8,)).astype("f")

    np.testing.assert_allclose(np.asarray(rune.jit(rune.grad(f))(np.float32(2), x)), x.sum(), rtol=1e-4, atol=1e-4)


def test_a_program_without_collectives_is_one_graph_for_each_device(
    nccl: FakeNccl, devices: list[Device], machine: Machine
):
    f = on_devices(devices, lambda v: rnp.cumsum(v, 1) * 2)
    x = DRAW.normal(size=(4, 5)).astype("f")

    for _ in range(2):
        np.testing.assert_allclose(np.asarray(f(x)), 2 * np.cumsum(x, 1), rtol=1e-5, atol=1e-5)
    assert all("cuGraphLaunch" in d.log for d in machine.devices)
    assert "ncclGroupStart" not in nccl.log


# --- which way --------------------------------------------------------------------------------


def test_extremes_of_floats_use_the_host_to_keep_nan_and_other_collectives_the_streams(
    nccl: FakeNccl, devices: list[Device]
):
    x = DRAW.normal(size=(4, 3)).astype("f")
    x[2, 1] = np.nan

    result = each(devices, lambda v: lax.psum(lax.pmax(v, "a"), "a"), x)
    np.testing.assert_allclose(result[0], 4 * x.max(0), rtol=1e-6)
    assert nccl.log.count("ncclAllReduce") == 4


def test_sums_in_dtypes_that_nccl_lacks_are_right_too(nccl: FakeNccl, devices: list[Device]):
    x = DRAW.integers(-(2**15), 2**15, size=(4, 9)).astype("i2")

    np.testing.assert_array_equal(each(devices, lambda v: lax.psum(v, "a"), x)[1], x.sum(0, dtype="i2"))
    assert "ncclAllReduce" not in nccl.log


def test_devices_of_a_program_that_calls_python_rendezvous_at_the_table(nccl: FakeNccl, devices: list[Device]):
    x = np.arange(8, dtype="f").reshape(4, 2)

    result = each(devices, lambda v: lax.psum(rune.pure_callback(np.negative, v, v), "a"), x)
    np.testing.assert_array_equal(result[3], -x.sum(0))
    assert "ncclGroupStart" not in nccl.log


def test_devices_of_several_makers_meet_at_the_table(nccl: FakeNccl, devices: list[Device]):
    mesh_devices = [devices[0], rune.devices()[0], devices[1]]
    x = np.arange(6, dtype="f").reshape(3, 2)

    np.testing.assert_array_equal(each(mesh_devices, lambda v: lax.psum(v, "a"), x)[1], x.sum(0))
    assert "ncclGroupStart" not in nccl.log


def test_without_the_library_devices_meet_at_the_table(nccl: FakeNccl, devices: list[Device], monkeypatch: Any):
    monkeypatch.setattr(library, "find", lambda: "there is none")
    x = np.arange(8, dtype="f").reshape(4, 2)

    np.testing.assert_array_equal(each(devices, lambda v: lax.psum(v, "a") + 1, x)[3], x.sum(0) + 1)
    assert "ncclGroupStart" not in nccl.log


def test_devices_of_a_profiled_program_rendezvous_at_the_table(nccl: FakeNccl, devices: list[Device]):
    x = np.arange(8, dtype="f").reshape(4, 2)
    f = on_devices(devices, lambda v: lax.psum(v, "a") + 2)
    f(x)  # which lets the driver know its kernels
    del nccl.log[:]

    with rune.configure(cache_dir=""), rune.debug.profile():
        result = np.asarray(f(x))
    np.testing.assert_array_equal(result[3], x.sum(0) + 2)
    assert "ncclGroupStart" not in nccl.log


# --- threads ----------------------------------------------------------------------------------


def test_threads_may_run_programs_on_overlapping_meshes_at_once(nccl: FakeNccl, devices: list[Device]):
    meshes = [devices[:2], devices[1:], devices[::-1], devices[:1], devices[2:]]
    x = DRAW.integers(0, 9, size=(4, 3)).astype("f")
    jobs: list[Callable[[], Any]] = [
        lambda d=d: each(d, lambda v: lax.psum(lax.psum(v, "a") * lax.axis_index("a"), "a"), x[: len(d)])
        for d in meshes
    ]

    with ThreadPoolExecutor(4) as pool:
        for d, f in [(d, pool.submit(job)) for _ in range(3) for d, job in zip(meshes, jobs, strict=True)]:
            reference = x[: len(d)].sum(0) * sum(range(len(d)))
            np.testing.assert_array_equal(f.result(120)[0], reference)


def test_no_context_stays_current_on_a_thread_after_its_calls(nccl: FakeNccl, devices: list[Device], machine: Machine):
    depths: list[list[int]] = []

    def work() -> None:
        each(devices, lambda v: lax.psum(v, "a"), np.ones((4, 2), "f"))
        depths.append(machine.depths())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert depths == [[0, 0, 0, 0]]


# --- errors -----------------------------------------------------------------------------------


def test_devices_that_call_different_collectives_get_an_error(nccl: FakeNccl, devices: list[Device]):
    def body(v: Any) -> Any:
        return lax.cond(
            lax.axis_index("a") == 3, lambda y: lax.psum(y, "a"), lambda y: lax.psum(-lax.pmin(y, "a"), "a"), v
        )

    with pytest.raises(CollectiveError, match=r"cuda:3 cannot meet cuda:0, which is in pmin over 'a'"):
        each(devices, body, np.ones((4, 2), "f"))
    assert "ncclGroupStart" not in nccl.log


def test_operands_of_different_types_get_an_error(nccl: FakeNccl, devices: list[Device]):
    def body(v: Any) -> Any:
        return lax.cond(lax.axis_index("a") == 1, lambda y: lax.psum(y[:1], "a")[0], lambda y: lax.psum(y, "a")[0], v)

    with pytest.raises(CollectiveError, match=r"cannot meet cuda:0 \(float32\[1\] and float32\[2\]\)"):
        each(devices, lambda v: body(v)[None], np.ones((4, 2), "f"))


def test_a_device_that_calls_no_collective_ends_the_wait_of_the_others(nccl: FakeNccl, devices: list[Device]):
    def body(v: Any) -> Any:
        return lax.cond(lax.axis_index("a") == 3, lambda y: y, lambda y: lax.psum(y, "a"), v)

    with pytest.raises(CollectiveError, match=r"in vain \(cuda:0, cuda:1, cuda:2 in psum over 'a' for cuda:3\)"):
        each(devices, body, np.ones((4, 2), "f"))
    x = np.ones((4, 2), "f")
    np.testing.assert_array_equal(each(devices, lambda v: lax.psum(v, "a"), x), 4 * x)


def test_a_callback_may_not_run_a_program_on_a_mesh(nccl: FakeNccl, devices: list[Device]):
    def ask(value: Any) -> Any:
        return each(devices, lambda v: v + 1, np.ones((4, 1), "f"))[0]

    with pytest.raises(DeviceError, match="cannot run on"):
        each(devices, lambda v: rune.pure_callback(ask, v, v), np.ones((4, 1), "f"))


# --- several devices in one process -----------------------------------------------------------


def test_all_devices_of_the_machine_are_listed_and_opened_as_themselves(devices: list[Device]):
    assert [d.name for d in devices] == ["cuda:0", "cuda:1", "cuda:2", "cuda:3"]
    assert [d.backend.number for d in devices] == [0, 1, 2, 3]  # type: ignore[attr-defined]


def test_the_same_code_is_compiled_once_for_devices_of_one_kind(
    nccl: FakeNccl, devices: list[Device], machine: Machine
):
    before = len(machine.modules)
    x = np.ones((4, 2), "f")

    np.testing.assert_array_equal(each(devices, lambda v: lax.psum(v * 7, "a"), x), 28 * x)
    assert len(machine.modules) == before + 1


def test_an_array_is_computed_with_on_its_own_device(devices: list[Device]):
    for number, device in enumerate(devices):
        x = rune.device_put(np.full(3, number, "f"), device)
        np.testing.assert_array_equal(np.asarray(rune.jit(rnp.cos)(x)), np.cos(np.full(3, number, "f")))


def test_doctor_says_which_way_collectives_take(nccl: FakeNccl, devices: list[Device], monkeypatch: Any):
    backend: Any = devices[0].backend
    assert backend.meetings() == "through NCCL 2.32.3 (a stand-in)"

    monkeypatch.setattr(library, "find", lambda: "libnccl cannot be loaded")
    assert backend.meetings() == "through the host (libnccl cannot be loaded; pip install 'rune-ml[nccl]')"
