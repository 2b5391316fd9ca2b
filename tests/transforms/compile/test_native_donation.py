"""Native calls that donate: whose memory results take, and what becomes of the arguments.

The laws are those of the general way (test_donation.py): a donated array is deleted in any case,
and nothing that anybody else can still read is written to.
"""

from __future__ import annotations

import gc
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, copy_context
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import tree
from rune.array import Array
from rune.backends.shared import host_memory
from rune.errors import DeletedArrayError, NaNError, OutOfMemory
from tests.support.arrays import array
from tests.support.close import same
from tests.transforms.compile.native_kinds import KINDS, X, is_native, kinds, leaves_of

SIZES = (7, 1 << 19)  # NumPy's own allocation, and a recycled block
sizes = pytest.mark.parametrize("size", SIZES)


def fresh(size: int = 7) -> Array:
    return rune.jit(lambda n: rnp.arange(size) * 1.0 + n)(0.0)


def address(x: Array) -> int:
    return x.buffer.ctypes.data


def warmed(function: Callable[..., Any], make: Callable[[], tuple[Any, ...]], **options: Any) -> Any:
    """The function after two calls with arguments of their own."""
    f = rune.jit(function, **options)
    for _ in range(2):
        f(*make())
    assert len(f._native_calls) == 1
    return f


def add_one(size: int = 7) -> Any:
    return warmed(lambda x: x + 1.0, lambda: (fresh(size),), donate_argnums=0)


def copies(values: Any) -> Any:
    return tree.map(lambda x: array(np.array(x)) if isinstance(x, Array) else x, values)


# --- memory that is lent ------------------------------------------------------------------------


@sizes
def test_a_donating_call_is_native_from_the_third_on_and_writes_where_its_argument_was(size: int):
    f, x = add_one(size), fresh(size)
    y, before = x, address(x)

    def call() -> None:
        nonlocal y  # the end of a large result is reported to Python
        y = f(x)

    assert is_native(call)
    assert x.is_deleted()
    assert address(y) == before
    same(np.arange(size, dtype=np.float32) + 1, y)


@kinds
def test_donating_calls_answer_as_others(kind: str):
    function, args, kwargs, options = KINDS[kind]
    if "static" in kind:
        pytest.skip("all positional arguments are donated here")
    plain = rune.jit(function, **options)(*args, **kwargs)
    f = rune.jit(function, donate_argnums=range(len(args)), donate_argnames=[*kwargs], **options)

    for _ in range(4):
        own_args, own_kwargs = copies((args, kwargs))
        outs = f(*own_args, **own_kwargs)
        assert tree.structure(outs) == tree.structure(plain)
        assert [x.type for x in tree.leaves(outs)] == [x.type for x in tree.leaves(plain)]
        same(leaves_of(plain), leaves_of(outs))
        assert all(x.is_deleted() for x in tree.leaves((own_args, own_kwargs)) if isinstance(x, Array))


def test_an_update_of_nine_arguments_reuses_their_memory():
    def update(params: Any, momenta: Any, grads: Any, count: Any) -> Any:
        momenta = tree.map(lambda m, g: 0.9 * m + g, momenta, grads)
        return tree.map(lambda p, m: p - 0.1 * m, params, momenta), momenta, count + 1

    f = rune.jit(update, donate_argnums=(0, 1, 3))
    params = {name: np.full(k + 3, 1.0, np.float32) for k, name in enumerate("abcd")}
    momenta = {name: np.zeros_like(p) for name, p in params.items()}
    grads = {name: array(0.5 * p) for name, p in params.items()}
    state = (*copies(tree.map(array, (params, momenta))), array(np.int32(0)))
    for _ in range(3):
        state = f(state[0], state[1], grads, state[2])
    homes = sorted(map(address, tree.leaves(state)))

    for _ in range(4):
        state = f(state[0], state[1], grads, state[2])

    assert sorted(map(address, tree.leaves(state))) == homes
    for _ in range(7):
        momenta = {k: np.float32(0.9) * m + np.asarray(grads[k]) for k, m in momenta.items()}
        params = {k: p - np.float32(0.1) * momenta[k] for k, p in params.items()}
    assert int(state[2]) == 7
    for name in params:
        np.testing.assert_allclose(state[0][name], params[name], rtol=1e-6)


def test_an_array_without_elements_is_deleted_too():
    f = warmed(lambda x: x + 1.0, lambda: (array(np.zeros((0, 3), np.float32)),), donate_argnums=0)
    x = array(np.zeros((0, 3), np.float32))

    assert f(x).shape == (0, 3)
    assert x.is_deleted()


def test_results_and_arguments_die_when_they_are_dropped():
    f, x = add_one(), fresh()
    argument, buffer = weakref.ref(x), weakref.ref(x.buffer)
    y = f(x)

    assert buffer() is y.buffer
    del x, y
    assert (argument(), buffer()) == (None, None)


@pytest.mark.usefixtures("small_heap")
def test_counts_of_references_stay_as_they_were():
    f = warmed(lambda x, y: (x + 1.0, y * 2.0), lambda: (fresh(), fresh()), donate_argnums=0)
    x, y = fresh(), fresh()
    known = [None, x.type, x.place, x.buffer.dtype, y, y.buffer, f._native_calls[0]]
    x = f(x, y)[0]
    gc.collect()
    before = [*map(sys.getrefcount, known)]

    for _ in range(50):
        x = f(x, y)[0]

    gc.collect()
    after = [*map(sys.getrefcount, known)]
    assert max(abs(a - b) for a, b in zip(before, after, strict=True)) < 10


# --- memory that others read --------------------------------------------------------------------


@sizes
@pytest.mark.parametrize(
    "look",
    [np.asarray, lambda x: x.reshape(1, -1), lambda x: x[::-1], lambda x: np.asarray(x).data, np.from_dlpack],
    ids=["numpy", "reshape", "reversed", "memoryview", "dlpack"],
)
def test_a_view_of_a_donated_array_keeps_its_contents(look: Callable[[Array], Any], size: int):
    f, x = add_one(size), fresh(size)
    view = look(x)
    expected = np.array(view)

    y = f(x)

    same(np.arange(size, dtype=np.float32) + 1, y)
    same(expected, np.array(view))
    assert x.is_deleted()


@sizes
def test_donating_a_view_does_not_change_the_whole_array(size: int):
    f, base = add_one(size), fresh(2 * size)

    y = f(base[:size])

    same(np.arange(size, dtype=np.float32) + 1, y)
    same(np.arange(2 * size, dtype=np.float32), base)


def test_memory_that_is_read_only_is_not_written_to():
    f, host = add_one(), np.arange(7, dtype=np.float32)
    host.flags.writeable = False
    x = Array(host, fresh().type)
    host = host.ctypes.data

    assert address(f(x)) != host


@pytest.mark.parametrize("donate_argnums", [0, 1, (0, 1)])
def test_an_array_that_is_given_twice_is_read_before_it_is_written(donate_argnums: int | tuple[int, ...]):
    def sums(a: Any, b: Any) -> Any:
        return rnp.cumsum(a) + 1, rnp.cumsum(b)[::-1]

    f, x = warmed(sums, lambda: (fresh(), fresh()), donate_argnums=donate_argnums), fresh()
    before, expected = address(x), np.arange(7, dtype=np.float32).cumsum()

    outs = f(x, x)

    assert x.is_deleted()
    assert before not in map(address, outs)
    same(expected + 1, outs[0])
    same(expected[::-1], outs[1])


def test_a_captured_array_that_is_donated_is_read_once_more_and_then_deleted():
    x = fresh()
    f = warmed(lambda a: a + x, lambda: (fresh(),), donate_argnums=0)

    same(2 * np.arange(7, dtype=np.float32), f(x))
    with pytest.raises(DeletedArrayError):
        f(fresh())


def test_donated_numpy_arrays_and_numbers_are_not_changed():
    host = np.arange(7, dtype=np.float32)
    f = warmed(lambda x, s: (x + s, s * 2.0), lambda: (host, 2.0), donate_argnums=(0, 1))

    assert is_native(lambda: f(host, 2.0))
    assert address(f(host, 2.0)[0]) != host.ctypes.data
    same(np.arange(7, dtype=np.float32), host)


@pytest.mark.usefixtures("small_heap")
def test_a_finaliser_that_looks_at_an_argument_while_results_are_made_keeps_what_it_saw():
    f = warmed(lambda x, y: (x + 1.0, y + 1.0, x - y), lambda: (fresh(), fresh()), donate_argnums=(0, 1))
    views: list[Any] = []

    class Looking:
        def __init__(self, arrays: tuple[Array, ...]):
            self.arrays, self.itself = arrays, self

        def __del__(self) -> None:
            views.extend(np.asarray(x) for x in self.arrays if not x.is_deleted())

    with collecting_at_every_chance():
        for _ in range(100):
            x, y = fresh(), fresh()
            Looking((x, y))
            outs = f(x, y)
            same(np.arange(7, dtype=np.float32) + 1, outs[0])
            del x, y, outs

    assert views
    for view in views:
        same(np.arange(7, dtype=np.float32), view)


@contextmanager
def collecting_at_every_chance() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        yield
    finally:
        gc.set_threshold(*before)


# --- memory that does not serve -----------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [lambda x: x[:3] + 1.0, lambda x: x.astype("f8"), lambda x: x > 2, lambda x: rnp.sum(x), lambda x: ()],
    ids=["another shape", "a wider dtype", "a narrower dtype", "rank 0", "nothing"],
)
def test_a_donated_argument_is_deleted_even_if_its_memory_cannot_be_reused(function: Callable[[Any], Any]):
    f, x, host = warmed(function, lambda: (fresh(),), donate_argnums=0), fresh(), np.arange(7, dtype=np.float32)

    outs = f(x)

    assert x.is_deleted()
    second = fresh()
    assert is_native(lambda: f(second))
    same(leaves_of(function(array(host))), leaves_of(outs))


# --- errors -------------------------------------------------------------------------------------


def test_a_donated_array_cannot_be_read_or_donated_again():
    f, x = add_one(), fresh()
    f(x)

    with pytest.raises(DeletedArrayError, match="donated to a jitted call, or deleted"):
        f(x)
    with pytest.raises(DeletedArrayError, match="donated to a jitted call, or deleted"):
        _ = x + 1


def test_arguments_of_a_call_that_finds_no_memory_are_as_they_were(monkeypatch: pytest.MonkeyPatch):
    size = 1 << 19
    f = warmed(lambda x, y: (x + 1.0, rnp.stack([y, x])), lambda: (fresh(size), fresh(size)), donate_argnums=(0, 1))
    x, y = fresh(size), fresh(size)
    before = sys.getrefcount(x.buffer), sys.getrefcount(y.buffer), address(x)

    def refuse(*args: Any) -> Any:
        raise OutOfMemory("alloc: cannot allocate")

    monkeypatch.setattr(host_memory._free, "take", refuse)
    with pytest.raises(OutOfMemory):
        f(x, y)
    monkeypatch.undo()

    assert (sys.getrefcount(x.buffer), sys.getrefcount(y.buffer), address(x)) == before
    same(np.arange(size, dtype=np.float32), x)
    same(np.arange(size, dtype=np.float32) + 1, f(x, y)[0])


@pytest.mark.parametrize("context", [Context, copy_context], ids=["general", "native"])
def test_threads_that_donate_one_array_get_the_answer_or_an_error_about_its_deletion(context: Callable[[], Context]):
    size = 1 << 16
    f = warmed(lambda x: rune.fori_loop(0, 20, lambda i, c: rnp.sin(c), x), lambda: (fresh(size),), donate_argnums=0)
    expected = np.asarray(f(fresh(size)))

    for _ in range(20):
        x, answers, refusals, go = fresh(size), [], [], threading.Barrier(4)

        def work(x=x, answers=answers, refusals=refusals, go=go) -> None:
            go.wait()
            try:
                answers.append(f(x))
            except DeletedArrayError as error:
                refusals.append(error)

        # With different settings, or with those for which a call was described.
        threads = [threading.Thread(target=context().run, args=(work,)) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert (len(answers) + len(refusals), bool(answers)) == (4, True)
        for answer in answers:
            same(expected, answer)


# --- calls that end half way, natively or not ---------------------------------------------------


class Stopped(Exception):
    """The error that the signal handler raises."""


@contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise Stopped

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("calls_before", [1, 3], ids=["general", "native"])
def test_an_argument_of_a_call_that_is_interrupted_is_not_left_half_written(calls_before: int):
    f = rune.jit(lambda x, n: rune.fori_loop(0, n, lambda i, c: rnp.sin(c) + 1, x), donate_argnums=0)
    for _ in range(calls_before):
        f(fresh(1009), 2)
    x = fresh(1009)

    for seconds in (0.3, 3, 30):  # a busy machine may stop a call before it has begun to run
        with pytest.raises(Stopped), stopped_after(seconds):
            f(x, 1 << 30)
        if x.is_deleted():
            break
        same(fresh(1009), x)

    assert x.is_deleted()


def test_an_argument_of_a_call_whose_result_is_refused_is_deleted():
    f, x = rune.jit(lambda x: rnp.log(x) - 3, donate_argnums=0), -fresh()

    with rune.configure(check_nans=True), pytest.raises(NaNError):
        f(x)

    assert x.is_deleted()


def test_a_call_refused_before_it_runs_leaves_its_arguments_unchanged():
    f = rune.jit(lambda x: x + 1.0, donate_argnums=0, dims={"n": (1, 9)})
    f(fresh())
    x = fresh(10)

    with pytest.raises(rune.errors.DimensionError):
        f(x)

    same(np.arange(10, dtype=np.float32), x)


def test_under_a_transformation_nothing_is_donated():
    f, x = add_one(), fresh()

    slope = rune.grad(lambda x: rnp.sum(f(x) ** 2))(x)

    assert not x.is_deleted()
    same(2 * (np.arange(7, dtype=np.float32) + 1), slope)
    same(X * 1.0, X)
