"""The commands of steps as one list of calls of OpenCL's C functions (shared/call_list.py).

    launch @f (x, y) ->    renew argument 0 of f; renew argument 1; ...; clEnqueueNDRangeKernel
    copy x to y            clEnqueueCopyBuffer

A call of a plan writes the handles of its memory into the list, and plays it. An argument is set
only if the kernel does not have it already: each kernel remembers its arguments, whichever list set
them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence

from rune.backends.opencl.functions import Functions, Handle
from rune.backends.shared.call_list import CallList, Notes, helpers
from rune.backends.shared.pool import Block
from rune.dims import Size
from rune.lowering.codegen.c.render import Rendered
from rune.lowering.plan import Space
from rune.records import dataclass

Memory = tuple[Space, int]
_HANDLE_BYTES = 8
_UNSET = (1 << 64) - 1  # neither a handle nor an offset or a size


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """The kernel of one launch, whose arguments stay set from call to call.

    `known` has the handles of the arguments, which do not keep the memory alive.
    """

    handle: Handle
    code: Rendered
    most_threads: int
    multiple: int
    work: Size  # of a launch
    known: array[int]  # the arguments as set: handle and offset of each memory, then sizes

    @classmethod
    def of(cls, handle: Handle, code: Rendered, most_threads: int, multiple: int, work: Size) -> Kernel:
        """A kernel whose arguments are not yet set."""
        arguments = 2 * len(code.params) + len(code.sizes)
        return cls(handle, code, most_threads, multiple, work, array("Q", [_UNSET] * arguments))

    def forget_arguments(self) -> None:
        """Have every argument set before the next launch."""
        for position in range(len(self.known)):
            self.known[position] = _UNSET


@dataclass(frozen=True, slots=True)
class Command:
    """A step for one choice of sizes, or a part of it, on the memory that `operands` names."""

    operands: tuple[Memory, ...]
    kernel: Kernel | None = None  # None: a copy
    numbers: tuple[int, ...] = ()  # element offsets, then sizes
    total: tuple[int, ...] = ()
    local: tuple[int, ...] = ()
    start: tuple[int, ...] | None = None  # the first thread, of a part of a launch; None: 0
    work: int = 0
    move: tuple[int, int, int] = (0, 0, 0)  # of a copy: bytes, offset in the target, in the source


@dataclass(frozen=True, slots=True)
class Commands:
    """A sequence of commands that can be replayed.

    handles: words for the handles of memory, each with the memory
    event:   the word of the last command's event; None if there is no command
    moves:   target and source of copies to the same offset, where both may be one donated memory
    """

    calls: CallList
    handles: tuple[tuple[int, Space, int], ...]
    event: int | None
    moves: tuple[tuple[Memory, Memory], ...]

    def blocks(self, memory: Mapping[Space, Sequence[Block]]) -> list[Block]:
        """The blocks of a call's memory, in the order of `handles`."""
        return [memory[space][number] for _, space, number in self.handles]

    def write(self, blocks: Sequence[Block]) -> None:
        """Set the memory on which the commands work."""
        words = self.calls.words
        for (word, _, _), block in zip(self.handles, blocks, strict=True):
            words[word] = block.number

    def moves_in_place(self, memory: Mapping[Space, Sequence[Block]]) -> bool:
        """Whether a copy is from donated memory to itself, which OpenCL refuses as an overlap."""
        return any(memory[a][m].handle is memory[b][n].handle for (a, m), (b, n) in self.moves)


@dataclass(slots=True)
class _Writer:
    """Records commands as notes of a call list."""

    functions: Functions
    queue: Handle
    notes: Notes
    handles: dict[Memory, int]

    def handle(self, memory: Memory) -> int:
        """The word for the handle of a memory."""
        if memory not in self.handles:
            self.handles[memory] = self.notes.word()
        return self.handles[memory]

    def command(self, command: Command, event: int) -> None:
        """Record one command. event: the word with the address for its event, or with 0."""
        if command.kernel is None:
            self.copy(command, event)
        else:
            self.arguments(command.kernel, command)
            self.launch(command.kernel, command, event)

    def arguments(self, kernel: Kernel, command: Command) -> None:
        """Set the arguments that have changed: pairs of buffer and offset, then sizes."""
        notes, count = self.notes, len(command.operands)
        values = {2 * position: self.handle(memory) for position, memory in enumerate(command.operands)}
        for position, number in enumerate(command.numbers):
            argument = 2 * position + 1 if position < count else position + count
            values[argument] = notes.constant(number)
        notes.hold(kernel)  # the list writes into its `known`
        first = kernel.known.buffer_info()[0]
        for argument, word in sorted(values.items()):
            notes.call(
                helpers().renew,
                *map(notes.constant, (self.functions.set_argument, kernel.handle.int_ptr, argument, _HANDLE_BYTES)),
                notes.address_of(word),
                notes.constant(first + _HANDLE_BYTES * argument),
                checked=True,
            )

    def launch(self, kernel: Kernel, command: Command, event: int) -> None:
        """Record the launch of a kernel."""
        notes = self.notes
        zero = notes.constant(0)

        def extents(numbers: tuple[int, ...] | None) -> int:
            return zero if numbers is None else notes.address_of(notes.row([*numbers]))

        queue, handle, rank = map(notes.constant, (self.queue.int_ptr, kernel.handle.int_ptr, len(command.total)))
        shape = map(extents, (command.start, command.total, command.local))
        notes.call(self.functions.launch, queue, handle, rank, *shape, zero, zero, event, checked=True)

    def copy(self, command: Command, event: int) -> None:
        """Record a copy."""
        notes, (target, source), (nbytes, to, at) = self.notes, map(self.handle, command.operands), command.move
        queue, zero = notes.constant(self.queue.int_ptr), notes.constant(0)
        numbers = map(notes.constant, (at, to, nbytes))
        notes.call(self.functions.copy, queue, source, target, *numbers, zero, zero, event, checked=True)

    def flush(self) -> None:
        """Record a flush: without it a driver may leave commands in the queue for any time."""
        self.notes.call(self.functions.flush, self.notes.constant(self.queue.int_ptr), checked=True)


def in_a_row(commands: Sequence[Command], functions: Functions, queue: Handle, limit: int | None) -> Commands:
    """The commands as one list. limit: the most work between two flushes; None: any."""
    writer = _Writer(functions, queue, Notes(), {})
    event, work = writer.notes.word(), 0
    for number, command in enumerate(commands):
        # A driver submits at a flush, and a watchdog counts one submission (shared/parts.py).
        if limit is not None and work and work + command.work > limit:
            writer.flush()
            work = 0
        work += command.work
        # Events cost time and must be released, so only the last command has one.
        is_last = number == len(commands) - 1
        writer.command(command, writer.notes.address_of(event) if is_last else writer.notes.constant(0))
    writer.flush()
    handles = tuple((word, *memory) for memory, word in writer.handles.items())
    moves = tuple(_in_place(commands))
    return Commands(writer.notes.list(), handles, event if commands else None, moves)


def _in_place(commands: Iterable[Command]) -> Iterable[tuple[Memory, Memory]]:
    """Target and source of each copy that has nothing to do if both are the same memory."""
    for command in commands:
        _, to, at = command.move
        if command.kernel is None and to == at:
            target, source = command.operands
            yield target, source
