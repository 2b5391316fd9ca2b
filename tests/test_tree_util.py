"""Structures as values: joined, composed, walked, built from iterables, and looked up by registry.

What JAX answers is written out; test_tree.py has the rules of each container.
"""

from __future__ import annotations

import copy
import functools
import operator
import pickle
from collections import OrderedDict, defaultdict
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

import rune
from rune import tree, tree_util
from rune.errors import ArgumentError


class Point(NamedTuple):
    x: Any
    y: Any


class Tagged:
    """A node with one child, and data that may be anything."""

    def __init__(self, child: Any, data: Any = None):
        self.child, self.data = child, data


tree.register_node(
    nodetype=Tagged,
    flatten_func=lambda t: ((t.child,), t.data),
    unflatten_func=lambda data, children: Tagged(children[0], data),
    flatten_with_keys_func=lambda t: (((tree.GetAttrKey("child"), t.child),), t.data),
)
STRUCTURE = tree.structure({"a": 1, "b": (2, None)})


def test_structures_join_to_that_of_a_tuple():
    x, y = {"a": 1}, [2, None]
    structure = tree_util.treedef_tuple([tree.structure(x), tree.structure(y)])

    assert structure == tree.structure((x, y))


def test_the_names_of_jax_tree_util_are_those_of_rune_tree():
    x = {"a": [1, 2]}

    assert tree_util.tree_map(lambda v: v + 1, x) == tree.map(lambda v: v + 1, x)
    assert tree_util.tree_structure(x) == tree.structure(x)
    assert len(tree_util.__all__) == 38  # all of jax.tree_util, Registry and none_leaf_registry


# --- structures -------------------------------------------------------------------------------


def test_a_composed_structure_has_the_inner_one_at_each_leaf():
    composition = STRUCTURE.compose(tree.structure([0, (0,)]))

    assert composition == tree.structure({"a": [0, (0,)], "b": ([0, (0,)], None)})
    assert composition.num_leaves == 4


def test_composition_is_associative_and_has_a_leaf_for_its_identity():
    a, b, c = STRUCTURE, tree.structure([0, Tagged(0, "data")]), tree.structure([0, None])

    assert a.compose(b).compose(c) == a.compose(b.compose(c))
    assert a.compose(tree.structure(0)) == a == tree.structure(0).compose(a)


def test_a_walk_visits_children_before_their_node_and_gives_its_data():
    visits: list[Any] = []

    def node(children: tuple[Any, ...], data: Any) -> int:
        visits.append((children, data))
        return sum(children)

    total = tree.structure([Point(0, {"b": 0, "a": 0}), None, Tagged(0, "tag")]).walk(node, lambda x: 10 * x, range(4))

    assert total == 60
    assert visits == [((10, 20), ["a", "b"]), ((0, 30), Point), ((), None), ((30,), "tag"), ((30, 0, 30), None)]


def test_a_walk_without_a_function_of_leaves_takes_them_as_they_are():
    assert STRUCTURE.walk(lambda children, _: children, None, ["x", "y"]) == ("x", ("y", ()))


@pytest.mark.parametrize("number", [0, 1, 3])
def test_a_walk_over_another_number_of_leaves_is_refused(number: int):
    with pytest.raises(ValueError, match=f"2 leaves needed, {number} given"):
        STRUCTURE.walk(lambda children, _: children, None, range(number))


def test_iterables_give_the_children_of_each_level():
    assert STRUCTURE.from_iterable_tree([1, iter([2, ()])]) == {"a": 1, "b": (2, None)}
    assert tree.structure(Point(0, [0])).from_iterable_tree((3, (4,))) == Point(3, [4])
    with pytest.raises(ValueError, match="2 children needed, 1 given"):
        STRUCTURE.from_iterable_tree([1, [2]])


@pytest.mark.parametrize(
    "x", [{"a": 1, "b": 2}, [1, None], Point(1, ()), OrderedDict(b=1), defaultdict(int, b=1), Tagged(1, "data"), 3]
)
def test_a_structure_can_be_taken_apart_and_rebuilt(x: Any):
    treedef = tree.structure(x)
    parts = treedef.node_data(), treedef.children()

    assert tree.TreeDef.from_node_data_and_children(tree_util.default_registry, *parts) == treedef


def test_a_node_of_a_class_that_is_not_registered_is_refused():
    with pytest.raises(ArgumentError, match="cannot make a node of object"):
        tree.TreeDef.from_node_data_and_children(tree_util.default_registry, (object, None), [])


def test_structures_are_copied_and_pickled():
    treedef = tree.structure([Point(1, {"a": None}), defaultdict(list, x=2)])

    assert pickle.loads(pickle.dumps(treedef)) == copy.deepcopy(treedef) == treedef


def test_data_without_a_hash_is_left_to_equality():
    one, same, other = (tree.structure(Tagged(0, data)) for data in ([2], [2], [3]))

    assert hash(one) == hash(same) == hash(other)
    assert one == same
    assert one != other


# --- classes ----------------------------------------------------------------------------------


def test_a_class_with_keys_needs_no_tree_flatten():
    @tree_util.register_pytree_with_keys_class
    class Pair:
        def __init__(self, *children: Any):
            self.children = children

        def tree_flatten_with_keys(self) -> Any:
            return [(tree.DictKey(i), child) for i, child in enumerate(self.children)], None

        @classmethod
        def tree_unflatten(cls, data: None, children: Any) -> Pair:
            return cls(*children)

    assert tree.map(operator.neg, Pair(1, [2])).children == (-1, [-2])
    assert [tree.keystr(path) for path, _ in tree.leaves_with_path(Pair(1, [2]))] == ["[0]", "[1][0]"]


def test_a_class_without_its_methods_is_refused():
    with pytest.raises(ArgumentError, match="methods tree_flatten_with_keys and tree_unflatten required"):
        tree_util.register_pytree_with_keys_class(type("Bare", (), {}))


def test_a_static_field_is_data():
    @functools.partial(tree.register_dataclass)
    @dataclass
    class Dense:
        w: float
        activation: str = tree.static(default="relu", metadata={"doc": "by name"})

    assert tree.map(operator.neg, Dense(1.0)) == Dense(-1.0)
    assert tree.structure(Dense(1.0)) != tree.structure(Dense(1.0, "tanh"))


# --- bound functions --------------------------------------------------------------------------


def test_a_partial_is_one_of_functools():
    partial = tree.Partial(divmod, 7)

    assert isinstance(partial, functools.partial)
    assert partial(2) == (3, 1)
    assert pickle.loads(pickle.dumps(partial))(2) == (3, 1)


def test_arguments_bound_by_a_plain_partial_are_part_of_the_function():
    plain = functools.partial(operator.mod, "%s")

    assert tree.leaves(tree.Partial(plain, 3)) == [3]
    assert tree.Partial(plain, 3)() == "3"
    assert tree.structure(tree.Partial(plain, 3)) == tree.structure(tree.Partial(plain, 4))


def test_a_partial_is_an_argument_of_a_jitted_function():
    assert rune.jit(lambda f, x: f(x))(tree.Partial(operator.mul, 3.0), 2.0) == 6.0


# --- registries -------------------------------------------------------------------------------


def test_none_is_a_leaf_for_a_registry_created_that_way():
    leaves, treedef = tree_util.none_leaf_registry.flatten([1, None, (2,)])

    assert leaves == [1, None, 2]
    assert treedef == tree.structure([0, 0, (0,)])
    assert tree_util.none_leaf_registry.flatten([1, (None, 2)], lambda x: isinstance(x, tuple))[0] == [1, (None, 2)]
    assert tree_util.default_registry.flatten([1, None, (2,)])[0] == [1, 2]


def test_a_registry_takes_a_node_apart_by_one_level():
    registry = tree_util.default_registry

    assert registry.flatten_one_level({"b": 1, "a": [2]}) == ([[2], 1], ("a", "b"))
    assert registry.flatten_one_level_with_keys([5]) == ([(tree.SequenceKey(0), 5)], None)
    assert registry.flatten_one_level(3) is registry.flatten_one_level_with_keys(3) is None
    assert tree_util.none_leaf_registry.flatten_one_level(None) is None


def test_a_class_registered_in_one_registry_is_known_to_all():
    cls = type("Wrapped", (), {"x": 1})

    tree_util.default_registry.register_node(cls, lambda w: ((w.x,), None), lambda _, children: None)

    assert tree.leaves(cls()) == [1]
    assert tree_util.none_leaf_registry.is_node(cls)


def test_a_predicate_of_paths_stops_a_registry():
    pairs, _ = tree_util.default_registry.flatten_with_path([[1], [2]], lambda path, _: path == (tree.SequenceKey(1),))

    assert [leaf for _, leaf in pairs] == [1, [2]]
