"""dynamiqs: quantum systems, their evolution by several equations, and gradients of it."""

import dynamiqs as dq
import jax
import jax.numpy as jnp

dq.set_progress_meter(False)
A = dq.destroy(8)
TIMES = jnp.linspace(0.0, 2.0, 7)


def a_lossy_oscillator():
    result = dq.mesolve(A.dag() @ A, [0.3 * A], dq.coherent(8, 1.0), TIMES, exp_ops=[A.dag() @ A, A])
    return {"expects": result.expects, "final": result.states[-1].to_jax()}


def schrodinger_of_a_driven_qubit():
    drive = dq.modulated(lambda t: jnp.cos(2.0 * t), dq.sigmax())
    result = dq.sesolve(0.5 * dq.sigmaz() + drive, dq.basis(2, 0), TIMES, exp_ops=[dq.sigmaz()])
    return {"expects": result.expects, "states": result.states.to_jax()}


def the_propagator():
    return dq.sepropagator(dq.sigmax() + 0.5 * dq.sigmaz(), TIMES).propagators.to_jax()


def gradients_of_an_evolution():
    def population(omega):
        result = dq.sesolve(omega * dq.sigmax(), dq.basis(2, 0), jnp.linspace(0, 1.0, 3))
        return dq.expect(dq.sigmaz(), result.states[-1]).real

    return jax.value_and_grad(population)(0.7)


def many_hamiltonians_at_once():
    omegas = jnp.array([0.2, 0.9, 1.4])
    hamiltonian = omegas[:, None, None] * dq.sigmax()
    return dq.mesolve(hamiltonian, [0.1 * dq.sigmam()], dq.basis(2, 0), TIMES, exp_ops=[dq.sigmaz()]).expects


def trajectories_of_measurement():
    keys = jax.random.split(jax.random.key(0), 3)
    result = dq.jssesolve(
        0.5 * dq.sigmax(), [0.4 * dq.sigmam()], dq.basis(2, 0), jnp.arange(0, 7) * 0.25, keys, exp_ops=[dq.sigmaz()],
        method=dq.method.EulerJump(dt=1e-2),
    )  # fmt: skip
    return {"expects": result.expects, "clicks": result.nclicks}


def states_and_operators():
    rho = dq.coherent_dm(8, 0.5)
    cat = (dq.coherent(8, 1.2) + dq.coherent(8, -1.2)).unit()
    return {
        "tensor": dq.tensor(dq.sigmax(), dq.basis(2, 1).todm()).to_jax(),
        "trace": dq.ptrace(dq.tensor(dq.basis(2, 0), dq.basis(3, 2)), 1).to_jax(),
        "purity": dq.purity(rho),
        "fidelity": dq.fidelity(rho, cat),
        "wigner": dq.wigner(cat, xmax=2.0, npixels=9)[2],
        "displaced": dq.displace(8, 0.3).to_jax(),
    }
