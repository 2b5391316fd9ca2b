"""What is the same in every exported folder: each host's own functions, in its own language.

One file holds the types and functions of one host. What depends on the program (its kernels,
weights, steps and entry) is written around them.
"""

from __future__ import annotations

from pathlib import Path


def text(file: str) -> str:
    """The text of one of these files, after a blank line."""
    return "\n" + Path(__file__).with_name(file).read_text(encoding="utf-8")
