"""The AD matrix: every primitive of the table, and which of its rules a trial reaches.

A primitive of rune/ops is tried on its samples (tests/ops/samples.py); a primitive that holds
programs or functions, or needs a named axis, is tried on the functions of CALLS. A trial compares
the forward derivative with differences, the reverse derivative with the forward one, and vmap with
the loop over lanes, and records which rules ran. So a rule that no trial reaches is reported, and
so is a primitive that nothing calls.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes, lax, ops
from rune.control.text import PRIMITIVES as TABLE
from rune.core.interpreter import type_of
from rune.core.primitive import NOT_DIFFERENTIABLE, Joint, Primitive
from rune.errors import TransformError
from rune.ops import LIBRARY
from rune.sharding import Mesh, NamedSharding, P
from tests.ops.calls import Sample
from tests.ops.library import uses
from tests.ops.samples import samples, smooth_samples
from tests.support.arrays import array
from tests.support.close import near
from tests.support.derivatives import WHY, differences, directions, inner

X = array(np.linspace(0.2, 1.1, 6).reshape(2, 3))
Function = Callable[..., Any]
# Only passes write these, after all derivatives were taken.
OF_PASSES = frozenset({"apart"})
# Lanes have one result together, which no loop over them gives; tests of checkify try it.
OF_ALL_LANES = frozenset({"last_failure"})
# Primitives that exist only while a program is lowered, and are in no table.
OF_LOWERING = frozenset({"loop", "branch", "take_row", "put_row", "in_memory", "mesh_part"}) | {
    "line_fft",
    "line_rfft",
    "line_irfft",
    "fft_in_memory",
    "fft_of_axes",
    "dense_cholesky",
    "dense_geqrf",
    "dense_lu",
    "dense_product",
    "dense_solve",
    "square_svd",
}
# Derivatives that are refused forwards, or altogether: a trial expects `TransformError`.
REVERSE_ONLY = frozenset({"custom_vjp", "custom_lin"})
REFUSING = frozenset({"callback", "nextafter"})
# Zero by definition, whatever the values do.
CUTS = frozenset({"stop_gradient", "bitcast"})


# --- calls of what no sample can describe -------------------------------------------------------


def _custom_jvp(x: Any) -> Any:
    function = rune.custom_jvp(lambda v: rnp.sin(v) * v)
    function.defjvp(lambda p, t: (function(*p), t[0] * (rnp.cos(p[0]) * p[0] + rnp.sin(p[0]))))
    return function(x)


def _custom_vjp(x: Any) -> Any:
    function = rune.custom_vjp(lambda v: rnp.sin(v) * v)
    function.defvjp(lambda v: (rnp.sin(v) * v, v), lambda v, ct: (ct * (rnp.cos(v) * v + rnp.sin(v)),))
    return function(x)


def _twice(x: Any) -> Any:
    return x * 2.0


def _linear(of: Function) -> Function:
    """A function whose rule applies it to the tangent, so that it is transposed."""

    def call(x: Any) -> Any:
        function = rune.custom_jvp(of)
        function.defjvp(lambda p, t: (function(*p), of(t[0])))
        return function(x)

    return call


def _named(x: Any) -> Any:
    return rune.checkpoint_name(x * 2.0, "a")


def _doubled(x: Any) -> Any:
    """A linear function with a rule of its own."""
    function = rune.custom_jvp(_twice)
    function.defjvp(lambda p, t: (function(*p), t[0] * 2.0))
    return function(x)


def _callback(x: Any) -> Any:
    struct = rune.ShapeDtypeStruct(x.shape, x.dtype)
    return rune.pure_callback(np.sin, struct, x, vmap_method="expand_dims")


def _inspected(x: Any) -> Any:
    rune.debug.inspect_array_sharding(x, callback=lambda sharding: None)
    return x * 2.0


def _scan(x: Any) -> Any:
    return rune.scan(lambda c, row: (rnp.sin(c * row), None), x[0], x)[0]


def _cond(x: Any) -> Any:
    return rune.cond(x.sum() > 0.0, lambda v: rnp.sin(v) * v, lambda v: v, x)


def _solve(x: Any) -> Any:
    """A diagonal system whose matrix and right-hand side are both differentiated."""
    return rune.lax.custom_linear_solve(
        lambda v: x * v, rnp.sin(x), lambda mv, b: b / mv(rnp.ones_like(b)), symmetric=True
    )


def _solve_by_two(x: Any) -> Any:
    """A system with a constant matrix, linear in its right-hand side."""
    return rune.lax.custom_linear_solve(lambda v: 2.0 * v, x, lambda mv, b: b / mv(rnp.ones_like(b)), symmetric=True)


def _while(x: Any) -> Any:
    def step(state: Any) -> Any:
        return state[0] + 1, rnp.sin(state[1]) * 1.5

    return rune.while_loop(lambda s: s[0] < 3, step, (0, x))[1]


def _linear_part_of_while(x: Any) -> Any:
    """The linear part of a loop, as a function of tangents."""
    return rune.linearize(_while, X)[1](x)


def _counted(x: Any) -> Any:
    """The transpose of a loop that is linear in its carry; jit leaves the loop as it is."""

    def double(v: Any) -> Any:
        return rune.fori_loop(rnp.asarray(0), rnp.asarray(3), lambda i, u: u * 2.0, v)

    return rune.linear_transpose(double, x)(x)[0]


@rune.custom_vmap
def _custom_vmap(x: Any) -> Any:
    return rnp.sin(x) * x


@_custom_vmap.def_vmap
def _of_all_lanes(size: int, is_batched: list[bool], x: Any) -> Any:
    return rnp.sin(x) * x, True


@rune.custom_vmap
def _vmapped_product(x: Any) -> Any:
    return x * 2.0


@_vmapped_product.def_vmap
def _product_of_lanes(size: int, is_batched: list[bool], x: Any) -> Any:
    return x * 2.0, True


def _linear_call(x: Any) -> Any:
    return rune.linear_call(lambda scale, v: v * scale, lambda scale, ct: ct * scale, 3.0, x)


def _on_lanes(name: str, *more: Any) -> tuple[Function, ...]:
    """A collective over rows that are lanes with a name, its derivatives, and lanes inside."""

    def collective(v: Any) -> Any:
        if name == "pvary":  # lax.pvary writes no equation if types do not record variation
            return ops.pvary(v, axis_name="i")
        return getattr(lax, name)(v, "i", *more)

    def tangent(v: Any) -> Any:
        return rune.jvp(collective, (v,), (v,))[1]

    def pulled(v: Any) -> Any:
        out, pull = rune.vjp(collective, v)
        return pull(out)[0]

    inner = (collective, tangent, pulled, rune.vmap(collective))
    functions = inner if name not in ("pmax", "pmin") else (collective, inner[-1])
    return tuple(rune.vmap(f, axis_name="i") for f in functions)


def _on_devices(x: Any) -> Any:
    body, mesh = (lambda v: lax.pmean(rnp.sin(v) * v, "a")), Mesh(["cpu:0", "reference:0"], "a")
    return rune.shard_map(body, mesh=mesh, in_specs=P(), out_specs=P())(x)


_ROWS = NamedSharding(Mesh(["cpu:0"], "a"), P("a"))


def _laid_out(x: Any) -> Any:
    return lax.with_sharding_constraint(x * 2.0, _ROWS)


_with_rows = rune.jit(lambda x: x * 2.0, in_shardings=_ROWS)
CUBE = array(np.linspace(0.2, 1.1, 27).reshape(3, 3, 3))
CALLS: Mapping[str, Sequence[Function]] = {
    "jit": (rune.jit(lambda x: rnp.sin(x) * x),),
    # All bits of f64: fewer make steps, which differences do not see.
    "reduce_precision": (lambda x: ops.reduce_precision(x, exponent_bits=11, mantissa_bits=52),),
    "checkpoint": (rune.checkpoint(lambda x: rnp.sin(rnp.sin(x))),),
    "name": (_named, _linear(_named)),
    "custom_jvp": (rune.jit(_custom_jvp), _linear(rune.jit(_doubled))),
    "custom_vjp": (rune.jit(_custom_vjp),),
    "custom_vmap": (rune.jit(_custom_vmap), _custom_vmap, _linear(_vmapped_product)),
    "linear_call": (_linear_call, _linear(_linear_call)),
    "custom_lin": (_custom_vjp,),
    "callback": (_callback,),
    "inspect_sharding": (_inspected, _linear(_inspected)),
    "to_device": (lambda x: rune.device_put(x, "cpu:0") * 2.0,),
    "shard_map": (_on_devices,),
    "sharding_constraint": (_laid_out,),
    "argument_layout": (_with_rows, _linear(_with_rows)),
    "scan": (_scan,),
    "cond": (_cond,),
    "while": (_while, _counted),
    "custom_linear_solve": (_solve, _linear(_solve_by_two)),
    "while_linear": (_while, _linear_part_of_while),
    "psum": _on_lanes("psum"),
    "pmax": _on_lanes("pmax"),
    "pmin": _on_lanes("pmin"),
    "all_gather": _on_lanes("all_gather"),
    "psum_scatter": _on_lanes("psum_scatter"),
    "all_to_all": _on_lanes("all_to_all", 0, 0),
    "ppermute": _on_lanes("ppermute", [(0, 1), (1, 2), (2, 0)]),
    "pvary": _on_lanes("pvary"),
    "axis_index": (
        rune.vmap(lambda row: rune.vmap(lambda v: v * lax.axis_index("i").astype(v.dtype))(row), axis_name="i"),
    ),
}
REGULAR = np.eye(3) * 4.0 + np.arange(9.0).reshape(3, 3)
# Linear primitives that no derivative rule applies to a tangent.
MORE: Mapping[str, Sequence[Function]] = {
    "sub": (_linear(lambda x: x[0] - x[1]),),
    "solve": (_linear(lambda x: rnp.linalg.solve(REGULAR, x.T)),),
}


def calls_of(primitive: Primitive) -> Iterator[tuple[Function, list[Any]]]:
    """Functions that call the primitive, each with the point to differentiate it at."""
    if primitive in LIBRARY:
        yield from (u.of_reals() for u in uses(primitive) if u.smooth)
        yield from ((function, [X]) for function in MORE.get(primitive.name, ()))
    elif primitive.name in CALLS:
        x = CUBE if primitive.family == "collective" else X
        yield from ((function, [x]) for function in CALLS[primitive.name])
    else:
        for sample in smooth_samples(primitive)[:3]:
            yield _of_active(sample)
        yield from ((function, [X]) for function in MORE.get(primitive.name, ()))


def has_calls(primitive: Primitive) -> bool:
    """Whether functions call the primitive, rather than samples."""
    return primitive in LIBRARY or primitive.name in CALLS


def _of_active(sample: Sample) -> tuple[Function, list[Any]]:
    """The sample as a function of the operands that can be differentiated."""
    arrays = [array(a) for a in sample.draw()]

    def function(*active: Any) -> Any:
        full = list(arrays)
        for number, value in zip(sample.active, active, strict=True):
            full[number] = value
        return sample.primitive(*full, **sample.params)

    return function, [arrays[i] for i in sample.active]


# --- trials -------------------------------------------------------------------------------------


def required(primitive: Primitive) -> set[str]:
    """The rules that a primitive must have, and that a trial must reach."""
    if primitive.name == "custom_lin":
        return {"transpose"}  # its other rules refuse
    rules = set()
    if primitive.jvp_equation is not None or _has_slope(primitive.jvp):
        rules.add("jvp")
    if primitive.transpose is not None:
        rules.add("transpose")
    if primitive.batch is not None and primitive.jvp != ():  # what takes nothing has no lanes
        rules.add("batch")
    return rules


def _has_slope(jvp: Any) -> bool:
    return isinstance(jvp, Joint) or any(map(callable, jvp or ()))


def complete(primitive: Primitive) -> None:
    """Errors: AssertionError where a rule is missing that every primitive has."""
    says = primitive.jvp is not None or primitive.jvp_equation is not None
    assert says or primitive.name in REVERSE_ONLY, f"{primitive} has no jvp rule"
    takes = has_calls(primitive) or any(s.operands for s in samples(primitive))
    assert primitive.batch is not None or not takes, f"{primitive} has no batch rule"


def tried(primitive: Primitive) -> set[str]:
    """The rules that ran in a trial of the primitive whose results were all right.

    Errors: AssertionError if a result is wrong.
    """
    complete(primitive)
    with recording(primitive) as ran:
        for function, primals in calls_of(primitive):
            if primals and _is_smooth(primitive, function(*primals)):
                _differentiate(primitive, function, primals)
            _batch(function, primals)
        if not has_calls(primitive):
            for sample in [s for s in samples(primitive) if s.operands][:2]:
                values = [array(a) for a in sample.draw()]
                _batch(lambda *xs, s=sample: s.primitive(*xs, **s.params), values)
    return ran


def _is_smooth(primitive: Primitive, out: Any) -> bool:
    return type_of(out).dtype in dtypes.INEXACT and primitive.name not in CUTS


def _differentiate(primitive: Primitive, function: Function, primals: Sequence[Any]) -> None:
    tangents = directions(np.random.default_rng(0), primals)
    (ct,) = directions(np.random.default_rng(1), [function(*primals)])
    if primitive.name in REFUSING:
        with pytest.raises(TransformError):
            rune.jvp(function, primals, tangents)
        return
    expected = differences(function, primals, tangents)
    if primitive.name in REVERSE_ONLY:
        with pytest.raises(TransformError):
            rune.jvp(function, primals, tangents)
    else:
        near(expected, rune.jvp(function, primals, tangents)[1], relative=1e-6, why=WHY)
    cotangents = rune.vjp(function, *primals)[1](ct)
    backwards = inner(cotangents, tangents)
    near(inner([ct], [expected]), backwards, relative=1e-6, absolute=1e-8, why=WHY)


def on_host(x: Any) -> np.ndarray:
    """The elements as NumPy has them, keys as records."""
    return x.numpy() if isinstance(x, rune.Array) else np.asarray(x)


def _batch(function: Function, values: Sequence[Any]) -> None:
    lanes = [array(np.stack([on_host(v), on_host(v)])) for v in values]
    if not lanes:
        return
    alone = on_host(function(*values))

    batch = rune.vmap(function)(*lanes)

    near(np.stack([alone, alone]), batch, relative=1e-12, absolute=1e-12, why="sums reordered")


@contextmanager
def recording(primitive: Primitive) -> Iterator[set[str]]:
    """The names of the rules of `primitive` that run in the block."""
    ran: set[str] = set()

    def noting(name: str, rule: Any) -> Any:
        def run(*args: Any, **params: Any) -> Any:
            ran.add(name)
            return rule(*args, **params)

        return run if callable(rule) else rule

    rules = {n: getattr(primitive, n) for n in ("jvp", "jvp_equation", "transpose", "batch")}
    recorders = {
        "jvp": _noted(rules["jvp"], noting),
        "jvp_equation": noting("jvp", rules["jvp_equation"]),
        "transpose": noting("transpose", rules["transpose"]),
        "batch": noting("batch", rules["batch"]),
    }
    try:
        for name, rule in recorders.items():
            object.__setattr__(primitive, name, rule)  # a frozen record
        yield ran
    finally:
        for name, rule in rules.items():
            object.__setattr__(primitive, name, rule)


def _noted(jvp: Any, noting: Callable[[str, Any], Any]) -> Any:
    if isinstance(jvp, Joint):
        return replace(jvp, rule=noting("jvp", jvp.rule))
    if isinstance(jvp, tuple):
        return tuple(r if isinstance(r, NOT_DIFFERENTIABLE) else noting("jvp", r) for r in jvp)
    return jvp


# --- the table ----------------------------------------------------------------------------------


def all_primitives() -> dict[str, Primitive]:
    """Every primitive that some module of rune defines, by the name of where it was found."""
    primitives: dict[str, Primitive] = {}
    for info in pkgutil.walk_packages(rune.__path__, "rune."):
        if info.name.endswith("__main__") or info.name.startswith(("rune.lowering", "rune.as_jax.jax")):
            continue  # what passes write, and modules that are loaded by JAX's names
        module = importlib.import_module(info.name)
        for name, value in vars(module).items():
            if isinstance(value, Primitive) and value.name not in OF_LOWERING:
                primitives[f"{info.name}.{name}"] = value
    return primitives


def untried(table: Mapping[str, Primitive] = TABLE) -> list[str]:
    """The gaps of a table: primitives and rules that no trial reaches."""
    messages = []
    for primitive in table.values():
        if primitive.name in OF_PASSES | OF_ALL_LANES:
            continue
        missing = required(primitive) - tried(primitive)
        messages += [f"{primitive}: no call tries its {rule} rule" for rule in sorted(missing)]
    return messages


__all__ = ["OF_PASSES", "TABLE", "all_primitives", "required", "tried", "untried"]
