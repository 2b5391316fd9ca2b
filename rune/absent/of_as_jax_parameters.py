"""Parameters that functions of jax 0.10.2 take and those of `rune.as_jax` do not.

PARAMETERS: a reason, and `section.name: parameter` that it is given for, or a pattern of these.
"""

from __future__ import annotations

from collections.abc import Mapping

_BY_POSITION = "Give it by position, or by the name it has here."
_SHARDING = "State layouts with `jax.lax.with_sharding_constraint`."

PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "Faster ways for a ufunc to reduce than element by element are one argument, `ways`.": tuple(
        f"jax.numpy.ufunc: {name}" for name in ("accumulate", "at", "call", "reduce", "reduceat")
    ),
    _SHARDING: ("*: out_sharding*", "*: sharding*", "jax.Shard: *"),
    _BY_POSITION: ("jax.interpreters.*: *", "jax.extend.*: *"),
    "Classes whose objects programs receive but do not create.": (
        "jax.stages.*: *",
        "jax.export.Exported: *",
        "jax.core.Tracer: *",
        "jax.errors.*: *",
        "jit(f)*: *",
        "make_jaxpr(f)*: *",
        "typeof(x).*: *",
        "jax.scipy.spatial.transform.Slerp: *",
        "jax.ref.*: *",
        "jax.api_util.*: *",
        "jax.example_libraries.*: *",
        "jax.experimental.checkify.*: *",
        "jax.experimental.hijax.*: *",
        "jax.Ref: *",
    ),
    "By name only.": ("Mesh.update: *", "jax.numpy.co*: dtype: no place"),
    "Types that say where values are reduced; `shard_map(check_vma=True)` says how they vary.": (
        "*: reduced*",
        "*: unreduced*",
        "PartitionSpec.update: *",
        "jax.sharding.AbstractMesh: abstract_device*",
    ),
    "`rune.distributed` finds the other processes by MPI.": ("jax.distributed.initialize: *",),
    "Say `static_argnums`.": ("jax.checkpoint: *",),
    "None and () mean the same.": ("jax.pmap: *_argnums*",),
    "A default that means the same, or that NumPy and SciPy have.": (
        "jax.numpy.*: * for *",
        "key.choose: * for *",
        "jax.numpy.clip: arr*",
        "jax.lax.linalg.eig: *",
        "jax.random.ball: p*",
        "jax.scipy.*: * for *",
        "jax.debug.*: c*",
        "jax.debug.print: fmt*",
    ),
    "None: boxes are as wide as their text.": ("jax.debug.visualize_sharding: *",),
    "Specific to JAX, or to its libraries.": (
        "jax.lax.linalg.qr: use_magma",
        "jax.dtypes.result_type: return_weak_type_flag",
    ),
    "Convert the operands, or the result.": ("jax.lax.mul: out_dtype",),
    "Normal numbers at sorted positions drawn without repetition: there is nothing to choose.": (
        "jax.experimental.sparse.random_bcoo: *",
    ),
    "A base class; make an array of one of the formats.": ("jax.experimental.sparse.JAXSparse: *",),
    "The elements of a sparse array are not laid out.": ("jax.experimental.sparse.bcoo_reshape: sharding",),
    "Change the diagonal.": ("jax.lax.linalg.tridiagonal_solve: perturb_singular",),
    "Nothing is drawn.": ("jax.scipy.linalg.eigh_tridiagonal: key",),
    "Leave it out: it changes nothing.": (
        "jax.scipy.signal.detrend: *",
        "jax.profiler.start_server: *",
        "jax.scipy.special.log_ndtr: *",
    ),
}
