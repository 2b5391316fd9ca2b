"""Steps with bodies: trees as carries, traced bounds, nests, derivatives."""

from __future__ import annotations

from tests.fuzzing.maker import Maker
from tests.fuzzing.rules_control import POLYMORPHIC as SHARED
from tests.fuzzing.rules_control import loop_body, loop_state
from tests.fuzzing.rules_views import Made, Rule


def _number_of_rounds(m: Maker) -> str:
    """A traced number of rounds, small and perhaps 0."""
    x = m.pick(0, "iu", 0)
    return m.choose([f"{x} % 4" if x else "jnp.int32(3)", "jnp.int32(2)", "jnp.asarray(0)", "jnp.uint8(3)"])


def _flag(m: Maker) -> str:
    """A traced truth value."""
    x = m.pick(0, "iuf", 2)
    y = m.pick(0, "b", 0)
    options = [f"jnp.sum({x}) > {m.below(3)}"] if x else ["jnp.asarray(True)"]
    return m.choose([*options, y] if y else options)


def scan_of_trees(m: Maker) -> Made:
    """Named carries, stacked rows and numbers, several results."""
    x, c = m.pick(1, "if", 3), loop_state(m)
    if x is None or c is None:
        return None
    unroll = ", unroll=True" if m.shape(x)[0] < 6 else ", unroll=3"
    options = m.choose(["", ", reverse=True", ", unroll=2", unroll])
    carry = m.choose(["c['n'] + 1", "c['n'] + i", "c['n'] * 2", "i"])
    out = m.choose(["c['n'] * r", "(c['n'], r)", "jnp.sum(r) + jnp.sum(c['s'])", "{'a': c['s'], 'b': r[..., None]}"])
    body = f"lambda c, ri: (lambda r, i: ({{'s': {loop_body(m, c, chr(99) + '[' + repr('s') + ']', 'i')}, 'n': {carry}}}, {out}))(*ri)"
    start = m.choose(["0", "jnp.int32(1)", "jnp.zeros((), int)"])
    call = f"lax.scan({body}, {{'s': {c}, 'n': {start}}}, ({x}, jnp.arange({x}.shape[0])){options})"
    return f"jax.tree.leaves({call})[:3]", 3


def scan_without_rows(m: Maker) -> Made:
    c = loop_state(m)
    if c is None:
        return None
    k = m.choose([0, 1, 3, 5])
    body = loop_body(m, c, "s", m.choose(["i", "1"]))
    out = m.choose(["None", "s", "(s, i)", "jnp.max(s, initial=0)"])
    call = f"lax.scan(lambda si, _: (lambda s, i: (({body}, i + 1), {out}))(*si), ({c}, {m.choose(['0', 'jnp.int32(2)'])}), None, length={k})"
    return f"jax.tree.leaves({call})[:2]", 2


def fori_with_traced_bounds(m: Maker) -> Made:
    x = loop_state(m)
    if x is None:
        return None
    low = m.choose(["0", "0", "1", "jnp.int32(-1)"])
    return f"lax.fori_loop({low}, {_number_of_rounds(m)}, lambda i, s: {loop_body(m, x, 's', 'i')}, {x})"


def fori_of_weak_numbers(m: Maker) -> Made:
    x = m.pick(0, "iuf", 1)
    start = m.choose(["0", "1", "2.0", "True", "(1, 0.5)"])
    if x is None:
        return None
    turns = ["s + 1", "s * 2", "s + i", f"s + jnp.sum({x})", "s / 2", "s - 0.5", "jnp.maximum(s, i)", "-s"]
    pair = ["(s[1], s[0])", "(s[0] + i, s[1] * 2)", "(s[0] * 1.5, s[1])"]
    turn = m.choose(pair if start[0] == "(" else turns)
    call = f"lax.fori_loop(0, {m.choose(['3', 'jnp.int32(3)'])}, lambda i, s: {turn}, {start})"
    return f"jax.tree.leaves({call})[0]"


def while_of_a_tree(m: Maker) -> Made:
    x = loop_state(m)
    if x is None:
        return None
    y = m.pick(0, "iuf", 2)
    limit = m.choose(["4", f"(jnp.sum({y}) % 4)", _number_of_rounds(m)])
    also = m.choose(["", "", f" & (jnp.sum(jnp.abs(s['x'])) < {m.choose([3, 20, 100])})"])
    body = f"lambda s: {{'x': {loop_body(m, x, 's[' + repr('x') + ']', 's[' + repr('i') + ']')}, 'i': s['i'] + 1}}"
    call = f"lax.while_loop(lambda s: (s['i'] < {limit}){also}, {body}, {{'x': {x}, 'i': {m.choose(['0', 'jnp.int8(0)'])}}})"
    return f"jax.tree.leaves({call})", 2


def cond_of_trees(m: Maker) -> Made:
    x = loop_state(m)
    if x is None:
        return None
    y = m.like(x)
    arms = [f"lambda t: ({loop_body(m, x, 't[0]', '1')}, {m.choose(['t[1]', '-t[1]', 't[1] * 2'])})" for _ in range(2)]
    return f"lax.cond({_flag(m)}, {', '.join(arms)}, ({x}, {y}))", 2


def cond_of_closures(m: Maker) -> Made:
    x = loop_state(m)
    if x is None:
        return None
    arms = [f"lambda: {loop_body(m, x, m.like(x), '1')}.astype({x}.dtype)" for _ in range(2)]
    return f"lax.cond({_flag(m)}, {', '.join(arms)})"


def switch_of_several(m: Maker) -> Made:
    x, p = loop_state(m), m.pick(0, "iu", 0)
    if x is None:
        return None
    index = m.choose([p or "jnp.int32(1)", f"jnp.int32({m.below(7) - 2})", "jnp.uint8(200)", "-1", "5"])
    arms = ", ".join(f"lambda s: {loop_body(m, x, 's', '1')}" for _ in range(m.choose([1, 2, 3, 4])))
    return f"lax.switch({index}, [{arms}], {x})"


def branch_in_a_loop(m: Maker) -> Made:
    x = loop_state(m)
    if x is None:
        return None
    arms = ", ".join(f"lambda t: {loop_body(m, x, 't', 'i')}" for _ in range(2))
    test = m.choose(["i % 2 == 0", "jnp.sum(s) > 0", "i > 1", "jnp.any(s < 0)"])
    pick = m.choose([f"lax.cond({test}, {arms}, s)", f"lax.switch(i % 3 - 1, [{arms}], s)"])
    rounds = m.choose(["3", "4", _number_of_rounds(m)])
    return f"lax.fori_loop(0, {rounds}, lambda i, s: {pick}, {x})"


def loop_in_a_branch(m: Maker) -> Made:
    x = loop_state(m)
    if x is None:
        return None
    loop = f"lax.fori_loop(0, {m.choose(['2', _number_of_rounds(m)])}, lambda i, s: {loop_body(m, x, 's', 'i')}, t)"
    scan = f"lax.scan(lambda s, i: ({loop_body(m, x, 's', 'i')}, None), t, jnp.arange(3))[0]"
    arms = [f"lambda t: {m.choose([loop, scan, 't', '-t'])}" for _ in range(2)]
    return f"lax.cond({_flag(m)}, {', '.join(arms)}, {x})"


def loop_in_a_loop(m: Maker) -> Made:
    x = loop_state(m)
    if x is None:
        return None
    inner = m.choose(
        [
            f"lax.fori_loop(0, i, lambda j, t: {loop_body(m, x, 't', 'j')}, s)",
            f"lax.fori_loop(0, 2, lambda j, t: {loop_body(m, x, 't', 'i')}, s)",
            f"lax.while_loop(lambda t: jnp.sum(jnp.abs(t[1])) < i, lambda t: ({loop_body(m, x, 't[0]', 't[1]')}, t[1] + 1), (s, 0))[0]",
        ]
    )
    return f"lax.fori_loop(0, {m.choose(['3', _number_of_rounds(m)])}, lambda i, s: {inner}, {x})"


def lanes_of_loops(m: Maker) -> Made:
    """vmap of a loop whose bound, test or index depends on the lane."""
    x = m.pick(1, "if" if m.values != "smooth" else "f", 3)
    if x is None or 0 in m.shape(x):
        return None
    r, n = "r", "i"
    text = m.choose(
        ["s * 2 - r", "r - s", "jnp.flip(s) + r" if len(m.shape(x)) > 1 else "s + r", "jnp.clip(s + r, -4, 4)"]
    )
    bounded_text = f"jnp.tanh({text})" if m.values == "smooth" else f"jnp.clip({text}, -5, 5)"
    bounded_text = f"({bounded_text}).astype({x}.dtype)"
    loops = [
        f"lax.fori_loop(0, {n} % 4, lambda j, s: {bounded_text}, {r})",
        f"lax.while_loop(lambda t: t[1] < {n} % 5, lambda t: ((lambda s: {bounded_text})(t[0]), t[1] + 1), ({r}, 0))",
        f"lax.cond({n} % 2 == 0, lambda s: {bounded_text}, lambda s: s, {r})",
        f"lax.switch({n} - 1, [lambda s: {bounded_text}, lambda s: -s, lambda s: s], {r})",
        f"lax.scan(lambda s, j: ({bounded_text}, s * j.astype(s.dtype)), {r}, jnp.arange(3) + {n})[0]",
        f"lax.scan(lambda s, j: (lax.cond(j > {n}, lambda s: {bounded_text}, lambda s: s, s), j), {r}, jnp.arange(3))[0]",
    ]
    axis = m.below(len(m.shape(x)))
    out = m.choose(["", "", ", out_axes=-1"])
    call = f"jax.vmap(lambda r, i: {m.choose(loops)}, ({axis}, 0){out})({x}, jnp.arange({x}.shape[{axis}]))"
    return f"jax.tree.leaves({call})[0]"


def mapped_twice(m: Maker) -> Made:
    x, y = m.pick(1, "if", 2), m.pick(1, "if", 2)
    if x is None or y is None or 0 in m.shape(x) + m.shape(y):
        return None
    body = m.choose(["a * b", "a - b", "jnp.sum(a) * jnp.max(b)", "jnp.where(jnp.sum(a) > jnp.sum(b), jnp.sum(a), 0)"])
    if m.chance(0.5):
        return f"jax.vmap(lambda a: jax.vmap(lambda b: jnp.sum({body}))({y}))({x})"
    return f"jax.vmap(jax.vmap(lambda a, b: jnp.sum({body}), (None, 0)), (0, None), out_axes=1)({x}, {y})"


def lax_map(m: Maker) -> Made:
    x = m.pick(1, "if", 3)
    if x is None:
        return None
    row = m.choose(["jnp.sum(r)", "r * 2", "(r, jnp.sum(r))", "jnp.cumsum(r)", "{'a': r, 'b': r + 1}"])
    size = m.choose(["", ", batch_size=2", ", batch_size=3"])
    return f"jax.tree.leaves(lax.map(lambda r: {row}, {x}{size}))[0]"


def collective_lanes(m: Maker) -> Made:
    x = m.pick(1, "if", 3)
    if x is None or 0 in m.shape(x):
        return None
    row = m.choose(
        [
            "r - lax.pmean(r, 'i')",
            "lax.psum(r, 'i') + lax.axis_index('i').astype(r.dtype)",
            "lax.pmax(r, 'i') - r",
            "lax.all_gather(r, 'i')",
            "r * lax.psum(1, 'i')",
            "lax.ppermute(r, 'i', [(k, (k + 1) % lax.axis_size('i')) for k in range(lax.axis_size('i'))])",
        ]
    )
    axis = m.below(len(m.shape(x)))
    return f"jax.vmap(lambda r: {row}, {axis}, axis_name='i')({x})"


def derivative(m: Maker) -> Made:
    """A derivative as a step of a larger program."""
    x = m.pick(0, "f", 2)
    if x is None:
        return None
    y = m.like(x)
    g = m.choose(
        ["s * s", f"s * {y}", "jnp.sin(s)", "jnp.abs(s)", "jnp.maximum(s, 0)", f"jnp.where(s > 0, s, s * {y})"]
    )
    f = f"lambda s: jnp.sum({g})"
    texts = [
        f"jax.grad({f})({x})",
        f"jax.jit(jax.grad({f}))({x})",
        f"jax.value_and_grad({f})({x})[1]",
        f"jax.jvp(lambda s: {g}, ({x},), ({y},))[1]",
        f"jax.vjp(lambda s: {g}, {x})[1]({y})[0]",
        f"jax.linearize(lambda s: {g}, {x})[1]({y})",
        f"jax.grad(jax.checkpoint({f}))({x})",
        f"jax.jvp(jax.grad({f}), ({x},), ({y},))[1]",
        f"jax.grad(lambda s: jnp.vdot(jax.grad({f})(s), {y}))({x})",
    ]
    if 0 < m.envs[0][x].size <= 40:
        texts += [f"jax.{m.choose(['jacfwd', 'jacrev', 'hessian'])}({f})({x})", f"jax.jacfwd(lambda s: {g})({x})"]
    if len(m.shape(x)) and m.shape(x)[0]:
        row = g if y == x else g.replace(y, f"{y}[0]")
        texts += [f"jax.vmap(jax.grad(lambda s: jnp.sum({row})))({x})"]
    return m.choose(texts)


def derivative_of_a_loop(m: Maker) -> Made:
    x = m.pick(0, "f", 2)
    if x is None:
        return None
    body = loop_body(m, x, "s", "i")
    loops = [
        f"lax.fori_loop(0, 3, lambda i, s: {body}, t)",
        f"lax.scan(lambda s, i: ({body}, jnp.sum(s)), t, jnp.arange(3))",
        f"lax.scan(jax.checkpoint(lambda s, i: ({body}, s)), t, jnp.arange(2), reverse=True)",
        f"lax.cond(jnp.sum(t) > 0, lambda s: {body.replace('i % ', '1 % ')}, lambda s: s, t)",
    ]
    f = f"lambda t: sum(jnp.sum(y) for y in jax.tree.leaves({m.choose(loops)}))"
    return m.choose(
        [f"jax.grad({f})({x})", f"jax.jit(jax.grad({f}))({x})", f"jax.jvp(jax.grad({f}), ({x},), ({x},))[1]"]
    )


def ruled(m: Maker) -> Made:
    """Functions with custom derivatives, used as steps."""
    x = m.pick(0, "f", 3)
    if x is None:
        return None
    y = m.like(x)
    texts = [
        f"with_jvp(lambda s: s * 2, lambda p, t: (p[0] * 2, t[0] * p[0]))({x})",
        f"with_jvp(lambda s, k: s * k, lambda p, t: (p[0] * p[1], t[0] + t[1] * p[0]))({x}, {y})",
        f"with_jvp(lambda k, s: s * k, lambda k, p, t: (p[0] * k, t[0] * 3), nondiff_argnums=(0,))(2, {x})",
        f"with_vjp(lambda s: s * s, lambda s: (s * s, s), lambda r, g: (g * r,))({x})",
        f"with_vjp(lambda s, k: s - k, lambda s, k: (s - k, (s, k)), lambda r, g: (g * r[1], None))({x}, {y})",
        f"with_vjp(lambda k, s: s * k, lambda k, s: (s * k, s), lambda k, r, g: (g * k * r,), nondiff_argnums=(0,))(3, {x})",
        f"lax.stop_gradient({x}) * {y}",
        f"lax.custom_root(lambda s: s * 2 - {x}, jnp.zeros_like({x}), lambda f, s: {x} / 2, lambda g, y: y / 2)",
        f"jax.tree.map(lambda a, b: a + b, ({x},), ({y},))[0]",
        f"jax.checkpoint(lambda s: s * {y}, policy=jax.checkpoint_policies.dots_saveable)({x})",
        f"jax.jit(lambda k, s: s + k, static_argnums=0)({m.choose([1, 2.5, True])}, {x})",
        f"jax.jit(lambda s, *, flip: s[::-1] if flip and s.ndim else s, static_argnames='flip')({x}, flip=True)",
    ]
    return m.choose(texts)


RULES: tuple[Rule, ...] = (
    *SHARED,
    scan_of_trees,
    scan_of_trees,
    scan_without_rows,
    fori_with_traced_bounds,
    fori_of_weak_numbers,
    while_of_a_tree,
    cond_of_trees,
    cond_of_closures,
    switch_of_several,
    branch_in_a_loop,
    loop_in_a_branch,
    loop_in_a_loop,
    lanes_of_loops,
    lanes_of_loops,
    mapped_twice,
    lax_map,
    collective_lanes,
    derivative,
    derivative,
    derivative_of_a_loop,
    ruled,
    ruled,
)
