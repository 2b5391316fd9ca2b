"""jaxlie: rotations and rigid motions, their maps, and descent on the group."""

import jax
import jax.numpy as jnp
import jaxlie

W = jax.random.normal(jax.random.key(0), (6,))
T = jaxlie.SE3.exp(W)


def a_rigid_motion_of_space():
    return {
        "matrix": T.as_matrix(),
        "log": T.log(),
        "adjoint": T.adjoint(),
        "point": T @ jnp.array([1.0, 2.0, 3.0]),
        "inverse": (T.inverse() @ T).parameters(),
        "rotation": T.rotation().as_matrix(),
        "translation": T.translation(),
    }


def rotations_in_many_ways():
    turn = jaxlie.SO3.from_rpy_radians(0.1, 0.2, 0.3)
    return {
        "wxyz": turn.wxyz,
        "rpy": turn.as_rpy_radians(),
        "matrix": turn.as_matrix(),
        "back": jaxlie.SO3.from_matrix(turn.as_matrix()).wxyz,
        "x": jaxlie.SO3.from_x_radians(jnp.pi / 3).wxyz,
        "log": turn.log(),
    }


def motions_of_the_plane():
    pose = jaxlie.SE2.from_xy_theta(1.0, 2.0, 0.5)
    turn = jaxlie.SO2.from_radians(0.7)
    return {
        "matrix": pose.as_matrix(),
        "log": pose.log(),
        "exp": jaxlie.SE2.exp(pose.log()).parameters(),
        "turned": turn @ jnp.array([1.0, 0.5]),
        "adjoint": pose.adjoint(),
    }


def near_the_identity_the_series_is_taken():
    small = jnp.array([1e-5, 0.0, 2e-6, 1e-6, -1e-6, 3e-7])
    return {
        "exp": jaxlie.SE3.exp(small).as_matrix(),
        "log": jaxlie.SE3.exp(small).log(),
        "slope": jax.jacobian(lambda w: jaxlie.SE3.exp(w).as_matrix())(jnp.zeros(6)),
    }


def a_batch_of_motions():
    batch = jax.vmap(jaxlie.SE3.exp)(jax.random.normal(jax.random.key(1), (5, 6)))
    wide = jaxlie.SO3.sample_uniform(jax.random.key(2), (3,))
    return {"batch": batch.wxyz_xyz, "logs": jax.vmap(lambda t: t.log())(batch), "sampled": wide.wxyz}


def descent_on_the_group():
    def loss(pose):
        return jnp.sum((pose @ T.inverse()).log() ** 2)

    pose = jaxlie.SE3.exp(0.5 * W)
    for _ in range(4):
        pose = jaxlie.manifold.rplus(pose, -0.2 * jaxlie.manifold.grad(loss)(pose))
    return {"pose": pose.parameters(), "loss": loss(pose)}


def differences_and_jacobians_of_the_manifold():
    other = jaxlie.manifold.rplus(T, 0.1 * W)
    return {
        "plus": other.as_matrix(),
        "minus": jaxlie.manifold.rminus(T, other),
        "jacobian": jaxlie.manifold.rplus_jacobian_parameters_wrt_delta(T),
        "value": jaxlie.manifold.value_and_grad(lambda t: jnp.sum(t.translation() ** 2))(T),
    }


def gradients_through_the_logarithm():
    return jax.grad(lambda w: jnp.sum((jaxlie.SE3.exp(w) @ T.inverse()).log() ** 2))(0.5 * W)
