"""Names that only JAX itself can have are refused in a sentence that says what to use instead."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import jax
import pytest
from jax.interpreters import mlir

from rune.errors import ArgumentError

MODULES = {
    "jax.experimental.mosaic": "rune generates kernels from code in jax.numpy",
    "jax.experimental.jax2tf": "Programs for TensorFlow",
    "jax.experimental.host_callback": "use jax.pure_callback",
    "jax.experimental.topologies": "build, read or tune XLA programs",
    "jax.extend.mlir": "It belongs to MLIR",
    "jax.ffi": "jax.pure_callback calls Python",
}


@pytest.mark.parametrize("name", MODULES)
def test_importing_a_missing_module_of_jax_gives_the_reason(name: str):
    with pytest.raises(ModuleNotFoundError, match=MODULES[name]) as error:
        import_module(name)

    assert error.value.name == name


def test_a_missing_module_is_named_as_usual():
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'jax\.nothing'$"):
        import_module("jax.nothing")


IMPORTED_AND_REFUSED = {
    "jax.experimental.pallas.tpu": "Kernels for GPUs and TPUs written in Pallas",
    "jax.experimental.pallas.ops.tpu.splash_attention": "Kernels for GPUs and TPUs written in Pallas",
    "jax.experimental.colocated_python.serialization": "Written for processes that share arrays",
    "jax.experimental.array_serialization.serialization": "Written for processes that share arrays",
    "jax.extend.ifrt_programs": "build, read or tune XLA programs",
}


@pytest.mark.parametrize("name", IMPORTED_AND_REFUSED)
def test_functions_of_a_module_for_accelerators_say_why_they_cannot_be_called(name: str):
    module = import_module(name)

    with pytest.raises(ArgumentError, match=f"{name}.make: cannot be called under rune.as_jax") as error:
        module.make(3)
    assert IMPORTED_AND_REFUSED[name] in str(error.value)
    with pytest.raises(ArgumentError, match=f"{name}.kernels.make: cannot be called"):
        module.kernels.make()


@pytest.mark.parametrize("name", ["pallas_call", "BlockSpec", "program_id", "load"])
def test_a_name_of_pallas_says_that_rune_writes_kernels(name: str):
    pallas = import_module("jax.experimental.pallas")

    with pytest.raises(AttributeError, match=r"Kernels for GPUs and TPUs written in Pallas"):
        getattr(pallas, name)


def test_text_of_mlir_is_refused_where_it_would_be_read():
    with pytest.raises(AttributeError, match="It belongs to MLIR"):
        _ = mlir.make_ir_context


def test_a_program_has_no_text_of_mlir():
    lowering = jax.jit(lambda x: 2 * x).lower(1.0)

    assert "stablehlo" not in lowering.as_text()
    with pytest.raises(ArgumentError, match="compiler_ir: "):
        lowering.compiler_ir("stablehlo")


def test_an_interpreter_of_jaxs_is_refused_when_it_is_made():
    class Counting(jax.core.Trace):
        def process_primitive(self, primitive: Any, tracers: Any, params: Any) -> None: ...

    with pytest.raises(ArgumentError, match=r"Counting: cannot use an interpreter of JAX's"):
        Counting()


def test_an_interpreter_of_jaxs_is_refused_when_it_is_installed():
    core = import_module("jax.extend.core")

    with pytest.raises(ArgumentError, match=r"set_current_trace: cannot use an interpreter of JAX's"):
        core.set_current_trace(None)
    with pytest.raises(ArgumentError, match="rune's transformations have their own"):
        core.take_current_trace()


@pytest.mark.parametrize("name", ["rbg", "unsafe_rbg"])
def test_generators_of_xla_are_refused_by_name(name: str):
    with pytest.raises(ArgumentError, match=rf"{name}(.|\n)*philox4x32 are the same everywhere"):
        jax.random.key(0, impl=name)
    with pytest.raises(ArgumentError, match=name):
        jax.random.PRNGKey(0, impl=name)


def test_a_user_defined_type_for_traces_is_refused_at_registration():
    class UserType: ...

    hijax, xla = import_module("jax.experimental.hijax"), import_module("jax.interpreters.xla")

    with pytest.raises(ArgumentError, match="register_hitype: cannot register UserType"):
        hijax.register_hitype(UserType, lambda x: None)
    with pytest.raises(ArgumentError, match="array_classes: cannot enter UserType"):
        xla.canonicalize_dtype_handlers[UserType] = lambda x: x
