"""Functions of CUDA C for matrix units, and for asynchronous copies into shared memory.

`ldmatrix` loads matrices of 8 x 8 halves into the threads of a warp in the layout of `mma`: each of
8 threads gives the address of one row of 16 bytes. Rows along the sum are loaded as they are, rows
along the positions (`turned`) with `.trans`. Devices of compute capability 8.0 and later have all
of these.
Source: PTX ISA, "ldmatrix", "mma.m16n8k16", "cp.async".
"""

from __future__ import annotations

FUNCTION = "static __device__ "
FETCHED_BYTES = (4, 8, 16)

# The row that a thread addresses: the first 16 below each other, the others 8 further along.
_BELOW = "lane % 16 * stride + lane / 16 * 8"
# ... by eights: two side by side, and then two below them.
_BESIDE = "(lane % 8 + lane / 16 * 8) * stride + lane / 8 % 2 * 8"


def _matrices(name: str, place: str, count: int, is_transposed: bool) -> str:
    """A function that reads 4 or 2 matrices."""
    parts = "xyzw"[:count]
    registers = ", ".join(f"%{k}" for k in range(count))
    results = ", ".join(f'"=r"(all.{part})' for part in parts)
    suffix = ".trans" * is_transposed
    return f"""{FUNCTION}uint{count} {name}(const unsigned short* at, int stride) {{
  const int lane = threadIdx.x % 32;
  const unsigned int from = (unsigned int)__cvta_generic_to_shared(at + {place});
  uint{count} all;
  asm volatile("ldmatrix.sync.aligned.m8n8.x{count}{suffix}.shared.b16 {{{registers}}}, [%{count}];"
      : {results} : "r"(from) : "memory");
  return all;
}}"""


def _multiply(name: str, dtype: str) -> str:
    """A function that multiplies 16 rows by 8 columns."""
    return f"""{FUNCTION}void {name}_8(float& a, float& b, float& c, float& d, uint4 rows, uint2 columns) {{
  asm("mma.sync.aligned.m16n8k16.row.col.f32.{dtype}.{dtype}.f32"
      " {{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};"
      : "+f"(a), "+f"(b), "+f"(c), "+f"(d)
      : "r"(rows.x), "r"(rows.y), "r"(rows.z), "r"(rows.w), "r"(columns.x), "r"(columns.y));
}}"""


def _multiply_wide(name: str) -> str:
    """... by 16 columns."""
    return f"""{FUNCTION}void {name}(float& a, float& b, float& c, float& d, float& e, float& f, float& g,
    float& h, uint4 rows, uint4 columns) {{
  {name}_8(a, b, c, d, rows, make_uint2(columns.x, columns.y));
  {name}_8(e, f, g, h, rows, make_uint2(columns.z, columns.w));
}}"""


def fetch(name: str, size: int, hint: str = "") -> str:
    """A function that copies `size` bytes into shared memory while the thread continues."""
    # Only whole pieces of 16 bytes may bypass L1.
    kind = "cg" if size == max(FETCHED_BYTES) else "ca"
    return f"""{FUNCTION}void {name}(void* target, const void* source, bool guard) {{
  const unsigned int to = (unsigned int)__cvta_generic_to_shared(target);
  asm volatile("cp.async.{kind}.shared.global{hint} [%0], [%1], {size}, %2;"
      :: "r"(to), "l"(source), "r"(guard ? {size} : 0) : "memory");
}}"""


UNITS = {
    "rune_rows": _matrices("rune_rows", _BELOW, 4, is_transposed=False),
    "rune_rows_turned": _matrices("rune_rows_turned", _BESIDE, 4, is_transposed=True),
    "rune_columns": _matrices("rune_columns", _BESIDE, 4, is_transposed=False),
    "rune_columns_turned": _matrices("rune_columns_turned", _BELOW, 4, is_transposed=True),
    "rune_columns_8": _matrices("rune_columns_8", "lane % 8 * stride + lane / 8 % 2 * 8", 2, is_transposed=False),
    "rune_columns_8_turned": _matrices("rune_columns_8_turned", "lane % 16 * stride", 2, is_transposed=True),
    **{f"rune_multiply_{t}_8": _multiply(f"rune_multiply_{t}", t) for t in ("bf16", "f16")},
    **{f"rune_multiply_{t}": _multiply_wide(f"rune_multiply_{t}") for t in ("bf16", "f16")},
    **{f"rune_fetch_{size}": fetch(f"rune_fetch_{size}", size) for size in FETCHED_BYTES},
    "rune_fetched": f"""{FUNCTION}void rune_fetched() {{
  asm volatile("cp.async.wait_all;" ::: "memory");
}}""",
}
