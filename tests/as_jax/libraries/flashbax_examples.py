"""Flashbax: buffers of experience, uniform and by priority, of items, pairs and trajectories."""

import flashbax as fbx
import jax
import jax.numpy as jnp

KEY = jax.random.PRNGKey(0)
STEP = {"observation": jnp.zeros(3), "reward": jnp.zeros(()), "done": jnp.zeros((), bool)}


def _steps(count, start=0):
    i = jnp.arange(float(start), float(start + count))
    return {"observation": i[:, None] + jnp.arange(3.0), "reward": jnp.sin(i), "done": i % 5 == 4}


def _filled(buffer, state, count=12):
    add = jax.jit(buffer.add)
    for i in range(count):
        state = add(state, jax.tree_util.tree_map(lambda x: x[0], _steps(1, i)))
    return state


def quick_start_a_flat_buffer():
    buffer = fbx.make_flat_buffer(max_length=16, min_length=4, sample_batch_size=5)
    state = buffer.init(STEP)
    before = buffer.can_sample(state)
    state = _filled(buffer, state)
    batch = jax.jit(buffer.sample)(state, KEY)
    return {"before": before, "after": buffer.can_sample(state), "batch": batch.experience}


def a_buffer_of_items():
    buffer = fbx.make_item_buffer(max_length=8, min_length=2, sample_batch_size=4, add_batches=True)
    state = buffer.init(STEP)
    for start in (0, 5, 10):
        state = buffer.add(state, _steps(5, start))
    return {"batch": buffer.sample(state, KEY).experience, "full": state.is_full, "index": state.current_index}


def a_buffer_of_trajectories():
    buffer = fbx.make_trajectory_buffer(
        add_batch_size=2, sample_batch_size=3, sample_sequence_length=4, period=2, min_length_time_axis=4,
        max_length_time_axis=16,
    )  # fmt: skip
    state = buffer.init(STEP)
    for start in (0, 6, 12):
        pair = jax.tree_util.tree_map(lambda x: jnp.stack([x, x]), _steps(6, start))
        state = buffer.add(state, pair)
    return {"batch": buffer.sample(state, KEY).experience, "index": state.current_index}


def a_buffer_with_priorities():
    buffer = fbx.make_prioritised_flat_buffer(max_length=16, min_length=4, sample_batch_size=5)
    state = _filled(buffer, buffer.init(STEP))
    batch = buffer.sample(state, KEY)
    state = buffer.set_priorities(state, batch.indices, jnp.linspace(0.1, 2.0, 5))
    again = buffer.sample(state, jax.random.PRNGKey(1))
    return {
        "indices": batch.indices,
        "probabilities": batch.probabilities,
        "again": again.indices,
        "then": again.probabilities,
    }


def a_queue_is_read_in_order():
    queue = fbx.make_trajectory_queue(
        max_length_time_axis=12, add_batch_size=1, add_sequence_length=4, sample_sequence_length=3
    )
    state = queue.init(STEP)
    state = queue.add(state, jax.tree_util.tree_map(lambda x: x[None], _steps(4)))
    state, batch = queue.sample(state)
    return {"batch": batch.experience, "more": queue.can_sample(state), "room": queue.can_add(state)}


def filling_and_sampling_in_a_scan():
    buffer = fbx.make_item_buffer(max_length=8, min_length=1, sample_batch_size=2)

    def step(state, i):
        state = buffer.add(state, {"x": jnp.cos(i)})
        return state, buffer.sample(state, jax.random.fold_in(KEY, i)).experience["x"]

    return jax.lax.scan(step, buffer.init({"x": jnp.zeros(())}), jnp.arange(10))[1]
