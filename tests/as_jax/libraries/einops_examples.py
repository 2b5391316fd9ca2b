"""Einops: rearrangements, reductions and products by the names of axes."""

import einops
import jax
import jax.numpy as jnp

_IMAGES = jnp.arange(2 * 4 * 6 * 3.0).reshape(2, 4, 6, 3)


def transpose_by_names():
    return einops.rearrange(_IMAGES, "b h w c -> b c h w")


def composition_of_axes():
    return {
        "rows": einops.rearrange(_IMAGES, "b h w c -> (b h) w c"),
        "vector": einops.rearrange(_IMAGES, "b h w c -> b (c h w)"),
    }


def decomposition_of_axes():
    return {
        "batch": einops.rearrange(_IMAGES, "(b1 b2) h w c -> b1 b2 h w c", b1=2),
        "patches": einops.rearrange(_IMAGES, "b (h h2) (w w2) c -> (b h w) (h2 w2 c)", h2=2, w2=3),
    }


def list_of_arrays_as_an_axis():
    return einops.rearrange([_IMAGES[0], _IMAGES[1]], "b h w c -> h (b w) c")


def axes_of_length_one():
    x = einops.rearrange(_IMAGES, "b h w c -> b 1 h w 1 c")
    return {"with": x, "without": einops.rearrange(x, "b 1 h w 1 c -> b h w c")}


def ellipsis_stands_for_any_axes():
    return einops.rearrange(_IMAGES, "... c -> c ...")


def reductions_by_names():
    kinds = ("mean", "max", "min", "sum", "prod")
    return {kind: einops.reduce(_IMAGES / 100, "b h w c -> b c", kind) for kind in kinds}


def pooling_is_a_reduction():
    return einops.reduce(_IMAGES, "b (h h2) (w w2) c -> b h w c", "max", h2=2, w2=2)


def reduction_by_a_function():
    return einops.reduce(_IMAGES / 100, "b h w c -> b c", lambda x, axes: jnp.var(x, axes))


def repetition_along_an_axis():
    return {
        "new": einops.repeat(_IMAGES[0, :, :, 0], "h w -> h w c", c=3),
        "old": einops.repeat(_IMAGES[0, :, :, 0], "h w -> (h 2) (w 3)"),
    }


def product_of_named_axes():
    return einops.einsum(_IMAGES, jnp.ones((3, 5)), "batch row column channel, channel out -> batch row out")


def packing_of_several_arrays():
    packed, shapes = einops.pack([_IMAGES[..., 0], _IMAGES[..., :2]], "b h w *")
    first, second = einops.unpack(packed, shapes, "b h w *")
    return {"packed": packed, "first": first, "second": second}


def shape_by_names():
    return einops.parse_shape(_IMAGES, "batch _ width channel")


def derivative_of_a_reduction():
    return jax.grad(lambda x: (einops.reduce(x, "b (h h2) w c -> b h", "max", h2=2) ** 2).sum())(_IMAGES / 100)


def compiled_and_batched_rearrangement():
    return jax.jit(jax.vmap(lambda x: einops.rearrange(x, "(h h2) w c -> (w h) (h2 c)", h2=2)))(_IMAGES)


def multi_head_attention():
    def attention(x, w):
        q, k, v = einops.rearrange(x @ w, "t (kind head d) -> kind head t d", kind=3, head=2)
        weights = jax.nn.softmax(einops.einsum(q, k, "head i d, head j d -> head i j"), axis=-1)
        return einops.rearrange(einops.einsum(weights, v, "head i j, head j d -> head i d"), "head t d -> t (head d)")

    x = jnp.sin(jnp.arange(20.0)).reshape(5, 4)
    return jax.jit(attention)(x, jnp.cos(jnp.arange(48.0)).reshape(4, 12))


def errors_name_the_pattern():
    try:
        einops.rearrange(_IMAGES, "b h w -> b h w")
    except einops.EinopsError as error:
        return "b h w -> b h w" in str(error)
