"""Functions as source for devices without Python: a folder with kernels and a program in C.

    rune.export.source(f, target="c")(*args).save(folder)

A folder has the kernels in the language of the target, a C file with the plan (steps, arena,
entry), its header, the weights, a call with its results, a `main` that checks itself on these, and
a line that builds all. Sizes are numbers, those of the arguments, or, in C and OpenCL, arguments of
the entry.
"""

from rune.exporting.source.folder import Folder, source

__all__ = ["Folder", "source"]
