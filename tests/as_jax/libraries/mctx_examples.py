"""Mctx: searches of a tree with a model of the world, by three policies."""

from functools import partial

import jax
import jax.numpy as jnp
import mctx

BATCH, ACTIONS = 3, 4
ROOT = mctx.RootFnOutput(
    prior_logits=jax.random.normal(jax.random.key(0), (BATCH, ACTIONS)),
    value=jnp.linspace(-0.5, 0.5, BATCH),
    embedding=jnp.arange(float(BATCH)),
)


def _step(params, key, action, embedding):
    reward = jnp.sin(embedding + action)
    step = mctx.RecurrentFnOutput(
        reward=reward,
        discount=jnp.full_like(reward, 0.9),
        prior_logits=jnp.cos(embedding[:, None] * params + jnp.arange(float(ACTIONS))),
        value=jnp.cos(embedding),
    )
    return step, embedding + 0.1 * action


def _summary(output):
    summary = output.search_tree.summary()
    return {
        "action": output.action,
        "weights": output.action_weights,
        "visits": summary.visit_counts,
        "values": summary.qvalues,
        "value": summary.value,
    }


def search_of_muzero():
    policy = jax.jit(partial(mctx.muzero_policy, recurrent_fn=_step, num_simulations=24))
    return _summary(policy(1.0, jax.random.key(3), ROOT))


def search_of_gumbel_muzero():
    policy = jax.jit(
        partial(mctx.gumbel_muzero_policy, recurrent_fn=_step, num_simulations=16, max_num_considered_actions=3)
    )
    return _summary(policy(1.0, jax.random.key(4), ROOT))


def actions_that_are_forbidden_are_not_visited():
    invalid = jnp.array([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 1]])
    output = mctx.muzero_policy(
        0.5, jax.random.key(5), ROOT, _step, num_simulations=12, invalid_actions=invalid, max_depth=3, temperature=0.5
    )
    return _summary(output)


def search_with_states_of_chance():
    def decision(params, key, action, embedding):
        output = mctx.DecisionRecurrentFnOutput(
            chance_logits=jnp.sin(embedding[:, None] + jnp.arange(2.0)), afterstate_value=jnp.cos(embedding + action)
        )
        return output, embedding + 0.3 * action

    def chance(params, key, outcome, embedding):
        output = mctx.ChanceRecurrentFnOutput(
            action_logits=jnp.cos(embedding[:, None] + jnp.arange(float(ACTIONS))),
            value=jnp.sin(embedding),
            reward=0.1 * outcome.astype(jnp.float32),
            discount=jnp.full(embedding.shape, 0.95),
        )
        return output, embedding - 0.2 * outcome

    output = mctx.stochastic_muzero_policy((), jax.random.key(6), ROOT, decision, chance, num_simulations=14)
    return {"action": output.action, "weights": output.action_weights}


def the_policy_improves_when_the_network_follows_the_search():
    def loss(logits, key):
        output = mctx.gumbel_muzero_policy(
            1.0, key, ROOT.replace(prior_logits=logits), _step, num_simulations=8,
            qtransform=partial(mctx.qtransform_completed_by_mix_value, value_scale=0.05),
        )  # fmt: skip
        targets = jax.lax.stop_gradient(output.action_weights)
        return -jnp.mean(jnp.sum(targets * jax.nn.log_softmax(logits), axis=-1))

    logits = ROOT.prior_logits
    for i in range(3):
        logits = logits - jax.jit(jax.grad(loss))(logits, jax.random.key(i))
    return logits


def the_tree_holds_what_was_visited():
    tree = mctx.muzero_policy(1.0, jax.random.key(3), ROOT, _step, num_simulations=9).search_tree
    return {
        "visits": tree.node_visits,
        "values": tree.node_values,
        "parents": tree.parents,
        "children": tree.children_index,
    }
