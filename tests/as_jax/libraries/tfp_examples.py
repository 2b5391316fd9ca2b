"""TensorFlow Probability on jax: distributions, bijectors, chains, inference, processes."""

import jax
import jax.numpy as jnp
from tensorflow_probability.substrates import jax as tfp

tfb, tfd, tfm, tfpk = tfp.bijectors, tfp.distributions, tfp.mcmc, tfp.math.psd_kernels
KEY = jax.random.PRNGKey(0)
X = jnp.linspace(-2.0, 2.0, 20)
Y = 1.5 * X + 0.5 + 0.1 * jax.random.normal(KEY, (20,))


def quick_start_a_batch_of_normals():
    dist = tfd.Normal(loc=jnp.array([0.0, 1.0]), scale=jnp.array([1.0, 2.0]))
    samples = dist.sample(4, seed=KEY)
    slopes = jax.grad(lambda loc: jnp.sum(tfd.Normal(loc, 1.0).log_prob(samples)))(0.3)
    return {"samples": samples, "log_prob": dist.log_prob(samples), "cdf": dist.cdf(0.5), "slopes": slopes}


def continuous_distributions():
    table = {
        "beta": tfd.Beta(2.0, 3.0),
        "gamma": tfd.Gamma(2.0, 3.0),
        "student": tfd.StudentT(4.0, 0.1, 1.5),
        "laplace": tfd.Laplace(0.0, 1.0),
        "half": tfd.HalfCauchy(0.0, 1.0),
        "weibull": tfd.Weibull(1.5, 2.0),
        "truncated": tfd.TruncatedNormal(0.0, 1.0, -1.0, 2.0),
        "pareto": tfd.Pareto(3.0, 0.1),
        "skew": tfd.SinhArcsinh(0.0, 1.0, skewness=0.5),
        "kumaraswamy": tfd.Kumaraswamy(2.0, 1.5),
    }
    at = jnp.array([0.2, 0.7])
    return {n: {"log": d.log_prob(at), "cdf": d.cdf(at), "draw": d.sample(3, seed=KEY)} for n, d in table.items()}


def discrete_distributions():
    table = {
        "poisson": tfd.Poisson(3.0),
        "binomial": tfd.Binomial(7, probs=0.4),
        "negative": tfd.NegativeBinomial(4.0, probs=0.3),
        "geometric": tfd.Geometric(probs=0.3),
        "categorical": tfd.Categorical(logits=jnp.array([0.1, 0.5, -0.3])),
        "zipf": tfd.Zipf(2.5),
    }
    at = jnp.array([1, 2])
    return {n: {"log": d.log_prob(at.astype(d.dtype)), "draw": d.sample(3, seed=KEY)} for n, d in table.items()}


def distributions_of_vectors_and_matrices():
    matrix = jnp.array([[2.0, 0.5], [0.5, 1.0]])
    full = tfd.MultivariateNormalFullCovariance(jnp.zeros(2), matrix)
    wishart = tfd.WishartTriL(5.0, jnp.linalg.cholesky(matrix))
    return {
        "full": [full.sample(2, seed=KEY), full.log_prob(jnp.ones(2)), full.entropy()],
        "wishart": [wishart.mean(), wishart.log_prob(matrix)],
        "dirichlet": tfd.Dirichlet(jnp.array([1.0, 2.0, 3.0])).sample(2, seed=KEY),
        "lkj": tfd.LKJ(3, 1.5).sample(seed=KEY),
        "mises": tfd.VonMisesFisher(jnp.array([0.0, 1.0, 0.0]), 2.0).log_prob(jnp.array([0.6, 0.8, 0.0])),
        "kl": tfd.kl_divergence(full, tfd.MultivariateNormalDiag(jnp.ones(2), 2 * jnp.ones(2))),
    }


def bijectors_and_their_jacobians():
    x = jnp.array([0.3, -0.6, 1.2])
    table = {
        "chain": tfb.Chain([tfb.Shift(1.0), tfb.Scale(2.0), tfb.Softplus()]),
        "sigmoid": tfb.Sigmoid(-1.0, 2.0),
        "triangular": tfb.FillScaleTriL(),
        "centred": tfb.SoftmaxCentered(),
        "ascending": tfb.Ascending(),
        "gumbel": tfb.GumbelCDF(0.0, 2.0),
        "sinh": tfb.SinhArcsinh(0.2, 1.1),
    }
    return {n: {"y": b.forward(x), "det": b.forward_log_det_jacobian(x, 1), "x": b.inverse(b.forward(x))}
            for n, b in table.items()}  # fmt: skip


def a_joint_distribution():
    @tfd.JointDistributionCoroutineAutoBatched
    def model():
        slope = yield tfd.Normal(0.0, 1.0, name="slope")
        scale = yield tfd.HalfNormal(1.0, name="scale")
        yield tfd.Normal(slope * X, scale, name="y")

    draw = model.sample(seed=KEY)
    pinned = model.experimental_pin(y=Y)
    return {"draw": draw, "log": model.log_prob(draw), "pinned": pinned.unnormalized_log_prob(1.4, 0.3)}


def _target(w):
    return jnp.sum(tfd.Normal(w[0] * X + w[1], 0.3).log_prob(Y)) + jnp.sum(tfd.Normal(0.0, 3.0).log_prob(w))


def a_hamiltonian_chain():
    kernel = tfm.HamiltonianMonteCarlo(_target, step_size=0.02, num_leapfrog_steps=3)
    run = jax.jit(
        lambda key: tfm.sample_chain(
            5, jnp.array([1.0, 0.0]), kernel=kernel, trace_fn=lambda _, r: r.is_accepted, seed=key
        )
    )
    return run(KEY)


def a_chain_without_u_turns():
    kernel = tfm.DualAveragingStepSizeAdaptation(tfm.NoUTurnSampler(_target, 0.02, max_tree_depth=3), 3)
    states = tfm.sample_chain(3, jnp.array([1.4, 0.4]), kernel=kernel, trace_fn=None, seed=KEY)
    return states


def chains_and_their_diagnostics():
    kernel = tfm.RandomWalkMetropolis(_target)
    states = tfm.sample_chain(
        20, jnp.array([[1.0, 0.0], [1.5, 0.5], [2.0, 1.0]])[0], kernel=kernel, trace_fn=None, seed=KEY
    )
    chains = jnp.sin(jnp.arange(60.0)).reshape(20, 3)
    return {
        "last": states[-1],
        "rhat": tfm.potential_scale_reduction(chains),
        "size": tfm.effective_sample_size(chains),
    }


def variational_inference():
    def loss(p):
        surrogate = tfd.MultivariateNormalDiag(p["loc"], jax.nn.softplus(p["scale"]))
        return tfp.vi.monte_carlo_variational_loss(
            jax.vmap(_target), surrogate, sample_size=8, seed=jax.random.PRNGKey(3)
        )

    p = {"loc": jnp.zeros(2), "scale": jnp.zeros(2)}
    for _ in range(3):
        p = jax.tree_util.tree_map(lambda v, g: v - 1e-3 * g, p, jax.jit(jax.grad(loss))(p))
    return {"p": p, "loss": loss(p)}


def a_gaussian_process():
    at = jnp.linspace(-1.0, 1.0, 5)[:, None]
    kernel = tfpk.ExponentiatedQuadratic(1.2, 0.7) + tfpk.MaternThreeHalves(0.3, 1.0)
    process = tfd.GaussianProcess(kernel, X[:, None], observation_noise_variance=0.1)
    model = tfd.GaussianProcessRegressionModel(
        kernel, at, observation_index_points=X[:, None], observations=Y, observation_noise_variance=0.1
    )
    return {"log": process.log_prob(Y), "mean": model.mean(), "stddev": model.stddev()}


def a_hidden_markov_model_and_a_filter():
    hidden = tfd.HiddenMarkovModel(
        tfd.Categorical(probs=jnp.array([0.6, 0.4])),
        tfd.Categorical(probs=jnp.array([[0.9, 0.1], [0.2, 0.8]])),
        tfd.Normal(jnp.array([0.0, 3.0]), jnp.array([1.0, 1.0])),
        num_steps=6,
    )
    observations = jnp.array([0.1, 2.5, 3.3, 0.2, -0.3, 2.9])
    linear = tfd.LinearGaussianStateSpaceModel(
        num_timesteps=6,
        transition_matrix=jnp.array([[1.0, 1.0], [0.0, 1.0]]),
        transition_noise=tfd.MultivariateNormalDiag(scale_diag=jnp.array([0.1, 0.2])),
        observation_matrix=jnp.array([[1.0, 0.0]]),
        observation_noise=tfd.MultivariateNormalDiag(scale_diag=jnp.array([0.3])),
        initial_state_prior=tfd.MultivariateNormalDiag(scale_diag=jnp.ones(2)),
    )
    return {
        "log": hidden.log_prob(observations),
        "mode": hidden.posterior_mode(observations),
        "marginals": hidden.posterior_marginals(observations).probs_parameter(),
        "filtered": linear.forward_filter(observations[:, None])[1],
    }


def minimisers():
    rosenbrock = lambda x: (x[0] - 1.0) ** 2 + 100.0 * (x[1] - x[0] ** 2) ** 2  # noqa: E731
    both = lambda x: tfp.math.value_and_gradient(rosenbrock, x)  # noqa: E731
    result = tfp.optimizer.bfgs_minimize(both, jnp.array([-1.0, 2.0]), tolerance=1e-4)
    return {"position": result.position, "converged": result.converged}


def special_functions():
    x = jnp.array([0.3, 1.2, 3.5])
    return {
        "owens": tfp.math.owens_t(x, 0.7),
        "lambert": tfp.math.lambertw(x),
        "bessel": tfp.math.bessel_ive(0.5, x),
        "inverse": tfp.math.erfcinv(x / 4),
        "beta": tfp.math.lbeta(x, 2.0),
        "gamma": tfp.math.igammainv(2.0, x / 4),
        "sum": tfp.math.reduce_weighted_logsumexp(x, jnp.array([1.0, -0.5, 0.2])),
        "integral": tfp.math.trapz(x),
        "interpolated": tfp.math.interp_regular_1d_grid(x, 0.0, 4.0, jnp.arange(5.0) ** 2),
    }


def statistics_of_samples():
    x = jax.random.normal(KEY, (50, 2))
    return {
        "percentile": tfp.stats.percentile(x, 30.0, axis=0),
        "quantiles": tfp.stats.quantiles(x, 4, axis=0),
        "covariance": tfp.stats.covariance(x),
        "correlated": tfp.stats.auto_correlation(x[:, 0], max_lags=4),
        "histogram": tfp.stats.histogram(x[:, 0], jnp.linspace(-3, 3, 7)),
    }
