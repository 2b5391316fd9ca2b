// CUDA's runtime for folders of source that g++ compiles: what their hosts call, over blocks.cpp.
//
// Memory of the device can be touched by copies and kernels alone, begins as bytes that are not a
// number, and is followed by bytes that nobody may change.
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../blocks.h"
#include "launches.h"

enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };

static const size_t DEVICE_BYTES = 64 << 20, GUARD_BYTES = 256;
static const unsigned char UNWRITTEN = 0xff, GUARD = 0xa5;
struct Allocation { unsigned char* at; size_t bytes; };
static unsigned char* device;
static size_t device_end;
static Allocation allocations[1024];
static int allocation_count, launches, freed;

void fault(const char* what) {
  printf("fault: %s\n", what);
  exit(3);
}
extern "C" void set_condition(unsigned long long, unsigned) { fault("a condition without a graph"); }

// While one lives, this thread works on the device.
struct OnDevice {
  OnDevice() { if (device) mprotect(device, DEVICE_BYTES, PROT_READ | PROT_WRITE); }
  ~OnDevice() { if (device) mprotect(device, DEVICE_BYTES, PROT_NONE); }
};

static Allocation* allocation_of(const void* at, size_t bytes) {
  for (int k = 0; k < allocation_count; k++) {
    const unsigned char *first = allocations[k].at, *p = (const unsigned char*)at;
    if (first && p >= first && p + bytes <= first + allocations[k].bytes) return &allocations[k];
  }
  return nullptr;
}
static inline void check_guards() {
  for (int k = 0; k < allocation_count; k++)
    for (size_t byte = 0; allocations[k].at && byte < GUARD_BYTES; byte++)
      if (allocations[k].at[allocations[k].bytes + byte] != GUARD) fault("a kernel wrote beyond a buffer");
}

static inline cudaError_t cudaMalloc(void** at, size_t bytes) {
  if (!device) device = (unsigned char*)mmap(0, DEVICE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  OnDevice now;
  if (allocation_count == 1024 || device_end + bytes + 2 * GUARD_BYTES > DEVICE_BYTES) return cudaErrorMemoryAllocation;
  unsigned char* first = device + device_end;
  memset(first, UNWRITTEN, bytes);
  memset(first + bytes, GUARD, GUARD_BYTES);
  device_end += (bytes + 2 * GUARD_BYTES) / GUARD_BYTES * GUARD_BYTES;
  allocations[allocation_count++] = {first, bytes};
  return *at = first, cudaSuccess;
}
static inline cudaError_t cudaFree(void* at) {
  Allocation* known = allocation_of(at, 0);
  if (!known || known->at != at) fault("memory is freed that is not there");
  return freed++, known->at = nullptr, cudaSuccess;
}
static inline cudaError_t cudaMemcpy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind) {
  const bool to = allocation_of(target, bytes), from = allocation_of(source, bytes);
  if (to != (kind != cudaMemcpyDeviceToHost) || from != (kind != cudaMemcpyHostToDevice)) fault("a copy of other memory");
  OnDevice now;
  return memmove(target, source, bytes), cudaSuccess;
}
#define cudaMemcpyAsync cudaMemcpy
static inline cudaError_t cudaGetLastError() { return cudaSuccess; }
static inline cudaError_t cudaDeviceSynchronize() {
  OnDevice now;
  return check_guards(), cudaSuccess;
}

// kernel<<<blocks, threads, shared>>>(table)
static inline void launch(const Kernel& kernel, unsigned blocks, unsigned threads, int shared,
                          const unsigned long long* table) {
  if (!blocks || !threads || threads > 1024 || shared > 48 << 10) fault("a launch that no device takes");
  if (kernel.most_threads && threads > (unsigned)kernel.most_threads) fault("more threads than the kernel is for");
  OnDevice now;
  launches++;
  run_blocks(kernel, {blocks, 1, 1}, {threads, 1, 1}, {(unsigned long long)table});
}

// kernel<<<blocks, threads, shared>>>(arguments)
static size_t most_shared = 48 << 10;
cudaError_t most_shared_is(size_t bytes) { return most_shared = bytes, cudaSuccess; }
void launch(const std::function<void()>& call, dim3 blocks, dim3 threads, size_t shared) {
  const unsigned group = threads.x * threads.y * threads.z;
  if (!blocks.x || !blocks.y || !blocks.z || !group || group > 1024) fault("a launch that no device takes");
  if (shared > most_shared || shared > POOL_BYTES) fault("more shared memory than the kernel asked for");
  most_shared = 48 << 10;
  const Kernel kernel = {[](const unsigned long long* words) { (*(const std::function<void()>*)words[0])(); }, 1, 0, 1};
  OnDevice now;
  launches++;
  run_blocks(kernel, {blocks.x, blocks.y, blocks.z}, {threads.x, threads.y, threads.z}, {(unsigned long long)&call});
}
