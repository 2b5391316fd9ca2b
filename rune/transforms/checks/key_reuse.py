"""The check for keys used twice: `with rune.configure(check_keys=True):`.

A key is used when bits are drawn from it, or when it is split, but not when a number is folded in.

Keys are identified by their words, so a copy, a lane or an element of an array is the same key.
Used keys are recorded for the outermost block that switches the check on. Eager operations are
checked one by one. Before a compiled program runs, the equations on which its keys depend are
evaluated: only those, but everything in a loop or branch that uses keys. Recomputation in a
checkpoint does not use a key again; nor does a finished lane of a while loop, whose steps are
computed but not used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rune import config, dtypes
from rune.array import Array
from rune.core.higher import HigherOrder, equation_program, subprograms
from rune.core.interpreter import bind, type_of
from rune.core.memo import per_program
from rune.core.primitive import Primitive
from rune.core.program import Atom, Equation, Literal, Program, Var
from rune.core.sizes import match_sizes, params_with_sizes
from rune.core.values import Value
from rune.dtypes import stored_words
from rune.errors import Frame, KeyReuseError, user_frame
from rune.ops.loop import while_as_loop
from rune.ops.random import random_bits, random_clone, random_split, random_words
from rune.records import dataclass

NOTED = (random_bits, random_split, random_words, random_clone)


def note_use(primitive: Primitive, operands: Sequence[Value]) -> None:
    """Check one eager operation, while keys are checked. Errors: KeyReuseError."""
    if primitive in NOTED:
        _note(primitive, operands[0], KeyUse(user_frame()))


def note_program(program: Program, args: Sequence[Value]) -> None:
    """Check a program that is about to run. Errors: KeyReuseError."""
    if config.current().check_keys and _uses_keys(program):
        # The program itself runs after this evaluation, and its uses must not count twice.
        with config.setting(check_keys=False):
            _Walk().needed(program, args, None)


@dataclass(frozen=True, slots=True)
class KeyUse:
    """A use of a key, and its line. `repeats`: the equation in a while loop that may reuse it."""

    frame: Frame | None
    repeats: Equation | None = None


def _note(primitive: Primitive, keys: Value, use: KeyUse) -> None:
    key_array = np.asarray(keys, type_of(keys).dtype)
    if primitive is random_clone:
        for number in _as_numbers(key_array):  # a clone may be used as if the key were unused
            config.used_keys().pop((key_array.dtype, number), None)
    else:
        _use(key_array, use)


def _use(keys: np.ndarray, use: KeyUse) -> None:
    uses: dict[tuple[np.dtype, int], KeyUse] = config.used_keys()
    for number in _as_numbers(keys):
        # The dtype is part of the identity: keys of different generators may have equal words.
        first = uses.get((keys.dtype, number))
        uses[keys.dtype, number] = use
        # A finished lane of a while loop computes again with its last key, and the result is not
        # used. So the same equation of a loop may use a key again.
        if first is None or (use.repeats is not None and first.repeats is use.repeats):
            continue
        key_text = f"{dtypes.short(keys.dtype)} {list(divmod(number, 1 << 32))}"
        raise KeyReuseError(
            f"key: cannot use a key twice ({key_text}; first used at {first.frame})",
            hint="first, second = rune.random.split(key); use each of them once",
            frame=use.frame,
        )


def _as_numbers(keys: np.ndarray) -> list[int]:
    """The two words of every key as one number."""
    words = stored_words(keys).astype(np.uint64)
    return np.ravel((words[..., 0] << np.uint64(32)) | words[..., 1]).tolist()


# --- what a program needs for its keys --------------------------------------------------------


def _is_replay(equation: Equation) -> bool:
    # Checkpoints set this on the part that is computed again.
    return bool(equation.params.get("recomputes"))


@per_program
def _uses_keys(program: Program) -> bool:
    """Whether anything in the program uses a key."""
    return any(map(_equation_uses_keys, program.equations))


def _equation_uses_keys(equation: Equation) -> bool:
    if _is_replay(equation):
        return False
    return equation.primitive in NOTED or any(map(_uses_keys, subprograms(equation)))


@per_program
def _needed(program: Program) -> frozenset[Var]:
    """The variables that must be evaluated to know which keys are used."""
    read_atoms: set[Atom] = set()
    for equation in reversed(program.equations):
        inner_program = equation_program(equation)
        # Backwards: a value is needed if a later equation needs it.
        if any(v in read_atoms for v in equation.results):
            read_atoms.update(equation.operands)
        elif not _equation_uses_keys(equation):
            continue
        elif equation.primitive in NOTED:
            read_atoms.add(equation.operands[0])
        elif inner_program is None:
            read_atoms.update(equation.operands)
        else:
            inner_variables = _needed(inner_program)
            pairs = zip(equation.operands, inner_program.inputs, strict=True)
            read_atoms.update(a for a, v in pairs if v in inner_variables)
    return frozenset(a for a in read_atoms if isinstance(a, Var))


class _Walk:
    """Evaluates programs, and records the keys that they use."""

    def __init__(self) -> None:
        self.frame: Frame | None = None  # of the equation of the outermost program
        self.in_while = False

    def needed(self, program: Program, args: Sequence[Value], frame: Frame | None) -> None:
        """Evaluate what the keys of a program depend on. An argument not needed may be None."""
        self._run(program, args, frame, _needed(program))

    def everything(self, program: Program, args: Sequence[Value]) -> list[Value]:
        """The outputs of a program."""
        env = self._run(program, args, self.frame, None)
        return [_value(a, env) for a in program.outputs]

    def _run(
        self, program: Program, args: Sequence[Value], frame: Frame | None, needed_variables: frozenset[Var] | None
    ) -> dict[Var, Value]:
        env: dict[Var, Value] = dict(program.constants)
        env.update((v, a) for v, a in zip(program.inputs, args, strict=True) if a is not None)
        types = {v: type_of(a) for v, a in env.items()}
        known = [v for v in program.inputs if v in types]
        action = f"{program.name}: cannot look at the keys"
        known_types = tuple(v.type for v in known)
        sizes = match_sizes(known_types, [types[v] for v in known], action)
        for equation in program.equations:
            # A sampler is traced once for all its callers, so its line numbers mean nothing.
            is_own = frame is None and equation.primitive not in NOTED
            self.frame = frame or (equation.frame if is_own else user_frame())
            is_wanted = needed_variables is None or any(v in needed_variables for v in equation.results)
            params = params_with_sizes(equation.params, sizes)
            self._step(equation, params, env, is_wanted)
        return env

    def _step(self, equation: Equation, params: Mapping[str, object], env: dict[Var, Value], is_wanted: bool) -> None:
        uses, frame = _equation_uses_keys(equation), self.frame
        if not (uses or is_wanted):
            return
        operands = [_value(a, env) for a in equation.operands]
        primitive, inner_program = equation.primitive, equation_program(equation)
        if uses and primitive in NOTED:
            # Without lanes a key has no axis, and using it again is what this check looks for.
            repeats = equation if self.in_while and type_of(operands[0]).shape else None
            _note(primitive, operands[0], KeyUse(frame, repeats))
        elif uses and inner_program is not None and not is_wanted:
            self.needed(inner_program, operands, frame)
        if is_wanted or (uses and primitive not in NOTED and inner_program is None):
            out = self._evaluate(equation, params, operands, uses)
            env.update(zip(equation.results, out if primitive.multiple_results else [out]))

    def _evaluate(self, equation: Equation, params: Mapping[str, object], operands: list[Value], uses: bool) -> Array:
        primitive, was_in_while = equation.primitive, self.in_while
        if not (uses and isinstance(primitive, HigherOrder) and primitive.interpret):
            return bind(primitive, *operands, **params)
        # Other loops run the same number of steps in all lanes. `while` is recognised by its
        # expansion, since rune.control is above this room.
        self.in_while |= primitive.expand is while_as_loop
        try:
            return primitive.interpret(self.everything, *operands, **params)
        finally:
            self.in_while = was_in_while


def _value(atom: Atom, env: Mapping[Var, Value]) -> Any:
    return atom.value if isinstance(atom, Literal) else env.get(atom)
