"""A product and a sum are fused if the target has a fused operation; otherwise both are rounded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import rune
from rune import dtypes
from rune.backends import reference
from rune.backends.doctor import abilities
from rune.lowering.codegen.target import natively
from rune.lowering.kernel.interpret import interpret
from rune.lowering.kernel.text import parse, to_text
from rune.lowering.legalize.contraction import separate_products
from tests.support.close import near

DOT = """
code dot(x: read f32[8], y: read f32[8], z: write f32[1]) {
  var total: f32 = 0.0_f32
  for i in 8 serial { total add= contract x[i] * y[i] }
  store z[0] = total
}"""
FUSING = replace(reference.TARGET, native=natively(fma=[dtypes.f32]))
PLAIN = replace(reference.TARGET, native=natively(arithmetic=[dtypes.f32]))


def test_products_are_separate_where_fma_is_done_in_software():
    code = separate_products(PLAIN).run(parse(DOT))
    assert "contract" in to_text(parse(DOT))
    assert "contract" not in to_text(code)


def test_nothing_changes_if_fma_is_available_or_unknown():
    for target in (FUSING, reference.TARGET):
        code = parse(DOT)
        assert separate_products(target).run(code) is code


def test_the_sum_is_the_same_but_for_its_rounding():
    x = np.linspace(0, 1, 8, dtype=np.float32)
    z = np.zeros(1, np.float32)
    interpret(separate_products(PLAIN).run(parse(DOT)), [x, x, z], {})
    near(np.array([x @ x]), z, relative=1e-6, why="eight products and sums")


def test_a_fused_multiply_add_is_assumed_only_for_the_targets_dtypes():
    assert FUSING.has("fma", dtypes.f32)
    assert not FUSING.has("fma", dtypes.f64)
    assert reference.TARGET.has("fma", dtypes.f64)


def test_the_abilities_that_a_driver_reports_are_listed_by_operation():
    assert abilities(FUSING) == ("32 threads in step", "fma f32")
    assert abilities(reference.TARGET) == ()


def test_devices_have_the_dtypes_of_the_operations_that_they_announce():
    for device in rune.devices():
        fused_dtypes = {dtype for operation, dtype in device.target.native if operation == "fma"}
        assert fused_dtypes <= device.target.program_dtypes | {dtypes.f16, dtypes.bf16}
