typedef unsigned char *buffer;
static unsigned long long *table;
static cudaError_t failure; /* the first one */

static void note(cudaError_t code) {
  if (failure == cudaSuccess) failure = code;
}

static int32_t load(const unsigned char *at, size_t bytes) {
  int32_t number = 0;
  note(cudaMemcpy(&number, at, bytes, cudaMemcpyDeviceToHost));
  return failure == cudaSuccess ? number : 0;
}

static void send(unsigned char *target, const void *host, size_t bytes) {
  if (bytes) note(cudaMemcpy(target, host, bytes, cudaMemcpyHostToDevice));
}

static void fetch(const unsigned char *source, void *host, size_t bytes) {
  if (bytes) note(cudaMemcpy(host, source, bytes, cudaMemcpyDeviceToHost));
}

static unsigned char *memory(size_t bytes) {
  void *at = NULL;
  note(cudaMalloc(&at, bytes ? bytes : 16));
  return (unsigned char *)at;
}
