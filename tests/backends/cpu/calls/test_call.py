"""The native code of cached calls, without jit: what is checked on the host before it is built."""

from __future__ import annotations

import ctypes
import struct
from array import array
from typing import Any

import numpy as np
import pytest

from rune import dtypes
from rune.array import CPU, Array
from rune.backends.cpu.calls import describe
from rune.backends.cpu.calls.code import Code, Memory
from rune.backends.cpu.calls.describe import Build, Check, Fetch, NativeCall, Node
from rune.core.types import ArrayType


class Slotted:
    __slots__ = ("first", "second", "third")
    first: object
    second: object
    third: object


def test_a_slot_is_where_its_value_is():
    instance, value = Slotted(), object()
    instance.second = value

    offset = describe.slot_offset(Slotted, "second")
    assert offset is not None
    assert ctypes.c_void_p.from_address(id(instance) + offset).value == id(value)


def test_an_attribute_without_a_slot_has_no_offset():
    class Open:
        first: object

    assert describe.slot_offset(Open, "first") is None


@pytest.mark.parametrize("query", ["_is_layout_known", "_new_from_descr"])
def test_on_an_unknown_host_there_is_no_method(query: str, monkeypatch: pytest.MonkeyPatch):
    assert describe.host.__wrapped__() is not None

    monkeypatch.setattr(describe, query, lambda: None)
    assert describe.host.__wrapped__() is None


def test_without_the_interpreters_lock_there_is_no_method(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(describe.sysconfig, "get_config_var", lambda name: 1)

    assert describe.host.__wrapped__() is None


def call_of(**changes: Any) -> NativeCall:
    type = ArrayType((2, 3), dtypes.f32)
    memory = Memory(type.dtype, (2, 3))
    fields: dict[str, Any] = {
        "config": None,
        "positional": 1,
        "names": (),
        "place": CPU,
        "results": (),
        "nodes": (Node(Fetch.ARGUMENT, 0, 0, Check.ARRAY, type, memory),),
        "build": ((Build.NONE, 0, None),),
        "finish": None,
        "runs": array("q", [0]),
        "code": Code(0, (7, 8), 0, [], lambda: np.empty(0), True, (0, 0), None),
    }
    return NativeCall(**{**fields, **changes})


def test_words_lead_to_the_memory_that_is_wanted():
    words, call = describe.record_of(call_of())
    numbers = struct.unpack(f"{len(words) // 8}q", words)
    head = dict(zip(describe._HEAD, numbers, strict=False))

    node = numbers[head["NODES_AT"] :][:6]
    table = numbers[node[5] :][:4]
    assert node[:5] == (Fetch.ARGUMENT, 0, 0, Check.ARRAY, id(ArrayType((2, 3), dtypes.f32)))
    assert table == (id(dtypes.f32), 2, 2, 3)
    assert numbers[head["SIZES_AT"] :][: head["SIZES"]] == (7, 8)
    assert call.positional == head["POSITIONAL"] == head["INPUTS"] == 1


def test_the_method_has_the_arrays_slots_in_four_places():
    names = ("_buffer", "_copy", "type", "place")
    offsets = {describe.slot_offset(Array, name) for name in names}

    assert len(offsets) == 4
    assert None not in offsets
