enum { FILES = sizeof files / sizeof *files };
static cl_context context;
static cl_command_queue queue;
static char *sources[FILES];
static cl_program programs[FILES];
static cl_kernel kernels[sizeof names / sizeof *names];
static cl_int failure; /* the first one; later calls do nothing */

static void note(cl_int code) {
  if (!failure) failure = code;
}

/* Fail if a kernel has bytes to write, but no blocks. */
static void needed(int64_t bytes, int64_t blocks) {
  if (bytes > 0 && blocks <= 0) note(CL_INVALID_GLOBAL_WORK_SIZE);
}

static void launch(int kernel, int count, const cl_mem *buffers, const cl_long *firsts, int size_count,
                   const cl_long *sizes, cl_uint rank, const size_t *total, const size_t *local) {
  if (failure) return;
  for (cl_uint k = 0; k < rank; k++)
    if (!total[k]) return;
  for (int k = 0; k < count; k++) {
    note(clSetKernelArg(kernels[kernel], 2 * k, sizeof(cl_mem), &buffers[k]));
    note(clSetKernelArg(kernels[kernel], 2 * k + 1, sizeof(cl_long), &firsts[k]));
  }
  for (int k = 0; k < size_count; k++)
    note(clSetKernelArg(kernels[kernel], 2 * count + k, sizeof(cl_long), &sizes[k]));
  if (!failure) note(clEnqueueNDRangeKernel(queue, kernels[kernel], rank, NULL, total, local, 0, NULL, NULL));
}

static void copy(cl_mem source, size_t at, cl_mem target, size_t to, size_t bytes) {
  if (!failure && bytes) note(clEnqueueCopyBuffer(queue, source, target, at, to, bytes, 0, NULL, NULL));
}

static void store(cl_mem target, size_t to, int32_t number) {
  if (!failure) note(clEnqueueFillBuffer(queue, target, &number, sizeof number, to, sizeof number, 0, NULL, NULL));
}

static int32_t load(cl_mem source, size_t at, size_t bytes) {
  int32_t number = 0;
  if (!failure) note(clEnqueueReadBuffer(queue, source, CL_TRUE, at, bytes, &number, 0, NULL, NULL));
  return failure ? 0 : number;
}

static void send(cl_mem target, const void *host, size_t bytes) {
  if (!failure && bytes) note(clEnqueueWriteBuffer(queue, target, CL_TRUE, 0, bytes, host, 0, NULL, NULL));
}

static void fetch(cl_mem source, void *host, size_t bytes) {
  if (!failure && bytes) note(clEnqueueReadBuffer(queue, source, CL_TRUE, 0, bytes, host, 0, NULL, NULL));
}

/* A new buffer; OpenCL has none of 0 bytes. */
static cl_mem memory(size_t bytes) {
  cl_int code = CL_SUCCESS;
  const cl_mem buffer = failure ? NULL : clCreateBuffer(context, CL_MEM_READ_WRITE, bytes ? bytes : 1, NULL, &code);
  note(code);
  return buffer;
}

/* Whether all programs can be built for a device. */
static int builds_for(cl_device_id device) {
  cl_int code;
  context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
  if (code) return 0;
  queue = clCreateCommandQueue(context, device, 0, &code);
  for (int k = 0; k < FILES && !code; k++) {
    programs[k] = clCreateProgramWithSource(context, 1, (const char **)&sources[k], NULL, &code);
    if (!code) code = clBuildProgram(programs[k], 1, &device, "-cl-std=CL1.2", NULL, NULL);
  }
  return !code;
}

/* Open the first device that builds the programs; GPUs first. */
static int choose(void) {
  const cl_device_type kinds[] = {CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_ALL};
  cl_platform_id platforms[16];
  cl_device_id devices[16];
  cl_uint platform_count = 0, count = 0;
  clGetPlatformIDs(16, platforms, &platform_count);
  for (int k = 0; k < 2; k++)
    for (cl_uint p = 0; p < platform_count && p < 16; p++) {
      if (clGetDeviceIDs(platforms[p], kinds[k], 16, devices, &count)) continue;
      for (cl_uint d = 0; d < count && d < 16; d++)
        if (builds_for(devices[d])) return 1;
    }
  return 0;
}
