// What CUDA C has and C++ has not, for kernels of rune as g++ compiles them.
#include <math.h>
#include <string.h>

#include <vector>

#include "kernel.h"

using namespace std;
extern "C" {
extern thread_local Position cuda_blockIdx, cuda_blockDim, cuda_threadIdx;
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
#define __shared__ static thread_local
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(threads)
#define blockIdx cuda_blockIdx
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

// Fetches arrive as late as they may.
struct Fetch { void* target; char bytes[16]; int size; };
static thread_local std::vector<Fetch> fetches[1024];
static inline void fetch(void* target, const void* source, bool guard, int size) {
  if ((size_t)target % size || guard && (size_t)source % size) device_fault("a fetch is not aligned");
  Fetch piece = {target, {}, size};
  if (guard) memcpy(piece.bytes, source, size);
  fetches[threadIdx.x].push_back(piece);
}
static inline void rune_fetch_4(void* target, const void* source, bool guard) { fetch(target, source, guard, 4); }
static inline void rune_fetch_8(void* target, const void* source, bool guard) { fetch(target, source, guard, 8); }
static inline void rune_fetch_16(void* target, const void* source, bool guard) { fetch(target, source, guard, 16); }
static inline void rune_fetched() {
  for (auto& piece : fetches[threadIdx.x]) memcpy(piece.target, piece.bytes, piece.size);
  fetches[threadIdx.x].clear();
}
