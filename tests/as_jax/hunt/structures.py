"""Statements that hold blocks: loops in branches in lanes in derivatives, each written in turn.

A block is lines on its own parameters and on every value around it, so that bodies close over
values. Carries, rows and operands are trees, with None, () and Python numbers among their leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import jax.numpy as jnp

from tests.as_jax.hunt.tables import KINDS, SMOOTH
from tests.as_jax.hunt.text import Statement, texts
from tests.as_jax.hunt.writer import NoSuchValue, Type, Writer, kind_of

DEEPEST = 2
LONGEST = 40  # rounds of a loop
LARGEST = 3000  # elements of an operand

PIECES = texts("""
{x:1}[::-1][«1:|:-1|::2|-3:|5:1:-1»]
{x:2}.T[«1:|::-2|:, ::-1|..., 0|None, :, 1:»]
jnp.swapaxes({x:2}, 0, -1)[«::-1|1::2»]
jnp.concatenate([{x:1}[::-1], jnp.pad({x}, [(1, 2)] + [(0, 0)] * ({x}.ndim - 1))[1:], {x}[:0]])
jnp.pad({x:1}, [«(2, 1)|(0, 3)»] + [(0, 0)] * ({x}.ndim - 1), constant_values=«-1|2»)[::«2|-1|-3»]
lax.pad({x:1}, {x}.dtype.type(1), [«(-1, 2, 1)|(1, -1, 2)|(0, 0, 1)»] + [(0, 0, 0)] * ({x}.ndim - 1))
jnp.broadcast_to({x:-2}, («2|3|1», *{x}.shape))[«1:|::-1|0|:, None»]
jnp.stack([{x}, {y}[::-1] if {y}.ndim else {y}], «0|-1»).reshape(«-1|2, -1»)
{x}.reshape(«-1|1, -1, 1»)[«::-1|1:|:-1»].T
jnp.roll({x:1}, «1|-2», 0)[«1:|::-1»]
jnp.tile({x}, 2)[..., «1:|::3|::-1»] if {x}.ndim else {x}
jnp.repeat({x:1}, 2, axis={axis})[::-1]
jnp.diagonal({x:2})[«...|..., ::-1»]
jnp.tril({x:2}).swapaxes(-1, -2)
""")
INTEGERS = texts("""
({x:iu} «//|%» ({z:i-0} | 1)) «+|*|^» {x}
{x:iu} «//|%» {yb:iu}
jnp.«floor_divide|remainder|fmod|gcd»({x:iu}, {yb:iu})
lax.«div|rem»({x:iu}, {y})
({x:iu} << «1|7|31|40») >> «1|7|33|2»
({x:iu} «<<|>>» «{yb:iu}|-1») «&|^» {x}
lax.«shift_right_logical|shift_right_arithmetic|shift_left»({x:iu}, {y})
jnp.where({yb:biu} > 1, {x:iu} * {x}, -{x}) «+|-» 1
{x:iu}.astype(jnp.«int8|uint8|int16|uint16|uint32|float16|bfloat16») * «{yb:biu}|3|-1»
jnp.sum({x:biu} * «{yb:biuf}|2», axis={axes}) «+|*» 1
jnp.abs({x:i}) «*|//» jnp.sign({x}) - {x}
jnp.power({x:iu}, «2|3|{yb:u}») % «7|-3|1»
jnp.minimum({x:iu}, {yb:biuf}) - jnp.maximum({x}, «{number}|1»)
lax.population_count({x:iu}) + lax.clz({x}) * 2
jnp.cumsum({x:biu1}, {axis})[..., ::-1] «+|*» {yb:biu}
jnp.clip({x:biuf}, -3, 3).astype(jnp.«int8|uint8|int32») * «{yb:biuf}|2»
jnp.bitwise_count({x:iu}) * {yb:biuf}
""")
LEARNED = texts("""
jax.nn.one_hot({x:iu}, «3|5|1»).sum({axis}) if {x}.size <= 900 else {x}
jnp.argsort(jnp.argsort({x:1}, axis={axis}), axis={axis})
{x:1-1}[jnp.argsort({y}, descending=True)] - jnp.sort({x})[::-1]
jax.ops.segment_«sum|max|min|prod»({x:1}, jnp.argsort({x}.reshape({x}.shape[0], -1)[:, 0]) % 3, 4)
jnp.bincount(jnp.clip({x:i1-1}, 0, 4), weights={y:if}, length=5)[::-1]
lax.sort(({x:1}, {y}, {y}[::-1]), num_keys=«1|2|3», dimension=0)[«0|1|2»]
lax.top_k({x:1}[..., ::-1], «1|2»)[«0|1»]
jnp.searchsorted(jnp.cumsum(jnp.abs({x:if1-1})), {z:if-1}, side=«'left'|'right'»)
jnp.einsum('«iij->j|iji->ij|ijj,ij->i|iii->i|ijk,kji->j»', jnp.resize({x:if}, (3, 3, 3)), jnp.resize({y}, «(3, 3)|(3, 3, 3)»)) if {x}.size else {x}
jnp.einsum('«iij->j|iji->ij|iii->i|iij->ij»', jnp.resize({x:if}, (3, 3, 3))) if {x}.size else {x}
(jnp.max({x}, axis={axes}, keepdims=True, initial=0) - {x}).T.sum({axes})
jnp.where({x} == jnp.max({x}, axis={axes}, keepdims=True, initial=-9), {yb}, {x}).sum({axes})
lax.cum«sum|max|min»({x:if1}, 0, reverse=True)[::-1] - {yb:if}
jax.random.permutation(jax.random.fold_in({key}, «{z:iu-0}|7»), {x:1}, axis={axis})
jax.random.uniform(jax.random.split({key}, «3|(2, 3)»)«[0]|[-1]|[1, ...]»«|[..., 0]», («1|3|127|257», ))
jax.random.choice({key}, {x:1}, («1|2», ), replace=False, axis={axis})
jnp.take_along_axis({x:1}, jnp.argsort({x}, axis={axis})[..., ::-1], axis={axis})
{x:1}.at[{z:i1-1}].get(mode=«'fill'|'clip'») * {number}
""")
MIXED = {**KINDS, "pieces": (3.0, PIECES), "integers": (3.0, INTEGERS), "learned": (3.0, LEARNED)}
POSITIONS = ("0", "-1", "{z:i}", "{z:iu-0}", "1:", "::-1", "::2", "-3:-1", "..., 0", "..., ::-2", "None", "100", "-100")
METHODS = ("set({v})", "add({v})", "multiply({v})", "min({v})", "max({v})", "subtract({v})", "apply(lambda t: t * 2)")
POLICIES = ("everything_saveable", "nothing_saveable", "dots_saveable", "dots_with_no_batch_dims_saveable")
ALLOWED = "save_only_these_names('a')", "save_any_names_but_these('a')"


# --- blocks ---------------------------------------------------------------------------------------


def block(w: Writer, parameters: dict[str, Type], prefix: str, is_smooth: bool, depth: int) -> tuple[str, list[str]]:
    """Lines that use these parameters, and the names that can be read behind them, last first."""
    values = {**w.values, **parameters}
    inner = replace(w, values=values, statements=[], lanes=dict(w.lanes), prefix=prefix)
    length = 1 + w.below(3 if w.chance(0.85) else 8)
    for _ in range(3 * length):
        if w.chance((0.3, 0.25, 0)[depth]):
            structure(inner, is_smooth, depth + 1)
        else:
            inner.add_of(SMOOTH if is_smooth else MIXED)
        if len(inner.statements) >= length:
            break
    names = [n for s in inner.statements for n in s.names]
    fit = [n for n in names[::-1] if inner.values[n].size <= LARGEST]
    lines = "".join(f"    {line}\n" for s in inner.statements for line in s.text.splitlines())
    return lines, fit or list(parameters) or ["jnp.zeros(())"]


def tree(w: Writer, leaves: Sequence[str]) -> str:
    """Text of a tree with these leaves in this order, and perhaps some that hold nothing."""
    items = [*leaves]
    for _ in range(w.below(3)):
        items.insert(w.below(len(items) + 1), w.choose(["None", "()", "{}", "[None]"]))
    if len(items) == 1 and w.chance(0.5):
        return items[0]
    if len(items) > 2 and w.chance(0.3):
        items[1:] = [f"({', '.join(items[1:])},)"]
    if w.chance(0.3):
        return "{" + ", ".join(f"'{k}': {x}" for k, x in zip("abcdefgh", items)) + "}"
    return w.choose(["({},)", "[{}]"]).format(", ".join(items))


def like(text: str, leaves: Sequence[str], others: Sequence[str]) -> str:
    """The text of a tree with other leaves."""
    for k, leaf in enumerate(leaves):
        text = text.replace(leaf, f"\0{k}\0", 1)
    for k, other in enumerate(others):
        text = text.replace(f"\0{k}\0", other)
    return text


def operands(w: Writer, most: int, is_smooth: bool) -> list[str]:
    """Up to this many different values."""
    kinds = "f" if is_smooth else "biuf"
    fit = [n for n, x in w.values.items() if kind_of(x) in kinds and x.size <= LARGEST]
    if not fit:
        raise NoSuchValue("an operand")
    late = fit[-5:]
    return list(dict.fromkeys(w.choose(late if w.chance(0.6) else fit) for _ in range(1 + w.below(most))))


def placeholders(name: str, letter: str, count: int) -> list[str]:
    """Names of parameters."""
    return [f"{name}_{letter}{k}" for k in range(count)]


def unpacked(names: Sequence[str], source: str) -> str:
    """A line that takes the leaves of a tree apart."""
    return f"    {', '.join(names)}, = jax.tree.leaves({source})\n" if names else ""


def starts(w: Writer, names: Sequence[str]) -> tuple[list[str], list[Type]]:
    """Carries to begin with: values, and some Python numbers."""
    begin, types = list(names), [w.values[n] for n in names]
    if w.chance(0.3):
        text, dtype = w.choose([("0", "int32"), ("1.5", "float32"), ("True", "bool"), ("jnp.int8(3)", "int8")])
        begin.append(text)
        types.append(Type((), jnp.dtype(dtype)))
    return begin, types


def following(w: Writer, carries: Sequence[str], fit: Sequence[str], is_smooth: bool) -> list[str]:
    """The next value of each carry."""
    turn = "turned" if is_smooth else "carried"
    return [
        c if w.chance(0.1) else f"{turn}({c}, {fit[0] if w.chance(0.6) else w.choose([*fit, *carries])})"
        for c in carries
    ]


# --- loops ----------------------------------------------------------------------------------------


def scan(w: Writer, name: str, is_smooth: bool, depth: int) -> str:
    """A scan over trees, with carries that may be numbers, in either direction."""
    begin, types = starts(w, operands(w, 2, is_smooth))
    rows = [n for n in operands(w, 3, is_smooth) if w.values[n].ndim and w.values[n].shape[0] <= LONGEST]
    rows = [n for n in rows if w.values[n].shape[0] == w.values[rows[0]].shape[0]]
    c, r = placeholders(name, "c", len(begin)), placeholders(name, "r", len(rows))
    row_types = [Type(w.values[n].shape[1:], w.values[n].dtype) for n in rows]
    body, fit = block(w, dict(zip([*c, *r], [*types, *row_types])), f"{name}_s", is_smooth, depth)
    carry, xs = tree(w, c), tree(w, rows) if rows else w.choose(["None", "()", "{'a': None}"])
    out = tree(w, [w.choose(fit + c) for _ in range(w.below(3))]) if w.chance(0.8) else "None"
    options = w.choose(["", "", ", reverse=True", ", unroll=2", ", reverse=True, unroll=3", ", unroll=True"])
    length = "" if rows else f", length={w.choose([0, 1, 3, 5])}"
    return (
        f"def {name}_f(c, r):\n{unpacked(c, 'c')}{unpacked(r, 'r')}{body}"
        f"    return {like(carry, c, following(w, c, fit, is_smooth))}, {out}\n"
        f"{name}_t = lax.scan({name}_f, {like(carry, c, begin)}, {xs}{length}{options})"
    )


def fori(w: Writer, name: str, is_smooth: bool, depth: int) -> str:
    """A loop over counted rounds, whose bounds may be traced."""
    begin, types = starts(w, operands(w, 3, is_smooth))
    c = placeholders(name, "c", len(begin))
    parameters = {**dict(zip(c, types)), f"{name}_i": Type((), jnp.int32)}
    body, fit = block(w, parameters, f"{name}_s", is_smooth, depth)
    carry = tree(w, c)
    low, high = w.choose(["0", "0", "1", "jnp.int32(-1)", "5"]), w.choose(["3", "2", "0", "4", count(w), count(w)])
    return (
        f"def {name}_f({name}_i, c):\n{unpacked(c, 'c')}{body}"
        f"    return {like(carry, c, following(w, c, fit, is_smooth))}\n"
        f"{name}_t = lax.fori_loop({low}, {high}, {name}_f, {like(carry, c, begin)})"
    )


def count(w: Writer) -> str:
    """A traced number of rounds, perhaps 0 or negative."""
    fit = [n for n, x in w.values.items() if kind_of(x) in "iu" and x.size]
    if not fit:
        return "jnp.int32(2)"
    return f"(jnp.ravel({w.choose(fit)})[0].astype(jnp.int32) % 5 - {w.below(2)})"


def repeat(w: Writer, name: str, is_smooth: bool, depth: int) -> str:
    """A while loop, perhaps of no rounds."""
    begin, types = starts(w, operands(w, 2, is_smooth))
    c = [*placeholders(name, "c", len(begin)), f"{name}_i"]
    begin.append(w.choose(["0", "jnp.int8(0)", "jnp.uint32(1)", "-1"]))
    body, fit = block(w, dict(zip(c, [*types, Type((), jnp.int32)])), f"{name}_s", is_smooth, depth)
    carry = tree(w, c)
    tests = ["", "", f" & (jnp.sum({c[0]}) < {w.choose([5, 30])})", f" & ~jnp.any({c[0]} > {w.choose([2, 8])})"]
    return (
        f"def {name}_w(c):\n{unpacked(c, 'c')}    return ({name}_i < {w.choose(['3', '4', '0', count(w)])})"
        f"{w.choose(tests)}\n"
        f"def {name}_f(c):\n{unpacked(c, 'c')}{body}"
        f"    return {like(carry, c, [*following(w, c[:-1], fit, is_smooth), f'{name}_i + 1'])}\n"
        f"{name}_t = lax.while_loop({name}_w, {name}_f, {like(carry, c, begin)})"
    )


# --- branches -------------------------------------------------------------------------------------


def branch(w: Writer, name: str, is_smooth: bool, depth: int) -> str:
    """A cond or a switch whose arms return weak and strong numbers."""
    begin, types = starts(w, operands(w, 2, is_smooth))
    several = w.chance(0.4)
    lines, arms = "", [f"{name}_{letter}" for letter in "abcd"[: 1 + w.below(4) if several else 2]]
    shape = tree(w, placeholders(name, "o", len(begin) + 1))
    weak = w.choose(
        [["1.0", "jnp.float32(2)"], ["0", "jnp.int32(4)"], ["True", "jnp.any(jnp.zeros(2) > 1)"], ["1", "2"]]
    )
    for k, arm in enumerate(arms):
        p = placeholders(arm, "p", len(begin))
        body, fit = block(w, dict(zip(p, types)), f"{arm}_s", is_smooth, depth)
        results = [*following(w, p, fit, is_smooth), weak[k % 2]]
        lines += f"def {arm}({', '.join(p)}):\n{body}"
        lines += f"    return {like(shape, placeholders(name, 'o', len(begin) + 1), results)}\n"
    chooser = f"lax.switch({index(w)}, [{', '.join(arms)}]" if several else f"lax.cond({flag(w)}, {', '.join(arms)}"
    return f"{lines}{name}_t = {chooser}, {', '.join(begin)})"


def flag(w: Writer) -> str:
    """A traced truth value."""
    x = w.choose(list(w.values))
    return w.choose(
        [
            f"jnp.sum({x}) > {w.below(3)}",
            f"jnp.any({x} != 0)",
            f"jnp.size({x}) > 3",
            f"jnp.ravel(jnp.asarray({x}))[0] > 0",
        ]
    )


def index(w: Writer) -> str:
    """A traced number of a branch, perhaps none of them."""
    return w.choose(["jnp.int32(-1)", "jnp.uint8(200)", "7", "jnp.int8(1)", count(w), count(w), f"{count(w)} - 2"])


# --- functions ------------------------------------------------------------------------------------


def defined(w: Writer, name: str, is_smooth: bool, depth: int, types: Sequence[Type]) -> str:
    """A function `{name}_f` of parameters with these types."""
    p = placeholders(name, "p", len(types))
    body, fit = block(w, dict(zip(p, types)), f"{name}_s", is_smooth, depth)
    results = [w.choose(fit + p) for _ in range(w.below(3))] + [fit[0]]
    return f"def {name}_f({', '.join(p)}):\n{body}    return {tree(w, results)}\n"


def lanes(w: Writer, name: str, is_smooth: bool, depth: int) -> str:
    """A vmap over any axes of some operands."""
    args = operands(w, 3, is_smooth)
    extents = [n for a in args for n in w.values[a].shape]
    if not extents:
        raise NoSuchValue("an axis")
    n = w.choose(extents)
    if n > 300:
        raise NoSuchValue("few lanes")
    axes, types = [], []
    for a in args:
        x = w.values[a]
        fit = [k for k, s in enumerate(x.shape) if s == n]
        axis = w.choose(fit) if fit and w.chance(0.8) else None
        axes.append(axis if axis is None or w.chance(0.5) else axis - x.ndim)
        types.append(x if axis is None else Type(x.shape[:axis] + x.shape[axis + 1 :], x.dtype))
    outer = w.choose(["", "", ", out_axes=-1"])
    head = defined(w, name, is_smooth, depth, types)
    wrapped = w.choose(["{}", "jax.jit({})", "jax.checkpoint({})"]).format(f"{name}_f")
    return f"{head}{name}_t = jax.vmap({wrapped}, in_axes={tuple(axes)}{outer})({', '.join(args)})"


def compiled(w: Writer, name: str, is_smooth: bool, depth: int) -> str:
    """A function under jit, checkpoint, a custom derivative or a map."""
    args = operands(w, 3, is_smooth)
    head = defined(w, name, is_smooth, depth, [w.values[a] for a in args])
    call = ", ".join(args)
    policy = w.choose([*(f"jax.checkpoint_policies.{p}" for p in (*POLICIES, *ALLOWED)), "None"])
    calls = [
        f"jax.jit({name}_f)({call})",
        f"(jax.jit({name}_f)({call}), jax.jit({name}_f, inline=True)({call}))",
        f"jax.checkpoint({name}_f, policy={policy}, prevent_cse={w.choose(['True', 'False'])})({call})",
        f"jax.jit(lambda k, *a: [{name}_f(*a)] * k, static_argnums=0)(2, {call})",
        f"with_own_jvp({name}_f)({call})",
        f"with_own_vjp({name}_f)({call})",
        f"with_jvp(lambda k, *a: k(*a), lambda k, p, t: jax.jvp(k, p, t), nondiff_argnums=(0,))({name}_f, {call})",
        f"with_vjp(lambda k, *a: k(*a), lambda k, *a: jax.vjp(k, *a), lambda k, r, g: r(g), nondiff_argnums=(0,))({name}_f, {call})",
        f"jax.jit(lambda *a: jax.vmap({name}_f)(*[jnp.stack([t, t[::-1] if t.ndim else t + t]) for t in a]))({call})",
        f"lax.map(lambda a: {name}_f(*a), tuple(jnp.stack([t, t, t]) for t in ({call},)), batch_size={w.choose(['2', '3', 'None'])})",
    ]
    return f"{head}{name}_t = {w.choose(calls)}"


def derivative(w: Writer, name: str, is_smooth: bool, depth: int) -> str:
    """A derivative of any kind, whose linear function is used again."""
    if not is_smooth:
        return compiled(w, name, is_smooth, depth)
    args = operands(w, 3, True)
    head = defined(w, name, True, depth, [w.values[a] for a in args])
    f, call = f"{name}_f", ", ".join(args)
    numbers = tuple(range(len(args)))
    calls = [
        f"jax.grad(scalar({f}), {numbers})({call})",
        f"jax.value_and_grad(lambda *a: (total({f}(*a)), {f}(*a)), {numbers}, has_aux=True)({call})",
        f"(lambda y, pull: (pull(along(y)), pull(y), jax.vmap(pull)(jax.tree.map(lambda t: jnp.stack([t, -t]), y))))(*jax.vjp(smooth({f}), {call}))",
        f"(lambda y, push: (push(*along(({call},))), jax.vmap(push)(*[jnp.stack([t, 2 * t]) for t in ({call},)])))(*jax.linearize(smooth({f}), {call}))",
        f"jax.jvp(jax.grad(scalar({f}), {numbers}), ({call},), along(({call},)))[1]",
        f"jax.jvp(smooth({f}), ({call},), along(({call},)))",
        f"jax.grad(lambda *a: sum(jnp.sum(d * d) for d in jax.grad(scalar({f}), {numbers})(*a)), {numbers})({call})",
        f"jax.linear_transpose(lambda *t: jax.jvp(smooth({f}), ({call},), t)[1], {call})(along(smooth({f})({call})))",
    ]
    if sum(w.values[a].size for a in args) <= 30:
        calls += [
            f"jax.{w.choose(['jacfwd', 'jacrev'])}(smooth({f}), {numbers})({call})",
            f"jax.hessian(scalar({f}), {numbers})({call})",
        ]
    wrapped = w.choose(["{}", "jax.jit(lambda {call}: {})({call})"])
    return f"{head}{name}_t = {wrapped.replace('{call}', call).replace('{}', w.choose(calls))}"


def updates(w: Writer, name: str, is_smooth: bool, depth: int) -> str:
    """Updates of an array, whose earlier values are read afterwards."""
    fit = [n for n in operands(w, 4, is_smooth) if w.values[n].ndim]
    if not fit:
        raise NoSuchValue("an axis")
    x = w.choose(fit)
    versions, lines = [x], ""
    for k in range(2 + w.below(3)):
        base = w.choose([versions[-1], versions[-1], x])
        value = w.choose(
            [f"{versions[0]}.ravel()[:1].sum()", "2", "1", "-1", f"{base}[0]", f"{base}.ravel()[-1:].sum()"]
        )
        position = w.filled(w.choose(POSITIONS))
        method = w.choose(METHODS).replace("{v}", f"{value}{w.choose(['', '', MODES[0], MODES[1]])}")
        version = f"{name}_u{k}"
        lines += f"{version} = {base}.at[{position}].{method}\n"
        versions.append(version)
    reads = [f"{a} - {b}" if kind_of(w.values[x]) != "b" else a for a, b in pairwise(versions)]
    return f"{lines}{name}_t = [{', '.join([*versions[1:], *reads])}]"


MODES = (", mode='drop'", ", mode='clip'")
STRUCTURES: tuple[Callable[[Writer, str, bool, int], str], ...] = (
    scan,
    scan,
    fori,
    repeat,
    branch,
    branch,
    lanes,
    lanes,
    compiled,
    compiled,
    derivative,
    derivative,
    updates,
)


def structure(w: Writer, is_smooth: bool, depth: int = 0) -> bool:
    """Add a statement that holds blocks. Returns whether jax accepts it."""
    name, kind = w.name(), w.choose(STRUCTURES)
    try:
        text = kind(w, name, is_smooth, depth)
    except NoSuchValue:
        return False
    result = w.choose([f"leaf({name}_t, {w.below(4)})", f"flat({name}_t)" if not depth else f"leaf({name}_t, 0)"])
    return w.bind(Statement((name,), f"{text}\n{name} = {result}", kind.__name__))
