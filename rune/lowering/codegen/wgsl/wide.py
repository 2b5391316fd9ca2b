"""u64 in WGSL as pairs of words, the low word first: as much of it as random bits need.

Counters and the products of ciphers are computed in 64 bits, even on devices without such integers,
where no array has this dtype. So there are sums, products, shifts, bitwise operations, comparisons,
and conversions from and to narrower integers, but no division, no floats, and no form in memory.
"""

from __future__ import annotations

import numpy as np

from rune import dtypes
from rune.errors import DtypeError

WIDE = "vec2<u32>"

FUNCTIONS = """
fn rune_high_product(a: u32, b: u32) -> u32 {
  let low = (a & 0xffffu) * (b & 0xffffu);
  let first = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
  let second = (a & 0xffffu) * (b >> 16u) + (first & 0xffffu);
  return (a >> 16u) * (b >> 16u) + (first >> 16u) + (second >> 16u);
}

fn rune_add_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = a.x + b.x;
  return vec2<u32>(low, a.y + b.y + u32(low < a.x));
}

fn rune_sub_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(a.x - b.x, a.y - b.y - u32(a.x < b.x));
}

fn rune_mul_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(a.x * b.x, rune_high_product(a.x, b.x) + a.x * b.y + a.y * b.x);
}

fn rune_shl_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  if ((b.y != 0u) | (b.x > 63u)) { return vec2<u32>(0u, 0u); }
  if (b.x > 31u) { return vec2<u32>(0u, a.x << (b.x & 31u)); }
  return vec2<u32>(a.x << b.x, (a.y << b.x) | ((a.x >> 1u) >> (31u - b.x)));
}

fn rune_shr_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  if ((b.y != 0u) | (b.x > 63u)) { return vec2<u32>(0u, 0u); }
  if (b.x > 31u) { return vec2<u32>(a.y >> (b.x & 31u), 0u); }
  return vec2<u32>((a.x >> b.x) | ((a.y << 1u) << (31u - b.x)), a.y >> b.x);
}

fn rune_less_u64(a: vec2<u32>, b: vec2<u32>) -> bool {
  return (a.y < b.y) | ((a.y == b.y) & (a.x < b.x));
}

fn rune_of_i32_u64(a: i32) -> vec2<u32> {
  return vec2<u32>(u32(a), select(0u, 0xffffffffu, a < 0i));
}

fn rune_index_of_u64(a: vec2<u32>) -> i32 {
  return select(2147483647i, i32(a.x), (a.y == 0u) & (a.x <= 2147483647u));
}
"""

_OPERATIONS = {
    **{name: f"rune_{name}_u64({{0}}, {{1}})" for name in ("add", "sub", "mul", "shl", "shr")},
    # Shifts by less than the width, which the functions check once more.
    "shift_left": "rune_shl_u64({0}, {1})",
    "shift_right": "rune_shr_u64({0}, {1})",
    "and": "({0} & {1})",
    "or": "({0} | {1})",
    "xor": "({0} ^ {1})",
    "not": "(~{0})",
    "neg": "rune_sub_u64(vec2<u32>(0u, 0u), {0})",
    "eq": "all({0} == {1})",
    "ne": "any({0} != {1})",
    "lt": "rune_less_u64({0}, {1})",
    "ge": "(!rune_less_u64({0}, {1}))",
    "gt": "rune_less_u64({1}, {0})",
    "le": "(!rune_less_u64({1}, {0}))",
    "max": "select({0}, {1}, rune_less_u64({0}, {1}))",
    "min": "select({1}, {0}, rune_less_u64({0}, {1}))",
}


def literal(value: int) -> str:
    """A constant.

    >>> literal((1 << 32) + 5)
    'vec2<u32>(5u, 1u)'
    """
    return f"{WIDE}({value & 0xFFFFFFFF}u, {value >> 32}u)"


def operation(name: str, args: list[str]) -> str:
    """An operation on rendered operands. Errors: DtypeError for operations that u64 lacks here."""
    if name not in _OPERATIONS:
        raise _refusal(f"{name} of u64")
    return _OPERATIONS[name].format(*args)


def cast(text: str, source: np.dtype, target: np.dtype) -> str:
    """A conversion from or to u64. For a narrow integer it is the low word, not yet wrapped."""
    if dtypes.FLOATING & {source, target}:
        raise _refusal(f"a conversion of {dtypes.short(source)} to {dtypes.short(target)}")
    if target == dtypes.u64:
        if source in dtypes.SIGNED:
            return f"rune_of_i32_u64({text})"
        return f"{WIDE}(u32({text}), 0u)"
    if target == dtypes.bool_:
        return f"any({text} != {literal(0)})"
    if target == dtypes.i64:
        return f"rune_index_of_u64({text})"
    return f"i32({text}.x)" if target in dtypes.SIGNED else f"{text}.x"


def _refusal(subject: str) -> DtypeError:
    return DtypeError(
        f"render: cannot use {subject} in WGSL (no 64-bit types in the language)",
        hint="compute in 32 bits, or on another device",
    )
