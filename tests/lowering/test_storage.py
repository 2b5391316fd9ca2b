"""Narrow dtypes are stored as bits and computed in wider ones: `legalize_storage` on kernel code.

First the rewritten code; then that every primitive computes the same bits with and without it, on a
target that lacks all narrow dtypes; then code other than loads and stores: scratch, Vars,
read-modify-write, nibbles that wrap late. Last, code that cannot be rewritten for a target.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rune import dtypes, ops
from rune.backends.reference import TARGET, ReferenceBackend
from rune.core.primitive import Primitive
from rune.core.program import Program
from rune.core.staging import stage
from rune.core.types import ArrayType
from rune.errors import DtypeError
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.check import check
from rune.lowering.kernel.interpret import interpret
from rune.lowering.kernel.nodes import KernelCode
from rune.lowering.kernel.text import parse, to_text
from rune.lowering.legalize import storage
from rune.lowering.legalize.formats import FORMATS
from rune.lowering.legalize.narrow_storage import NIBBLES
from rune.lowering.legalize.storage import legalize_storage
from rune.lowering.stages import lower
from tests.ops.calls import Sample
from tests.ops.samples import each_primitive, samples
from tests.support.close import same
from tests.support.lowering import f32, program_of
from tests.support.sampling import one_in

NARROW = frozenset({dtypes.f8_e4m3, dtypes.f8_e5m2, dtypes.f16, dtypes.bf16, dtypes.i4, dtypes.u4})
WIDE_ONLY = replace(TARGET, dtypes=TARGET.dtypes - NARROW)
PASS = legalize_storage(WIDE_ONLY)


def legal(text: str) -> KernelCode:
    """Kernel code after the pass, checked."""
    kernel = PASS.run(parse(text))
    check(kernel)
    return kernel


# --- what it looks like -----------------------------------------------------------------------


def test_bf16_is_the_upper_half_of_f32(expect: Any):
    code = legal("code k(x: read bf16[8], y: write f32[8]) { for i in 8 grid { store y[i] = f32(x[i]) } }")

    expect(
        to_text(code),
        """
        code k(x: read u16[8], y: write f32[8]) {
          for i in 8 grid {
            bits: u32 = u32(x[i])
            store y[i] = bitcast_f32(bits << 16_u32)
          }
        }""",
    )


def test_a_nibble_is_sign_extended_on_loading_and_masked_on_storing(expect: Any):
    code = legal("code k(x: read i4[8], y: write i4[8]) { for i in 8 grid { store y[i] = max(x[i], 2_i4) } }")

    expect(
        to_text(code),
        """
        code k(x: read u8[8], y: write u8[8]) {
          for i in 8 grid {
            store y[i] = bitcast_u8(max((bitcast_i8(x[i]) << 4_i8) >> 4_i8, 2_i8)) & 15_u8
          }
        }""",
    )


def test_a_rounded_value_is_stored_with_the_bits_it_was_rounded_to():
    code = legal(
        """code k(x: read f8_e5m2[8], y: write f8_e5m2[8]) {
             for i in 8 grid { p: f8_e5m2 = x[i] * x[i]  store y[i] = p } }"""
    )

    assert to_text(code).count("min(") == 1  # encoding ends with one


def test_code_in_the_targets_dtypes_is_returned_unchanged():
    code = parse("code k(x: read f32[8], y: write f32[8]) { store y[0] = x[0] }")

    assert PASS.run(code) is code
    assert legalize_storage(TARGET).run(code) is code


def test_every_dtype_that_can_be_kept_as_bits_is_looked_for():
    assert storage.NARROW == {*FORMATS, *NIBBLES} == NARROW


# --- every primitive --------------------------------------------------------------------------


def program_of_all(candidates: list[Sample]) -> Program:
    counts = [len(s.operands) for s in candidates]

    def everything(*flat: Any) -> list[Any]:
        remaining = iter(flat)
        operands = [[next(remaining) for _ in range(n)] for n in counts]
        return [s.primitive(*xs, **s.params) for s, xs in zip(candidates, operands, strict=True)]

    return program_of(everything, *(t for s in candidates for t in s.types))


def run(program: Program, target: Target, args: list[np.ndarray]) -> list[np.ndarray]:
    plan = lower(program, target, check=True)
    return ReferenceBackend(target).record(plan)(args)


def is_narrow(sample: Sample) -> bool:
    out = sample.primitive.type_rule(*sample.types, **sample.params)
    return any(t.dtype in NARROW for t in (*sample.types, out))


@each_primitive
def test_a_primitive_computes_the_same_bits_without_narrow_dtypes(primitive: Primitive):
    candidates = [s for s in samples(primitive) if is_narrow(s)]
    narrow_samples = [*candidates[:1], *one_in(4, candidates[1:])]
    program = program_of_all(narrow_samples)
    args = [a for s in narrow_samples for a in s.draw()]

    outputs = run(program, WIDE_ONLY, args)

    same(run(program, TARGET, args), outputs)


# --- statements -------------------------------------------------------------------------------


def both(text: str, **buffers: np.ndarray) -> None:
    """The code computes the same before and after the pass."""
    code = parse(text)
    expected, outputs = ([b.copy() for b in buffers.values()] for _ in range(2))

    interpret(code, expected, {})
    stored_outputs = [b.view(p.dtype) for b, p in zip(outputs, legal(text).params, strict=True)]
    interpret(legal(text), stored_outputs, {})

    same(expected, [h.view(e.dtype) for h, e in zip(stored_outputs, expected, strict=True)])


EVERY = np.arange(256, dtype=np.uint8)


@pytest.mark.parametrize("dtype", sorted(NARROW & dtypes.FLOATING, key=str), ids=str)
def test_a_number_that_is_moved_keeps_every_bit(dtype: np.dtype):
    count, short = 256**dtype.itemsize, dtypes.short(dtype)
    numbers = np.arange(count, dtype=f"u{dtype.itemsize}")
    text = f"""code k(x: read {short}[{count}], y: write {short}[{count}]) {{
                 for i in {count} grid {{
                   v: {short} = x[{count - 1} - i]
                   store y[i] = v
                 }} }}"""
    copy = np.zeros_like(numbers)

    interpret(legal(text), [numbers, copy], {})

    np.testing.assert_array_equal(copy, numbers[::-1])


def test_scratch_holds_narrow_numbers_as_bits():
    both(
        """code k(x: read f8_e4m3[256], y: write f8_e4m3[256]) {
             for i in 1 grid {
               alloc row: f8_e4m3[256] local
               for j in 256 serial { store row[j] = exp(x[j]) }
               for j in 256 serial { store y[j] = row[255 - j] + x[j] }
             } }""",
        x=EVERY.view(dtypes.f8_e4m3),
        y=np.zeros(256, dtypes.f8_e4m3),
    )


def test_an_extremum_is_accumulated_in_the_wider_dtype():
    both(
        """code k(x: read f8_e5m2[120], y: write f8_e5m2[1]) {
             for i in 1 grid {
               var m: f8_e5m2 = -inf_f8_e5m2
               for j in 120 serial { m max= x[j] }
               store y[0] = m
             } }""",
        x=EVERY[:120].view(dtypes.f8_e5m2),
        y=np.zeros(1, dtypes.f8_e5m2),
    )


def test_a_sum_of_nibbles_wraps_when_it_is_read():
    both(
        """code k(x: read i4[16], y: write i4[1], z: write f32[1]) {
             for i in 1 grid {
               var s: i4 = 7_i4
               for j in 16 serial { s add= x[j] * 5_i4 }
               store y[0] = s
               store z[0] = f32(s)
             } }""",
        x=EVERY[:16].view(dtypes.i4),
        y=np.zeros(1, dtypes.i4),
        z=np.zeros(1, np.float32),
    )


def test_an_update_reads_and_rounds_what_it_changes():
    both(
        """code k(x: read f8_e4m3[64], y: readwrite f8_e4m3[4]) {
             for i in 1 grid { for j in 64 serial { update y[j % 4] add= x[j] } } }""",
        x=EVERY[40:104].view(dtypes.f8_e4m3),
        y=np.ones(4, dtypes.f8_e4m3),
    )


def test_a_guarded_load_reads_nothing_where_the_guard_fails():
    both(
        """code k(x: read bf16[4], y: write bf16[8]) {
             for i in 8 grid { store y[i] = x[i if index(i) < 4_i64] * 3.0_bf16 } }""",
        x=np.arange(4).astype(dtypes.bf16),
        y=np.zeros(8, dtypes.bf16),
    )


# --- what cannot be ---------------------------------------------------------------------------

SMALL = replace(
    TARGET,
    name="small:0",
    description="a small device",
    dtypes=frozenset({dtypes.bool_, dtypes.i32, dtypes.u32, dtypes.f32}),
)


@pytest.mark.parametrize("dtype", [dtypes.f64, dtypes.i64, dtypes.c128], ids=dtypes.short)
def test_a_device_without_64_bits_refuses_them_by_name(dtype: np.dtype):
    program = program_of(lambda x: ops.add(x, x), ArrayType((3,), dtype))
    name, narrower = dtypes.short(dtype), {"f64": "f32", "i64": "i32", "c128": "c64"}

    with pytest.raises(DtypeError) as error:
        lower(program, SMALL)

    assert f"cannot use {name}[3] on small:0 (no {name} on a small device)" in str(error.value)
    assert f"hint: convert to {narrower[name]}" in str(error.value)


def test_the_refusal_names_the_line_that_made_the_wide_value():
    program = stage(lambda x: [ops.convert(ops.neg(x), dtype=dtypes.f64)], [f32(3)]).program

    with pytest.raises(DtypeError, match=r"ops\.convert"):
        lower(program, SMALL)


def test_complex_numbers_need_only_f32():
    program = program_of(lambda z: ops.exp(z), ArrayType((3,), dtypes.c64))

    assert dtypes.c64 in SMALL.program_dtypes
    lower(program, SMALL, check=True)


def test_a_legalised_dtype_needs_the_integers_that_store_it():
    assert dtypes.f8_e4m3 not in SMALL.program_dtypes
    with_bytes = replace(SMALL, dtypes=SMALL.dtypes | {dtypes.u8, dtypes.i8})

    assert {dtypes.f8_e4m3, dtypes.i4} <= with_bytes.program_dtypes
