"""Graphs as values: nodes and edges that print in graphviz's language and draw themselves.

`str` returns DOT text. A notebook shows the drawing if graphviz's `dot` is installed; otherwise it
shows `text`, the same graph in words, and the reason. The layout is left to `dot`, and `subprocess`
is imported only when a graph is drawn: that makes `import rune` 10 ms faster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rune.core.printer import Names
from rune.records import dataclass

if TYPE_CHECKING:
    from rune.core.program import Atom, Equation, Program, Var

SECONDS = 20  # the time limit of `dot` for a drawing

# The kinds of nodes, and how they look.
SHAPES: Mapping[str, str] = {
    "value": 'shape=ellipse, fillcolor="#ffffff"',
    "step": 'shape=box, fillcolor="#dcebf7"',
    "call": 'shape=box, fillcolor="#fdebd3"',
    "loop": 'shape=box, fillcolor="#ddefd9"',
}
# Colours that can be read on light and dark; Courier, whose width graphviz knows without a font.
STYLE = (
    'bgcolor="transparent"',
    'node [style=filled, color="#8a9aa8", fontname="Courier", fontsize=10]',
    'edge [color="#8a9aa8", fontname="Courier", fontsize=9, fontcolor="#6b7a88"]',
)


@dataclass(frozen=True, slots=True)
class Node:
    """A box: `kind` is one of SHAPES."""

    name: str
    label: str
    kind: str = "step"


@dataclass(frozen=True, slots=True)
class Edge:
    """The flow of a value from one node to another."""

    source: str
    target: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Graph:
    """A directed graph, and a text with the same content."""

    name: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    text: str

    def to_dot(self) -> str:
        """The graph in graphviz's language."""
        nodes = (f"{n.name} [label={_quoted(n.label)}, {SHAPES[n.kind]}]" for n in self.nodes)
        lines = (*STYLE, *nodes, *map(_edge, self.edges))
        return "\n".join([f"digraph {_quoted(self.name)} {{", *(f"  {x};" for x in lines), "}"])

    __str__ = to_dot

    def to_svg(self) -> str:
        """The graph drawn by graphviz.

        Errors: OSError if `dot` is missing or fails; TimeoutError if it takes too long.
        """
        import shutil
        import subprocess

        dot = shutil.which("dot")
        if dot is None:
            raise FileNotFoundError("graphviz's `dot` is not installed")
        try:
            process = subprocess.run([dot, "-Tsvg"], input=f"{self}", capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(f"graphviz's `dot` took longer than {SECONDS} s") from error
        if process.returncode:
            raise OSError(f"graphviz's `dot` failed ({process.stderr.strip()})")
        return process.stdout[process.stdout.index("<svg") :]

    def _repr_html_(self) -> str:
        import html

        try:
            return self.to_svg()
        except OSError as error:
            return f"<pre># no drawing: {html.escape(f'{error}')}\n{html.escape(self.text)}</pre>"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _edge(edge: Edge) -> str:
    label = f" [label={_quoted(edge.label)}]" if edge.label else ""
    return f"{edge.source} -> {edge.target}{label}"


def program_graph(program: Program) -> Graph:
    """Equations as boxes; edges from the producer of a value to its consumers.

    >>> import rune
    >>> rune.make_program(lambda x: x * 2.0)(1.0).graph().edges
    (Edge(source='v0', target='e0', label=''), Edge(source='e0', target='r0', label=''))
    """
    names = Names()
    sources = (*program.inputs, *(v for v, _ in program.constants))
    origins: dict[Var, str] = {v: f"v{n}" for n, v in enumerate(sources)}
    nodes = [Node(origin, names.binding(v), "value") for v, origin in origins.items()]
    edges: list[Edge] = []
    for number, equation in enumerate(program.equations):
        nodes.append(Node(f"e{number}", _equation(equation, names)))
        edges += _into(f"e{number}", equation.operands, origins)
        origins.update(dict.fromkeys(equation.results, f"e{number}"))
    for number, atom in enumerate(program.outputs):
        nodes.append(Node(f"r{number}", f"result {number}: {atom.type}", "value"))
        edges += _into(f"r{number}", (atom,), origins)
    return Graph(program.name, tuple(nodes), tuple(edges), str(program))


def _into(target: str, atoms: Iterable[Atom], origins: Mapping[Any, str]) -> list[Edge]:
    return [Edge(origins[a], target) for a in atoms if a in origins]


def _equation(equation: Equation, names: Names) -> str:
    """The primitive with its constants, then the variables that it binds."""
    constants = (names.atom(a) for a in equation.operands if hasattr(a, "value"))
    operands = (text.split(":")[0] for text in constants)
    return "\n".join([" ".join([equation.primitive.name, *operands]), *map(names.binding, equation.results)])
