"""Functions that WGSL lacks, or defines less strictly than kernel/scalar.py, as WGSL text.

A module that mentions `rune_less` gets that function and those that it calls. WGSL compilers may
assume that no float is NaN or infinite, may drop an addition of 0, and may reassociate. Therefore:

    rune_zero     is a word that is 0, as only the launch knows: `args.zero & group_id.x`. Alone,
                  `args.zero` is not enough: where a uniform decides a branch, drivers compile a
                  version for its value, in which nothing is hidden
    rune_pin      hides where a float came from by an xor with rune_zero, so that compilers neither
                  contract nor reassociate the operation that gave it
    rune_keep_*   hides an integer: WGSL refuses constant expressions that overflow
    rune_float    makes a float from its bits: constant expressions may not be NaN or infinite
    rune_order    maps a float to an integer of the same order, -0 and 0 both to 0. Comparisons use
                  it, because a device may compare denormals as 0

Shifts and divisions that WGSL refuses for some constants, such as a shift by the width, are
functions of the scalar library. wide.py has the functions of u64.
"""

from __future__ import annotations

import re

from rune.lowering.codegen.wgsl import wide

_LINES = """
var<private> rune_zero: u32;
fn rune_pin(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) ^ rune_zero); }
fn rune_float(bits: u32) -> f32 { return bitcast<f32>(bits ^ rune_zero); }
fn rune_keep_u32(x: u32) -> u32 { return x ^ rune_zero; }
fn rune_keep_i32(x: i32) -> i32 { return x ^ i32(rune_zero); }
fn rune_is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn rune_is_finite(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) < 0x7f800000u; }
fn rune_is_nonzero(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) != 0u; }
fn rune_neg(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) ^ 0x80000000u); }
fn rune_abs(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) & 0x7fffffffu); }
"""

_BLOCKS = """
fn rune_order(x: f32) -> i32 {
  let bits = bitcast<i32>(x);
  return select(bits, i32(-2147483648) - bits, bits < 0i);
}

fn rune_less(a: f32, b: f32) -> bool {
  return (rune_order(a) < rune_order(b)) & !rune_is_nan(a) & !rune_is_nan(b);
}

fn rune_at_most(a: f32, b: f32) -> bool {
  return (rune_order(a) <= rune_order(b)) & !rune_is_nan(a) & !rune_is_nan(b);
}

fn rune_equal(a: f32, b: f32) -> bool {
  return (rune_order(a) == rune_order(b)) & !rune_is_nan(a);
}

fn rune_copysign(x: f32, y: f32) -> f32 {
  return bitcast<f32>((bitcast<u32>(x) & 0x7fffffffu) | (bitcast<u32>(y) & 0x80000000u));
}

fn rune_sqrt(x: f32) -> f32 {
  let order = rune_order(x);
  let special = (order == 0i) | (order >= 0x7f800000i) | rune_is_nan(x);
  let root = sqrt(select(x, 1.0f, special | (order < 0i)));
  return select(select(root, rune_float(0x7fc00000u), order < 0i), x, special);
}

fn rune_divisor(a: i32) -> i32 {
  return select(a, 1i, a == 0i);
}

fn rune_floordiv(a: i32, b: i32) -> i32 {
  let quotient = a / b;
  return quotient - select(0i, 1i, (quotient * b != a) & ((a < 0i) != (b < 0i)));
}

fn rune_mod(a: i32, b: i32) -> i32 {
  let rest = a - a / b * b;
  return select(rest, rest + b, (rest != 0i) & ((rest < 0i) != (b < 0i)));
}
"""

_TEXTS = (*_LINES.strip().split("\n"), *(_BLOCKS + wide.FUNCTIONS).strip().split("\n\n"))
FUNCTIONS: dict[str, str] = {re.findall(r"rune_\w+", text)[0]: text for text in _TEXTS}


def accessors(memory: str, bits: int, is_atomic: bool) -> dict[str, str]:
    """The functions that read and write elements of 8 or 16 bits of an array of words, by name.

    Several threads may write different elements of one word, so a store is two atomic operations:
    one clears the element's bits, the other sets them. Positions become u32 before use: that of a
    byte beyond 2 GiB does not fit an i32, but its wrapped sum has the right bits.
    """
    mask = f"0x{(1 << bits) - 1:x}u"
    lanes = 32 // bits
    down, low = f"{lanes.bit_length() - 1}u", f"{lanes - 1}u"
    word = f"{memory}[u32(at) >> {down}]"
    word_value = f"atomicLoad(&{word})" if is_atomic else word
    load, store = f"{memory}_load{bits}", f"{memory}_store{bits}"
    return {
        load: f"""fn {load}(at: i32) -> u32 {{
  return ({word_value} >> ({bits}u * (u32(at) & {low}))) & {mask};
}}""",
        store: f"""fn {store}(at: i32, value: u32) {{
  let shift = {bits}u * (u32(at) & {low});
  atomicAnd(&{word}, ~({mask} << shift));
  atomicOr(&{word}, (value & {mask}) << shift);
}}""",
    }
