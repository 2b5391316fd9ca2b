"""What Optax 0.2.8 has and rune.optim and rune.nn have not."""

from __future__ import annotations

from rune.absent import Table

OPTIMISERS = "Optimisers that have not been written."
MISSING: Table = {
    OPTIMISERS: """
        contrib.acprop contrib.ademamix contrib.adopt contrib.cocob contrib.dadapt_adamw contrib.dog
        contrib.dowg contrib.galore contrib.madgrad contrib.mechanize contrib.momo contrib.momo_adam
        contrib.muon contrib.normalize contrib.prodigy contrib.reduce_on_plateau contrib.sam
        contrib.scale_by_* contrib.schedule_free* contrib.simplified_ademamix contrib.sophia
        contrib.hutchinson_estimator_diag_hessian contrib.split_real_and_imaginary fromage
        optimistic_adam optimistic_adam_v2 scale_by_distance_over_gradients
        scale_by_param_block_norm scale_by_sm3 sm3
        """,
    "Classes of states and names of types: a state is a tree of arrays, made by `init`.": """
        *State *Schedule *Fn ApplyEvery MaskOrFn MaskedNode OptState Params Updates
        ShouldSkipUpdateFunction ZoomLinesearchInfo init_empty_state tree_utils.NamedTupleKey
        contrib.*DimensionNumbers
        """,
    "Losses that have not been written; most are a line of `rune.numpy`.": """
        convex_kl_divergence cosine_distance cosine_similarity ctc_loss_with_forward_probs
        generalized_kl_divergence hinge_loss kl_divergence l2_loss log_cosh losses.* multi_normal
        ntxent safe_softmax_cross_entropy sigmoid_focal_loss smooth_labels squared_error
        perturbations.*
        """,
    "Arithmetic on trees: `rune.tree.map` with operators, `optim.global_norm`, `rune.tree.reduce`.": """
        tree.* tree_utils.* bias_correction update_infinity_moment update_moment
        update_moment_per_elem_norm tree_map_params stateless_with_tree_map
        """,
    "Second derivatives: `rune.hvp` and `rune.hessian`.": "second_order.*",
    "Wrappers that have not been written; `masked`, `multi_transform`, `conditionally_transform`, "
    "`apply_if_finite` and `inject_hyperparams` are here.": """
        conditionally_mask flatten inject_stateful_hyperparams measure_with_ema monitor
        scale_gradient selective_transform skip_large_updates skip_not_finite snapshot
        """,
    "Gradients of single examples, clipped, for privacy: `vmap(grad(f))` and a norm.": """
        per_example_global_norm_clip per_example_layer_norm_clip
        """,
    "Parts of a batch, one after another: `multi_steps`, or a scan.": "microbatch* microbatching.*",
    "Clipping by units of a layer, inside `adaptive_grad_clip`.": "transforms.unitwise_*",
    "Linear algebra and safe arithmetic beside optimisers; `rune.numpy.linalg` has norms.": """
        matrix_inverse_pth_root nnls power_iteration safe_increment safe_int32_increment safe_norm
        safe_root_mean_squares
        """,
    "Sets to project on, and matchings: other fields.": "assignment.* projections.*",
}
