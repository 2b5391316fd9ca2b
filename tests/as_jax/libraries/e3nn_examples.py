"""e3nn-jax: representations of rotations, spherical harmonics, products of tensors."""

import e3nn_jax as e3nn
import jax
import jax.numpy as jnp

KEY = jax.random.key(0)
X = e3nn.normal("1o + 2e", KEY, (5,))
V = jnp.array([0.3, -0.2, 0.9])


def arrays_of_representations():
    y = e3nn.concatenate([X, e3nn.normal("0e + 1o", jax.random.key(1), (5,))]).regroup()
    return {"y": y.array, "irreps": str(y.irreps), "first": X.filter("1o").array, "scaled": (2.0 * X + X).array}


def spherical_harmonics_of_vectors():
    y = e3nn.spherical_harmonics("0e + 1o + 2e + 3o", X.filter("1o"), normalize=True)
    slope = jax.grad(lambda v: jnp.sum(e3nn.spherical_harmonics("3o", e3nn.IrrepsArray("1o", v), True).array ** 3))(V)
    return {"y": y.array, "slope": slope}


def products_of_tensors():
    y = e3nn.spherical_harmonics([0, 1, 2], X.filter("1o"), normalize=True)
    return {
        "full": e3nn.tensor_product(X, y).array,
        "filtered": e3nn.tensor_product(X, y, filter_ir_out=["0e", "1o"]).array,
        "elementwise": e3nn.elementwise_tensor_product(X, X).array,
        "square": e3nn.tensor_square(X).array,
        "dot": e3nn.dot(X, X).array,
    }


def coefficients_of_clebsch_and_gordan():
    return {"112": e3nn.clebsch_gordan(1, 1, 2), "123": e3nn.clebsch_gordan(1, 2, 3)}


def rotations_act_and_products_are_equivariant():
    turn = e3nn.rand_matrix(jax.random.key(2))
    y = e3nn.spherical_harmonics("2e", e3nn.IrrepsArray("1o", V), normalize=True)
    turned = e3nn.spherical_harmonics("2e", e3nn.IrrepsArray("1o", turn @ V), normalize=True)
    alpha, beta, gamma = e3nn.matrix_to_angles(turn)
    return {
        "matrix": turn,
        "acted": y.transform_by_matrix(turn).array,
        "turned": turned.array,
        "angles": jnp.stack([alpha, beta, gamma]),
        "quaternion": e3nn.matrix_to_quaternion(turn),
        "wigner": e3nn.Irrep("2e").D_from_matrix(turn),
    }


def linear_layers_and_gates():
    linear = e3nn.FunctionalLinear(X.irreps, e3nn.Irreps("2x0e + 1o + 2e"))
    w = [jax.random.normal(jax.random.key(i), i_.path_shape) for i, i_ in enumerate(linear.instructions)]
    gate = e3nn.gate(e3nn.normal("3x0e + 0o + 1o + 2e", jax.random.key(4), (4,)))
    return {"linear": jax.vmap(linear, (None, 0))(w, X).array, "gate": gate.array, "norm": e3nn.norm(X).array}


def functions_on_the_sphere():
    signal = e3nn.to_s2grid(
        e3nn.normal(e3nn.s2_irreps(3), jax.random.key(5), ()), res_beta=8, res_alpha=9, quadrature="soft"
    )
    return {
        "grid": signal.grid_values,
        "back": e3nn.from_s2grid(signal, e3nn.s2_irreps(3)).array,
        "integral": signal.integrate().array,
    }


def a_network_of_points():
    positions = jax.random.normal(jax.random.key(6), (4, 3))
    senders, receivers = jnp.array([0, 1, 2, 3, 0, 2]), jnp.array([1, 0, 3, 2, 2, 0])

    def energy(positions):
        edges = e3nn.IrrepsArray("1o", positions[receivers] - positions[senders])
        messages = e3nn.spherical_harmonics("0e + 1o + 2e", edges, normalize=False)
        nodes = e3nn.scatter_sum(messages, dst=receivers, output_size=4)
        return jnp.sum(e3nn.tensor_product(nodes, nodes, filter_ir_out=["0e"]).array ** 2)

    value, force = jax.jit(jax.value_and_grad(energy))(positions)
    return {
        "energy": value,
        "force": force,
        "radial": e3nn.bessel(jnp.linspace(0.1, 1.0, 5), 4),
        "soft": e3nn.soft_one_hot_linspace(
            jnp.linspace(0, 2, 5), start=0.0, end=2.0, number=4, basis="smooth_finite", cutoff=True
        ),
    }
