"""`jax.extend.linear_util`: functions wrapped in transformations.

    wrap_init(f)                    a function that transformations can wrap
    @transformation                 def around(*args): out = yield args, kwargs; yield out
    @transformation_with_aux        the same, yielding (out, aux) at the end; `aux` is read later
    @transformation2                def around(f, *args): return f(*args)

Flax, Haiku, Distrax and NumPyro trace with these.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from typing import Any

from rune import absent
from rune.errors import RuneError
from rune.transforms.arguments import function_name

Function = Callable[..., Any]


class StoreException(RuneError):
    """A store was read while empty, or written twice."""


class Store:
    """Room for one value."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: list[Any] = []  # at most one; a list, since the value may be None

    def store(self, value: object) -> None:
        """Store the value. Errors: StoreException if there is one."""
        if self.values:
            raise StoreException("linear_util: cannot store a second value (the function ran twice)")
        self.values.append(value)

    def reset(self) -> None:
        """Forget the value."""
        self.values.clear()

    @property
    def val(self) -> Any:
        """The value. Errors: StoreException if there is none."""
        if not self.values:
            raise StoreException("linear_util: cannot read an empty store (the function has not run)")
        return self.values[0]

    def __bool__(self) -> bool:
        return bool(self.values)


class WrappedFun:
    """A function, and the same function wrapped in its transformations."""

    __slots__ = ("debug_info", "f", "f_transformed", "in_type", "params", "stores", "transforms")

    def __init__(
        self,
        f: Function,
        f_transformed: Function,
        transforms: tuple[tuple[Function, tuple[object, ...]], ...] = (),
        stores: tuple[Store | None, ...] = (),
        params: tuple[tuple[str, Any], ...] = (),
        in_type: object = None,
        debug_info: object = None,
    ):
        self.f, self.f_transformed, self.transforms, self.stores = f, f_transformed, transforms, stores
        self.params, self.in_type, self.debug_info = params, in_type, debug_info

    @property
    def __name__(self) -> str:
        return function_name(self.f)

    def wrap(self, around: Function, arguments: tuple[object, ...], store: Store | None) -> WrappedFun:
        """The function wrapped once more: around(f, [store,] *arguments, *args)."""
        first = arguments if store is None else (store, *arguments)
        composition = functools.partial(around, self.f_transformed, *first)
        transforms, stores = ((around, arguments), *self.transforms), (store, *self.stores)
        return WrappedFun(self.f, composition, transforms, stores, self.params, None, self.debug_info)

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """Call it with all transformations."""
        return self.f_transformed(*args, **kwargs)

    def _key(self) -> tuple[Any, ...]:
        return self.f, self.transforms, self.params, self.in_type

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WrappedFun) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"WrappedFun({self.__name__}, {len(self.transforms)} transformations)"


def wrap_init(f: Function, params: dict[str, Any] | None = None, *, debug_info: object = None) -> WrappedFun:
    """The function, without transformations; `params` are keyword arguments of every call."""
    keywords = params or {}
    function = functools.partial(f, **keywords) if keywords else f
    return WrappedFun(f, function, params=tuple(sorted(keywords.items())), debug_info=debug_info)


def transformation2(around: Function) -> Callable[..., WrappedFun]:
    """around(f, *arguments, *args) -> results, as a transformation of wrapped functions."""
    return lambda function, *arguments: function.wrap(around, arguments, None)


def transformation_with_aux2(
    around: Function, *, use_eq_store: bool = False
) -> Callable[..., tuple[WrappedFun, Callable[[], Any]]]:
    """around(f, store, *arguments, *args) -> results; its store is read after the call."""

    def transformed(function: WrappedFun, *arguments: object, **_: object) -> tuple[WrappedFun, Callable[[], Any]]:
        store = Store()
        return function.wrap(around, arguments, store), lambda: store.val

    return transformed


def _run_generator(f: Function, steps: Generator[tuple[tuple[Any, ...], dict[str, Any]], Any, Any]) -> Any:
    """Run a generator around f: it yields arguments, is sent results, and yields its own result."""
    args, kwargs = next(steps)
    return steps.send(f(*args, **kwargs))


def transformation(around: Callable[..., Generator]) -> Callable[..., WrappedFun]:
    """A transformation by a generator that yields (args, kwargs), is sent the results, and yields
    its own result."""

    def around2(f: Function, *args: Any, **kwargs: Any) -> Any:
        return _run_generator(f, around(*args, **kwargs))

    return transformation2(around2)


def transformation_with_aux(around: Callable[..., Generator]) -> Callable[..., tuple[WrappedFun, Callable[[], Any]]]:
    """The same for a generator that yields (result, aux) at the end."""

    def around2(f: Function, store: Store, *args: Any, **kwargs: Any) -> Any:
        out, aux = _run_generator(f, around(*args, **kwargs))
        store.store(aux)
        return out

    return transformation_with_aux2(around2)


def merge_linear_aux(aux1: Callable[[], Any], aux2: Callable[[], Any]) -> tuple[bool, Any]:
    """Whether the first of two functions ran, and what the one that ran has stored.

    Errors: StoreException if both ran, or neither.
    """
    try:
        first = aux1()
    except StoreException:
        return False, aux2()
    try:
        aux2()
    except StoreException:
        return True, first
    raise StoreException("linear_util: cannot choose between two functions that both ran")


def cache(call: Function, *, explain: Function | None = None) -> Function:
    """call(function, *args), cached by function and arguments together with its stores."""
    known: dict[Any, Any] = {}

    @functools.wraps(call)
    def remembered(function: WrappedFun, *args: Any) -> Any:
        key = (function, args)
        if key not in known:
            known[key] = call(function, *args), [s and s.values for s in function.stores]
            return known[key][0]
        result, store_values = known[key]
        # The call that filled the stores of the first function does not run again for this one.
        for store, values in zip(function.stores, store_values, strict=True):
            if store is not None and values and not store:
                store.store(values[0])
        return result

    remembered.cache_clear = known.clear  # type: ignore[attr-defined]
    return remembered


__getattr__ = absent.of(__name__)
