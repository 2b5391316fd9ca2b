"""`jax._src.numpy.util`: promotion of operands (torchax, jaxquantum, S2FFT, vbjax)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

import rune.numpy as rnp
from rune import absent, dtypes
from rune.array import Array
from rune.ops import promote
from rune.ops.arithmetic import convert
from rune.typing import ArrayLike

__getattr__ = absent.of(__name__)


def check_arraylike(fun_name: str, *args: ArrayLike) -> None:
    """Errors: ArgumentError, a TypeError, if an argument is neither an array nor a scalar."""
    for arg in args:
        promote.unrounded(fun_name, arg)


def ensure_arraylike(fun_name: str, *args: ArrayLike) -> Array | tuple[Array, ...]:
    """The arguments as arrays; a single argument as one array. Errors as `check_arraylike`."""
    check_arraylike(fun_name, *args)
    arrays = tuple(rnp.asarray(x) for x in args)
    return arrays[0] if len(arrays) == 1 else arrays


def promote_dtypes(*args: ArrayLike) -> list[Array]:
    """The arguments in their common dtype, each in its own shape."""
    return _in_common(args, lambda dtype: dtype)


def promote_dtypes_inexact(*args: ArrayLike) -> list[Array]:
    """The arguments in their common dtype, with f32 in place of bools and integers."""
    return _in_common(args, _inexact)


def promote_dtypes_numeric(*args: ArrayLike) -> list[Array]:
    """The arguments in their common dtype, with i32 in place of bools."""
    return _in_common(args, lambda dtype: dtypes.i32 if dtype == dtypes.bool_ else dtype)


def promote_dtypes_complex(*args: ArrayLike) -> list[Array]:
    """The arguments in the complex dtype that holds their common one."""
    return _in_common(args, lambda dtype: rnp.result_type(_inexact(dtype), dtypes.c64))


def promote_shapes(fun_name: str, *args: ArrayLike) -> list[Array]:
    """The arguments in their common rank, with axes of size 1 in front."""
    arrays = [rnp.asarray(x) for x in args]
    rank = max((x.ndim for x in arrays), default=0)
    return [x.reshape((1,) * (rank - x.ndim) + x.shape) for x in arrays]


def _in_common(args: Iterable[ArrayLike], to_dtype: Callable[[np.dtype], np.dtype]) -> list[Array]:
    arrays = [rnp.asarray(x) for x in args]
    dtype, weak = dtypes.promote(*[promote.scalar_kind(x) for x in arrays])
    return [convert(x, dtype=to_dtype(dtype), weak=weak) for x in arrays]


def _inexact(dtype: np.dtype) -> np.dtype:
    return dtype if dtype in dtypes.INEXACT else dtypes.default_float(dtype)
