"""S2FFT: harmonic transforms on the sphere and on the rotation group."""

import jax
import jax.numpy as jnp
import s2fft

L = 5
SAMPLINGS = ("mw", "dh")
TOLERANCES = {
    "there_and_back": (5e-3, "recursions of Wigner's functions in f32, which S2FFT warns of"),
    "slopes": (1e-3, "recursions of Wigner's functions in f32, which S2FFT warns of"),
}


def _coefficients(spin=0):
    real, imag = jax.random.normal(jax.random.key(spin), (2, L, 2 * L - 1))
    degree, order = jnp.arange(L)[:, None], jnp.abs(jnp.arange(-L + 1, L))
    return jnp.where((order <= degree) & (degree >= spin), real + 1j * imag, 0)


def inverse():
    return {s: s2fft.inverse_jax(_coefficients(), L, sampling=s) for s in SAMPLINGS}


def there_and_back():
    return {s: s2fft.forward_jax(s2fft.inverse_jax(_coefficients(), L, sampling=s), L, sampling=s) for s in SAMPLINGS}


def spins():
    return s2fft.inverse_jax(_coefficients(2), L, spin=2)


def signals_that_are_real():
    signal = jax.random.normal(jax.random.key(5), (L, 2 * L - 1))
    return s2fft.forward_jax(signal, L, reality=True)


def slopes():
    return jax.grad(lambda x: jnp.sum(jnp.abs(s2fft.inverse_jax(x + 0j, L)) ** 2))(_coefficients().real)
