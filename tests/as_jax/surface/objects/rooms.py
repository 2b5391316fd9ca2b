"""Files, texts, meshes and profiles: input and output, and the surroundings of a program."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

import numpy as np

X = np.array([[1.0, -2.0, 3.0], [0.5, 0.25, 7.0]], np.float32)


def arrays_in_files(jax: Any) -> list[Any]:
    """Arrays written to files and read back."""
    jnp = jax.numpy
    with tempfile.TemporaryDirectory() as folder:
        one, several = (os.path.join(folder, name) for name in ("one.npy", "several.npz"))
        jnp.save(one, jnp.asarray(X))
        jnp.savez(several, first=X, second=2 * X)
        read = jnp.load(several)
        return [jnp.load(one), read["first"], read["second"], np.load(one)]


def texts_of_arrays(jax: Any) -> list[Any]:
    """Arrays as texts, with options of printing."""
    jnp = jax.numpy
    x = jnp.asarray(X)
    options = jnp.get_printoptions()
    jnp.set_printoptions(precision=3)
    inside = jnp.get_printoptions()["precision"]
    jnp.set_printoptions(**options)
    return [jnp.array_str(x), "7." in jnp.array_repr(x), inside]


def printed(jax: Any) -> list[bool]:
    """The words that occur in both texts."""
    versions = _output(jax.print_environment_info)
    residuals = _output(lambda: jax.ad_checkpoint.print_saved_residuals(lambda x: jax.numpy.sin(jax.numpy.sin(x)), X))
    pairs = [("numpy", versions), ("2,3", residuals)]
    return [word.lower() in text.lower() for word, text in pairs]


def _output(f: Callable[[], Any]) -> str:
    with redirect_stdout(io.StringIO()) as text:
        result = f()
    return f"{text.getvalue()}{result}"


def compiled_texts(jax: Any) -> list[Any]:
    """The texts of a lowered and a compiled function."""
    lowering = jax.jit(lambda x: x @ x.T).lower(X)
    program = lowering.compile()
    (equation,) = jax.make_jaxpr(jax.numpy.sin)(X).eqns
    flops = {"flops": 0.0} | (lowering.cost_analysis() or {}), {"flops": 0.0} | (program.cost_analysis() or {})
    return [
        len(lowering.as_text()) > 10,
        len(program.as_text()) > 10,
        [f["flops"] >= 0 for f in flops],
        program.memory_analysis() is not None,
        equation.source_info is not None,
        equation.replace(params={}).primitive is equation.primitive,
        jax.make_jaxpr(lambda x: x + 1)(X).literals,
    ]


def profiles(jax: Any) -> list[Any]:
    """Blocks and functions named in a profile keep their results; files are written."""
    double = jax.profiler.annotate_function(lambda x: 2 * x, name="double")
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(os.path.join(folder, "first")), jax.profiler.TraceAnnotation("block"):
            first = double(X)
        jax.profiler.start_trace(os.path.join(folder, "second"))
        with jax.profiler.StepTraceAnnotation("step", step_num=1):
            second = jax.numpy.sin(X)
        jax.profiler.stop_trace()
        has_files = [len(os.listdir(os.path.join(folder, name))) > 0 for name in ("first", "second")]
        return [first, second, has_files]


def processes(jax: Any) -> list[Any]:
    """A single process, not one of several."""
    jax.distributed.shutdown()
    return [jax.distributed.is_initialized(), jax.process_count()]


def meshes(jax: Any) -> list[Any]:
    """Meshes in force around a program, and the kinds of their axes."""
    kinds = jax.sharding.AxisType
    mesh = jax.make_mesh((1, 1), ("n", "g"), (kinds.Explicit, kinds.Explicit))
    spec = jax.P("n", None)
    with jax.set_mesh(mesh):
        around = jax.sharding.get_mesh().axis_names
        x = jax.device_put(X, spec)
        loose = jax.sharding.auto_axes(lambda v: 2 * v, out_sharding=spec)(x)
    automatic = jax.make_mesh((1, 1), ("n", "g"), (kinds.Auto, kinds.Auto))
    with jax.set_mesh(automatic):
        strict = jax.sharding.explicit_axes(lambda v: v + 1, in_sharding=spec)(X)
    with jax.sharding.use_abstract_mesh(automatic.abstract_mesh):
        abstract = jax.sharding.get_abstract_mesh().axis_names
    sharding = jax.sharding.NamedSharding(mesh, spec)
    kinds_of_memory = [s.with_memory_kind(s.memory_kind).memory_kind == s.memory_kind for s in (sharding, x.sharding)]
    return [around, loose, strict, abstract, tuple(sharding.spec), kinds_of_memory]


def sparse_solutions(jax: Any) -> list[Any]:
    """The two sparse solvers without an expression, on a tridiagonal matrix."""
    jnp = jax.numpy
    band = jnp.diag(jnp.full(15, 4.0)) + jnp.diag(jnp.full(14, -1.0), 1) + jnp.diag(jnp.full(14, -1.0), -1)
    csr = jax.experimental.sparse.BCSR.fromdense(band)
    start = jnp.eye(15)[:, :2] + 0.1
    theta = jax.experimental.sparse.linalg.lobpcg_standard(band, start, m=60)[0]
    return [jax.experimental.sparse.linalg.spsolve(csr.data, csr.indices, csr.indptr, jnp.arange(15.0)), theta]
