"""JAX's tables of classes whose objects count as arrays. TFP enters its Variable in them.

Rune never reads such a table: it takes any object with `__jax_array__` as the array that the method
returns. TFP makes its entry when it is imported, so the entry is accepted without effect, and an
operation refuses the Variable by name. Other entries are refused, since their rules would never
run.
"""

from __future__ import annotations

from rune.errors import ArgumentError


class ArrayClasses:
    """A table that accepts TFP's entries without effect, and maps each class to itself."""

    def __getitem__(self, cls: type) -> type:
        return cls

    def __setitem__(self, cls: type, rule: object) -> None:
        if not cls.__module__.startswith("tensorflow_probability."):
            raise ArgumentError(
                f"array_classes: cannot enter {cls.__name__} (rune reads no such table)",
                hint="give the class a method __jax_array__",
            )


pytype_aval_mappings = ArrayClasses()
canonicalize_dtype_handlers = ArrayClasses()
