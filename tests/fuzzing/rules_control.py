"""Steps with bodies: loops, scans, branches, lanes, nested jits, host calls."""

from __future__ import annotations

from tests.fuzzing.maker import Maker
from tests.fuzzing.rules_views import Made, Rule


def _changed(m: Maker, x: str, s: str, index: str) -> str:
    """An expression of `s` with the shape of `s`, which is that of x."""
    y, k, axis = m.like(x), m.number(x), m.axis(x) if m.shape(x) else None
    texts = [f"{s} + {y}", f"{y} - {s}", f"{s} * {k}", f"rnp.maximum({s}, {y})"]
    if axis is not None:
        texts += [
            f"rnp.flip({s}, {axis})",
            f"rnp.roll({s}, 1, {axis})",
            f"{s} + {y}[::-1]",
            f"rnp.sum({s}, {axis}, keepdims=True) + {y}",
            f"rnp.cumsum({s}, {axis})",
        ]
        if m.shape(x)[0] and not m.is_symbolic:
            size = m.shape(x)[0]
            texts += [
                f"{s}.at[{index} % {size}].set({k})",
                f"{s}.at[0].set({y}[-1])",
                f"{s} + {y}[{index} % {size}]",
                f"{s} + {s}[{index} % {size}]",
                f"{s}.at[{index} % {size}].add({s}[0])",
                f"{s}.at[1:].set({s}[:-1])",
            ]
        if len(m.shape(x)) == 2:
            texts += [f"{s} @ rnp.sign({y}.T @ {y})", f"rnp.sign({y} @ {y}.T) @ {s}"]
        if len(m.shape(x)) == 2 and m.shape(x)[0] == m.shape(x)[1]:
            texts += [f"{s}.T", f"{s} + rnp.diag({s})", f"{s} @ rnp.sign({y})"]
        if m.kind(x) in "if":
            texts.append(f"rnp.sort({s}, {axis})")
    return m.choose(texts)


def loop_body(m: Maker, x: str, s: str, index: str) -> str:
    """An expression with the shape and dtype of x, and small values."""
    text = _changed(m, x, s, index)
    if m.chance(0.4):
        text = f"(lambda t: {_changed(m, x, 't', index)})({text})"
    bounded_text = f"rnp.tanh({text})" if m.values == "smooth" else f"rnp.clip({text}, -5, 5)"
    return f"{bounded_text}.astype({x}.dtype)"


def loop_state(m: Maker) -> str | None:
    return m.pick(0, "if" if m.values != "smooth" else "f", 3)


def counted(m: Maker) -> Made:
    x = loop_state(m)
    rounds = m.choose([1, 2, 3, 5])
    return x and f"lax.fori_loop(0, {rounds}, lambda i, s: {loop_body(m, x, 's', 'i')}, {x})"


def counted_pair(m: Maker) -> Made:
    """Two carries that change places."""
    x = loop_state(m)
    if x is None:
        return None
    y = m.like(x)
    new = (
        f"({loop_body(m, x, 's[0]', 'i')} + s[1]).astype({y}.dtype)"
        if m.values == "smooth"
        else (f"rnp.clip(({loop_body(m, x, 's[0]', 'i')}) - s[1], -5, 5).astype({y}.dtype)")
    )
    pair = m.choose([f"(s[1].astype({x}.dtype), {new})", f"({loop_body(m, x, 's[0]', 'i')}, {new})"])
    return f"lax.fori_loop(0, {m.choose([2, 3, 4])}, lambda i, s: {pair}, ({x}, {y}))", 2


def looped(m: Maker) -> Made:
    x = loop_state(m)
    if x is None:
        return None
    limit, body = m.choose([0, 1, 3]), loop_body(m, x, "s[1]", "s[0]")
    turn = f"lambda s: (s[0] + 1, {body})"  # the oracle knows no weak numbers: it starts from i32
    return f"lax.while_loop(lambda s: s[0] < {limit}, {turn}, (rnp.int32(0), {x}))", 2


def scanned(m: Maker) -> Made:
    """Rows of one value, carried into a value of the rows' shape or any other."""
    x, c = m.pick(1, "if", 3), loop_state(m)
    if x is None or c is None or not m.shape(x)[0]:
        return None
    back = m.choose(["", ", reverse=True"])
    if m.chance(0.5):  # the carry is a row
        kind = f"{x}.dtype"
        steps = ["c + r", "c - r", "rnp.maximum(c, r)", "r - c[::-1]", "c.at[0].add(r[-1])"]
        step = m.choose(steps)
        bounded_text = f"rnp.tanh({step})" if m.values == "smooth" else f"rnp.clip({step}, -5, 5)"
        out = m.choose(["c", "c + r", "rnp.sum(c)", "r * 2", "rnp.sum(c * r)"])
        body = f"lambda c, r: ({bounded_text}.astype({kind}), {out})"
        return f"lax.scan({body}, rnp.zeros({x}.shape[1:], {kind}), {x}{back})", 2
    out = m.choose(["rnp.sum(r)", "r", "rnp.max(c)", "c", "r + rnp.sum(c)"])
    body = f"lambda c, r: ({loop_body(m, c, 'c', '2')}, {out})"
    return f"lax.scan({body}, {c}, {x}{back})", 2


def branched(m: Maker) -> Made:
    x, p = loop_state(m), m.pick(0, "if")
    if x is None or p is None:
        return None
    branches = ", ".join(f"lambda s: {loop_body(m, x, 's', '1')}" for _ in range(2))
    condition = f"rnp.sum({p}) > {m.below(3)}"
    if m.chance(0.5):
        return f"lax.cond({condition}, {branches}, {x})"
    return f"lax.switch(({condition}).astype(rnp.int32), [{branches}], {x})"


def mapped(m: Maker) -> Made:
    x = m.pick(1, "if", 3)
    if x is None or any(0 in shape for shape in m.shapes(x)):
        return None
    axis = m.below(len(m.shape(x)))
    rows = ["rnp.sum(r)", "r * 2", "rnp.cumsum(r)", "rnp.sort(r)", "rnp.sum(r * r)", "r[::-1]"]
    rows += [f"r + {m.number(x)}", f"rnp.outer(r, {x})", "rnp.max(r, initial=0)", "r - r.T"]
    rows += ["rnp.diag(rnp.outer(r, r))"]
    row = m.choose(rows)
    if axis == 0 and m.chance(0.4):
        return f"lax.map(lambda r: {row}, {x})"
    out = m.choose(["", "", ", out_axes=-1"])
    return f"rune.vmap(lambda r: {row}, in_axes={axis}{out})({x})"


def nested(m: Maker) -> Made:
    x = m.pick(0, "if", 3)
    if x is None:
        return None
    wrap = m.choose(["jit", "jit", "checkpoint"])
    return f"rune.{wrap}(lambda s: {loop_body(m, x, 's', '1')})({x})"


def called_back(m: Maker) -> Made:
    """A host call with a result of another shape and dtype."""
    x = m.pick(0, "if", 3)
    if x is None:
        return None
    result = f"rune.ShapeDtypeStruct({x}.shape, {x}.dtype)"
    host = "lambda a: a[::-1] if a.ndim else a"
    return f"rune.pure_callback({host}, {result}, {x}, vmap_method='sequential')"


POLYMORPHIC: tuple[Rule, ...] = (counted, counted_pair, looped, scanned, branched, mapped, nested)
SIZED: tuple[Rule, ...] = (called_back,)
