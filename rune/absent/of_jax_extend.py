"""What jax.extend and jax.interpreters have and their stand-ins have not."""

from __future__ import annotations

from collections.abc import Mapping

from rune.absent import Table

MLIR = "It belongs to MLIR, which rune has none of: lower by `mlir.lower_fun(f)`, f in operations of jax.numpy."
XLA = "It belongs to XLA, which rune has none of: lower by `mlir.lower_fun(f)`, f in operations of jax.numpy."
TRACES = "JAX's interpreters are not rune's: a transformation of one's own reads the program of `jax.make_jaxpr`."

MISSING: Mapping[str, Table] = {
    "jax.interpreters.ad": {TRACES: "*Trace *Tracer"},
    "jax.interpreters.batching": {
        TRACES: "BatchTrace BatchTracer *Trace *Tracer",
        "Register the class by `jax.tree_util`.": "register_vmappable unregister_vmappable",
    },
    "jax.interpreters.mlir": {MLIR: "*"},
    "jax.interpreters.xla": {XLA: "*"},
    "jax.interpreters.pxla": {XLA: "*"},
    "jax.interpreters.partial_eval": {TRACES: "*"},
    "jax.extend.mlir": {MLIR: "*"},
    "jax.extend.linear_util": {},
}
