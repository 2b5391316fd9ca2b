"""SPIR-V as such: words, modules, function bodies and their text. It knows nothing of kernels."""
