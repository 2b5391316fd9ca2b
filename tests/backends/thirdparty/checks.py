"""The package's own tests; they need it installed, so `test_thirdparty.py` runs them.

What a user would write: softmax, a matrix product, the gradient of a network, one compilation for
many sizes. Then what is particular to Python as a language.
"""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.control import cond, scan
from rune.errors import CompileError
from rune.lowering.kernel.text import parse
from tests.support.close import near, same

rng = np.random.default_rng(3)
X, W1, W2, Y = (rng.normal(size=s).astype(np.float32) for s in ((6, 5), (5, 4), (4, 3), (6, 3)))
BARRIER = """
code wait(x: readwrite f32[8]) {
  for g in 1 grid {
    for t in 8 workgroup {
      barrier
      store x[t] = 0.0_f32
    }
  }
}
"""


def loss(weights, x, y):
    w1, w2 = weights
    return rnp.mean((rnp.tanh(x @ w1) @ w2 - y) ** 2)


def gradients(w1, w2, x, y):
    """The gradient of `loss` as NumPy computes it by hand, in f64."""
    w1, w2, x, y = (a.astype(np.float64) for a in (w1, w2, x, y))
    hidden = np.tanh(x @ w1)
    out = 2 * (hidden @ w2 - y) / y.size
    return x.T @ (out @ w2.T * (1 - hidden**2)), hidden.T @ out


def test_softmax_agrees_with_numpy():
    weights = np.exp(X - X.max(axis=1, keepdims=True))

    probabilities = rune.jit(rune.nn.softmax, device="pyloops")(X)

    assert probabilities.device.name == "pyloops:0"
    near(weights / weights.sum(axis=1, keepdims=True), probabilities, relative=1e-6, why="f32 sums")


def test_a_matrix_product_agrees_with_numpy():
    near(X @ W1, rune.jit(rnp.matmul, device="pyloops")(X, W1), relative=1e-5, why="f32 sums")


def test_the_gradient_of_a_network_agrees_with_numpy():
    gradients_there = rune.jit(rune.grad(loss), device="pyloops")((W1, W2), X, Y)

    for expected, actual in zip(gradients(W1, W2, X, Y), gradients_there, strict=True):
        near(expected, actual, relative=1e-4, why="f32 against f64")


def test_one_compilation_covers_every_size():
    double = rune.jit(lambda x: rnp.sum(x * 2.0, axis=1), dims={"n": (0, 9)}, device="pyloops")

    with rune.counting() as counts:
        for n in (0, 1, 9):
            same(np.full(n, 6, np.float32), double(rnp.ones((n, 3))))

    assert counts.compiles == 1


def test_loops_and_branches_run():
    def step(carry, row):
        return cond(carry[0] > 0, lambda: carry @ row, lambda: -carry), rnp.sum(carry)

    start, rows = W1[0], rng.normal(size=(6, 4, 4)).astype(np.float32)
    results = rune.jit(lambda c, r: scan(step, c, r), device="pyloops")(start, rows)

    carry, sums = start, []
    for row in rows:
        sums.append(carry.sum())
        carry = carry @ row if carry[0] > 0 else -carry
    near([carry, np.array(sums)], results, relative=1e-4, why="f32 sums")


def test_a_result_may_take_the_memory_of_a_donated_argument():
    step = rune.jit(lambda w: w * 2.0, donate_argnums=0, device="pyloops")

    same(2 * X, step(rune.device_put(X, "pyloops")))


def test_a_size_may_have_a_name_that_the_source_uses():
    plus = rune.jit(lambda x: x + 1.0, dims={"range": (1, 9)}, device="pyloops")

    same(np.full(3, 2, np.float32), plus(rnp.ones(3)))


def test_a_kernel_reads_as_python(expect):
    def table(x):
        return rnp.where(x > 0.5, rnp.exp(x), 0.0)

    expect(
        rune.explain(table, device="pyloops")(rnp.ones((4, 3)))["source"],
        """
        def select_0(x0, y0):
          _c0 = _bits(_f32, '0000003f')  # 0.5
          _c1 = _bits(_f32, '00000000')  # 0.0
          for i0 in range(12):
            common = x0[i0]
            y0[i0] = _select((common > _c0), _exp(common), _c1)
        """,
    )


def test_a_kernel_with_barriers_is_refused():
    render = import_module("rune_pyloops.render").render

    with pytest.raises(CompileError, match="render: cannot wait at a barrier"):
        render(parse(BARRIER))
