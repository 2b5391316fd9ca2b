"""Records of values: their order, and programs with inputs that they name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from rune import dtypes
from rune.control.groups import Groups, stage_grouped
from rune.core.types import ArrayType
from rune.ops import add, mul


@dataclass(frozen=True, slots=True)
class Pair(Groups):
    """A single value and a list."""

    one: Any
    many: list[Any]


@dataclass(frozen=True, slots=True)
class Outer(Groups):
    """A list, and a pair that may be absent."""

    many: list[Any]
    pair: Pair | None


def test_values_come_in_the_order_of_the_fields():
    assert Outer([1, 2], Pair(3, [4, 5])).flat() == [1, 2, 3, 4, 5]


def test_a_group_of_none_has_no_values():
    assert Outer([1, 2], None).flat() == [1, 2]


@pytest.mark.parametrize("record", [Outer([1, 2], Pair(3, [])), Outer([], Pair(1, [2])), Outer([1], None)], ids=str)
def test_a_record_filled_with_its_own_values_is_the_same(record: Outer):
    assert record.filled(record.flat()) == record


def test_a_staged_function_reads_its_inputs_by_name():
    f32 = ArrayType((), dtypes.f32)

    def function(inputs: Pair) -> list[Any]:
        first, second = inputs.many
        return [add(mul(inputs.one, first), second)]

    program = stage_grouped(function, Pair(f32, [f32, f32]), "affine")

    assert str(program).splitlines() == [
        "program affine(%0: f32[], %1: f32[], %2: f32[]) {",
        "  %3: f32[] = mul %0, %1",
        "  %4: f32[] = add %3, %2",
        "  return %4",
        "}",
    ]
