"""A scope in which JAX's module of harnesses runs on rune.as_jax: public names for private ones.

The module imports rooms of `jax._src` for their primitives, dtypes and factories of random arrays.
Random arrays are stored with JAX's answers, so their factories make nothing; a primitive is called
by the public function of its name.
"""

from __future__ import annotations
import __future__

import operator
import os
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import jax  # pyright: ignore[reportMissingImports]
import jax.numpy as jnp  # pyright: ignore[reportMissingImports]
import ml_dtypes
import numpy as np
from jax import lax  # pyright: ignore[reportMissingImports]

_NAME = "harnesses_of_jax"  # of the module
_PRIVATE = ("from jax._src", "from absl", "from __future__", "config.parse")  # lines that are left out


class Primitive:
    """A primitive by its name; `bind` is the public function."""

    def __init__(self, name: str):
        self.name = name

    def __str__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Primitive) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def bind(self) -> Callable[..., Any]:
        """The public function that takes the primitive's parameters."""
        if self.name in _BINDINGS:
            return _BINDINGS[self.name]
        if self.name.startswith("reduce_") and self.name != "reduce_precision":
            return lambda x, axes, **_: getattr(lax, self.name)(x, axes)
        if self.name in ("argmax", "argmin"):
            return lambda x, axes, index_dtype: getattr(lax, self.name)(x, axes[0], index_dtype)
        return getattr(lax, _PUBLIC.get(self.name, self.name))


_PUBLIC = {
    "regularized_incomplete_beta": "betainc",
    "not": "bitwise_not",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "linear_solve": "custom_linear_solve",
    "add_any": "add",
}


def _several(results: Any) -> Any:
    return results if isinstance(results, tuple | list) else [results]


def _top_k(x: Any, *, k: int, reduction_dimension: int, is_max_k: bool, **options: Any) -> Any:
    return (lax.approx_max_k if is_max_k else lax.approx_min_k)(x, k, reduction_dimension, **options)


def _svd(x: Any, *, full_matrices: bool, compute_uv: bool, **_: Any) -> Any:
    return _several(lax.linalg.svd(x, full_matrices=full_matrices, compute_uv=compute_uv))


_BINDINGS: dict[str, Callable[..., Any]] = {
    "transpose": lambda x, permutation: lax.transpose(x, permutation),
    "sort": lambda *operands, **options: _several(lax.sort(operands, **options)),
    "iota": lambda *, dtype, shape, dimension, **_: lax.broadcasted_iota(dtype, shape, dimension),
    "fft": lambda x, fft_type, fft_lengths: lax.fft(x, fft_type, fft_lengths),
    "convert_element_type": lambda x, new_dtype, **_: lax.convert_element_type(x, new_dtype),
    "conj": lambda x, **_: lax.conj(x),
    "concatenate": lambda *operands, dimension: lax.concatenate(operands, dimension),
    "broadcast_in_dim": lambda x, shape, broadcast_dimensions, **_: lax.broadcast_in_dim(
        x, shape, broadcast_dimensions
    ),
    "cholesky": lambda x: lax.linalg.cholesky(x, symmetrize_input=False),
    "svd": _svd,
    "triangular_solve": lambda a, b, **options: lax.linalg.triangular_solve(a, b, **options),
    "approx_top_k": _top_k,
}


class _Room(ModuleType):
    """A public module with primitives by names that end in _p, and with further names."""

    def __init__(self, public: Any, **names: Any):
        super().__init__("room")
        self._public = public
        vars(self).update(names)

    def __getattr__(self, name: str) -> Any:
        return Primitive(name[:-2]) if name.endswith("_p") else getattr(self._public, name)


class _Nothing:
    """A stand-in that returns itself from every call and attribute."""

    def __call__(self, *_: Any, **__: Any) -> _Nothing:
        return self

    def __getattr__(self, name: str) -> _Nothing:
        return self


def _dtypes() -> SimpleNamespace:
    floats, integers = [np.float32, np.float64], [np.int8, np.int16, np.int32, np.int64]
    of_names = SimpleNamespace(
        floating=floats,
        all_floating=[ml_dtypes.bfloat16, np.float16, *floats],
        all_integer=integers,
        unsigned=[np.uint32, np.uint64],
        all_unsigned=[np.uint8, np.uint16, np.uint32, np.uint64],
        complex=[np.complex64, np.complex128],
        boolean=[np.bool_],
    )
    of_names.all_inexact = of_names.all_floating + of_names.complex
    of_names.all = of_names.all_inexact + integers + of_names.all_unsigned + of_names.boolean
    return of_names


def _windows(tangents: Any, operand: Any, prim: Any, *window: Any) -> Any:
    """An array with the shape of the selected elements; the module reads nothing but the shape."""
    return lax.reduce_window(tangents, np.zeros((), tangents.dtype)[()], lax.max, *window)


def _scope() -> dict[str, Any]:
    util = SimpleNamespace(
        dtypes=_dtypes(),
        rand_default=_Nothing(),
        rand_small=_Nothing(),
        rand_nonzero=_Nothing(),
        rand_int=_Nothing(),
        device_under_test=lambda: "cpu",
        skip_on_devices=lambda *_: lambda test: test,
        sanitize_test_name=str,
        dtype_str=lambda dtype: np.dtype(dtype).name,
        format_shape_dtype_string=lambda shape, dtype: f"{np.dtype(dtype).name}{shape}",
    )
    dtypes = _Room(jax.dtypes, iinfo=jnp.iinfo, finfo=jnp.finfo, bfloat16=ml_dtypes.bfloat16)
    return {
        "operator": operator,
        "os": os,
        "jtu": util,
        "dtypes": dtypes,
        "lax": _Room(lax),
        "lax_control_flow": lax,
        "lax_windowed_reductions": _Room(lax, _select_and_gather_add=_windows, _select_and_scatter_add=None),
        "ad_util": _Room(lax, add_jaxvals_p=Primitive("add_any")),
        "api": jax,
        "config": SimpleNamespace(enable_x64=SimpleNamespace(value=True)),
        "dispatch": _Room(jax, ArrayCopySemantics=_Nothing()),
        "prng": _Room(None),
        "jnp": jnp,
        "jnp_linalg": jnp.linalg,
        "random": jax.random,
        "jax_random": jax.random,
        "typing": SimpleNamespace(DTypeLike=object),
        "xb": jax,
    }


def harnesses_of(source: str) -> list[Any]:
    """The harnesses that the text of JAX's module defines."""
    text = "\n".join(line for line in source.split("\n") if not line.startswith(_PRIVATE))
    module = sys.modules[_NAME] = ModuleType(_NAME)
    vars(module).update(_scope())
    code = compile(text, _NAME, "exec", flags=__future__.annotations.compiler_flag, dont_inherit=True)
    exec(code, vars(module))
    return vars(module)["all_harnesses"]
