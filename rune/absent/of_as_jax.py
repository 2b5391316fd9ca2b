"""What jax 0.10.2 has and `rune.as_jax` has not, module by module and object by object.

MODULES: a reason, and patterns of the modules that it is given for.
NAMES: by the section of the listing (tests/as_jax/surface), a reason and the names it is given for.
Parameters of functions stand in of_as_jax_parameters.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from rune.absent import Table

_XLA = "What builds, reads or tunes programs of XLA; programs of rune are read by `jax.make_jaxpr` and `rune.explain`."
_LOWER_BY = "which rune has none of: lower by `mlir.lower_fun(f)`, f in operations of jax.numpy."
_MLIR = f"It belongs to MLIR, {_LOWER_BY}"
_LOWERING = f"It belongs to XLA, {_LOWER_BY}"
_TRACES = "JAX's interpreters are not rune's: a transformation of one's own reads the program of `jax.make_jaxpr`."
_INSIDE = "The inside of JAX's tracing, which rune's interpreters have not."
_TYPES = "Number types that no executor here has."
_FLAGS = "It names XLA, its compiler or its devices."
_PROCESSES = "Written for processes that share arrays; `rune.distributed` has what there is."
_MEMORIES = "Devices here have one kind of memory, in one layout."
_MUTABLE = "Types whose values change; use `jax.new_ref`."
_PALLAS = "Kernels written for GPUs and TPUs by Pallas; rune writes the kernels of what is said in jax.numpy."
_TRACED = "It is asked of arrays, and a traced value has no memory."
_DISTRIBUTED_TYPES = "Types that say where values are reduced; `shard_map(check_vma=True)` says how they vary."

# Modules that are not there, by the reason that an import of one gives.
MODULES: Table = {
    _PALLAS: "jax.experimental.pallas.* jax.experimental.mosaic* jax.experimental.triton* jax._src.pallas*",
    _MLIR: "jax.extend.mlir* jax.extend.lowering jax.interpreters.mlir.* jax._src.interpreters.mlir jaxlib.mlir*",
    _XLA: """
        jax.extend.xla jax.extend.ifrt_programs jax.experimental.buffer_callback jax.experimental.xla_metadata
        jax.experimental.profiler jax.experimental.serialize_executable jax.experimental.topologies
        jax.experimental.custom_partitioning.* jax.experimental.fused jax.collect_profile jax.tools*
        """,
    "Programs for TensorFlow; NumPy arrays go between the libraries.": "jax.experimental.jax2tf*",
    "Use `jax.pure_callback` and `jax.experimental.io_callback`.": "jax.experimental.host_callback",
    "Calls into native code of XLA; `jax.pure_callback` calls Python.": "jax.ffi",
    _PROCESSES: "jax.experimental.colocated_python* jax.experimental.transfer jax.experimental.array_serialization*",
    "Use `rune.configure(cache_dir=...)`.": "jax.experimental.compilation_cache*",
    "Use `jax.device_put` inside of `jit`, which moves values between devices.": "jax.experimental.compute_on",
}

NAMES: Mapping[str, Table] = {
    "jax": {
        _INSIDE: "ad make_user_context",
        "Use `jax.lax.dynamic_slice`, or a slice where the numbers are known.": "ds",
        "Calls into native code of XLA; `jax.pure_callback` calls Python.": "ffi",
        _FLAGS: "lib",
        _MEMORIES: "memory",
    },
    "jax.numpy": {
        _TYPES: """
            float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz
            float8_e8m0fnu int1 int2 uint1 uint2
            """,
        "A warning that is an error here.": "ComplexWarning",
    },
    "jax.lax": {
        "A product is computed in the precision of its dtype; presets are taken, and change nothing.": "DotAlgorithm",
        "Functions have one accuracy; `AccuracyMode` is taken, and changes nothing.": "Tolerance",
        "A draw that depends on what was drawn before; use `jax.random.uniform`, which takes a key.": "rng_uniform",
        "A program holds what its results need; a `jax.debug.callback` stays in any case.": "dce_sink",
        "Order between calls is that of the program; there are no tokens to hand on.": "after_all create_token",
        "Collectives that are not written; `ppermute` and `all_to_all` are here.": "psend precv ragged_all_to_all",
        "A stage of JAX's own lowering.": "stage",
        "What stands in a program in other operations here.": """
            dce_sink_p mulhi_p optimization_barrier_p scatter_sub_p split_p stack_p stage_p tile_p unstack_p
            """,
    },
    "jax.lax.linalg": {
        "Which library computes it is not a choice here.": "EigImplementation EighImplementation",
        "What stands in a program in other operations here.": """
            cholesky_update_p lu_pivots_to_permutation_p ormqr_p symmetric_product_p
            """,
    },
    "jax.random": {"What stands in a program in other operations here.": "random_gamma_p"},
    "jax.tree_util": {"A protocol for type checkers.": "KeyEntry"},
    "jax.sharding": {
        "A device without its machine; describe programs on the devices there are.": "AbstractDevice",
        _DISTRIBUTED_TYPES: "ManualAxisType",
    },
    "jax.debug": {
        _INSIDE: "DebugEffect OrderedDebugEffect",
        "Use `x.sharding` of the result.": "inspect_array_sharding",
    },
    "jax.ad_checkpoint": {
        "Answers of policies; `rune.checkpoint_policies` has those that act.": """
        Offloadable Recompute Saveable
        """
    },
    "jax.profiler": {"Readers of XLA's profiles; `rune.debug.profile` gives its own.": "Profile* register_subprocess"},
    "jax.export": {
        "Versions and checks of XLA's; files of rune's say their own.": """
        DisabledSafetyCheck maximum_supported_calling_convention_version
        minimum_supported_calling_convention_version
        """
    },
    "jax.ffi": {"Calls into native code of XLA; `jax.pure_callback` calls Python.": "*"},
    "jax.api_util": {_INSIDE: "*"},
    "jax.ref": {_INSIDE: "AbstractRef"},
    "jax.interpreters.ad": {_TRACES: "JVPTrace"},
    "jax.interpreters.batching": {"Register the class by `jax.tree_util`.": "*register_vmappable"},
    "jax.interpreters.mlir": {_MLIR: "*"},
    "jax.interpreters.partial_eval": {_TRACES: "*"},
    "jax.interpreters.pxla": {_LOWERING: "*"},
    "jax.interpreters.xla": {_LOWERING: "*"},
    "jax.extend.backend": {_FLAGS: "*"},
    "jax.extend.core": {_INSIDE: "*"},
    "jax.extend.lowering": {_XLA: "*"},
    "jax.extend.mlir": {_MLIR: "*"},
    "jax.extend.pallas": {_PALLAS: "*"},
    "jax.extend.random": {"Generators of one's own; those here are `threefry2x32` and `philox4x32`.": "*"},
    "jax.extend.sharding": {_XLA: "*"},
    "jax.extend.source_info_util": {_INSIDE: "*"},
    "jax.extend.xla": {_XLA: "*"},
    "jax.custom_derivatives": {"Checkpoints recompute only what is needed in any case.": "remat_opt_p"},
    "jax.example_libraries.stax": {"Examples of JAX; use Flax, Haiku or Equinox.": "*Pool GeneralConv*"},
    "jax.experimental": {
        _MUTABLE: "EArray cur_qdd primal_tangent_dtype",
        "Machine code is kept on disk as it is: `rune.configure(cache_dir=...)`.": "compilation_cache",
        "Use `jax.shard_map`.": "shard_map",
    },
    "jax.experimental.buffer_callback": {_XLA: "*"},
    "jax.experimental.colocated_python": {_PROCESSES: "*"},
    "jax.experimental.compilation_cache": {"Use `rune.configure(cache_dir=...)`.": "*"},
    "jax.experimental.compute_on": {"Use `jax.device_put` inside of `jit`, which moves values between devices.": "*"},
    "jax.experimental.custom_partitioning": {"Rules of XLA's partitioner; use `jax.shard_map`.": "*"},
    "jax.experimental.fused": {_FLAGS: "*"},
    "jax.experimental.hijax": {_MUTABLE: "*"},
    "jax.experimental.jet": {
        "The inside of JAX's jet: rules of its own for each operation; `jet` follows from `jax.jvp` here.": "*"
    },
    "jax.experimental.layout": {_MEMORIES: "*"},
    "jax.experimental.mesh_utils": {
        "A mesh of machines of several kinds of nets; use `create_device_mesh`.": "create_hybrid_device_mesh",
        _FLAGS: "device_kind_handler_dict",
    },
    "jax.experimental.mosaic": {_PALLAS: "*"},
    "jax.experimental.multihost_utils": {_PROCESSES: "*"},
    "jax.experimental.ode": {"Steps of JAX's integrator; use `odeint`, which is here.": "*"},
    "jax.experimental.pallas": {_PALLAS: "*"},
    "jax.experimental.profiler": {_XLA: "*"},
    "jax.experimental.random": {"Use `with rune.random.seed(0):`, under which draws need no key.": "*"},
    "jax.experimental.rnn": {"Networks of a library for GPUs; `rune.nn` has recurrences.": "*"},
    "jax.experimental.serialize_executable": {"Machine code is kept on disk as it is.": "*"},
    "jax.experimental.shard_alike": {"Use `jax.lax.with_sharding_constraint`.": "*"},
    "jax.experimental.sparse": {
        "What stands in a program in other operations here.": "*_p",
        "It names a library for GPUs.": "CuSparseEfficiencyWarning",
        "`sparsify` reads a program here, without tracers of its own.": "SparseTracer",
        "Not written: index by `m[...]`, or use `bcoo_todense`.": "bcoo_gather bcoo_conv_general_dilated",
        "Modules of JAX's package; what they have stands in `jax.experimental.sparse` itself.": """
            ad api bcoo bcsr coo csr linalg random transform util
            """,
    },
    "jax.experimental.sparse.linalg": {
        "Not written; `jax.scipy.sparse.linalg` solves by products, and `jax.numpy.linalg.eigh` is dense.": "*"
    },
    "jax.experimental.topologies": {_FLAGS: "*"},
    "jax.experimental.transfer": {_PROCESSES: "*"},
    "jax.experimental.xla_metadata": {_XLA: "*"},
    "x: array": {
        "What JAX's raise an error for, too.": "device_buffer device_buffers flat",
        _MEMORIES: "format",
        "Where it was made is not kept; errors name the user's line.": "traceback",
    },
    "x: traced": {
        _TRACED: """
            addressable_data addressable_shards committed delete devices global_shards is_deleted is_fully_addressable
            is_fully_replicated on_device_size_in_bytes sharding tobytes unsafe_buffer_pointer
            """,
        "What JAX's raise an error for, too.": "flat dimension_as_value",
        _INSIDE: "full_lower get_const get_referent parent to_concrete_value traceback val",
        _MUTABLE: "aval_mutable_qdd cur_qdd mutable_qdd",
    },
    "key": {"What JAX's raise an error for, too.": "flat", _INSIDE: "pprint"},
    "jit(f).trace(x)": {_INSIDE: "lojax"},
    "jit(f).lower(x).compile()": {_MEMORIES: "*_formats"},
    "custom_jvp(f)": {_INSIDE: "fun jvp nondiff_argnums"},
    "custom_vjp(f)": {_INSIDE: "fun nondiff_argnums optimize_remat"},
    "make_jaxpr(f)(x)": {_INSIDE: "debug_info map_jaxpr replace", _MUTABLE: "*_aval_qdds is_high"},
    "make_jaxpr(f)(x).jaxpr": {_INSIDE: "debug_info replace", _MUTABLE: "*_aval_qdds is_high"},
    "make_jaxpr(f)(x).eqns[0]": {_INSIDE: "ctx"},
    "typeof(x)": {"A type has a shape, a dtype and weak_type; methods are those of arrays.": "*"},
    "ShapeDtypeStruct": {_MEMORIES: "format", _INSIDE: "is_ref", _DISTRIBUTED_TYPES: "manual_axis_type"},
    "tree.structure": {"A structure is pickled where it is to be stored.": "*serialize_using_proto"},
    "NamedSharding": {_INSIDE: "replicated_axes"},
    "Mesh": {"Use `mesh.local_devices`.": "local_mesh", _INSIDE: "is_scalar"},
    "PartitionSpec": {"Say every axis of the array.": "UNCONSTRAINED", _DISTRIBUTED_TYPES: "reduced unreduced to_*"},
    "devices()[0]": {
        _MEMORIES: "addressable_memories default_memory memory",
        _FLAGS: "client get_stream_for_external_ready_events live_buffers poison_execution",
        "Use `process_index`.": "host_id task_id",
    },
    "config": {
        "Options are not flags of absl here.": "add_option complete_absl_config use_absl",
        _INSIDE: "meta",
        "Options of JAX's inside.": "check_vma eager_constant_folding jax*",
    },
    "scipy.Rotation": {
        "A rotation is a tree here, not a tuple.": "count index",
        "JAX's raises an error, too.": "random",
    },
}
