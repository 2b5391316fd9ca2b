"""The CUDA executor's own kernels: copies, counters, swapped axes, conditions of graphs.

Like a plan's kernels they take the address of their words in a table (graph.py). Those that set a
condition take its handle too, and are a separate program (conditions.py). `rune_swap` is never part
of a graph, and takes its words as arguments.
"""

from __future__ import annotations

# Addresses come from the table and not from parameters, so that one graph can be replayed with
# other buffers. Each thread copies 16 bytes, at once where both addresses are aligned to 16, else
# byte by byte. rune_swap lays out [a, b, pieces] units as [b, a, pieces].
STEPS = """\
extern "C" __global__ void rune_copy(const unsigned long long* table) {
  char* target = (char*)table[0];
  const char* source = (const char*)table[1];
  const unsigned long long bytes = table[2];
  const unsigned long long at = 16ull * ((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x);
  if (target == source || at >= bytes) return;
  if ((table[0] | table[1]) % 16 == 0 && at + 16 <= bytes) {
    *(uint4*)(target + at) = *(const uint4*)(source + at);
    return;
  }
  for (unsigned long long k = at; k < at + 16 && k < bytes; k++) target[k] = source[k];
}

extern "C" __global__ void rune_store(const unsigned long long* table) {
  *(int*)table[0] = (int)table[1];
}

extern "C" __global__ void rune_advance(const unsigned long long* table) {
  ++*(int*)table[0];
}

extern "C" __global__ void rune_swap(unsigned long long target, unsigned long long source,
    unsigned long long a, unsigned long long b, unsigned long long pieces, unsigned long long unit) {
  const unsigned long long at = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= a * b * pieces) return;
  const unsigned long long row = at / pieces, i = row % a, j = row / a;
  const unsigned long long from = (i * b + j) * pieces + at % pieces;
  if (unit == 16) ((uint4*)target)[at] = ((const uint4*)source)[from];
  else if (unit == 8) ((unsigned long long*)target)[at] = ((const unsigned long long*)source)[from];
  else if (unit == 4) ((unsigned int*)target)[at] = ((const unsigned int*)source)[from];
  else ((char*)target)[at] = ((const char*)source)[from];
}
"""

CONDITIONS = """\
extern "C" __device__ __cudart_builtin__ void CUDARTAPI cudaGraphSetConditional(
    cudaGraphConditionalHandle handle, unsigned int value);

extern "C" __global__ void rune_goes_on(
    const unsigned long long* table, const cudaGraphConditionalHandle handle) {
  const int counter = *(const int*)table[0];
  const long long count = (long long)table[1];
  const unsigned char* holds = (const unsigned char*)table[2];
  const bool below = count < 0 || counter < count;
  cudaGraphSetConditional(handle, below && (holds == 0 || *holds != 0));
}

extern "C" __global__ void rune_is_odd(
    const unsigned long long* table, const cudaGraphConditionalHandle handle) {
  cudaGraphSetConditional(handle, *(const int*)table[0] & 1);
}

extern "C" __global__ void rune_chosen(
    const unsigned long long* table, const cudaGraphConditionalHandle handle) {
  const int number = *(const int*)table[0], chosen = (int)table[1], last = (int)table[2];
  const int nearest = number < 0 ? 0 : number > last ? last : number;
  cudaGraphSetConditional(handle, nearest == chosen);
}
"""
