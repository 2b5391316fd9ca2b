"""LLVM IR itself: values of scalars and vectors, function bodies, memory. It knows no kernels."""
