"""FlowJAX: flows, bijections, and distributions that are fitted."""

import equinox as eqx
import jax
import jax.numpy as jnp
from flowjax import bijections as bij
from flowjax import distributions as dist
from flowjax.flows import block_neural_autoregressive_flow, coupling_flow, masked_autoregressive_flow, planar_flow
from flowjax.train import fit_to_data, fit_to_key_based_loss
from flowjax.train.losses import ElboLoss

KEY = jax.random.key(0)
X = jax.random.normal(KEY, (64, 2)) * jnp.array([1.0, 2.0])
BASE = dist.Normal(jnp.zeros(2))


def _fit(flow):
    flow, losses = fit_to_data(jax.random.key(2), flow, X, learning_rate=1e-2, max_epochs=2, show_progress=False)
    return {"log_prob": flow.log_prob(X[:5]), "losses": losses, "samples": flow.sample(KEY, (3,))}


def a_masked_autoregressive_flow_is_fitted():
    return _fit(masked_autoregressive_flow(jax.random.key(1), base_dist=BASE, flow_layers=2, nn_width=8))


def a_coupling_flow_of_splines_is_fitted():
    transformer = bij.RationalQuadraticSpline(knots=4, interval=3)
    return _fit(
        coupling_flow(jax.random.key(3), base_dist=BASE, transformer=transformer, flow_layers=2, nn_width=8, nn_depth=1)
    )


def flows_that_only_go_one_way():
    block = block_neural_autoregressive_flow(jax.random.key(4), base_dist=BASE, nn_block_dim=3, flow_layers=1)
    planar = planar_flow(jax.random.key(5), base_dist=BASE, flow_layers=2, width_size=5, depth=1, negative_slope=0.3)
    return {"block": block.log_prob(X[:4]), "planar": planar.log_prob(X[:4])}


def bijections_and_their_jacobians():
    x = jnp.array([0.3, -0.8, 1.2])
    table = {
        "affine": bij.Affine(jnp.ones(3), jnp.array([0.5, 1.0, 3.0])),
        "triangular": bij.TriangularAffine(jnp.arange(3.0), jnp.eye(3) + 0.2),
        "chain": bij.Chain([bij.Tanh((3,)), bij.Permute(jnp.array([2, 0, 1]))]),
        "leaky": bij.LeakyTanh(1.0, (3,)),
        "softplus": bij.SoftPlus((3,)),
        "exp": bij.Exp((3,)),
    }
    return {n: [b.transform_and_log_det(x), b.inverse(b.transform(x))] for n, b in table.items()}


def distributions():
    table = {
        "normal": dist.Normal(1.0, 2.0),
        "student": dist.StudentT(3.0),
        "gumbel": dist.Gumbel(0.0, 1.5),
        "cauchy": dist.Cauchy(),
        "uniform": dist.Uniform(0.0, 2.0),
        "gamma": dist.Gamma(2.0, 1.5),
        "log_normal": dist.LogNormal(),
    }
    x = jnp.array([0.2, 1.3])
    return {n: {"log_prob": d.log_prob(x), "sample": d.sample(KEY, (2,))} for n, d in table.items()}


def a_distribution_of_several_components():
    full = dist.MultivariateNormal(jnp.zeros(2), jnp.array([[1.0, 0.3], [0.3, 0.5]]))
    parts = eqx.filter_vmap(dist.Normal)(jnp.array([-1.0, 2.0]), jnp.ones(2))
    mixture = dist.VmapMixture(parts, weights=jnp.array([0.3, 0.7]))
    return {"full": full.log_prob(X[:3]), "mixture": mixture.log_prob(jnp.array([0.0, 1.5]))}


def variational_inference():
    target = dist.Normal(jnp.array([1.0, -1.0]), jnp.array([0.5, 2.0]))
    loss = ElboLoss(target.log_prob, num_samples=32)
    flow, losses = fit_to_key_based_loss(
        jax.random.key(6), BASE, loss_fn=loss, steps=5, learning_rate=0.1, show_progress=False
    )
    return {"losses": losses, "mean": flow.sample(KEY, (4,))}
