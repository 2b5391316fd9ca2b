"""Arrays that are updated in place while their old values are still read: which loops copy them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rune
import rune.numpy as rnp
from rune.lax import dynamic_slice, dynamic_update_slice

ROWS = rnp.ones((200, 100))

IN_TIME: dict[str, Callable[[Any, Any], Any]] = {
    "an element of itself": lambda i, x: x.at[i, 3].multiply(2),
    "an element from another one": lambda i, x: x.at[i, 3].set(x[i + 1, 4]),
    "a row from another one": lambda i, x: x.at[i + 1].set(x[i] * 2),
    "a column from another one": lambda i, x: x.at[:, i + 1].set(x[:, i] * 2),
    "a row by its diagonal": lambda i, x: x.at[i].set(x[i] / x[3, 3]),
    "a row less its sum": lambda i, x: x.at[i].add(-rnp.sum(x[i])),
    "a window of itself": lambda i, x: dynamic_update_slice(x, dynamic_slice(x, (i, i), (30, 20)) * 2, (i, i)),
    "rows that it does not read": lambda i, x: x.at[rnp.arange(3) * i].set(float(7)),
}
TOO_LATE: dict[str, Callable[[Any, Any], Any]] = {
    "a row reversed": lambda i, x: x.at[i].set(x[i, ::-1]),
    "a window from beside it": lambda i, x: dynamic_update_slice(x, dynamic_slice(x, (i, i), (30, 20)), (i + 1, i)),
    "all rows in another order": lambda i, x: x.at[rnp.roll(rnp.arange(200), i)].set(x),
}


def is_in_place(step: Callable[[Any, Any], Any]) -> bool:
    """Whether the array that a loop carries becomes the next one, without a copy."""
    plan = rune.explain(rune.jit(lambda x: rune.fori_loop(0, 9, step, x)))(ROWS)["plan"]
    return "donate argument 2 -> result 1" in plan


@pytest.mark.parametrize("name", IN_TIME)
def test_an_element_that_no_other_point_writes_is_read_in_place(name: str):
    assert is_in_place(IN_TIME[name])


@pytest.mark.parametrize("name", TOO_LATE)
def test_an_element_that_another_point_writes_is_read_from_a_copy(name: str):
    assert not is_in_place(TOO_LATE[name])
