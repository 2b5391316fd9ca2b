typedef WGPUBuffer buffer;
static WGPUInstance instance;
static WGPUDevice device;
static WGPUQueue queue;
static int failure; /* 1: no device; 2: memory cannot be mapped; 3: a module or command was rejected */

static WGPUStringView text_view(const char *text) {
  return (WGPUStringView){text, strlen(text)};
}

static void on_adapter(WGPURequestAdapterStatus status, WGPUAdapter adapter, WGPUStringView message, void *to,
                       void *done) {
  (void)message;
  if (status == WGPURequestAdapterStatus_Success) *(WGPUAdapter *)to = adapter;
  *(int *)done = 1;
}

static void on_device(WGPURequestDeviceStatus status, WGPUDevice result, WGPUStringView message, void *to,
                      void *done) {
  (void)message;
  if (status == WGPURequestDeviceStatus_Success) *(WGPUDevice *)to = result;
  *(int *)done = 1;
}

static void on_map(WGPUMapAsyncStatus status, WGPUStringView message, void *to, void *done) {
  (void)message;
  *(int *)to = status == WGPUMapAsyncStatus_Success;
  *(int *)done = 1;
}

static void on_error(WGPUDevice const *sender, WGPUErrorType type, WGPUStringView message, void *a, void *b) {
  (void)sender, (void)type, (void)a, (void)b;
  fprintf(stderr, "WebGPU: %.*s\n", (int)message.length, message.data);
  if (!failure) failure = 3;
}

/* Process events of the instance until one sets `done`. */
static void wait_for(const int *done) {
  while (!*done) wgpuInstanceProcessEvents(instance);
}

static WGPUBuffer memory_for(size_t bytes, WGPUBufferUsage usage) {
  const WGPUBufferDescriptor descriptor = {.usage = usage, .size = bytes < 4 ? 4 : (bytes + 3) / 4 * 4};
  return failure ? NULL : wgpuDeviceCreateBuffer(device, &descriptor);
}

static WGPUBuffer memory(size_t bytes) {
  return memory_for(bytes, WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst);
}

static void submit(WGPUCommandEncoder encoder) {
  const WGPUCommandBuffer commands = wgpuCommandEncoderFinish(encoder, NULL);
  wgpuQueueSubmit(queue, 1, &commands);
  wgpuCommandBufferRelease(commands);
  wgpuCommandEncoderRelease(encoder);
}

static void copy(WGPUBuffer source, size_t at, WGPUBuffer target, size_t to, size_t bytes) {
  if (failure || !bytes) return;
  const WGPUCommandEncoder encoder = wgpuDeviceCreateCommandEncoder(device, NULL);
  if (source == target) { /* WebGPU refuses a copy within one buffer */
    const WGPUBuffer between = memory(bytes);
    wgpuCommandEncoderCopyBufferToBuffer(encoder, source, at, between, 0, bytes);
    wgpuCommandEncoderCopyBufferToBuffer(encoder, between, 0, target, to, bytes);
    submit(encoder);
    wgpuBufferRelease(between);
    return;
  }
  wgpuCommandEncoderCopyBufferToBuffer(encoder, source, at, target, to, bytes);
  submit(encoder);
}

static void fetch_from(WGPUBuffer source, size_t at, void *host, size_t bytes) {
  if (failure || !bytes) return;
  const size_t padded = (bytes + 3) / 4 * 4;
  const WGPUBuffer staging = memory_for(padded, WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst);
  copy(source, at, staging, 0, padded);
  int done = 0, is_mapped = 0;
  wgpuBufferMapAsync(staging, WGPUMapMode_Read, 0, padded,
                     (WGPUBufferMapCallbackInfo){.mode = WGPUCallbackMode_AllowProcessEvents,
                                                 .callback = on_map, .userdata1 = &is_mapped, .userdata2 = &done});
  wait_for(&done);
  if (is_mapped) memcpy(host, wgpuBufferGetConstMappedRange(staging, 0, padded), bytes);
  else failure = 2;
  wgpuBufferRelease(staging);
}

static void store(WGPUBuffer target, size_t to, int32_t number) {
  if (!failure) wgpuQueueWriteBuffer(queue, target, to, &number, sizeof number);
}

static void fetch(WGPUBuffer source, void *host, size_t bytes) {
  fetch_from(source, 0, host, bytes);
}

static int32_t load(WGPUBuffer source, size_t at, size_t bytes) {
  int32_t number = 0;
  fetch_from(source, at, &number, bytes);
  return failure ? 0 : number;
}

static void send(WGPUBuffer target, const void *host, size_t bytes) {
  if (failure || !bytes) return;
  wgpuQueueWriteBuffer(queue, target, 0, host, bytes / 4 * 4);
  if (bytes % 4) {
    uint32_t word = 0;
    memcpy(&word, (const char *)host + bytes / 4 * 4, bytes % 4);
    wgpuQueueWriteBuffer(queue, target, bytes / 4 * 4, &word, 4);
  }
}

/* The layout of a launch: a uniform block, then `count` buffers. */
static WGPUBindGroupLayout layout_of(int count) {
  WGPUBindGroupLayoutEntry entries[9] = {{0}}; /* the block, and the eight buffers that every device can bind */
  for (int k = 0; k <= count; k++) {
    entries[k].binding = (uint32_t)k;
    entries[k].visibility = WGPUShaderStage_Compute;
    entries[k].buffer.type = k ? WGPUBufferBindingType_Storage : WGPUBufferBindingType_Uniform;
  }
  const WGPUBindGroupLayoutDescriptor descriptor = {.entryCount = (size_t)count + 1, .entries = entries};
  return wgpuDeviceCreateBindGroupLayout(device, &descriptor);
}

static void compile(int number, const char *path, const char *entry, int count) {
  char *text = text_of(path);
  if (!text) failure = 3;
  if (failure) return;
  WGPUShaderSourceWGSL source = {.chain = {.sType = WGPUSType_ShaderSourceWGSL}, .code = text_view(text)};
  const WGPUShaderModuleDescriptor descriptor = {.nextInChain = &source.chain};
  const WGPUShaderModule module = wgpuDeviceCreateShaderModule(device, &descriptor);
  const WGPUBindGroupLayout layout = layout_of(count);
  const WGPUPipelineLayoutDescriptor layout_descriptor = {.bindGroupLayoutCount = 1, .bindGroupLayouts = &layout};
  const WGPUPipelineLayout layouts = wgpuDeviceCreatePipelineLayout(device, &layout_descriptor);
  const WGPUComputePipelineDescriptor pipeline = {
      .layout = layouts, .compute = {.module = module, .entryPoint = text_view(entry)}};
  pipelines[number] = wgpuDeviceCreateComputePipeline(device, &pipeline);
  wgpuPipelineLayoutRelease(layouts);
  wgpuBindGroupLayoutRelease(layout);
  wgpuShaderModuleRelease(module);
  free(text);
}

static void prepare(int number, int count, const WGPUBuffer *buffers, int words, const uint32_t *block) {
  if (failure) return;
  const size_t bytes = ((size_t)words * 4 + 15) / 16 * 16;
  if (groups[number]) wgpuBindGroupRelease(groups[number]);
  if (blocks[number]) wgpuBufferRelease(blocks[number]);
  blocks[number] = memory_for(bytes, WGPUBufferUsage_Uniform | WGPUBufferUsage_CopyDst);
  wgpuQueueWriteBuffer(queue, blocks[number], 0, block, (size_t)words * 4);
  WGPUBindGroupEntry entries[9] = {{.buffer = blocks[number], .size = bytes}};
  for (int k = 0; k < count; k++)
    entries[k + 1] = (WGPUBindGroupEntry){
        .binding = (uint32_t)k + 1, .buffer = buffers[k], .size = wgpuBufferGetSize(buffers[k])};
  const WGPUBindGroupLayout layout = layout_of(count);
  const WGPUBindGroupDescriptor descriptor = {.layout = layout, .entryCount = (size_t)count + 1, .entries = entries};
  groups[number] = wgpuDeviceCreateBindGroup(device, &descriptor);
  wgpuBindGroupLayoutRelease(layout);
}

static void launch(int number, int pipeline, int64_t count) {
  if (failure || count <= 0) return;
  const int64_t wide = count < ROW ? count : ROW;
  const WGPUCommandEncoder encoder = wgpuDeviceCreateCommandEncoder(device, NULL);
  const WGPUComputePassEncoder pass = wgpuCommandEncoderBeginComputePass(encoder, NULL);
  wgpuComputePassEncoderSetPipeline(pass, pipelines[pipeline]);
  wgpuComputePassEncoderSetBindGroup(pass, 0, groups[number], 0, NULL);
  wgpuComputePassEncoderDispatchWorkgroups(pass, (uint32_t)wide, (uint32_t)((count + wide - 1) / wide), 1);
  wgpuComputePassEncoderEnd(pass);
  wgpuComputePassEncoderRelease(pass);
  submit(encoder);
}

static void choose(void) {
  int done = 0;
  WGPUAdapter adapter = NULL;
  instance = wgpuCreateInstance(NULL);
  const WGPURequestAdapterOptions options = {.powerPreference = WGPUPowerPreference_HighPerformance};
  wgpuInstanceRequestAdapter(instance, &options,
                             (WGPURequestAdapterCallbackInfo){.mode = WGPUCallbackMode_AllowProcessEvents,
                                                              .callback = on_adapter, .userdata1 = &adapter,
                                                              .userdata2 = &done});
  wait_for(&done);
  done = 0;
  const WGPUDeviceDescriptor descriptor = {.uncapturedErrorCallbackInfo = {.callback = on_error}};
  if (adapter) {
    wgpuAdapterRequestDevice(adapter, &descriptor,
                             (WGPURequestDeviceCallbackInfo){.mode = WGPUCallbackMode_AllowProcessEvents,
                                                             .callback = on_device, .userdata1 = &device,
                                                             .userdata2 = &done});
    wait_for(&done);
    wgpuAdapterRelease(adapter);
  }
  failure = device ? 0 : 1;
  if (device) queue = wgpuDeviceGetQueue(device);
}
