"""Functions as files: programs and weights that another process, machine or device runs.

    rune.export(f)(*args)           traces f for these arguments and returns an Exported
    exported.save(path)             writes program, weights and trees; no pickle, no code
    rune.export.load(path)          reads and checks a file, without the source of f
    rune.export.source(f)(*args)    a folder with kernels and a program in C (rune/exporting/source)

`export` is one object: calling it exports a function; everything else is a method of it.
"""

from rune.exporting.exported import Exported
from rune.exporting.exporter import Exporter, export

__all__ = ["Exported", "Exporter", "export"]
