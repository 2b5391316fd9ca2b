"""Optax: optimizers, schedules, transformations of gradients, losses and helpers."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

_TARGET = jnp.array([1.0, -2.0, 3.0])
_LOGITS = jnp.array([[2.0, 0.5, -1.0], [0.1, 0.2, 3.0], [-1.0, 4.0, 0.3]])


def _parameters():
    return {"w": jnp.array([[0.5, -0.3], [0.2, 0.8], [-0.6, 0.1]]), "b": jnp.zeros(2)}


def _loss(parameters):
    x = jnp.linspace(-1, 1, 15).reshape(5, 3)
    y = jnp.stack([x[:, 0] * 2, x.sum(1)], 1)
    return jnp.mean((x @ parameters["w"] + parameters["b"] - y) ** 2)


def _descent(optimizer, steps=5):
    parameters = _parameters()
    state = optimizer.init(parameters)

    @jax.jit
    def step(parameters, state):
        loss, gradients = jax.value_and_grad(_loss)(parameters)
        updates, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, updates), state, loss

    losses = []
    for _ in range(steps):
        parameters, state, loss = step(parameters, state)
        losses.append(loss)
    return {"parameters": parameters, "losses": losses}


def _by_value(optimizer, steps=5):
    """Descent with an optimizer that asks for values of the loss itself."""
    x = jnp.zeros(3)
    state = optimizer.init(x)

    def loss(x):
        return jnp.sum((x - _TARGET) ** 2 * jnp.array([1.0, 5.0, 0.3]))

    for _ in range(steps):
        value, gradient = jax.value_and_grad(loss)(x)
        updates, state = optimizer.update(gradient, state, x, value=value, grad=gradient, value_fn=loss)
        x = optax.apply_updates(x, updates)
    return {"x": x, "loss": loss(x)}


def first_page_adam_on_a_quadratic():
    def compute_loss(params, x, y):
        return jnp.mean(optax.l2_loss(params["w"].dot(x), y))

    optimizer = optax.adam(1e-1)
    params = {"w": jnp.ones((2,))}
    state = optimizer.init(params)
    xs, ys = jnp.array([0.5, 2.0]), jnp.array(3.0)
    for _ in range(10):
        grads = jax.grad(compute_loss)(params, xs, ys)
        updates, state = optimizer.update(grads, state)
        params = optax.apply_updates(params, updates)
    return params


def sgd_with_nesterov_momentum():
    return _descent(optax.sgd(0.1, momentum=0.9, nesterov=True))


def adam_state_after_five_steps():
    optimizer = optax.adam(1e-2)
    state = optimizer.init(_parameters())
    for _ in range(5):
        _, state = optimizer.update(jax.grad(_loss)(_parameters()), state)
    return {"mu": state[0].mu, "nu": state[0].nu, "count": state[0].count}


def adamw_with_a_mask_of_decay():
    return _descent(optax.adamw(1e-2, weight_decay=0.1, mask={"w": True, "b": False}))


def optimizers_of_adaptive_moments():
    names = ("adamax", "nadam", "amsgrad", "radam", "adabelief", "novograd", "yogi", "adan")
    return {name: _descent(getattr(optax, name)(1e-2)) for name in names}


def optimizers_of_running_squares():
    return {name: _descent(getattr(optax, name)(1e-2)) for name in ("rmsprop", "adagrad", "adadelta", "rprop", "sm3")}


def optimizers_by_sign():
    return {"lion": _descent(optax.lion(1e-3)), "signsgd": _descent(optax.sign_sgd(1e-3))}


def optimizers_with_trust_ratios():
    return {name: _descent(getattr(optax, name)(1e-2)) for name in ("lamb", "lars", "fromage")}


def adafactor_on_a_matrix():
    optimizer = optax.adafactor(1e-2, min_dim_size_to_factor=4)
    x = {"m": jnp.arange(48.0).reshape(6, 8) / 48}
    state = optimizer.init(x)
    for _ in range(3):
        updates, state = optimizer.update(jax.tree.map(jnp.sin, x), state, x)
        x = optax.apply_updates(x, updates)
    return x


def optimistic_gradient_descent_in_a_game():
    optimizer = optax.optimistic_gradient_descent(0.1)
    x = jnp.array([1.0, -1.0])
    state = optimizer.init(x)
    for _ in range(5):
        updates, state = optimizer.update(jnp.array([x[1], -x[0]]), state)
        x = optax.apply_updates(x, updates)
    return x


def lbfgs_with_zoom_linesearch():
    return _by_value(optax.lbfgs())


def lbfgs_in_a_compiled_loop():
    optimizer = optax.lbfgs()

    def loss(x):
        return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    value_and_grad = optax.value_and_grad_from_state(loss)

    def step(carry):
        x, state = carry
        value, gradient = value_and_grad(x, state=state)
        updates, state = optimizer.update(gradient, state, x, value=value, grad=gradient, value_fn=loss)
        return optax.apply_updates(x, updates), state

    def proceeds(carry):
        _, state = carry
        count = optax.tree.get(state, "count")
        return (count == 0) | ((count < 60) & (optax.tree.norm(optax.tree.get(state, "grad")) >= 1e-3))

    start = jnp.array([0.0, 0.5])
    x, _ = jax.jit(lambda start: jax.lax.while_loop(proceeds, step, (start, optimizer.init(start))))(start)
    return x


def backtracking_linesearch_after_sgd():
    return _by_value(optax.chain(optax.sgd(1.0), optax.scale_by_backtracking_linesearch(max_backtracking_steps=15)))


def polyak_steps():
    return _by_value(optax.polyak_sgd(max_learning_rate=1.0))


def schedules_of_decay():
    steps = jnp.arange(0, 40, 4)
    schedules = {
        "constant": optax.constant_schedule(0.3),
        "linear": optax.linear_schedule(1.0, 0.1, 30, transition_begin=5),
        "polynomial": optax.polynomial_schedule(1.0, 0.1, 2, 30),
        "exponential": optax.exponential_decay(1.0, 10, 0.5, staircase=True),
        "cosine": optax.cosine_decay_schedule(1.0, 30, alpha=0.1),
        "constant by pieces": optax.piecewise_constant_schedule(1.0, {10: 0.5, 20: 0.1}),
        "interpolated": optax.piecewise_interpolate_schedule("cosine", 1.0, {10: 0.5, 30: 0.1}),
    }
    return {name: jax.vmap(schedule)(steps) for name, schedule in schedules.items()}


def schedules_with_warmup():
    steps = range(0, 120, 7)
    schedules = {
        "cosine": optax.warmup_cosine_decay_schedule(0.0, 1.0, 20, 100, 0.01),
        "exponential": optax.warmup_exponential_decay_schedule(0.0, 1.0, 20, 30, 0.5, end_value=0.02),
        "one cycle": optax.cosine_onecycle_schedule(100, 1.0),
        "linear cycle": optax.linear_onecycle_schedule(100, 1.0),
    }
    return {name: [schedule(step) for step in steps] for name, schedule in schedules.items()}


def schedules_joined_and_restarted():
    parts = [{"init_value": 0.0, "peak_value": p, "warmup_steps": 5, "decay_steps": 20} for p in (1.0, 0.5)]
    joined = optax.join_schedules([optax.constant_schedule(1.0), optax.linear_schedule(0.5, 0.0, 10)], [10])
    return {
        "joined": [joined(step) for step in range(0, 25, 3)],
        "restarted": [optax.sgdr_schedule(parts)(step) for step in range(0, 40, 3)],
    }


def schedule_as_the_rate_of_an_optimizer():
    return _descent(optax.adam(optax.exponential_decay(0.1, 2, 0.5)))


def hyperparameters_in_the_state():
    optimizer = optax.inject_hyperparams(optax.adam)(learning_rate=optax.linear_schedule(0.1, 0.01, 4), b1=0.8)
    state, rates = optimizer.init(_parameters()), []
    for _ in range(4):
        _, state = optimizer.update(_parameters(), state)
        rates.append(state.hyperparams["learning_rate"])
    state.hyperparams["b1"] = jnp.array(0.5)
    updates, _ = optimizer.update(_parameters(), state)
    return {"rates": rates, "updates": updates}


def chain_of_clipping_momentum_and_scale():
    return _descent(optax.chain(optax.clip_by_global_norm(1.0), optax.trace(0.9), optax.scale(-0.1)))


def clipping_by_value_norm_and_block():
    gradients = {"a": jnp.array([3.0, -4.0]), "b": jnp.array([[0.1, 12.0]])}
    transforms = {
        "value": optax.clip(1.0),
        "norm": optax.clip_by_global_norm(2.0),
        "block": optax.clip_by_block_rms(0.5),
        "adaptive": optax.adaptive_grad_clip(0.01),
    }
    parameters = jax.tree.map(jnp.ones_like, gradients)
    return {name: t.update(gradients, t.init(parameters), parameters)[0] for name, t in transforms.items()}


def partition_gives_each_part_its_optimizer():
    optimizer = optax.partition({"fast": optax.sgd(1.0), "none": optax.set_to_zero()}, {"w": "fast", "b": "none"})
    return _descent(optimizer, 3)


def masked_transformation():
    optimizer = optax.chain(
        optax.masked(optax.scale(0.0), lambda p: jax.tree.map(lambda x: x.ndim == 1, p)), optax.sgd(0.1)
    )
    return _descent(optimizer, 3)


def several_small_batches_for_one_step():
    optimizer = optax.MultiSteps(optax.sgd(0.1, momentum=0.9), every_k_schedule=2)
    parameters = _parameters()
    state = optimizer.init(parameters)
    steps = []
    for _ in range(5):
        updates, state = optimizer.update(jax.grad(_loss)(parameters), state, parameters)
        parameters = optax.apply_updates(parameters, updates)
        steps.append(optimizer.has_updated(state))
    return {"parameters": parameters, "steps": steps}


def updates_that_are_not_finite_are_left_out():
    optimizer = optax.apply_if_finite(optax.sgd(0.1), max_consecutive_errors=3)
    state = optimizer.init(jnp.ones(2))
    first, state = optimizer.update(jnp.array([jnp.nan, 1.0]), state)
    second, state = optimizer.update(jnp.array([2.0, 1.0]), state)
    return {"first": first, "second": second, "errors": state.total_notfinite}


def lookahead_has_slow_and_fast_parameters():
    optimizer = optax.lookahead(optax.sgd(0.1), sync_period=2, slow_step_size=0.5)
    parameters = optax.LookaheadParams.init_synced(_parameters())
    state = optimizer.init(parameters)
    for _ in range(4):
        updates, state = optimizer.update(jax.grad(_loss)(parameters.fast), state, parameters)
        parameters = optax.apply_updates(parameters, updates)
    return {"fast": parameters.fast, "slow": parameters.slow}


def sharpness_aware_minimization():
    return _descent(
        optax.contrib.sam(optax.sgd(0.1), optax.chain(optax.contrib.normalize(), optax.sgd(0.05)), sync_period=2)
    )


def schedule_free_sgd_and_its_parameters():
    optimizer = optax.contrib.schedule_free_sgd(0.1)
    parameters = _parameters()
    state = optimizer.init(parameters)
    for _ in range(5):
        updates, state = optimizer.update(jax.grad(_loss)(parameters), state, parameters)
        parameters = optax.apply_updates(parameters, updates)
    return optax.contrib.schedule_free_eval_params(state, parameters)


def optimizers_without_a_rate():
    names = ("prodigy", "dadapt_adamw", "dowg", "cocob")
    return {name: _descent(getattr(optax.contrib, name)(), 3) for name in names}


def muon_for_matrices_and_adam_for_others():
    return _descent(optax.contrib.muon(1e-2), 3)


def rate_falls_on_a_plateau():
    optimizer = optax.contrib.reduce_on_plateau(factor=0.5, patience=1)
    state, scales = optimizer.init(jnp.ones(2)), []
    for value in (1.0, 1.0, 1.0, 0.9, 0.9, 0.9):
        _, state = optimizer.update(jnp.ones(2), state, value=value)
        scales.append(state.scale)
    return scales


def noise_by_a_key():
    optimizer = optax.noisy_sgd(0.1, eta=0.1, key=jax.random.key(0))
    return _descent(optimizer, 2)


def private_gradients_of_examples():
    optimizer = optax.contrib.dpsgd(0.1, l2_norm_clip=1.0, noise_multiplier=0.5, seed=0)
    gradients = jax.vmap(jax.grad(lambda w, x: jnp.sum((w * x) ** 2)), (None, 0))(
        jnp.ones(3), jnp.arange(12.0).reshape(4, 3)
    )
    updates, _ = optimizer.update(gradients, optimizer.init(jnp.ones(3)))
    return updates


def losses_of_regression():
    a, b = jnp.array([0.5, -2.0, 3.0]), jnp.array([0.4, 1.0, 2.5])
    return {
        "squared": optax.squared_error(a, b),
        "l2": optax.l2_loss(a, b),
        "huber": optax.huber_loss(a, b, delta=0.7),
        "log cosh": optax.log_cosh(a, b),
        "cosine": optax.cosine_distance(a, b),
        "similarity": optax.cosine_similarity(a, b),
    }


def losses_of_classification():
    labels = jnp.array([0, 2, 1])
    hot = jax.nn.one_hot(labels, 3)
    return {
        "integer labels": optax.softmax_cross_entropy_with_integer_labels(_LOGITS, labels),
        "labels": optax.softmax_cross_entropy(_LOGITS, optax.smooth_labels(hot, 0.1)),
        "sigmoid": optax.sigmoid_binary_cross_entropy(_LOGITS, hot),
        "focal": optax.sigmoid_focal_loss(_LOGITS, hot, alpha=0.25),
        "hinge": optax.hinge_loss(_LOGITS[:, 0], jnp.array([1.0, -1.0, 1.0])),
        "poly": optax.losses.poly_loss_cross_entropy(_LOGITS, hot),
        "kl": optax.kl_divergence(jax.nn.log_softmax(_LOGITS), hot),
        "convex kl": optax.convex_kl_divergence(jax.nn.log_softmax(_LOGITS), hot + 0.1),
    }


def derivatives_of_losses():
    labels = jnp.array([0, 2, 1])
    return {
        "softmax": jax.grad(lambda x: optax.softmax_cross_entropy_with_integer_labels(x, labels).sum())(_LOGITS),
        "sigmoid": jax.grad(lambda x: optax.sigmoid_binary_cross_entropy(x, x > 0).sum())(_LOGITS),
        "huber": jax.grad(lambda x: optax.huber_loss(x).sum())(_LOGITS),
    }


def connectionist_temporal_classification():
    logits = jnp.sin(jnp.arange(2 * 6 * 4.0)).reshape(2, 6, 4)
    padding = jnp.zeros((2, 6)).at[1, 4:].set(1)
    labels, label_padding = jnp.array([[1, 2, 2], [3, 1, 0]]), jnp.array([[0.0, 0, 0], [0, 0, 1]])
    loss = lambda x: optax.ctc_loss(x, padding, labels, label_padding).sum()  # noqa: E731
    return jax.value_and_grad(loss)(logits)


def ranking_losses():
    scores, relevance = jnp.array([0.5, 2.0, -1.0, 0.3]), jnp.array([0.0, 1.0, 0.0, 2.0])
    return {
        "softmax": optax.losses.ranking_softmax_loss(scores, relevance),
        "ntxent": optax.losses.ntxent(_LOGITS, jnp.array([0, 0, 1])),
        "triplet": optax.losses.triplet_margin_loss(_LOGITS, _LOGITS + 0.1, -_LOGITS),
    }


def fenchel_young_loss_of_logsumexp():
    loss = optax.losses.make_fenchel_young_loss(jax.nn.logsumexp)
    return loss(_LOGITS[0], jnp.array([0.0, 1.0, 0.0]))


def projections():
    tree = {"a": jnp.array([0.7, -1.3]), "b": jnp.array([2.0])}
    return {
        "box": optax.projections.projection_box(
            tree, jax.tree.map(jnp.zeros_like, tree), jax.tree.map(jnp.ones_like, tree)
        ),
        "simplex": optax.projections.projection_simplex(tree),
        "l1 ball": optax.projections.projection_l1_ball(tree, 1.5),
        "l2 ball": optax.projections.projection_l2_ball(tree, 1.5),
        "l1 sphere": optax.projections.projection_l1_sphere(tree, 1.5),
        "positive": optax.projections.projection_non_negative(tree),
    }


def arithmetic_of_trees():
    a, b = _parameters(), jax.tree.map(jnp.ones_like, _parameters())
    return {
        "sum": optax.tree.add(a, b),
        "scaled": optax.tree.add_scale(a, 0.5, b),
        "inner": optax.tree.vdot(a, b),
        "norm": optax.tree.norm(a),
        "size": optax.tree.size(a),
        "moment": optax.tree.update_moment(a, b, 0.9, 2),
        "max": optax.tree.max(a),
    }


def random_trees():
    return {
        "normal": optax.tree.random_like(jax.random.key(3), _parameters()),
        "uniform": optax.tree.random_like(jax.random.PRNGKey(3), _parameters(), sampler=jax.random.uniform),
    }


def moments_out_of_a_nested_state():
    optimizer = optax.chain(optax.clip(1.0), optax.adam(1e-2))
    state = optimizer.init(_parameters())
    _, state = optimizer.update(_parameters(), state)
    changed = optax.tree.set(state, count=jnp.array(7))
    return {"mu": optax.tree.get(state, "mu"), "count": optax.tree.get(changed, "count")}


def exponential_moving_averages():
    average = optax.ema(0.9)
    state, values = average.init(jnp.zeros(2)), []
    for i in range(4):
        value, state = average.update(jnp.array([1.0, i]), state)
        values.append(value)
    return {"ema": values, "incremental": optax.incremental_update(_TARGET, -_TARGET, 0.25)}


def second_derivatives_of_a_loss():
    inputs, targets = jnp.array([[1.0, 2.0, 0.5], [0.5, -1.0, 2.0]]), jnp.array([1.0, 0.0])
    loss = lambda p, x, y: jnp.mean((x @ p - y) ** 2)  # noqa: E731
    return {
        "hvp": optax.second_order.hvp(loss, jnp.ones(3), _TARGET, inputs, targets),
        "diagonal": optax.second_order.hessian_diag(loss, _TARGET, inputs, targets),
    }


def perturbed_maximum():
    perturbed = optax.perturbations.make_perturbed_fun(lambda x: jax.nn.one_hot(jnp.argmax(x), 3), num_samples=50)
    return perturbed(jax.random.key(0), _TARGET)


def assignment_of_rows_to_columns():
    costs = jnp.array([[8.0, 4, 7], [5, 2, 3], [9, 6, 7], [9, 4, 8]])
    return {
        "hungarian": optax.assignment.hungarian_algorithm(costs),
        "base": optax.assignment.base_hungarian_algorithm(costs),
    }


def updates_of_half_precision_parameters():
    parameters = {"w": jnp.ones(4, jnp.bfloat16)}
    optimizer = optax.adam(1e-1, mu_dtype=jnp.float32)
    updates, state = optimizer.update({"w": jnp.ones(4, jnp.bfloat16)}, optimizer.init(parameters), parameters)
    return {"w": optax.apply_updates(parameters, updates), "mu": state[0].mu}


def freezing_of_parts_by_path():
    optimizer = optax.chain(optax.freeze({"w": True, "b": False}), optax.scale(-0.1))
    updates, _ = optimizer.update(_parameters(), optimizer.init(_parameters()))
    return updates


def optimizer_under_vmap_and_scan():
    optimizer = optax.adam(0.1)

    def train(x):
        def step(carry, _):
            x, state = carry
            updates, state = optimizer.update(2 * (x - 1), state)
            return (optax.apply_updates(x, updates), state), x

        (x, _), path = jax.lax.scan(step, (x, optimizer.init(x)), None, length=6)
        return x, path

    return jax.vmap(train)(jnp.arange(3.0))


def derivative_through_the_steps_of_an_optimizer():
    def final_loss(rate):
        optimizer = optax.sgd(rate, momentum=0.5)
        x, state = jnp.array(2.0), optimizer.init(jnp.array(2.0))
        for _ in range(4):
            updates, state = optimizer.update(jax.grad(jnp.cosh)(x), state)
            x = optax.apply_updates(x, updates)
        return jnp.cosh(x)

    return jax.value_and_grad(final_loss)(0.1)


def safe_functions_and_counters():
    return {
        "increment": optax.safe_increment(jnp.array(np.iinfo(np.int32).max)),
        "norm": jax.grad(lambda x: optax.safe_norm(x, 0.1))(jnp.zeros(2)),
        "root mean square": optax.safe_root_mean_squares(_TARGET, 0.0),
    }


TOLERANCES = {"lbfgs_in_a_compiled_loop": (1e-2, "it ends where the gradient is below 1e-3, which rounding decides")}
