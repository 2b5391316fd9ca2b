"""The order of tests: those of one case stand together, so that what one compiles serves the next.

Loops of eager calls are remembered while a thousand others have not come between. A file's tests
stay in their file, whose first test of a case says where the case comes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import pytest

from tests.numpy.spelling import Case


def by_case(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """The items, those of a case behind the first one of it in its file."""
    places: dict[Hashable, int] = {}
    keyed = [(places.setdefault(_group(item), n), n, item) for n, item in enumerate(items)]
    return [item for _, _, item in sorted(keyed, key=lambda k: k[:2])]


def _group(item: pytest.Item) -> Hashable:
    """The item's file and case; one without a case is alone."""
    callspec = getattr(item, "callspec", None)
    values = () if callspec is None else callspec.params.values()
    cases = (getattr(v, "case", v) for v in values)
    return next(((item.path, id(c)) for c in cases if isinstance(c, Case)), item)
