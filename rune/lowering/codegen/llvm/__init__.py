"""LLVM IR, for the CPU: kernel code rendered by `render`, through the Writer of `text`."""
