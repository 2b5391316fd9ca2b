"""LLVM IR as such: values of scalars and vectors, functions in the making, memory. No kernel."""
