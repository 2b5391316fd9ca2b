"""SPIR-V, for Vulkan: kernel code as binary words."""
