"""What users see of arrays, jitted functions and compiled code: names, arguments, lines."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from docs.rooms import ROOMS, public_names, room
from rune import checkpoints, data, errors, optim
from rune.array_functions import ArrayFunctions

X = rnp.arange(6.0).reshape(2, 3)
FUNCTIONS = sorted(name for name in vars(ArrayFunctions) if not name.startswith("_"))


def arguments(function: Callable[..., object]) -> list[tuple[str, object, object]]:
    """Name, kind and default of each argument but the first, which is the array."""
    parameters = [*inspect.signature(function).parameters.values()][1:]
    keyword = inspect.Parameter.KEYWORD_ONLY
    return [(p.name, p.kind is keyword, p.default) for p in parameters]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_method_has_the_arguments_of_its_function(name: str):
    assert arguments(getattr(rune.Array, name)) == arguments(getattr(rnp, name))


def test_every_public_method_of_an_array_has_a_signature_and_a_sentence():
    methods = [n for n in dir(X) if not n.startswith("_") and callable(getattr(rune.Array, n, None))]
    assert len(methods) > 50
    for name in methods:
        signature = inspect.signature(getattr(X, name))
        assert not any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values()), name
        assert getattr(rune.Array, name).__doc__, name


@pytest.mark.parametrize(
    "call",
    [
        lambda x, m: m.sum(x, 0),
        lambda x, m: m.sort(x, axis=0),
        lambda x, m: m.clip(x, 1, 3),
        lambda x, m: m.std(x, axis=1, ddof=1),
        lambda x, m: m.take(x, np.array([0, 1]), axis=1),
        lambda x, m: m.argmax(x, 1),
    ],
)
def test_a_method_gives_what_numpy_gives(call: Callable[..., Any]):
    assert np.allclose(call(X, rune.Array), call(np.asarray(X), np), rtol=1e-6)


def test_an_array_shows_no_name_of_the_packages_own():
    names = set(dir(X))
    assert names >= {"sum", "shape", "at", "T", "__add__"}
    assert not names & {"buffer", "rank0", "make_dense", "place", "_buffer", "_require_numbers"}


def test_a_traced_value_lists_the_names_of_an_array():
    names: set[str] = set()

    def f(x: Any) -> Any:
        names.update(n for n in dir(x) if n[0] != "_")
        return x.sum()

    for transformation in (rune.jit(f), rune.grad(f), lambda x: rune.vmap(f)(x[None])):
        transformation(rnp.ones(3))
    assert names <= set(dir(X))
    assert "reshape" in names


def test_every_shown_name_exists():
    f = rune.jit(rnp.sin)
    elsewhere = {"__abstractmethods__", "__cuda_array_interface__"}  # of classes, of CUDA devices
    for thing in (X, f):
        assert [n for n in dir(thing) if n not in elsewhere and not hasattr(thing, n)] == []


def test_a_jitted_function_lists_only_its_public_names():
    names = [n for n in dir(rune.jit(rnp.sin)) if not n.startswith("__")]
    assert names == ["cache_size", "clear_cache", "eval_shape", "lower", "program", "trace"]


def test_a_jitted_function_has_the_arguments_of_the_function():
    def f(x: Any, /, y: int = 1, *, scale: float = 2.0) -> Any:
        return x * y * scale

    assert inspect.signature(rune.jit(f)) == inspect.signature(f)


def test_a_jitted_function_lists_its_traces_and_their_devices():
    f = rune.jit(lambda x: x * 1.75)
    assert repr(f) == "jit(lambda: 0 traces)"
    f(rnp.ones(2))
    assert repr(f) == "jit(lambda: 1 trace, 1 program, cpu:0)"
    f(rnp.ones(3))
    f.trace(rnp.ones(4))
    assert repr(f) == "jit(lambda: 3 traces, 2 programs, cpu:0)"
    f(rune.device_put(rnp.ones(3), "reference"))
    assert repr(f) == "jit(lambda: 3 traces, 3 programs, cpu:0, reference:0)"


def test_the_stages_of_a_call_show_themselves_in_a_line():
    def f(x: Any) -> Any:
        return rnp.sum(rnp.sin(x))

    e = rune.explain(f, device="reference")(rnp.ones(3))
    code = next(iter(e.plan.kernels.values()))
    kernel = next(iter(e.lowered.kernels.kernels.values()))
    assert repr(e.plan) == "Plan(f on reference:0: (f32[3]) -> (f32[]), 1 step, 1 kernel, arena 0 B)"
    assert repr(e.lowered.kernels) == "KernelProgram(f: (f32[3]) -> (f32[]), kernels sum_0)"
    assert repr(kernel) == "Kernel(sum_0: (x0: f32[3]) -> (y0: f32[]))"
    assert repr(code) == "KernelCode(sum_0(x0: read float32[3], y0: write float32[1]))"
    assert repr(e.lowered) == f"Lowered({e.plan!r})"
    for thing in (e.lowered.schedules["sum_0"], e.lowered.predictions()["sum_0"]):
        assert repr(thing) == str(thing)


# --- modules, and values of all kinds -----------------------------------------------------------


FOR_CHECKERS = {"ConvGeneralDilatedDimensionNumbers", "DotDimensionNumbers", "PrecisionLike"}


@pytest.mark.parametrize("name", ROOMS)
def test_tab_on_a_module_shows_what_the_reference_lists_and_the_modules_inside(name: str):
    module = room(name)
    reference, exports = set(public_names(module)), set(getattr(module, "__all__", ()))
    names = {n for n in dir(module) if n[0] != "_"}
    others = {n for n in names - reference - exports if not inspect.isclass(getattr(module, n))}

    assert reference <= names
    assert {n for n in others if f"{name}.{n}" not in ROOMS} <= FOR_CHECKERS


def test_every_error_and_warning_is_listed():
    classes = {n for n, value in vars(errors).items() if inspect.isclass(value) and issubclass(value, Exception)}

    assert {n for n in classes if n[0] != "_" and vars(errors)[n].__module__ == errors.__name__} <= set(errors.__all__)


def _root(x: Any) -> Any:
    return rnp.sqrt(x)


HELD: dict[str, Callable[[Path], object]] = {
    "array": lambda _: X,
    "at": lambda _: X.at,
    "at an index": lambda _: X.at[0, 1:],
    "jit": lambda _: rune.jit(_root),
    "traced": lambda _: rune.jit(_root).trace(X),
    "lowered": lambda _: rune.jit(_root).trace(X).lower(),
    "compiled": lambda _: rune.jit(_root).trace(X).lower().compile(),
    "custom_vjp": lambda _: rune.custom_vjp(_root),
    "custom_jvp": lambda _: rune.custom_jvp(_root),
    "custom_vmap": lambda _: rune.custom_vmap(_root),
    "vjp": lambda _: rune.vjp(_root, X)[1],
    "linearize": lambda _: rune.linearize(_root, X)[1],
    "exported": lambda _: rune.export(_root)(X),
    "folder of source": lambda _: rune.export.source(_root, target="c")(X),
    "pipeline": lambda _: data.arrays({"x": np.ones((99, 99))}).shuffle(0).batch(3),
    "run of a pipeline": lambda _: iter(data.arrays({"x": np.ones((99, 99))})),
    "checkpoints": lambda folder: checkpoints.Manager(folder),
    "file": lambda folder: rune.files.open(_saved(folder)),
    "device": lambda _: X.device,
    "sharding": lambda _: X.sharding,
    "mesh": lambda _: rune.make_mesh((1,), ("d",)),
    "shape": lambda _: rune.eval_shape(_root, X),
    "tree": lambda _: rune.tree.structure({"a": 1}),
    "operation": lambda _: rune.extend.primitive("own", expand=_root),
    "initializer": lambda _: rune.nn.initializers.normal(),
    "sparse matrix": lambda _: rune.sparse.BCOO.fromdense(rnp.eye(3)),
    "state of an optimizer": lambda _: optim.sgd(0.1).init({"w": rnp.ones(2)}),
}


def _saved(folder: Path) -> Path:
    rune.tree.save(folder / "x.safetensors", {"x": rnp.ones((99, 99))})
    return folder / "x.safetensors"


@pytest.mark.parametrize("kind", HELD)
def test_the_repr_of_a_users_object_is_short_and_has_no_address(kind: str, tmp_path: Path):
    text = repr(HELD[kind](tmp_path))

    assert " at 0x" not in text
    assert len(text) < 300
