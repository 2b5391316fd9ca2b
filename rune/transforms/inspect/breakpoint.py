"""breakpoint: a prompt in the middle of a program, eager or compiled, where its values have names.

The names are the local variables of your functions at the time of tracing; traced values among them
are operands of a callback, so the prompt shows their values in this run. Under vmap it stops once
for each lane, in a loop once for each step.
"""

from __future__ import annotations

import bdb
import linecache
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import TextIO, TypeVar

from rune import tree
from rune.core.interpreter import Tracer
from rune.errors import ArgumentError
from rune.frames import cell_name, is_passed_over
from rune.records import dataclass
from rune.transforms.callback import debug_callback
from rune.tree import TreeDef

T = TypeVar("T")

PROMPT = "(rune) "
AROUND = 5  # lines before and after the current one that `list` shows
HELP = """\
p EXPRESSION    print its value; so does an expression alone      a    the names here, and their types
u, d            to the caller, and back                           w    where this is
l               the lines around                                  c    continue
q               end the program with bdb.BdbQuit                  h    this help"""


@dataclass(frozen=True, slots=True)
class Stopped:
    """A frame of user code where the program stopped.

    names:   the names of the local variables, in order
    leaves:  of their values; a traced leaf is the number of an operand
    module:  the variables of its module, when they are looked up
    """

    file: str
    line: int
    function: str
    names: tuple[str, ...]
    leaves: tuple[object, ...]
    treedef: TreeDef
    module: Mapping[str, object]

    def values(self, operands: Sequence[object]) -> dict[str, object]:
        """The local variables in this run."""
        leaves = [operands[x.number] if isinstance(x, _Operand) else x for x in self.leaves]
        return dict(zip(self.names, tree.unflatten(self.treedef, leaves), strict=True))


@dataclass(frozen=True, slots=True)
class _Operand:
    number: int


def breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: T | None = None,
    stdin: TextIO | None = None,
    stdout: TextIO | None = None,
) -> T | None:
    """Stop the program here, when it runs, at a prompt: look at values by name, continue, quit.

    At the prompt, `p x` or an expression prints its value, `a` the names, `u` and `d` go to the
    caller and back, `l` shows the lines, `c` continues, `q` ends the program, `h` lists all.
    backend:        None or "cli"
    filter_frames:  without effect: the package's own frames are never shown
    num_frames:     the number of frames that can be inspected; None for all
    ordered:        whether it keeps its position among ordered callbacks
    token:          a value that is returned unchanged
    stdin, stdout:  for input and output; by default those of the terminal or notebook
    Errors: ArgumentError for another backend; bdb.BdbQuit for `q`, and at the end of the input.

    >>> import io, rune
    >>> @rune.jit
    ... def f(x):
    ...     y = 2 * x
    ...     rune.debug.breakpoint(stdin=io.StringIO("y\\nc\\n"), num_frames=1)
    ...     return y
    >>> _ = f(3.0)  # doctest: +ELLIPSIS
    > ...(4)f()
    (rune) y
    Array(6., f32[], cpu:0)
    (rune) c
    """
    if backend not in (None, "cli"):
        raise ArgumentError(f"debug.breakpoint: cannot use backend {backend!r} (there is 'cli' alone)")
    # Traced locals become operands of the callback, so the prompt has their values in this run.
    operands: list[object] = []
    frames = [_stopped(f, operands) for f in _users_frames(num_frames)]
    debug_callback(_Prompt(tuple(frames), stdin, stdout), *operands, ordered=ordered)
    return token


def _users_frames(most: int | None) -> Iterator[FrameType]:
    """The frames that are not the package's, the innermost first."""
    # Not exactly the user's frame: before Python 3.12 the comprehension that calls has one, too.
    # Frames of the package are passed over below.
    frame, count = sys._getframe(2), 0
    while frame is not None and (most is None or count < most):
        if not is_passed_over(frame):
            yield frame
            count += 1
        frame = frame.f_back


def _stopped(frame: FrameType, operands: list[object]) -> Stopped:
    code = frame.f_code
    # At module level the local variables are the globals, which are looked up at the prompt.
    variables = {} if frame.f_locals is frame.f_globals else dict(frame.f_locals)
    leaves, treedef = tree.flatten(tuple(variables.values()))
    values = tuple(_leaf(x, operands) for x in leaves)
    return Stopped(code.co_filename, frame.f_lineno, code.co_name, tuple(variables), values, treedef, frame.f_globals)


def _leaf(leaf: object, operands: list[object]) -> object:
    """A live traced value becomes an operand; one whose trace has ended no longer has a value."""
    if not isinstance(leaf, Tracer) or not leaf.interpreter.live:
        return leaf
    operands.append(leaf)
    return _Operand(len(operands) - 1)


@dataclass(frozen=True, slots=True, eq=False)
class _Prompt:
    """The function that is called back."""

    frames: tuple[Stopped, ...]
    stdin: TextIO | None
    stdout: TextIO | None
    name = "breakpoint"  # in programs and messages, where a function has its own

    def __call__(self, *operands: object) -> None:
        Session(self.frames, operands, self.stdin, self.stdout).run()


class Session:
    """One stop of a program: the current frame, and the commands."""

    def __init__(
        self, frames: Sequence[Stopped], operands: Sequence[object], stdin: TextIO | None, stdout: TextIO | None
    ):
        self.frames, self.operands, self.stdin, self.stdout = frames, operands, stdin, stdout
        self.number = 0
        self.names = frames[0].values(operands)

    def run(self) -> None:
        """Prompt until the program continues. Errors: bdb.BdbQuit."""
        self.where()
        while True:
            word, _, argument = self.next_line().partition(" ")
            if word in ("c", "cont", "continue"):
                return
            if word in ("q", "quit", "exit"):
                # The exception of pdb, which ends the program.
                raise bdb.BdbQuit
            command = _COMMANDS.get(word)
            if command is not None:
                command(self, argument)
            elif word:
                self.evaluate(f"{word} {argument}")

    def next_line(self) -> str:
        """The next line; the end of the input quits."""
        if self.stdin is None:
            try:
                return input(PROMPT).strip()
            except EOFError:
                return "q"
        line = (self.stdin.readline() or "q").strip()
        self.say(f"{PROMPT}{line}")  # a terminal would echo the line
        return line

    def say(self, text: str) -> None:
        """Print one or more lines."""
        print(text, file=self.stdout)

    def evaluate(self, expression: str) -> None:
        """Print the value of an expression, or its error."""
        try:
            self.say(repr(eval(expression.strip(), {**self.frames[self.number].module}, self.names)))
        # An error in the user's expression is shown, and the prompt comes back.
        except Exception as error:
            self.say("".join(traceback.format_exception_only(error)).strip())

    def show_names(self, _: str = "") -> None:
        """Each local variable with its type."""
        for name, value in self.names.items():
            self.say(f"{name}: {getattr(value, 'type', None) or type(value).__name__}")

    def where(self, _: str = "") -> None:
        """The place of the frame and its line."""
        frame = self.frames[self.number]
        self.say(f"> {cell_name(frame.file) or frame.file}({frame.line}){frame.function}()")

    def show_lines(self, _: str = "") -> None:
        """The lines around that of the frame, which has an arrow."""
        frame = self.frames[self.number]
        for line in range(max(1, frame.line - AROUND), frame.line + AROUND + 1):
            text = linecache.getline(frame.file, line).rstrip()
            self.say(f"{line:5d} {'->' if line == frame.line else '  '} {text}".rstrip())

    def move(self, steps: int) -> None:
        """Move to another frame."""
        if 0 <= self.number + steps < len(self.frames):
            self.number += steps
            self.names = self.frames[self.number].values(self.operands)
        self.where()


def _commands() -> Mapping[str, Callable[[Session, str], None]]:
    aliases: dict[tuple[str, ...], Callable[[Session, str], None]] = {
        ("p", "pp"): Session.evaluate,
        ("a", "args", "names"): Session.show_names,
        ("w", "where", "bt"): Session.where,
        ("l", "list"): Session.show_lines,
        ("u", "up"): lambda session, _: session.move(1),
        ("d", "down"): lambda session, _: session.move(-1),
        ("h", "help", "?"): lambda session, _: session.say(HELP),
    }
    return {word: command for words, command in aliases.items() for word in words}


_COMMANDS = _commands()
