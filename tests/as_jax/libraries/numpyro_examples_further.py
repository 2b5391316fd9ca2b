"""NumPyro: more handlers and reparameterisations, kernels, guides, objectives, distributions."""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax import random
from numpyro import handlers
from numpyro.contrib.hsgp.approximation import hsgp_squared_exponential
from numpyro.distributions import constraints, transforms
from numpyro.infer import AIES, ESS, HMC, HMCECS, MCMC, NUTS, SVI, Predictive, RenyiELBO, Trace_ELBO, init_to_median
from numpyro.infer.autoguide import AutoDAIS, AutoDelta, AutoDiagonalNormal, AutoGuideList, AutoNormal
from numpyro.infer.reparam import LocScaleReparam, NeuTraReparam, ProjectedNormalReparam
from numpyro.infer.util import get_transforms, log_density, transform_fn, unconstrain_fn

X = jnp.linspace(-1.0, 1.0, 12)
Y = 0.5 + 1.5 * X + 0.1 * jnp.sin(17 * X)


def _line(x, y=None):
    slope = numpyro.sample("slope", dist.Normal(0.0, 2.0))
    offset = numpyro.sample("offset", dist.Normal(0.0, 2.0))
    noise = numpyro.sample("noise", dist.HalfNormal(1.0))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(offset + slope * x, noise), obs=y)


def ensemble_samplers_affine_and_slice():
    results = {}
    for name, kernel in {"aies": AIES(_line), "ess": ESS(_line)}.items():
        mcmc = MCMC(kernel, num_warmup=4, num_samples=4, num_chains=8, chain_method="vectorized", progress_bar=False)
        mcmc.run(random.PRNGKey(0), X, Y)
        results[name] = mcmc.get_samples(group_by_chain=True)
    return results


def energy_conserving_subsampling():
    def model(data):
        x = numpyro.sample("x", dist.Normal(0, 1))
        with numpyro.plate("N", data.shape[0], subsample_size=6):
            batch = numpyro.subsample(data, event_dim=0)
            numpyro.sample("obs", dist.Normal(x, 1), obs=batch)

    kernel = HMCECS(NUTS(model), num_blocks=2)
    mcmc = MCMC(kernel, num_warmup=4, num_samples=5, progress_bar=False)
    mcmc.run(random.PRNGKey(0), random.normal(random.PRNGKey(1), (30,)) + 1)
    return mcmc.get_samples()


def transport_by_a_guide_before_sampling():
    guide = AutoDiagonalNormal(_line, init_loc_fn=init_to_median)
    result = SVI(_line, guide, numpyro.optim.Adam(0.05), Trace_ELBO()).run(
        random.PRNGKey(0), 20, X, Y, progress_bar=False
    )
    transport = NeuTraReparam(guide, result.params)
    mcmc = MCMC(NUTS(transport.reparam(_line)), num_warmup=3, num_samples=4, progress_bar=False)
    mcmc.run(random.PRNGKey(1), X, Y)
    return {"params": result.params, "quantiles": guide.quantiles(result.params, [0.1, 0.9]), **mcmc.get_samples()}


def projected_reparameterisation():
    def model():
        numpyro.sample("direction", dist.ProjectedNormal(jnp.array([1.0, 2.0, -1.0])))

    config = {"direction": ProjectedNormalReparam()}
    traced = handlers.trace(handlers.seed(handlers.reparam(model, config=config), 3)).get_trace()
    return {k: site["value"] for k, site in traced.items() if site["type"] in ("sample", "deterministic")}


def centredness_is_learnt():
    def model():
        loc = numpyro.sample("loc", dist.Normal(0, 1))
        scale = numpyro.sample("scale", dist.LogNormal(0, 1))
        with numpyro.plate("n", 3):
            numpyro.sample("x", dist.Normal(loc, scale))

    learnt = handlers.reparam(model, config={"x": LocScaleReparam(shape_params=())})
    svi = SVI(learnt, AutoDelta(learnt), numpyro.optim.ClippedAdam(0.05), Trace_ELBO())
    return svi.run(random.PRNGKey(1), 5, progress_bar=False).params


def lift_collapse_and_infer_config():
    def model():
        loc = numpyro.param("loc", 0.5)
        numpyro.sample("x", dist.Normal(loc, 1.0), infer={"weight": 2})

    lifted = handlers.lift(model, prior={"loc": dist.Normal(3.0, 0.5)})
    trace = handlers.trace(handlers.seed(lifted, 1)).get_trace()
    configured = handlers.infer_config(model, lambda site: {"known": True})
    site = handlers.trace(handlers.seed(configured, 1)).get_trace()["x"]
    return {"loc": trace["loc"]["value"], "x": trace["x"]["value"], "infer": sorted(site["infer"])}


def replay_of_a_trace_under_another_density():
    trace = handlers.trace(handlers.seed(_line, 2)).get_trace(X)
    replayed = handlers.replay(_line, trace=trace)
    values = {k: trace[k]["value"] for k in ("slope", "offset", "noise")}
    again = handlers.trace(handlers.seed(replayed, 5)).get_trace(X)
    return {"slope": again["slope"]["value"], "density": log_density(_line, (X, Y), {}, values)[0]}


def objective_of_renyi_and_several_particles():
    guide = AutoNormal(_line)
    svi = SVI(_line, guide, numpyro.optim.Adam(0.03), RenyiELBO(alpha=0.5, num_particles=3))
    return svi.run(random.PRNGKey(0), 6, X, Y, progress_bar=False).losses


def guide_of_several_parts():
    guide = AutoGuideList(_line)
    guide.append(AutoNormal(handlers.block(_line, expose=["slope", "offset"])))
    guide.append(AutoDelta(handlers.block(_line, expose=["noise"])))
    result = SVI(_line, guide, numpyro.optim.Adam(0.03), Trace_ELBO()).run(
        random.PRNGKey(0), 6, X, Y, progress_bar=False
    )
    return {"losses": result.losses, "params": result.params}


def guide_by_annealed_importance_sampling():
    svi = SVI(_line, AutoDAIS(_line, K=3), numpyro.optim.Adam(0.02), Trace_ELBO())
    return svi.run(random.PRNGKey(0), 4, X, Y, progress_bar=False).losses


def gaussian_process_by_a_hilbert_space():
    def model(x, y=None):
        length = numpyro.sample("length", dist.InverseGamma(5.0, 2.0))
        f = numpyro.deterministic("f", hsgp_squared_exponential(x, 1.0, length, ell=1.5, m=6))
        numpyro.sample("y", dist.Normal(f, 0.1).to_event(1), obs=y)

    draws = Predictive(model, num_samples=3)(random.PRNGKey(0), X)
    return {"f": draws["f"], "y": draws["y"]}


def gaussian_process_and_its_posterior():
    def kernel(a, b, length):
        return jnp.exp(-0.5 * ((a[:, None] - b[None]) / length) ** 2)

    def model(x, y):
        length = numpyro.sample("length", dist.LogNormal(0.0, 1.0))
        numpyro.sample("y", dist.MultivariateNormal(0.0, kernel(x, x, length) + 0.01 * jnp.eye(12)), obs=y)

    mcmc = MCMC(HMC(model, num_steps=3), num_warmup=6, num_samples=6, progress_bar=False)
    mcmc.run(random.PRNGKey(0), X, Y)
    return mcmc.get_samples()


def missing_values_are_imputed():
    def model(y):
        mu = numpyro.sample("mu", dist.Normal(0, 1))
        absent = jnp.isnan(y)
        imputed = numpyro.sample("imputed", dist.Normal(mu, 1.0).expand([2]).mask(False))
        filled = y.at[jnp.array([1, 4])].set(imputed)
        numpyro.sample("y", dist.Normal(mu, 1.0), obs=filled)
        numpyro.deterministic("count", absent.sum())

    y = jnp.array([0.5, jnp.nan, 1.2, 0.9, jnp.nan])
    mcmc = MCMC(NUTS(model), num_warmup=6, num_samples=6, progress_bar=False)
    mcmc.run(random.PRNGKey(0), y)
    return mcmc.get_samples()


def survival_with_censored_times():
    def model(time, is_censored):
        rate = numpyro.sample("rate", dist.Gamma(2.0, 2.0))
        numpyro.sample("time", dist.LeftCensoredDistribution(dist.Exponential(rate), is_censored), obs=time)

    args = (jnp.array([1.0, 0.5, 2.0, 3.0]), jnp.array([0, 1, 0, 1]))
    return jax.vmap(lambda r: log_density(model, args, {}, {"rate": r})[0])(jnp.array([0.3, 1.0, 2.5]))


def distributions_cut_and_inflated():
    x = jnp.array([0.1, 0.4, 0.8])
    table = {
        "left": dist.LeftTruncatedDistribution(dist.Normal(0.0, 1.0), low=-0.5),
        "right": dist.RightTruncatedDistribution(dist.Cauchy(0.0, 1.0), high=2.0),
        "two_sided": dist.TwoSidedTruncatedDistribution(dist.Laplace(0.0, 1.0), low=-1.0, high=2.0),
        "folded": dist.FoldedDistribution(dist.Normal(0.3, 1.0)),
        "relaxed": dist.RelaxedBernoulliLogits(0.5, 0.3),
    }
    inflated = dist.ZeroInflatedDistribution(dist.Poisson(3.0), gate=0.3)
    return {
        "densities": {name: d.log_prob(x) for name, d in table.items()},
        "draws": {name: d.sample(random.key(1), (3,)) for name, d in table.items()},
        "inflated": inflated.log_prob(jnp.array([0, 1, 4])),
    }


def distributions_of_sequences_and_fields():
    normal = dist.EulerMaruyama(jnp.linspace(0.0, 1.0, 5), lambda x, t: (-x, 0.5), dist.Normal(0.0, 1.0))
    path = normal.sample(random.key(0))
    adjacency = jnp.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    field = dist.CAR(jnp.zeros(3), 0.4, 1.2, adjacency)
    matrix = dist.MatrixNormal(jnp.zeros((2, 3)), jnp.eye(2), 2.0 * jnp.eye(3))
    return {
        "path": path,
        "path_density": normal.log_prob(path),
        "field": field.log_prob(jnp.array([0.1, -0.2, 0.3])),
        "matrix": matrix.log_prob(jnp.ones((2, 3))),
        "directions": dist.SineBivariateVonMises(0.1, 0.2, 1.0, 1.5, 0.3).log_prob(jnp.array([0.3, 0.4])),
    }


def cumulative_probabilities_and_quantiles():
    x, q = jnp.array([0.2, 0.6, 0.9]), jnp.array([0.1, 0.5, 0.8])
    table = {
        "normal": dist.Normal(0.5, 2.0),
        "gamma": dist.Gamma(2.0, 3.0),
        "beta": dist.Beta(2.0, 3.0),
        "cauchy": dist.Cauchy(0.0, 1.0),
        "gompertz": dist.Gompertz(0.5, 1.0),
        "student": dist.StudentT(4.0, 0.0, 1.0),
        "weibull": dist.Weibull(1.0, 2.0),
    }
    inverse = {name: d.icdf(q) for name, d in table.items() if name in ("normal", "cauchy", "gompertz")}
    return {"cdf": {name: d.cdf(x) for name, d in table.items()}, "icdf": inverse}


def parameters_with_and_without_constraints():
    params = {"slope": jnp.array(0.3), "offset": jnp.array(-0.1), "noise": jnp.array(0.7)}
    free = unconstrain_fn(_line, (X, Y), {}, params)
    bijections = get_transforms(_line, (X, Y), {}, params)
    return {"free": free, "back": transform_fn(bijections, free), "support": dist.HalfNormal(1.0).support(-1.0)}


def divergences_between_distributions():
    low_rank = dist.MultivariateNormal(jnp.zeros(2), jnp.array([[2.0, 0.3], [0.3, 1.0]]))
    return {
        "normal": dist.kl_divergence(dist.Normal(0.0, 1.0), dist.Normal(1.0, 2.0)),
        "independent": dist.kl_divergence(
            dist.Normal(jnp.zeros(3), 1.0).to_event(1), dist.Normal(jnp.ones(3), 2.0).to_event(1)
        ),
        "gamma": dist.kl_divergence(dist.Gamma(2.0, 3.0), dist.Gamma(1.0, 1.0)),
        "dirichlet": dist.kl_divergence(dist.Dirichlet(jnp.array([1.0, 2.0])), dist.Dirichlet(jnp.array([3.0, 1.0]))),
        "multivariate": dist.kl_divergence(low_rank, dist.MultivariateNormal(jnp.ones(2), jnp.eye(2))),
    }


def transforms_of_flows_and_matrices():
    x = jnp.array([0.3, -0.2, 0.9])
    table = {
        "lower": transforms.LowerCholeskyTransform(),
        "scaled": transforms.ScaledUnitLowerCholeskyTransform(),
        "simplex": transforms.SimplexToOrderedTransform(),
        "real_fft": transforms.RealFastFourierTransform((3,)),
        "recursive": transforms.RecursiveLinearTransform(jnp.array([[0.5]])),
        "zero_sum": transforms.ZeroSumTransform(1),
    }
    inputs = {"simplex": jnp.array([0.2, 0.3, 0.5]), "recursive": x[:, None]}
    return {name: t(inputs.get(name, x)) for name, t in table.items()} | {
        "interval": dist.biject_to(constraints.open_interval(-1.0, 3.0))(x)
    }
