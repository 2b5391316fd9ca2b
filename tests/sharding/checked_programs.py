"""Programs that take derivatives in the body of a shard_map whose types say how values vary.

Like programs.py, but with check_vma=True. The gradient of a weight that all devices share is a sum
over the devices, also through loops, branches, custom rules and jit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.sharding.programs import Library, Program, numbers

W, V, X = numbers(3, 3), numbers(3), numbers(16, 3)


def _on_eight(lib: Library, body: Callable[..., Any], out_specs: Any) -> list[Any]:
    """The body on W, V and rows of X, on eight devices: eager, and jitted."""
    f = lib.shard_map(body, mesh=lib.mesh((8,), "a"), in_specs=(lib.P(), lib.P(), lib.P("a")), out_specs=out_specs)
    return [*f(W, V, X), *lib.jit(f)(W, V, X)]


def _gradients(lib: Library, loss: Callable[..., Any]) -> list[Any]:
    """The gradients of a device's loss in the body: of weights that all have, and of its rows."""
    return _on_eight(lib, lib.grad(loss, (0, 1, 2)), (lib.P(), lib.P(), lib.P("a")))


def local_loss(lib: Library) -> list[Any]:
    """Each device's own loss: the gradients of weights are sums."""
    return _gradients(lib, lambda w, v, x: (lib.np.tanh(x @ w + v) ** 2).sum())


def common_loss(lib: Library) -> list[Any]:
    """A loss that is summed in the body."""
    return _gradients(lib, lambda w, v, x: lib.lax.psum((lib.np.tanh(x @ w + v) ** 2).sum(), "a"))


def mean_loss(lib: Library) -> list[Any]:
    """A mean of means, and a term of weights alone, which counts once."""
    return _gradients(
        lib, lambda w, v, x: lib.lax.pmean((lib.np.tanh(x @ w + v) ** 2).mean(), "a") + (w**2).sum() + v[0]
    )


def weights_that_meet_data_late(lib: Library) -> list[Any]:
    """Sums of invariant and of varying values, in every order."""

    def loss(w: Any, v: Any, x: Any) -> Any:
        alike = lib.np.sin(w @ v)
        sums = alike + x.sum(axis=0)
        return (sums * alike).sum() + (alike * v).sum() + lib.lax.psum(sums @ v, "a") * v[1]

    return _gradients(lib, loss)


def loss_of_weights_alone(lib: Library) -> list[Any]:
    """A sum over devices of an invariant value counts it eight times."""
    return _on_eight(
        lib, lib.grad(lambda w, v, x: lib.lax.psum((w @ v).sum(), "a") + (w[0] * v).sum(), (0, 1)), (lib.P(), lib.P())
    )


def exchanged(lib: Library) -> list[Any]:
    """Collectives that give each device something else, of weights and rows."""
    ring = [(n, (n + 1) % 8) for n in range(8)]

    def loss(w: Any, v: Any, x: Any) -> Any:
        y = lib.np.sin(x @ w)
        rows = lib.lax.all_gather(y * v, "a")
        parts = lib.lax.psum_scatter(lib.np.outer(numbers(8), y.sum(axis=0)), "a")
        exchange = lib.lax.all_to_all(lib.np.outer(numbers(8), y[0]), "a", 0, 0)
        return (
            (rows * numbers(8, 2, 3)).sum()
            + (parts * v).sum()
            + (lib.lax.ppermute(y, "a", ring) * y).sum()
            + (exchange**2).sum()
        )

    return _gradients(lib, loss)


def recurrent(lib: Library) -> list[Any]:
    """A loop over the rows of a device, whose step reads the same weights again and again."""

    def loss(w: Any, v: Any, x: Any) -> Any:
        start = lib.lax.pcast(lib.np.zeros(3), "a", to="varying")
        last, sums = lib.lax.scan(lambda h, r: (lib.np.tanh(w @ h + r * v), h @ v), start, x)
        return last.sum() + (sums**2).sum()

    return _gradients(lib, loss)


def layers(lib: Library) -> list[Any]:
    """A loop over layers of weights, with a sum over devices in each; also with checkpoints."""

    def loss(w: Any, v: Any, x: Any) -> Any:
        def layer(h: Any, row: Any) -> Any:
            h = lib.np.tanh(h * row + lib.lax.pmean(h, "a") * v)
            return h, (row * row).sum()

        last, norms = lib.lax.scan(lib.checkpoint(layer), x, w)
        return (last**2).sum() + norms.sum()

    return _gradients(lib, loss)


def branches(lib: Library) -> list[Any]:
    """A branch that all devices take together."""

    def loss(w: Any, v: Any, x: Any) -> Any:
        y = lib.lax.cond(w[0, 0] > 0, lambda w: x @ w, lambda w: x * v, w)
        return (y**2).sum()

    return _gradients(lib, loss)


def in_jit(lib: Library) -> list[Any]:
    """A jitted part, and a checkpoint, that read weights."""

    def loss(w: Any, v: Any, x: Any) -> Any:
        y = lib.jit(lambda w, x: lib.np.tanh(x @ w))(w, x)
        z = lib.checkpoint(lambda v, y: lib.lax.psum(lib.np.sin(y * v), "a") * y)(v, y)
        return z.sum() + lib.jit(lambda w, v: (w @ v).sum())(w, v)

    return _gradients(lib, loss)


def custom_rules(lib: Library) -> list[Any]:
    """A custom rule sums the cotangent of an invariant value."""

    @lib.custom_vjp
    def scaled(v: Any, y: Any) -> Any:
        return v * y

    def backward(residuals: Any, ct: Any) -> Any:
        v, y = residuals
        return lib.lax.psum((ct * y).sum(axis=0), "a"), ct * v * 3

    scaled.defvjp(lambda v, y: (v * y, (v, y)), backward)
    return _gradients(lib, lambda w, v, x: (scaled(v, lib.np.sin(x @ w)) ** 2).sum())


def solved(lib: Library) -> list[Any]:
    """A system with a matrix that all devices share, and one with a different matrix on each."""

    def loss(w: Any, v: Any, x: Any) -> Any:
        y = lib.np.linalg.solve(w + 3 * lib.np.eye(3), x.T)
        a = x.T @ x + lib.np.eye(3)
        return (y**2).sum() + (lib.np.linalg.solve(a, v) ** 2).sum()

    return _gradients(lib, loss)


def pulled_back(lib: Library) -> list[Any]:
    """vjp with a cotangent for each result; jvp with tangents that differ."""

    def body(w: Any, v: Any, x: Any) -> Any:
        outs, pull = lib.vjp(lambda w, x: (x @ w, (w @ v).sum()), w, x)
        in_cts = pull((lib.np.cos(outs[0]), outs[1] * 2))
        tangent = lib.jvp(lambda w, x: x @ w, (w, x), (w * 2, x * x))[1]
        return *in_cts, tangent

    return _on_eight(lib, body, (lib.P(), lib.P("a"), lib.P("a")))


def second_derivatives(lib: Library) -> list[Any]:
    """Forward over reverse in the body, and the gradient of a step of descent from outside."""

    def loss(w: Any, v: Any, x: Any) -> Any:
        return (lib.np.tanh(x @ w) @ v).sum()

    def body(w: Any, v: Any, x: Any) -> Any:
        return lib.jvp(lambda v: lib.grad(loss)(w, v, x), (v,), (v * 2,))[1], lib.grad(loss)(w, v, x)

    def step(w: Any, v: Any, x: Any) -> Any:
        mesh, specs = lib.mesh((8,), "a"), (lib.P(), lib.P(), lib.P("a"))
        f = lib.shard_map(lambda w, v, x: w - lib.grad(loss)(w, v, x), mesh=mesh, in_specs=specs, out_specs=lib.P())
        return (f(w, v, x) * numbers(3, 3)).sum()

    gradients = lib.grad(step, (0, 1, 2))
    return [*_on_eight(lib, body, (lib.P(), lib.P())), *gradients(W, V, X), *lib.jit(gradients)(W, V, X)]


def lanes_in_the_body(lib: Library) -> list[Any]:
    """vmap of a gradient, and the gradient of a vmap, in the body."""

    def body(w: Any, v: Any, x: Any) -> Any:
        of_lanes = lib.vmap(lib.grad(lambda v, r: lib.np.tanh(r @ w @ v)), (None, 0))(v, x)
        total = lib.grad(lambda v: lib.vmap(lambda r: lib.np.tanh(r @ w @ v))(x).sum())(v)
        return of_lanes, total

    return _on_eight(lib, body, (lib.P("a"), lib.P()))


def two_axes(lib: Library) -> list[Any]:
    """Weights split along one axis of two, and not split: sums where devices have copies."""

    def body(w: Any, v: Any, x: Any) -> Any:
        def loss(w: Any, v: Any, x: Any) -> Any:
            return (lib.np.tanh(lib.lax.psum(x @ w, "b") + v) ** 2).sum()

        return lib.grad(loss, (0, 1, 2))(w, v, x)

    specs = (lib.P("b"), lib.P(), lib.P("a", "b"))
    f = lib.shard_map(body, mesh=lib.mesh((4, 2), "ab"), in_specs=specs, out_specs=specs)
    w, v, x = numbers(6, 3), numbers(3), numbers(8, 6)
    return [*f(w, v, x), *lib.jit(f)(w, v, x)]


def alike_for_every_device(lib: Library) -> list[Any]:
    """An invariant result, cut into one part for each device."""
    f = lib.shard_map(lambda v: lib.np.sin(v) * 2, mesh=lib.mesh((8,), "a"), in_specs=lib.P(), out_specs=lib.P("a"))
    loss = lambda v: (f(v) * numbers(24)).sum()  # noqa: E731
    return [f(V), lib.grad(loss)(V), lib.jit(lib.grad(loss))(V)]


def descent(lib: Library) -> list[Any]:
    """Some steps of training in a loop in the body."""

    def body(w: Any, v: Any, x: Any) -> Any:
        loss = lambda w, v: lib.lax.pmean((lib.np.tanh(x @ w + v) ** 2).mean(), "a")  # noqa: E731

        def step(state: Any, _: Any) -> Any:
            value, (dw, dv) = lib.value_and_grad(loss, (0, 1))(*state)
            return (state[0] - 0.3 * dw, state[1] - 0.3 * dv), value

        (w, v), losses = lib.lax.scan(step, (w, v), None, length=5)
        return w, v, losses

    return _on_eight(lib, body, (lib.P(), lib.P(), lib.P()))


def exchanged_over_both(lib: Library) -> list[Any]:
    """Collectives over two axes of a mesh at once, in both orders, and their gradients."""
    lax, x = lib.lax, numbers(8, 16)
    kinds: list[tuple[Callable[[Any], Any], Any]] = [
        (lambda x: lax.psum_scatter(x, ("b", "a"), scatter_dimension=1, tiled=True), lib.P("a", "b")),
        (lambda x: lax.all_to_all(x, ("a", "b"), 1, 0, tiled=True), lib.P(("a", "b"))),
        (lambda x: lax.all_to_all(x, ("b", "a"), 1, 1, tiled=True), lib.P(("a", "b"))),
        (lambda x: lax.ppermute(x, ("a", "b"), [(0, 5), (7, 0), (3, 4)]), lib.P(("a", "b"))),
    ]
    results = []
    for collective, spec in kinds:
        f = lib.shard_map(collective, mesh=lib.mesh((4, 2), "ab"), in_specs=lib.P(("a", "b")), out_specs=spec)
        loss = lambda x, f=f: (lib.np.sin(f(x)) ** 2).sum()  # noqa: E731
        results += [lib.jit(f)(x), lib.grad(loss)(x), lib.jit(lib.grad(loss))(x)]
    return results


CHECKED: dict[str, Program] = {
    p.__name__.replace("_", " "): p
    for p in (
        local_loss,
        common_loss,
        mean_loss,
        weights_that_meet_data_late,
        loss_of_weights_alone,
        exchanged,
        recurrent,
        layers,
        branches,
        in_jit,
        custom_rules,
        solved,
        pulled_back,
        second_derivatives,
        lanes_in_the_body,
        two_axes,
        alike_for_every_device,
        descent,
        exchanged_over_both,
    )
}
