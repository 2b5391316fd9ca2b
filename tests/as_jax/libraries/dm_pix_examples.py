"""dm-pix: images augmented, converted, measured and cut into patches."""

import dm_pix as pix
import jax
import jax.numpy as jnp

KEY = jax.random.key(0)
IMAGE = jax.random.uniform(KEY, (17, 19, 3))


def colours_adjusted():
    return {
        "brightness": pix.adjust_brightness(IMAGE, 0.2),
        "contrast": pix.adjust_contrast(IMAGE, 1.3),
        "gamma": pix.adjust_gamma(IMAGE, 1.7, gain=0.9, assume_in_bounds=True),
        "hue": pix.adjust_hue(IMAGE, 0.1),
        "saturation": pix.adjust_saturation(IMAGE, 1.3),
        "solarize": pix.solarize(IMAGE, 0.6),
    }


def colours_by_chance():
    return {
        "brightness": pix.random_brightness(KEY, IMAGE, 0.3),
        "contrast": pix.random_contrast(KEY, IMAGE, 0.5, 1.5),
        "hue": pix.random_hue(KEY, IMAGE, 0.2),
        "saturation": pix.random_saturation(KEY, IMAGE, 0.5, 1.5),
        "flip": pix.random_flip_left_right(KEY, IMAGE),
        "crop": pix.random_crop(KEY, IMAGE, (9, 11, 3)),
    }


def other_colour_spaces():
    hsv, hsl = pix.rgb_to_hsv(IMAGE), pix.rgb_to_hsl(IMAGE)
    return {
        "hsv": hsv,
        "back": pix.hsv_to_rgb(hsv),
        "hsl": hsl,
        "back_again": pix.hsl_to_rgb(hsl),
        "gray": pix.rgb_to_grayscale(IMAGE),
    }


def turned_moved_and_deformed():
    matrix = jnp.array([[1.1, 0.1, 0.0], [-0.2, 0.9, 0.0], [0.0, 0.0, 1.0]])
    return {
        "rotate": pix.rotate(IMAGE, 0.3, mode="reflect"),
        "affine": pix.affine_transform(IMAGE, matrix, order=1, mode="constant", cval=0.5),
        "nearest": pix.affine_transform(IMAGE, matrix, offset=1.03, order=0),
        "elastic": pix.elastic_deformation(KEY, IMAGE, alpha=2.0, sigma=1.5),
        "rot90": pix.rot90(IMAGE, 3),
        "up_down": pix.flip_up_down(IMAGE),
    }


def blurred_and_cut():
    return {
        "blur": pix.gaussian_blur(IMAGE, 1.5, 5),
        "valid": pix.gaussian_blur(IMAGE[None], 0.7, 3, padding="VALID"),
        "center": pix.center_crop(IMAGE, 8, 9),
        "pad": pix.resize_with_crop_or_pad(IMAGE, 13, 23),
        "depth": pix.space_to_depth(IMAGE[:16, :16], 4),
        "patches": pix.extract_patches(IMAGE[None], (1, 4, 5, 1), (1, 3, 4, 1), (1, 1, 1, 1), padding="VALID"),
    }


def distances_between_images():
    other = pix.adjust_brightness(IMAGE, 0.1)[::-1]
    names = ("mae", "mse", "psnr", "rmse", "simse", "ssim")
    return {name: getattr(pix, name)(IMAGE, other) for name in names}


def an_image_is_restored_by_gradients():
    target = pix.gaussian_blur(IMAGE, 1.0, 5)

    def loss(image):
        return jnp.mean((pix.gaussian_blur(image, 1.0, 5) - target) ** 2) - 0.1 * pix.ssim(image, target)

    image = jnp.full_like(IMAGE, 0.5) + 0.1 * IMAGE
    for _ in range(3):
        image = image - 5.0 * jax.jit(jax.grad(loss))(image)
    return {"image": image, "loss": loss(image)}


def a_batch_augmented_by_vmap():
    def augment(key, image):
        flip, turn = jax.random.split(key)
        image = pix.random_flip_left_right(flip, image)
        return pix.rotate(image, 0.5 * jax.random.normal(turn))

    return jax.jit(jax.vmap(augment))(jax.random.split(KEY, 3), jnp.stack([IMAGE, IMAGE**2, 1 - IMAGE]))
