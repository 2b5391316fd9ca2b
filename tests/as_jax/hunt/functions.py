"""Statements that define a function and call it through transformations and loops, in any order.

The chain is chosen from outside to inside, as the arguments of the inner function depend on it: a
vmap takes an axis away, a scan a row. The body is then written on the values of one lane or row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.as_jax.hunt.tables import COLLECTIVES, KINDS, SMOOTH
from tests.as_jax.hunt.text import Statement
from tests.as_jax.hunt.writer import Type, Writer, kind_of


@dataclass(frozen=True, slots=True)
class Link:
    """One transformation: text with {} for the function, and the arguments of that function."""

    text: str
    args: tuple[Type, ...]
    axis: tuple[str, int] | None = None


Transformation = Callable[[Writer, tuple[Type, ...]], Link | None]


def same(*choices: str) -> Transformation:
    """A transformation that does not change the arguments of the function."""

    def link(w: Writer, args: tuple[Type, ...]) -> Link:
        text = w.choose(choices)
        numbers = [k for k, x in enumerate(args) if kind_of(x) == "f"] or [0]
        several = w.choose([str(numbers[0]), str(tuple(numbers))])
        return Link(text.replace("NUMBERS", several).replace("ARITY", str(len(args))), args)

    return link


def without_axis(x: Type, axis: int) -> Type:
    """The type of one element along an axis."""
    return Type(x.shape[:axis] + x.shape[axis + 1 :], x.dtype)


def mapped(w: Writer, args: tuple[Type, ...]) -> Link | None:
    """vmap along any axis of some arguments that have one extent."""
    extents = [n for x in args for n in x.shape if n]
    if not extents:
        return None
    n = w.choose(extents)
    axes: list[int | None] = []
    for x in args:
        fit = [k for k, s in enumerate(x.shape) if s == n]
        axes.append(w.choose(fit) if fit and w.chance(0.8) else None)
    if n > 300 or all(a is None for a in axes):
        return None
    name = w.choose(["", "i", "j"])
    name_argument = f", axis_name='{name}'" if name else ""
    in_axes = tuple(a if a is None or w.chance(0.6) else a - x.ndim for a, x in zip(axes, args))
    inner = tuple(x if a is None else without_axis(x, a) for x, a in zip(args, axes))
    out = w.choose(["", "", ", out_axes=-1" if w.chance(0.3) else ""])
    return Link(f"jax.vmap({{}}, in_axes={in_axes}{out}{name_argument})", inner, (name, n) if name else None)


def scanned(w: Writer, args: tuple[Type, ...]) -> Link | None:
    """A scan over rows of the second argument with the first as the carry."""
    if len(args) < 2 or not args[1].ndim or not 0 < args[1].shape[0] <= 40:
        return None
    options = w.choose(["", ", reverse=True", ", unroll=2", ", unroll=3, reverse=True", ", unroll=True"])
    more = ", *more" if len(args) > 2 else ""
    head = f"lambda c, r{', *more' if more else ''}: "
    step = f"lambda s, q: (lambda y: (onto(s, y), y))(({{}})(s, q{more}))"
    return Link(f"({head}lax.scan({step}, c, r{options}))", (args[0], without_axis(args[1], 0), *args[2:]))


def looped(w: Writer, args: tuple[Type, ...]) -> Link | None:
    further = ", *more" if len(args) > 1 else ""
    bound = w.choose(["3", "2", "jnp.int32(3)", "jnp.uint8(2)"])
    body = f"onto(s, ({{}})(s{further}))"
    texts = [
        f"(lambda c{further}: lax.fori_loop({w.choose(['0', '-1', '1'])}, {bound}, lambda i, s: {body}, c))",
        f"(lambda c{further}: lax.while_loop(lambda si: si[1] < {bound}, lambda si: ((lambda s: {body})(si[0]), si[1] + 1), (c, 0))[0])",
    ]
    return Link(w.choose(texts), args)


def branched(w: Writer, args: tuple[Type, ...]) -> Link | None:
    test = w.choose(["jnp.sum(a[0]) > 0", "a[0].size > 3", "jnp.any(a[-1] > 0)", "jnp.asarray(True)"])
    index = w.choose(["jnp.sum(a[0] > 0) % 4 - 1", "jnp.int32(2)", "jnp.sum(a[-1] > 0.5).astype(jnp.uint8)"])
    other = w.choose(["jax.tree.map(lambda t: t * 2, ({})(*b))", "jax.tree.map(jnp.zeros_like, ({})(*b))"])
    texts = [
        f"(lambda *a: lax.cond({test}, {{}}, lambda *b: {other}, *a))",
        f"(lambda *a: lax.cond({test}, lambda *b: {other}, {{}}, *a))",
        f"(lambda *a: lax.switch({index}, [{{}}, lambda *b: {other}, {{}}], *a))",
    ]
    return Link(w.choose(texts), args)


def rows_mapped(w: Writer, args: tuple[Type, ...]) -> Link | None:
    rows, *others = args
    if not rows.ndim or not 0 < rows.shape[0] <= 40:
        return None
    further = ", *more" if others else ""
    size = w.choose(["", ", batch_size=2", ", batch_size=3"])
    return Link(
        f"(lambda c{further}: lax.map(lambda r: ({{}})(r{further}), c{size}))", (without_axis(rows, 0), *others)
    )


PLAIN: tuple[Transformation, ...] = (
    same("jax.jit({})", "jax.checkpoint({})", "jax.jit({}, donate_argnums=())", "jax.jit({}, inline=True)"),
    same("with_own_jvp({})", "with_own_vjp({})", "jax.named_call({})"),
    mapped,
    mapped,
    scanned,
    looped,
    branched,
    rows_mapped,
)
DERIVATIVES: tuple[Transformation, ...] = (
    same("jax.grad(scalar({}), NUMBERS)", "jax.value_and_grad(scalar({}), NUMBERS)"),
    same("jax.grad(scalar({}), NUMBERS)", "jax.grad(jax.checkpoint(scalar({})), NUMBERS)"),
    same("(lambda *a: jax.jvp(smooth({}), a, along(a)))", "(lambda *a: jax.jvp(smooth({}), a, along(a))[1])"),
    same("(lambda *a: (lambda y, back: back(along(y)))(*jax.vjp(smooth({}), *a)))"),
    same("(lambda *a: (lambda y, push: (y, push(*along(a))))(*jax.linearize(smooth({}), *a)))"),
)
JACOBIANS: tuple[Transformation, ...] = (
    same("jax.jacfwd(smooth({}), NUMBERS)", "jax.jacrev(smooth({}), NUMBERS)", "jax.hessian(scalar({}), NUMBERS)"),
)


def chain(w: Writer, args: tuple[Type, ...], is_smooth: bool) -> list[Link]:
    """One to four transformations, outermost first."""
    links: list[Link] = []
    for _ in range(1 + w.below(4)):
        link = w.choose(_choices(w, args, is_smooth, links))(w, args)
        if link is not None:
            links.append(link)
            args = link.args
    return links


def _choices(w: Writer, args: Sequence[Type], is_smooth: bool, links: Sequence[Link]) -> Sequence[Transformation]:
    derivatives = sum("scalar(" in link.text or "smooth(" in link.text for link in links)
    if not is_smooth or derivatives > 1 or w.chance(0.5):
        return PLAIN
    small = sum(x.size for x in args) <= 30 and not derivatives
    return (*DERIVATIVES, *JACOBIANS) if small else DERIVATIVES


def transformed_function(w: Writer, is_smooth: bool) -> bool:
    """Define a function on existing values, and call it through a chain."""
    kinds = "f" if is_smooth else "biuf"
    fit = [n for n, x in w.values.items() if kind_of(x) in kinds and x.size <= 3000]
    if not fit:
        return False
    operands = [w.choose(fit) for _ in range(1 + w.below(3))]
    links = chain(w, tuple(w.values[n] for n in operands), is_smooth)
    if not links:
        return False
    name = w.name()
    body = _body(w, links, f"{name}_", len(operands), is_smooth)
    if body is None:
        return False
    call = f"{name}_f"
    for link in reversed(links):
        call = link.text.replace("{}", call)
    leaves = f"{name}_leaves"
    lines = [*body, f"{leaves} = jax.tree.leaves({call}({', '.join(operands)}))", f"{name} = {leaves}[0]"]
    if w.chance(0.6):
        lines[-1] = f"{name} = flat({leaves})"
    return w.bind(Statement((name,), "\n".join(lines), " of ".join(_word(link) for link in links)))


def _word(link: Link) -> str:
    words = ("vmap", "scan", "fori_loop", "while_loop", "cond", "switch", "lax.map", "jacfwd", "jacrev", "hessian")
    words = (*words, "value_and_grad", "grad", "jvp", "vjp", "linearize", "checkpoint", "jit", "named_call")
    return next(word for word in words if word in link.text)


def _body(w: Writer, links: Sequence[Link], prefix: str, arity: int, is_smooth: bool) -> list[str] | None:
    """The lines of the function inside a chain; None if nothing could be written."""
    axes = dict(link.axis for link in links if link.axis)
    inner = Writer(w.rng, w.x64, lanes=axes, prefix=prefix)
    for k, x in enumerate(links[-1].args):
        inner.values[f"{prefix}{k}"] = x
    parameters = list(inner.values)
    if len(parameters) != arity:
        return None
    tables = SMOOTH if is_smooth else KINDS
    length = 1 + w.below(4)
    for _ in range(5 * length):
        if axes and w.chance(0.4):
            inner.add(w.choose(COLLECTIVES).replace("AXIS", w.choose(list(axes))), "collective")
        else:
            inner.add_of(tables)
        if len(inner.statements) >= length:
            break
    if not inner.statements:
        return None
    names = [n for s in inner.statements for n in s.names]
    results = [n for n in names[:-1] if w.chance(0.3)] + names[-1:]
    lines = [f"    {line}" for s in inner.statements for line in s.text.splitlines()]
    return [f"def {prefix}f({', '.join(parameters)}):", *lines, f"    return {', '.join(results)},"]
