"""Functions that WGSL lacks, or defines less strictly than kernel/scalar.py, as WGSL text.

A module that mentions `rune_less` gets that function, and those that it mentions itself. Compilers
of WGSL may assume that there is no NaN or infinity, may drop a sum with 0 and may reassociate, so:

    rune_zero     a word that is 0, which only the launch knows: `args.zero` and bits of the group's
                  number. `args.zero` alone will not do: drivers compile a uniform in as a constant
                  where it decides a branch, and then nothing is hidden any more
    rune_pin      hides where a float came from: it is xored with rune_zero. What is pinned is
                  neither contracted nor reassociated
    rune_float    makes a float of bits; NaN and infinity cannot be constant expressions
    rune_order    maps a float to an integer in the order of the numbers, -0 and 0 to 0. By these
                  floats are compared: denormals are numbers

Shifts and divisions go through functions where their operands might be constant expressions that
WGSL refuses. u64 is wide.py's.
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

    Several threads may write into one word, each its own bits, so that two atomic operations put
    a value in place. A position has no sign: that of a byte behind 2 GiB of a buffer is beyond i32,
    in which sums wrap.
    """
    mask = f"0x{(1 << bits) - 1:x}u"
    lanes = 32 // bits
    down, low = f"{lanes.bit_length() - 1}u", f"{lanes - 1}u"
    word = f"{memory}[u32(at) >> {down}]"
    loaded = f"atomicLoad(&{word})" if is_atomic else word
    load, store = f"{memory}_load{bits}", f"{memory}_store{bits}"
    return {
        load: f"""fn {load}(at: i32) -> u32 {{
  return ({loaded} >> ({bits}u * (u32(at) & {low}))) & {mask};
}}""",
        store: f"""fn {store}(at: i32, value: u32) {{
  let shift = {bits}u * (u32(at) & {low});
  atomicAnd(&{word}, ~({mask} << shift));
  atomicOr(&{word}, (value & {mask}) << shift);
}}""",
    }
