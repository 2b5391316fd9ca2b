"""`jax._src.api_util`: static arguments by number and by name (e3nn, which JAX MD imports)."""

from __future__ import annotations

import inspect

from rune.transforms.compile.static_arguments import Names, as_set


def infer_argnums_and_argnames(
    sig: inspect.Signature, argnums: Names, argnames: Names
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The selected arguments by number and by name, each in both forms where it has both."""
    marks = as_set(argnums, argnames)
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = enumerate(sig.parameters.values())
    selection = [(i, p) for i, p in parameters if not marks.isdisjoint((i, i - len(sig.parameters), p.name))]
    numbers = tuple(i for i, p in selection if p.kind in positional)
    return numbers, tuple(p.name for _, p in selection if p.kind is not inspect.Parameter.POSITIONAL_ONLY)
