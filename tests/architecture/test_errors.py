"""Errors are part of the interface: every message, with the call that provokes it.

errors.txt is the golden text. A call stands there as a user would write it, then the error's
class and its whole message: operation, what is wrong, a hint, and the user's own line. After each
one everything works as before, which the last line of every provocation shows.
"""

from __future__ import annotations

import _thread
import linecache
import re
import threading
import time
from typing import Any

import numpy as np
import pytest

import rune
from rune import dtypes, ops
from rune.backends import device_named
from rune.backends.cpu_compile import compile_module
from rune.ops.promote import promoted
from tests.architecture.sources import HERE
from tests.support.arrays import array
from tests.support.close import same
from tests.support.expect import expect_file

# What stands in errors.txt, in order: a title, and the call.
CALLS: list[tuple[str, str]] = [
    ("shapes that do not fit", "x + rnp.ones(4)"),
    ("shapes that do not fit under jit", "rune.jit(lambda x: x @ rnp.ones((2, 2)))(x)"),
    ("a reshape to another size", "x.reshape(2, 2)"),
    ("a dtype without meaning", "rnp.sin(x).astype('quaternion')"),
    ("an operation that the dtype has not", "x & x"),
    ("a list in the place of an array", "x + [1.0, 2.0, 3.0]"),
    ("an assignment to an element", "x[0] = 1.0"),
    ("an unknown axis", "x.sum(axis=2)"),
    ("an axis given twice", "rnp.ones((2, 2)).sum(axis=(0, 0))"),
    ("an unknown axis of vmap", "rune.vmap(rnp.sin, in_axes=1)(x)"),
    ("sizes that differ under vmap", "rune.vmap(lambda a, b: a)(x, rnp.ones(4))"),
    ("a batched result without an axis", "rune.vmap(rnp.sin, out_axes=None)(x)"),
    ("a float index", "x[1.5]"),
    ("too many indices", "x[0, 0]"),
    ("grad of a result that is no scalar", "rune.grad(lambda x: x * x)(x)"),
    ("grad of several results", "rune.grad(lambda x: (x.sum(), x.sum()))(x)"),
    ("grad of an integer argument", "rune.grad(lambda n: n * 2.0)(3)"),
    ("grad of an integer in a tree", "rune.grad(lambda p: p['w'].sum())({'w': rnp.arange(3)})"),
    ("grad of an integer result", "rune.grad(lambda x: x.astype('i32').sum())(x)"),
    ("grad of an argument that is not there", "rune.grad(lambda x: x, argnums=1)(1.0)"),
    ("a tangent of another shape", "rune.jvp(rnp.sin, (x,), (rnp.ones(2),))"),
    ("a cotangent of another shape", "rune.vjp(rnp.sin, x)[1](rnp.ones(2))"),
    ("a derivative that does not exist", "rune.grad(lambda v: ops.nextafter(v, v))(1.0)"),
    ("a traced value as a truth value", "rune.jit(lambda x: x if x.sum() > 0 else -x)(x)"),
    ("a traced value as an integer", "rune.jit(lambda n: list(range(n)))(3)"),
    ("a traced value as a number", "rune.jit(lambda x: float(x.sum()))(x)"),
    ("a traced value in NumPy", "rune.jit(lambda x: np.asarray(x))(x)"),
    ("a traced mask as an index", "rune.jit(lambda x: x[x > 0])(x)"),
    ("an escaped traced value", "rune.jit(lambda x: kept.append(x) or x)(x); kept[0] + 1.0"),
    ("an argument that is no array", "rune.jit(lambda p: p)({'name': 'Ada'})"),
    ("an unhashable static argument", "rune.jit(lambda x, n: x, static_argnums=1)(x, [1])"),
    ("what is no function", "rune.jit(3)"),
    ("a donated array", "rune.jit(lambda v: v, donate_argnums=0)(given); given + 1.0"),
    ("a size out of its range", "rune.jit(lambda v: v, dims={'n': (1, 2)})(x)"),
    ("sizes that contradict each other",
     "rune.jit(lambda a, b: a, dims={'n': (1, 9)}, in_dims=('n', 'n'))(x, rnp.ones(4))"),
    ("a size that is no whole number",
     "rune.jit(lambda v: v, dims={'n': (1, 9)}, in_dims='2*n')(x)"),
    ("symbolic sizes that may differ",
     "rune.jit(lambda a, b: a + b, dims={'n': (1, 9), 'm': (1, 9)}, in_dims=('n', 'm'))(x, x)"),
    ("a symbolic size that may not divide",
     "rune.jit(lambda v: v.reshape(3, -1), dims={'n': (1, 9)})(x)"),
    ("a slice that symbolic sizes do not decide",
     "rune.jit(lambda a, b: a[:b.shape[0]],"
     " dims={'n': (1, 9), 'm': (1, 9)}, in_dims=('n', 'm'))(x, x)"),
    ("a symbolic size as a number", "rune.jit(lambda v: v * (v.shape[0] * 0.5), dims={'n': (1, 9)})(x)"),
    ("a pattern that says nothing", "rune.jit(lambda v: v, dims={'n': (1, 9)}, in_dims='k')(x)"),
    ("an unknown device", "rune.jit(lambda v: v, device='abacus')(x)"),
    ("a NaN, when looked for", "with rune.configure(check_nans=True): rnp.log(-x)"),
    ("a NaN under jit",
     "with rune.configure(check_nans=True): rune.jit(lambda v: rnp.log(-v) * 2)(x)"),
    ("text that is no program", "parse_program('program f() { return %1 }')"),
    ("out of memory", "rnp.ones(1 << 50) * 2.0"),
    ("out of memory under jit",
     "rune.jit(lambda: rnp.ones(1 << 50) * 2.0 + rnp.arange(1 << 50))()"),
]  # fmt: skip


def namespace() -> dict[str, Any]:
    """The names that the calls use."""
    import rune.numpy as rnp
    from rune.transforms.stage import parse_program

    return {
        "rune": rune, "rnp": rnp, "ops": ops, "np": np, "kept": [], "parse_program": parse_program,
        "x": array([1.0, 2.0, 3.0]), "given": array([1.0]),
    }  # fmt: skip


def provoke(code: str) -> Exception:
    """The error that a call raises."""
    linecache.cache["call.py"] = (len(code), None, [code + "\n"], "call.py")
    with pytest.raises(Exception) as caught:  # noqa: PT011 - every class, shown in the golden text
        exec(compile(code, "call.py", "exec"), namespace())
    assert isinstance(caught.value, rune.errors.RuneError), caught.value
    return caught.value


def shown(error: Exception) -> str:
    """The class and the message; numbers of bytes and names of devices depend on the machine."""
    message = re.sub(r"\d+ B\b", "N B", str(error))
    message = re.sub(r"\(there are .*\)", "(there are ...)", message)
    return f"{type(error).__name__}: {message}"


def works_as_before() -> None:
    """A derivative and compiled code, after whatever went wrong."""
    x = array([1.0, 2.0])
    same(np.array([2.0, 4.0], np.float32), rune.jit(rune.grad(lambda v: (v * v).sum()))(x))


def test_every_message_is_the_one_in_the_golden_text(request: pytest.FixtureRequest):
    found = [f"== {title}\n{code}\n{shown(provoke(code))}\n" for title, code in CALLS]

    expect_file(request.config, HERE / "errors.txt", "\n".join(found))


@pytest.mark.parametrize(("title", "code"), CALLS, ids=[t for t, _ in CALLS])
def test_every_message_has_the_form_of_the_grammar_and_leaves_everything_usable(
    title: str, code: str
):
    lines = str(provoke(code)).splitlines()

    assert re.match(r"[\w .]+: (cannot|found) .*", lines[0]), lines[0]
    assert any(line.startswith("at call.py:1") or "made at call.py:1" in line for line in lines)
    works_as_before()


def test_a_nan_in_the_data_passes_through_while_nobody_looks():
    x = array([1.0, np.nan, 3.0])

    for found in (x * 2.0, rune.jit(lambda v: v * 2.0)(x), rune.grad(lambda v: (v * v).sum())(x)):
        same(np.array([2.0, np.nan, 6.0], np.float32), found)


def test_the_nan_check_is_silent_where_there_is_none():
    x = array([1.0, 2.0])

    with rune.configure(check_nans=True):
        same(np.array([2.0, 4.0], np.float32), rune.jit(lambda v: v * 2.0)(x))


def test_the_nan_check_names_the_operation_and_the_line_inside_jit():
    def function(x: Any) -> Any:
        y = x - 1.0
        z = ops.log(y - 5.0)  # here
        return z * 0.0

    with rune.configure(check_nans=True), pytest.raises(rune.errors.NaNError) as caught:
        rune.jit(function)(array([1.0, 2.0]))

    assert "log: found NaN in its result f32[2]" in str(caught.value)
    assert "# here" in str(caught.value)


def test_a_missing_dtype_conversion_names_both_dtypes():
    x, y = array(np.ones(2), dtypes.f8_e4m3), array(np.ones(2), dtypes.f16)

    with pytest.raises(rune.errors.DtypeError, match="cannot promote f16 and f8_e4m3"):
        ops.add(*promoted("add", x, y))


# --- outside the program's control --------------------------------------------------------------

BROKEN = "first line\nsecond line"


def test_native_code_that_does_not_compile_shows_its_numbered_source():
    with pytest.raises(rune.errors.CompileError) as caught:
        compile_module("broken", BROKEN)

    assert "cpu: cannot compile broken (" in str(caught.value)
    assert "(line 1, column 1: expected top-level entity)" in str(caught.value)
    assert ">   1  first line\n    2  second line" in str(caught.value)
    assert caught.value.source.startswith(BROKEN)
    works_as_before()


@pytest.mark.skipif("opencl" in rune.missing(), reason=rune.missing().get("opencl", ""))
def test_opencl_source_that_does_not_compile_shows_its_numbered_source():
    backend: Any = device_named("opencl").backend

    with pytest.raises(rune.errors.CompileError) as caught:
        backend.build(BROKEN, "broken")

    assert "opencl: cannot compile broken for opencl:0 (line 1, column 1: " in str(caught.value)
    assert re.search(r"(?m)^> +1  first line$", str(caught.value))
    works_as_before()


def _then_wait(call: Any) -> None:
    call()
    time.sleep(5)


def interrupted(call: Any, seconds: float) -> None:
    """The call with Ctrl-C pressed while it runs."""
    timer = threading.Timer(seconds, _thread.interrupt_main)
    try:
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            _then_wait(call)
    finally:
        timer.cancel()


def long_chain(x: Any) -> Any:
    """Slow to trace and to compile, fast to run."""
    for _ in range(150):
        x = ops.sin(x) + 1.0
    return x


@pytest.mark.parametrize("seconds", [0.02, 0.2])
def test_an_interrupt_while_compiling_leaves_everything_usable(seconds: float):
    f, x = rune.jit(long_chain), array([1.0, 2.0])

    interrupted(lambda: f(x), seconds)

    works_as_before()
    assert rune.jit(lambda v: long_chain(v) * 0.0)(x).shape == (2,)


def test_an_interrupt_while_running_leaves_everything_usable():
    f = rune.jit(lambda x: ops.sin(x) * x)
    x = array(np.ones(100_000, np.float32))
    expected = np.asarray(f(x))

    def forever() -> None:
        while True:
            f(x)

    interrupted(forever, 0.1)

    same(expected, f(x))
    works_as_before()


def test_an_interrupt_in_eager_code_leaves_everything_usable():
    x = array(np.ones(1000, np.float32))

    def forever() -> None:
        while True:
            rune.grad(lambda v: ops.sin(v).sum())(x)

    interrupted(forever, 0.1)

    works_as_before()
