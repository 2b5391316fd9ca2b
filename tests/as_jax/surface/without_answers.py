"""Names without an expression whose answer is stored, by the reason: patterns `section.name`."""

from __future__ import annotations

from collections.abc import Mapping

REASONS: Mapping[str, str] = {
    "A setting, whose answer is what it changes: test_config.py and test_settings.py.": """
        config.* jax.config jax.*_checks jax.allow_f16_reductions jax.array_garbage_collection_guard
        jax.auto_pcast jax.check_tracer_leaks jax.debug_* jax.default_device jax.default_prng_impl
        jax.disable_jit jax.enable_* jax.explain_cache_misses jax.jax2tf_* jax.legacy_prng_key
        jax.log_compiles jax.no_* jax.numpy_*_promotion jax.remove_size_one_mesh_axis_from_type
        jax.softmax_custom_jvp jax.thread_guard jax.threefry_partitionable jax.transfer_guard*
        """,
    "An operation of one's own is defined by it; test_primitives.py calls them by JAX's conventions.": """
        jax.interpreters.ad.def* jax.interpreters.ad.get_primitive_transpose jax.interpreters.ad.primitive_*
        jax.interpreters.ad.JVPTracer jax.interpreters.batching.* jax.interpreters.mlir.*
        jax.interpreters.partial_eval.* jax.interpreters.xla.* jax.extend.linear_util.*
        jax.extend.core.Primitive jax.custom_derivatives.custom_vjp_primal_tree_values
        """,
    "A primitive whose operation is written as others in a program here, or asks for devices.": """
        jax.lax.*_p jax.lax.linalg.qr_p jax.extend.core.primitives.*_p jax.custom_derivatives.*_call_p
        """,
    "A class, a type or a key of what other functions give; its members are tested where it is made.": """
        jax.Device jax.Ref jax.Shard jax.ref.Ref jax.core.* jax.extend.core.* jax.api_util.debug_info
        jax.lax.linalg.SvdAlgorithm jax.scipy.optimize.OptimizeResults
        jax.tree_util.KeyPath jax.tree_util.PyTreeDef jax.sharding.Mesh jax.sharding.Sharding jax.stages.*
        jax.errors.* jax.custom_derivatives.CustomVJPPrimal jax.custom_derivatives.SymbolicZero
        jax.export.Exported jax.experimental.checkify.Error* jax.experimental.layout.Format
        jax.experimental.layout.Layout PartitionSpec.UNCONSTRAINED
        jax.example_libraries.optimizers.JoinPoint jax.example_libraries.optimizers.Optimizer*
        jax.numpy.object_ jax.experimental.hijax.* jax.example_libraries.optimizers.optimizer
        """,
    "It registers a class or a listener: test_core.py, tests/tree and test_modules.py.": """
        jax.tree.static jax.tree_util.register_* jax.tree_util.flatten_one_level* jax.monitoring.*
        jax.export.register_* jax.extend.source_info_util.register_exclusion
        jax.example_libraries.optimizers.pack_optimizer_state
        """,
    "Its result is a text, a file or a page, or it starts something: tests of those rooms.": """
        jax.debug.* jax.profiler.* jax.print_environment_info jax.ad_checkpoint.print_saved_residuals
        jax.numpy.array_repr jax.numpy.fromfile jax.numpy.load jax.numpy.save jax.numpy.savez
        jax.numpy.set_printoptions jax.distributed.* *.as_text *.compiler_ir *.cost_analysis
        *.memory_analysis *.runtime_executable make_jaxpr(f)(x).eqns?0?.source_info
        """,
    "What stands around a program, and is said by it: tests of meshes.": """
        jax.sharding.auto_axes jax.sharding.explicit_axes jax.sharding.get_mesh jax.sharding.use_abstract_mesh
        *.with_memory_kind jax.experimental.custom_partitioning.*
        """,
    "jax 0.10.2 refuses it here: on a CPU, under vmap, without a package, or of every argument.": """
        jax.nn.scaled_matmul jax.numpy.fromiter jax.empty_ref jax.free_ref jax.ref.empty_ref jax.ref.free_ref
        jax.lax.pbroadcast jax.export.deserialize jax.export.symbolic_args_specs tree.structure.walk
        tree.structure.from_iterable_tree tree.structure.from_node_data_and_children
        """,
    "It is held against SciPy: test_sparse_linalg.py.": """
        jax.experimental.sparse.linalg.lobpcg_standard jax.experimental.sparse.linalg.spsolve
        """,
    "Members that hold what was given, or are JAX's own: tests of custom rules.": """
        custom_*(f).* make_jaxpr(f)(x).literals make_jaxpr(f)(x).eqns?0?.replace scipy.Rotation.quat
        """,
    "NumPy counts the result among the arguments of a ufunc; JAX does not.": "numpy.ufunc.nargs numpy.add.nargs",
}
