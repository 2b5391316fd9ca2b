"""jax-cosmo: distances, growth, power spectra, and the signal of surveys, with their slopes."""

import jax
import jax.numpy as jnp
import jax_cosmo as jc

A = jnp.linspace(0.2, 1.0, 7)
PLANCK = jc.Planck15()


def distances():
    return {
        "radial": jc.background.radial_comoving_distance(PLANCK, A),
        "angular": jc.background.angular_diameter_distance(PLANCK, A),
        "transverse": jc.background.transverse_comoving_distance(jc.Planck15(Omega_k=0.05), A),
        "hubble": jc.background.H(PLANCK, A),
    }


def growth_of_structure():
    return {"factor": jc.background.growth_factor(PLANCK, A), "rate": jc.background.growth_rate(PLANCK, A)}


def spectra_of_power():
    k = jnp.logspace(-3, 0, 9)
    return {
        "linear": jc.power.linear_matter_power(PLANCK, k),
        "bent": jc.power.nonlinear_matter_power(PLANCK, k, 0.7),
        "slope": jax.jacfwd(lambda h: jc.power.linear_matter_power(jc.Planck15(h=h), k))(0.67),
    }


def slope_of_a_distance():
    def distance(p):
        return jc.background.radial_comoving_distance(jc.Planck15(Omega_c=p[0], w0=p[1]), jnp.array([0.5]))[0]

    return jax.value_and_grad(distance)(jnp.array([0.25, -0.95]))


def signal_of_lensing_and_its_fisher_information():
    bins = [jc.redshift.smail_nz(1.0, 2.0, 1.0), jc.redshift.smail_nz(1.0, 2.0, 0.5)]
    probes = [jc.probes.WeakLensing(bins, sigma_e=0.26)]
    ell = jnp.logspace(1, 3, 5)

    def signal(p):
        cosmology = jc.Planck15(Omega_c=p[0], sigma8=p[1])
        return jc.angular_cl.angular_cl(cosmology, ell, probes)

    p = jnp.array([0.25, 0.8])
    value, slope = jax.jit(signal)(p), jax.jit(jax.jacfwd(signal))(p)
    _, covariance = jc.angular_cl.gaussian_cl_covariance_and_mean(PLANCK, ell, probes, sparse=False)
    return {"signal": value, "slope": slope, "covariance": covariance}


def counts_of_galaxies():
    nz = jc.redshift.smail_nz(1.0, 2.0, 1.0)
    probe = jc.probes.NumberCounts([nz], jc.bias.constant_linear_bias(1.2))
    return jc.angular_cl.angular_cl(PLANCK, jnp.logspace(1, 3, 4), [probe])
