"""Names without an expression with a stored answer: the reason, and the file that tests them."""

from __future__ import annotations

from collections.abc import Mapping

# A reason, and the path of the file under tests/ that speaks of each of the names: `section.name`.
REASONS: Mapping[tuple[str, str], str] = {
    ("An operation of one's own is defined by it.", "as_jax/test_primitives.py"): """
        jax.interpreters.ad.defbilinear jax.interpreters.ad.defjvp jax.interpreters.ad.deflinear2
        jax.interpreters.ad.primitive_jvps jax.interpreters.batching.defbroadcasting
        jax.interpreters.batching.defreducer jax.interpreters.batching.defvectorized
        jax.interpreters.batching.primitive_batchers jax.interpreters.mlir.lower_fun
        jax.interpreters.mlir.register_lowering jax.interpreters.xla.apply_primitive
        """,
    ("Classes and devices of the process are in its arguments or its result.", "as_jax/test_vmappable.py"): """
        jax.interpreters.batching.register_vmappable jax.interpreters.batching.unregister_vmappable
        jax.extend.backend.backends
        """,
    ("A function is wrapped or traced by it, in JAX's way.", "as_jax/test_primitives.py"): """
        jax.interpreters.partial_eval.PartialVal jax.interpreters.partial_eval.trace_to_jaxpr_dynamic
        jax.interpreters.partial_eval.trace_to_jaxpr_nounits jax.extend.linear_util.transformation
        jax.extend.linear_util.transformation2 jax.extend.linear_util.transformation_with_aux
        """,
    ("JAX's text of it has names of JAX's inside.", "as_jax/test_core.py"): """
        jax.extend.core.concrete_or_error jax.extend.core.get_opaque_trace_state jax.extend.core.new_jaxpr_eqn
        """,
    ("It is refused in one sentence.", "as_jax/test_refusals.py"): """
        jax.core.Trace jax.extend.core.set_current_trace jax.extend.core.take_current_trace
        jax.experimental.hijax.register_hitype jax.interpreters.xla.canonicalize_dtype_handlers
        jit(f).lower(x).compiler_ir
        """,
    ("jax 0.10.2 refuses it on a CPU, without a package, or of every argument.", "as_jax/test_without_answers.py"): """
        jax.nn.scaled_matmul jax.numpy.fromfile jax.numpy.fromiter jax.empty_ref jax.free_ref jax.ref.empty_ref
        jax.ref.free_ref jax.lax.pbroadcast config.config_with_absl
        """,
    ("It has another form than rune's, or none.", "as_jax/test_without_answers.py"): """
        jit(f).lower(x).compile().runtime_executable jax.interpreters.mlir.LoweringRuleContext
        jax.interpreters.mlir.emit_python_callback jax.interpreters.ad.defjvp2 jax.interpreters.batching.broadcast
        jax.extend.core.TraceTag jax.extend.core.call_impl jax.extend.core.find_top_trace
        jax.experimental.hijax.AvalMutableQDD jax.experimental.hijax.AvalQDD jax.experimental.hijax.HiPrimitive
        jax.experimental.hijax.MutableHiType jax.experimental.hijax.aval_method
        jax.experimental.hijax.aval_property jax.experimental.hijax.control_flow_allowed_effects
        scipy.Rotation.quat
        """,
    ("NumPy counts the result among the arguments of a ufunc; JAX does not.", "as_jax/test_without_answers.py"): """
        numpy.ufunc.nargs numpy.add.nargs
        """,
    ("JAX wants the package flatbuffers for it.", "as_jax/test_export.py"): "jax.export.deserialize",
    ("JAX wants the package absl for it.", "as_jax/test_config.py"): "config.parse_flags_with_absl",
    ("JAX wants the package rich for it.", "sharding/eight_devices/test_pictures.py"): """
        jax.debug.visualize_array_sharding jax.debug.visualize_sharding
        """,
    ("It answers by a call with a sharding, while it compiles.", "sharding/eight_devices/test_inspection.py"): """
        jax.debug.inspect_array_sharding
        """,
    ("A part of a reference.", "numpy/test_sized_slices.py"): "jax.ds",
    ("It waits for words of a user.", "looking/test_breakpoint.py"): "jax.debug.breakpoint",
    ("A server, and files in pprof's format: refused.", "test_profiler.py"): """
        jax.profiler.device_memory_profile jax.profiler.save_device_memory_profile jax.profiler.start_server
        jax.profiler.stop_server
        """,
    ("It starts several processes.", "distributed/test_alone.py"): "jax.distributed.initialize",
    ("Rune's devices have one memory, and a client of rune's.", "as_jax/test_orbax.py"): """
        devices()[0].addressable_memories devices()[0].client devices()[0].default_memory devices()[0].memory
        jax.experimental.multihost_utils.reached_preemption_sync_point
        """,
    ("It takes a mesh of the devices of the process.", "as_jax/test_modules.py"): """
        jax.experimental.multihost_utils.global_array_to_host_local_array
        jax.experimental.multihost_utils.host_local_array_to_global_array
        """,
    ("It takes functions of JAX's inside.", "as_jax/test_stand_ins.py"): "jax.api_util.argnums_partial",
    ("It takes the structure of a tree.", "as_jax/test_private_names.py"): "jax.api_util.flatten_axes",
    ("Rune's types name no kind of memory.", "core/test_jax_names.py"): "typeof(x).memory_space",
    ("It says what stands in messages of JAX's.", "as_jax/test_stand_ins.py"): "jax.extend.core.DebugInfo",
    ("Lines of a source that are left out of messages.", "as_jax/test_private_names.py"): """
        jax.extend.source_info_util.register_exclusion
        """,
    ("It gives rules to XLA's partitioner: refused.", "as_jax/test_modules.py"): """
        jax.experimental.custom_partitioning.custom_partitioning
        """,
    ("JAX takes node data of its own for it.", "test_tree_util.py"): """
        tree.structure.from_iterable_tree tree.structure.from_node_data_and_children
        """,
    ("JAX's walks ask for functions of nodes in another order.", "test_tree_laws.py"): "tree.structure.walk",
}
