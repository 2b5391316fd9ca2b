"""Collectives as NCCL's calls: the calls that one device of a group makes, as data.

test_nccl.py tests the results, with a fake library. This file checks that the calls are few and
large, as if written by hand.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from rune import dtypes, ops
from rune.backends.cuda.nccl import calls, library
from rune.backends.cuda.nccl.calls import AllGather, AllReduce, Part, Receive, ReduceScatter, Send, Swap
from rune.backends.cuda.nccl.library import SIGNATURES, DataType, Library, Operation, Refused
from rune.core.types import ArrayType
from rune.lowering.meetings import CollectiveCall


def call(name: str, **params: Any) -> CollectiveCall:
    return CollectiveCall(getattr(ops, name), tuple(sorted({"axis_name": "a", **params}.items())))


def part(collective: CollectiveCall, *shape: int, dtype: np.dtype = dtypes.f32, place: int = 1, size: int = 2) -> Part:
    return calls.part(collective, ArrayType(shape, dtype), place, size)


def test_a_sum_is_one_all_reduce_in_place():
    assert part(call("psum"), 3, 5) == Part((AllReduce(15, DataType.FLOAT32, Operation.SUM),))


def test_a_complex_sum_is_one_of_twice_as_many_floats():
    assert part(call("psum"), 3, dtype=dtypes.c64) == Part((AllReduce(6, DataType.FLOAT32, Operation.SUM),))


def test_signed_sums_use_unsigned_types_and_extremes_signed_types():
    assert part(call("psum"), 3, dtype=dtypes.i32).calls == (AllReduce(3, DataType.UINT32, Operation.SUM),)
    assert part(call("pmax"), 3, dtype=dtypes.i32).calls == (AllReduce(3, DataType.INT32, Operation.MAX),)


def test_along_the_first_axis_nothing_is_transposed():
    assert part(call("all_gather", axis=0, lanes=2), 3, 5) == Part((AllGather(60),))
    assert part(call("psum_scatter", scatter_axis=0, lanes=2), 2, 5) == Part((ReduceScatter(5, DataType.FLOAT32),))
    exchange = part(call("all_to_all", split_axis=0, concat_axis=0, lanes=2), 2, 5)
    assert exchange == Part((Send(20, 0, 0), Receive(20, 0, 0), Send(20, 20, 1), Receive(20, 20, 1)))


def test_along_another_axis_two_axes_are_swapped_before_or_after():
    assert part(call("all_gather", axis=1, lanes=2), 3, 5) == Part((AllGather(60),), after=Swap(2, 3, 20))
    scatter = part(call("psum_scatter", scatter_axis=1, lanes=2), 3, 2, 5)
    assert scatter == Part((ReduceScatter(15, DataType.FLOAT32),), before=Swap(3, 2, 20))
    exchange = part(call("all_to_all", split_axis=2, concat_axis=1, lanes=2), 3, 5, 2)
    assert (exchange.before, exchange.after) == (Swap(15, 2, 4), Swap(2, 3, 20))


def test_axes_of_one_need_no_swap():
    assert part(call("all_gather", axis=2, lanes=2), 1, 1, 7) == Part((AllGather(28),))


def test_a_permutation_sends_and_receives_whole_arrays_or_zeros():
    rotation = call("ppermute", permutation=((0, 1), (1, 2), (2, 0)))
    assert part(rotation, 5, size=3) == Part((Send(20, 0, 2), Receive(20, 0, 0)))
    assert part(call("ppermute", permutation=((1, 0),)), 5) == Part((Send(20, 0, 0),), is_empty=True)
    assert part(call("ppermute", permutation=((1, 1),)), 5) == Part((Send(20, 0, 1), Receive(20, 0, 1)))


def test_a_collective_of_no_elements_does_nothing():
    assert part(call("psum"), 0, 5) == Part(())


def test_groups_are_those_of_the_axis():
    assert calls.groups(call("psum", groups=((0, 2), (1,))), 3) == ((0, 2), (1,))
    assert calls.groups(call("psum"), 3) == ((0, 1, 2),)


@pytest.mark.parametrize("name", ["all_gather", "all_to_all", "ppermute"])
def test_collectives_that_only_move_elements_take_every_dtype(name: str):
    everything = [ArrayType((2,), d) for d in (dtypes.bool_, dtypes.i16, dtypes.f8_e4m3, dtypes.c128)]

    assert calls.is_known(call(name), everything)


@pytest.mark.parametrize("dtype", [dtypes.f16, dtypes.bf16, dtypes.f32, dtypes.f64])
def test_extremes_of_floats_are_not_known_since_they_keep_nan(dtype: np.dtype):
    assert not calls.is_known(call("pmax"), [ArrayType((2,), dtype)])
    assert calls.is_known(call("psum"), [ArrayType((2,), dtype)])


@pytest.mark.parametrize("dtype", [dtypes.bool_, dtypes.i16, dtypes.u16, dtypes.f8_e4m3, dtypes.f8_e5m2])
def test_sums_that_nccl_has_not_or_rounds_otherwise_are_not_known(dtype: np.dtype):
    assert not calls.is_known(call("psum"), [ArrayType((2,), dtypes.f32), ArrayType((2,), dtype)])


# --- the library -------------------------------------------------------------------------------


def test_a_refusal_has_the_name_of_the_function_and_nccls_words():
    library = Library({"ncclGroupStart": lambda: 3}, lambda code: b"internal error", "")

    with pytest.raises(Refused, match="ncclGroupStart: internal error"):
        library.call("ncclGroupStart")


def test_a_group_is_left_when_a_call_in_it_fails():
    depth: list[int] = []
    functions = {"ncclGroupStart": lambda: depth.append(1) or 0, "ncclGroupEnd": lambda: depth.pop() and 5}
    with pytest.raises(ValueError, match="first"), Library(functions, bytes, "").grouped():
        raise ValueError("first")

    assert depth == []


@pytest.mark.parametrize(
    ("error", "reason"), [(OSError("no such file\nand more"), "OSError: no such file"), (ImportError(), "ImportError")]
)
def test_without_the_library_there_is_a_reason(monkeypatch: pytest.MonkeyPatch, error: Exception, reason: str):
    def refuse() -> Any:
        raise error

    monkeypatch.setattr(library, "_load", refuse)
    library._search.cache_clear()
    try:
        assert library.find() == f"libnccl cannot be loaded ({reason})"
    finally:
        library._search.cache_clear()


def test_an_old_library_is_a_reason(monkeypatch: pytest.MonkeyPatch):
    def answer(version: Any) -> int:
        ctypes.cast(version, ctypes.POINTER(ctypes.c_int))[0] = 2708
        return 0

    monkeypatch.setattr(library, "_load", lambda: Library({"ncclGetVersion": answer}, bytes, "lib"))
    library._search.cache_clear()
    try:
        assert "is older than 2.10" in str(library.find())
    finally:
        library._search.cache_clear()


def test_every_function_that_is_called_has_a_signature():
    assert {f"nccl{name}" for name in ("Send", "Recv", "AllReduce", "AllGather", "ReduceScatter")} < set(SIGNATURES)
    assert all(len(types) >= 1 for types in SIGNATURES.values())
