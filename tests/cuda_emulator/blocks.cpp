// See blocks.h. A block runs in the thread of its stream; barriers switch fibres.
#include "blocks.h"

#include <ucontext.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

extern "C" {
__attribute__((visibility("default"))) thread_local Position cuda_blockIdx, cuda_gridDim, cuda_blockDim, cuda_threadIdx;
}

static const size_t STACK_BYTES = 128 << 10;
struct Fibre {
  ucontext_t context;
  std::unique_ptr<char[]> stack{new char[STACK_BYTES]};
  bool has_ended;
};
static thread_local std::vector<std::unique_ptr<Fibre>> fibres;
static thread_local ucontext_t outside;
static thread_local Fibre* current;
static thread_local const Kernel* running;
static thread_local const Words* arguments;
static thread_local std::mt19937 random_numbers{1};

extern "C" __attribute__((visibility("default"))) void cuda_barrier() {
  if (current) swapcontext(&current->context, &outside);
}
extern "C" __attribute__((visibility("default"))) void* cuda_pool() {
  alignas(1024) static thread_local char pool[POOL_BYTES];
  return pool;
}

extern "C" __attribute__((visibility("default"))) void device_fault(const char* what) { fault(what); }

static void begin() {
  running->run(arguments->data());
  current->has_ended = true;
}

static unsigned count(Position extents) { return extents.x * extents.y * extents.z; }
static Position position(unsigned number, Position extents) {
  return {number % extents.x, number / extents.x % extents.y, number / extents.x / extents.y};
}

// Run each fibre until its next barrier, in random order; the number of those that wait there.
static unsigned phase(std::vector<unsigned>& order) {
  std::shuffle(order.begin(), order.end(), random_numbers);
  unsigned waiting = 0;
  for (unsigned thread : order) {
    current = fibres[thread].get();
    if (current->has_ended) continue;
    cuda_threadIdx = position(thread, cuda_blockDim);
    swapcontext(&outside, &current->context);
    waiting += !current->has_ended;
  }
  current = nullptr;
  return waiting;
}

static void run_fibres(unsigned threads) {
  while (fibres.size() < threads) fibres.push_back(std::make_unique<Fibre>());
  std::vector<unsigned> order(threads);
  for (unsigned thread = 0; thread < threads; thread++) {
    auto& fibre = *fibres[order[thread] = thread];
    fibre.has_ended = false;
    getcontext(&fibre.context);
    fibre.context.uc_stack.ss_sp = fibre.stack.get();
    fibre.context.uc_stack.ss_size = STACK_BYTES;
    fibre.context.uc_link = &outside;
    makecontext(&fibre.context, begin, 0);
  }
  while (unsigned waiting = phase(order))
    if (waiting != threads) return fault("a barrier was reached by some threads of a block only");
}

void run_blocks(const Kernel& kernel, Position blocks, Position threads, const Words& words) {
  running = &kernel;
  arguments = &words;
  cuda_gridDim = blocks;
  cuda_blockDim = threads;
  for (unsigned block = 0; block < count(blocks); block++) {
    cuda_blockIdx = position(block, blocks);
    if (kernel.has_barriers) {
      run_fibres(count(threads));
      continue;
    }
    for (unsigned thread = 0; thread < count(threads); thread++) {
      cuda_threadIdx = position(thread, threads);
      kernel.run(words.data());
    }
  }
}
