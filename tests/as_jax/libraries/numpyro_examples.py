"""NumPyro: models, handlers, distributions, samplers, variational inference, predictions."""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
import optax
from flax import linen as nn
from jax import random
from numpyro import handlers
from numpyro.contrib.control_flow import cond, scan
from numpyro.contrib.module import flax_module, random_flax_module
from numpyro.diagnostics import effective_sample_size, gelman_rubin, hpdi
from numpyro.distributions import constraints, transforms
from numpyro.infer import (
    HMC,
    MCMC,
    NUTS,
    SA,
    SVI,
    BarkerMH,
    DiscreteHMCGibbs,
    MixedHMC,
    Predictive,
    Trace_ELBO,
    TraceGraph_ELBO,
    TraceMeanField_ELBO,
    init_to_value,
    log_likelihood,
)
from numpyro.infer.autoguide import (
    AutoBNAFNormal,
    AutoDelta,
    AutoDiagonalNormal,
    AutoIAFNormal,
    AutoLaplaceApproximation,
    AutoLowRankMultivariateNormal,
    AutoMultivariateNormal,
    AutoNormal,
)
from numpyro.infer.reparam import LocScaleReparam, TransformReparam
from numpyro.infer.util import initialize_model, log_density, potential_energy

SCHOOLS_Y = jnp.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
SCHOOLS_SIGMA = jnp.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def _schools(sigma=SCHOOLS_SIGMA, y=SCHOOLS_Y):
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("J", len(sigma)):
        theta = numpyro.sample("theta", dist.Normal(mu, tau))
        numpyro.sample("obs", dist.Normal(theta, sigma), obs=y)


def _regression(x, y=None):
    a = numpyro.sample("a", dist.Normal(0.0, 1.0))
    b = numpyro.sample("b", dist.Normal(jnp.zeros(2), 1.0).to_event(1))
    sigma = numpyro.sample("sigma", dist.Exponential(1.0))
    mean = numpyro.deterministic("mean", a + x @ b)
    with numpyro.plate("data", x.shape[0]):
        return numpyro.sample("y", dist.Normal(mean, sigma), obs=y)


def _data():
    x = random.normal(random.key(1), (20, 2))
    return x, x @ jnp.array([0.5, -1.0]) + 0.3 + 0.1 * random.normal(random.key(2), (20,))


def _coin(data):
    f = numpyro.sample("latent_fairness", dist.Beta(10, 10))
    with numpyro.plate("N", data.shape[0]):
        numpyro.sample("obs", dist.Bernoulli(f), obs=data)


COINS = jnp.array([1, 1, 1, 0, 1, 1, 0, 1, 1, 1])


def nuts_on_eight_schools():
    mcmc = MCMC(NUTS(_schools), num_warmup=10, num_samples=10, progress_bar=False)
    mcmc.run(random.PRNGKey(0), SCHOOLS_SIGMA, y=SCHOOLS_Y, extra_fields=("potential_energy",))
    return {"potential": mcmc.get_extra_fields()["potential_energy"], **mcmc.get_samples()}


def nuts_on_the_reparameterised_schools():
    model = handlers.reparam(_schools, config={"theta": LocScaleReparam(0)})
    mcmc = MCMC(NUTS(model), num_warmup=10, num_samples=10, progress_bar=False)
    mcmc.run(random.PRNGKey(0))
    return mcmc.get_samples()


def hmc_on_a_regression():
    x, y = _data()
    mcmc = MCMC(HMC(_regression, num_steps=5), num_warmup=10, num_samples=10, progress_bar=False)
    mcmc.run(random.PRNGKey(0), x, y)
    return mcmc.get_samples()


def chains_of_nuts_vectorised():
    kernel = NUTS(_coin, dense_mass=True)
    mcmc = MCMC(kernel, num_warmup=5, num_samples=5, num_chains=3, chain_method="vectorized", progress_bar=False)
    mcmc.run(random.PRNGKey(3), COINS)
    return mcmc.get_samples(group_by_chain=True)


def chains_of_nuts_one_after_another():
    mcmc = MCMC(NUTS(_coin), num_warmup=5, num_samples=5, num_chains=2, chain_method="sequential", progress_bar=False)
    mcmc.run(random.PRNGKey(3), COINS)
    return mcmc.get_samples(group_by_chain=True)


def potential_function_without_a_model():
    def potential(z):
        return 0.5 * jnp.sum(((z - 1.0) / jnp.array([1.0, 2.0])) ** 2)

    mcmc = MCMC(NUTS(potential_fn=potential), num_warmup=10, num_samples=10, progress_bar=False)
    mcmc.run(random.PRNGKey(0), init_params=jnp.zeros(2))
    return mcmc.get_samples()


def barker_and_sample_adaptive():
    barker = MCMC(BarkerMH(_coin), num_warmup=10, num_samples=10, progress_bar=False)
    barker.run(random.PRNGKey(0), COINS)
    adaptive = MCMC(SA(_coin), num_warmup=10, num_samples=10, progress_bar=False)
    adaptive.run(random.PRNGKey(0), COINS)
    return {"barker": barker.get_samples(), "sa": adaptive.get_samples()}


def discrete_sites_by_gibbs():
    def mixture(probs, locs):
        c = numpyro.sample("c", dist.Categorical(probs))
        numpyro.sample("x", dist.Normal(locs[c], 0.5))

    args = (jnp.array([0.15, 0.3, 0.3, 0.25]), jnp.array([-2.0, 0.0, 2.0, 4.0]))
    gibbs = MCMC(DiscreteHMCGibbs(NUTS(mixture)), num_warmup=5, num_samples=8, progress_bar=False)
    gibbs.run(random.PRNGKey(0), *args)
    mixed = MCMC(
        MixedHMC(HMC(mixture, trajectory_length=1.2), num_discrete_updates=4),
        num_warmup=5,
        num_samples=8,
        progress_bar=False,
    )
    mixed.run(random.PRNGKey(0), *args)
    return {"gibbs": gibbs.get_samples(), "mixed": mixed.get_samples()}


def marginalised_mixture():
    def mixture(data):
        locs = numpyro.sample("locs", dist.Normal(0, 10).expand([2]).to_event(1))
        parts = dist.Normal(locs, 1.0)
        with numpyro.plate("data", len(data)):
            numpyro.sample("obs", dist.MixtureSameFamily(dist.Categorical(jnp.array([0.4, 0.6])), parts), obs=data)

    data = jnp.array([0.0, 1.0, 10.0, 11.0, 12.0])
    mcmc = MCMC(NUTS(mixture), num_warmup=8, num_samples=6, progress_bar=False)
    mcmc.run(random.PRNGKey(4), data)
    return mcmc.get_samples()


def handlers_trace_seed_condition_substitute():
    x, y = _data()
    trace = handlers.trace(handlers.seed(_regression, random.PRNGKey(5))).get_trace(x)
    conditioned = handlers.condition(_regression, {"a": jnp.array(0.25)})
    second = handlers.trace(handlers.seed(conditioned, 6)).get_trace(x, y)
    blocked = handlers.trace(handlers.block(handlers.seed(_regression, 7), hide=["a"])).get_trace(x)
    return {
        "draws": {k: s["value"] for k, s in trace.items() if s["type"] == "sample"},
        "density": log_density(conditioned, (x, y), {}, {"b": jnp.ones(2), "sigma": jnp.array(1.0)})[0],
        "observed": int(second["y"]["is_observed"]),
        "sites": len(blocked),
    }


def handlers_scale_mask_do():
    def model():
        with handlers.scale(scale=2.0):
            x = numpyro.sample("x", dist.Normal(0, 1))
        with handlers.mask(mask=jnp.array([True, False, True])):
            numpyro.sample("y", dist.Normal(x, 1).expand([3]).to_event(0), obs=jnp.arange(3.0))
        numpyro.factor("extra", -x)

    done = handlers.trace(handlers.seed(handlers.do(model, {"x": jnp.array(1.5)}), 0)).get_trace()
    return {"density": log_density(model, (), {}, {"x": jnp.array(0.5)})[0], "do": done["extra"]["fn"].log_factor}


def potential_energy_and_its_gradient():
    x, y = _data()
    params = {"a": jnp.array(0.1), "b": jnp.array([0.2, -0.3]), "sigma": jnp.array(-1.0)}
    return jax.value_and_grad(lambda p: potential_energy(_regression, (x, y), {}, p))(params)


def initial_values_of_a_model():
    x, y = _data()
    info = initialize_model(random.PRNGKey(0), _regression, model_args=(x, y))
    return {
        "z": info.param_info.z,
        "potential": info.param_info.potential_energy,
        "constrained": info.postprocess_fn(info.param_info.z),
    }


def svi_with_a_guide_of_ones_own():
    def guide(data):
        alpha = numpyro.param("alpha_q", 15.0, constraint=constraints.positive)
        beta = numpyro.param("beta_q", lambda key: random.exponential(key) + 5, constraint=constraints.positive)
        numpyro.sample("latent_fairness", dist.Beta(alpha, beta))

    svi = SVI(_coin, guide, numpyro.optim.Adam(0.05), loss=Trace_ELBO())
    result = svi.run(random.PRNGKey(0), 15, COINS, progress_bar=False)
    return {"params": result.params, "losses": result.losses}


def svi_step_by_step_with_optax():
    guide = AutoDiagonalNormal(_coin)
    svi = SVI(_coin, guide, optax.adam(0.05), TraceMeanField_ELBO())
    state = svi.init(random.PRNGKey(0), COINS)
    update = jax.jit(svi.update)
    for _ in range(5):
        state, loss = update(state, COINS)
    params = svi.get_params(state)
    return {"loss": loss, "params": params, "evaluate": svi.evaluate(state, COINS)}


def guides_made_automatically():
    x, y = _data()
    guides = {
        "normal": AutoNormal(_regression),
        "delta": AutoDelta(_regression),
        "multivariate": AutoMultivariateNormal(_regression),
        "low_rank": AutoLowRankMultivariateNormal(_regression, rank=2),
    }
    results = {}
    for name, guide in guides.items():
        svi = SVI(_regression, guide, numpyro.optim.Adam(0.05), Trace_ELBO(num_particles=2))
        result = svi.run(random.PRNGKey(0), 8, x, y, progress_bar=False)
        results[name] = {"losses": result.losses, "median": guide.median(result.params)}
    return results


def guides_of_flows():
    x, y = _data()
    results = {}
    for name, guide in {"iaf": AutoIAFNormal(_regression), "bnaf": AutoBNAFNormal(_regression)}.items():
        svi = SVI(_regression, guide, numpyro.optim.Adam(0.01), Trace_ELBO())
        results[name] = svi.run(random.PRNGKey(0), 4, x, y, progress_bar=False).losses
    return results


def laplace_guide_and_its_posterior():
    x, y = _data()
    guide = AutoLaplaceApproximation(_regression)
    svi = SVI(_regression, guide, numpyro.optim.Adam(0.05), Trace_ELBO())
    result = svi.run(random.PRNGKey(0), 60, x, y, progress_bar=False)
    draws = guide.sample_posterior(random.PRNGKey(1), result.params, sample_shape=(3,))
    return {"losses": result.losses, "draws": draws}


def gradients_through_discrete_choices():
    def model():
        numpyro.sample("k", dist.Bernoulli(0.3))

    def guide():
        p = numpyro.param("p", 0.5, constraint=constraints.unit_interval)
        numpyro.sample("k", dist.Bernoulli(p))

    svi = SVI(model, guide, numpyro.optim.Adam(0.05), TraceGraph_ELBO())
    result = svi.run(random.PRNGKey(0), 10, progress_bar=False)
    return {"p": result.params["p"], "losses": result.losses}


def predictions_prior_and_posterior():
    x, y = _data()
    prior = Predictive(_regression, num_samples=4)(random.PRNGKey(0), x)
    posterior = {"a": jnp.array([0.1, 0.2]), "b": jnp.ones((2, 2)), "sigma": jnp.array([0.5, 1.0])}
    after = Predictive(_regression, posterior)(random.PRNGKey(1), x)
    return {"prior": prior, "y": after["y"], "likelihood": log_likelihood(_regression, posterior, x, y)["y"]}


def diagnostics_of_chains():
    x = random.normal(random.key(8), (4, 40)).cumsum(1) * 0.1
    return {"ess": effective_sample_size(x), "rhat": gelman_rubin(x), "hpdi": hpdi(x.reshape(-1), 0.9)}


def densities_of_continuous_distributions():
    x = jnp.array([0.2, 0.5, 0.9])
    table = {
        "beta": dist.Beta(2.0, 3.0),
        "cauchy": dist.Cauchy(0.5, 2.0),
        "exponential": dist.Exponential(1.5),
        "gamma": dist.Gamma(2.0, 3.0),
        "gumbel": dist.Gumbel(0.0, 2.0),
        "half_normal": dist.HalfNormal(1.5),
        "inverse_gamma": dist.InverseGamma(3.0, 1.0),
        "laplace": dist.Laplace(0.0, 1.0),
        "log_normal": dist.LogNormal(0.0, 1.0),
        "logistic": dist.Logistic(0.0, 1.0),
        "pareto": dist.Pareto(0.1, 3.0),
        "student": dist.StudentT(3.0, 0.0, 1.0),
        "truncated": dist.TruncatedNormal(0.0, 1.0, low=-0.5, high=1.5),
        "uniform": dist.Uniform(-1.0, 2.0),
        "weibull": dist.Weibull(1.0, 2.0),
        "von_mises": dist.VonMises(0.3, 2.0),
        "asymmetric": dist.AsymmetricLaplace(0.1, 1.0, 0.7),
        "kumaraswamy": dist.Kumaraswamy(2.0, 3.0),
    }
    return {name: {"log_prob": d.log_prob(x), "mean": d.mean, "variance": d.variance} for name, d in table.items()}


def densities_of_discrete_distributions():
    k = jnp.array([0, 1, 3])
    table = {
        "binomial": dist.Binomial(5, 0.3),
        "beta_binomial": dist.BetaBinomial(2.0, 3.0, 5),
        "geometric": dist.Geometric(0.4),
        "negative_binomial": dist.NegativeBinomial2(2.0, 3.0),
        "poisson": dist.Poisson(2.5),
        "zero_inflated": dist.ZeroInflatedPoisson(0.2, 2.5),
        "categorical": dist.Categorical(logits=jnp.array([0.1, 0.2, 0.3, 0.4])),
        "ordered": dist.OrderedLogistic(0.3, jnp.array([-1.0, 0.0, 1.0])),
    }
    return {name: d.log_prob(k) for name, d in table.items()}


def densities_of_vectors_and_matrices():
    x = jnp.array([0.2, 0.3, 0.5])
    matrix = jnp.array([[2.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 1.5]])
    normal = dist.MultivariateNormal(jnp.zeros(3), covariance_matrix=matrix)
    return {
        "normal": normal.log_prob(x),
        "low_rank": dist.LowRankMultivariateNormal(jnp.zeros(3), jnp.ones((3, 1)), jnp.ones(3)).log_prob(x),
        "student": dist.MultivariateStudentT(4.0, jnp.zeros(3), jnp.linalg.cholesky(matrix)).log_prob(x),
        "dirichlet": dist.Dirichlet(jnp.array([1.0, 2.0, 3.0])).log_prob(x),
        "multinomial": dist.Multinomial(6, x).log_prob(jnp.array([1, 2, 3])),
        "lkj": dist.LKJCholesky(3, 2.0).log_prob(dist.LKJCholesky(3, 2.0).sample(random.key(0))),
        "wishart": dist.Wishart(5.0, matrix).log_prob(matrix),
        "walk": dist.GaussianRandomWalk(0.5, 3).log_prob(x),
    }


def draws_of_distributions():
    key = random.key(9)
    table = {
        "beta": dist.Beta(2.0, 3.0),
        "binomial": dist.Binomial(5, 0.3),
        "categorical": dist.Categorical(jnp.array([0.1, 0.2, 0.7])),
        "dirichlet": dist.Dirichlet(jnp.array([1.0, 2.0, 3.0])),
        "gamma": dist.Gamma(2.0, 3.0),
        "lkj": dist.LKJCholesky(3, 2.0),
        "multivariate": dist.MultivariateNormal(jnp.zeros(2), jnp.array([[1.0, 0.5], [0.5, 1.0]])),
        "poisson": dist.Poisson(2.5),
        "student": dist.StudentT(3.0),
        "truncated": dist.TruncatedNormal(low=0.0),
        "mixture": dist.MixtureSameFamily(
            dist.Categorical(jnp.array([0.5, 0.5])), dist.Normal(jnp.array([-5.0, 5.0]), 1.0)
        ),
    }
    return {name: d.sample(key, (4,)) for name, d in table.items()}


def transforms_and_their_jacobians():
    x = jnp.array([-1.0, 0.3, 0.8])
    table = {
        "exp": transforms.ExpTransform(),
        "sigmoid": transforms.SigmoidTransform(),
        "affine": transforms.AffineTransform(1.0, 2.0),
        "stick": transforms.StickBreakingTransform(),
        "ordered": transforms.OrderedTransform(),
        "softplus": transforms.SoftplusTransform(),
        "cholesky": transforms.CorrCholeskyTransform(),
        "composed": transforms.ComposeTransform([transforms.AffineTransform(0.0, 2.0), transforms.ExpTransform()]),
    }
    return {
        name: {"y": t(x), "jacobian": t.log_abs_det_jacobian(x, t(x)), "x": t.inv(t(x))} for name, t in table.items()
    }


def transformed_and_independent_distributions():
    base = dist.Normal(jnp.zeros((3, 2)), 1.0).to_event(1)
    flow = dist.TransformedDistribution(base, [transforms.AffineTransform(1.0, 0.5), transforms.ExpTransform()])
    y = flow.sample(random.key(0))
    kl = dist.kl_divergence(dist.Normal(0.0, 1.0), dist.Normal(1.0, 2.0))
    return {
        "y": y,
        "log_prob": flow.log_prob(y),
        "kl": kl,
        "masked": base.mask(jnp.array([1, 0, 1], bool)).log_prob(jnp.ones((3, 2))),
    }


def constraints_are_checked():
    return {
        "positive": constraints.positive(jnp.array([-1.0, 2.0])),
        "simplex": constraints.simplex(jnp.array([0.2, 0.8])),
        "corr": constraints.corr_cholesky(jnp.eye(3)),
        "interval": constraints.interval(0, 1)(jnp.array([0.5, 1.5])),
        "unconstrained": dist.biject_to(constraints.greater_than(2.0))(jnp.array([-1.0, 1.0])),
    }


def scan_of_a_time_series():
    def model(y):
        rho = numpyro.sample("rho", dist.Uniform(-1, 1))

        def step(carry, obs):
            x = numpyro.sample("x", dist.Normal(rho * carry, 1.0))
            numpyro.sample("y", dist.Normal(x, 0.5), obs=obs)
            return x, x

        return scan(step, 0.0, y)

    y = jnp.array([0.3, -0.2, 0.5, 0.8])
    trace = handlers.trace(handlers.seed(model, random.PRNGKey(0))).get_trace(y)
    params = {"rho": jnp.array(0.4), "x": jnp.array([0.1, 0.2, 0.3, 0.4])}
    return {"x": trace["x"]["value"], "density": log_density(model, (y,), {}, params)[0]}


def choice_between_models():
    def model(flag):
        return cond(
            flag,
            lambda _: numpyro.sample("x", dist.Normal(0, 1)),
            lambda _: numpyro.sample("x", dist.Normal(10, 1)),
            None,
        )

    return {str(flag): handlers.seed(model, 0)(flag) for flag in (True, False)}


def neural_network_by_flax_module():
    def model(x):
        net = flax_module("nn", nn.Dense(2), input_shape=(3,))
        return net(x)

    def bayesian(x):
        return random_flax_module("nn", nn.Dense(2), prior=dist.Normal(0, 1), input_shape=(3,))(x)

    x = jnp.linspace(-1, 1, 6).reshape(2, 3)
    return {"y": handlers.seed(model, 0)(x), "random": handlers.seed(bayesian, 0)(x)}


def subsampling_of_a_plate():
    def model(data):
        loc = numpyro.sample("loc", dist.Normal(0, 1))
        with numpyro.plate("N", 20, subsample_size=5) as indices:
            numpyro.sample("obs", dist.Normal(loc, 1), obs=data[indices])
        return indices

    data = jnp.linspace(-1, 1, 20)
    trace = handlers.trace(handlers.seed(model, 0)).get_trace(data)
    return {"indices": trace["N"]["value"], "scale": trace["obs"]["scale"]}


def initialisation_by_values_and_transform_reparam():
    def model():
        tau = numpyro.sample("tau", dist.HalfNormal(1.0))
        with handlers.reparam(config={"x": TransformReparam()}):
            numpyro.sample("x", dist.TransformedDistribution(dist.Normal(0, 1), transforms.AffineTransform(1.0, tau)))

    kernel = NUTS(model, init_strategy=init_to_value(values={"tau": jnp.array(0.7)}))
    mcmc = MCMC(kernel, num_warmup=5, num_samples=6, progress_bar=False)
    mcmc.run(random.PRNGKey(2))
    return mcmc.get_samples()


_CHAOS = "a trajectory multiplies rounding errors at every step"
TOLERANCES = {"nuts_on_eight_schools": (5e-3, _CHAOS), "nuts_on_the_reparameterised_schools": (5e-3, _CHAOS)}
