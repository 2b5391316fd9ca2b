"""Errors are part of the interface: golden texts of every message, with the call that provokes it.

errors.txt is the golden text. It shows each call as a user would write it, then the error's class
and its full message: the operation, what is wrong, a hint, and the user's line. After each error
rune must still work, which the end of every provocation checks. This file has a call for each kind
of mistake; test_errors_of_arrays.py has one for each place that raises.
"""

from __future__ import annotations

import _thread
import gc
import re
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest

import rune
from rune import dtypes, ops
from rune.backends import device_named
from rune.backends.cpu.compiler import compile_module
from rune.ops.promote import promoted
from tests.architecture.provocations import golden_text, has_the_form_of_the_grammar, provoke, works_as_before
from tests.architecture.sources import HERE
from tests.support.arrays import array
from tests.support.close import same
from tests.support.expect import expect_file

# The entries of errors.txt, in order: a title, and the call.
CALLS: list[tuple[str, str]] = [
    ("shapes that do not fit", "x + rnp.ones(4)"),
    ("shapes that do not fit under jit", "rune.jit(lambda x: x @ rnp.ones((2, 2)))(x)"),
    ("a reshape to another size", "x.reshape(2, 2)"),
    ("a dtype without meaning", "rnp.sin(x).astype('quaternion')"),
    ("an operation that the dtype lacks", "x & x"),
    ("dtypes without a common one", "rnp.ones(3, 'f8_e4m3') + rnp.ones(3, 'f16')"),
    ("complex numbers in order", "rune.lax.lt(x * 1j, x * 1j)"),
    ("a dtype to quantise to", "rune.quantize(x, 'i16')"),
    ("groups that do not divide an axis", "rune.quantize(x, axis=0, group=2)"),
    ("a list in the place of an array", "x + [1.0, 2.0, 3.0]"),
    ("an assignment to an element", "x[0] = 1.0"),
    ("an unknown axis", "x.sum(axis=2)"),
    ("an axis given twice", "rnp.ones((2, 2)).sum(axis=(0, 0))"),
    ("an unknown axis of vmap", "rune.vmap(rnp.sin, in_axes=1)(x)"),
    ("sizes that differ under vmap", "rune.vmap(lambda a, b: a)(x, rnp.ones(4))"),
    ("a batched result without an axis", "rune.vmap(rnp.sin, out_axes=None)(x)"),
    ("a float index", "x[1.5]"),
    ("too many indices", "x[0, 0]"),
    ("numbers that rune.lax does not promote", "rune.lax.add(x, 1)"),
    ("a matrix that is not square", "rnp.linalg.inv(rnp.ones((2, 3)))"),
    ("a vector in the place of a matrix", "rnp.linalg.cholesky(x)"),
    ("a system that does not fit", "rnp.linalg.solve(rnp.eye(2), x)"),
    ("one factor in the place of two", "rune.scipy.linalg.lu_solve(rnp.eye(3), x)"),
    ("lengths of transforms that are a number", "rnp.fft.fft2(rnp.eye(3), 2)"),
    ("a pair of widths too many", "rnp.pad(x, ((1, 1), (1, 1)))"),
    ("an axis alone in rune.lax", "rune.lax.reduce_sum(x, 0)"),
    ("an array in the place of a dtype", "rnp.sum(x, 0, x)"),
    ("an array as a truth value", "bool(x)"),
    ("an array as a number", "float(x)"),
    ("labels of another rank", "rune.nn.softmax_cross_entropy_with_integer_labels(x, rnp.arange(3))"),
    ("a norm that vectors do not have", "rnp.linalg.norm(x, 'fro')"),
    ("a transform of no elements", "rnp.fft.fft(x, n=0)"),
    ("a real transform of complex numbers", "rnp.fft.rfft(x * 1j)"),
    ("an unknown scaling of transforms", "rnp.fft.fft(x, norm='none')"),
    ("channels that differ", "rune.lax.conv(rnp.ones((1, 2, 4, 4)), rnp.ones((1, 3, 2, 2)), (1, 1), 'SAME')"),
    ("a size that depends on traced values", "rune.jit(rnp.unique)(x)"),
    ("counts up to a traced number", "rune.jit(rnp.bincount)(rnp.arange(3))"),
    ("more of the greatest than there are", "rune.lax.top_k(x, 4)"),
    ("a quantile outside 0 to 1", "rnp.quantile(x, float('nan'))"),
    ("subscripts without a letter of the result", "rnp.einsum('ij->k', rnp.ones((2, 2)))"),
    ("subscripts of sizes that differ", "rnp.einsum('ij,jk->ik', rnp.ones((2, 3)), rnp.ones((2, 2)))"),
    ("an unknown method", "rune.scipy.optimize.minimize(rnp.sum, x, method='magic')"),
    ("an equation of another size", "rune.scipy.integrate.odeint(lambda y, t: y[:1], x, rnp.arange(2.0))"),
    ("a special function of complex numbers", "rune.scipy.special.gammaln(x * 1j)"),
    ("rows without numbers of segments", "rune.ops.segment_sum(x, rnp.arange(2), 3)"),
    ("an import of something that is not an array", "rnp.from_dlpack(3)"),
    ("grad of a result that is not a scalar", "rune.grad(lambda x: x * x)(x)"),
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
    ("a traced bound of a slice", "rune.jit(lambda x, n: x[:n])(x, 2)"),
    ("an escaped traced value", "rune.jit(lambda x: kept.append(x) or x)(x); kept[0] + 1.0"),
    ("an argument that is not an array", "rune.jit(lambda p: p)({'name': 'Ada'})"),
    ("an unhashable static argument", "rune.jit(lambda x, n: x, static_argnums=1)(x, [1])"),
    ("a value that is not a function", "rune.jit(3)"),
    ("a donated array", "rune.jit(lambda v: v, donate_argnums=0)(given); given + 1.0"),
    ("a size out of its range", "rune.jit(lambda v: v, dims={'n': (1, 2)})(x)"),
    (
        "sizes that contradict each other",
        "rune.jit(lambda a, b: a, dims={'n': (1, 9)}, in_dims=('n', 'n'))(x, rnp.ones(4))",
    ),
    ("a size that is not a whole number", "rune.jit(lambda v: v, dims={'n': (1, 9)}, in_dims='2*n')(x)"),
    (
        "symbolic sizes that may differ",
        "rune.jit(lambda a, b: a + b, dims={'n': (1, 9), 'm': (1, 9)}, in_dims=('n', 'm'))(x, x)",
    ),
    ("a symbolic size that may not divide", "rune.jit(lambda v: v.reshape(3, -1), dims={'n': (1, 9)})(x)"),
    (
        "a slice that symbolic sizes do not decide",
        "rune.jit(lambda a, b: a[:b.shape[0]], dims={'n': (1, 9), 'm': (1, 9)}, in_dims=('n', 'm'))(x, x)",
    ),
    ("a symbolic size as a number", "rune.jit(lambda v: v * (v.shape[0] * 0.5), dims={'n': (1, 9)})(x)"),
    ("a range that is none", "rune.jit(lambda v: v, dims={'n': 64})(x)"),
    ("sizes that no argument has", "rune.jit(lambda v: v['a'], dims={'n': (1, 9)})({'a': x})"),
    ("patterns for other arguments", "rune.jit(lambda v: v, dims={'n': (1, 9)}, in_dims=('n', 'n'))(x)"),
    ("a branch that a range does not decide", "rune.jit(lambda v: v if v.shape[0] > 4 else -v, dims={'n': (1, 9)})(x)"),
    ("the value of a symbolic size", "rune.jit(lambda v: [v[i] for i in range(v.shape[0])], dims={'n': (1, 9)})(x)"),
    ("a pattern that says nothing", "rune.jit(lambda v: v, dims={'n': (1, 9)}, in_dims='k')(x)"),
    ("an unknown device", "rune.jit(lambda v: v, device='abacus')(x)"),
    ("a NaN, when looked for", "with rune.configure(check_nans=True): rnp.log(-x)"),
    ("a NaN under jit", "with rune.configure(check_nans=True): rune.jit(lambda v: rnp.log(-v) * 2)(x)"),
    (
        "a NaN in a step of a loop",
        "with rune.configure(check_nans=True): "
        "rune.jit(lambda v: {'sum': rune.scan(lambda c, e: (c + rnp.log(2.0 - e), e), 0.0, v)})(x)",
    ),
    ("an infinity, when looked for", "with rune.configure(check_infs=True): rune.jit(lambda v: 1.0 / (v - v))(x)"),
    (
        "a traced value that is kept, when looked for",
        "with rune.configure(check_leaks=True): rune.jit(lambda v: kept.append(v) or v)(x)",
    ),
    ("a tangent of an integer", "rune.jvp(lambda n: n * 2.0, (3,), (1,))"),
    ("a transpose of what is not linear", "rune.linear_transpose(rnp.sin, x)"),
    ("a transpose of a product of the argument", "rune.linear_transpose(lambda v: v * v, x)"),
    ("grad of a complex result", "rune.grad(lambda z: z * z)(1j)"),
    ("a custom function without a rule", "rune.custom_jvp(rnp.sin)(1.0)"),
    ("a custom_jvp rule of another shape", "rune.grad(custom_jvp(lambda p, t: (p[0], x)))(1.0)"),
    ("a custom_jvp rule of another tree", "rune.grad(custom_jvp(lambda p, t: (p[0], t)))(1.0)"),
    ("a custom_jvp rule that is not linear", "rune.grad(custom_jvp(lambda p, t: (p[0], t[0] * t[0])))(1.0)"),
    (
        "a custom function that closes over what is differentiated",
        "rune.grad(lambda y: custom_jvp(lambda p, t: (p[0], t[0]), lambda v: v * y)(1.0))(2.0)",
    ),
    ("a custom_vjp rule of another shape", "rune.grad(custom_vjp(lambda _, ct: ({'a': x},)))({'a': 1.0})"),
    ("a custom_vjp rule of another tree", "rune.grad(custom_vjp(lambda _, ct: ({'b': ct},)))({'a': 1.0})"),
    (
        "a rule that uses a traced value of another transformation",
        "rune.grad(lambda w: rune.jit(lambda y: custom_jvp(lambda p, t: (p[0], t[0] * y))(1.0 * w))(2.0))(3.0)",
    ),
    ("a cotangent of another tree", "rune.vjp(lambda v: {'a': v, 'b': v}, x)[1]({'a': x})"),
    ("a cotangent of another shape", "rune.vjp(lambda v: {'a': v, 'b': v}, x)[1]({'a': x, 'b': x[0]})"),
    ("a tangent of another tree", "rune.jvp(lambda p: p['a'], ({'a': x},), ({'b': x},))"),
    (
        "forward mode of a custom_vjp function",
        "rune.jvp(custom_vjp(lambda _, ct: ({'a': ct},)), ({'a': 1.0},), ({'a': 1.0},))",
    ),
    ("residuals in the memory of the host", "rune.checkpoint_policies.save_and_offload_only_these_names()"),
    ("a callback that gives another shape", "rune.jit(lambda: rune.pure_callback(lambda: np.ones(2), scalar))()"),
    ("a derivative of a callback", "rune.grad(lambda v: rune.pure_callback(np.sin, scalar, v))(1.0)"),
    ("a callback on lanes without a method", "rune.vmap(lambda v: rune.pure_callback(np.sin, scalar, v))(x)"),
    (
        "a side effect where the lanes take different branches",
        "rune.vmap(lambda v: rune.cond(v > 1, lambda: rune.io_callback(print, None, v), lambda: None))(x)",
    ),
    ("a format that does not fit", "rune.debug.print('{} of {}', 1.0)"),
    ("a picture of three axes", "rune.debug.visualize_array_sharding(rnp.ones((2, 3, 4)))"),
    ("a shape in the place of a key", "rune.random.normal((3,))"),
    ("an array of keys for one", "rune.random.uniform(rune.random.split(rune.random.key(0), 3))"),
    ("a parameter that does not fit the shape", "rune.random.pareto(rune.random.key(0), x, (2,))"),
    (
        "a derivative that rejection disturbs",
        "rune.grad(lambda k: rune.random.vonmises(rune.random.key(0), 0.0, k))(2.0)",
    ),
    ("a draw without a key while tracing", "rune.jit(lambda v: v * rune.random.uniform())(x)"),
    ("a name for two draws", "with rune.random.seed(0): rune.random.draw('a'); rune.random.draw('a')"),
    (
        "a key used twice",
        "with rune.configure(check_keys=True):"
        " rune.random.normal(rune.random.key(0)); rune.random.uniform(rune.random.key(0))",
    ),
    ("a weight without inputs", "rune.nn.initializers.he_normal()(rune.random.key(0), (3,))"),
    ("a carry that changes its shape", "rune.scan(lambda c, e: ({'h': rnp.ones(4)}, e), {'h': x}, x)"),
    ("a carry that changes its dtype", "rune.fori_loop(0, 3, lambda i, n: n * 0.5, np.int32(8))"),
    ("a carry of another structure", "rune.scan(lambda c, e: (c['h'], e), {'h': x}, x)"),
    ("a step that does not return a pair", "rune.scan(lambda c, e: c + e, 0.0, x)"),
    ("rows of different numbers", "rune.scan(lambda c, e: (c, e), 0.0, {'a': x, 'b': rnp.ones(4)})"),
    ("rows of a number", "rune.scan(lambda c, e: (c, e), 0.0, (x, 3.0))"),
    ("a scan of unknown length", "rune.scan(lambda c, e: (c, e), 0.0)"),
    ("a traced length", "rune.jit(lambda n: rune.scan(lambda c, e: (c, e), 0.0, length=n))(3)"),
    ("branches of different shapes", "rune.cond(x.sum() > 0, lambda: {'a': x}, lambda: {'a': rnp.ones(2)})"),
    ("branches of different structures", "rune.cond(True, lambda: {'a': 1}, lambda: {'b': 1})"),
    ("branches of different dtypes", "rune.switch(2, [lambda: 1, lambda: 2, lambda: 2.5])"),
    ("a predicate that is not a scalar", "rune.cond(x > 1, lambda: 1, lambda: 2)"),
    ("an index of a branch that is not an integer", "rune.switch(1.0, [lambda: 1, lambda: 2])"),
    ("a condition that is not a bool", "rune.while_loop(lambda n: n, lambda n: n - 1, 3)"),
    ("a condition for each element", "rune.while_loop(lambda v: v < 9, lambda v: v * 2, x)"),
    (
        "a draw in the condition of a loop",
        "with rune.random.seed(0): rune.while_loop(lambda v: rune.random.uniform() < v, lambda v: v, 1.0)",
    ),
    (
        "growing residuals under jit",
        "rune.jit(rune.grad(lambda v: rune.while_loop(lambda u: u < 9, lambda u: u * u, v,"
        " reverse=rune.GrowingResiduals())))(2.0)",
    ),
    ("a number of checkpoints", "rune.Checkpoints(3)"),
    ("an unrolled loop of unknown length", "rune.fori_loop(0, x[0], lambda i, v: v, x, unroll=2)"),
    ("prefixes of a symbolic size", "rune.jit(lambda v: rune.associative_scan(rnp.add, v), dims={'n': (1, 9)})(x)"),
    ("text that is not a program", "parse_program('program f() { return %1 }')"),
    ("out of memory", "rnp.ones(1 << 50) * 2.0"),
    ("out of memory under jit", "rune.jit(lambda: rnp.cumsum(rnp.ones(1 << 50) * 2.0))()"),
]


def test_every_message_is_the_one_in_the_golden_text(request: pytest.FixtureRequest):
    expect_file(request.config, HERE / "errors.txt", golden_text(CALLS))


@pytest.mark.parametrize(("title", "code"), CALLS, ids=[t for t, _ in CALLS])
def test_every_message_has_the_form_of_the_grammar_and_leaves_everything_usable(title: str, code: str):
    has_the_form_of_the_grammar(str(provoke(code)))
    works_as_before()


def test_a_nan_in_the_data_passes_through_when_checks_are_off():
    x = array([1.0, np.nan, 3.0])

    for output in (x * 2.0, rune.jit(lambda v: v * 2.0)(x), rune.grad(lambda v: (v * v).sum())(x)):
        same(np.array([2.0, np.nan, 6.0], np.float32), output)


def test_the_nan_check_is_silent_when_there_is_no_nan():
    x = array([1.0, 2.0])

    with rune.configure(check_nans=True):
        same(np.array([2.0, 4.0], np.float32), rune.jit(lambda v: v * 2.0)(x))


def test_the_nan_check_names_the_operation_and_the_line_inside_jit():
    def function(x: Any) -> Any:
        y = x - 1.0
        z = ops.log(y - 5.0)  # here
        return z * 0.0

    with rune.configure(check_nans=True), pytest.raises(rune.errors.NaNError) as error:
        rune.jit(function)(array([1.0, 2.0]))

    assert "log: found NaN in its result f32[2]" in str(error.value)
    assert "# here" in str(error.value)


def test_a_missing_dtype_conversion_names_both_dtypes():
    x, y = array(np.ones(2), dtypes.f8_e4m3), array(np.ones(2), dtypes.f16)

    with pytest.raises(rune.errors.DtypeError, match="cannot promote f16 and f8_e4m3"):
        ops.add(*promoted("add", x, y))


# --- outside the program's control --------------------------------------------------------------

BROKEN = "first line\nsecond line"


def test_native_code_that_does_not_compile_shows_its_numbered_source():
    with pytest.raises(rune.errors.CompileError) as error:
        compile_module("broken", BROKEN)

    assert "cpu: cannot compile broken (" in str(error.value)
    assert "(line 1, column 1: expected top-level entity)" in str(error.value)
    assert ">   1  first line\n    2  second line" in str(error.value)
    assert error.value.source.startswith(BROKEN)
    works_as_before()


@pytest.mark.skipif("opencl" in rune.missing(), reason=rune.missing().get("opencl", ""))
def test_opencl_source_that_does_not_compile_shows_its_numbered_source():
    backend: Any = device_named("opencl").backend

    with pytest.raises(rune.errors.CompileError) as error:
        backend.build(BROKEN, "broken")

    assert "opencl: cannot compile broken for opencl:0 (line 1, column 1: " in str(error.value)
    assert re.search(r"(?m)^> +1  first line$", str(error.value))
    works_as_before()


def _after_start(timer: threading.Timer, call: Any) -> None:
    timer.start()
    call()
    for _ in range(500):  # no signal ends a sleep: `interrupt_main` only has its handler run
        time.sleep(0.01)


def interrupted(call: Any, seconds: float) -> None:
    """The call with Ctrl-C pressed while it runs."""
    timer = threading.Timer(seconds, _thread.interrupt_main)
    # A shell that starts this behind `&` has the whole process ignore Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()  # hypothesis times collections, and what is raised in its hook is lost
    try:
        with pytest.raises(KeyboardInterrupt):
            _after_start(timer, call)
    finally:
        gc.enable()
        timer.cancel()
        signal.signal(signal.SIGINT, before)


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
