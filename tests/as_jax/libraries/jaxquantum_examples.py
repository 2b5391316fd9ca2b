"""jaxquantum: operators, states and master equations of quantum systems. It turns f64 on."""

import jax
import jax.numpy as jnp
import jaxquantum as jqt


def states_and_operators():
    a = jqt.destroy(6)
    return {
        "number": (a.dag() @ a).data,
        "coherent": jqt.coherent(8, 0.7).data,
        "exponential": jqt.expm(a + a.dag()).data,
        "product": jqt.tensor(jqt.sigmax(), jqt.sigmaz()).data,
        "displacement": jqt.displace(5, 0.3).data,
    }


def expectations():
    a, state = jqt.destroy(8), jqt.coherent(8, 0.5)
    return jqt.overlap(state, (a.dag() @ a) @ state), jqt.ptrace(jqt.tensor(jqt.basis(2, 0), jqt.basis(3, 1)), 0).data


def decay_of_an_oscillator():
    a = jqt.destroy(6)
    times = jnp.linspace(0, 1.0, 5)
    state = jqt.ket2dm(jqt.basis(6, 1))
    return jqt.mesolve(a.dag() @ a, state, times, c_ops=jqt.Qarray.from_list([0.3 * a])).data


def rotation_of_a_qubit():
    times = jnp.linspace(0, 1.0, 5)
    return jqt.sesolve(0.5 * jqt.sigmax(), jqt.basis(2, 0), times).data


def slope_of_a_displacement():
    def photons(alpha):
        a, state = jqt.destroy(8), jqt.displace(8, alpha) @ jqt.basis(8, 0)
        return jnp.real(jqt.overlap(state, (a.dag() @ a) @ state))

    return jax.grad(photons)(0.4)
