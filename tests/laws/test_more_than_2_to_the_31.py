"""Axes longer than 2**31: positions do not wrap, and those beyond the index dtype are refused.

Programs are traced, not run: arrays of that size take gigabytes. RUNE_TEST_WHOLE=1 runs some.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import lax
from rune.core.higher import subprograms
from rune.core.program import Literal, Program
from rune.dims import symbol
from rune.errors import DimensionError
from rune.ops.family import position_dtype
from tests.support.sampling import IS_WHOLE

N = 2**31 + 7
LONG = rune.ShapeDtypeStruct((N,), "int8")

# Positions that a Python number names, and those that are counted from the end.
PLACED: dict[str, Callable[[Any], Any]] = {
    "element": lambda x: x[N - 5],
    "slice": lambda x: x[N - 5 : N - 3],
    "from the end": lambda x: x[-5],
    "element written": lambda x: x.at[N - 5].set(1),
    "slice written": lambda x: x.at[N - 5 : -3].set(1),
    "element added": lambda x: x.at[-5].add(1),
    "rows written": lambda x: x.reshape(1, N).at[:, N - 5].set(1),
    "beside an array": lambda x: x.reshape(1, N)[np.array([0]), N - 5],
    "traced": lambda x: x[x[0].astype("int32")],
    "traced, written": lambda x: x.at[x[0].astype("int32")].set(1),
    "rolled": lambda x: rnp.roll(x, N - 3),
    "cotangent": lambda x: rune.vjp(lambda y: y[N - 5], x.astype("float32"))[1](1.0),
    "compressed": lambda x: rnp.compress(x > 3, x, size=5),
    "extracted": lambda x: rnp.extract(x > 3, x, size=5),
    "placed": lambda x: rnp.place(x, x > 3, x[:7], inplace=False),
    "every row": lambda x: lax.fori_loop(0, 3, lambda i, total: total + x[i], rnp.int8(0)),
}
COUNTED: dict[str, Callable[[Any], Any]] = {
    "argmax": rnp.argmax,
    "argmin": rnp.argmin,
    "argsort": rnp.argsort,
    "arange": lambda x: rnp.arange(N),
    "one_hot": lambda x: rune.nn.one_hot(3, N),
    "count_nonzero": rnp.count_nonzero,
    "nonzero": lambda x: rnp.nonzero(x, size=3),
    "unique": lambda x: rnp.unique(x, size=3),
    "triangle": lambda x: rnp.tril(x.reshape(1, N)),
    "permutation": lambda x: rune.random.permutation(rune.random.key(0), N),
}


def wrapped_numbers(program: Program) -> list[object]:
    """Integers of 32 bits that a position a little above 2**31 becomes when it wraps."""
    literals = [a for e in program.equations for a in e.operands if isinstance(a, Literal)]
    numbers = [np.asarray(a.value) for a in literals if a.type.dtype == np.int32]
    inside = [x for e in program.equations for p in subprograms(e) for x in wrapped_numbers(p)]
    return inside + [n for x in numbers for n in x.ravel().tolist() if -(2**31) < n <= -(2**31) + 64]


@pytest.mark.parametrize("name", PLACED)
def test_no_position_wraps(name: str):
    assert not wrapped_numbers(rune.make_program(PLACED[name])(LONG))


@pytest.mark.parametrize("name", ["compressed", "extracted", "placed"])
def test_running_counts_of_longer_axes_have_64_bits(name: str):
    program = rune.make_program(PLACED[name])(LONG)

    counts = [e.results[0].type for e in program.equations if e.primitive.name == "cumsum"]
    assert [str(t) for t in counts] == [f"i64[{N}]"]


@pytest.mark.parametrize("name", ["nonzero", "flatnonzero", "argwhere", "where", "unique_values"])
def test_known_positions_beyond_32_bits_are_refused(name: str):
    mask = rnp.broadcast_to(rnp.array(True), (N,))  # a view: of one byte

    with pytest.raises(DimensionError, match=r"cannot count to 214748365[45] in i32"):
        getattr(rnp, name)(mask)


@pytest.mark.skipif(not IS_WHOLE, reason="takes 20 GB")
def test_a_mask_selects_elements_beyond_2_to_the_31():
    x = rnp.zeros(N, "bool").at[N - 5].set(True)

    assert x[x].tolist() == [True]
    assert rnp.compress(x, x).tolist() == [True]
    assert rnp.compress(x, x, size=2).tolist() == [True, False]


def test_a_position_that_wraps_would_be_noticed():
    assert wrapped_numbers(rune.make_program(lambda x: x + np.int32(-(2**31) + 2))(rnp.int32(1)))


@pytest.mark.parametrize("name", COUNTED)
def test_positions_beyond_32_bits_are_refused(name: str):
    with pytest.raises(DimensionError, match=r"cannot count to 214748365[45] in i32"):
        rune.make_program(COUNTED[name])(LONG)


def test_64_bit_indices_reach_positions_beyond_32_bits():
    with rune.enable_x64():
        program = rune.make_program(rnp.argmax)(LONG)

    assert [str(t) for t in program.output_types] == ["i64[]"]


@pytest.mark.skipif(not IS_WHOLE, reason="takes 4 GB")
@pytest.mark.parametrize("name", ["element written", "slice written", "element added"])
def test_an_element_written_beyond_2_to_the_31_is_read_back(name: str):
    x = rune.jit(PLACED[name])(rnp.zeros(N, "int8"))

    assert int(x[N - 5]) == 1
    assert int(x.astype("bool").sum()) == (2 if name == "slice written" else 1)


def test_positions_on_an_axis_that_is_certainly_longer_have_64_bits():
    assert position_dtype(3, symbol("n", 2**31)) == np.int64
    assert position_dtype(2**31 - 1, symbol("n", 1, 2**31)) == np.int32
