"""Functions of CUDA C for products of four warps together, for compute capability 9.0.

Both factors lie in shared memory, as their descriptors define: lines of 128 bytes, eight of which
make up a block of 1024 bytes that begins at a multiple of it, and whose pieces of 16 bytes are
swizzled: the n-th of line m lies at n ^ m % 8. Lines are along the sum or across (the numbers in
angle brackets); across, the next 64 positions lie `next` elements further.

A product continues after its statement. Its sums must not be touched before `rune_multiplied`;
`rune_left_behind` waits for all products but the last few. Units see what threads have fetched or
written into shared memory only after a fence.
Source: PTX ISA, "wgmma.mma_async", "Matrix Descriptor", "Async proxy".
"""

from __future__ import annotations

from rune.lowering.codegen.c.cuda_units import FETCHED_BYTES, FUNCTION, fetch

_INLINE = f"{FUNCTION}__forceinline__ "
_COLUMNS = (64, 128, 192, 256)


def _multiply(name: str, dtype: str, columns: int) -> str:
    """A function that multiplies 64 rows by a number of columns, over a depth of 16."""
    count = columns // 2
    sums = ", ".join(f"float& s{k}" for k in range(count))
    registers = ", ".join(f"%{k}" for k in range(count))
    outputs = ", ".join(f'"+f"(s{k})' for k in range(count))
    return f"""template <int rows_across, int columns_across>
{_INLINE}void {name}(unsigned long long a, unsigned long long b, {sums}) {{
  asm volatile("{{ .reg .pred adds; setp.eq.u32 adds, 0, 0;"
      " wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.{dtype}.{dtype}"
      " {{{registers}}}, %{count}, %{count + 1}, adds, 1, 1, %{count + 2}, %{count + 3}; }}"
      : {outputs} : "l"(a), "l"(b), "n"(rows_across), "n"(columns_across));
}}"""


TEAMS = {
    **{
        f"rune_multiply_together_{dtype}_{columns}": _multiply(
            f"rune_multiply_together_{dtype}_{columns}", dtype, columns
        )
        for dtype in ("bf16", "f16")
        for columns in _COLUMNS
    },
    "rune_multiply_begins": f"""{_INLINE}void rune_multiply_begins() {{
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}}""",
    "rune_multiply_ends": f"""{_INLINE}void rune_multiply_ends() {{
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}}""",
    "rune_multiplied_but": f"""template <int behind>
{_INLINE}void rune_multiplied_but() {{
  asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(behind) : "memory");
}}""",
    # Fetches since the last barrier form a group, even if there are none.
    "rune_fetches_end": f"""{_INLINE}void rune_fetches_end() {{
  asm volatile("cp.async.commit_group;" ::: "memory");
}}""",
    "rune_fetched_but": f"""template <int behind>
{_INLINE}void rune_fetched_but() {{
  asm volatile("cp.async.wait_group %0; fence.proxy.async.shared::cta;" :: "n"(behind) : "memory");
}}""",
    # Panels consist of whole lines, so L2 may fetch a line at once.
    **{f"rune_fetch_line_{size}": fetch(f"rune_fetch_line_{size}", size, ".L2::128B") for size in FETCHED_BYTES},
    # Each sum is an operand, so that a compiler reads no sum earlier.
    "rune_multiplied": f"""template <class... Sums>
{_INLINE}void rune_multiplied(Sums&... sums) {{
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  (rune_pinned(sums), ...);
}}""",
    "rune_pinned": f"""{_INLINE}void rune_pinned(float& sum) {{
  asm volatile("" : "+f"(sum) :: "memory");
}}""",
}
MATRICES = {
    # The fence waits for all fetches of a thread, so threads that need no fence skip it. Bit n of
    # `writes` says that the thread fetched n barriers ago, bit 31 that it stored by itself.
    "rune_left_behind": f"""template <int products, int fetches>
{_INLINE}void rune_left_behind(unsigned int& writes) {{
  rune_multiplied_but<products>();
  rune_fetches_end();
  if (writes >> fetches) {{
    rune_fetched_but<fetches>();
    writes &= (1u << fetches) - 1;
  }}
  writes <<= 1;
}}""",
    "rune_swizzled": f"""{_INLINE}int rune_swizzled(int element) {{
  return element ^ (element >> 3 & 56);
}}""",
    # From low to high: where it begins, the next 64 positions across, the next eight lines, 128
    # bytes of a swizzled line; distances in 16 bytes.
    "rune_matrix": f"""{_INLINE}unsigned long long rune_matrix(const unsigned short* at, int next) {{
  const unsigned long long begin = __cvta_generic_to_shared(at);
  return begin >> 4 | (unsigned long long)(next / 8) << 16 | 64ull << 32 | 1ull << 62;
}}""",
}
