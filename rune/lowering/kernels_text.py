"""Kernels as text, and back: parse(to_text(k)) == k, for checked kernels.

    program  := block {kernel} {reason}
    block    := "kernels" name "(" [binding {"," binding}] ")" ["sizes" size {"," size}] "{"
                {step} "return" [result {"," result}] "}"
    binding  := value ":" type                          value := "%" number
    result   := value ":" type                          the value, under the type of the result
    step     := binding {"," binding} "=" name [value {"," value}] [parameters]
              | binding "=" "call" name value {"," value} parameters
              | bindings "=" "repeat" (dim | "while") "consts" number values "{" {block} "}"
              | bindings "=" "choose" values "{" {block} "}"
    reason   := "#" ...                                 why kernels were not fused: a comment
    kernel   := "kernel" name "(" [buffer {"," buffer}] ")" "->" "(" buffer {"," buffer} ")"
                ["in" "place" name "=" name] ["sizes" size {"," size}]
                "{" (loop | {stmt} | "code" "{" code "}") "}"
    buffer   := name ":" type
    loop     := "for" axes "parallel" "{" {stmt} "}"
    axes     := axis {"," axis}                         axis := name "in" dim
    stmt     := name ":" dtype [range] "=" expr         Let
              | name "=" combine ["contract"] axes tail         Reduce
              | "fill" name "[" axes "]" tail                   Fill
              | ["ordered"] "write" name "[" dims "]" [combine] ["over" axes] tail
              | "scan" name "[" dims "]" combine axis tail      Scan
              | "stream" axes "{" {part} ["peak" name "=" expr] {part} {total} "}"
    part     := name ":" dtype [range] "=" expr | name "=" combine ["contract"] axes tail
    total    := "total" name ["[" axes "]"] "degree" number (sum | "{" {let} sum "}")
    sum      := ":" expr ["by" expr]
    tail     := ":" expr ["if" expr] | "{" {let} ":" expr ["if" expr] "}"
    combine  := "sum" | "prod" | "max" | "min" | "all" | "any" | "xor"

Expressions, sizes and ranges are those of kernel code (kernel/text.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rune import dtypes
from rune.core.types import ArrayType
from rune.dims import Dim, Size, symbols_within
from rune.lowering.kernel.expr import Expr
from rune.lowering.kernel.nodes import Let
from rune.lowering.kernel.rewrite import expr_sizes, names_bound, sizes_in, walk_expr
from rune.lowering.kernel.text import code_lines, expr_text, range_text
from rune.lowering.kernels import (
    Axis,
    Buffer,
    Choose,
    Fill,
    Invoke,
    Kernel,
    KernelProgram,
    KernelStep,
    Reduce,
    Repeat,
    Routine,
    Scan,
    Statement,
    Stream,
    Sum,
    Value,
    Write,
    expressions,
    inner_axes,
    inner_lets,
    inner_programs,
)

COMBINE_WORDS = {"add": "sum", "mul": "prod", "max": "max", "min": "min", "and": "all", "or": "any", "xor": "xor"}


def to_text(kernel: Kernel) -> str:
    """The kernel in the grammar above."""
    symbols = kernel_symbols(kernel)
    head = f"kernel {kernel.name}({_buffers(kernel.inputs)}) -> ({_buffers(kernel.outputs)})"
    head += "".join(f" in place {a} = {b}" for a, b in kernel.in_place)
    lines = [head + sizes_text(kernel_sizes(kernel)) + " {"]
    depth = 1
    if kernel.domain:
        lines.append(f"  for {_axes(kernel.domain)} parallel {{")
        depth = 2
    if kernel.code:
        lines += ["  code {", *code_lines(kernel.code, symbols, 2), "  }"]
    for statement in kernel.body:
        lines += ["  " * depth + line for line in _statement(statement, symbols)]
    lines += ["  }"] * (depth - 1) + ["}"]
    return "\n".join(lines)


def program_text(program: KernelProgram) -> str:
    """The steps, then each kernel once, then the reasons why kernels were not fused."""
    kernels = [to_text(k) for k in program.kernels.values()]
    return "\n".join([*_block(program), *kernels, *_reasons(program, "")])


def _reasons(program: KernelProgram, where: str) -> Iterator[str]:
    """Why kernels were not fused, in the program and in those of its loops and branches."""
    for n in program.not_fused:
        # As comments, so that the text with reasons still parses to the same program.
        yield f"# {where}{n.producer} -> {n.consumer} ({n.value}): {n.why}"
    for step in program.steps:
        for within in inner_programs(step):
            yield from _reasons(within, f"in {within.name}: ")


def _block(program: KernelProgram) -> Iterator[str]:
    """The steps, and those of the programs within."""
    inputs = ", ".join(f"{v}: {v.type}" for v in program.inputs)
    yield f"kernels {program.name}({inputs}){sizes_text(program_sizes(program))} {{"
    for step in program.steps:
        yield f"  {_step(step)}"
        inner = inner_programs(step)
        for program_within in inner:
            yield from ("    " + line for line in _block(program_within))
        if inner:
            yield "  }"
    results = (f"{v}: {t}" for v, t in zip(program.outputs, program.output_types))
    yield f"  return {', '.join(results)}".rstrip()
    yield "}"


def _buffers(buffers: Iterable[Buffer]) -> str:
    return ", ".join(f"{b.name}: {b.type}" for b in buffers)


def _axes(axes: Iterable[Axis]) -> str:
    return ", ".join(f"{a.name} in {a.size}" for a in axes)


def _dims(indices: Iterable[Size]) -> str:
    return ", ".join(map(str, indices))


def _step(step: KernelStep) -> str:
    results = ", ".join(f"{v}: {v.type}" for v in step.results)
    operands = ", ".join(map(str, step.operands))
    match step:
        case Invoke(kernel=kernel):
            return f"{results} = {kernel} {operands}".rstrip()
        case Routine(routine=routine, parameters=parameters):
            settings = ", ".join(f"{name}={value}" for name, value in parameters)
            return f"{results} = call {routine} {operands} {{{settings}}}"
        case Repeat(count=count, consts=consts):
            times = "while" if count is None else count
            return f"{results} = repeat {times} consts {consts} {operands}".rstrip() + " {"
        case Choose():
            return f"{results} = choose {operands} {{"


def _let(let: Let, symbols: dict[str, Dim]) -> str:
    at = range_text(symbols.get(let.name))
    return f"{let.name}: {dtypes.short(let.value.dtype)}{at} = {expr_text(let.value)}"


def _statement(statement: Statement, symbols: dict[str, Dim]) -> Iterator[str]:
    if isinstance(statement, Let):
        yield _let(statement, symbols)
        return
    if isinstance(statement, Stream):
        yield from _stream(statement, symbols)
        return
    head, tail = _head(statement), f": {expr_text(statement.value)}"
    if isinstance(statement, Write) and statement.condition is not None:
        tail += f" if {expr_text(statement.condition)}"
    yield from _behind_lets(head, statement.lets, tail, symbols)


def _behind_lets(head: str, lets: Sequence[Let], tail: str, symbols: dict[str, Dim]) -> Iterator[str]:
    if not lets:
        yield head + tail
        return
    yield head + " {"
    yield from ("  " + _let(let, symbols) for let in lets)
    yield "  " + tail
    yield "}"


def _stream(stream: Stream, symbols: dict[str, Dim]) -> Iterator[str]:
    yield f"stream {_axes(stream.axes)} {{"
    for part in stream.scores:
        yield from ("  " + line for line in _statement(part, symbols))
    if stream.peak is not None:
        yield f"  peak {stream.peak.name} = {expr_text(stream.peak.value)}"
    for part in stream.weights:
        yield from ("  " + line for line in _statement(part, symbols))
    for total in stream.sums:
        yield from ("  " + line for line in _total(total, symbols))
    yield "}"


def _total(total: Sum, symbols: dict[str, Dim]) -> Iterator[str]:
    columns = f"[{_axes(total.columns)}]" if total.columns else ""
    factor = "" if total.factor is None else f" by {expr_text(total.factor)}"
    head, tail = f"total {total.name}{columns} degree {total.degree}", f": {expr_text(total.weight)}{factor}"
    yield from _behind_lets(head, total.lets, tail, symbols)


def _head(statement: Reduce | Fill | Write | Scan) -> str:
    match statement:
        case Reduce(name=name, combine=combine, axes=axes, contract=contract):
            how = COMBINE_WORDS[combine] + (" contract" if contract else "")
            return f"{name} = {how} {_axes(axes)}".rstrip()
        case Fill(name=name, axes=axes):
            return f"fill {name}[{_axes(axes)}]"
        case Scan(output=output, combine=combine, axis=axis, indices=indices):
            return f"scan {output}[{_dims(indices)}] {COMBINE_WORDS[combine]} {_axes((axis,))}"
        case Write(output=output, axes=axes, indices=indices, combine=combine, ordered=is_ordered):
            head = f"{'ordered ' if is_ordered else ''}write {output}[{_dims(indices)}]"
            head += f" {COMBINE_WORDS[combine]}" if combine else ""
            return head + (f" over {_axes(axes)}" if axes else "")


# --- sizes and symbols ------------------------------------------------------------------------


def sizes_text(sizes: dict[str, Dim]) -> str:
    """` sizes n in 1..4096`, or nothing."""
    if not sizes:
        return ""
    return " sizes " + ", ".join(name + range_text(s) for name, s in sizes.items())


def type_sizes(types: Iterable[ArrayType]) -> dict[str, Dim]:
    """The symbolic sizes of some types by name, in order."""
    sizes: dict[str, Dim] = {}
    for type in types:
        for size in type.shape:
            sizes |= {k: v for k, v in _in_order(symbols_within(size)) if k not in sizes}
    return sizes


def kernel_sizes(kernel: Kernel) -> dict[str, Dim]:
    """The symbolic sizes that a kernel mentions."""
    sizes = type_sizes(b.type for b in (*kernel.inputs, *kernel.outputs))
    # Axes and lets are symbols too, but not sizes.
    bound = {a.name for a in kernel.domain} | names_bound(kernel.code)
    for statement in kernel.body:
        bound |= {a.name for a in inner_axes(statement)}
        bound |= {let.name for let in (statement, *inner_lets(statement)) if isinstance(let, Let)}
    for axis in kernel.domain:
        sizes |= {k: v for k, v in _in_order(symbols_within(axis.size)) if k not in sizes}
    symbols = {k: v for k, v in kernel_symbols(kernel).items() if k not in sizes and k not in bound}
    return sizes | dict(_in_order(symbols))


def _in_order(symbols: Mapping[str, Dim]) -> list[tuple[str, Dim]]:
    """Symbols by name, but those that bounds mention come before those that they bound."""
    return sorted(symbols.items(), key=lambda item: (len(symbols_within(item[1])), item[0]))


def program_sizes(program: KernelProgram) -> dict[str, Dim]:
    """The symbolic sizes that a program's types mention."""
    result_types = [v.type for step in program.steps for v in step.results]
    return type_sizes([*(v.type for v in program.inputs), *result_types, *program.output_types])


def kernel_symbols(kernel: Kernel) -> dict[str, Dim]:
    """Every index symbol of a kernel by name; axes of several statements may share one."""
    symbols: dict[str, Dim] = {}
    for size in sizes_in(kernel.code):
        if isinstance(size, Dim):
            symbols |= symbols_within(size)
    for statement in kernel.body:
        statement_sizes = [*(getattr(statement, "indices", ())), *(a.size for a in inner_axes(statement))]
        for size in (*statement_sizes, *_expression_sizes(expressions(statement))):
            if isinstance(size, Dim):
                # Including the symbols in its bounds, which must be declared as well.
                symbols |= symbols_within(size)
    return symbols


def _expression_sizes(exprs: Iterable[Expr]) -> Iterator[Size]:
    for expr in exprs:
        for part in walk_expr(expr):
            yield from expr_sizes(part)


__all__ = ["COMBINE_WORDS", "Value", "inner_lets", "kernel_sizes", "kernel_symbols", "program_sizes"]
__all__ += ["program_text", "sizes_text", "to_text", "type_sizes"]
