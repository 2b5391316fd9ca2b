"""Kernels on a Vulkan device: the driver compiles a SPIR-V module to a pipeline.

Kernels have no descriptors: push constants hold the address of the argument table. Compiled code is
kept on disk, if the driver exports it (VkPipelineCache); within the process equal modules share one
pipeline, as long as a plan uses it.
"""

from __future__ import annotations

import weakref
from typing import Any

from rune.backends.shared import disk_cache
from rune.backends.vulkan.device import VulkanDevice
from rune.backends.vulkan.driver import api, c_array, c_text, check, struct
from rune.lowering.codegen.mesa.lines import DIGITS

_ARGUMENT_BYTES = 16  # the address of a launch's table, and the number of its first group
_HEADER_BYTES = 32  # of an empty pipeline cache: VkPipelineCacheHeaderVersionOne


class Pipeline:
    """A compiled kernel, destroyed after its last holder's death and its last submission."""

    __slots__ = ("__weakref__", "handle")

    def __init__(self, handle: object):
        self.handle = handle


class Pipelines:
    """The pipelines of one open device."""

    def __init__(self, device: VulkanDevice):
        vk = api()
        self.device = device
        # Behind the arguments are the digits by which kernels read lines (codegen/mesa/lines.py).
        self.digits = [n | n + 1 << 32 for n in range(0, DIGITS, 2)] if device.physical.is_llvmpipe else []
        self.pushed_bytes = _ARGUMENT_BYTES + 8 * len(self.digits)
        push_range = struct(
            "VkPushConstantRange", stageFlags=vk.VK_SHADER_STAGE_COMPUTE_BIT, offset=0, size=self.pushed_bytes
        )
        self.layout = device.create(
            "PipelineLayout",
            struct("VkPipelineLayoutCreateInfo", pushConstantRangeCount=1, pPushConstantRanges=push_range),
        )
        # Weak: a pipeline dies with the last plan that uses it.
        self._by_module: weakref.WeakValueDictionary[bytes, Pipeline] = weakref.WeakValueDictionary()

    def __call__(self, module: bytes, entry: str) -> Pipeline:
        """The pipeline of a module's entry point. Errors: Failure."""
        with self.device.lock:
            pipeline = self._by_module.get(module)
            if pipeline is None:
                pipeline = self._by_module[module] = self._new(module, entry)
            return pipeline

    def _new(self, module: bytes, entry: str) -> Pipeline:
        device = self.device
        key = disk_cache.key_of("vulkan", device.physical.identity, module)
        binary = disk_cache.load(key)
        # One driver cache per module, so that one entry on disk holds one kernel.
        cache = self._cache(binary or b"")
        try:
            handle = self._compile(module, entry, cache)
            if binary is None:
                self._keep(key, cache)
        finally:
            device.destroy("PipelineCache", cache)
        pipeline = Pipeline(device.keep("Pipeline", handle))
        # At exit the device destroys all handles itself (device.py).
        weakref.finalize(pipeline, _retire, device, handle).atexit = False
        return pipeline

    def _cache(self, binary: bytes) -> Any:
        data = api().ffi.from_buffer(binary)
        info = struct("VkPipelineCacheCreateInfo", initialDataSize=len(binary), pInitialData=data)
        return self.device.create("PipelineCache", info)

    def _keep(self, key: bytes, cache: object) -> None:
        """Store the compiled code on disk, if the driver exports it."""
        ffi, device = api().ffi, self.device
        size = ffi.new("size_t*")
        # The first call gives the size, the second the data.
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
            # A pipeline does not need its module after its creation.
            device.destroy("ShaderModule", shader)
        return pipelines[0]


def _retire(device: VulkanDevice, handle: object) -> None:
    device.destructions.append((device.submissions, lambda: device.destroy("Pipeline", handle)))
