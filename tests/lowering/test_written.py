"""Kernels with explicit loops: their text, names of sizes in it, and where operands are stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
from rune import dtypes
from rune.backends import device_named
from rune.core.types import ArrayType
from rune.dims import symbol
from rune.errors import ArgumentError
from rune.lowering.build import build
from rune.lowering.build.schedule import parse
from rune.lowering.kernels_parse import parse_program
from rune.lowering.kernels_text import program_text
from rune.lowering.scatters.atomic import scatter_atomically
from rune.lowering.sorting.radix import digit_counts
from rune.lowering.stages import stages
from tests.support.arrays import array
from tests.support.lowering import i32, program_of

REFERENCE = device_named("reference:0").target


def counted(x: Any) -> Any:
    return digit_counts(x, tile=8)


@pytest.mark.parametrize("name", ["n", "d", "p", "table"])
def test_a_size_may_have_the_name_of_anything_in_the_loops(name: str):
    program = program_of(counted, ArrayType((symbol(name, 1, 100),), dtypes.u32))

    lowering = stages(program, REFERENCE, check=True)

    assert [name in code.sizes for code in lowering.codes.values()] == [True]


def test_given_loops_have_no_schedule_but_their_own():
    (kernel,) = stages(program_of(counted, ArrayType((20,), dtypes.u32)), REFERENCE).kernels.kernels.values()

    with pytest.raises(ArgumentError, match=r"schedule: cannot apply parts\(4\) to .*written as loops"):
        build(kernel, parse("parts(4)"), REFERENCE)


def test_a_kernel_of_given_loops_is_read_back():
    size = symbol("n", 1, 100)
    lowering = stages(program_of(counted, ArrayType((size,), dtypes.u32)), REFERENCE, check=True)

    text = program_text(lowering.kernels)

    assert program_text(parse_program(text)) == text
    assert "code {" in text


def test_a_donated_argument_is_updated_in_place():
    program = program_of(lambda x, p, u: scatter_atomically(x, p, u, combine="add"), i32(50, 1), i32(70), i32(70, 1))

    assert stages(program, REFERENCE, (0,)).plan.donations == ((0, 0),)


def test_a_reshaped_operand_is_read_in_place():
    def run(x: Any, p: Any, u: Any) -> Any:
        return scatter_atomically(rune.numpy.reshape(x, (-1, 1)), p, rune.numpy.reshape(u, (-1, 1)), combine="add")

    x, places, updates = np.zeros(5, np.int32), np.array([1, 4, 1], np.int32), np.array([1, 2, 3], np.int32)
    lowering = stages(rune.make_program(run)(array(x), array(places), array(updates)), REFERENCE)

    assert [name.rpartition("_")[0] for name in lowering.codes] == ["scatter_atomically"]
