"""Pgx: games of boards and cards, played by random moves in lanes."""

import jax
import jax.numpy as jnp
import pgx

KEY = jax.random.key(3)


def _game(name, moves=6, games=3):
    """Rewards, observations and legal actions after some random moves in several games."""
    env = pgx.make(name)
    step = jax.jit(jax.vmap(env.step))
    state = jax.jit(jax.vmap(env.init))(jax.random.split(KEY, games))
    rewards = []
    for key in jax.random.split(jax.random.key(7), moves):
        choose, move = jax.random.split(key)
        action = jax.random.categorical(choose, jnp.where(state.legal_action_mask, 0.0, -1e9), axis=-1)
        state = step(state, action, jax.random.split(move, games))
        rewards.append(state.rewards)
    return {
        "rewards": jnp.stack(rewards),
        "observation": state.observation.astype(jnp.float32).sum(tuple(range(1, state.observation.ndim))),
        "legal": state.legal_action_mask,
        "ended": state.terminated,
    }


def small_boards():
    return {name: _game(name, 9) for name in ("tic_tac_toe", "connect_four", "othello", "hex", "2048")}


def cards():
    return {name: _game(name, 5) for name in ("kuhn_poker", "leduc_holdem")}


def dice():
    return _game("backgammon", 8)


def chess_of_five_columns():
    return _game("gardner_chess", 3)


def shogi_of_animals():
    return _game("animal_shogi", 9)


def small_games_of_atari():
    return {name: _game(name, 5) for name in ("minatar-breakout", "minatar-freeway")}
