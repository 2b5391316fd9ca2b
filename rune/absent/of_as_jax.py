"""What jax 0.10.2 has and `rune.as_jax` lacks, module by module and object by object.

MODULES: a reason, and patterns of the modules that it is given for.
NAMES: by the section of the listing (tests/as_jax/surface), a reason and the names it is given for.
       Parameters of functions are in of_as_jax_parameters.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from rune.absent import Table

_XLA = "Tools that build, read or tune XLA programs; `jax.make_jaxpr` and `rune.explain` show rune's."
_LOWER_BY = "which rune does not use: lower with `mlir.lower_fun(f)`, with f written in jax.numpy."
_MLIR = f"It belongs to MLIR, {_LOWER_BY}"
_LOWERING = f"It belongs to XLA, {_LOWER_BY}"
_TRACES = "JAX's interpreters are not rune's: write your own transformation over the program of `jax.make_jaxpr`."
_INSIDE = "An internal of JAX's tracing, which rune's interpreters do not have."
_TYPES = "Number types that no executor here has."
_FLAGS = "It names XLA, its compiler or its devices."
_PROCESSES = "Written for processes that share arrays; `rune.distributed` has what there is."
_MEMORIES = "Devices here have one kind of memory, in one layout."
_MUTABLE = "Types whose values change; use `jax.new_ref`."
_PALLAS = "Kernels for GPUs and TPUs written in Pallas; rune generates kernels from code in jax.numpy."
_TRACED = "Only a concrete array has it: a traced value has no memory."
_DISTRIBUTED_TYPES = "Types that say where values are reduced; `shard_map(check_vma=True)` says how they vary."

# Modules that are not there, by the reason that an import of one gives.
MODULES: Table = {
    _PALLAS: """
        jax.experimental.pallas* jax.experimental.mosaic* jax.experimental.triton* jax._src.pallas* jaxlib.mosaic*
        """,
    _MLIR: """
        jax.extend.mlir* jax.extend.lowering jax.interpreters.mlir* jax._src.interpreters.mlir jax._src.lib.mlir*
        jaxlib.mlir* jax.experimental.source_mapper*
        """,
    _XLA: """
        jax.extend.xla jax.extend.ifrt_programs jax.experimental.buffer_callback jax.experimental.xla_metadata
        jax.experimental.profiler jax.experimental.serialize_executable jax.experimental.topologies
        jax.experimental.custom_partitioning.* jax.experimental.fused jax.collect_profile jax.tools*
        jax.experimental.roofline* jax.experimental.scheduling_groups jax.experimental.control_deps
        jax.cloud_tpu_init jaxlib.plugin_support jaxlib.triton*
        """,
    "XLA's native code for a CPU or a GPU; `jax.numpy.linalg` and `jax.lax.linalg` call rune's.": """
        jaxlib.lapack jaxlib.cpu_* jaxlib.gpu_*
        """,
    "Use `rune.configure(check_keys=True)`, or `jax.debug_key_reuse`.": "jax.experimental.key_reuse*",
    "Programs for TensorFlow; exchange NumPy arrays between the libraries.": "jax.experimental.jax2tf*",
    "Use `jax.pure_callback` and `jax.experimental.io_callback`.": "jax.experimental.host_callback",
    "Calls into XLA's native code; `jax.pure_callback` calls Python.": "jax.ffi",
    _PROCESSES: "jax.experimental.colocated_python* jax.experimental.transfer jax.experimental.array_serialization*",
    "Use `rune.configure(cache_dir=...)`.": "jax.experimental.compilation_cache*",
    "Use `jax.device_put` inside `jit`, which moves values between devices.": "jax.experimental.compute_on",
}

NAMES: Mapping[str, Table] = {
    "jax": {
        _INSIDE: "ad make_user_context",
        "Calls into XLA's native code; `jax.pure_callback` calls Python.": "ffi",
        _FLAGS: "lib",
        _MEMORIES: "memory",
    },
    "jax.numpy": {
        _TYPES: """
            float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e8m0fnu
            int1 int2 uint1 uint2
            """,
        "A warning, which is an error here.": "ComplexWarning",
    },
    "jax.lax": {
        "A product is computed in the precision of its dtype; presets are accepted and change nothing.": """
            DotAlgorithm
            """,
        "Functions have one accuracy; `AccuracyMode` is accepted and changes nothing.": "Tolerance",
        "A draw that depends on earlier draws; use `jax.random.uniform`, which takes a key.": """
            rng_uniform
            """,
        "A program keeps only what its results need; a `jax.debug.callback` always stays.": "dce_sink",
        "Calls run in the order of the program; there are no tokens to pass on.": "after_all create_token",
        "Collectives that are not written; `ppermute` and `all_to_all` are here.": """
            precv psend ragged_all_to_all
            """,
        "A stage of JAX's own lowering.": "stage",
        "Programs here express it with other operations.": """
            dce_sink_p mulhi_p optimization_barrier_p scatter_sub_p split_p stack_p stage_p tile_p unstack_p
            """,
    },
    "jax.lax.linalg": {
        "The library that computes it cannot be chosen here.": "EighImplementation EigImplementation",
        "Programs here express it with other operations.": """
            cholesky_update_p lu_pivots_to_permutation_p ormqr_p symmetric_product_p
            """,
    },
    "jax.random": {"Programs here express it with other operations.": "random_gamma_p"},
    "jax.tree_util": {"A protocol for type checkers.": "KeyEntry"},
    "jax.sharding": {
        "A device without a machine; describe programs on devices that exist.": "AbstractDevice",
        _DISTRIBUTED_TYPES: "ManualAxisType",
    },
    "jax.debug": {_INSIDE: "DebugEffect OrderedDebugEffect"},
    "jax.ad_checkpoint": {
        "Answers of policies; `rune.checkpoint_policies` has the policies.": "Offloadable Recompute Saveable"
    },
    "jax.profiler": {
        "Readers of XLA's profiles; `rune.debug.profile` gives its own.": """
            ProfileData ProfileEvent ProfileOptions ProfilePlane register_subprocess
            """
    },
    "jax.export": {
        "XLA's versions and checks; rune's files record their own.": """
            DisabledSafetyCheck maximum_supported_calling_convention_version
            minimum_supported_calling_convention_version
            """
    },
    "jax.ffi": {
        "Calls into XLA's native code; `jax.pure_callback` calls Python.": """
            build_ffi_lowering_function ffi_call ffi_lowering include_dir pycapsule register_ffi_target
            register_ffi_target_as_batch_partitionable register_ffi_type register_ffi_type_id
            """
    },
    "jax.api_util": {_INSIDE: "donation_vector rebase_donate_argnums shaped_abstractify"},
    "jax.ref": {_INSIDE: "AbstractRef"},
    "jax.interpreters.ad": {_TRACES: "JVPTrace"},
    "jax.interpreters.mlir": {
        _MLIR: """
            aval_to_ir_type aval_to_ir_types ConstantHandler core_call_lowering dense_int_array
            dense_int_elements DEVICE_TO_DEVICE_TYPE dtype_to_ir_type flatten_ir_types flatten_ir_values
            i32_attr i64_attr ir_attribute ir_constant ir_constants ir_tree_registry ir_type_handlers
            jaxpr_subcomp lower_jaxpr_to_fun lower_jaxpr_to_module lowerable_effects LoweringParameters
            LoweringResult make_ir_context merge_mlir_modules Mesh module_to_bytecode module_to_string
            ModuleContext RECV_FROM_HOST_TYPE register_constant_handler SEND_TO_HOST_TYPE shape_tensor
            ShapePolyLoweringState ShardingContext SPMDAxisContext Token token_type TokenSet
            unflatten_ir_values_like_types Value
            """
    },
    "jax.interpreters.partial_eval": {
        _TRACES: """
            custom_partial_eval_rules dce_jaxpr_call_rule dce_jaxpr_closed_call_rule dce_jaxpr_consts dce_rules
            partial_eval_jaxpr_custom_rules
            """
    },
    "jax.interpreters.pxla": {_LOWERING: "create_compile_options"},
    "jax.interpreters.xla": {_LOWERING: "Backend"},
    "jax.extend.backend": {
        _FLAGS: """
            backend_xla_version clear_backends clear_in_memory_compilation_cache get_compile_options
            get_default_device register_backend_cache register_backend_factory
            """
    },
    "jax.extend.core": {_INSIDE: "AbstractToken CallPrimitive Token"},
    "jax.extend.lowering": {_XLA: "JaxIrContext LoweringRuleContext upstream_dialects"},
    "jax.extend.mlir": {
        _MLIR: """
            deserialize_portable_artifact hlo_to_stablehlo lower_with_sharding_in_types
            refine_polymorphic_shapes serialize_portable_artifact
            """
    },
    "jax.extend.pallas": {_PALLAS: "GridMapping register_lowering_rule"},
    "jax.extend.random": {
        "Custom generators; those here are `threefry2x32` and `philox4x32`.": """
            define_prng_impl random_seed rbg_prng_impl seed_with_impl threefry2x32_p threefry_2x32
            threefry_prng_impl unsafe_rbg_prng_impl
            """
    },
    "jax.extend.sharding": {
        _XLA: """
            get_hlo_sharding_from_serialized_proto get_op_sharding_from_serialized_proto
            get_serialized_proto_from_hlo_sharding GSPMDSharding
            """
    },
    "jax.extend.source_info_util": {
        _INSIDE: """
            current current_name_stack extend_name_stack NameStack new_name_stack new_source_info
            reset_name_stack set_name_stack SourceInfo summarize transform_name_stack user_context
            """
    },
    "jax.extend.xla": {_XLA: "clear_hlo_module_transformation PipelineStage register_hlo_module_transformation"},
    "jax.custom_derivatives": {"Checkpoints always recompute only what is needed.": "remat_opt_p"},
    "jax.experimental": {
        _MUTABLE: "cur_qdd EArray primal_tangent_dtype",
        "Machine code is cached on disk without it: `rune.configure(cache_dir=...)`.": "compilation_cache",
    },
    "jax.experimental.buffer_callback": {_XLA: "Buffer buffer_callback ExecutionContext ExecutionStage"},
    "jax.experimental.colocated_python": {
        _PROCESSES: """
            api colocated_cpu_devices colocated_python colocated_python_class func func_backend obj obj_backend
            serialization
            """
    },
    "jax.experimental.compilation_cache": {"Use `rune.configure(cache_dir=...)`.": "compilation_cache"},
    "jax.experimental.compute_on": {
        "Use `jax.device_put` inside `jit`, which moves values between devices.": "compute_on compute_on2"
    },
    "jax.experimental.custom_partitioning": {
        "Rules for XLA's partitioner; use `jax.shard_map`.": """
            ArrayMapping BATCHING CompoundFactor custom_partitioning_p SdyShardingRule
            """
    },
    "jax.experimental.fused": {_FLAGS: "fused"},
    "jax.experimental.hijax": {_MUTABLE: "AbstractRef HiPspec HiType ShapedArray TransformedRef VJPHiPrimitive"},
    "jax.experimental.jet": {
        "Internals of JAX's jet, which has its own rule for each operation; here `jet` follows from `jax.jvp`.": """
            def_comp def_deriv deflinear defzero deriv_prop fact JetTrace JetTracer linear_prop zero_prop
            zero_series zero_term ZeroSeries ZeroTerm
            """
    },
    "jax.experimental.layout": {_MEMORIES: "with_layout_constraint"},
    "jax.experimental.mesh_utils": {
        "A mesh over several kinds of networks; use `create_device_mesh`.": "create_hybrid_device_mesh",
        _FLAGS: "device_kind_handler_dict",
    },
    "jax.experimental.mosaic": {
        _PALLAS: """
            as_tpu_kernel lower_module_to_custom_call lowered_as_tpu_kernel Tiling TpuMemorySpace
            TpuSideEffectType
            """
    },
    "jax.experimental.multihost_utils": {
        _PROCESSES: """
            global_array_to_host_local_array_impl gtl_abstract_eval host_local_array_to_global_array_impl
            live_devices ltg_abstract_eval ltg_batcher ProcessFailureError
            """
    },
    "jax.experimental.ode": {
        "Steps of JAX's integrator; use `odeint`, which is here.": """
            abs2 fit_4th_order_polynomial initial_step_size interp_fit_dopri mean_error_ratio optimal_step_size
            ravel_first_arg runge_kutta_step
            """
    },
    "jax.experimental.pallas": {
        _PALLAS: """
            align_to ANY BlockDim Blocked BlockSpec BoundedSlice broadcast_to Buffered cdiv CompilerParams
            core_map CostEstimate debug_check debug_print delay DeviceIdType ds dslice Element empty empty_like
            empty_ref_like enable_debug_checks enable_poison_buffers estimate_cost get_global GridSpec HOST
            Indirect kernel loop lower_as_mlir MemoryRef MemorySpace multiple_of next_power_of_2 no_block_spec
            num_programs pallas_call pallas_call_p pallas_export_experimental program_id reciprocal RevisitMode
            run_scoped run_state select_ref semaphore semaphore_read semaphore_signal semaphore_wait Slice
            Squeezed squeezed strides_from_shape when with_scoped
            """
    },
    "jax.experimental.profiler": {_XLA: "get_profiled_instructions_proto"},
    "jax.experimental.random": {
        "Use `with rune.random.seed(0):`, under which draws need no key.": "stateful_rng StatefulPRNG"
    },
    "jax.experimental.rnn": {
        "Networks of a GPU library; `rune.nn` has recurrences.": """
            get_num_params_in_lstm init_lstm_weight lstm lstm_bwd lstm_fwd lstm_ref rnn_abstract_eval
            rnn_bwd_abstract_eval swap_lstm_gates unpack_lstm_weights
            """
    },
    "jax.experimental.serialize_executable": {
        "Machine code is cached on disk without it.": "deserialize_and_load serialize"
    },
    "jax.experimental.shard_alike": {"Use `jax.lax.with_sharding_constraint`.": "shard_alike"},
    "jax.experimental.sparse": {
        "Programs here express it with other operations.": """
            bcoo_dot_general_p bcoo_dot_general_sampled_p bcoo_extract_p bcoo_fromdense_p bcoo_sort_indices_p
            bcoo_spdot_general_p bcoo_sum_duplicates_p bcoo_todense_p bcoo_transpose_p bcsr_dot_general_p
            bcsr_extract_p bcsr_fromdense_p bcsr_todense_p coo_fromdense_p coo_matmat_p coo_matvec_p
            coo_todense_p csr_fromdense_p csr_matmat_p csr_matvec_p csr_todense_p todense_p
            """,
        "It names a GPU library.": "CuSparseEfficiencyWarning",
        "Here `sparsify` reads a program, and has no tracers of its own.": "SparseTracer",
        "Not written: index by `m[...]`, or use `bcoo_todense`.": "bcoo_conv_general_dilated bcoo_gather",
    },
    "jax.experimental.topologies": {_FLAGS: "get_attached_topology get_topology_desc make_mesh TopologyDescription"},
    "jax.experimental.transfer": {_PROCESSES: "make_error_array"},
    "jax.experimental.xla_metadata": {_XLA: "set_xla_metadata"},
    "x: array": {
        "JAX raises an error for it too.": "device_buffer device_buffers flat",
        _MEMORIES: "format",
        "rune does not record where an array was made; errors name the user's line.": "traceback",
    },
    "x: traced": {
        _TRACED: """
            addressable_data addressable_shards committed delete devices global_shards is_deleted
            is_fully_addressable is_fully_replicated on_device_size_in_bytes sharding tobytes
            unsafe_buffer_pointer
            """,
        "JAX raises an error for it too.": "dimension_as_value flat",
        _INSIDE: "full_lower get_const get_referent parent to_concrete_value traceback val",
        _MUTABLE: "aval_mutable_qdd cur_qdd mutable_qdd",
    },
    "key": {"JAX raises an error for it too.": "flat", _INSIDE: "pprint"},
    "jit(f).trace(x)": {_INSIDE: "lojax"},
    "jit(f).lower(x).compile()": {_MEMORIES: "input_formats output_formats"},
    "custom_jvp(f)": {_INSIDE: "fun jvp nondiff_argnums"},
    "custom_vjp(f)": {_INSIDE: "fun nondiff_argnums optimize_remat"},
    "make_jaxpr(f)(x)": {_INSIDE: "map_jaxpr", _MUTABLE: "final_aval_qdds in_aval_qdds is_high"},
    "make_jaxpr(f)(x).jaxpr": {_MUTABLE: "final_aval_qdds in_aval_qdds is_high"},
    "make_jaxpr(f)(x).eqns[0]": {_INSIDE: "ctx"},
    "typeof(x)": {
        "A type has a shape, a dtype and weak_type; methods are those of arrays.": """
            all any argmax argmin argpartition argsort array_abstraction_level astype at broadcast byteswap
            choose clip compress conj conjugate copy cumprod cumsum dec_rank diagonal dot flat flatten has_qdd
            imag inc_rank is_high item itemsize leading_axis_spec lo_ty lo_ty_qdd lower_val lower_val2
            manual_axis_type mat max mean min mT nbytes nonzero normalize nospec prod ptp raise_val
            raise_val2 ravel real repeat reshape round searchsorted shard sort squeeze std sum swapaxes T take
            to_device trace transpose unshard update_manual_axis_type update_weak_type var view vspace_add
            """
    },
    "ShapeDtypeStruct": {_MEMORIES: "format", _INSIDE: "is_ref", _DISTRIBUTED_TYPES: "manual_axis_type"},
    "tree.structure": {"Pickle a structure to store it.": "deserialize_using_proto serialize_using_proto"},
    "NamedSharding": {_INSIDE: "replicated_axes"},
    "Mesh": {"Use `mesh.local_devices`.": "local_mesh", _INSIDE: "is_scalar"},
    "PartitionSpec": {_DISTRIBUTED_TYPES: "reduced to_ct_spec to_lo to_tangent_spec unreduced"},
    "devices()[0]": {
        _FLAGS: "get_stream_for_external_ready_events live_buffers poison_execution",
        "Use `process_index`.": "host_id task_id",
    },
    "config": {
        "Options here are not absl flags.": "add_option complete_absl_config use_absl",
        _INSIDE: "meta",
        "Options of JAX's internals.": """
            check_vma eager_constant_folding jax2tf_default_native_serialization jax_bcoo_cusparse_lowering
            jax_compilation_cache_expect_pgle jax_cpu_get_global_topology_timeout_minutes
            jax_cpu_get_local_topology_timeout_minutes jax_custom_vjp3
            jax_debug_leaked_clients_on_clear_backends jax_debug_log_modules jax_disable_bwd_checks
            jax_disable_vmap_shmap_error jax_disallow_mesh_context_manager jax_distributed_debug
            jax_embedded_constants_max_bytes jax_enable_preemption_service jax_enable_recoverability
            jax_experimental_unsafe_xla_runtime_errors jax_export_calling_convention_version
            jax_export_ignore_forward_compatibility jax_mosaic_allow_hlo jax_mutable_array_checks
            jax_pallas_enable_debug_checks jax_pallas_poison_buffers jax_pallas_use_mosaic_gpu
            jax_pgle_aggregation_percentile jax_pgle_profiling_runs jax_pjrt_client_create_options
            jax_ragged_dot_use_gpu_pallas_triton_lowering jax_ragged_dot_use_ragged_dot_instruction
            jax_refs_to_pins jax_remat3 jax_remove_custom_partitioning_ptr_from_cache_key jax_scan3
            jax_send_traceback_to_runtime jax_serialization_version jax_share_binary_between_hosts
            jax_share_binary_between_hosts_timeout_ms jax_source_url_schema jax_threefry_gpu_kernel_lowering
            jax_use_emit_pipeline_primitive
            """,
    },
    "scipy.Rotation": {
        "A rotation is a tree here, not a tuple.": "count index",
        "JAX raises an error for it too.": "random",
    },
}
