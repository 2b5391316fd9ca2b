"""Committed arrays stay where they were put; free ones follow them; the rest is the default device.

The reference executor plays the other device: it is on every machine. First what is committed;
then where operations run; then what is an error; then that a free array is copied once; then
donation, `.at`, pickling, and the NaN check away from the CPU.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import ops
from rune.backends import device_named
from rune.errors import ArgumentError, DeletedArrayError, DeviceError, NaNError
from tests.support.arrays import array
from tests.support.close import close, same

OTHER = "reference:0"
HOST = np.array([1.0, 2.0, 3.0], np.float32)


def free() -> Any:
    return array(HOST)


def remote_array() -> Any:
    return rune.device_put(HOST, OTHER)


def where(x: Any) -> tuple[str, bool]:
    """The name of the device, and whether `x` is committed to it."""
    return x.device.name, x.committed


@pytest.fixture
def copied_in(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shapes of the arrays that are copied to the other device during the test."""
    shapes: list[tuple[int, ...]] = []
    kind: Any = type(device_named(OTHER).backend)
    original = kind.copy_in

    def counted(self: Any, data: np.ndarray) -> Any:
        shapes.append(data.shape)
        return original(self, data)

    monkeypatch.setattr(kind, "copy_in", counted)
    return shapes


# --- what is committed --------------------------------------------------------------------------

MADE = {
    "host data": lambda: rnp.array([1.0, 2.0]),
    "a number": lambda: rnp.asarray(1.0),
    "a constant": lambda: rnp.zeros(3),
    "a count": lambda: rnp.arange(3),
    "of free operands": lambda: free() + free() * 2.0,
    "compiled, of free operands": lambda: rune.jit(rnp.sin)(free()),
    "compiled, closed over": lambda: [x := remote_array(), rune.jit(lambda v: v + x)(free())][1],
    "compiled, a closed over scalar": lambda: [s := remote_array()[0], rune.jit(lambda v: v * s)(free())][1],
    "a derivative of free operands": lambda: rune.grad(lambda x: rnp.sum(x * x))(free()),
    "moved nowhere": lambda: rune.device_put(HOST),
}
COMPUTED = {
    "eagerly": lambda x: x * 2.0,
    "beside a free operand": lambda x: free() + x,
    "beside NumPy data": lambda x: rnp.add(HOST, x),
    "compiled": lambda x: rune.jit(lambda v: v + 1.0)(x),
    "compiled, again": lambda x: [f := rune.jit(rnp.sin), f(x), f(x)][-1],
    "by grad": lambda x: rune.grad(lambda v: rnp.sum(v * v))(x),
    "by grad of jit": lambda x: rune.grad(rune.jit(lambda v: rnp.sum(v * v)))(x),
    "by a jvp along a free direction": lambda x: rune.jvp(rnp.sin, (x,), (free(),))[1],
    "by vmap": lambda x: rune.vmap(lambda v: v + 1.0)(x),
    "by a Hessian": lambda x: rune.hessian(lambda v: rnp.sum(v**3))(x),
    "by indexing": lambda x: x[1:],
    "by an update": lambda x: x.at[free().astype("i32") - 1].add(free()),
}


@pytest.mark.parametrize("name", MADE)
def test_arrays_made_without_committed_arrays_are_uncommitted_on_the_cpu(name: str):
    assert where(MADE[name]()) == ("cpu:0", False)


@pytest.mark.parametrize("device", ["cpu:0", OTHER])
@pytest.mark.parametrize("name", COMPUTED)
def test_a_result_computed_from_a_committed_array_is_committed_to_its_device(name: str, device: str):
    result = COMPUTED[name](rune.device_put(HOST, device))

    assert where(result) == (device, True)
    close(COMPUTED[name](free()), result, ulps=1, why="another executor's sine")


@pytest.mark.parametrize("device", ["cpu:0", OTHER])
def test_device_put_commits_every_array_of_a_tree(device: str):
    arrays = rune.device_put({"a": free(), "b": [HOST, 2.0]}, device)

    assert [where(x) for x in rune.tree.leaves(arrays)] == [(device, True)] * 3
    same({"a": HOST, "b": [HOST, np.float32(2.0)]}, arrays)


def test_device_put_takes_a_device_as_well_as_its_name():
    assert where(rune.device_put(HOST, device_named(OTHER))) == (OTHER, True)


def test_device_put_without_a_device_does_not_move_arrays():
    x, y = free(), remote_array()

    arrays = rune.device_put([x, y])

    assert arrays[0] is x
    assert arrays[1] is y


def test_device_put_of_a_committed_array_to_its_own_device_is_the_array():
    x = remote_array()

    assert rune.device_put(x, OTHER) is x


def test_device_put_of_a_free_array_where_it_is_commits_without_a_copy():
    x = free()

    y = rune.device_put(x, "cpu")

    assert y.buffer is x.buffer
    assert (where(x), where(y)) == (("cpu:0", False), ("cpu:0", True))


def test_without_a_device_device_put_passes_traced_values():
    same(HOST * 2, rune.jit(lambda x: rune.device_put(x) * 2.0)(free()))


def test_jit_with_a_device_moves_its_arguments_and_commits_its_results():
    f = rune.jit(lambda x, y: x + y, device=OTHER)

    result = f(free(), rune.device_put(HOST, "cpu"))

    assert where(result) == (OTHER, True)
    same(HOST + HOST, result)


# --- the default device -------------------------------------------------------------------------


def test_in_the_scope_of_a_device_new_arrays_are_on_it_and_free():
    with rune.configure(device=OTHER):
        arrays = [rnp.ones(3), rnp.array(HOST), rnp.arange(3) + 1, rune.jit(rnp.sin)(rnp.ones(3))]

    assert [where(x) for x in arrays] == [(OTHER, False)] * 4


def test_in_the_scope_of_a_device_free_arrays_from_outside_move_to_it():
    x, f = free(), rune.jit(lambda v: v * 2.0)
    f(x)

    with rune.configure(device=OTHER):
        arrays = [x + 1.0, f(x), rune.grad(lambda v: rnp.sum(v * v))(x)]

    assert [where(y) for y in arrays] == [(OTHER, False)] * 3
    same([HOST + 1, HOST * 2, HOST * 2], arrays)


def test_in_the_scope_of_a_device_committed_arrays_stay():
    x, f = rune.device_put(HOST, "cpu"), rune.jit(lambda v: v * 2.0)

    with rune.configure(device=OTHER):
        arrays = [x + rnp.ones(3), f(x), f(x), f(free())]

    assert [where(y) for y in arrays] == [("cpu:0", True)] * 3 + [(OTHER, False)]


def test_a_free_array_made_elsewhere_is_computed_with_on_the_default_device():
    with rune.configure(device=OTHER):
        x = rnp.arange(3.0)

    arrays = [x + 1.0, rune.jit(lambda v: v + 1.0)(x), x + rune.device_put(free(), "cpu")]

    assert [where(y) for y in arrays] == [("cpu:0", False), ("cpu:0", False), ("cpu:0", True)]
    assert where(x) == (OTHER, False)
    same([HOST, HOST, 2 * HOST - 1], arrays)


# --- errors -------------------------------------------------------------------------------------


def test_committed_arrays_on_different_devices_are_an_error_that_names_them(expect: Any):
    x, y = remote_array(), rune.device_put(np.ones((2, 3), np.float32), "cpu")

    with pytest.raises(DeviceError) as error:
        _ = rnp.sum(x) + rnp.sum(y)

    expect(
        str(error.value).split("\nat ")[0],
        """
        add: cannot combine arrays on different devices (f32[] on reference:0, f32[] on cpu:0)
        hint: each is committed to its device; move one with rune.device_put, or jit(device=...)
        """,
    )


def test_a_compiled_call_refuses_committed_arguments_on_different_devices(expect: Any):
    x, y = remote_array(), rune.device_put(1.0, "cpu")

    with pytest.raises(DeviceError) as error:
        rune.jit(lambda a, b, c, d: a + b + c + d)(free(), x, y, x)

    expect(
        str(error.value).split("\n")[0],
        """
        jit: cannot combine arrays on different devices (f32[3] on reference:0, f32*[] on cpu:0)
        """,
    )


@pytest.mark.parametrize(
    "operation",
    [lambda x, y: rune.grad(lambda v: rnp.sum(v * y))(x), lambda x, y: x.at[0].set(y[0])],
    ids=["grad", "update"],
)
def test_committed_arrays_on_different_devices_combine_nowhere(operation: Any):
    with pytest.raises(DeviceError, match="cannot combine arrays on different devices"):
        operation(remote_array(), rune.device_put(HOST, "cpu"))


def test_a_committed_scalar_is_as_committed_as_any_array():
    with pytest.raises(DeviceError, match="cannot combine"):
        _ = remote_array() * rune.device_put(2.0, "cpu")


def test_after_an_error_moving_one_array_helps():
    x, y = remote_array(), rune.device_put(HOST, "cpu")

    same(HOST * HOST, x * rune.device_put(y, OTHER))


# --- a free array is copied once ----------------------------------------------------------------


def test_a_free_array_is_copied_to_a_device_once(copied_in: list):
    x, w = remote_array(), array(np.ones((5, 3), np.float32))
    f = rune.jit(lambda v: v * w)
    copied_in.clear()

    for _ in range(3):
        rnp.add(x, w)
        f(x)

    assert copied_in.count((5, 3)) == 1


def test_a_captured_array_is_copied_to_the_device_of_jit_once(copied_in: list):
    w = array(np.ones((5, 3), np.float32))
    f = rune.jit(lambda v: v * w, device=OTHER)

    for _ in range(3):
        f(HOST)

    assert copied_in.count((5, 3)) == 1


def test_numpy_data_may_change_between_two_operations():
    x, host = remote_array(), HOST.copy()

    first = rnp.add(x, host)
    host[:] = 10
    second = rnp.add(x, host)

    same([HOST + HOST, HOST + 10], [first, second])


def test_deleting_an_array_frees_its_copy():
    x, w = remote_array(), free()
    _ = x + w
    assert w._copy is not None

    w.delete()

    assert w._copy is None
    with pytest.raises(DeletedArrayError):
        _ = x + w


# --- donation -----------------------------------------------------------------------------------


def donating() -> Any:
    return rune.jit(lambda x, y: x + y, donate_argnums=0)


def test_a_donated_array_on_the_device_is_deleted_and_its_memory_is_reused():
    x, y = remote_array(), remote_array()
    address = x.buffer.ctypes.data  # the reference executor's buffers are NumPy arrays

    result = donating()(x, y)

    assert x.is_deleted()
    assert result.buffer.ctypes.data == address
    same(HOST + HOST, result)


def test_a_donated_array_on_another_device_survives_and_its_copy_is_not_reused():
    x, y, f = free(), remote_array(), donating()

    arrays = [f(x, y), f(x, y), x]

    same([HOST + HOST, HOST + HOST, HOST], arrays)


@pytest.mark.parametrize("device", ["cpu:0", OTHER])
def test_committing_an_array_does_not_lend_its_memory_twice(device: str):
    with rune.configure(device=device):
        x = rune.jit(lambda v: v * 1.0)(rnp.array(HOST))
    y = rune.device_put(x, device)

    same(HOST + HOST, donating()(y, HOST))

    same(HOST, x)


# --- other ways to hold an array ------------------------------------------------------------------


def test_a_pickled_array_is_restored_free_on_the_cpu():
    result = pickle.loads(pickle.dumps(remote_array()))

    assert where(result) == ("cpu:0", False)
    same(HOST, result)


def test_a_copied_array_is_another_one_at_the_same_place():
    x = remote_array()

    for result in (copy.copy(x), copy.deepcopy([x])[0]):
        assert result is not x
        assert where(result) == (OTHER, True)
        same(HOST, result)


def test_the_repr_names_the_device():
    assert repr(remote_array()) == "Array([1., 2., 3.], f32[3], reference:0)"


def test_trees_keep_places():
    arrays = rune.tree.map(lambda x: x * 2.0, {"a": remote_array(), "b": free()})

    assert {k: where(v) for k, v in arrays.items()} == {"a": (OTHER, True), "b": ("cpu:0", False)}


def test_the_nan_check_looks_at_every_device():
    with rune.configure(check_nans=True), pytest.raises(NaNError, match="log: found NaN"):
        rnp.log(remote_array() - 2.0)


# --- a device for a block -----------------------------------------------------------------------


def test_inside_a_device_block_new_arrays_are_on_its_device_and_free():
    with rune.device(OTHER) as device:
        places = {name: where(make()) for name, make in MADE.items()}

    assert device.name == OTHER
    assert places == dict.fromkeys(MADE, (OTHER, False))


def test_an_array_stays_where_it_was_made_when_the_block_ends():
    with rune.device("reference"):
        x = rnp.arange(3.0)

    assert where(x) == (OTHER, False)
    same(np.arange(3.0, dtype=np.float32), x)
    assert where(x) == (OTHER, False)


def test_a_jitted_call_of_free_arrays_runs_on_the_device_of_the_block():
    f, x = rune.jit(rnp.sin), free()

    with rune.device(OTHER):
        inside = f(x)
    assert (where(inside), where(f(x))) == ((OTHER, False), ("cpu:0", False))


def test_a_committed_argument_takes_precedence_over_the_block():
    x = rune.device_put(HOST, "cpu")

    with rune.device(OTHER):
        assert where(rune.jit(rnp.sin)(x)) == ("cpu:0", True)


def test_blocks_nest_and_end_where_they_began():
    with rune.device(OTHER):
        with rune.device("cpu"):
            inner = where(rnp.zeros(2))
        outer = where(rnp.zeros(2))

    assert (inner, outer, where(rnp.zeros(2))) == (("cpu:0", False), (OTHER, False), ("cpu:0", False))


def test_a_device_may_be_passed_in_place_of_its_name():
    device = device_named(OTHER)

    with rune.device(device):
        assert where(rnp.zeros(2))[0] == OTHER
    assert where(rune.device_put(HOST, device)) == (OTHER, True)
    assert where(rune.jit(rnp.sin, device=device)(free())) == (OTHER, True)
    assert rune.explain(rnp.sin, device=device)(free()).device == OTHER


def test_a_block_for_a_missing_device_is_refused_on_entry():
    with pytest.raises(DeviceError, match="cannot find 'nowhere'"), rune.device("nowhere"):
        pass


# --- memory -------------------------------------------------------------------------------------


def test_the_memory_of_a_device_is_counted_by_name_device_or_default():
    x = rune.device_put(np.zeros(1 << 18, np.float32), OTHER)

    stats = rune.memory_stats(OTHER)
    assert stats.live_bytes >= x.nbytes
    assert rune.memory_stats(device_named(OTHER)) == stats
    with rune.device(OTHER):
        assert rune.memory_stats() == stats


@pytest.mark.parametrize("device", rune.devices(), ids=lambda d: d.name)
def test_every_device_counts_its_memory(device: Any):
    stats = rune.memory_stats(device)

    assert 0 <= stats.live_bytes <= stats.peak_bytes
    assert 0 <= stats.raw_allocations <= stats.allocations


@pytest.mark.parametrize("count", [3, 1 << 10, 1 << 20])
def test_the_cpu_counts_the_memory_of_eager_results_and_their_views_once(count: int):
    before = rune.memory_stats("cpu").live_bytes
    x = rnp.arange(count, dtype="float32") + 1
    views = x[1:], x.reshape(-1, 1), rune.device_put(x, "cpu")
    during = rune.memory_stats("cpu")
    nbytes = x.nbytes
    del x, views

    assert nbytes <= during.live_bytes - before <= nbytes + 64
    assert during.pools["numpy"].live_bytes >= nbytes
    assert rune.memory_stats("cpu").live_bytes == before


def test_the_cpu_counts_live_bytes_and_cached_bytes():
    before = rune.memory_stats("cpu")
    x = rune.jit(lambda: rnp.zeros(1 << 20))()
    during = rune.memory_stats("cpu")
    nbytes = x.nbytes
    del x
    after = rune.memory_stats("cpu")

    assert during.live_bytes == before.live_bytes + nbytes
    assert during.peak_bytes >= during.live_bytes
    assert after.live_bytes == before.live_bytes
    assert after.cached_bytes >= nbytes


@pytest.mark.parametrize(
    "call",
    [
        lambda x: rune.device_put(x, 3),  # type: ignore[arg-type]
        lambda x: rune.jit(ops.neg, device=3)(x),  # type: ignore[arg-type]
        lambda x: rune.device(3).__enter__(),  # type: ignore[arg-type]
    ],
)
def test_a_value_that_is_neither_a_device_nor_its_name_is_refused(call: Any):
    with pytest.raises(ArgumentError, match="device: cannot use int as a device"):
        call(array([1.0]))


@pytest.mark.parametrize("way", ["jit", "vmap", "grad"])
def test_a_traced_value_stays_one_when_it_is_fetched(way: str):
    def function(x: Any) -> Any:
        values = rune.device_get({"x": x, "n": 3})
        return values["x"] ** values["n"]

    # As in JAX 0.10.2: a test may run a function on NumPy arrays by fetching its arguments.
    answers = {
        "jit": lambda: rune.jit(function)(2.0),
        "vmap": lambda: rune.vmap(function)(rnp.asarray([2.0]))[0],
        "grad": lambda: rune.grad(function)(2.0),
    }
    assert float(answers[way]()) == {"jit": 8.0, "vmap": 8.0, "grad": 12.0}[way]
