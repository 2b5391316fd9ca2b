"""augmax: chains of random crops, rotations, warps and colours of images, alone and in lanes."""

import augmax
import jax
import jax.numpy as jnp

KEY = jax.random.PRNGKey(27)


def _image(*batch, side=20):
    return jax.random.uniform(jax.random.key(3), (*batch, side, side, 3))


def _chain():
    return augmax.Chain(augmax.RandomCrop(12, 12), augmax.HorizontalFlip(), augmax.Rotate())


def first_chain_of_the_readme():
    image = _image()
    return {"eager": _chain()(KEY, image), "jitted": jax.jit(_chain())(KEY, image)}


def a_batch_of_images():
    return jax.jit(jax.vmap(_chain()))(jax.random.split(KEY, 5), _image(5))


def masks_follow_their_images():
    chain = augmax.Chain(
        augmax.RandomSizedCrop(8, 8), augmax.Rotate90(), augmax.Warp(strength=3, coarseness=4),
        input_types=[augmax.InputType.IMAGE, augmax.InputType.MASK],
    )  # fmt: skip
    image = _image()
    return jax.jit(chain)(KEY, [image, image[..., 0] > 0.5])


def colours():
    chain = augmax.Chain(
        augmax.ByteToFloat(), augmax.RandomGamma(p=1.0), augmax.RandomBrightness(p=1.0), augmax.RandomContrast(p=1.0),
        augmax.ChannelShuffle(p=1.0), augmax.ColorJitter(p=1.0), augmax.Solarization(p=1.0), augmax.Normalize(),
    )  # fmt: skip
    return jax.jit(chain)(KEY, (255 * _image()).astype(jnp.uint8))


def blurs_and_tiles():
    chain = augmax.Chain(augmax.GaussianBlur(sigma=2, p=1.0), augmax.GridShuffle((4, 4), p=1.0))
    return jax.jit(chain)(KEY, _image())
