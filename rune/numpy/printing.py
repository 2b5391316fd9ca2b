"""Arrays and numbers as text: NumPy's functions, which also print rune's arrays.

The print options are NumPy's own, so `set_printoptions` applies to both libraries.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from rune.errors import DtypeError
from rune.numpy.arguments import static_int, value
from rune.typing import ArrayLike


def array2string(a: ArrayLike, *args: Any, **kwargs: object) -> str:
    """The elements as text; options as for NumPy's function.

    Shapes: any -> a Python string.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> rnp.array2string(rnp.array([1.0, 2.5]), precision=1)
    '[1.  2.5]'
    """
    return np.array2string(np.asarray(value("array2string", a)), *args, **kwargs)


def array_str(
    a: ArrayLike, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None
) -> str:
    """The elements as text, as print shows them.

    Shapes: any -> a Python string.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> rnp.array_str(rnp.arange(3))
    '[0 1 2]'
    """
    host = np.asarray(value("array_str", a))
    return np.array_str(host, max_line_width, precision, suppress_small)


def array_repr(
    arr: ArrayLike, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None
) -> str:
    """An array as its `repr` shows it, with NumPy's options for the numbers.

    Shapes: any -> a Python string.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> rnp.array_repr(rnp.array([1 / 3]), precision=2)
    'Array([0.33], f32[1], cpu:0)'
    """
    x = value("array_repr", arr)
    body = np.array2string(np.asarray(x), max_line_width, precision, suppress_small, ", ", "Array(")
    return f"Array({body}, {x.type}, {x.device.name})"


def set_printoptions(*args: Any, **kwargs: object) -> None:
    """NumPy's function: how arrays of both libraries print from now on.

    Errors: TypeError for an unknown option.

    >>> import rune.numpy as rnp
    >>> old = rnp.get_printoptions()
    >>> rnp.set_printoptions(precision=2)
    >>> rnp.array([1 / 3])
    Array([0.33], f32[1], cpu:0)
    >>> rnp.set_printoptions(**old)
    """
    np.set_printoptions(*args, **kwargs)


def get_printoptions() -> dict[str, Any]:
    """How arrays print, by the names of `set_printoptions`.

    Errors: none.

    >>> import rune.numpy as rnp
    >>> rnp.get_printoptions()["precision"]
    8
    """
    return dict(np.get_printoptions())


def printoptions(*args: Any, **kwargs: object) -> AbstractContextManager[Any]:
    """`set_printoptions` for the length of a `with` block.

    Errors: TypeError, on entering, for an unknown option.

    >>> import rune.numpy as rnp
    >>> with rnp.printoptions(precision=1):
    ...     print(rnp.array([0.25]))
    [0.2]
    """
    return np.printoptions(*args, **kwargs)


def format_float_positional(x: Any, *args: Any, **kwargs: object) -> str:
    """A number in decimal notation; options as for NumPy's function.

    Shapes: [] -> a Python string.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> rnp.format_float_positional(rnp.float32(0.1))
    '0.1'
    """
    host: Any = np.asarray(value("format_float_positional", x))[()]
    return np.format_float_positional(host, *args, **kwargs)


def format_float_scientific(x: Any, *args: Any, **kwargs: object) -> str:
    """A number in scientific notation; options as for NumPy's function.

    Shapes: [] -> a Python string.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> rnp.format_float_scientific(rnp.float32(1200.0))
    '1.2e+03'
    """
    host: Any = np.asarray(value("format_float_scientific", x))[()]
    return np.format_float_scientific(host, *args, **kwargs)


def binary_repr(num: int, width: int | None = None) -> str:
    """The binary digits of an integer; with a width, a negative one in two's complement.

    Shapes: [] -> a Python string.
    Errors: ArgumentError if an argument is not an integer.

    >>> import rune.numpy as rnp
    >>> rnp.binary_repr(5), rnp.binary_repr(-3, width=4)
    ('101', '1101')
    """
    return np.binary_repr(static_int("binary_repr", "a number", num), width)


def base_repr(number: int, base: int = 2, padding: int = 0) -> str:
    """The digits of an integer in a base from 2 to 36.

    Shapes: [] -> a Python string.
    Errors: DtypeError unless `number` is an integer and `base` an integer or bool.

    >>> import rune.numpy as rnp
    >>> rnp.base_repr(255, 16)
    'FF'
    """
    if not hasattr(number, "__index__"):
        raise DtypeError(f"base_repr: cannot write {type(number).__name__} (an integer required)")
    return np.base_repr(number.__index__(), base, padding)


__all__ = ["array2string", "array_repr", "array_str", "base_repr", "binary_repr", "format_float_positional"]
__all__ += ["format_float_scientific", "get_printoptions", "printoptions", "set_printoptions"]
