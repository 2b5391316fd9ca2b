"""Meetings of devices: if their collectives or operands differ, the error names the devices."""

from __future__ import annotations

import numpy as np
import pytest

from rune import ops
from rune.errors import CollectiveError
from rune.lowering.meetings import CollectiveCall, Table
from tests.support.lowering import f32

SUM, LARGEST = (CollectiveCall(primitive, (("axis_name", "data"),)) for primitive in (ops.psum, ops.pmax))


@pytest.fixture
def table() -> Table:
    """The table of two devices, the first of which waits to sum three numbers."""
    table = Table({"data": 2}, ("x:0", "x:1"))
    table._attend(0, SUM, [np.ones(3, np.float32)], [f32(3)])
    return table


def test_a_device_in_another_collective_is_refused_with_both(table: Table):
    with pytest.raises(CollectiveError, match="pmax over 'data': x:1 cannot meet x:0, which is in psum over 'data'"):
        table.exchange(1, LARGEST, [np.ones(3, np.float32)], [f32(3)])


@pytest.mark.parametrize("operand", [np.ones(2, np.float32), np.ones(3)], ids=["shape", "dtype"])
def test_a_device_with_an_operand_of_another_type_is_refused_with_both(table: Table, operand: np.ndarray):
    type_text = rf"{operand.dtype}\[{operand.size}\]"
    with pytest.raises(
        CollectiveError, match=rf"psum over 'data': x:1 cannot meet x:0 \({type_text} and float32\[3\]\)"
    ):
        table.exchange(1, SUM, [operand], [f32(3)])
