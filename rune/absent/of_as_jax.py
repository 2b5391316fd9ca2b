"""What jax 0.10.2 has and `rune.as_jax` has not, module by module and object by object.

NAMES: by the section of the listing (tests/as_jax/surface), a reason and the names it is given for.
PARAMETERS: a reason, and `section.name: parameter` that it is given for. All may be patterns.
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
        _FLAGS: """
            AccuracyMode DotAlgorithm DotAlgorithmPreset RandomAlgorithm Tolerance rng_bit_generator rng_uniform
            dce_sink dce_sink_p optimization_barrier_p
            """,
        "Order between calls is that of the program; there are no tokens to hand on.": "after_all create_token",
        "Collectives that are not written; `ppermute` and `all_to_all` are here.": "psend precv ragged_all_to_all",
        "Not written; `ragged_dot` is here, and `jax.nn.scaled_dot_general`.": """
            RaggedDotDimensionNumbers ragged_dot_general scaled_dot
            """,
        "What stands in a program in other operations here.": """
            mulhi_p scatter_sub_p split_p stack_p tile_p unstack_p stage stage_p
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
    "jax.export": {"What exports XLA's programs.": "*"},
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
    "jax.experimental.jet": {"Use nested `jax.jvp`, which gives the same coefficients.": "*"},
    "jax.experimental.layout": {_MEMORIES: "*"},
    "jax.experimental.mesh_utils": {
        "A mesh of machines of several kinds of nets; use `create_device_mesh`.": "create_hybrid_device_mesh",
        _FLAGS: "device_kind_handler_dict",
    },
    "jax.experimental.mosaic": {_PALLAS: "*"},
    "jax.experimental.multihost_utils": {_PROCESSES: "*"},
    "jax.experimental.ode": {"Use `rune.scipy.integrate.odeint`.": "*"},
    "jax.experimental.pallas": {_PALLAS: "*"},
    "jax.experimental.profiler": {_XLA: "*"},
    "jax.experimental.random": {"Use `with rune.random.seed(0):`, under which draws need no key.": "*"},
    "jax.experimental.rnn": {"Networks of a library for GPUs; `rune.nn` has recurrences.": "*"},
    "jax.experimental.serialize_executable": {"Machine code is kept on disk as it is.": "*"},
    "jax.experimental.shard_alike": {"Use `jax.lax.with_sharding_constraint`.": "*"},
    "jax.experimental.sparse": {"Use BCOO and its methods; other formats and functions are not written.": "*"},
    "jax.experimental.sparse.linalg": {"Not written; `jax.scipy.sparse.linalg` solves by products.": "*"},
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
    "jit(f).lower(x).compile()": {_MEMORIES: "*_formats", "Use `x.sharding` of the results.": "*_shardings"},
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
        "Options are no flags of absl here.": "add_option complete_absl_config use_absl",
        _INSIDE: "meta",
        "Options of JAX's inside.": "check_vma eager_constant_folding jax*",
    },
    "scipy.Rotation": {"A rotation is no tuple here.": "count index", "Methods that are not written.": "mean random"},
}

_BY_POSITION = "Give it by position, or by the name it has here."
_SHARDING = "Layouts are said by `jax.lax.with_sharding_constraint`."

PARAMETERS: Mapping[str, tuple[str, ...]] = {
    _SHARDING: ("*: out_sharding*", "*: sharding*", "jax.Shard: *"),
    "Elementwise functions take their operands alone; use `jax.numpy.where`.": (
        "jax.numpy.*: out*",
        "jax.numpy.*: where*",
    ),
    _BY_POSITION: (
        "jax.*: fun",
        "jax.custom_batching.*: f*",
        "jax.custom_derivatives.SymbolicZero: aval",
        "jax.*: x",
        "jax.lax.nextafter: x?",
        "jax.scipy.special.*: [pq]",
        "jax.random.key_dtype: impl_spec",
        "jax.*iinfo: int_type",
        "jax.dtypes.issubdtype: *",
        "jax.core.m??_dim: d?",
        "jax.interpreters.*: *",
        "jax.extend.*: *",
        "key.*: *",
        "PartitionSpec.*: value",
        "config.update: val",
        "custom_jvp(f).defjvp: jvp",
        "jax.lax.all_gather: to",
        "jax.explain_cache_misses: *",
    ),
    "Classes that programs are given, and do not make.": (
        "jax.stages.*: *",
        "jax.core.Tracer: *",
        "jax.errors.*: *",
        "jit(f)*: *",
        "make_jaxpr(f)*: *",
        "typeof(x).*: *",
        "jax.scipy.spatial.transform.Slerp: *",
        "jax.numpy.ufunc: *",
        "jax.ref.*: *",
        "jax.custom_derivatives.*: *",
        "jax.api_util.*: *",
        "jax.example_libraries.*: *",
        "jax.experimental.checkify.*: *",
        "jax.experimental.hijax.*: *",
        "jax.Ref: *",
    ),
    "By name alone.": ("Mesh.update: *", "jax.numpy.co*: dtype: no place"),
    "Types that say where values are reduced; `shard_map(check_vma=True)` says how they vary.": (
        "*: reduced*",
        "*: unreduced*",
        "PartitionSpec.update: *",
        "jax.sharding.AbstractMesh: abstract_device*",
    ),
    "`rune.distributed` finds the other processes by MPI.": ("jax.distributed.initialize: *",),
    "Sum with `jax.lax.psum`.": ("jax.*: reduce_axes*",),
    "Say `static_argnums`.": ("jax.checkpoint: *", "jax.remat: *"),
    "A move copies; dropping the value frees its memory.": ("jax.device_put: *",),
    "None and () say the same.": ("jax.pmap: *_argnums*", "jax.pmap: backend", "jax.shard_map: in_specs*"),
    "A default that says the same, or that NumPy and SciPy have.": (
        "jax.numpy.*: * for *",
        "jax.numpy.clip: arr*",
        "jax.lax.linalg.eig: *",
        "jax.random.ball: p*",
        "jax.scipy.*: * for *",
        "jax.debug.*: c*",
        "jax.debug.print: fmt*",
    ),
    "None: boxes are as wide as what they say.": ("jax.debug.visualize_sharding: *",),
    "JAX's own, or its libraries'.": ("jax.lax.linalg.qr: use_magma", "jax.dtypes.result_type: return_weak_type_flag"),
    "Convert the operands, or the result.": ("jax.lax.mul: out_dtype", "jax.scipy.linalg.dft: dtype"),
    "One format, unsorted: the arguments of others are not taken.": ("jax.experimental.sparse.*: *",),
    "Change the diagonal.": ("jax.lax.linalg.tridiagonal_solve: perturb_singular",),
    "Nothing is drawn.": ("jax.scipy.linalg.eigh_tridiagonal: key",),
    "Leave it out: it changes nothing.": (
        "jax.scipy.linalg.solve*: debug*",
        "jax.scipy.linalg.solve*: *place",
        "jax.scipy.signal.detrend: *",
        "jax.profiler.start_server: *",
        "jax.scipy.special.log_ndtr: *",
    ),
}
