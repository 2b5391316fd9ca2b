"""Object code without LLVM: laid out once when it was made, mapped by every process that runs it.

    layout   an object file as an image: sections in their places, what is outside in a table
    loader   an image in memory, ready to run

LLVM's own linker needs LLVM, whose library takes 20 ms to load: more than a stored program.
"""
