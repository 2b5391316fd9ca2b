// What files with kernels that users wrote know of CUDA's runtime, which is in cuda_runtime.h.
#pragma once
#include <stddef.h>

#include <functional>

enum cudaError_t {
  cudaSuccess,
  cudaErrorInvalidValue,
  cudaErrorMemoryAllocation,
  cudaErrorInvalidConfiguration = 9,
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
void launch(const std::function<void()>& call, dim3 blocks, dim3 threads, size_t shared);
cudaError_t most_shared_is(size_t bytes);
template <class Function> cudaError_t cudaFuncSetAttribute(Function*, cudaFuncAttribute, int bytes) {
  return most_shared_is(bytes);
}
