"""What Optax 0.2.8 has, and rune.optim and rune.nn lack."""

from __future__ import annotations

from rune.absent import Table

INSTEAD = "`pip install optax`, and `import rune.as_jax` before it: Optax runs on rune."
MISSING: Table = {
    INSTEAD: """
        assignment.* conditionally_mask contrib.* flatten fromage inject_stateful_hyperparams
        matrix_inverse_pth_root measure_with_ema microbatch* microbatching.* monitor nnls
        optimistic_adam optimistic_adam_v2 per_example_global_norm_clip per_example_layer_norm_clip
        perturbations.* power_iteration projections.* scale_by_distance_over_gradients
        scale_by_param_block_norm scale_by_sm3 scale_gradient selective_transform
        skip_large_updates skip_not_finite sm3 snapshot transforms.unitwise_*
        """,
    "Classes of states and names of types: a state is a tree of arrays, which `init` makes.": """
        *State *Schedule *Fn ApplyEvery MaskOrFn MaskedNode OptState Params Updates
        ShouldSkipUpdateFunction ZoomLinesearchInfo init_empty_state tree_utils.NamedTupleKey
        """,
    "Losses that `rune.nn` lacks: most are a line of `rune.numpy`; or use Optax's.": """
        convex_kl_divergence cosine_distance cosine_similarity ctc_loss_with_forward_probs
        generalized_kl_divergence hinge_loss kl_divergence l2_loss log_cosh losses.* multi_normal
        ntxent safe_softmax_cross_entropy sigmoid_focal_loss smooth_labels squared_error
        """,
    "Arithmetic on trees: use `rune.tree.map` with operators, and `rune.tree.reduce`.": """
        tree.* tree_utils.* bias_correction update_infinity_moment update_moment
        update_moment_per_elem_norm tree_map_params stateless_with_tree_map
        """,
    "Second derivatives: use `rune.hvp` and `rune.hessian`.": "second_order.*",
    "Safe arithmetic for optimisers; `rune.numpy.linalg` has norms.": """
        safe_increment safe_int32_increment safe_norm safe_root_mean_squares
        """,
}
