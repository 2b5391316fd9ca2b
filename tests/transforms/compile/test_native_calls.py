"""Calls that native code makes: which kinds there are, and that they behave like any other.

First which calls are native: they run no Python function. Then that every other
call goes the general way and answers as before; then places, settings and counts.
"""

from __future__ import annotations

import inspect
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import tree
from rune.array import Array
from rune.errors import ArgumentError, DeletedArrayError, NaNError
from rune.transforms.compile import jit
from tests.support.arrays import array
from tests.support.close import same
from tests.transforms.compile.native_kinds import KINDS, Layer, Pair, X, Y, is_native, kinds, leaves_of, warm

# --- kinds of calls ---------------------------------------------------------------------------


@kinds
def test_a_kind_of_call_is_native_from_the_third_on(kind: str):
    function, args, kwargs, options = KINDS[kind]
    f = warm(rune.jit(function, **options), *args, **kwargs)

    makes_trees = kind.endswith(" made")  # by functions of Python's
    makes_blocks = kind == "large"
    assert is_native(lambda: f(*args, **kwargs)) != (makes_trees or makes_blocks)
    assert len(f._native_calls) == 1


@kinds
def test_native_calls_return_the_results_of_general_calls(kind: str, monkeypatch: pytest.MonkeyPatch):
    function, args, kwargs, options = KINDS[kind]
    monkeypatch.setattr(jit, "NATIVE_CALLS", 0)
    general = warm(rune.jit(function, **options), *args, **kwargs)(*args, **kwargs)
    monkeypatch.undo()
    native = warm(rune.jit(function, **options), *args, **kwargs)(*args, **kwargs)

    assert tree.structure(native) == tree.structure(general)
    for a, b in zip(tree.leaves(native), tree.leaves(general), strict=True):
        assert (type(a), a.type, a.place) == (Array, b.type, b.place)
    same(leaves_of(general), leaves_of(native))


def test_functions_with_native_calls_do_not_affect_other_functions():
    method = jit.Jitted.__call__
    f, other = rune.jit(lambda x: x + 1.0), rune.jit(lambda x: x - 1.0)
    for _ in range(3):
        f(array([1.0]))

    assert type(f).__call__ is not method
    assert jit.Jitted.__call__ is method is type(other).__call__


def test_arguments_are_read_again_in_every_call():
    f = warm(rune.jit(lambda p, s: {k: v * s for k, v in p.items()}), {"a": X, "b": Y}, 2.0)

    for k in range(5):
        outputs = f({"b": Y + k, "a": X - k}, 2.0 + k)
        same(np.asarray(X - k) * (2.0 + k), outputs["a"])
        same(np.asarray(Y + k) * (2.0 + k), outputs["b"])


def test_results_have_their_own_memory():
    f = warm(rune.jit(lambda a: (a, a + 1.0)), X)
    first, second = f(X), f(X)

    pointers = {np.asarray(x).ctypes.data for x in (*first, *second, X)}
    assert len(pointers) == 5


def test_several_kinds_of_one_function_are_native():
    f = rune.jit(lambda a: tree.map(lambda leaf: leaf * 2.0, a))
    arguments = (X, Y, 1.5, [X], {"a": X})
    for x in arguments:
        warm(f, x)

    assert all(is_native(lambda x=x: f(x)) for x in arguments)


def test_kinds_beyond_those_that_are_kept_go_the_general_way():
    f = rune.jit(lambda a: a + 1.0)
    arguments = [array(np.ones(n, np.float32)) for n in range(1, jit.NATIVE_CALLS + 3)]
    for x in arguments:
        warm(f, x)

    assert [is_native(lambda x=x: f(x)) for x in arguments].count(True) == jit.NATIVE_CALLS
    assert all(np.asarray(f(x)).tolist() == [2.0] * x.shape[0] for x in arguments)


AWAY = [d.name for d in rune.devices() if d.target.backend not in ("cpu", "null", "reference")]

# --- what goes the general way ----------------------------------------------------------------

GENERAL: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "a NumPy scalar": (lambda a: a * 2.0, (np.float32(3.0),)),
    "a complex number": (lambda a: a * 2.0, (3j,)),
    "a NumPy array that is converted": (lambda a: a * 2.0, (np.ones(3),)),
    "a dataclass": (lambda a: a.w + a.b, (Layer(X, Y),)),
    "a namedtuple": (lambda a: a.a + a.b, (Pair(X, Y),)),
    "an ordered dict": (lambda a: a["x"] * 2.0, (OrderedDict(x=X),)),
    "keys that are no strings": (lambda a: a[1] * 2.0, ({1: X},)),
    "a callback": (lambda a: rune.pure_callback(lambda x: x * 2.0, rune.ShapeDtypeStruct((3,), np.float32), a), (X,)),
}


@pytest.mark.parametrize("kind", GENERAL)
def test_other_kinds_are_called_as_before(kind: str):
    function, args = GENERAL[kind]
    f = rune.jit(function)
    first = f(*args)

    for _ in range(3):
        same(leaves_of(first), leaves_of(f(*args)))
    assert f._native_calls == ()


@pytest.mark.parametrize(
    "other",
    [
        array([1.0, 2.0]),
        array([1, 2, 3]),
        Y,
        2.0,
        [X],
        (X,),
        {"a": X},
        {},
        None,
        np.float32(2.0),
        np.ones(3, np.float32),
        np.ones(3, np.int32),
        Layer(X, X),
        True,
        5,
    ],
    ids=str,
)
@pytest.mark.parametrize("known", [X, [X], {"a": X}, 1.0, np.ones(3, np.float32)], ids=str)
def test_a_call_of_a_new_kind_is_never_mistaken_for_a_known_kind(known: Any, other: Any):
    def function(x: Any) -> Any:
        return tree.map(lambda leaf: leaf + leaf, x)

    f = warm(rune.jit(function), known)

    outputs, expected = f(other), rune.jit(function)(other)
    assert tree.structure(outputs) == tree.structure(expected)
    types = [x.type for x in tree.leaves(expected)]
    assert [x.type for x in tree.leaves(outputs)] == types
    same(leaves_of(expected), leaves_of(outputs))


@pytest.mark.parametrize(
    "other",
    [{"a": X}, {"a": X, "c": X}, {"a": X, "b": X, "c": X}, {"a": X, 1: X}, {}],
    ids=["fewer", "another", "more", "no string", "none"],
)
def test_a_dict_with_other_keys_is_another_kind(other: Any):
    f = warm(rune.jit(lambda p: len(p) + (p["a"] if "a" in p else X)), {"a": X, "b": X})

    if 1 in other:
        with pytest.raises(ArgumentError, match="cannot sort the keys"):
            f(other)
    else:
        same(len(other) + np.asarray(X), f(other))


def test_a_subclass_of_a_container_is_another_kind():
    class UserTuple(tuple):
        __slots__ = ()

    f = warm(rune.jit(lambda p: p[0] + 1.0), (X,))

    with pytest.raises(ArgumentError, match="cannot take UserTuple"):
        f(UserTuple((X,)))


def test_too_many_and_too_few_arguments_are_the_functions_own_error():
    f = warm(rune.jit(lambda a, b: a + b), X, X)

    for args in ((X,), (X, X, X)):
        with pytest.raises(TypeError, match="positional argument"):
            f(*args)
    with pytest.raises(TypeError, match="unexpected keyword"):
        f(X, c=X)


def test_static_values_that_are_equal_but_of_other_types_are_other_kinds():
    f = warm(rune.jit(lambda a, k: str(type(k).__name__) == "int" and a, static_argnums=1), X, 1)

    same(X, f(X, 1))
    assert not np.asarray(f(X, True))
    assert not np.asarray(f(X, 1.0))


@dataclass(unsafe_hash=True)
class Setting:
    n: int


@dataclass(frozen=True)
class Fixed:
    n: Any


class Colour(Enum):
    RED = 1


@pytest.mark.parametrize("wrap", [lambda s: s, lambda s: (s, 1), Fixed], ids=["bare", "in", "of"])
def test_a_static_value_whose_hash_has_changed_is_traced_again(wrap: Callable[[Any], Any]):
    setting = Setting(2)
    static = wrap(setting)
    f = warm(rune.jit(lambda a, s: a * setting.n, static_argnums=1), X, static)

    setting.n = 5
    same(5 * np.asarray(X), f(X, static))


@pytest.mark.parametrize(
    "static",
    [("a", (1, None)), Fixed((1, 2)), Pair(1, "b"), Colour.RED, np.dtype("f4"), len, float, warm],
    ids=lambda value: type(value).__name__,
)
def test_calls_with_static_values_that_cannot_change_are_native(static: Any):
    f = warm(rune.jit(lambda a, s: a + 1.0, static_argnums=1), X, static)

    assert is_native(lambda: f(X, static))


def on_a_small_stack(function: Callable[[], None]) -> None:
    """Call in a thread with a stack of 512 KiB."""
    before = threading.stack_size(1 << 19)
    try:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(function).result()
    finally:
        threading.stack_size(before)


def test_any_number_of_arguments_too_many_is_the_functions_own_error():
    f = warm(rune.jit(lambda a, **names: a + 1.0), X)
    names = {f"n{k}": None for k in range(300)}

    def call() -> None:
        with pytest.raises(TypeError, match="100000 were given"):
            f(*[X] * 100_000)
        same(np.asarray(X) + 1.0, f(X, **names))

    on_a_small_stack(call)  # of fewer bytes than the addresses of the arguments take


def test_whole_numbers_out_of_range_are_errors():
    f = warm(rune.jit(lambda a: a + 1), 5)

    assert int(f(2**31 - 2)) == 2**31 - 1
    for wrong in (2**31, -(2**31) - 1, 2**80):
        with pytest.raises(OverflowError, match="cannot hold"):
            f(wrong)


@pytest.mark.parametrize("value", [0.1, -0.0, 1e-45, 3.4028234e38, float("inf"), float("nan")])
def test_numbers_are_rounded_as_before(value: float):
    f = warm(rune.jit(lambda a: -a), 1.0)

    same(-np.float32(value), f(value))


def test_a_call_with_a_deleted_array_raises_an_error():
    f, x = rune.jit(lambda a, b: a + b), X + 1.0
    warm(f, x, x)
    x.delete()

    with pytest.raises(DeletedArrayError, match="donated to a jitted call, or deleted"):
        f(x, x)


def test_a_strided_view_is_made_dense_and_then_native():
    x = array(np.arange(12, dtype=np.float32).reshape(3, 4))
    f = warm(rune.jit(lambda a: a + 1.0), x.T + 0.0)
    view = x.T

    same(np.asarray(x).T + 1.0, f(view))
    assert is_native(lambda: f(view))


def test_under_a_transformation_the_function_is_traced():
    f = warm(rune.jit(lambda a: rnp.sum(a * a)), X)

    same(2.0 * np.asarray(X), rune.grad(f)(X))
    same(np.asarray(X) ** 2, rune.vmap(rune.jit(lambda a: a * a))(X))
    assert "jit" in str(rune.make_program(lambda a: f(a))(X))


def test_random_draws_have_their_source_in_every_call():
    f = rune.jit(lambda a: a + rune.random.uniform(shape=(3,)))
    with rune.random.seed(0):
        first, second, third = f(X), f(X), f(X)

    assert len({np.asarray(x).tobytes() for x in (first, second, third)}) == 3


# --- settings, places, counts -----------------------------------------------------------------


def test_other_settings_are_another_kind():
    f = warm(rune.jit(lambda a: a * 2.0), 1.5)

    with rune.enable_x64():
        assert f(1.5).dtype == np.float64
    with rune.configure(check_nans=True), pytest.raises(NaNError):
        warm(rune.jit(lambda a: a / a), X)(X * 0.0)
    assert is_native(lambda: f(1.5))


def test_a_default_device_elsewhere_is_obeyed():
    f = warm(rune.jit(lambda a: a + 1.0), X)

    with rune.device("reference:0"):
        assert f(X).device.name == "reference:0"
    assert f(X).device.name == "cpu:0"


def test_results_are_committed_if_an_argument_is():
    f = warm(rune.jit(lambda a, b: a + b), X, X)
    x_on_device = rune.device_put(X, "cpu")

    assert not f(X, X).committed
    assert f(X, x_on_device).committed
    assert f(x_on_device, X).committed
    assert is_native(lambda: f(x_on_device, X))


@pytest.mark.parametrize("device", AWAY)
def test_a_call_that_fetches_its_argument_from_a_third_device_is_made_as_before(device: str):
    f, x_on_reference = rune.jit(lambda x: x * 2.0, device=device), rune.device_put(X, "reference:0")

    for _ in range(4):
        same(np.asarray(X) * 2, f(x_on_reference))
    assert f._native_calls == ()


def test_a_call_runs_on_the_device_of_its_argument():
    f = warm(rune.jit(lambda a: a + 1.0), X)
    x = rune.device_put(X, "reference:0")

    assert f(x).device.name == "reference:0"


def test_native_calls_are_counted():
    f = warm(rune.jit(lambda a: a + 1.0), X)
    before = rune.work_stats("cpu:0")

    with rune.counting() as counts:
        for _ in range(7):
            f(X)

    after = rune.work_stats("cpu:0")
    assert (counts.traces, counts.compiles, counts.runs) == (0, 0, 7)
    assert after.submitted - before.submitted == after.finished - before.finished == 7
    assert after.in_flight == 0


def test_clearing_the_cache_forgets_native_calls():
    f = warm(rune.jit(lambda a: a + 1.0), X)
    f.clear_cache()

    with rune.counting() as counts:
        f(X)
    assert (counts.traces, counts.runs) == (1, 1)


def test_methods_and_names_are_as_before():
    def documented(a: Any) -> Any:
        """Says what it does."""
        return a + 1.0

    f = warm(rune.jit(documented), X)

    assert (f.__name__, f.__doc__) == ("documented", "Says what it does.")
    assert f.__wrapped__ is documented
    assert "tracing and compiling" in (type(f).__call__.__doc__ or "")
    assert str(inspect.signature(f)) == "(a: 'Any') -> 'Any'"
    assert str(inspect.signature(f.__call__)) == "(*args, **kwargs)"
