// What CUDA C has and C++ has not, for kernels of rune as g++ compiles them.
#include <math.h>
#include <string.h>

#include <functional>
#include <vector>

#include "kernel.h"

using namespace std;
extern "C" {
extern thread_local Position cuda_blockIdx, cuda_gridDim, cuda_blockDim, cuda_threadIdx;
void cuda_barrier();
void* cuda_pool();
void set_condition(unsigned long long handle, unsigned value);
void device_fault(const char* what);
}
// Neighbours in memory, aligned as on a device.
#define NEIGHBOURS(type, name) \
  struct alignas(2 * sizeof(type)) name##2 { type x, y; }; \
  static inline name##2 make_##name##2(type x, type y) { return {x, y}; } \
  struct alignas(sizeof(type) < 8 ? 4 * sizeof(type) : 16) name##4 { type x, y, z, w; }; \
  static inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
NEIGHBOURS(float, float)
NEIGHBOURS(int, int)
NEIGHBOURS(unsigned, uint)
NEIGHBOURS(double, double)
NEIGHBOURS(long long, longlong)
NEIGHBOURS(unsigned long long, ulonglong)
NEIGHBOURS(short, short)
NEIGHBOURS(unsigned short, ushort)
NEIGHBOURS(signed char, char)
NEIGHBOURS(unsigned char, uchar)
using cudaGraphConditionalHandle = unsigned long long;

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static thread_local
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(threads)
#define blockIdx cuda_blockIdx
#define gridDim cuda_gridDim
#define blockDim cuda_blockDim
#define threadIdx cuda_threadIdx
#define __syncthreads cuda_barrier
#define __syncwarp cuda_barrier
#define cudaGraphSetConditional set_condition

#define __builtin_assume(holds)
template <class T> static inline T __ldg(const T* address) { return *address; }
template <class To, class From> static inline To bits(From from) {
  To to;
  static_assert(sizeof to == sizeof from, "of one size");
  return memcpy(&to, &from, sizeof to), to;
}
static inline unsigned __float_as_uint(float x) { return bits<unsigned>(x); }
static inline float __uint_as_float(unsigned x) { return bits<float>(x); }
static inline long long __double_as_longlong(double x) { return bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return bits<double>(x); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
static inline int __clzll(unsigned long long x) { return x ? __builtin_clzll(x) : 64; }
static inline float from_half(unsigned short x) { return (float)bits<_Float16>(x); }
template <class T> static inline unsigned short to_half(T x) { return bits<unsigned short>((_Float16)x); }

// Blocks of a launch run one after the other, so floats need no more than a sum.
template <class T> static inline T atomicAdd(T* at, T x) { return __atomic_fetch_add(at, x, __ATOMIC_RELAXED); }
template <class T> static inline T summed(T* at, T x) { T old = *at; return *at = old + x, old; }
template <> inline float atomicAdd(float* at, float x) { return summed(at, x); }
template <> inline double atomicAdd(double* at, double x) { return summed(at, x); }
template <class T> static inline T atomicMin(T* at, T x) { T old = *at; return *at = x < old ? x : old, old; }
template <class T> static inline T atomicMax(T* at, T x) { T old = *at; return *at = x > old ? x : old, old; }
// Matrices that a warp holds: here each thread reads what it needs itself. Nobody writes there before
// the next barrier.
struct Matrix {
  const unsigned short* at;
  int of_position, of_depth;
  unsigned short element(int position, int depth) const { return at[position * of_position + depth * of_depth]; }
};
static inline Matrix along(const unsigned short* at, int stride) {
  if ((size_t)at % 16 || stride % 8) device_fault("a row of a matrix is not aligned");
  return {at, stride, 1};
}
static inline Matrix across(const unsigned short* at, int stride) { return along(at, stride), Matrix{at, 1, stride}; }
#define rune_rows along
#define rune_columns along
#define rune_columns_8 along
#define rune_rows_turned across
#define rune_columns_turned across
#define rune_columns_8_turned across
template <class Number> static inline void multiplied(float** sums, int columns, Matrix a, Matrix b, Number number) {
  const int lane = threadIdx.x % 32;
  for (int k = 0; k < 4 * columns; k++) {
    const int row = lane / 4 + k / 2 % 2 * 8, column = lane % 4 * 2 + k % 2 + k / 4 * 8;
    for (int depth = 0; depth < 16; depth++) *sums[k] += number(a.element(row, depth)) * number(b.element(column, depth));
  }
}
static inline float from_bf16(unsigned short x) { return __uint_as_float((unsigned)x << 16); }
#define PRODUCT(name, number) \
  static inline void name##_8(float& a, float& b, float& c, float& d, Matrix rows, Matrix columns) { \
    float* sums[] = {&a, &b, &c, &d}; \
    multiplied(sums, 1, rows, columns, number); \
  } \
  static inline void name(float& a, float& b, float& c, float& d, float& e, float& f, float& g, float& h, \
                          Matrix rows, Matrix columns) { \
    float* sums[] = {&a, &b, &c, &d, &e, &f, &g, &h}; \
    multiplied(sums, 2, rows, columns, number); \
  }
PRODUCT(rune_multiply_bf16, from_bf16)
PRODUCT(rune_multiply_f16, from_half)

// Fetches arrive as late as they may: each with its group, which a barrier ends.
struct Fetch { void* target; char bytes[16]; int size; };
static thread_local std::vector<std::vector<Fetch>> fetches[1024];
static inline std::vector<std::vector<Fetch>>& fetch_groups() {
  auto& groups = fetches[threadIdx.x];
  if (groups.empty()) groups.emplace_back();
  return groups;
}
static inline void fetch(void* target, const void* source, bool guard, int size) {
  if ((size_t)target % size || guard && (size_t)source % size) device_fault("a fetch is not aligned");
  Fetch piece = {target, {}, size};
  if (guard) memcpy(piece.bytes, source, size);
  fetch_groups().back().push_back(piece);
}
static inline void rune_fetch_4(void* target, const void* source, bool guard) { fetch(target, source, guard, 4); }
static inline void rune_fetch_8(void* target, const void* source, bool guard) { fetch(target, source, guard, 8); }
static inline void rune_fetch_16(void* target, const void* source, bool guard) { fetch(target, source, guard, 16); }
static inline void rune_fetch_line_4(void* target, const void* source, bool guard) { fetch(target, source, guard, 4); }
static inline void rune_fetch_line_8(void* target, const void* source, bool guard) { fetch(target, source, guard, 8); }
static inline void rune_fetch_line_16(void* target, const void* source, bool guard) { fetch(target, source, guard, 16); }
static inline void rune_fetches_end() { fetch_groups().emplace_back(); }
// The last of the groups is the one that has not ended.
template <int behind> static inline void rune_fetched_but() {
  auto& groups = fetch_groups();
  while (groups.size() > behind + 1) {
    for (auto& piece : groups.front()) memcpy(piece.target, piece.bytes, piece.size);
    groups.erase(groups.begin());
  }
}
static inline void rune_fetched() { rune_fetches_end(), rune_fetched_but<0>(); }

// Products of four warps, by the tables of the PTX manual: descriptors of matrices, where a swizzled
// layout has its elements, which elements of D a thread has. They are computed as late as they may.
static inline unsigned long long __cvta_generic_to_shared(const void* at) {
  return (const char*)at - (const char*)cuda_pool();
}
struct Descriptor {
  unsigned long long bits;
  int field(int low) const { return (bits >> low & 0x3fff) * 16; }
  // Of the element at a position along M or N, and along K; `across`: M or N are contiguous.
  unsigned short element(int position, int depth, bool across) const {
    if (bits >> 62 != 1 || bits >> 49 & 7) device_fault("a matrix is not one of swizzled lines of 128 bytes");
    const int inside = across ? position % 64 * 2 + position / 64 * field(16) + depth % 8 * 128 + depth / 8 * field(32)
                              : depth * 2 + position % 8 * 128 + position / 8 * field(32);
    const int place = field(0) + inside;
    return *(const unsigned short*)((const char*)cuda_pool() + (place ^ (place >> 7 & 7) << 4));
  }
};
static thread_local std::vector<std::vector<std::function<void()>>> products[1024];
static inline void rune_multiply_begins() { products[threadIdx.x].emplace_back(); }
static inline void rune_multiply_ends() {}
static inline void multiplied_but(size_t behind) {
  auto& groups = products[threadIdx.x];
  while (groups.size() > behind) {
    for (auto& product : groups.front()) product();
    groups.erase(groups.begin());
  }
}
template <int behind> static inline void rune_multiplied_but() { multiplied_but(behind); }
template <class... Sums> static inline void rune_multiplied(Sums&...) { multiplied_but(0); }
template <class Number>
static inline void multiply_later(Descriptor a, Descriptor b, bool a_across, bool b_across, std::vector<float*> sums,
                                  Number number) {
  const int thread = threadIdx.x % 128;
  products[threadIdx.x].back().push_back([=] {
    for (int k = 0; k < (int)sums.size(); k++) {
      const int row = thread / 32 * 16 + thread % 32 / 4 + k / 2 % 2 * 8, column = k / 4 * 8 + thread % 4 * 2 + k % 2;
      for (int depth = 0; depth < 16; depth++)
        *sums[k] += number(a.element(row, depth, a_across)) * number(b.element(column, depth, b_across));
    }
  });
}
#define TOGETHER(name, columns, number) \
  template <int a_across, int b_across, class... Sums> \
  static inline void name##_##columns(unsigned long long a, unsigned long long b, Sums&... sums) { \
    static_assert(sizeof...(sums) == columns / 2, "sums of a thread"); \
    multiply_later({a}, {b}, a_across, b_across, {&sums...}, number); \
  }
#define TOGETHER_ALL(name, number) \
  TOGETHER(name, 64, number) TOGETHER(name, 128, number) TOGETHER(name, 192, number) TOGETHER(name, 256, number)
TOGETHER_ALL(rune_multiply_together_bf16, from_bf16)
TOGETHER_ALL(rune_multiply_together_f16, from_half)
