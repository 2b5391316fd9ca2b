"""Memory in native calls: references, threads, and errors half-way."""

from __future__ import annotations

import gc
import itertools
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import tree
from rune.array import Array
from rune.backends.shared import host_memory
from rune.errors import ArgumentError, OutOfMemory
from tests.support.arrays import array
from tests.support.close import same
from tests.transforms.compile.native_kinds import KINDS, W, X, Y, kinds, warm

pytestmark = pytest.mark.usefixtures("small_heap")  # it collects garbage twice for each kind


def references(*objects: object) -> list[int]:
    return [sys.getrefcount(x) for x in objects]


@kinds
def test_native_calls_leave_every_reference_count_unchanged(kind: str):
    function, args, kwargs, options = KINDS[kind]
    f = warm(rune.jit(function, **options), *args, **kwargs)
    arrays = [x for x in tree.leaves((args, kwargs, Y)) if isinstance(x, Array)]
    known = [y for x in arrays for y in (x, x.buffer, x.type, x.place, x.buffer.dtype)]
    known += [args, kwargs, None, True, Array, np.ndarray, rune.config.current(), *W, f, W, W["b"]]
    known += [f._native_calls, f._native_calls[0], *tree.leaves(args)]
    f(*args, **kwargs)
    gc.collect()
    before = references(*known)

    for _ in range(50):
        f(*args, **kwargs)

    gc.collect()
    assert max(abs(a - b) for a, b in zip(before, references(*known), strict=True)) < 10


def test_results_die_when_they_are_dropped():
    f = warm(rune.jit(lambda a: {"x": a + 1.0, "y": [a, (a * 2.0,)]}), X)
    outputs = f(X)
    arrays = [weakref.ref(x) for x in tree.leaves(outputs)]
    buffers = [weakref.ref(x.buffer) for x in tree.leaves(outputs)]

    assert all(gc.is_tracked(x) for x in tree.leaves(outputs))
    del outputs
    assert all(r() is None for r in (*arrays, *buffers))


def test_a_dropped_function_takes_its_native_calls_along():
    f = warm(rune.jit(lambda a: a + 1.0), X)
    call = weakref.ref(f._native_calls[0][1].code.owner)
    assert call() is not None

    del f
    gc.collect()
    assert call() is None


def test_an_error_half_way_leaks_no_references(monkeypatch: pytest.MonkeyPatch):
    x = array(np.ones(1 << 19, np.float32))
    f = warm(rune.jit(lambda a: (a[:3], a + 1.0)), x)
    take, requests = host_memory._free.take, itertools.count()

    def refuse(*args: Any) -> Any:
        next(requests)
        raise OutOfMemory("alloc: cannot allocate")

    gc.collect()  # what was warmed up may have left references
    before = references(x.buffer, x.type, x)
    monkeypatch.setattr(host_memory._free, "take", refuse)
    with pytest.raises(OutOfMemory):
        f(x)
    monkeypatch.setattr(host_memory._free, "take", take)

    gc.collect()
    after = references(x.buffer, x.type, x)
    assert next(requests) == 2  # by the native call, then by the general one
    assert after == before
    same(np.full(3, 1.0, np.float32), f(x)[0])


def test_an_error_other_than_out_of_memory_is_raised_unchanged(monkeypatch: pytest.MonkeyPatch):
    x = array(np.ones(1 << 19, np.float32))
    f = warm(rune.jit(lambda a: (a[:3], a + 1.0)), x)

    def interrupt(*args: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(host_memory._free, "take", interrupt)
    with pytest.raises(KeyboardInterrupt):
        f(x)


def test_an_error_in_the_unflatten_function_of_a_class_is_raised():
    refusing = [False]

    class Picky:
        def __init__(self, a: Any):
            self.a = a

    def make(_: Any, children: Any) -> Picky:
        if refusing[0]:
            raise ValueError("not this time")
        return Picky(*children)

    tree.register_node(Picky, lambda p: ((p.a,), None), make)
    f = warm(rune.jit(lambda a: Picky(a + 1.0)), X)
    refusing[0] = True

    with pytest.raises(ValueError, match="not this time"):
        f(X)


def test_an_arena_that_is_too_small_is_let_go():
    function, args, _, _ = KINDS["with an arena"]
    f = warm(rune.jit(function), *args)
    expected, arenas = np.asarray(f(*args)), f._native_calls[0][1].code.arenas
    arenas[:] = [np.empty(1, np.uint8)]
    small = weakref.ref(arenas[0])

    same(expected, f(*args))
    assert len(arenas) == 1
    assert small() is None


def test_a_container_that_changes_before_its_call_is_described_does_not_change_the_kind():
    container: list[Any] = [X, [X + 1.0]]

    class Meddling:
        def __init__(self, a: Any):
            self.a = a

    def make(_: Any, children: Any) -> Any:
        container[:] = [[X], X + 1.0]
        return Meddling(*children)

    tree.register_node(Meddling, lambda m: ((m.a,), None), make)
    f = rune.jit(lambda p: Meddling(X * (1.0 if isinstance(p[0], list) else 2.0)))
    for _ in range(3):
        container[:] = [X, [X + 1.0]]
        same(2.0 * np.asarray(X), f(container).a)

    same(np.asarray(X), f([[X], X + 1.0]).a)


def test_a_container_that_changes_during_the_trace_lookup_affects_no_other_call(monkeypatch: pytest.MonkeyPatch):
    container: list[Any] = [X, [X]]
    f, settings = rune.jit(lambda p: tree.map(lambda leaf: leaf + 1.0, p)), rune.config.current()

    def meddle() -> Any:
        container[:] = [X, [X], X]
        return settings

    monkeypatch.setattr(rune.config, "current", meddle)
    f(container)
    monkeypatch.undo()

    for count in (2, 3, 2):
        assert len(tree.leaves(f([X, [X], X][:count]))) == count


def test_threads_call_one_function_at_once():
    a = array(np.random.default_rng(0).normal(size=(40, 40)).astype(np.float32))
    f = warm(rune.jit(lambda a, k: rnp.sin(a @ a) @ a + k), a, 1.0)
    expected, wrong, go = [np.asarray(f(a, float(k))) for k in range(6)], [], threading.Barrier(6)

    def work(k: int) -> None:
        go.wait()
        for _ in range(200):
            if not np.array_equal(np.asarray(f(a, float(k))), expected[k]):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_a_key_that_changes_the_dict_while_it_is_compared_is_survived():
    class Evil:
        def __hash__(self) -> int:
            return hash("b")

        def __eq__(self, other: object) -> bool:
            inner.clear()
            return False

    f = warm(rune.jit(lambda p: p["x"]["a"] + 1.0), {"x": {"a": X, "b": X}})
    inner: dict[Any, Any] = {"a": X + 0.0, Evil(): X}

    with pytest.raises((ArgumentError, KeyError, RuntimeError)):
        f({"x": inner})
    same(np.asarray(X) + 1.0, f({"x": {"a": X, "b": X}}))


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interrupt_while_keys_are_compared_is_raised(error: type[BaseException]):
    class Stopping:
        def __hash__(self) -> int:
            return hash("b")

        def __eq__(self, other: object) -> bool:
            next(comparisons)
            raise error

    f = warm(rune.jit(lambda p: p["x"]["a"] + p["x"]["b"]), {"x": {"a": X, "b": X}})
    inner: dict[Any, Any] = {"a": X, Stopping(): X}
    comparisons, before = itertools.count(), references(inner, X)

    with pytest.raises(error):
        f({"x": inner})
    assert next(comparisons) == 1  # by the native call, which no other one followed
    assert references(inner, X) == before


def test_an_error_while_keys_are_compared_is_left_to_the_general_way():
    class Refusing:
        def __hash__(self) -> int:
            return hash("b")

        def __eq__(self, other: object) -> bool:
            raise ValueError

    f = warm(rune.jit(lambda p: p["x"]["a"] + p["x"]["b"]), {"x": {"a": X, "b": X}})

    with pytest.raises(ArgumentError, match="cannot sort the keys"):
        f({"x": {"a": X, Refusing(): X}})


def test_long_plans_release_the_interpreter_and_short_plans_keep_it():
    short = warm(rune.jit(lambda a: a + 1.0), X)
    long = warm(rune.jit(lambda a: a @ a), array(np.ones((300, 300), np.float32)))

    assert short._native_calls[0][1].code.is_brief
    assert not long._native_calls[0][1].code.is_brief
