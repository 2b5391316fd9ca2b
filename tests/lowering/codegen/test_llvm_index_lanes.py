"""Index arithmetic in vectors: exact at the limit of 32 bits, and no wider than its values need."""

from __future__ import annotations

import numpy as np
import pytest

from rune.lowering.codegen.llvm.render import render
from rune.lowering.kernel.text import parse
from tests.lowering.codegen.llvm_run import MACHINES, run

SIZES = (1, 7, 16, 17, 130)
# Products of 129 and the third and the fourth lie on both sides of 2**31.
STRIDES = (1, 65_537, 16_600_000, 16_700_000, 1 << 33)
FORMS = ("{k}*i // 7", "({k}*i + 3) % 125", "(i % 2 + i // 2 + {k}) % 250", "(({k}*i + 5) // 3 + i) % 11", "{k}*i - 9")


@pytest.mark.parametrize("on", MACHINES)
@pytest.mark.parametrize("form", FORMS)
def test_indices_below_and_above_32_bits_are_exact_in_every_lane(form: str, on: str):
    for size in SIZES:
        for stride in STRIDES:
            index = form.format(k=stride)
            code = parse(f"code f(y: write i64[{size}]) {{ for i in {size} grid {{ store y[i] = index({index}) }} }}")
            y = np.zeros(size, np.int64)

            run(code, [y], MACHINES[on])

            assert y.tolist() == [eval(index, {"i": i}) for i in range(size)], (index, size)


def test_a_condition_on_indices_leaves_a_register_full_of_lanes():
    code = parse("""
        code f(x: read f32[1000], y: write f32[1000]) {
          for i in 1000 grid {
            store y[i] = select(index(i % 3) < 1_i64, x[i], 0.0_f32)
          }
        }""")

    assert "select <16 x i1>" in render(code, MACHINES["wide"]).text
