"""Automatic sizes: an axis that changed twice becomes symbolic, and no answer changes.

How often it traces and compiles; which sizes a form serves; what makes an axis exact for good, and
the warnings; and that the setting is off by default. That it changes no answer is a law, in
tests/laws/test_automatic_sizes.py.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from tests.support.close import near, same

Shapes = Sequence[tuple[tuple[int, ...], ...]]  # of the arguments, call by call


@pytest.fixture(autouse=True)
def _automatic():
    with rune.configure(symbolic="auto"):
        yield


def ones(*shape: int) -> Any:
    return rnp.ones(shape)


def counted(function: Callable[..., Any], shapes: Shapes, **options: Any) -> list[int]:
    """How many programs each call compiles."""
    f, compiles = rune.jit(function, **options), []
    for call in shapes:
        with rune.counting() as counts:
            f(*(ones(*shape) for shape in call))
        compiles.append(counts.compiles)
    return compiles


def run(f: Any, *sizes: int) -> None:
    """Call a function of one vector, for each size."""
    for n in sizes:
        f(ones(n))


def each(*sizes: int) -> Shapes:
    return [((n,),) for n in sizes]


# --- how often it compiles ------------------------------------------------------------------------


def test_the_third_size_of_an_axis_compiles_for_all_others():
    assert counted(rnp.sum, each(3, 4, 5, 6, 1000, 3, 2)) == [1, 1, 1, 0, 0, 0, 0]


def test_a_size_may_be_returned():
    f = rune.jit(lambda x: (x.sum(), x.shape[0]))
    run(f, 3, 4, 5)

    with rune.counting() as counts:
        assert [int(f(ones(n))[1]) for n in (6, 1, 40)] == [6, 1, 40]
    assert counts.traces == 0


def test_sizes_that_recur_do_not_count_as_changes():
    assert counted(rnp.sum, each(3, 4, 3, 4, 4, 3)) == [1, 1, 0, 0, 0, 0]


def test_one_trace_covers_sizes_not_yet_seen():
    f = rune.jit(lambda x: x * 2)
    run(f, 3, 4, 5)

    with rune.counting() as counts:
        for n in range(6, 40):
            same(np.full(n, 2.0, np.float32), f(ones(n)))
    assert (counts.traces, counts.compiles, counts.runs) == (0, 0, 34)
    assert f.cache_size() == 3


def test_axes_become_symbolic_one_by_one():
    shapes = [((n, 4),) for n in (3, 5, 6, 7)] + [((7, m),) for m in (5, 6, 7)] + [((2, 9),)]

    assert counted(rnp.sum, shapes) == [1, 1, 1, 0, 1, 1, 0, 0]


def test_equal_axes_have_one_name_until_they_differ():
    f = rune.jit(lambda x, y: rnp.concatenate([x, y]))
    for n in (3, 4, 5):
        f(ones(n), ones(n))
    assert str(f.program(ones(6), ones(6)).output_types[0]) == "f32[2*n]"

    with rune.counting() as counts:
        for n, m in ((6, 7), (8, 9), (5, 5)):
            same(np.ones(n + m, np.float32), f(ones(n), ones(m)))
    assert (counts.traces, counts.compiles) == (1, 1)


def test_a_size_of_0_or_1_does_not_count_as_a_change():
    assert counted(lambda x: x * 2, each(1, 0, 5, 6, 7, 8)) == [1, 1, 1, 1, 1, 0]


def test_all_leaves_and_keyword_arguments_count():
    f = rune.jit(lambda p, *, scale: p["a"][0] * scale["k"])
    for n in (3, 4, 5):
        f({"a": [ones(n)]}, scale={"k": ones(n)})

    with rune.counting() as counts:
        same(np.ones(9, np.float32), f({"a": [ones(9)]}, scale={"k": ones(9)}))
    assert counts.traces == 0


def test_calls_that_differ_in_more_than_sizes_do_not_count_together():
    f = rune.jit(lambda mode, x: x * 2 if mode else x, static_argnums=0)
    compiles = []
    for mode, dtype, n in [(0, "f32", 3), (1, "f32", 4), (0, "i32", 5), (0, "f32", 6)]:
        with rune.counting() as counts:
            f(mode, rnp.ones(n, dtype))
        compiles.append(counts.compiles)

    assert compiles == [1, 1, 1, 1]
    assert all(not t.input_types[0].is_symbolic for t in programs(f))


def programs(f: Any) -> list[Any]:
    return [trace.program for traces in f._trace_cache.by_key.values() for trace in traces]


def test_declared_sizes_are_not_made_automatic():
    f = rune.jit(lambda x: x * 2, dims={"n": (1, 64)}, in_dims=("n,_",))

    for m in (3, 4, 5, 6):
        f(ones(2, m))
    assert f.cache_size() == 4


def test_inside_another_trace_the_sizes_belong_to_that_trace():
    inner = rune.jit(lambda x: x * 2)
    outer = rune.jit(lambda xs: sum(inner(x).sum() for x in xs))

    assert float(outer([ones(n) for n in (3, 4, 5, 6)])) == 36
    assert all(not p.input_types[0].is_symbolic for p in programs(inner))


def test_a_donated_argument_gives_its_memory_to_the_result():
    f = rune.jit(lambda x: x + 1, donate_argnums=0)
    for n in (3, 4, 5):
        f(ones(n) + 1)
    x = ones(9) + 1
    address = x.buffer.ctypes.data

    assert f(x).buffer.ctypes.data == address
    assert x.is_deleted()


# --- which sizes a form serves --------------------------------------------------------------------


def test_a_form_accepts_a_size_of_1_where_nothing_depends_on_it():
    assert counted(lambda x: rnp.sum(x * 2), each(5, 6, 7, 1, 0)) == [1, 1, 1, 0, 1]
    assert counted(lambda x: rnp.squeeze(x), each(5, 6, 7, 1, 8)) == [1, 1, 1, 1, 0]


def test_a_comparison_of_a_size_narrows_the_range():
    f = rune.jit(lambda x: x[3:])
    run(f, 5, 6, 7, 8)

    (known,) = (p for p in programs(f) if p.input_types[0].is_symbolic)
    assert "where n in 3.." in str(known)


def test_both_sides_of_a_comparison_get_a_form():
    branch = each(3, 4, 5, 6, 11, 12, 13, 9, 10)

    assert counted(lambda x: x if x.shape[0] > 10 else 2 * x, branch) == [1, 1, 1, 0, 1, 0, 0, 0, 0]


def test_a_size_that_python_found_unequal_is_traced_apart():
    compiles = counted(lambda x: x if x.shape[0] == 7 else 2 * x, each(3, 4, 5, 6, 7, 8))

    assert compiles == [1, 1, 1, 0, 1, 0]


def test_a_form_may_exclude_the_very_size_it_was_found_at():
    compiles = counted(lambda x: x if x.shape[0] == 5 else 2 * x, each(3, 4, 5, 6, 5, 8))

    assert compiles == [1, 1, 1, 1, 0, 0]


# --- what cannot be symbolic ----------------------------------------------------------------------


def warning_texts(function: Callable[..., Any], shapes: Shapes) -> list[str]:
    """The warnings of these calls."""
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        counted(function, shapes)
    return [str(w.message) for w in records]


@functools.lru_cache
def remembered(size: int) -> float:
    return float(size)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: sum(x[i] for i in range(x.shape[0])), "index: cannot make a Python index of"),
        (lambda x: x * (2 if x.shape[0] % 2 else 3), r"truth value of a dimension \(n % 2"),
        (lambda x: x.reshape(2, -1), r"reshape: .* \(n elements may not divide by 2\)"),
        (lambda x: x * {4: 1.0}.get(x.shape[0], 2.0), "hash: cannot look up the dimension n in"),
        (lambda x: x * remembered(x.shape[0]), "hash: cannot look up the dimension n in"),
        (
            lambda x: x if isinstance(x.shape[0], int) else x[None],
            r"cannot trust the results \("
            r"f32\[1,4\] for n = 4, where f32\[4\] was found before\)",
        ),
        (lambda x: x * 0.5 ** x.shape[0], "cannot compute with n and 0.5"),
    ],
)
def test_a_function_that_needs_a_size_as_a_number_is_traced_for_each_and_warns_once(function: Any, reason: str):
    (message,) = warning_texts(function, each(4, 6, 8, 10, 12))

    first, hint, place = message.splitlines()
    assert first.startswith("jit: cannot make axis 0 of argument[0] of lambda symbolic (")
    assert re.search(reason, first)
    assert hint.startswith("hint: each size is traced")
    assert "test_automatic_sizes.py" in place


def test_an_axis_that_cannot_be_symbolic_leaves_the_others_so():
    def function(x: Any) -> Any:
        return sum(x[:, i] for i in range(x.shape[1]))

    shapes = [((n, 4),) for n in (2, 3, 4, 5)] + [((5, m),) for m in (5, 6, 7)] + [((9, 4),)]

    (message,) = warning_texts(function, shapes)
    assert "cannot make axis 1 of argument[0] of function symbolic" in message


def test_axes_with_the_same_reason_are_made_exact_together():
    def function(x: Any, y: Any, z: Any) -> Any:
        return x.reshape(y.shape) if x.shape == y.shape else z * (2 if y.shape[0] % 2 else 3)

    (message,) = warning_texts(function, [((n,), (2 * n,), (3 * n,)) for n in (2, 3, 4, 5)])
    assert "cannot make axis 0 of argument[1] of function symbolic (truth value" in message


def test_automatic_sizes_stay_on_if_the_exact_trace_fails_too():
    def function(x: Any) -> Any:
        if x.shape[0] == 5:
            raise ArithmeticError("not for 5")
        return x * 2

    f = rune.jit(function)
    run(f, 3, 4)
    with pytest.raises(ArithmeticError, match="not for 5"):
        f(ones(5))

    f(ones(6))
    with rune.counting() as counts:
        f(ones(7))
    assert counts.traces == 0


def test_an_error_that_the_exact_trace_has_too_is_the_callers():
    f = rune.jit(lambda x: x.reshape(2, -1))
    run(f, 4, 6)

    with pytest.raises(rune.errors.ShapeError, match=r"cannot reshape f32\[7\] to \(2, -1\)"):
        f(ones(7))
    with pytest.raises(UserWarning, match="n elements may not divide by 2"):
        f(ones(8))


def test_a_form_that_cannot_be_derived_is_given_up():
    f = rune.jit(rnp.prod)
    run(f, 2, 3, 4, 5, 7)

    with pytest.warns(UserWarning, match=r"of prod symbolic \(jvp: .* has no upper bound\)"):
        hessian = rune.hessian(f)(ones(5))
    near(1 - np.eye(5), hessian, relative=1e-6, why="a product of ones")
    near(1 - np.eye(6), rune.hessian(f)(ones(6)), relative=1e-6, why="a product of ones")
    run(f, 5, 7)
    assert all(not p.input_types[0].is_symbolic for p in programs(f))


def test_a_warning_that_is_an_error_leaves_the_function_as_it_should_be():
    f = rune.jit(lambda x: sum(x[i] for i in range(x.shape[0])))
    run(f, 3, 4)

    with pytest.raises(UserWarning, match="cannot make axis 0"):
        f(ones(5))
    assert [float(f(ones(n))) for n in (5, 6)] == [5.0, 6.0]


# --- the setting ----------------------------------------------------------------------------------


def test_it_is_off_by_default():
    with rune.configure(symbolic="declared"):
        assert counted(rnp.sum, each(3, 4, 5, 6)) == [1, 1, 1, 1]
    assert rune.config.Config().symbolic == "declared"


def test_exact_traces_are_shared_and_forms_serve_only_where_it_is_on():
    f = rune.jit(lambda x: x * 2)
    run(f, 3, 4, 5)  # the last by a form

    with rune.configure(symbolic="declared"):
        with rune.counting() as of_known_sizes:
            run(f, 3, 4)
        with rune.counting() as of_new_sizes:
            run(f, 5, 6)
    assert (of_known_sizes.traces, of_new_sizes.traces) == (0, 2)


def test_another_word_is_refused():
    with pytest.raises(ValueError, match=r"configure: cannot use symbolic='always' \('declared'"):
        rune.configure(symbolic="always").__enter__()


def test_a_setting_that_does_not_exist_is_refused():
    with pytest.raises(TypeError, match=r"configure: cannot set symbolc \(settings: .*symbolic"):
        rune.configure(symbolc="auto").__enter__()


def test_forgetting_starts_over():
    f = rune.jit(rnp.sum)
    run(f, 3, 4, 5)
    f.clear_cache()

    with rune.counting() as counts:
        run(f, 6, 7)
    assert counts.compiles == 2


def test_a_miss_is_explained_by_the_sizes():
    f = rune.jit(lambda x: x * 2)
    run(f, 3, 4)

    with rune.explain_cache_misses() as reasons:
        f(ones(5))
    assert reasons == ["jit: traced lambda again (argument[0]: shape [4] before, [n] now)"]
