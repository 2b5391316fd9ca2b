"""Object code without LLVM: laid out once when it is compiled, mapped by each process that runs it.

    layout   makes an image of an object file: sections in order, a table of outside addresses
    loader   maps an image into memory, ready to run

LLVM's own linker needs LLVM, whose library takes 20 ms to load, longer than a stored program.
"""
