"""qujax: circuits as functions of their parameters, states, densities and expectations."""

import jax
import jax.numpy as jnp
import qujax

GATES, QUBITS, PARAMETERS = ["H", "Ry", "CZ"], [[0], [0], [0, 1]], [[], [0], []]


def _expectation(angles):
    state = qujax.get_params_to_statetensor_func(GATES, QUBITS, PARAMETERS)(angles)
    return qujax.get_statetensor_to_expectation_func([["Z"]], [[0]], [1.0])(state)


def first_circuit_of_the_readme():
    state = qujax.get_params_to_statetensor_func(GATES, QUBITS, PARAMETERS)(jnp.array([0.1]))
    return {"state": state.flatten(), "slope": jax.value_and_grad(_expectation)(jnp.array([0.1]))}


def densities():
    density = qujax.get_params_to_densitytensor_func(GATES, QUBITS, PARAMETERS)(jnp.array([0.1]))
    return density, qujax.get_densitytensor_to_expectation_func([["Z"]], [[0]], [1.0])(density)


def a_layered_circuit_is_trained():
    n, layers = 4, 3
    gates = ["H"] * n + (["Rx"] * n + ["CZ"] * (n - 1)) * layers
    qubits = [[i] for i in range(n)] + ([[i] for i in range(n)] + [[i, i + 1] for i in range(n - 1)]) * layers
    parameters = [[]] * n
    for layer in range(layers):
        parameters = parameters + [[layer * n + i] for i in range(n)] + [[]] * (n - 1)
    state = qujax.get_params_to_statetensor_func(gates, qubits, parameters)
    energy = qujax.get_statetensor_to_expectation_func(
        [["Z", "Z"]] * (n - 1) + [["X"]] * n, [[i, i + 1] for i in range(n - 1)] + [[i] for i in range(n)], [1.0] * 7
    )
    step = jax.jit(jax.value_and_grad(lambda angles: energy(state(angles))))
    angles, losses = jax.random.uniform(jax.random.key(0), (n * layers,)), []
    for _ in range(8):
        loss, slope = step(angles)
        angles = angles - 0.05 * slope
        losses.append(loss)
    return jnp.stack(losses), angles


def gates_of_users():
    def swap_power(angle):
        half = jnp.exp(1j * jnp.pi * angle / 2)
        inner = jnp.array([[jnp.cos(jnp.pi * angle / 2), -1j * jnp.sin(jnp.pi * angle / 2)]])
        block = half * jnp.concatenate([inner, inner[:, ::-1]])
        return jnp.eye(4, dtype=jnp.complex64).at[1:3, 1:3].set(block).reshape(2, 2, 2, 2)

    state = qujax.get_params_to_statetensor_func(["X", swap_power, "T"], [[0], [0, 1], [1]], [[], [0], []])
    return jax.vmap(state)(jnp.linspace(0.0, 1.0, 5)[:, None])


def samples_and_partial_traces():
    state = qujax.get_params_to_statetensor_func(GATES, QUBITS, PARAMETERS)(jnp.array([0.3]))
    density = qujax.statetensor_to_densitytensor(state)
    return {"bits": qujax.sample_bitstrings(jax.random.key(5), state, 20), "trace": qujax.partial_trace(density, [1])}
