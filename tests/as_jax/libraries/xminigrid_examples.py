"""XLand-MiniGrid: worlds of cells with rules and goals, rolled out in lanes."""

import jax
import xminigrid
from xminigrid.wrappers import GymAutoResetWrapper


def _rollout(name, steps=20, lanes=3):
    env, params = xminigrid.make(name)
    env = GymAutoResetWrapper(env)

    def episode(key):
        def step(timestep, key):
            timestep = env.step(params, timestep, jax.random.randint(key, (), 0, env.num_actions(params)))
            return timestep, (timestep.reward, timestep.discount, timestep.observation.sum())

        last, steps_of = jax.lax.scan(step, env.reset(params, key), jax.random.split(key, steps))
        return steps_of, last.observation

    return jax.jit(jax.vmap(episode))(jax.random.split(jax.random.key(0), lanes))


def one_step():
    env, params = xminigrid.make("MiniGrid-EmptyRandom-8x8")
    first = jax.jit(env.reset)(params, jax.random.key(0))
    second = jax.jit(env.step)(params, first, 2)
    return {"first": first.observation, "second": second.observation, "reward": second.reward}


def rooms_with_rules():
    return {name: _rollout(name) for name in ("XLand-MiniGrid-R1-9x9", "XLand-MiniGrid-R4-13x13")}


def doors_and_keys():
    return {name: _rollout(name) for name in ("MiniGrid-DoorKey-8x8", "MiniGrid-Unlock", "MiniGrid-FourRooms")}


def memory():
    return _rollout("MiniGrid-MemoryS8")
