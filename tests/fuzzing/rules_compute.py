"""Steps that compute: elementwise, reductions, cumulative, products, sorting, convolutions."""

from __future__ import annotations

from tests.fuzzing.maker import Maker
from tests.fuzzing.rules_views import Made, Rule

TYPES = ("float32", "float32", "float64", "bfloat16", "float16", "int8", "int32", "uint8", "int16")


def arithmetic(m: Maker) -> Made:
    x = m.pick()
    y = m.choose([m.like(x), m.number(x)]) if x else ""
    if x is None or (m.kind(x) == "b" and m.chance(0.8)):
        return None
    return f"{x} {m.choose(['+', '-', '*'])} {y}"


def broadcast_arithmetic(m: Maker) -> Made:
    """Operands of different shapes and dtypes."""
    x, y = m.pick(1, "iuf"), m.pick(0, "biuf")
    if x is None or y is None:
        return None
    op = m.choose(["+", "-", "*"])
    return m.choose([f"{x} {op} {y}", f"{x}[..., None] {op} {y}", f"{y} {op} {x}.T"])


def extremum(m: Maker) -> Made:
    x = m.pick(0, "biuf")
    name = m.choose(["maximum", "minimum"])
    return x and f"rnp.{name}({x}, {m.choose([m.like(x), m.number(x)])})"


def chosen(m: Maker) -> Made:
    x = m.pick(0, "iuf")
    if x is None:
        return None
    c, op, other = m.like(x, "biuf"), m.choose([">", "<", "=="]), m.choose([m.like(x), "0", "2"])
    return f"rnp.where({c} {op} {m.number(c)}, {x}, {other})"


def compared(m: Maker) -> Made:
    x = m.pick(0, "iuf")
    return x and f"{x} {m.choose(['>', '<=', '==', '!='])} {m.choose([m.like(x), m.number(x)])}"


def unary(m: Maker) -> Made:
    x = m.pick(0, "iuf")
    name = m.choose(["abs", "sign", "square", "floor", "negative", "isfinite"])
    return x and f"rnp.{name}({x})"


def divided(m: Maker) -> Made:
    x = m.pick(0, "iuf")
    return x and f"{x} {m.choose(['%', '//'])} {m.choose([2, 3, 5])}"


def bitwise(m: Maker) -> Made:
    x = m.pick(0, "iu")
    y = x and m.choose([m.like(x), "3"])
    return x and m.choose([f"{x} & {y}", f"{x} | {y}", f"{x} ^ {y}", f"{x} >> 1", f"~{x}"])


def logical(m: Maker) -> Made:
    x = m.pick(0, "b")
    return x and m.choose([f"~{x}", f"{x} & {m.like(x)}", f"{x} ^ {m.like(x)}"])


def converted(m: Maker) -> Made:
    x = m.pick(0, "biuf")
    if x is None:
        return None
    dtype_name = m.choose(TYPES)
    if m.kind(x) == "f" and (dtype_name == "uint8" or m.values == "hard") and "int" in dtype_name:
        return f"(rnp.abs(rnp.where(rnp.isfinite({x}), {x}, 5)) % 9).astype(rnp.{dtype_name})"
    return f"{x}.astype(rnp.{dtype_name})"


def complex_parts(m: Maker) -> Made:
    x = m.pick(0, "c")
    if x is None:
        y = m.pick(0, "f")
        return y if y is None or m.values == "hard" else f"{y} + 1j * {m.like(y)}"
    return m.choose([f"rnp.conj({x})", f"{x}.real", f"{x}.imag", f"{x} * rnp.conj({m.like(x)})"])


def _axes(m: Maker, x: str) -> str:
    ndim = len(m.shape(x))
    several = tuple(int(k) for k in m.rng.permutation(ndim)[: 1 + m.below(ndim)])
    return m.choose(["None", "0", str(m.axis(x)), str(tuple(several)), str(tuple(several))])


def reduced(m: Maker) -> Made:
    x = m.pick(1)
    if x is None:
        return None
    names = {"b": ["any", "all", "sum"], "c": ["sum"]}.get(
        m.kind(x), ["sum", "sum", "sum", "max", "min", "any", "count_nonzero"]
    )
    name = m.choose(names[:5] if m.values == "smooth" else names)
    keep, suffix = m.choose(["", ", keepdims=True"]), m.choose(["", "", ".T"])
    return f"rnp.{name}({x}{suffix}, {_axes(m, x)}{keep})"


def reduced_twice(m: Maker) -> Made:
    """A reduction of a reduction, or of an expression with one."""
    x = m.pick(2, "iuf")
    if x is None:
        return None
    a, b = m.axis(x), m.axis(x)
    first = f"rnp.{m.choose(['sum', 'max', 'min'])}({x}, {a}, keepdims=True)"
    return m.choose(
        [
            f"rnp.{m.choose(['sum', 'max'])}({first}, {b})",
            f"rnp.sum({x} - {first}, {b})",
            f"rnp.sum(rnp.abs({x} - {first}) * {m.like(x)}, {_axes(m, x)})",
        ]
    )


def reduced_across(m: Maker) -> Made:
    """Sums against the order in memory: lanes run along what is reduced last."""
    x = m.pick(2, "iuf", 3)
    name = m.choose(["sum", "sum", "max", "min"])
    if x is None:
        return None
    if m.chance(0.5):
        return f"rnp.{name}({x}.T)"
    return m.choose([f"rnp.{name}({x}.T, 0)", f"rnp.{name}({x}, 0)", f"rnp.{name}({x}.swapaxes(-1, -2), -1)"])


def reduced_in_part(m: Maker) -> Made:
    x = m.pick(1, "iuf")
    return x and f"rnp.sum({x}, {m.axis(x)}, where={m.like(x, 'biuf')} > 0)"


def position_of_extremum(m: Maker) -> Made:
    x = m.pick(1, "biuf")
    return x and f"rnp.{m.choose(['argmax', 'argmin'])}({x}, {m.choose(['None', m.axis(x)])})"


def cumulative(m: Maker) -> Made:
    x = m.pick(1, "iuf")
    if x is None:
        return None
    axis, back = m.below(len(m.shape(x))), m.choose(["", ", reverse=True"])
    if m.chance(0.2):
        return f"lax.cumprod(rnp.sign({x}), {axis}{back})"
    texts = [
        f"rnp.cumsum({x}, {m.choose([axis, 'None'])})",
        f"lax.{m.choose(['cumsum', 'cummax', 'cummin'])}({x}, {axis}{back})",
    ]
    if not m.is_symbolic:
        texts.append(f"lax.associative_scan({m.choose(['lax.add', 'lax.max'])}, {x}{back})")
    return m.choose(texts)


def product(m: Maker) -> Made:
    x, y = m.pick(1, "iufc", 3), m.pick(1, "iufc", 3)
    if x is None or y is None:
        return None
    if m.chance(0.3) and len(m.shape(x)) >= 2:
        return m.choose([f"{x} @ {x}.swapaxes(-1, -2)", f"{x}.swapaxes(-1, -2) @ {x}"])
    return m.choose(
        [
            f"{x} @ {y}",
            f"{x} @ {y}.T",
            f"rnp.dot({x}, {y})",
            f"rnp.vdot({x}, {x})",
            f"rnp.outer({x}, {y})",
            f"rnp.inner({x}, {y})",
            f"rnp.kron({x}, {y})",
        ]
    )


def einsum(m: Maker) -> Made:
    """Letters by extent, so that equal extents may share one, within an operand as well."""
    operands = [x for x in (m.pick(1, "iufc", 4), m.pick(1, "iufc", 3)) if x]
    operands = operands[: 1 + m.below(2)]
    if not operands or (m.values == "hard" and any(0 in m.shape(x) for x in operands)):
        return None  # a NaN times a sum of nothing is a matter of order
    letters: dict[tuple[int, ...], list[str]] = {}
    free = iter("abcdefgh")
    specs = []
    for x in operands:
        spec = ""
        for sizes in zip(*m.shapes(x)):
            known = letters.setdefault(sizes, [])
            if not known or m.chance(0.3):
                known.append(next(free))
            spec += m.choose(known)
        specs.append(spec)
    axes = sorted(set("".join(specs)))
    m.rng.shuffle(axes)
    out = "".join(axes[: m.below(min(len(axes), 3) + 1)])
    return f"rnp.einsum('{','.join(specs)}->{out}', {', '.join(operands)})"


def trace(m: Maker) -> Made:
    x = m.pick(2, "iufc")
    return x and f"rnp.trace({x}, {m.below(3) - 1})"


def sorted_(m: Maker) -> Made:
    x = m.pick(1, "iuf")
    axis = m.axis(x) if x else 0
    if x is None:
        return None
    return m.choose(
        [
            f"rnp.sort({x}, {axis})",
            f"rnp.argsort({x}, {axis}, stable=True)",
            f"rnp.sort({x}.reshape(-1)).reshape({x}.shape)",
            f"rnp.median({x}, {axis})",
        ]
    )


def best(m: Maker) -> Made:
    x = m.pick(1, "if")
    if x is None or not m.shape(x)[-1] or m.values == "hard":
        return None
    return f"lax.top_k({x}, {1 + m.below(min(m.shape(x)[-1], 4))})", 2


def searched(m: Maker) -> Made:
    x, y = m.pick(1, "iuf", 1), m.pick(0, "iuf", 2)
    if x is None or y is None or m.dtype(x) != m.dtype(y) or m.values == "hard":
        return None
    return f"rnp.searchsorted(rnp.sort({x}), {y}, side='{m.choose(['left', 'right'])}')"


def convolved(m: Maker) -> Made:
    x, y = m.pick(1, "if", 1), m.pick(1, "if", 1)
    if x is None or y is None or m.envs[0][y].size > 40 or m.values == "hard":
        return None
    return f"rnp.convolve({x}, {y}, '{m.choose(['full', 'same', 'valid'])}')"


def convolution(m: Maker) -> Made:
    """Two small images of the elements of two values."""
    x, y = m.pick(2, "f", 3), m.pick(2, "f", 3)
    if x is None or y is None or m.dtype(x) != m.dtype(y) or m.values == "hard":
        return None
    first = f"rnp.resize({x}, (2, 2, 5, {m.choose([4, 7])}))"
    second = f"rnp.resize({y}, (4, {m.choose([1, 2])}, 2, 3))"
    groups = 2 if ", (4, 1" in second else 1
    dilations = [m.choose([(1, 1), (1, 1), (2, 1), (2, 3)]) for _ in range(2)]
    return (
        f"lax.conv_general_dilated({first}, {second}, {m.choose([(1, 1), (2, 1)])}, "
        f"{m.choose([((0, 0), (1, 2)), ((1, 1), (0, 1))])}, {dilations[0]}, {dilations[1]}, "
        f"feature_group_count={groups})"
    )


def pooled(m: Maker) -> Made:
    x = m.pick(1, "if", 3)
    if x is None or m.values == "hard":
        return None
    shape = m.shape(x)
    window = tuple(1 + m.below(min(max(d, 1), 3)) for d in shape)
    strides = tuple(1 + m.below(2) for _ in shape)
    widths = tuple((m.below(2), m.below(2)) for _ in shape)
    name, start = m.choose([("add", "0"), ("max", "-9")])
    start = f"rnp.asarray({start}, {x}.dtype)"
    return f"lax.reduce_window({x}, {start}, lax.{name}, {window}, {strides}, {widths})"


def smooth_unary(m: Maker) -> Made:
    x = m.pick(0, "f")
    if x is None:
        return None
    names = ["sin", "cos", "tanh", "arctan", "square", "negative", "cbrt"]
    texts = [f"rnp.{m.choose(names)}({x})", f"rnp.exp(rnp.tanh({x}))", f"rune.nn.sigmoid({x})"]
    return m.choose([*texts, f"rnp.sqrt(1 + {x} * {x})", f"rnp.log1p({x} * {x})"])


def normalised(m: Maker) -> Made:
    x = m.pick(1, "f")
    if x is None or 0 in m.shape(x):
        return None
    axis = m.axis(x)
    return m.choose(
        [
            f"rune.nn.softmax({x}, {axis})",
            f"{x} - rnp.mean({x}, {axis}, keepdims=True)",
            f"{x} / (1 + rnp.sum({x} * {x}, {axis}, keepdims=True))",
            f"rnp.var({x}, {axis})",
            f"rnp.mean({x}, {_axes(m, x)})",
        ]
    )


SMOOTH: tuple[Rule, ...] = (arithmetic, arithmetic, smooth_unary, smooth_unary, normalised, normalised, product, einsum)
POLYMORPHIC: tuple[Rule, ...] = (
    arithmetic,
    arithmetic,
    arithmetic,
    broadcast_arithmetic,
    extremum,
    chosen,
    chosen,
    compared,
    unary,
    divided,
    bitwise,
    logical,
    converted,
    converted,
    reduced,
    reduced,
    reduced_twice,
    reduced_across,
    reduced_across,
    reduced_in_part,
    position_of_extremum,
    cumulative,
    product,
    product,
    einsum,
    trace,
    sorted_,
)
SIZED: tuple[Rule, ...] = (complex_parts, best, searched, convolved, convolution, pooled)
LINEAR: tuple[Rule, ...] = (arithmetic, reduced, cumulative, product, einsum, trace)
