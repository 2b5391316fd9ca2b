"""WGSL, for WebGPU."""
