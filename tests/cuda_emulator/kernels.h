// What CUDA C has and C++ has not, for kernels of rune as g++ compiles them.
#include <math.h>
#include <string.h>

#include "kernel.h"

using namespace std;
extern "C" {
extern thread_local Position cuda_blockIdx, cuda_blockDim, cuda_threadIdx;
void cuda_barrier();
void* cuda_pool();
void set_condition(unsigned long long handle, unsigned value);
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
#define cudaGraphSetConditional set_condition

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
