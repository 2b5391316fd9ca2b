"""Functions as source for devices without Python: a folder with kernels and a program in C.

    rune.export.source(f, target="c")(*args).save(folder)

A folder has the kernels in the language of the target, a C file with the plan (steps, arena, entry
point), its header, the weights, a call with its results, a `main` that compares the entry's results
with those, and a build script. Sizes are the numbers of the arguments, or arguments of the entry.
"""

from rune.exporting.source.folder import Folder, source

__all__ = ["Folder", "source"]
