"""LLVM IR, for the CPU: kernel code rendered by `render`, in lanes, through the Writer of `ir`."""
