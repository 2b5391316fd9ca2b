"""JAX's tables of the classes whose objects it takes as arrays. TFP enters its Variable in them.

Rune asks an object and not a table: one with `__jax_array__` is the array that this returns. What
is entered here is not looked up, so that an operation refuses a Variable of TFP by its name.
"""

from __future__ import annotations


class ArrayClasses:
    """A table that takes entries, and gives for each class what stands for it: the class."""

    def __getitem__(self, cls: type) -> type:
        return cls

    def __setitem__(self, cls: type, rule: object) -> None:
        pass


pytype_aval_mappings = ArrayClasses()
canonicalize_dtype_handlers = ArrayClasses()
