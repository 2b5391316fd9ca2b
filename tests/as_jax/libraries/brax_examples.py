"""Brax: bodies by three pipelines, environments, and the parts of its training."""

import brax
import jax
import jax.numpy as jnp
import optax
from brax import envs, kinematics, math
from brax.generalized import pipeline as generalized
from brax.io import mjcf
from brax.positional import pipeline as positional
from brax.spring import pipeline as spring
from brax.training import distribution, gradients, networks, replay_buffers
from brax.training.acme import running_statistics, specs
from brax.training.agents.ppo import losses as ppo_losses
from brax.training.agents.ppo import networks as ppo_networks

TOLERANCES = {
    "a_pendulum_in_three_pipelines": (1e-2, "speeds are differences of positions: 1e-7 at the start moves them by 1e-3")
}

PENDULUM = """
<mujoco model="double">
  <compiler angle="radian"/>
  <option timestep="0.005"/>
  <worldbody>
    <body pos="0 0 3">
      <joint name="first" axis="0 1 0" type="hinge" damping="0.1"/>
      <geom type="capsule" size="0.05" fromto="0 0 0 0 0 -0.5" mass="1"/>
      <body pos="0 0 -0.5">
        <joint name="second" axis="0 1 0" type="hinge"/>
        <geom type="capsule" size="0.05" fromto="0 0 0 0 0 -0.5" mass="0.7"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="first" gear="2" ctrllimited="true" ctrlrange="-1 1"/></actuator>
</mujoco>"""

BALL = """
<mujoco>
  <option timestep="0.005"/>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body pos="0 0 .32"><freejoint/><geom size=".3" mass="1"/></body>
  </worldbody>
</mujoco>"""

PIPELINES = {"generalized": generalized, "positional": positional, "spring": spring}


def _swing(pipeline, system, steps):
    def run(q):
        state = pipeline.init(system, q, jnp.zeros(system.qd_size()))
        act = jnp.full(system.act_size(), 0.3)
        return jax.lax.fori_loop(0, steps, lambda _, state: pipeline.step(system, state, act), state)

    return run


def a_pendulum_in_three_pipelines():
    system = mjcf.loads(PENDULUM)
    states = {n: jax.jit(_swing(p, system, 12))(jnp.array([0.5, -0.2])) for n, p in PIPELINES.items()}
    return {name: (state.q, state.qd, state.x.pos) for name, state in states.items()}


def a_ball_meets_the_floor():
    system = mjcf.loads(BALL)
    states = {n: jax.jit(_swing(p, system, 20))(system.init_q) for n, p in PIPELINES.items()}
    return {name: (state.x.pos, state.xd.vel) for name, state in states.items()}


def slopes_of_a_swing():
    system = mjcf.loads(PENDULUM)

    def height(q):
        state = spring.step(system, spring.init(system, q, jnp.zeros(2)), jnp.array([0.3]))
        return state.x.pos[1, 2] + jnp.sum(state.qd**2)

    return jax.jit(jax.value_and_grad(height))(jnp.array([0.5, -0.2]))


def quaternions():
    keys = jax.random.split(jax.random.key(0), 3)
    u, v = (math.normalize(jax.random.normal(key, (4,)))[0] for key in keys[:2])
    w = jax.random.normal(keys[2], (3,))
    return {
        "product": math.quat_mul(u, v),
        "rotated": math.inv_rotate(math.rotate(w, u), v),
        "matrix": math.quat_to_3x3(u),
        "euler": math.quat_to_euler(math.euler_to_quat(jnp.array([10.0, 20.0, 30.0]))),
        "between": math.from_to(w, jnp.array([0.3, -0.2, 0.9])),
        "frame": math.orthogonals(math.normalize(w)[0]),
        "inverse": math.inv_3x3(math.quat_to_3x3(u) + jnp.eye(3)),
        "slope at the edge": jax.grad(math.safe_arccos)(1.0),
    }


def transforms_of_links():
    system = mjcf.loads(PENDULUM)
    x, xd = jax.jit(kinematics.forward, static_argnums=())(system, jnp.array([0.3, 0.8]), jnp.array([1.0, -0.5]))
    joint, speed, _, _ = kinematics.world_to_joint(system, x, xd)
    local = brax.Transform.create(pos=jnp.array([0.1, 0.2, 0.3])).vmap(in_axes=(None, 0)).do(x)
    return {"x": x, "xd": xd, "back": kinematics.inverse(system, joint, speed), "local": local}


def _episode(env, steps, key):
    state = jax.jit(env.reset)(key)
    step = jax.jit(env.step)
    rewards = []
    for i in range(steps):
        state = step(state, 0.3 * jnp.cos(i + jnp.arange(env.action_size)))
        rewards.append(state.reward)
    return {"obs": state.obs, "rewards": jnp.stack([jnp.asarray(r) for r in rewards]), "done": state.done}


def an_environment():
    return _episode(envs.get_environment("inverted_pendulum", backend="generalized"), 3, jax.random.key(1))


def a_wrapped_batch_of_environments():
    env = envs.create("inverted_pendulum", episode_length=3, batch_size=3, backend="spring")
    state = jax.jit(env.reset)(jax.random.key(2))
    step = jax.jit(env.step)
    rows = []
    for i in range(4):
        state = step(state, jnp.full((3, 1), 0.4 * i))
        rows.append((state.obs, state.reward, state.done, state.info["steps"]))
    return rows


def distributions_of_actions():
    normal = distribution.NormalTanhDistribution(event_size=2)
    parameters = jax.random.normal(jax.random.key(0), (3, normal.param_size))
    actions = normal.sample_no_postprocessing(parameters, jax.random.key(1))
    return {
        "actions": normal.postprocess(actions),
        "log_prob": normal.log_prob(parameters, actions),
        "entropy": normal.entropy(parameters, jax.random.key(2)),
        "slope": jax.grad(lambda p: jnp.sum(normal.log_prob(p, actions)))(parameters),
    }


def statistics_that_run():
    state = running_statistics.init_state(specs.Array((3,), jnp.dtype("float32")))
    for i in range(3):
        state = running_statistics.update(state, jax.random.normal(jax.random.key(i), (5, 3)) * (i + 1))
    batch = jax.random.normal(jax.random.key(9), (2, 3))
    return {"mean": state.mean, "std": state.std, "normal": running_statistics.normalize(batch, state)}


def a_queue_of_samples():
    queue = replay_buffers.UniformSamplingQueue(8, {"x": jnp.zeros(2), "n": jnp.zeros((), jnp.int32)}, 4)
    state = queue.init(jax.random.key(0))
    for i in range(3):
        rows = {"x": jnp.full((3, 2), float(i)), "n": jnp.arange(3) + 10 * i}
        state = jax.jit(queue.insert)(state, rows)
    state, sample = jax.jit(queue.sample)(state)
    return {"sample": sample, "size": queue.size(state)}


def advantages_of_ppo():
    keys = jax.random.split(jax.random.key(0), 3)
    rewards, values = (jax.random.normal(key, (5, 2)) for key in keys[:2])
    zeros = jnp.zeros((5, 2)).at[3, 1].set(1.0)
    return ppo_losses.compute_gae(zeros, 0.0 * zeros, rewards, values, values[-1], lambda_=0.9, discount=0.97)


def a_step_of_ppo():
    net = ppo_networks.make_ppo_networks(3, 2, policy_hidden_layer_sizes=(8, 8), value_hidden_layer_sizes=(8,))
    keys = jax.random.split(jax.random.key(0), 6)
    params = ppo_losses.PPONetworkParams(net.policy_network.init(keys[0]), net.value_network.init(keys[1]))
    act = ppo_networks.make_inference_fn(net)((None, params.policy, params.value))
    observations = jax.random.normal(keys[2], (4, 5, 3))
    actions, extras = act(observations, keys[3])
    rows = brax.training.types.Transition(
        observation=observations,
        action=actions,
        reward=jax.random.normal(keys[4], (4, 5)),
        discount=jnp.ones((4, 5)),
        next_observation=observations + 0.1,
        extras={"policy_extras": extras, "state_extras": {"truncation": jnp.zeros((4, 5))}},
    )

    def loss(params):
        return ppo_losses.compute_ppo_loss(params, None, rows, keys[5], net)

    (value, _), slopes = jax.jit(jax.value_and_grad(loss, has_aux=True))(params)
    return {"loss": value, "slopes": slopes}


def steps_of_training():
    net = networks.make_value_network(3, hidden_layer_sizes=(8, 8))
    params, optimizer = net.init(jax.random.key(0)), optax.adam(1e-2)
    x = jax.random.normal(jax.random.key(1), (7, 3))

    def loss(params, x):
        return jnp.mean((net.apply(None, params, x) - jnp.sum(x, -1)) ** 2)

    update = jax.jit(gradients.gradient_update_fn(loss, optimizer, pmap_axis_name=None))
    state, values = optimizer.init(params), []
    for _ in range(3):
        value, params, state = update(params, x, optimizer_state=state)
        values.append(value)
    return jnp.stack(values)
