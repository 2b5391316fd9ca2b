"""BlackJAX: samplers, adaptation, sequential Monte Carlo, variational inference."""

import blackjax
import blackjax.smc.resampling as resampling
import jax
import jax.numpy as jnp
import jax.scipy.stats as stats
import optax
from blackjax.diagnostics import effective_sample_size, potential_scale_reduction

MATRIX = jnp.array([[2.0, 0.6], [0.6, 1.0]])
# Why rune answers differently.
DIFFERENCES = {
    "marginal_sampler_of_a_latent_gaussian": "draws follow eigenvectors, whose signs are free; by JAX's they are equal"
}


def _logdensity(x):
    return -0.5 * x @ MATRIX @ x


def _regression(position):
    """The density of a location and the logarithm of a scale, as in the quick start."""
    scale = jnp.exp(position["log_scale"])
    logpdf = stats.norm.logpdf(jnp.linspace(6.0, 14.0, 20), position["loc"], scale)
    return jnp.sum(logpdf) + position["log_scale"]


def _inference_loop(key, kernel, state, count):
    @jax.jit
    def step(state, key):
        state, _ = kernel(key, state)
        return state, state

    return jax.lax.scan(step, state, jax.random.split(key, count))[1]


def _positions(algorithm, count=20, start=(1.0, -1.0)):
    state = algorithm.init(jnp.array(start))
    return _inference_loop(jax.random.key(0), algorithm.step, state, count)


def hamiltonian_monte_carlo():
    algorithm = blackjax.hmc(_logdensity, 0.2, jnp.ones(2), 5)
    return _positions(algorithm)


def no_u_turn_sampler():
    algorithm = blackjax.nuts(_logdensity, 0.3, jnp.ones(2))
    return _positions(algorithm, 10).position


def no_u_turn_sampler_of_the_quick_start():
    algorithm = blackjax.nuts(_regression, 0.1, jnp.array([0.5, 0.01]))
    state = algorithm.init({"loc": 1.0, "log_scale": 1.0})
    step = jax.jit(algorithm.step)
    key = jax.random.key(1)
    for i in range(10):
        state, info = step(jax.random.fold_in(key, i), state)
    return {"state": state.position, "steps": info.num_integration_steps, "acceptance": info.acceptance_rate}


def random_walk_metropolis():
    algorithm = blackjax.additive_step_random_walk(_logdensity, blackjax.mcmc.random_walk.normal(jnp.ones(2) * 0.5))
    return _positions(algorithm, 30)


def independent_and_rosenbluth_metropolis():
    def propose(key, position):
        return position + jax.random.normal(key, position.shape)

    rmh = blackjax.rmh(_logdensity, propose)
    irmh = blackjax.irmh(_logdensity, lambda key: jax.random.normal(key, (2,)))
    return {"rmh": _positions(rmh, 30), "irmh": _positions(irmh, 30)}


def metropolis_adjusted_langevin():
    return _positions(blackjax.mala(_logdensity, 0.1), 30)


def barker_proposal():
    return _positions(blackjax.barker_proposal(_logdensity, 0.5), 30).position


def elliptical_slice():
    algorithm = blackjax.elliptical_slice(
        lambda x: stats.norm.logpdf(x, 1.0, 0.5).sum(), mean=jnp.zeros(2), cov=jnp.eye(2)
    )
    return _positions(algorithm, 20)


def dynamic_and_multinomial_hmc():
    dynamic = blackjax.dynamic_hmc(_logdensity, 0.2, jnp.ones(2))
    state = dynamic.init(jnp.array([1.0, -1.0]), jax.random.key(3))
    multinomial = blackjax.multinomial_hmc(_logdensity, 0.2, jnp.ones(2), 4)
    return {
        "dynamic": _inference_loop(jax.random.key(0), dynamic.step, state, 15).position,
        "multinomial": _positions(multinomial, 15).position,
    }


def generalised_hmc():
    algorithm = blackjax.ghmc(_logdensity, 0.2, jnp.ones(2), 0.3, 0.1)
    state = algorithm.init(jnp.array([1.0, -1.0]), jax.random.key(3))
    return _inference_loop(jax.random.key(0), algorithm.step, state, 15).position


def riemannian_hmc():
    algorithm = blackjax.rmhmc(_logdensity, 0.2, lambda x: MATRIX + jnp.diag(x**2 * 0.0), 3)
    return _positions(algorithm, 5).position


def microcanonical_langevin():
    algorithm = blackjax.mclmc(_logdensity, L=1.0, step_size=0.2)
    state = algorithm.init(jnp.array([1.0, -1.0]), jax.random.key(2))
    return _inference_loop(jax.random.key(0), algorithm.step, state, 20).position


def marginal_sampler_of_a_latent_gaussian():
    algorithm = blackjax.mgrad_gaussian(lambda x: -jnp.sum((x - 1.0) ** 4), MATRIX, jnp.zeros(2), step_size=0.5)
    state = algorithm.init(jnp.array([0.5, -0.5]))

    def step(state, key):
        state, info = algorithm.step(key, state)
        return state, info.is_accepted

    return jax.lax.scan(step, state, jax.random.split(jax.random.key(0), 20))[1]


def stochastic_gradient_langevin():
    data = jnp.linspace(0.0, 2.0, 40)

    def logprior(x):
        return stats.norm.logpdf(x, 0.0, 1.0).sum()

    def loglikelihood(x, batch):
        return stats.norm.logpdf(batch, x, 1.0)

    gradient = blackjax.sgmcmc.gradients.grad_estimator(logprior, loglikelihood, 40)
    sgld = blackjax.sgld(gradient)
    sghmc = blackjax.sghmc(gradient, 3)
    x = y = jnp.array(0.1)
    for i in range(8):
        key = jax.random.fold_in(jax.random.key(0), i)
        batch = jax.random.choice(key, data, (10,))
        x = sgld.step(key, x, batch, 1e-3)
        y = sghmc.step(key, y, batch, 1e-3)
    return {"sgld": x, "sghmc": y}


def window_adaptation_of_nuts():
    warmup = blackjax.window_adaptation(blackjax.nuts, _logdensity)
    (state, parameters), info = warmup.run(jax.random.key(0), jnp.array([1.0, -1.0]), num_steps=12)
    return {"position": state.position, "step_size": parameters["step_size"], "first": info.state.position[:5]}


def dual_averaging_of_the_step_size():
    init, update, final = blackjax.adaptation.step_size.dual_averaging_adaptation(0.8)
    state = init(0.5)
    for rate in (0.9, 0.7, 0.85, 0.2, 1.0):
        state = update(state, rate)
    return {"state": state, "final": final(state)}


def mass_matrix_by_welford():
    init, update, final = blackjax.adaptation.mass_matrix.mass_matrix_adaptation(is_diagonal_matrix=False)
    state = init(3)
    for row in jax.random.normal(jax.random.key(4), (9, 3)):
        state = update(state, row)
    return final(state).inverse_mass_matrix


def chains_by_vmap():
    algorithm = blackjax.hmc(_logdensity, 0.2, jnp.ones(2), 5)
    keys = jax.random.split(jax.random.key(0), 4)
    states = jax.vmap(algorithm.init)(jax.random.normal(jax.random.key(1), (4, 2)))

    def step(states, key):
        states, _ = jax.vmap(algorithm.step)(jax.random.split(key, 4), states)
        return states, states.position

    draws = jax.lax.scan(step, states, keys)[1]
    return jnp.swapaxes(draws, 0, 1)


def chains_of_nuts_by_vmap():
    algorithm = blackjax.nuts(_logdensity, 0.3, jnp.ones(2))
    states = jax.vmap(algorithm.init)(jax.random.normal(jax.random.key(1), (3, 2)))
    step = jax.jit(jax.vmap(algorithm.step))
    for i in range(3):
        states, info = step(jax.random.split(jax.random.key(i), 3), states)
    return {"position": states.position, "expansions": info.num_trajectory_expansions}


def diagnostics_of_chains():
    draws = jax.random.normal(jax.random.key(8), (4, 50, 2)).cumsum(1) * 0.1
    return {"ess": effective_sample_size(draws), "rhat": potential_scale_reduction(draws)}


def adaptive_tempered_smc():
    hmc_parameters = {
        "step_size": jnp.array([0.2]),
        "inverse_mass_matrix": jnp.eye(2)[None],
        "num_integration_steps": jnp.array([3]),
    }
    tempered = blackjax.adaptive_tempered_smc(
        lambda x: stats.norm.logpdf(x).sum(),
        lambda x: stats.norm.logpdf(x, 2.0, 0.3).sum(),
        blackjax.hmc.build_kernel(),
        blackjax.hmc.init,
        hmc_parameters,
        resampling.systematic,
        0.5,
        num_mcmc_steps=1,
    )
    state = tempered.init(jax.random.normal(jax.random.key(0), (20, 2)))
    step = jax.jit(tempered.step)
    values = []
    for i in range(4):
        state, _ = step(jax.random.key(i), state)
        values.append(state.tempering_param)
    return {"lambda": jnp.stack(values), "mean": state.particles.mean(0)}


def resampling_schemes():
    weights = jax.nn.softmax(jax.random.normal(jax.random.key(0), (9,)))
    schemes = (resampling.systematic, resampling.stratified, resampling.multinomial, resampling.residual)
    return {scheme.__name__: scheme(jax.random.key(1), weights, 12) for scheme in schemes}


def mean_field_variational_inference():
    algorithm = blackjax.meanfield_vi(_logdensity, optax.sgd(1e-2), 10)
    state = algorithm.init(jnp.array([1.0, -1.0]))
    step = jax.jit(algorithm.step)
    for i in range(10):
        state, info = step(jax.random.key(i), state)
    return {"mu": state.mu, "rho": state.rho, "elbo": info.elbo, "draws": algorithm.sample(jax.random.key(3), state, 4)}


def full_rank_variational_inference():
    algorithm = blackjax.fullrank_vi(_logdensity, optax.adam(1e-2), 10)
    state = algorithm.init(jnp.array([1.0, -1.0]))
    step = jax.jit(algorithm.step)
    for i in range(10):
        state, info = step(jax.random.key(i), state)
    return {"mu": state.mu, "cholesky": state.chol_params, "elbo": info.elbo}


def stein_variational_gradient_descent():
    algorithm = blackjax.svgd(jax.grad(_logdensity), optax.sgd(0.1), blackjax.vi.svgd.rbf_kernel)
    particles = jax.random.normal(jax.random.key(0), (7, 2))
    state = algorithm.init(particles, {"length_scale": 1.0})
    for _ in range(5):
        state = algorithm.step(state)
    return {"particles": state.particles, "parameters": state.kernel_parameters}


def pathfinder_approximation():
    result, _info = blackjax.vi.pathfinder.approximate(
        jax.random.key(0), _logdensity, jnp.array([2.0, -1.0]), num_samples=20, maxiter=8
    )
    return {"position": result.position, "elbo": result.elbo}


def integrators_of_hamiltonian_dynamics():
    def energy(momentum, *_):
        return 0.5 * jnp.dot(momentum, momentum)

    integrators = blackjax.mcmc.integrators
    steps = {
        "velocity_verlet": integrators.velocity_verlet,
        "mclachlan": integrators.mclachlan,
        "yoshida": integrators.yoshida,
    }
    position = jnp.array([1.0, 0.5])
    value, grad = jax.value_and_grad(_logdensity)(position)
    start = integrators.IntegratorState(position, jnp.array([0.3, -0.2]), value, grad)
    results = {}
    for name, build in steps.items():
        step, state = build(_logdensity, energy), start
        for _ in range(5):
            state = step(state, 0.1)
        results[name] = state
    return results


def chees_adaptation():
    key = jax.random.key(0)
    warmup = blackjax.chees_adaptation(_logdensity, 4)
    (states, parameters), _ = warmup.run(
        key, jax.random.normal(key, (4, 2)), step_size=0.2, optim=optax.adam(0.02), num_steps=6
    )
    return {"position": states.position, "step_size": parameters["step_size"]}


def laplace_approximation():
    hessian = jax.hessian(lambda x: -_logdensity(x))(jnp.zeros(2))
    return {"covariance": jnp.linalg.inv(hessian), "cholesky": jnp.linalg.cholesky(hessian)}


def inference_loop_of_the_library():
    algorithm = blackjax.nuts(_logdensity, 0.3, jnp.ones(2))
    final, (states, infos) = blackjax.util.run_inference_algorithm(
        jax.random.key(0), algorithm, 8, initial_position=jnp.array([1.0, 0.0])
    )
    return {"final": final.position, "states": states.position, "energy": infos.energy}


def periodic_orbital_hmc():
    orbital = blackjax.orbital_hmc(_logdensity, 0.2, jnp.ones(2), 4)
    state = orbital.init(jnp.array([1.0, -1.0]))
    states = _inference_loop(jax.random.key(0), orbital.step, state, 5)
    return {"positions": states.positions, "weights": states.weights}
