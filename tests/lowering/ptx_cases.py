"""Kernels that PTX renders: one for each operation and dtype, by hand, and random ones."""

from __future__ import annotations

import numpy as np

from rune import dims, dtypes
from rune.lowering.codegen.ptx_expr import _TYPES
from rune.lowering.kernel.expr import SCALAR_OPS, Cast, Expr, Load, Op
from rune.lowering.kernel.nodes import Access, For, KernelCode, Kind, Param, Store
from rune.lowering.kernel.types import OPERAND_DTYPES, result_dtype
from tests.lowering.kernel.examples import TEXTS
from tests.lowering.kernel.random_code import Maker, random_code

SUM = """
code total(x: read f32[8*n], y: write f32[n]) sizes n in 1..100 {
  for i in n grid {
    var s: f32 = 0.0_f32
    for j in 8 serial { s add= x[8*i + j] }
    store y[i] = s
  }
}"""
CROWD = """
code crowd(x: read f64[8*n], y: write f64[8*n], z: write bool[8*n]) sizes n in 1..100 {
  for i in n grid {
    a: f64 = x[8*i]
    b: f64 = x[8*i + 1]
    c: f32 = f32(x[8*i + 2])
    d: bool = a < b
    e: bool = b < x[8*i + 3]
    k: i64 = i64(a)
    var s: f64 = a
    var t: f32 = c
    var u: bool = d
    for j in 8 serial {
      for l in j + 2 serial {
        s add= x[8*i + j] * b
        t max= f32(x[8*i + l//2])
        u = select(e, u, s < a)
      }
      v: f64 = select(u, s, f64(t) + f64(k))
      store y[8*i + j] = v + a
      store z[8*i + j] = or(and(u, d), and(e, not(u)))
    }
  }
}"""
DTYPES = sorted(_TYPES, key=dtypes.short)
RENDERED = frozenset(
    """add sub mul div neg abs sqrt fma max min and or xor not select eq ne lt le gt ge""".split()
)


# --- one operation ---------------------------------------------------------------------------

N = 32


def values(dtype: np.dtype, seed: int) -> np.ndarray:
    """Numbers of all sizes, the ends of the range, NaN and infinity."""
    rng = np.random.default_rng(seed)
    if dtype == dtypes.bool_:
        return rng.integers(0, 2, N).astype(bool)
    if dtype in dtypes.INTEGER:
        info = np.iinfo(dtype)
        edges = [v for v in (info.min, info.max, -1, 0, 1, 2) if v >= info.min]
        return rng.permutation(np.array([*edges, *rng.integers(0, 99, N - len(edges))], dtype))
    edges = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, 3e9, -3e9, 1e20, -1e20]
    return rng.permutation([*edges, *rng.normal(scale=9, size=N - len(edges))]).astype(dtype)


def elementwise(dtype: np.dtype, expr: Expr) -> KernelCode:
    """One operation at each point; arguments a, b, c of the dtype, and d, of bools."""
    params = [Param(x, dtype, N, Access.READ) for x in "abc"]
    params += [Param("d", dtypes.bool_, N, Access.READ)]
    params += [Param("y", expr.dtype, N, Access.WRITE)]
    i = dims.symbol("i", 0, N - 1)
    return KernelCode("f", tuple(params), (), (For("i", N, Kind.GRID, (Store("y", i, expr),)),))


def operations(dtype: np.dtype) -> list[Op]:
    i = dims.symbol("i", 0, N - 1)
    args = [Load(x, (i,), dtype) for x in "abc"]
    found = []
    for name in sorted(n for n, accepted in OPERAND_DTYPES.items() if dtype in accepted):
        result = result_dtype(name, dtype)
        if result is not None:
            chosen = (Load("d", (i,), dtypes.bool_), *args) if name == "select" else args
            found.append(Op(name, tuple(chosen[: SCALAR_OPS[name]]), result))
    return found


def is_rendered(op: Op) -> bool:
    integer = op.args[-1].dtype in dtypes.INTEGER
    return op.name in RENDERED and not (integer and op.name in ("div", "abs"))


def inputs(dtype: np.dtype) -> list[np.ndarray]:
    return [*(values(dtype, seed) for seed in range(3)), values(dtypes.bool_, 3)]


# --- by hand, and random ---------------------------------------------------------------------

rng = np.random.default_rng(0)
EXAMPLES = {
    "sum": (SUM, [rng.integers(-9, 9, 40).astype(np.float32)], {"n": 5}),
    "dot": (TEXTS["dot"], [rng.normal(size=s).astype(np.float32) for s in (216, 120)], {}),
    "pad": (TEXTS["pad"], [rng.normal(size=8).astype(np.float32)], {}),
    "gather": (
        TEXTS["gather"],
        [rng.normal(size=10).astype(np.float32), np.array([3, -5, 99, 0], np.int32)],
        {"n": 4},
    ),
    "cumsum": (TEXTS["cumsum"], [rng.integers(-9, 9, 60).astype(np.int32)], {}),
    "four_axes": (TEXTS["four_axes"], [rng.normal(size=120)], {}),
    "crowd": (CROWD, [rng.normal(size=24)], {"n": 3}),
}


class _Maker(Maker):
    """Code without what PTX does not render here."""

    floats = ("add", "sub", "mul", "max", "min", "neg", "abs", "select")
    integers = ("add", "sub", "mul", "max", "min", "and", "xor", "neg")
    nested = ("reduce", "reduce", "carry", "carry", "copies")

    def small(self) -> Expr:
        clamped = super().small()
        assert isinstance(clamped, Op)
        return Cast(Cast(clamped.args[0], dtypes.i32), dtypes.f32)


RANDOM = [random_code(seed, 9, _Maker) for seed in range(12)]
