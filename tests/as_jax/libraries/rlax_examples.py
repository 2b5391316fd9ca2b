"""RLax: temporal differences, returns, policy gradients, distributions of values, exploration."""

import jax
import jax.numpy as jnp
import rlax

Q = jax.random.normal(jax.random.key(0), (7, 5))
ACTIONS = jnp.arange(7) % 5
REWARDS = jnp.linspace(-1.0, 2.0, 7)
DISCOUNTS = jnp.array([0.9, 0.9, 0.0, 0.9, 0.9, 0.9, 0.9])


def values_of_actions_by_temporal_differences():
    batch = {
        "q": jax.vmap(rlax.q_learning)(Q, ACTIONS, REWARDS, DISCOUNTS, Q[::-1]),
        "double": jax.vmap(rlax.double_q_learning)(Q, ACTIONS, REWARDS, DISCOUNTS, Q[::-1], Q + 0.5),
        "sarsa": jax.vmap(rlax.sarsa)(Q, ACTIONS, REWARDS, DISCOUNTS, Q[::-1], ACTIONS[::-1]),
        "persistent": jax.vmap(rlax.persistent_q_learning, (0, 0, 0, 0, 0, None))(
            Q, ACTIONS, REWARDS, DISCOUNTS, Q[::-1], 0.3
        ),
    }
    return batch


def a_linear_agent_learns_by_q_learning():
    features = jax.random.normal(jax.random.key(1), (7, 4))

    def loss(w):
        q = features @ w
        td = jax.vmap(rlax.q_learning)(q[:-1], ACTIONS[:-1], REWARDS[1:], DISCOUNTS[1:], q[1:])
        return jnp.mean(rlax.huber_loss(td, 1.0))

    w = jnp.zeros((4, 5))
    for _ in range(5):
        w = w - 0.5 * jax.jit(jax.grad(loss))(w)
    return {"w": w, "loss": loss(w)}


def returns_of_one_and_many_steps():
    values = jnp.sin(jnp.arange(7.0))
    return {
        "lambda": rlax.lambda_returns(REWARDS, DISCOUNTS, values, 0.8),
        "n_step": rlax.n_step_bootstrapped_returns(REWARDS, DISCOUNTS, values, 3),
        "discounted": rlax.discounted_returns(REWARDS, DISCOUNTS, values),
        "advantage": rlax.truncated_generalized_advantage_estimation(REWARDS, DISCOUNTS, 0.9, jnp.sin(jnp.arange(8.0))),
        "td_lambda": rlax.td_lambda(values[:-1], REWARDS[1:], DISCOUNTS[1:], values[1:], 0.9),
    }


def corrections_off_policy():
    rhos, values = jnp.linspace(0.5, 2.0, 7), jnp.cos(jnp.arange(7.0))
    out = rlax.vtrace_td_error_and_advantage(values, values[::-1], REWARDS, DISCOUNTS, rhos)
    retrace = rlax.retrace(
        Q[:-1], Q[1:], ACTIONS[:-1], ACTIONS[1:], REWARDS[1:], DISCOUNTS[1:],
        jax.nn.softmax(Q[1:]), jnp.full(6, 0.3), 0.9,
    )  # fmt: skip
    return {"vtrace": out, "leaky": rlax.leaky_vtrace(values, values[::-1], REWARDS, DISCOUNTS, rhos), "r": retrace}


def gradients_of_policies():
    advantages, weights = jnp.sin(jnp.arange(7.0)), jnp.ones(7)
    losses = {
        "pg": lambda logits: rlax.policy_gradient_loss(logits, ACTIONS, advantages, weights),
        "entropy": lambda logits: rlax.entropy_loss(logits, weights),
        "qpg": lambda logits: rlax.qpg_loss(logits, Q) + rlax.entropy_loss(logits, weights),
        "clipped": lambda logits: rlax.clipped_surrogate_pg_loss(
            jnp.exp(jnp.take_along_axis(logits, ACTIONS[:, None], 1)[:, 0]), advantages, 0.2
        ),
    }
    return {name: jax.value_and_grad(loss)(Q[::-1]) for name, loss in losses.items()}


def distributions_of_values():
    probs = jax.nn.softmax(Q[0])
    quantiles = jnp.sort(Q[:, :, None] + jnp.linspace(-1, 1, 3), axis=-1)
    return {
        "projected": rlax.categorical_l2_project(jnp.linspace(-1, 1, 5), probs, jnp.linspace(-2, 2, 7)),
        "categorical": rlax.categorical_td_learning(
            jnp.linspace(-1, 1, 5), Q[1], jnp.array(0.3), jnp.array(0.9), jnp.linspace(-1, 1, 5), Q[2]
        ),
        "quantile": rlax.quantile_q_learning(
            quantiles[0].T, jnp.array([0.1, 0.5, 0.9]), jnp.array(1), jnp.array(0.5), jnp.array(0.9),
            quantiles[1].T, quantiles[2].T, 1.0,
        ),
    }  # fmt: skip


def policies_sample_and_know_their_probabilities():
    key = jax.random.key(3)
    policies = {"softmax": rlax.softmax(2.0), "greedy": rlax.greedy(), "epsilon": rlax.epsilon_greedy(0.2)}
    return {
        name: {"sample": p.sample(key, Q), "probs": p.probs(Q), "log_prob": p.logprob(ACTIONS, Q)}
        for name, p in policies.items()
    }


def transformed_values_and_normalised_rewards():
    x = jnp.array([-3.0, 0.0, 0.5, 40.0])
    init, update = rlax.create_ema(decay=0.9)
    x0 = jnp.array([1.0, 2.0, 4.0])
    moments, updated = update(x0, init(x0))
    return {
        "hyperbolic": rlax.signed_hyperbolic(x),
        "and_back": rlax.signed_parabolic(rlax.signed_hyperbolic(x)),
        "two_hot": rlax.transform_to_2hot(jnp.array([0.3, 1.2]), -2.0, 2.0, 5),
        "moments": moments,
        "ema": updated,
    }
