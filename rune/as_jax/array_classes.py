"""JAX's tables of the classes whose objects it takes as arrays. TFP enters its Variable in them.

Rune asks an object and not a table: one with `__jax_array__` is the array that this returns. TFP's
entry, made when it is imported, is not looked up: an operation refuses its Variable by name. Any
other entry is refused, since its rule would never be asked.
"""

from __future__ import annotations

from rune.errors import ArgumentError


class ArrayClasses:
    """A table that takes entries, and gives for each class what stands for it: the class."""

    def __getitem__(self, cls: type) -> type:
        return cls

    def __setitem__(self, cls: type, rule: object) -> None:
        if not cls.__module__.startswith("tensorflow_probability."):
            raise ArgumentError(
                f"array_classes: cannot enter {cls.__name__} (rune asks objects, and no table)",
                hint="give the class a method __jax_array__",
            )


pytype_aval_mappings = ArrayClasses()
canonicalize_dtype_handlers = ArrayClasses()
