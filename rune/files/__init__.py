"""rune.files: arrays in files, read by memory map.

    with a tree       rune.tree.save(path, tree), rune.tree.load(path)
    by name           rune.files.open(path)["layers.0.w"]

The suffix selects the format: .safetensors or .npz (decision 0085). rune reads files that NumPy's
`savez` and the safetensors package write, and they read files that rune writes.
"""

from rune.files.file import File as File
from rune.files.file import open as open
from rune.listing import names as _names

__all__ = ["File", "open"]

__dir__ = _names(globals())
