// A CUDA driver whose device is the host: memory is host memory, kernels are host code.
//
// Each stream has a thread that does what is enqueued, in order, while the host goes on. A module
// is a shared library (kernels.h), which g++ made of rune's CUDA C; the threads of a block that
// meets barriers are fibres, which go on in random order after each of them. Copies from and to
// memory that is not pinned behave as the driver's documentation says.
// What goes wrong on the device (a barrier that some threads miss, a write past the end of an
// allocation, a copy outside of one) is printed, and loses the context: every later call fails.
// Not here: several devices, the memory model, timing that means anything.
#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <queue>
#include <string>
#include <thread>
#include <vector>

#include "blocks.h"

using Word = unsigned long long;
enum Code {
  SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_DEVICE = 101, INVALID_IMAGE = 200,
  INVALID_CONTEXT = 201, NOT_FOUND = 500, NOT_READY = 600, LAUNCH_FAILED = 719, NOT_SUPPORTED = 801
};
#define API extern "C" __attribute__((visibility("default"))) int
#define WITH_CONTEXT \
  if (contexts.empty() || !contexts.back()) return INVALID_CONTEXT; \
  if (is_lost) return LAUNCH_FAILED;

static std::atomic<bool> is_lost{false};
void fault(const char* what) {
  fprintf(stderr, "emulated CUDA device: %s\n", what);
  is_lost = true;
}

// --- devices and contexts ------------------------------------------------------------------------
static int primary;  // the context of the only device: its address is the handle
static thread_local std::vector<void*> contexts;
static const size_t TOTAL_BYTES = size_t(2) << 30;
static const unsigned DECLARED_SHARED = 48 << 10;

API cuInit(unsigned) { return SUCCESS; }
API cuDriverGetVersion(int* version) { return *version = 13050, SUCCESS; }
// NVRTC asks for it, and does without.
API cuGetExportTable(const void** table, const void*) { return *table = nullptr, NOT_FOUND; }
API cuDeviceGetCount(int* count) { return *count = 1, SUCCESS; }
API cuDeviceGet(int* device, int number) { return number ? INVALID_DEVICE : (*device = 0, SUCCESS); }
API cuDeviceGetName(char* name, int room, int) { return snprintf(name, room, "Emulated"), SUCCESS; }
API cuDeviceTotalMem_v2(size_t* bytes, int) { return *bytes = TOTAL_BYTES, SUCCESS; }
API cuDeviceGetAttribute(int* value, int attribute, int) {
  static const std::map<int, int> known = {
      {1, 1024},  // MAX_THREADS_PER_BLOCK
      {8, DECLARED_SHARED}, {10, 32}, {16, 132},  // ..., WARP_SIZE, MULTIPROCESSOR_COUNT
      {17, 0}, {18, 0},  // KERNEL_EXEC_TIMEOUT, INTEGRATED
      {75, 9}, {76, 0}, {97, POOL_BYTES}};  // COMPUTE_CAPABILITY_*, MAX_SHARED_.._OPTIN
  auto at = known.find(attribute);
  return at == known.end() ? INVALID_VALUE : (*value = at->second, SUCCESS);
}
API cuDevicePrimaryCtxRetain(void** context, int) { return *context = &primary, SUCCESS; }
API cuCtxPushCurrent_v2(void* context) { return contexts.push_back(context), SUCCESS; }
API cuCtxPopCurrent_v2(void** context) {
  if (contexts.empty()) return INVALID_CONTEXT;
  if (context) *context = contexts.back();
  return contexts.pop_back(), SUCCESS;
}
API cuCtxGetCurrent(void** context) {
  return *context = contexts.empty() ? nullptr : contexts.back(), SUCCESS;
}

// --- streams and events --------------------------------------------------------------------------
struct Stream {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> queue;
  size_t enqueued = 0, done = 0;

  Stream() { std::thread([this] { work(); }).detach(); }
  void work() {
    for (;;) {
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [&] { return !queue.empty(); });
      auto next = std::move(queue.front());
      queue.pop_front();
      lock.unlock();
      if (!is_lost) next();
      lock.lock();
      done++;
      changed.notify_all();
    }
  }
  size_t put(std::function<void()> action) {
    std::lock_guard<std::mutex> lock(mutex);
    queue.push_back(std::move(action));
    changed.notify_all();
    return ++enqueued;
  }
  void wait(size_t until) {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return done >= until; });
  }
  size_t last() { return std::lock_guard<std::mutex>(mutex), enqueued; }
  bool has_done(size_t until) { return std::lock_guard<std::mutex>(mutex), done >= until; }
};

static std::mutex streams_mutex;
static std::vector<Stream*> streams;  // never freed: their threads live as long as the process
static Stream* new_stream() {
  std::lock_guard<std::mutex> lock(streams_mutex);
  streams.push_back(new Stream);
  return streams.back();
}
// 0, 1 and 2 are the driver's default streams, which are one here.
static Stream* stream_of(void* handle) {
  static Stream* common = new_stream();
  return Word(handle) <= 2 ? common : (Stream*)handle;
}
static std::vector<Stream*> all_streams() {
  std::lock_guard<std::mutex> lock(streams_mutex);
  return streams;
}
static void drain() { for (auto stream : all_streams()) stream->wait(stream->last()); }
static bool is_busy() {
  for (auto stream : all_streams()) if (!stream->has_done(stream->last())) return true;
  return false;
}
static int outcome() { return is_lost ? LAUNCH_FAILED : SUCCESS; }

struct Event {
  Stream* stream = nullptr;
  size_t behind = 0;
  std::shared_ptr<double> time = std::make_shared<double>(0);
};
static double milliseconds() {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

API cuCtxSynchronize() { WITH_CONTEXT drain(); return outcome(); }
API cuStreamCreate(void** stream, unsigned) { WITH_CONTEXT *stream = new_stream(); return SUCCESS; }
API cuStreamSynchronize(void* handle) {
  WITH_CONTEXT
  auto stream = stream_of(handle);
  return stream->wait(stream->last()), outcome();
}
API cuStreamWaitEvent(void* handle, Event* event, unsigned) {
  WITH_CONTEXT
  auto stream = event->stream;
  auto behind = event->behind;
  if (stream) stream_of(handle)->put([=] { stream->wait(behind); });
  return SUCCESS;
}
// Until the number there has come to be `number` or later, counted round 2^32.
API cuStreamWaitValue32_v2(void* handle, volatile uint32_t* word, uint32_t number, unsigned) {
  WITH_CONTEXT
  stream_of(handle)->put([=] {
    while (int32_t(*word - number) < 0) std::this_thread::sleep_for(std::chrono::microseconds(10));
  });
  return SUCCESS;
}
API cuEventCreate(Event** event, unsigned) { WITH_CONTEXT *event = new Event; return SUCCESS; }
API cuEventDestroy_v2(Event* event) { return delete event, SUCCESS; }
API cuEventRecord(Event* event, void* handle) {
  WITH_CONTEXT
  auto time = event->time;
  event->stream = stream_of(handle);
  event->behind = event->stream->put([time] { *time = milliseconds(); });
  return SUCCESS;
}
API cuEventQuery(Event* event) {
  WITH_CONTEXT
  return !event->stream || event->stream->has_done(event->behind) ? SUCCESS : NOT_READY;
}
API cuEventSynchronize(Event* event) {
  WITH_CONTEXT
  if (event->stream) event->stream->wait(event->behind);
  return outcome();
}
API cuEventElapsedTime_v2(float* time, Event* start, Event* end) {
  return *time = float(*end->time - *start->time), SUCCESS;
}

// --- memory --------------------------------------------------------------------------------------
static const size_t GUARD_BYTES = 512;
static const unsigned char UNWRITTEN = 0xA5;
using Spans = std::map<Word, size_t>;  // bytes by address
static std::mutex memory_mutex;
static Spans device_memory, pinned_memory;
static size_t granted_bytes;

static bool lies_in(const Spans& spans, Word address, size_t bytes) {
  std::lock_guard<std::mutex> lock(memory_mutex);
  auto after = spans.upper_bound(address);
  if (after == spans.begin()) return false;
  --after;
  return address + bytes <= after->first + after->second;
}
static bool is_on_device(Word address, size_t bytes) {
  if (lies_in(device_memory, address, bytes)) return true;
  return fault("a copy outside of allocated memory"), false;
}

API cuMemAlloc_v2(Word* address, size_t bytes) {
  WITH_CONTEXT
  std::lock_guard<std::mutex> lock(memory_mutex);
  if (!bytes) return INVALID_VALUE;
  if (granted_bytes + bytes > TOTAL_BYTES) return OUT_OF_MEMORY;
  void* memory = nullptr;
  if (posix_memalign(&memory, 512, bytes + GUARD_BYTES)) return OUT_OF_MEMORY;
  memset(memory, UNWRITTEN, bytes + GUARD_BYTES);
  granted_bytes += bytes;
  device_memory[*address = Word(memory)] = bytes;
  return SUCCESS;
}
API cuMemFree_v2(Word address) {
  WITH_CONTEXT
  drain();
  std::lock_guard<std::mutex> lock(memory_mutex);
  auto span = device_memory.find(address);
  if (span == device_memory.end()) return INVALID_VALUE;
  auto guard = (unsigned char*)address + span->second;
  for (size_t k = 0; k < GUARD_BYTES; k++)
    if (guard[k] != UNWRITTEN) { fault("memory was written past the end of an allocation"); break; }
  granted_bytes -= span->second;
  device_memory.erase(span);
  return free((void*)address), SUCCESS;
}
API cuMemGetInfo_v2(size_t* unused, size_t* total) {
  WITH_CONTEXT
  std::lock_guard<std::mutex> lock(memory_mutex);
  return *unused = TOTAL_BYTES - granted_bytes, *total = TOTAL_BYTES, SUCCESS;
}
API cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  WITH_CONTEXT
  if (posix_memalign(memory, 4096, bytes)) return OUT_OF_MEMORY;
  std::lock_guard<std::mutex> lock(memory_mutex);
  pinned_memory[Word(*memory)] = bytes;
  return SUCCESS;
}
API cuMemcpyHtoDAsync_v2(Word target, const void* source, size_t bytes, void* handle) {
  WITH_CONTEXT
  if (!is_on_device(target, bytes)) return INVALID_VALUE;
  if (lies_in(pinned_memory, Word(source), bytes)) {
    stream_of(handle)->put([=] { memcpy((void*)target, source, bytes); });
    return SUCCESS;
  }
  auto begin = (const char*)source;  // of pageable memory the driver makes a copy first
  auto copy = std::make_shared<std::vector<char>>(begin, begin + bytes);
  stream_of(handle)->put([=] { memcpy((void*)target, copy->data(), bytes); });
  return SUCCESS;
}
API cuMemcpyDtoHAsync_v2(void* target, Word source, size_t bytes, void* handle) {
  WITH_CONTEXT
  if (!is_on_device(source, bytes)) return INVALID_VALUE;
  auto stream = stream_of(handle);
  auto behind = stream->put([=] { memcpy(target, (void*)source, bytes); });
  if (!lies_in(pinned_memory, Word(target), bytes)) stream->wait(behind);
  return outcome();
}
API cuMemcpyDtoDAsync_v2(Word target, Word source, size_t bytes, void* handle) {
  WITH_CONTEXT
  if (!is_on_device(target, bytes) || !is_on_device(source, bytes)) return INVALID_VALUE;
  stream_of(handle)->put([=] { memmove((void*)target, (void*)source, bytes); });
  return SUCCESS;
}
API cuMemsetD32Async(Word target, unsigned number, size_t count, void* handle) {
  WITH_CONTEXT
  if (!is_on_device(target, 4 * count)) return INVALID_VALUE;
  stream_of(handle)->put([=] { for (size_t k = 0; k < count; k++) ((unsigned*)target)[k] = number; });
  return SUCCESS;
}
API cuMemsetD8Async(Word target, unsigned char number, size_t count, void* handle) {
  WITH_CONTEXT
  if (!is_on_device(target, count)) return INVALID_VALUE;
  stream_of(handle)->put([=] { memset((void*)target, number, count); });
  return SUCCESS;
}

// --- modules and launches ------------------------------------------------------------------------
struct Function { const Kernel* kernel; unsigned most_shared = DECLARED_SHARED; };
struct Launch {
  const Kernel* kernel;
  Position blocks, threads;
  Words words;
  void operator()() const { run_blocks(*kernel, blocks, threads, words); }
};

API cuModuleLoadData(void** module, const void* image) {
  WITH_CONTEXT
  auto header = (const Elf64_Ehdr*)image;
  if (memcmp(header->e_ident, ELFMAG, SELFMAG)) return INVALID_IMAGE;
  // The table of sections is the end of what a linker writes.
  size_t bytes = header->e_shoff + size_t(header->e_shentsize) * header->e_shnum;
  int file = memfd_create("module", MFD_CLOEXEC);
  if (file < 0 || write(file, image, bytes) != ssize_t(bytes)) return OUT_OF_MEMORY;
  auto path = "/proc/self/fd/" + std::to_string(file);
  // The file stays open, so each has a name of its own: what is loaded by one name is loaded once.
  *module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!*module) fprintf(stderr, "emulated CUDA device: %s\n", dlerror());
  return *module ? SUCCESS : INVALID_IMAGE;
}
API cuModuleUnload(void* module) {
  WITH_CONTEXT
  if (is_busy()) fault("a module was unloaded while work was pending");
  return outcome();  // it stays, as functions of it may be in tables of the process
}
API cuModuleGetFunction(Function** function, void* module, const char* name) {
  WITH_CONTEXT
  auto kernel = (const Kernel*)dlsym(module, (std::string("kernel_") + name).c_str());
  return kernel ? (*function = new Function{kernel}, SUCCESS) : NOT_FOUND;
}
API cuFuncSetAttribute(Function* function, int attribute, int value) {
  WITH_CONTEXT
  if (attribute != 8 || value > POOL_BYTES) return INVALID_VALUE;
  return function->most_shared = value, SUCCESS;
}

static int launch_of(Launch& launch, const Function* f, Position grid, Position block, unsigned shared, void** params) {
  auto most = f->kernel->most_threads ? f->kernel->most_threads : 1024;
  if (!grid.x || grid.x > 0x7fffffffu || grid.y - 1 > 65534u || grid.z - 1 > 65534u) return INVALID_VALUE;
  if (!block.x || !block.y || !block.z || block.z > 64) return INVALID_VALUE;
  if (Word(block.x) * block.y * block.z > unsigned(most)) return INVALID_VALUE;
  if (shared > f->most_shared) return INVALID_VALUE;
  launch = {f->kernel, grid, block, {}};
  for (int k = 0; k < f->kernel->params; k++) launch.words[k] = *(Word*)params[k];
  return SUCCESS;
}
API cuLaunchKernel(Function* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void* stream, void** params, void**) {
  WITH_CONTEXT
  Launch launch;
  if (int code = launch_of(launch, function, {gx, gy, gz}, {bx, by, bz}, shared, params)) return code;
  return stream_of(stream)->put(launch), SUCCESS;
}

// --- graphs --------------------------------------------------------------------------------------
struct Graph;
struct Node {
  Launch launch{};
  Word condition = 0;
  bool repeats = false;
  std::shared_ptr<Graph> body;  // none: a kernel
  std::vector<void*> before;    // nodes that it waits for
  Graph* bodies[1];             // what the driver hands out
};
struct Graph { std::vector<std::shared_ptr<Node>> nodes; };
static std::mutex conditions_mutex;
static std::deque<unsigned> conditions;
static std::vector<Graph*> waiting_for_node;  // by condition: the graph that its only node will be in, then none

extern "C" __attribute__((visibility("default"))) void set_condition(Word handle, unsigned value) {
  std::lock_guard<std::mutex> lock(conditions_mutex);
  if (handle < conditions.size()) conditions[handle] = value;
  else fault("a condition that does not exist was set");
}
static bool holds(Word handle) {
  std::lock_guard<std::mutex> lock(conditions_mutex);
  return conditions[handle];
}
// As edges allow, and otherwise the last one first: a missing edge gives wrong numbers.
static std::vector<std::shared_ptr<Node>> in_another_order(const Graph& graph) {
  std::map<void*, int> waiting;
  std::map<void*, std::vector<size_t>> behind;
  std::priority_queue<size_t> ready;
  std::vector<std::shared_ptr<Node>> order;
  for (size_t k = 0; k < graph.nodes.size(); k++) {
    auto& node = graph.nodes[k];
    waiting[node.get()] = node->before.size();
    for (void* other : node->before) behind[other].push_back(k);
    if (node->before.empty()) ready.push(k);
  }
  while (!ready.empty()) {
    auto node = graph.nodes[ready.top()];
    ready.pop();
    order.push_back(node);
    for (size_t k : behind[node.get()])
      if (!--waiting[graph.nodes[k].get()]) ready.push(k);
  }
  return order;
}
static void play(const Graph& graph) {
  for (auto& node : in_another_order(graph)) {
    if (!node->body) node->launch();
    else if (!node->repeats) { if (holds(node->condition)) play(*node->body); }
    else while (!is_lost && holds(node->condition)) play(*node->body);
  }
}
static int add(Graph* graph, std::shared_ptr<Node> node, void** before, size_t count, void** added) {
  for (size_t k = 0; k < count; k++) {
    bool is_there = false;
    for (auto& other : graph->nodes) is_there |= other.get() == before[k];
    if (!is_there) return INVALID_VALUE;
  }
  node->before.assign(before, before + count);
  graph->nodes.push_back(node);
  return *added = node.get(), SUCCESS;
}

struct KernelParams { Function* function; Position grid, block; unsigned shared; void** params; void** extra; void* rest[2]; };
struct ConditionalParams { Word handle; int type; unsigned size; Graph** bodies; void* context; };
struct NodeParams { int type; int reserved[3]; union { long long room[29]; ConditionalParams conditional; }; long long end; };
static const int CONDITIONAL = 13;  // CU_GRAPH_NODE_TYPE_CONDITIONAL

API cuGraphCreate(Graph** graph, unsigned) { WITH_CONTEXT *graph = new Graph; return SUCCESS; }
API cuGraphDestroy(Graph* graph) { return delete graph, SUCCESS; }
API cuGraphAddKernelNode_v2(void** added, Graph* graph, void** before, size_t count, const KernelParams* p) {
  WITH_CONTEXT
  auto node = std::make_shared<Node>();
  if (int code = launch_of(node->launch, p->function, p->grid, p->block, p->shared, p->params)) return code;
  return add(graph, node, before, count, added);
}
API cuGraphConditionalHandleCreate(Word* handle, Graph* graph, void* context, unsigned value, unsigned) {
  WITH_CONTEXT
  if (context != &primary) return INVALID_CONTEXT;
  std::lock_guard<std::mutex> lock(conditions_mutex);
  conditions.push_back(value);
  waiting_for_node.push_back(graph);
  return *handle = conditions.size() - 1, SUCCESS;
}
API cuGraphAddNode_v2(void** added, Graph* graph, void** before, const void*, size_t count, NodeParams* params) {
  WITH_CONTEXT
  if (params->type != CONDITIONAL) return NOT_SUPPORTED;
  auto node = std::make_shared<Node>();
  node->condition = params->conditional.handle;
  {
    std::lock_guard<std::mutex> lock(conditions_mutex);
    if (node->condition >= conditions.size() || waiting_for_node[node->condition] != graph) return INVALID_VALUE;
    waiting_for_node[node->condition] = nullptr;
  }
  node->repeats = params->conditional.type == 1;  // CU_GRAPH_COND_TYPE_WHILE
  node->body = std::make_shared<Graph>();
  node->bodies[0] = node->body.get();
  params->conditional.bodies = node->bodies;
  return add(graph, node, before, count, added);
}
API cuGraphInstantiateWithFlags(Graph** executable, Graph* graph, Word) {
  WITH_CONTEXT
  return *executable = new Graph(*graph), SUCCESS;
}
API cuGraphLaunch(Graph* executable, void* stream) {
  WITH_CONTEXT
  return stream_of(stream)->put([=] { play(*executable); }), SUCCESS;
}
API cuGraphExecDestroy(Graph* executable) {
  WITH_CONTEXT
  if (is_busy()) fault("a graph was destroyed while work was pending");
  return delete executable, outcome();
}

// --- how its functions are found -----------------------------------------------------------------
API cuGetErrorName(int code, const char** name) {
  static const std::map<int, const char*> names = {
      {SUCCESS, "CUDA_SUCCESS"}, {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
      {NOT_READY, "CUDA_ERROR_NOT_READY"}, {LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"}};
  auto known = names.find(code);
  return *name = known == names.end() ? "CUDA_ERROR" : known->second, SUCCESS;
}
API cuGetErrorString(int code, const char** text) { return cuGetErrorName(code, text); }
API cuGetProcAddress_v2(const char* name, void** function, int, Word, int* status) {
  Dl_info here;
  dladdr((void*)&cuGetProcAddress_v2, &here);
  static void* library = dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  std::string text(name);
  if (text == "cuGraphInstantiate") text += "WithFlags";
  *function = dlsym(library, (text + "_v2").c_str());
  if (!*function) *function = dlsym(library, text.c_str());
  if (status) *status = *function ? 0 : 1;  // CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
  return *function ? SUCCESS : NOT_FOUND;
}
API cuGetProcAddress(const char* name, void** function, int version, Word flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}
