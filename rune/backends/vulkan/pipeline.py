"""Kernels on a Vulkan device: a SPIR-V module becomes a pipeline, compiled by the driver.

No kernel has descriptors: push constants hold the address of its argument table. What
the driver has compiled is kept on disk, as far as it gives it out (VkPipelineCache); within the
process equal modules are one pipeline, as long as somebody holds it.
"""

from __future__ import annotations

import weakref
from typing import Any

from rune.backends.shared import disk_cache
from rune.backends.vulkan.device import VulkanDevice
from rune.backends.vulkan.driver import api, c_array, c_text, check, struct

PUSHED_BYTES = 16  # the address of a launch's table, and the number of its first group
_HEADER_BYTES = 32  # of a pipeline cache that holds nothing


class Pipeline:
    """A compiled kernel; destroyed when nobody holds it and nothing pending runs it."""

    __slots__ = ("__weakref__", "handle")

    def __init__(self, handle: object):
        self.handle = handle


class Pipelines:
    """The pipelines of one open device."""

    def __init__(self, device: VulkanDevice):
        vk = api()
        self.device = device
        pushed = struct("VkPushConstantRange", stageFlags=vk.VK_SHADER_STAGE_COMPUTE_BIT, offset=0, size=PUSHED_BYTES)
        self.layout = device.create(
            "PipelineLayout", struct("VkPipelineLayoutCreateInfo", pushConstantRangeCount=1, pPushConstantRanges=pushed)
        )
        # Weak: a pipeline goes with the last plan that uses it.
        self._found: weakref.WeakValueDictionary[bytes, Pipeline] = weakref.WeakValueDictionary()

    def __call__(self, module: bytes, entry: str) -> Pipeline:
        """The pipeline of a module's entry point. Errors: Failure."""
        with self.device.lock:
            pipeline = self._found.get(module)
            if pipeline is None:
                pipeline = self._found[module] = self._new(module, entry)
            return pipeline

    def _new(self, module: bytes, entry: str) -> Pipeline:
        device = self.device
        key = disk_cache.key_of("vulkan", device.physical.identity, module)
        stored = disk_cache.load(key)
        # One driver cache per module, so that one entry on disk holds one kernel.
        cache = self._cache(stored or b"")
        try:
            handle = self._compile(module, entry, cache)
            if stored is None:
                self._keep(key, cache)
        finally:
            device.destroy("PipelineCache", cache)
        pipeline = Pipeline(device.keep("Pipeline", handle))
        # At exit the device destroys all handles itself (device.py).
        weakref.finalize(pipeline, _retire, device, handle).atexit = False
        return pipeline

    def _cache(self, stored: bytes) -> Any:
        data = api().ffi.from_buffer(stored)
        info = struct("VkPipelineCacheCreateInfo", initialDataSize=len(stored), pInitialData=data)
        return self.device.create("PipelineCache", info)

    def _keep(self, key: bytes, cache: object) -> None:
        """Store what the driver has compiled, if it gives it out."""
        ffi, device = api().ffi, self.device
        size = ffi.new("size_t*")
        # Asked twice: first for the size, then for the data.
        device.vk.vkGetPipelineCacheData(device.handle, cache, size, ffi.NULL)
        if size[0] > _HEADER_BYTES:
            data = ffi.new("char[]", size[0])
            if device.vk.vkGetPipelineCacheData(device.handle, cache, size, data) == 0:
                disk_cache.store(key, bytes(ffi.buffer(data, size[0])))

    def _compile(self, module: bytes, entry: str, cache: object) -> Any:
        vk, ffi, device = api(), api().ffi, self.device
        words = ffi.from_buffer("uint32_t[]", module)
        shader = device.create("ShaderModule", struct("VkShaderModuleCreateInfo", codeSize=len(module), pCode=words))
        stage = struct(
            "VkPipelineShaderStageCreateInfo", stage=vk.VK_SHADER_STAGE_COMPUTE_BIT, module=shader, pName=c_text(entry)
        )
        info = struct("VkComputePipelineCreateInfo", stage=stage[0], layout=self.layout)
        pipelines = c_array("VkPipeline", [ffi.NULL])
        try:
            code = device.vk.vkCreateComputePipelines(device.handle, cache, 1, info, ffi.NULL, pipelines)
            check(code, "vkCreateComputePipelines")
        finally:
            # A pipeline does not need its module once it is made.
            device.destroy("ShaderModule", shader)
        return pipelines[0]


def _retire(device: VulkanDevice, handle: object) -> None:
    device.retired.append((device.submitted, lambda: device.destroy("Pipeline", handle)))
