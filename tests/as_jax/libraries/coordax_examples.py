"""coordax: fields with named axes and coordinates, mapped and differentiated."""

import coordax as cx
import jax
import jax.numpy as jnp
import numpy as np

X, Y = cx.LabeledAxis("x", np.linspace(0.0, 1.0, 5)), cx.LabeledAxis("y", np.arange(4))


def _field(seed=0):
    return cx.field(jax.random.normal(jax.random.key(seed), (5, 3, 4)), X, None, Y)


def sums_align_axes_by_name():
    total = cx.field(jnp.arange(5.0), X) + cx.field(jnp.arange(4.0), Y)
    return total.data, total.order_as("y", "x").data


def functions_mapped_over_names():
    normalized = cx.cpmap(lambda row: row / jnp.linalg.norm(row))(_field())
    means = cx.cmap(jnp.mean)(_field())
    return {"normalized": normalized.data, "means": means.data, "names": len(means.dims)}


def a_jitted_gradient():
    weights = cx.field(jnp.linspace(0.0, 1.0, 5), X)
    loss = jax.jit(lambda w: jnp.sum((cx.cmap(jnp.tanh)(_field().tag("z")) * w).data))
    return jax.grad(loss)(weights).data


def a_scan_over_fields():
    step = lambda carry, _: (carry * 0.5 + 1.0, carry)  # noqa: E731
    last, rows = jax.lax.scan(step, cx.field(jnp.arange(5.0), X), None, 4)
    return last.data, rows.tag(cx.SizedAxis("time", 4)).data


def slices_by_label():
    return _field().isel(x=2).data, _field().sel(y=3).data
