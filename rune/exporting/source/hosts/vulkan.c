typedef struct { VkBuffer handle; VkDeviceMemory memory; unsigned char *host; uint64_t address; } buffer;
static VkInstance instance;
static VkPhysicalDevice physical;
static VkDevice device;
static VkQueue queue;
static uint32_t family;
static VkCommandPool pool;
static VkCommandBuffer commands;
static VkFence fence;
static VkPipelineLayout layout;
static VkResult failure; /* the first one; later calls do nothing */
static int is_recording;

static void note(VkResult code) {
  if (!failure && code != VK_SUCCESS) failure = code;
}

/* Later commands see everything that earlier ones wrote. */
static void barrier(void) {
  const VkMemoryBarrier all = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                               .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT | VK_ACCESS_HOST_WRITE_BIT,
                               .dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT |
                                                VK_ACCESS_HOST_READ_BIT};
  const VkPipelineStageFlags stages = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT;
  vkCmdPipelineBarrier(commands, stages, stages, 0, 1, &all, 0, NULL, 0, NULL);
}

/* Whether commands can be recorded; the first command begins a submission. */
static int ready(void) {
  if (failure) return 0;
  if (!is_recording) {
    const VkCommandBufferBeginInfo once = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                           .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    note(vkBeginCommandBuffer(commands, &once));
    is_recording = 1;
  }
  barrier();
  return 1;
}

/* Run the recorded commands, and wait for them. */
static void finish(void) {
  if (!is_recording) return;
  barrier();
  note(vkEndCommandBuffer(commands));
  const VkSubmitInfo info = {
      .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &commands};
  if (!failure) note(vkQueueSubmit(queue, 1, &info, fence));
  if (!failure) note(vkWaitForFences(device, 1, &fence, VK_TRUE, UINT64_MAX));
  if (!failure) note(vkResetFences(device, 1, &fence));
  is_recording = 0;
}

static void launch(int kernel, int first, int64_t groups) {
  if (groups <= 0 || !ready()) return;
  const int64_t wide = groups < ROW ? groups : ROW;
  const uint64_t pushed[2] = {table.address + 8 * (uint64_t)first, 0};
  vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipelines[kernel]);
  vkCmdPushConstants(commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof pushed, pushed);
  vkCmdDispatch(commands, (uint32_t)wide, (uint32_t)((groups + wide - 1) / wide), 1);
}

static void copy(buffer source, size_t at, buffer target, size_t to, size_t bytes) {
  const VkBufferCopy range = {at, to, bytes};
  if (bytes && ready()) vkCmdCopyBuffer(commands, source.handle, target.handle, 1, &range);
}

static void store(buffer target, size_t to, int32_t number) {
  if (ready()) vkCmdUpdateBuffer(commands, target.handle, to, sizeof number, &number);
}

static int32_t load(buffer source, size_t at, size_t bytes) {
  int32_t number = 0;
  finish();
  if (!failure) memcpy(&number, source.host + at, bytes);
  return number;
}

static void send(buffer target, const void *host, size_t bytes) {
  finish();
  if (!failure && bytes) memcpy(target.host, host, bytes);
}

static void fetch(buffer source, void *host, size_t bytes) {
  finish();
  if (!failure && bytes) memcpy(host, source.host, bytes);
}

/* A memory type that is host-visible and coherent, among those that a buffer may have. */
static uint32_t kind_of(uint32_t possible) {
  VkPhysicalDeviceMemoryProperties kinds;
  vkGetPhysicalDeviceMemoryProperties(physical, &kinds);
  const VkMemoryPropertyFlags flags = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  for (uint32_t k = 0; k < kinds.memoryTypeCount; k++)
    if ((possible >> k & 1) && (kinds.memoryTypes[k].propertyFlags & flags) == flags) return k;
  note(VK_ERROR_OUT_OF_HOST_MEMORY);
  return 0;
}

static buffer memory(size_t bytes) {
  buffer result = {0};
  const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                   .size = bytes < 16 ? 16 : (bytes + 15) / 16 * 16,
                                   .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                            VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                                            VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT};
  if (!failure) note(vkCreateBuffer(device, &info, NULL, &result.handle));
  if (failure) return result;
  VkMemoryRequirements needs;
  vkGetBufferMemoryRequirements(device, result.handle, &needs);
  const VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                           .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
  const VkMemoryAllocateInfo allocation = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .pNext = &flags,
                                       .allocationSize = needs.size,
                                       .memoryTypeIndex = kind_of(needs.memoryTypeBits)};
  if (!failure) note(vkAllocateMemory(device, &allocation, NULL, &result.memory));
  if (!failure) note(vkBindBufferMemory(device, result.handle, result.memory, 0));
  if (!failure) note(vkMapMemory(device, result.memory, 0, VK_WHOLE_SIZE, 0, (void **)&result.host));
  const VkBufferDeviceAddressInfo query = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                           .buffer = result.handle};
  if (!failure) result.address = vkGetBufferDeviceAddress(device, &query);
  return result;
}

static void release(buffer *target) {
  if (target->handle) vkDestroyBuffer(device, target->handle, NULL);
  if (target->memory) vkFreeMemory(device, target->memory, NULL);
  *target = (buffer){0};
}

/* The first queue family with compute; -1 if there is none. */
static int compute_family(VkPhysicalDevice candidate) {
  VkQueueFamilyProperties families[16];
  uint32_t count = 16;
  vkGetPhysicalDeviceQueueFamilyProperties(candidate, &count, families);
  for (uint32_t k = 0; k < count; k++)
    if (families[k].queueFlags & VK_QUEUE_COMPUTE_BIT) return (int)k;
  return -1;
}

/* Open a device with Vulkan 1.2, buffer addresses and 64-bit integers, with all of its features. */
static int open_candidate(VkPhysicalDevice candidate) {
  VkPhysicalDeviceVulkan12Features later = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  VkPhysicalDeviceVulkan11Features early = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
                                            .pNext = &later};
  VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &early};
  VkPhysicalDeviceProperties properties;
  vkGetPhysicalDeviceProperties(candidate, &properties);
  const int number = compute_family(candidate);
  if (properties.apiVersion < VK_API_VERSION_1_2 || number < 0) return 0;
  vkGetPhysicalDeviceFeatures2(candidate, &features);
  if (!later.bufferDeviceAddress || !features.features.shaderInt64) return 0;
  /* Except bounds checks, which cost time, and what only debuggers and groups of devices need. */
  features.features.robustBufferAccess = VK_FALSE;
  later.bufferDeviceAddressCaptureReplay = later.bufferDeviceAddressMultiDevice = VK_FALSE;
  const float priority = 1;
  const VkDeviceQueueCreateInfo queues = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                          .queueFamilyIndex = (uint32_t)number, .queueCount = 1,
                                          .pQueuePriorities = &priority};
  const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .pNext = &features,
                                   .queueCreateInfoCount = 1, .pQueueCreateInfos = &queues};
  if (vkCreateDevice(candidate, &info, NULL, &device) != VK_SUCCESS) return 0;
  physical = candidate;
  family = (uint32_t)number;
  vkGetDeviceQueue(device, family, 0, &queue);
  return 1;
}

static void choose(void) {
  const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                         .apiVersion = VK_API_VERSION_1_2};
  const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                     .pApplicationInfo = &application};
  VkPhysicalDevice candidates[16];
  uint32_t count = 16;
  failure = VK_SUCCESS;
  note(vkCreateInstance(&info, NULL, &instance));
  if (failure) return;
  vkEnumeratePhysicalDevices(instance, &count, candidates);
  for (uint32_t k = 0; k < count && !device; k++) open_candidate(candidates[k]);
  if (!device) note(VK_ERROR_INCOMPATIBLE_DRIVER);
  if (failure) return;
  const VkCommandPoolCreateInfo pools = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                         .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                         .queueFamilyIndex = family};
  note(vkCreateCommandPool(device, &pools, NULL, &pool));
  const VkCommandBufferAllocateInfo one = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                           .commandPool = pool, .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                           .commandBufferCount = 1};
  if (!failure) note(vkAllocateCommandBuffers(device, &one, &commands));
  const VkFenceCreateInfo fences = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  if (!failure) note(vkCreateFence(device, &fences, NULL, &fence));
  const VkPushConstantRange pushed = {VK_SHADER_STAGE_COMPUTE_BIT, 0, 16};
  const VkPipelineLayoutCreateInfo layouts = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                              .pushConstantRangeCount = 1, .pPushConstantRanges = &pushed};
  if (!failure) note(vkCreatePipelineLayout(device, &layouts, NULL, &layout));
}

/* The words of a file; NULL if it cannot be read. */
static uint32_t *words_of(const char *path, size_t *bytes) {
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  fseek(file, 0, SEEK_END);
  *bytes = (size_t)ftell(file);
  rewind(file);
  uint32_t *words = malloc(*bytes + 4);
  if (words) *bytes = fread(words, 1, *bytes, file);
  fclose(file);
  return words;
}

static void compile(int number, const char *path, const char *entry) {
  size_t bytes = 0;
  VkShaderModule module = VK_NULL_HANDLE;
  uint32_t *words = words_of(path, &bytes);
  if (!words) note(VK_ERROR_INITIALIZATION_FAILED);
  const VkShaderModuleCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = bytes, .pCode = words};
  if (!failure) note(vkCreateShaderModule(device, &info, NULL, &module));
  const VkComputePipelineCreateInfo pipeline = {
      .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO, .layout = layout,
      .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                .stage = VK_SHADER_STAGE_COMPUTE_BIT, .module = module, .pName = entry}};
  if (!failure) note(vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &pipeline, NULL, &pipelines[number]));
  if (module) vkDestroyShaderModule(device, module, NULL);
  free(words);
}
