"""NetKet: variational states of quantum systems, sampled and optimised, beside exact answers."""

import jax
import jax.numpy as jnp
import netket as nk

CHAIN = nk.graph.Chain(6)
SPINS = nk.hilbert.Spin(0.5, 6)
ISING = nk.operator.IsingJax(SPINS, CHAIN, h=1.0)


def _state(model, **options):
    sampler = nk.sampler.MetropolisLocal(SPINS, n_chains=8)
    return nk.vqs.MCState(sampler, model, n_samples=64, seed=1, sampler_seed=2, **options)


def ground_state_of_the_ising_chain():
    state = _state(nk.models.RBM(alpha=1, param_dtype=float))
    driver = nk.driver.VMC(
        ISING, nk.optimizer.Sgd(0.05), variational_state=state, preconditioner=nk.optimizer.SR(diag_shift=0.1)
    )
    driver.run(3, show_progress=False, out=None)
    return {"energy": driver.energy.mean, "error": driver.energy.error_of_mean, "parameters": state.parameters}


def exact_diagonalisation():
    operator = nk.operator.Ising(SPINS, CHAIN, h=1.0)
    return {"lanczos": nk.exact.lanczos_ed(operator), "full": nk.exact.full_ed(operator)[:5]}


def operators_of_spins():
    sz = sum(nk.operator.spin.sigmaz(SPINS, i) for i in range(2))
    states = SPINS.numbers_to_states(jnp.array([0, 5, 17]))
    connected, elements = ISING.get_conn_padded(states)
    return {
        "dense": (sz @ nk.operator.spin.sigmax(SPINS, 2)).to_dense()[:8, :8],
        "states": states,
        "numbers": SPINS.states_to_numbers(states),
        "connected": connected,
        "elements": elements,
    }


def expectations_over_the_whole_space():
    state = nk.vqs.FullSumState(SPINS, nk.models.RBM(alpha=2, param_dtype=complex), seed=3)
    energy, gradient = state.expect_and_grad(ISING)
    return {"energy": energy.mean, "variance": energy.variance, "gradient": gradient}


def a_geometric_tensor():
    state = nk.vqs.FullSumState(SPINS, nk.models.Jastrow(param_dtype=float), seed=4)
    tensor = state.quantum_geometric_tensor(nk.optimizer.qgt.QGTJacobianDense(diag_shift=0.01))
    return {"dense": tensor.to_dense(), "solved": tensor.solve(jax.scipy.sparse.linalg.cg, state.parameters)[0]}


def samples_by_metropolis_and_exactly():
    model = nk.models.RBM(alpha=1, param_dtype=float)
    params = model.init(jax.random.key(5), jnp.ones((1, 6)))
    local, exact = nk.sampler.MetropolisLocal(SPINS, n_chains=4), nk.sampler.ExactSampler(SPINS)
    chains, _ = local.sample(model, params, state=local.init_state(model, params, seed=6), chain_length=5)
    draws, _ = exact.sample(model, params, state=exact.init_state(model, params, seed=7), chain_length=9)
    return {"chains": chains, "draws": draws}


def an_autoregressive_network():
    model = nk.models.ARNNDense(hilbert=SPINS, layers=2, features=4)
    sampler = nk.sampler.ARDirectSampler(SPINS)
    state = nk.vqs.MCState(sampler, model, n_samples=32, seed=8, sampler_seed=9)
    return {
        "samples": state.samples,
        "amplitudes": state.log_value(state.samples[0, :3]),
        "energy": state.expect(ISING).mean,
    }


def fermions_and_bosons():
    bosons = nk.hilbert.Fock(n_max=2, N=3, n_particles=3)
    hubbard = nk.operator.BoseHubbard(bosons, nk.graph.Chain(3), U=1.0)
    return {"states": bosons.all_states(), "energies": nk.exact.full_ed(hubbard)}
