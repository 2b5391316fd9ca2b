"""rune.files: arrays in files, read by memory map.

    with a tree       rune.tree.save(path, tree), rune.tree.load(path)
    by name           rune.files.open(path)["layers.0.w"]

Formats go by the suffix: .safetensors and .npz (decision 0085). What NumPy's `savez` and the
safetensors package write is read, and they read what is written here.
"""

from rune.files.file import File as File
from rune.files.file import open as open
from rune.listing import names as _names

__all__ = ["File", "open"]

__dir__ = _names(globals())
