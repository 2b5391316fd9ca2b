"""What Optax has and rune.optim and rune.nn have not: a table with the reasons, and its page.

The page docs/guide/missing-optax.md is made from the table (pytest --accept). The names are those
of Optax 0.2.8; what Optax's own namespace does not repeat of a module stands as `module.name`.
"""

from __future__ import annotations

import inspect
from fnmatch import fnmatch
from pathlib import Path

import pytest

import rune.nn
import rune.optim
from tests.support.absent import Table, listed, page
from tests.support.expect import expect_file

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "guide" / "missing-optax.md"
NAMES = HERE.joinpath("optax_0_2_8.txt").read_text().split()
SIGNATURES = HERE / "optax_arguments_0_2_8.txt"  # a function a line, and what it takes by name
INTRODUCTION = """\
What Optax 0.2.8 has and `rune.optim` has not, with the reasons; the tests compare this page with a
list of Optax's names. Losses are in `rune.nn`: `softmax_cross_entropy`, `huber_loss`, `ctc_loss`, …

`mu_dtype`, which is not taken, stands before `weight_decay` and `mask` in Optax: say those two by
name, here and there. `rprop` takes a step by the gradient that it is given, as torch's does;
Optax's is a step behind."""

OPTIMISERS = "Optimisers that have not been written."
MISSING: Table = {
    OPTIMISERS:
        "contrib.acprop contrib.ademamix contrib.adopt contrib.cocob contrib.dadapt_adamw "
        "contrib.dog contrib.dowg contrib.galore contrib.madgrad contrib.mechanize contrib.momo "
        "contrib.momo_adam contrib.muon contrib.normalize contrib.prodigy "
        "contrib.reduce_on_plateau "
        "contrib.sam contrib.scale_by_* contrib.schedule_free* contrib.simplified_ademamix "
        "contrib.sophia contrib.hutchinson_estimator_diag_hessian contrib.split_real_and_imaginary "
        "fromage optimistic_adam optimistic_adam_v2 scale_by_distance_over_gradients "
        "scale_by_param_block_norm scale_by_sm3 sm3",
    "Classes of states and names of types: a state is a tree of arrays, made by `init`.":
        "*State *Schedule *Fn ApplyEvery MaskOrFn MaskedNode OptState Params Updates "
        "ShouldSkipUpdateFunction ZoomLinesearchInfo init_empty_state tree_utils.NamedTupleKey "
        "contrib.*DimensionNumbers",
    "Losses that have not been written; most are a line of `rune.numpy`.":
        "convex_kl_divergence cosine_distance cosine_similarity ctc_loss_with_forward_probs "
        "generalized_kl_divergence hinge_loss kl_divergence l2_loss log_cosh losses.* multi_normal "
        "ntxent safe_softmax_cross_entropy sigmoid_focal_loss smooth_labels squared_error "
        "perturbations.*",
    "Arithmetic on trees: `rune.tree.map` with operators, `optim.global_norm`, `rune.tree.reduce`.":
        "tree.* tree_utils.* bias_correction update_infinity_moment update_moment "
        "update_moment_per_elem_norm tree_map_params stateless_with_tree_map",
    "Second derivatives: `rune.hvp` and `rune.hessian`.": "second_order.*",
    "Wrappers that have not been written; `masked`, `multi_transform`, `conditionally_transform`, "
    "`apply_if_finite` and `inject_hyperparams` are here.":
        "conditionally_mask flatten inject_stateful_hyperparams measure_with_ema monitor "
        "scale_gradient selective_transform skip_large_updates skip_not_finite snapshot",
    "Gradients of single examples, clipped, for privacy: `vmap(grad(f))` and a norm.":
        "per_example_global_norm_clip per_example_layer_norm_clip",
    "Parts of a batch, one after another: `multi_steps`, or a scan.": "microbatch* microbatching.*",
    "Clipping by units of a layer, inside `adaptive_grad_clip`.": "transforms.unitwise_*",
    "Linear algebra and safe arithmetic beside optimisers; `rune.numpy.linalg` has norms.":
        "matrix_inverse_pth_root nnls power_iteration safe_increment safe_int32_increment "
        "safe_norm "
        "safe_root_mean_squares",
    "Sets to project on, and matchings: other fields.": "assignment.* projections.*",
}  # fmt: skip
ARGUMENTS: Table = {
    "A state has the dtype of its parameters.":
        "*(mu_dtype) *(accumulator_dtype) adafactor(dtype_momentum) "
        "inject_hyperparams(hyperparam_dtype)",
    "Draws are given a key.": "*(seed)",
    "Other names for what is given by position.":
        "multi_transform(param_labels) partition(param_labels) stateless(f) "
        "with_extra_args_support(tx)",
    "There is one way: moments are corrected as in the papers, and `nadam` is the one with "
    "Nesterov's step.":
        "*(bias_correction*) nadam(nesterov) nadamw(nesterov) *(variant) scale_by_lion(mode) "
        "scale_by_lion(smooth_beta) scale_by_factored_rms(decay_rate_fn)",
    "What is handed on besides gradients always is, to whoever takes it.":
        "*(mask_compatible_extra_args) *(forward_extra_args)",
    "Compiled programs print nothing.": "*(verbose)",
    "Not written; the rest of the function is here.":
        "adaptive_grad_clip(axis) scale_by_learning_rate(flip_sign) "
        "scale_by_zoom_linesearch(*)",
}  # fmt: skip
HAVE = (rune.optim, rune.nn)


def is_there(name: str) -> bool:
    return any(hasattr(room, name) for room in HAVE)


def test_every_name_of_optax_is_there_or_in_the_table():
    patterns = listed(MISSING)
    absent = [n for n in NAMES if not is_there(n)]

    assert [n for n in absent if not any(fnmatch(n, p) for p in patterns)] == []


def test_nothing_in_the_table_is_there():
    assert [p for p in sorted(listed(MISSING)) if is_there(p)] == []


def test_every_line_of_the_table_speaks_of_a_name_of_optax():
    assert [p for p in sorted(listed(MISSING)) if not any(fnmatch(n, p) for n in NAMES)] == []


def not_taken() -> list[str]:
    """The arguments that functions of Optax take by name and those of rune.optim do not."""
    lines = (line.split() for line in SIGNATURES.read_text().splitlines())
    here = [(n, theirs) for n, *theirs in lines if hasattr(rune.optim, n)]
    taken = {n: inspect.signature(getattr(rune.optim, n)).parameters for n, _ in here}
    return [f"{n}({a})" for n, theirs in here for a in theirs if a not in taken[n]]


def test_every_argument_of_optax_is_taken_or_in_the_table():
    patterns = listed(ARGUMENTS)

    assert [a for a in not_taken() if not any(fnmatch(a, p) for p in patterns)] == []


def test_no_argument_in_the_table_is_taken():
    absent = not_taken()

    assert [p for p in sorted(listed(ARGUMENTS)) if not any(fnmatch(a, p) for a in absent)] == []


def test_the_page_tells_the_table(request: pytest.FixtureRequest):
    sections = {"Names": MISSING, "Arguments": ARGUMENTS}
    text = page("What Optax has and rune.optim has not", INTRODUCTION, sections)

    expect_file(request.config, PAGE, text)
