"""Arrays of keys in functions that only move elements: what moves is every word of the keys.

A key array (random/key_arrays.py) says its words by `__rune_words__`, and is made of new ones by
`with_words`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rune.errors import ArgumentError


def are_keys(name: str, values: Any) -> bool:
    """Whether a list or tuple holds arrays of keys; its first element decides.

    Errors: ArgumentError for keys beside numbers, or keys of several generators.
    """
    if not isinstance(values, list | tuple) or not values or not is_keys(values[0]):
        return False
    if any(getattr(v, "dtype", None) != values[0].dtype for v in values):
        shown = ", ".join(str(getattr(v, "dtype", type(v).__name__)) for v in values)
        raise ArgumentError(f"{name}: cannot combine {shown} (keys of one generator required)")
    return True


def is_keys(value: Any) -> bool:
    """Whether a value is an array of keys."""
    return hasattr(type(value), "__rune_words__")


def word_by_word(function: Callable[..., Any], *keys: Any) -> Any:
    """The keys whose words `function` makes of a word of each."""
    words: Sequence[Any] = [k.__rune_words__() for k in keys]
    return keys[0].with_words([function(*ws) for ws in zip(*words, strict=True)])
