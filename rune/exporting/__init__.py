"""Functions as files: programs and weights that another process, machine or device runs.

    rune.export(f)(*args)           the function as it is traced for these arguments: an Exported
    exported.save(path)             its file: program, weights, trees; no pickle, no code
    rune.export.load(path)          read and checked, without the source of f
    rune.export.source(f)(*args)    a folder with kernels and a program in C (rune/exporting/source)

`export` is one object: called, it exports a function; its other doors are methods.
"""

from rune.exporting.exported import Exported
from rune.exporting.exporter import Exporter, export

__all__ = ["Exported", "Exporter", "export"]
