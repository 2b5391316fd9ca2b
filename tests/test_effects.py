"""Effects: which handler answers, what it sees, and what the two boundaries do.

The effects are invented here, so that nothing depends on random numbers. First perform and
handlers; then `Each`, the boundary of vmap; then `Recorder`, the boundary of programs, alone and in
jit.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

import rune
from rune.effects import Ask, Each, Effect, Handler, Inputs, Recorder, Tell, perform
from rune.errors import UnhandledEffect
from tests.support.arrays import array


class Number(Effect[int]):
    """Asks for a number."""


class Other(Effect[int]):
    """Asks for something else."""


class Answers(Handler):
    """Gives the same number always."""

    kind = Number

    def __init__(self, number: int):
        self.number = number

    def answer(self, effect: Number) -> int:
        return self.number


class Doubles(Handler):
    """Gives twice what the handler outside gives."""

    kind = Number

    def answer(self, effect: Number) -> int:
        return 2 * perform(effect)


def test_the_innermost_handler_answers():
    with Answers(1):
        with Answers(2):
            assert perform(Number()) == 2
        assert perform(Number()) == 1


def test_a_handler_answers_only_effects_of_its_kind():
    class OtherAnswers(Answers):
        kind = Other

    with Answers(1), OtherAnswers(2):
        assert perform(Number()) == 1


def test_a_handler_of_a_class_answers_its_subclasses():
    class Special(Number):
        """A number of a special kind."""

    with Answers(3):
        assert perform(Special()) == 3


def test_a_handler_sees_only_the_handlers_outside_it():
    with Answers(3), Doubles(), Doubles():
        assert perform(Number()) == 12


def test_an_unhandled_effect_is_an_error_that_names_it():
    with pytest.raises(UnhandledEffect, match=r"cannot answer Number \(no handler around it\)"):
        perform(Number())
    with Doubles(), pytest.raises(UnhandledEffect):
        perform(Number())


def test_a_kind_may_have_a_default():
    class Default(Effect[str]):
        def unhandled(self) -> str:
            return "default"

    assert perform(Default()) == "default"


def test_a_handler_leaves_with_its_block_even_by_an_error():
    with pytest.raises(ValueError, match="inside"), Answers(1):
        raise ValueError("inside")
    with pytest.raises(UnhandledEffect):
        perform(Number())


def test_one_handler_may_be_entered_twice():
    handler = Answers(1)
    with handler, Doubles(), handler:
        assert perform(Number()) == 1


def test_handlers_belong_to_the_thread_that_entered_them():
    answers: list[BaseException | int] = []

    def elsewhere() -> None:
        try:
            answers.append(perform(Number()))
        except UnhandledEffect as error:
            answers.append(error)

    with Answers(1):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()

    assert isinstance(answers[0], UnhandledEffect)


# --- a recorded kind: numbers counted up --------------------------------------------------------


@dataclass(frozen=True)
class Next(Effect[Any]):
    """Asks for the next of the values base, base + 1, …, each plus an index."""

    recorded: ClassVar[bool] = True

    @property
    def kind(self) -> type[Next]:
        return Next

    def at(self, answer: Any, index: Any) -> Any:
        return answer + index


@dataclass(frozen=True)
class From:
    """The values of a counter at one moment."""

    values: Sequence[Any]
    signature: str = "counter"

    def inside(self, values: Sequence[Any]) -> Counter:
        return Counter(values[0])

    def at(self, index: Any) -> From:
        return From([self.values[0] + index])


class Counter(Handler):
    """Counts its answers."""

    kind = Next

    def __init__(self, base: Any):
        self.base, self.count = base, 0

    def answer(self, effect: Any) -> Any:
        match effect:
            case Next():
                self.count += 1
                return self.base + (self.count - 1)
            case Ask():
                return From([self.base + self.count])
            case Tell(note=note):
                self.count += note

    def note(self) -> int:
        return self.count


def test_every_lane_has_its_own_answer():
    with Counter(10), Each(lambda: 100):
        assert [perform(Next()), perform(Next())] == [110, 111]


def test_an_effect_without_a_rule_for_lanes_is_answered_as_outside():
    with Answers(5), Each(lambda: 100):
        assert perform(Number()) == 5


def test_a_recorder_answers_from_its_inputs_and_queries_once():
    values: list[Any] = []

    def enter(value: Any) -> Any:
        values.append(value)
        return 1000

    with Counter(10) as counter:
        perform(Next())
        with Recorder(Inputs(enter)) as recorder:
            answers = [perform(Next()), perform(Next())]

    assert (answers, values, recorder.inputs.entered) == ([1000, 1001], [11], [11])
    assert counter.count == 1, "the recorder tells nothing by itself"


def test_the_needs_of_a_program_are_collected_and_met_at_every_run():
    with Counter(10), Recorder(Inputs(lambda v: v)) as recorder:
        perform(Next())
        perform(Next())
    (need,) = recorder.inputs.needs()

    with Counter(50) as counter:
        assert need.values() == [50]
        need.tell()
        assert counter.count == 2
        assert perform(Next()) == 52


def test_a_program_without_effects_needs_nothing():
    with Recorder(Inputs(lambda v: v)) as recorder:
        pass

    assert recorder.inputs.needs() == ()
    assert not recorder.leaks


def test_a_program_does_not_fit_a_source_of_another_signature():
    class Others(Counter):
        def answer(self, effect: Any) -> Any:
            return From([0], "others") if isinstance(effect, Ask) else super().answer(effect)

    with Counter(10), Recorder(Inputs(lambda v: v)) as recorder:
        perform(Next())
    (need,) = recorder.inputs.needs()

    with Others(10):
        assert need.values() is None
    with pytest.raises(UnhandledEffect):
        need.values()


def test_recorders_nest():
    with Counter(10), Recorder(Inputs(lambda v: v + 100)) as outer:
        perform(Next())
        with Recorder(Inputs(lambda v: v + 1000)) as inner:
            assert perform(Next()) == 1111
        for need in inner.inputs.needs():
            need.tell()
        assert perform(Next()) == 112

    assert inner.inputs.entered == [111]
    assert [need.note for need in outer.inputs.needs()] == [3]


def test_a_recorder_with_a_step_gives_every_step_its_answer():
    with Counter(10), Recorder(Inputs(lambda v: v), index=lambda: 500):
        assert perform(Next()) == 510


# --- jit ----------------------------------------------------------------------------------------


def test_a_jitted_function_is_traced_once_for_all_recorded_answers():
    traces: list[int] = []

    @rune.jit
    def shifted(x: Any) -> Any:
        traces.append(1)
        return x + perform(Next())

    for base in (10, 20):
        with Counter(array(base)):
            assert [float(shifted(0.5)), float(shifted(0.5))] == [base + 0.5, base + 1.5]
    assert len(traces) == 1


def test_a_jitted_function_is_traced_again_where_an_effect_is_not_recorded():
    program = rune.jit(lambda x: x + perform(Number()))

    with Answers(1):
        assert float(program(0.5)) == 1.5
    with Answers(2):
        assert float(program(0.5)) == 2.5
    assert program.cache_size() == 0


def test_a_jitted_function_without_effects_does_not_care_for_handlers():
    double = rune.jit(lambda x: 2 * x)

    double(1.0)
    with Counter(0), Answers(1):
        double(1.0)

    assert double.cache_size() == 1


def test_an_unhandled_effect_in_a_jitted_function_is_the_same_error():
    program = rune.jit(lambda x: x + perform(Next()))
    with Counter(array(0)):
        program(1.0)

    with pytest.raises(UnhandledEffect, match="cannot answer Next"):
        program(1.0)


def test_every_lane_of_a_jitted_function_has_its_own_answer():
    program = rune.jit(lambda x: x + perform(Next()))

    with Counter(array(10)):
        lanes = rune.vmap(program)(array([0.0, 0.0, 0.0]))

    assert lanes.tolist() == [10.0, 11.0, 12.0]


def test_a_handler_must_define_its_answer():
    class Silent(Handler):
        kind = Number

    with Silent(), pytest.raises(NotImplementedError, match="Silent"):
        perform(Number())
