"""gymnax: environments of reinforcement learning, stepped, vectorised and rolled out."""

import gymnax
import jax
import jax.numpy as jnp

KEY = jax.random.key(0)


def _rollout(name, steps=9):
    """Observations, rewards and ends of the steps of an episode of random actions."""
    env, params = gymnax.make(name)
    observation, state = env.reset(KEY, params)

    def step(carry, key):
        state, _ = carry
        choose, move = jax.random.split(key)
        action = env.action_space(params).sample(choose)
        observation, state, reward, *ends, _ = env.step(move, state, action, params)
        return (state, observation), (reward, ends)

    (_, last), (rewards, ends) = jax.lax.scan(step, (state, observation), jax.random.split(KEY, steps))
    return {"first": observation, "last": last, "rewards": rewards, "ends": ends}


def quick_start_one_step():
    env, params = gymnax.make("Pendulum-v1")
    observation, state = env.reset(KEY, params)
    action = env.action_space(params).sample(jax.random.key(1))
    following, state, reward, *ends, _ = env.step(jax.random.key(2), state, action, params)
    return {"observation": observation, "action": action, "following": following, "reward": reward, "ends": ends}


def classic_control():
    return {name: _rollout(name) for name in ("CartPole-v1", "Acrobot-v1", "MountainCar-v0")}


def continuous_control():
    return {name: _rollout(name) for name in ("Pendulum-v1", "MountainCarContinuous-v0")}


def small_games_of_atari():
    return {name: _rollout(name, 5) for name in ("Breakout-MinAtar", "Asterix-MinAtar", "SpaceInvaders-MinAtar")}


def tasks_of_the_behaviour_suite():
    return {name: _rollout(name) for name in ("Catch-bsuite", "DeepSea-bsuite", "UmbrellaChain-bsuite")}


def worlds_of_cells_and_bandits():
    return {name: _rollout(name) for name in ("FourRooms-misc", "GaussianBandit-misc", "Reacher-misc")}


def many_environments_at_once():
    env, params = gymnax.make("CartPole-v1")
    keys = jax.random.split(KEY, 5)
    _, states = jax.vmap(env.reset, in_axes=(0, None))(keys, params)
    step = jax.jit(jax.vmap(env.step, in_axes=(0, 0, 0, None)))
    observations, _, rewards, *_ = step(keys, states, jnp.arange(5) % 2, params)
    return {"observations": observations, "rewards": rewards}


def a_policy_is_improved_by_the_model():
    env, params = gymnax.make("Pendulum-v1")

    def cost(w):
        def step(carry, _):
            observation, state = carry
            action = jnp.tanh(observation @ w)
            observation, state, reward, *_ = env.step_env(KEY, state, action, params)
            return (observation, state), reward

        _, rewards = jax.lax.scan(step, env.reset_env(KEY, params), None, length=8)
        return -jnp.mean(rewards)

    w = jnp.zeros(3)
    for _ in range(3):
        w = w - 0.1 * jax.jit(jax.grad(cost))(w)
    return {"w": w, "cost": cost(w)}
