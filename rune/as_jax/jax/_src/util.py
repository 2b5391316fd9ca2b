"""`jax._src.util`: work on lists and functions (optree, torchax, DESC)."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import SupportsIndex, TypeVar

from rune import absent

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., object])

__getattr__ = absent.of(__name__)


def safe_map(f: Callable[..., T], *args: Iterable[object]) -> list[T]:
    """`f` of the elements of equally long iterables. Errors: ValueError if lengths differ."""
    return [f(*elements) for elements in zip(*args, strict=True)]


def safe_zip(*args: Iterable[T]) -> list[tuple[T, ...]]:
    """The elements of equally long iterables, zipped. Errors: ValueError if lengths differ."""
    return [*zip(*args, strict=True)]


class HashablePartial:
    """A partial application that equals one of the same function and arguments."""

    def __init__(self, f: Callable[..., object], *args: Hashable, **kwargs: Hashable):
        self.f, self.args, self.kwargs = f, args, kwargs

    def __call__(self, *args: object, **kwargs: object) -> object:
        return self.f(*self.args, *args, **self.kwargs, **kwargs)

    def _key(self) -> tuple[Hashable, ...]:
        # By code, as in JAX: a lambda that is evaluated twice is one function.
        return getattr(self.f, "__code__", self.f), self.args, frozenset(self.kwargs.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HashablePartial) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


def unzip2(pairs: Iterable[tuple[T, T]]) -> tuple[tuple[T, ...], tuple[T, ...]]:
    """The first elements of pairs, and the second ones."""
    rows = [*pairs]
    return tuple(first for first, _ in rows), tuple(second for _, second in rows)


def split_list(args: Iterable[T], ns: Sequence[int]) -> list[list[T]]:
    """Consecutive lists of these lengths, and a last one of the remaining elements."""
    elements = [*args]
    bounds = [0, *itertools.accumulate(ns), len(elements)]
    return [elements[a:b] for a, b in itertools.pairwise(bounds)]


def partition_list(bs: Sequence[bool], l: Sequence[T]) -> tuple[list[T], list[T]]:  # noqa: E741  # JAX's name
    """The elements whose mark is false, and those whose mark is true."""
    pairs = [*zip(bs, l, strict=True)]
    return [x for b, x in pairs if not b], [x for b, x in pairs if b]


def merge_lists(bs: Sequence[bool], l0: Sequence[T], l1: Sequence[T]) -> list[T]:
    """The inverse of `partition_list`. Errors: ValueError if lengths do not match."""
    if (len(l0), len(l1)) != (len(bs) - sum(bs), sum(bs)):
        raise ValueError(
            f"merge_lists: cannot merge lists of {len(l0)} and {len(l1)} by {len(bs)} marks, {sum(bs)} true"
        )
    sides = (iter(l0), iter(l1))
    return [next(sides[b]) for b in bs]


def canonicalize_axis(axis: SupportsIndex, num_dims: int) -> int:
    """The axis counted from the front. Errors: ValueError if it is out of bounds."""
    number = operator.index(axis)
    if not -num_dims <= number < num_dims:
        raise ValueError(f"axis {number} is out of bounds for array of dimension {num_dims}")
    return number % num_dims


def wraps(
    wrapped: Callable[..., object], namestr: str | None = None, docstr: str | None = None, **kwargs: object
) -> Callable[[F], F]:
    """As functools.wraps; name and docstring are formats with {fun} and {doc}."""
    name = getattr(wrapped, "__name__", "<unnamed function>")
    doc = getattr(wrapped, "__doc__", None) or ""

    def decorate(function: F) -> F:
        functools.update_wrapper(function, wrapped)
        function.__name__ = namestr.format(fun=name) if namestr else name
        function.__doc__ = docstr.format(fun=name, doc=doc, **kwargs) if docstr else doc
        return function

    return decorate
