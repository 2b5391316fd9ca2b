"""Late dataclasses behave like those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import math
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, replace
from typing import Any

import pytest

from rune import records

Decorator = Callable[..., Callable[[type], type]]
WAYS = [
    {},
    {"frozen": True},
    {"slots": True},
    {"frozen": True, "slots": True},
    {"eq": False, "slots": True},
    {"frozen": True, "slots": True, "eq": False, "repr": False},
    {"slots": True, "eq": False, "weakref_slot": True},
]


def classes(dataclass: Decorator, **how: Any) -> list[type]:
    """A few classes made by a decorator: plain, with defaults, with methods, an heir."""

    @dataclass(**how)
    class Point:
        """Two numbers."""

        x: float
        y: float = 2.0

    @dataclass(**how)
    class Bag:
        """Fields of all kinds."""

        name: str
        items: list[int] = field(default_factory=list)
        size: int = field(init=False, default=7)
        counts: dict[str, int] = field(init=False, default_factory=dict)
        note: str = field(default="", compare=False, repr=False)
        word: int | None = field(default=None, kw_only=True)

    @dataclass(**how)
    class Spoken(Point):
        """A subclass with its own methods."""

        z: int = 3

        def __repr__(self) -> str:
            return f"<{self.x}>"

        def __eq__(self, other: object) -> bool:
            return type(other) is type(self) and other.z == self.z  # pyright: ignore

        def norm(self) -> float:
            return self.x + self.y

    @dataclass(**how)
    class Checked:
        """A class that checks its fields."""

        x: int
        log: list[str] = field(default_factory=list, compare=False)

        def __post_init__(self) -> None:
            self.log.append(f"x is {self.x}")

    return [Point, Bag, Spoken, Checked]


@pytest.fixture(params=WAYS, ids=str)
def pairs(request: pytest.FixtureRequest) -> list[tuple[type, type]]:
    """Late classes and the equivalent standard ones."""
    return list(
        zip(classes(records.dataclass, **request.param), classes(dataclasses.dataclass, **request.param), strict=True)
    )


def reply(call: Callable[[], object]) -> object:
    """The result or the error of a call, as text."""
    try:
        return str(call())
    except Exception as error:
        return type(error), str(error)


def instances(cls: type) -> list[Any]:
    """A few, among them equal ones."""
    return [cls(1.0), cls(1.0), cls(2.0), cls(math.nan)]


def test_signatures_are_those_of_the_standard_library(pairs: list[tuple[type, type]]) -> None:
    for late, standard in pairs:
        assert [str(p) for p in inspect.signature(late).parameters.values()] == [
            str(p).replace("<factory>", str(inspect.signature(late).parameters[n].default))
            for n, p in inspect.signature(standard).parameters.items()
        ]


def test_instances_have_the_same_repr_equality_and_hash(pairs: list[tuple[type, type]]) -> None:
    for late, standard in pairs:
        a, b = instances(late), instances(standard)
        if type(b[0]).__repr__ is not object.__repr__:
            assert [*map(repr, a)] == [*map(repr, b)]
        assert [x == y for x in a for y in a] == [x == y for x in b for y in b]
        assert (late.__hash__ is None) == (standard.__hash__ is None)
        if late.__name__ != "Bag" and late.__eq__ is not object.__eq__ and late.__hash__ is not None:
            assert hash(a[0]) == hash(b[0])


WRONG = [((), {}), ((1, 2, 3, 4, 5, 6), {}), ((1,), {"w": 1}), ((1,), {"x": 1}), ((1, 2), {"y": 1})]


@pytest.mark.parametrize(("args", "keywords"), WRONG, ids=str)
def test_wrong_arguments_are_refused_in_the_same_words(
    pairs: list[tuple[type, type]], args: tuple[int, ...], keywords: dict[str, int]
) -> None:
    for late, standard in pairs:
        answers = [reply(lambda cls=cls: type(cls(*args, **keywords)).__name__) for cls in (late, standard)]
        assert answers[0] == answers[1]


def test_assignments_are_refused_or_made_in_the_same_way(pairs: list[tuple[type, type]]) -> None:
    for late, standard in pairs:
        for name in (dataclasses.fields(late)[0].name, "other"):
            a, b = late(1.0), standard(1.0)
            if name == "other" and "__slots__" in vars(late):
                # The standard library's own error for a name without a slot mentions `super`.
                assert reply(lambda a=a, n=name: setattr(a, n, 1)) != "None"
                continue
            assert reply(lambda a=a, n=name: setattr(a, n, 1)) == reply(lambda b=b, n=name: setattr(b, n, 1))
            assert reply(lambda a=a, n=name: delattr(a, n)) == reply(lambda b=b, n=name: delattr(b, n))


def test_fields_replaced_and_matched_are_those_of_the_standard_library(pairs: list[tuple[type, type]]) -> None:
    for late, standard in pairs:
        field_rows = [
            [(f.name, f.type, f.init, f.compare) for f in dataclasses.fields(cls)] for cls in (late, standard)
        ]
        assert field_rows[0] == field_rows[1]
        assert late.__match_args__ == standard.__match_args__
        first = dataclasses.fields(late)[0].name
        assert getattr(replace(late(1.0), **{first: 5}), first) == 5


@pytest.mark.parametrize(
    "fields", [{}, {"x": 3.0}, {"y": math.inf, "x": 5}, {"z": 1}, {"items": [2]}, {"size": 3}], ids=str
)
def test_records_replace_the_fields_that_the_standard_library_replaces(
    pairs: list[tuple[type, type]], fields: dict[str, Any]
) -> None:
    def outcome(change: Callable[..., Any], record: Any) -> object:
        try:
            copy = change(record, **fields)
        except Exception as error:  # the words differ, the kinds do not
            return type(error)
        return type(copy) is type(record), [getattr(copy, f.name) for f in dataclasses.fields(copy)]

    for late, standard in pairs:
        assert outcome(records.replace, late(1.0)) == outcome(replace, standard(1.0))
        assert outcome(replace, late(1.0)) == outcome(replace, standard(1.0))


def test_a_record_that_writes_its_own_init_is_replaced_by_it() -> None:
    @records.dataclass(frozen=True, slots=True)
    class Even:
        half: int

        def __init__(self, *, half: int) -> None:
            object.__setattr__(self, "half", abs(half))

    assert records.replace(Even(half=-3), half=-5).half == 5


def test_classes_say_how_they_were_made(pairs: list[tuple[type, type]]) -> None:
    for late, standard in pairs:
        for name in ("init", "repr", "eq", "order", "unsafe_hash", "frozen"):
            answers = [getattr(cls.__dataclass_params__, name) for cls in (late, standard)]  # pyright: ignore
            assert answers[0] == answers[1], name


@pytest.mark.parametrize("frozen", [False, True])
def test_a_standard_dataclass_may_inherit_from_a_late_one_of_its_kind(frozen: bool) -> None:
    base = classes(records.dataclass, frozen=frozen)[0]
    heir = dataclasses.dataclass(frozen=frozen)(type("Heir", (base,), {"__annotations__": {"w": "int"}, "w": 4}))
    with pytest.raises(TypeError, match="cannot inherit"):
        dataclasses.dataclass(frozen=not frozen)(type("Other", (base,), {}))
    assert (heir(1).x, heir(1).y, heir(1).w, heir(1) == heir(1)) == (1, 2.0, 4, True)


def test_copies_are_equal_and_of_the_same_class(pairs: list[tuple[type, type]]) -> None:
    for late, _ in pairs:
        original = late(1.0)
        for twin in (copy.copy(original), copy.deepcopy(original)):
            assert type(twin) is late
            assert [getattr(twin, f.name) for f in dataclasses.fields(late)] == [
                getattr(original, f.name) for f in dataclasses.fields(late)
            ]


@records.dataclass(frozen=True, slots=True)
class Stored:
    """A class that pickle finds."""

    a: int
    b: tuple[int, ...] = ()


def test_frozen_instances_travel_through_pickle() -> None:
    assert pickle.loads(pickle.dumps(Stored(1, (2, 3)))) == Stored(1, (2, 3))


def test_an_instance_that_was_never_initialised_cannot_be_assigned_to() -> None:
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'a'"):
        object.__new__(Stored).a = 1  # pyright: ignore


def test_the_decorator_may_be_used_without_arguments() -> None:
    cls = records.dataclass(type("Plain", (), {"__annotations__": {"x": "int"}, "__doc__": "One number."}))
    assert repr(cls(3)) == "Plain(x=3)"


def test_a_mutable_default_is_refused() -> None:
    with pytest.raises(ValueError, match="mutable default"):

        @records.dataclass(slots=True)
        class _Wrong:
            items: list[int] = []  # noqa: RUF012


def test_threads_can_create_the_first_instances_concurrently() -> None:
    for _ in range(50):
        cls, gate, answers = classes(records.dataclass, frozen=True, slots=True)[0], threading.Barrier(4), []

        def make(n: int, cls: type = cls, gate: threading.Barrier = gate, answers: list[Any] = answers) -> None:
            gate.wait()
            answers.append(cls(n) == cls(n) and hash(cls(n)) == hash(cls(n)) and repr(cls(n)))

        threads = [threading.Thread(target=make, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(answers) == 4
        assert all(f"x={n}, y=2.0" in "".join(map(str, answers)) for n in range(4))


def test_importing_rune_writes_few_methods() -> None:
    script = (
        "import rune, gc\nfrom rune.records import _Late\n"
        "late = [c for c in gc.get_objects() if type(c) is _Late]\nprint(len(late))"
    )
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(process.stdout) > 200
