"""Programs on meshes of eight devices whose results were stored with JAX (make_jax_programs.py).

Each is a function of a library, JAX or rune, that gives a list of arrays. Sizes are small and odd
where the mesh allows it; values are irrational, so that a wrong order of blocks shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Library = Any  # of the fields that make_jax_programs.py and test_programs.py fill
Program = Callable[[Library], list[Any]]
TRANSFORMATIONS = ("jit", "grad", "value_and_grad", "vjp", "jvp", "vmap", "pmap", "checkpoint", "custom_vjp")

GROUPS = [[0, 2], [3, 1]]
COLLECTIVES: dict[str, Callable[[Library, Any], Any]] = {
    "psum": lambda lib, x: lib.lax.psum(x, "a"),
    "pmean": lambda lib, x: lib.lax.pmean(x, "a"),
    "pmax": lambda lib, x: lib.lax.pmax(x, "a"),
    "pmin": lambda lib, x: lib.lax.pmin(x, "a"),
    "all_gather": lambda lib, x: lib.lax.all_gather(x, "a"),
    "all_gather of columns": lambda lib, x: lib.lax.all_gather(x, "a", axis=1),
    "all_gather, tiled": lambda lib, x: lib.lax.all_gather(x, "a", axis=1, tiled=True),
    "psum_scatter": lambda lib, x: lib.lax.psum_scatter(x, "a"),
    "psum_scatter, tiled": lambda lib, x: lib.lax.psum_scatter(x, "a", scatter_dimension=1, tiled=True),
    "all_to_all": lambda lib, x: lib.lax.all_to_all(x, "a", 0, 1),
    "all_to_all of one axis": lambda lib, x: lib.lax.all_to_all(x, "a", 0, 0),
    "all_to_all, tiled": lambda lib, x: lib.lax.all_to_all(x, "a", 1, 0, tiled=True),
    "ppermute round": lambda lib, x: lib.lax.ppermute(x, "a", [(n, (n + 1) % 4) for n in range(4)]),
    "ppermute of some": lambda lib, x: lib.lax.ppermute(x, "a", [(0, 2), (3, 1)]),
    "axis_index": lambda lib, x: x * lib.lax.axis_index("a"),
    "psum of a number": lambda lib, x: x / lib.lax.psum(1, "a"),
    "psum in groups": lambda lib, x: lib.lax.psum(x, "a", axis_index_groups=GROUPS),
    "psum in uneven groups": lambda lib, x: lib.lax.psum(x, "a", axis_index_groups=[[2], [3, 0, 1]]),
    "pmean in groups": lambda lib, x: lib.lax.pmean(x, "a", axis_index_groups=GROUPS),
    "pmax in groups": lambda lib, x: lib.lax.pmax(x, "a", axis_index_groups=GROUPS),
    "pmin in groups": lambda lib, x: lib.lax.pmin(x, "a", axis_index_groups=GROUPS),
    "all_gather in groups": lambda lib, x: lib.lax.all_gather(x, "a", axis=1, axis_index_groups=GROUPS),
    "psum_scatter in groups": lambda lib, x: lib.lax.psum_scatter(x[:2], "a", axis_index_groups=GROUPS),
    "psum_scatter in groups, tiled": lambda lib, x: lib.lax.psum_scatter(
        x, "a", scatter_dimension=1, axis_index_groups=GROUPS, tiled=True
    ),
    "all_to_all in groups": lambda lib, x: lib.lax.all_to_all(x[:2], "a", 0, 0, axis_index_groups=GROUPS),
    "all_to_all in groups, tiled": lambda lib, x: lib.lax.all_to_all(
        x, "a", 1, 0, axis_index_groups=GROUPS, tiled=True
    ),
    "psum over both": lambda lib, x: lib.lax.psum(x, ("a", "b")),
    "psum over both, turned": lambda lib, x: lib.lax.psum(x, ("b", "a")),
    "all_gather over both": lambda lib, x: lib.lax.all_gather(x, ("a", "b")),
    "axis_index of both": lambda lib, x: x * lib.lax.axis_index(("a", "b")),
}
# The last by a fault of JAX 0.10.2: its transpose has the axes the wrong way round.
NOT_DIFFERENTIABLE = {"pmax", "pmin", "pmax in groups", "pmin in groups", "all_to_all"}


def numbers(*shape: int) -> np.ndarray:
    """Values with pairwise different sums."""
    size = int(np.prod(shape))
    return np.asarray(np.sin(np.arange(1, size + 1) * 1.7) + 0.01 * np.arange(size), "f").reshape(shape)


def collective(name: str) -> Program:
    """A collective on blocks f32[4, 8], along the first axis of a mesh of four by two."""

    def program(lib: Library) -> list[Any]:
        def body(x: Any) -> Any:
            return COLLECTIVES[name](lib, lib.np.sin(x))[None]

        f = lib.shard_map(body, mesh=lib.mesh((4, 2), "ab"), in_specs=lib.P("a", "b"), out_specs=lib.P(("a", "b")))
        return [f(numbers(16, 16)), lib.jit(f)(numbers(16, 16))]

    return program


def gradient(name: str) -> Program:
    """The gradient of such a program, each result weighed on its own."""

    def program(lib: Library) -> list[Any]:
        def body(x: Any) -> Any:
            return COLLECTIVES[name](lib, lib.np.sin(x))[None]

        f = lib.shard_map(body, mesh=lib.mesh((4, 2), "ab"), in_specs=lib.P("a", "b"), out_specs=lib.P(("a", "b")))

        def loss(x: Any) -> Any:
            y = f(x)
            return (y * numbers(*y.shape)).sum()

        x, t = numbers(16, 16), numbers(16, 16)[::-1]
        return [lib.grad(loss)(x), lib.jit(lib.grad(loss))(x), lib.grad(lib.jit(loss))(x), lib.jvp(loss, (x,), (t,))[1]]

    return program


SPECS: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "rows": (("a",), ("a",)),
    "columns": ((None, "a"), (None, "a")),
    "rows and columns": (("a", "b"), ("a", "b")),
    "turned": (("b", "a"), ("b", "a")),
    "rows by both": ((("a", "b"),), (("a", "b"),)),
    "rows by both, turned": ((("b", "a"),), (("b", "a"),)),
    "copies": ((), ("a", "b")),
    "rows stay, columns are copies": (("a",), ("a", "b")),
    "moved": (("a", "b"), ("b", "a")),
}


def with_specs(name: str) -> Program:
    """Blocks in and out by specs, and the gradient."""

    def program(lib: Library) -> list[Any]:
        in_spec, out_spec = SPECS[name]
        mesh = lib.mesh((4, 2), "ab")
        f = lib.shard_map(
            lambda x: lib.np.cos(x) * (1 + lib.lax.axis_index("a")),
            mesh=mesh,
            in_specs=lib.P(*in_spec),
            out_specs=lib.P(*out_spec),
        )

        def loss(x: Any) -> Any:
            y = f(x)
            return (y * numbers(*y.shape)).sum()

        x = numbers(8, 16)
        return [f(x), lib.jit(f)(x), lib.grad(loss)(x), lib.jit(lib.grad(loss))(x)]

    return program


def replicated_result(lib: Library) -> list[Any]:
    """A result that no axis of the mesh cuts, and its gradient."""
    mesh = lib.mesh((4, 2), "ab")
    f = lib.shard_map(
        lambda w, x: lib.lax.psum((w * x**2).sum(), ("a", "b")),
        mesh=mesh,
        in_specs=(lib.P(), lib.P("a", "b")),
        out_specs=lib.P(),
    )
    w, x = numbers(4), numbers(4, 8)
    w = np.float32(1.3)
    return [f(w, x), *lib.grad(f, (0, 1))(w, x), *lib.jit(lib.grad(f, (0, 1)))(w, x)]


def partial_copies(lib: Library) -> list[Any]:
    """An input that one of two axes cuts: its cotangent is summed over the other."""
    mesh = lib.mesh((2, 4), "ab")

    def body(w: Any, x: Any) -> Any:
        return lib.lax.psum(lib.np.sin(x @ w), "b")

    f = lib.shard_map(body, mesh=mesh, in_specs=(lib.P("b", None), lib.P("a", "b")), out_specs=lib.P("a"))
    w, x = numbers(8, 3), numbers(6, 8)

    def loss(w: Any, x: Any) -> Any:
        return (f(w, x) * numbers(6, 3)).sum()

    return [f(w, x), *lib.grad(loss, (0, 1))(w, x), *lib.jit(lib.grad(loss, (0, 1)))(w, x)]


def second_derivative(lib: Library) -> list[Any]:
    """grad of grad, and forward over reverse."""
    mesh = lib.mesh((8,), "a")
    f = lib.shard_map(lambda x: lib.lax.psum((x**3).sum(), "a"), mesh=mesh, in_specs=lib.P("a"), out_specs=lib.P())
    x, t = numbers(8), numbers(8)[::-1]
    g = lib.grad(f)
    return [
        lib.grad(lambda x: (g(x) * t).sum())(x),
        lib.jvp(g, (x,), (t,))[1],
        lib.jit(lib.grad(lambda x: (g(x) * t).sum()))(x),
    ]


def batched(lib: Library) -> list[Any]:
    """vmap of shard_map: of one argument, of both, and of its gradient."""
    mesh = lib.mesh((4, 2), "ab")
    f = lib.shard_map(
        lambda x, y: lib.lax.psum(x, "a") * y,
        mesh=mesh,
        in_specs=(lib.P("a", "b"), lib.P(None, "b")),
        out_specs=lib.P(None, "b"),
    )
    x, y = numbers(3, 4, 2), numbers(3, 5, 2)
    return [
        lib.vmap(f)(x[:, :, :], y[:, :1]),
        lib.vmap(f, in_axes=(0, None))(x, y[0, :1]),
        lib.vmap(f, in_axes=(None, 1), out_axes=1)(x[0], np.moveaxis(y[:, :1], 0, 1)),
        lib.jit(lib.vmap(lib.grad(lambda x, y: f(x, y).sum())))(x, y[:, :1]),
        lib.grad(lambda x: lib.vmap(f)(x, y[:, :1]).sum())(x),
    ]


def vmap_inside(lib: Library) -> list[Any]:
    """vmap within the body, with a collective over the mesh and one over the lanes."""
    mesh = lib.mesh((8,), "a")

    def body(x: Any) -> Any:
        return lib.vmap(lambda r: lib.lax.psum(r, "a") + lib.lax.psum(r, "i") + lib.lax.axis_index("i"), axis_name="i")(
            x
        )

    f = lib.shard_map(body, mesh=mesh, in_specs=lib.P(None, "a"), out_specs=lib.P(None, "a"))
    return [f(numbers(3, 16)), lib.grad(lambda x: (f(x) ** 2).sum())(numbers(3, 16))]


def scan_inside(lib: Library) -> list[Any]:
    """A loop in the body, with a collective in each step; and its gradient."""
    mesh = lib.mesh((8,), "a")

    def body(x: Any) -> Any:
        def step(carry: Any, row: Any) -> Any:
            carry = lib.np.tanh(lib.lax.pmean(carry, "a") + carry * row)
            return carry, carry.sum()

        last, sums = lib.lax.scan(step, x, numbers(5, 3))
        return last, sums[None]

    f = lib.shard_map(body, mesh=mesh, in_specs=lib.P("a"), out_specs=(lib.P("a"), lib.P("a")))
    x = numbers(24)

    def loss(x: Any) -> Any:
        last, sums = f(x)
        return (last**2).sum() + (sums * numbers(8, 5)).sum()

    return [*f(x), *lib.jit(f)(x), lib.grad(loss)(x), lib.jit(lib.grad(loss))(x)]


def inside_scan(lib: Library) -> list[Any]:
    """A shard_map among other operations in each step of a loop, and its gradient."""
    mesh = lib.mesh((8,), "a")
    f = lib.shard_map(
        lambda x: x + lib.lax.ppermute(x, "a", [(n, (n + 1) % 8) for n in range(8)]),
        mesh=mesh,
        in_specs=lib.P("a"),
        out_specs=lib.P("a"),
    )

    def loop(x: Any) -> Any:
        def step(carry: Any, row: Any) -> Any:
            carry = lib.np.tanh(f(carry) * row)
            return carry, carry.sum()

        return lib.lax.scan(step, x, numbers(3, 16))

    x = numbers(16)
    loss = lambda x: loop(x)[1].sum()  # noqa: E731
    return [*loop(x), *lib.jit(loop)(x), lib.grad(loss)(x), lib.jit(lib.grad(loss))(x)]


def in_a_branch(lib: Library) -> list[Any]:
    """A shard_map in one branch of a cond."""
    mesh = lib.mesh((8,), "a")
    f = lib.shard_map(lambda x: lib.lax.psum(x, "a"), mesh=mesh, in_specs=lib.P("a"), out_specs=lib.P())
    g = lib.jit(lambda p, x: lib.lax.cond(p, lambda x: f(x) * 2, lambda x: x[:2] - x[2:4], x))
    return [g(True, numbers(16)), g(False, numbers(16)), lib.grad(lambda x: g(True, x).sum())(numbers(16))]


def while_inside(lib: Library) -> list[Any]:
    """A loop whose condition is a collective: all devices stop together."""
    mesh = lib.mesh((8,), "a")

    def body(x: Any) -> Any:
        return lib.lax.while_loop(lambda v: lib.lax.psum(v.sum(), "a") < 50.0, lambda v: v * 1.5 + 0.1, x)

    f = lib.shard_map(body, mesh=mesh, in_specs=lib.P("a"), out_specs=lib.P("a"))
    return [f(abs(numbers(16))), lib.jit(f)(abs(numbers(16)))]


def custom_rule_inside(lib: Library) -> list[Any]:
    """custom_vjp in the body: its rule is the one that runs."""
    mesh = lib.mesh((8,), "a")

    @lib.custom_vjp
    def clipped(x: Any) -> Any:
        return lib.np.sin(x)

    clipped.defvjp(lambda x: (lib.np.sin(x), x), lambda x, ct: (ct * 7.0 * x,))
    f = lib.shard_map(lambda x: lib.lax.psum(clipped(x), "a"), mesh=mesh, in_specs=lib.P("a"), out_specs=lib.P())
    return [
        f(numbers(16)),
        lib.grad(lambda x: f(x).sum())(numbers(16)),
        lib.jit(lib.grad(lambda x: f(x).sum()))(numbers(16)),
    ]


def checkpoint_inside(lib: Library) -> list[Any]:
    """checkpoint in the body: collectives are repeated in the backward pass."""
    mesh = lib.mesh((8,), "a")

    def body(x: Any) -> Any:
        return lib.checkpoint(lambda v: lib.np.sin(lib.lax.psum(lib.np.sin(v), "a") * v))(x)

    f = lib.shard_map(body, mesh=mesh, in_specs=lib.P("a"), out_specs=lib.P("a"))
    loss = lambda x: (f(x) * numbers(16)).sum()  # noqa: E731
    return [
        lib.grad(loss)(numbers(16)),
        lib.jit(lib.grad(loss))(numbers(16)),
        lib.grad(lib.checkpoint(loss))(numbers(16)),
    ]


def gradient_inside(lib: Library) -> list[Any]:
    """grad within the body, of a loss that is local, and its mean afterwards."""
    mesh = lib.mesh((8,), "a")

    def body(w: Any, x: Any) -> Any:
        g = lib.grad(lambda w: (lib.np.tanh(x @ w) ** 2).sum())(w)
        return w - 0.1 * lib.lax.pmean(g, "a")

    f = lib.shard_map(body, mesh=mesh, in_specs=(lib.P(), lib.P("a")), out_specs=lib.P())
    return [f(numbers(3), numbers(16, 3)), lib.jit(f)(numbers(3), numbers(16, 3))]


def closed_over(lib: Library) -> list[Any]:
    """A body that closes over arrays, and over a value of the function around it."""
    mesh = lib.mesh((8,), "a")
    table = lib.np.asarray(numbers(2))

    def loss(w: Any, x: Any) -> Any:
        f = lib.shard_map(lambda x: x * table + w, mesh=mesh, in_specs=lib.P("a"), out_specs=lib.P("a"))
        return (f(x) ** 2).sum()

    w, x = np.float32(0.7), numbers(16)
    return [loss(w, x), *lib.grad(loss, (0, 1))(w, x), *lib.jit(lib.grad(loss, (0, 1)))(w, x)]


def trees(lib: Library) -> list[Any]:
    """Arguments and results that are trees, with specs for a part of them."""
    mesh = lib.mesh((4, 2), "ab")

    def body(p: Any, x: Any) -> Any:
        y = x @ p["w"] + p["b"]
        return {"y": y, "both": (lib.lax.psum(y.sum(), ("a", "b")), lib.lax.pmax(y, "a"))}

    f = lib.shard_map(
        body,
        mesh=mesh,
        in_specs=({"w": lib.P(None, "b"), "b": lib.P("b")}, lib.P("a")),
        out_specs={"y": lib.P("a", "b"), "both": (lib.P(), lib.P(None, "b"))},
    )
    out = lib.jit(f)({"w": numbers(3, 4), "b": numbers(4)}, numbers(8, 3))
    return [out["y"], *out["both"]]


def two_in_a_row(lib: Library) -> list[Any]:
    """Two of them, with operations on whole arrays before, between and after."""
    mesh = lib.mesh((4, 2), "ab")
    f = lib.shard_map(
        lambda x: x - lib.lax.pmean(x, "a"), mesh=mesh, in_specs=lib.P("a", "b"), out_specs=lib.P("a", "b")
    )
    g = lib.shard_map(
        lambda x: x / lib.lax.psum(x * x, "b"), mesh=mesh, in_specs=lib.P("b", "a"), out_specs=lib.P("b", "a")
    )

    def both(x: Any) -> Any:
        y = lib.np.sin(f(x + 1.0)) * x
        y = lib.np.sort(y, axis=1) + y.T.reshape(y.shape)
        return g(y).sum(axis=0)

    x, gradient = numbers(8, 8), lib.grad(lambda x: both(x).sum())
    return [both(x), lib.jit(both)(x), gradient(x), lib.jit(gradient)(x)]


def dtypes(lib: Library) -> list[Any]:
    """Integers, bools, halves and complex numbers."""
    mesh = lib.mesh((8,), "a")
    run = lambda f, x: lib.shard_map(f, mesh=mesh, in_specs=lib.P("a"), out_specs=lib.P("a"))(x)  # noqa: E731
    total = lambda x: lib.lax.psum(x, "a")  # noqa: E731
    return [
        run(total, np.arange(16, dtype="i4")),
        run(total, np.arange(16, dtype="u1") * 40),
        run(total, np.arange(16) % 3 == 0),
        run(lambda x: lib.lax.all_gather(x, "a", tiled=True), np.arange(16) % 3 == 0),
        run(total, numbers(16).astype("f2")),
        run(total, (numbers(16) + 1j * numbers(16)[::-1]).astype("c8")),
        run(lambda x: lib.lax.ppermute(x, "a", [(0, 7)]), (numbers(16) + 1j).astype("c8")),
    ]


def three_axes(lib: Library) -> list[Any]:
    """A mesh of two by two by two: sums along each axis, and along pairs."""
    mesh = lib.mesh((2, 2, 2), "abc")

    def body(x: Any) -> Any:
        return (
            lib.lax.psum(x, "b")
            + 2 * lib.lax.psum(x, ("a", "c"))
            + lib.lax.all_gather(x, "c", axis=0, tiled=True).sum()
        )

    f = lib.shard_map(body, mesh=mesh, in_specs=lib.P("a", ("b", "c")), out_specs=lib.P("a", ("b", "c")))
    return [f(numbers(2, 12)), lib.grad(lambda x: (f(x) ** 2).sum())(numbers(2, 12))]


def lanes(lib: Library) -> list[Any]:
    """pmap with axes in and out, arguments and results that all lanes share, and its gradient."""

    def body(w: Any, x: Any) -> Any:
        y = lib.np.tanh(x @ w)
        return y, lib.lax.pmean(y.sum(), "i"), lib.lax.axis_index("i") * y.sum()

    w, x = numbers(3, 2), numbers(5, 8, 3)
    f = lib.pmap(body, "i", in_axes=(None, 1), out_axes=(1, None, 0))
    g = lib.pmap(lambda w, x: body(w, x)[0], "i", in_axes=(None, 0))
    rows = numbers(8, 5, 3)
    return [*f(w, x), g(w, rows), lib.grad(lambda w: (g(w, rows) ** 2).sum())(w)]


def gradient_in_lanes(lib: Library) -> list[Any]:
    """grad within the lanes of pmap: the transpose of psum is psum."""
    f = lib.pmap(lib.grad(lambda x: (lib.lax.psum(lib.np.sin(x), "i") ** 2).sum()), "i")
    return [f(numbers(8, 3))]


def tree_of_lanes(lib: Library) -> list[Any]:
    """pmap of trees, with axes for a part of them."""
    f = lib.pmap(
        lambda p, x: {"y": x * p["w"] + p["b"], "s": lib.lax.psum(x, "i")},
        "i",
        in_axes=({"w": 0, "b": None}, 0),
        out_axes={"y": 0, "s": None},
    )
    out = f({"w": numbers(8), "b": numbers(3)}, numbers(8, 3))
    return [out["y"], out["s"]]


def nested(lib: Library) -> list[Any]:
    """A shard_map over one axis of a mesh, in the body of one over the other; and its gradient."""
    mesh = lib.mesh((4, 2), "ab")
    w = numbers(2, 6)

    def outer(x: Any) -> Any:
        inner = lib.shard_map(
            lambda y: lib.np.sin(y) * (2 + lib.lax.axis_index("b")) + lib.lax.psum(y * w[:, :3], "b"),
            in_specs=lib.P(None, "b"),
            out_specs=lib.P(None, "b"),
            axis_names={"b"},
        )
        return inner(x * 2) - lib.lax.pmean(x, "a")

    f = lib.jit(lib.shard_map(outer, mesh=mesh, in_specs=lib.P("a"), out_specs=lib.P("a"), axis_names={"a"}))
    x = numbers(8, 6)
    loss = lambda x: (f(x) * numbers(8, 6)).sum()  # noqa: E731
    return [f(x), lib.grad(loss)(x), lib.jit(lib.grad(loss))(x), lib.jit(lib.vmap(f))(numbers(3, 8, 6))]


def of_one_axis(lib: Library) -> list[Any]:
    """A shard_map that names one axis of a mesh of two."""
    mesh = lib.mesh((4, 2), "ab")
    f = lib.jit(
        lib.shard_map(
            lambda x: lib.lax.psum(x, "a") * x, mesh=mesh, in_specs=lib.P("a"), out_specs=lib.P("a"), axis_names={"a"}
        )
    )
    x = numbers(8, 6)
    return [f(x), lib.jit(lib.grad(lambda x: (f(x) * numbers(8, 6)).sum()))(x)]


WHOLE: tuple[Program, ...] = (
    replicated_result,
    partial_copies,
    second_derivative,
    batched,
    vmap_inside,
    scan_inside,
    inside_scan,
    in_a_branch,
    while_inside,
    custom_rule_inside,
    checkpoint_inside,
    gradient_inside,
    closed_over,
    trees,
    two_in_a_row,
    dtypes,
    three_axes,
    lanes,
    gradient_in_lanes,
    tree_of_lanes,
    nested,
    of_one_axis,
)


def programs() -> Iterator[tuple[str, Program]]:
    """Every program, with its name."""
    for name in COLLECTIVES:
        yield name, collective(name)
    for name in COLLECTIVES:
        if name not in NOT_DIFFERENTIABLE:
            yield f"gradient of {name}", gradient(name)
    for name in SPECS:
        yield f"specs: {name}", with_specs(name)
    for program in WHOLE:
        yield program.__name__.replace("_", " "), program


PROGRAMS = dict(programs())
