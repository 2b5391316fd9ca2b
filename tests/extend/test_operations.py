"""User-defined operations under every transformation. The oracles are NumPy and closed forms."""

from __future__ import annotations

import ctypes
import pydoc
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import extend
from rune.errors import ArgumentError, HostFallbackWarning, MissingRule

X = np.array([0.5, -1.0, 2.0], np.float32)
DEVICES = [d.name for d in rune.devices() if not d.name.startswith(("cpu", "null", "reference"))]


@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_double)
def scaled(x: int, out: int, n: int, factor: float) -> None:
    read, write = (ctypes.cast(p, ctypes.POINTER(ctypes.c_float)) for p in (x, out))
    for i in range(n):
        write[i] = read[i] * factor


cube = extend.primitive(
    "cube", types=lambda x: x, meaning=lambda x: x**3, jvp=[lambda t, x, y: 3 * x**2 * t], batch=extend.leading
)
sine_times_x = extend.primitive("written", expand=lambda x: rnp.sin(x) * x)
both = extend.primitive("both", expand=lambda x: x * x * x, meaning=lambda x: x**3)
scale = extend.primitive(
    "scale",
    types=lambda x, *, factor: x,
    meaning=lambda x, *, factor: x * np.float32(factor),
    native=extend.Native(scaled, sizes=lambda x, *, factor: (int(np.prod(x.shape)), float(factor))),
    jvp=[lambda t, x, y, *, factor: scale(t, factor=factor)],
    transpose=lambda ct, is_linear, x, *, factor: [scale(ct, factor=factor)],
    batch=extend.leading,
)
fused = extend.primitive(
    "fused", types=lambda x, y: (x, x), meaning=lambda x, y: (x * y, x + y), expand=lambda x, y: (x * y, x + y),
    multiple_results=True,
)  # fmt: skip
ways = pytest.mark.parametrize("way", [lambda f: f, rune.jit], ids=["eager", "jit"])


@ways
def test_it_is_differentiated_on_lanes(way: Any):
    np.testing.assert_allclose(way(rune.vmap(rune.grad(cube)))(X), 3 * X**2, rtol=1e-6)
    np.testing.assert_allclose(way(rune.vmap(rune.grad(rune.grad(cube))))(X), 6 * X, rtol=1e-6)
    np.testing.assert_allclose(way(rune.jacfwd(cube))(X), np.diag(3 * X**2), rtol=1e-6)


@ways
def test_an_operation_defined_by_an_expansion_has_derivatives_and_lanes(way: Any):
    slopes = np.cos(X) * X + np.sin(X)

    np.testing.assert_allclose(way(sine_times_x)(X), np.sin(X) * X, rtol=1e-6)
    np.testing.assert_allclose(way(rune.vmap(rune.grad(sine_times_x)))(X), slopes, rtol=1e-5)
    np.testing.assert_allclose(way(rune.vmap(rune.grad(both)))(X), 3 * X**2, rtol=1e-5)
    np.testing.assert_allclose(way(rune.grad(lambda x: fused(x, 2 * x)[0].sum()))(X), 4 * X, rtol=1e-6)


@ways
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5), (0,)])
def test_a_function_of_c_is_called_on_dense_rows(way: Any, shape: tuple[int, ...]):
    x = np.random.default_rng(1).normal(size=(*shape, 2)).astype(np.float32)

    result = way(lambda x: scale(x[..., 1], factor=2.5))(x)

    np.testing.assert_array_equal(result, x[..., 1] * np.float32(2.5))


def test_it_is_one_equation_in_programs_and_runs_in_loops():
    def repeated(x: Any) -> Any:
        return rune.lax.fori_loop(0, 3, lambda i, c: scale(c, factor=2.0), x)

    assert "scale %" in str(rune.make_program(repeated)(X))
    np.testing.assert_array_equal(rune.jit(repeated)(X), 8 * X)
    np.testing.assert_array_equal(rune.jit(rune.grad(lambda x: repeated(x).sum()))(X), [8, 8, 8])
    np.testing.assert_allclose(rune.grad(lambda x: rune.checkpoint(cube)(x).sum())(X), 3 * X**2, rtol=1e-6)


def test_lanes_may_be_taken_one_by_one():
    def ends(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        assert x.ndim == 1
        return x.min(), x.max()

    extent = extend.primitive(
        "extent",
        types=lambda x: (x.with_shape(()), x.with_shape(())),
        meaning=ends,
        batch=extend.lane_by_lane,
        multiple_results=True,
    )
    table = np.arange(6, dtype=np.float32).reshape(2, 3)

    low, high = rune.jit(rune.vmap(extent))(table)

    np.testing.assert_array_equal(low, [0, 3])
    np.testing.assert_array_equal(high, [2, 5])


def test_a_meaning_may_keep_what_it_is_given():
    references: list[np.ndarray] = []

    def keep(x: np.ndarray) -> np.ndarray:
        references.append(x)
        return x

    same = extend.primitive("same", types=lambda x: x, meaning=keep)
    result = rune.jit(lambda x: same(x + 1) * 2)(X)
    references[0][:] = 0

    np.testing.assert_array_equal(result, 2 * (X + 1))
    np.testing.assert_array_equal(rune.jit(lambda x: same(x + 1) * 2)(X), 2 * (X + 1))


@pytest.mark.parametrize("device", DEVICES)
def test_an_expansion_runs_on_devices(device: str):
    np.testing.assert_allclose(rune.jit(both, device=device)(X), X**3, rtol=1e-6)


@pytest.mark.parametrize("device", DEVICES[:1])
def test_without_an_expansion_the_host_computes_it_and_warns(device: str):
    alone = extend.primitive(f"alone on {device}", types=lambda x: x, meaning=lambda x: x + 1)

    with pytest.warns(HostFallbackWarning, match="alone on"):
        result = rune.jit(lambda x: alone(x) * 2, device=device)(X)

    np.testing.assert_array_equal(result, 2 * (X + 1))


def test_rules_may_be_zero_or_refused():
    with_zero = extend.primitive("rounded", types=lambda x: x, meaning=np.round, jvp=[extend.ZERO])
    without_rule = extend.primitive(
        "refused", types=lambda x: x, meaning=np.round, jvp=[extend.NOT_DIFFERENTIABLE("no")]
    )

    assert rune.grad(lambda x: with_zero(x) + x)(1.5) == 1
    with pytest.raises(TypeError, match=r"cannot differentiate refused \(no\)"):
        rune.grad(without_rule)(1.5)


def test_an_error_names_the_missing_rule():
    bare = extend.primitive("bare", types=lambda x: (x, x), meaning=lambda x: (x, x), multiple_results=True)

    with pytest.raises(MissingRule, match=r"jvp: cannot differentiate bare \(it has no jvp rule\)"):
        rune.grad(lambda x: bare(x)[0])(1.0)
    with pytest.raises(MissingRule, match=r"vmap: cannot batch bare"):
        rune.vmap(bare)(X)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"types": lambda x: x}, "one of meaning, expand, native and sources required"),
        ({"meaning": np.sin}, "types= or expand= required, for the types of its results"),
        ({"expand": lambda x: (x, x), "multiple_results": True, "jvp": [extend.ZERO]}, "jvp= is one function"),
        ({"types": lambda x: x, "native": extend.Native("libm")}, "an address or a function of ctypes required"),
        ({"types": lambda x: x, "native": extend.Native(0)}, "an address or a function of ctypes required"),
    ],
)
def test_a_definition_that_makes_no_sense_is_refused(arguments: dict[str, Any], message: str):
    with pytest.raises(ArgumentError, match=message):
        extend.primitive("nonsense", **arguments)


def test_numbers_for_a_function_of_c_are_integers_and_floats():
    def passing(number: Any) -> Any:
        return extend.primitive("named", types=lambda x: x, native=extend.Native(scaled, sizes=lambda x: (1, number)))

    for number in ("two", 1 << 63, -(1 << 63) - 1):
        with pytest.raises(ArgumentError, match=f"named: cannot pass {number!r} to a C function"):
            passing(number)(X)


def blended(x: Any, y: Any, *, weight: float = 0.5) -> Any:
    """A mean of x and y."""
    return weight * x + (1 - weight) * y


def test_help_shows_the_signature_and_the_docstring_of_the_function():
    text = pydoc.plain(pydoc.render_doc(extend.primitive("blend", expand=blended)))

    assert "blend(x: 'Any', y: 'Any', *, weight: 'float' = 0.5) -> 'Any'" in text
    assert "A mean of x and y." in text
    assert "class Operation" in pydoc.plain(pydoc.render_doc(extend.Operation))


def test_help_of_what_does_not_say_how_it_is_called_shows_its_name():
    opaque = extend.primitive("opaque", types=lambda x: x, meaning=np.vectorize(np.sin))

    assert "opaque(" in pydoc.plain(pydoc.render_doc(opaque))


@ways
@pytest.mark.parametrize("rules", [{"expand": blended}, {"types": lambda x, y, *, weight=0.5: x, "meaning": blended}])
@pytest.mark.parametrize(
    ("args", "params", "reason"),
    [
        ((1.0,), {}, "blend: cannot be called with 1 operand .*'y'"),
        ((), {"weight": 1.0}, "blend: cannot be called with 0 operands, weight .*'x'"),
        ((1.0, 2.0, 3.0), {}, "blend: cannot be called with 3 operands .*too many"),
        ((1.0, 2.0), {"wieght": 1.0}, "blend: cannot be called with 2 operands, wieght .*unexpected"),
    ],
)
def test_a_call_that_its_rules_do_not_take_is_an_error_that_shows_them(
    way: Any, rules: Any, args: Any, params: Any, reason: str
):
    blend = extend.primitive("blend", **rules)
    with pytest.raises(ArgumentError, match=reason) as error:
        way(lambda: blend(*args, **params))()

    assert str(error.value.hint).startswith("it is blend(x")


def test_errors_of_its_rules_are_their_own():
    def refuse(x: Any) -> Any:
        raise TypeError("not on Sundays")

    with pytest.raises(TypeError, match="not on Sundays"):
        extend.primitive("closed", expand=refuse)(1.0)


@ways
@pytest.mark.parametrize("wrap", [lambda y: y, lambda y: (1, y), lambda y: [y]], ids=["itself", "tuple", "list"])
def test_an_array_that_is_given_by_name_is_refused_as_it_would_lose_its_derivative(way: Any, wrap: Any):
    blend = extend.primitive("blend", expand=lambda x, y: x * y, types=lambda x, y: x)

    for y in (rnp.ones(3), np.ones(3, np.float32)):
        with pytest.raises(ArgumentError, match=r"blend: cannot take y by name \(it is an array, and arrays are"):
            blend(X, y=wrap(y))
    with pytest.raises(ArgumentError, match=r"blend: cannot take y by name \(it is an array, and arrays are"):
        way(rune.grad(lambda y: rnp.sum(blend(X, y=wrap(y)))))(X)


@ways
@pytest.mark.parametrize("operands", [(), (1.0,), (1.0, 2.0, 3.0)], ids=len)
@pytest.mark.parametrize("ufunc", [np.logaddexp, np.frompyfunc(lambda x, y: x + y, 2, 1)], ids=["numpy", "python"])
def test_another_number_of_operands_than_a_ufunc_takes_is_refused(way: Any, operands: tuple[float, ...], ufunc: Any):
    operation = extend.primitive("either", types=lambda *types: rune.ArrayType((), np.dtype("f4")), meaning=ufunc)

    with pytest.raises(ArgumentError, match=rf"either: cannot be called with {len(operands)} operands? .*takes 2"):
        way(lambda: operation(*operands))()
