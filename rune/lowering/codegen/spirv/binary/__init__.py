"""SPIR-V itself: words, modules, function bodies and their text. It knows nothing of kernels."""
