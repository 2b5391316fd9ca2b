"""Trees: containers as leaves and structure, and back, for every kind of node.

First the rule of each container, then registration, key paths, the functions on trees, prefixes
and their errors. test_tree_laws.py has the laws.
"""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections import OrderedDict, defaultdict
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

import rune
from rune import tree
from rune.errors import ArgumentError


class Point(NamedTuple):
    x: Any
    y: Any


@dataclass
class Layer:
    weight: Any
    bias: Any
    name: str = "dense"


tree.register_dataclass(Layer, data_fields=["weight", "bias"], meta_fields=["name"])


# --- containers -------------------------------------------------------------------------------


def test_a_lone_value_is_a_leaf():
    assert tree.flatten(7) == ([7], tree.structure("any"))
    assert str(tree.structure(7)) == "PyTreeDef(*)"


def test_none_is_a_node_without_leaves():
    leaves, treedef = tree.flatten({"a": 1, "b": None})

    assert leaves == [1]
    assert str(treedef) == "PyTreeDef({'a': *, 'b': None})"
    assert treedef.unflatten([2]) == {"a": 2, "b": None}
    assert tree.leaves(None) == []


def test_is_leaf_can_catch_none():
    assert tree.leaves([1, None], is_leaf=lambda x: x is None) == [1, None]


def test_is_leaf_may_ask_for_the_path():
    x = {"a": [1, 2], "b": 3}
    stops = {"is_leaf": lambda path, node: len(path) == 1, "is_leaf_takes_path": True}

    assert [v for _, v in tree.leaves_with_path(x, **stops)] == [[1, 2], 3]
    assert tree.map_with_path(lambda path, v: len(path), x, **stops) == {"a": 1, "b": 1}


def test_is_leaf_stops_at_a_container():
    leaves, treedef = tree.flatten([(1, 2), 3], is_leaf=lambda x: isinstance(x, tuple))

    assert leaves == [(1, 2), 3]
    assert treedef == tree.structure([0, 0])


def test_dicts_flatten_by_sorted_key():
    assert tree.leaves({"b": 1, "a": 2, "c": 3}) == [2, 1, 3]
    assert tree.structure({"b": 1, "a": 2}) == tree.structure({"a": 1, "b": 2})


def test_a_dict_with_unsortable_keys_is_a_value_error():
    with pytest.raises(ValueError, match=r"cannot sort the keys of a dict .*keys \[1, 'a'\]"):
        tree.flatten({1: 0, "a": 0})


def test_ordered_dicts_flatten_by_insertion():
    tree_of_dict = OrderedDict(b=1, a=2)

    assert tree.leaves(tree_of_dict) == [1, 2]
    assert list(tree.map(str, tree_of_dict)) == ["b", "a"]


def test_default_dicts_flatten_by_sorted_key_and_keep_their_factory():
    default = defaultdict(list, b=1, a=2)

    assert tree.leaves(default) == [2, 1]
    assert tree.map(str, default) == {"a": "2", "b": "1"}
    assert tree.map(str, default).default_factory is list


def test_namedtuples_keep_their_type():
    double = tree.map(lambda x: 2 * x, Point(1, (2, 3)))

    assert double == Point(2, (4, 6))
    assert type(double) is Point
    assert str(tree.structure(Point(1, 2))) == "PyTreeDef(CustomNode(namedtuple[Point], [*, *]))"


def test_strings_and_subclasses_of_containers_are_leaves():
    class Settings(dict):
        pass

    assert tree.leaves(["ab", Settings(a=1)]) == ["ab", {"a": 1}]


def test_structures_print_as_jax_prints_them():
    assert str(tree.structure(((1,), [2, 3], ()))) == "PyTreeDef(((*,), [*, *], ()))"
    assert str(tree.structure({"a": 1, "b": None})) == "PyTreeDef({'a': *, 'b': None})"
    layer = Layer(1, 2, "a")
    assert str(tree.structure(layer)) == "PyTreeDef(CustomNode(Layer[('a',)], [*, *]))"


# --- structures -------------------------------------------------------------------------------


def test_equal_structures_compare_equal_and_have_equal_hashes():
    one, other = tree.structure({"a": (1, [2])}), tree.structure({"a": ("x", ["y"])})

    assert one == other
    assert hash(one) == hash(other)
    assert one is other


@pytest.mark.parametrize("other", [(1, 2, 3), [1, 2], (1, None), {"a": 1}, 5, (1, (2,))])
def test_other_structures_are_unequal(other: Any):
    assert tree.structure((1, 2)) != tree.structure(other)


def test_equal_but_distinct_keys_are_restored_as_they_were():
    assert list(tree.map(str, {1: 0})) == [1]
    assert type(next(iter(tree.map(str, {True: 0})))) is bool
    assert type(next(iter(tree.map(str, {1.0: 0})))) is float
    assert tree.structure({1: 0}) == tree.structure({True: 0})


def test_structures_survive_forgetting():
    before = tree.structure({"only here": (1, [2])})
    for size in range(5000):
        tree.structure({str(size): 0})
    after = tree.structure({"only here": (1, [2])})

    assert before == after
    assert hash(before) == hash(after)


def test_structures_pickle_and_copy():
    treedef = tree.structure({"a": (1, None), "b": Layer(1, 2)})

    assert pickle.loads(pickle.dumps(treedef)) == treedef
    assert copy.deepcopy(treedef) == treedef


def test_a_structure_counts_leaves_and_nodes():
    treedef = tree.structure({"a": (1, None), "b": 2})

    assert (treedef.num_leaves, treedef.num_nodes) == (2, 5)
    assert treedef.node_data() == (dict, ["a", "b"])
    assert treedef.children() == [tree.structure((1, None)), tree.structure(0)]


def test_unflatten_refuses_another_number_of_leaves():
    with pytest.raises(ValueError, match="2 leaves needed, 3 given"):
        tree.unflatten(tree.structure((0, 0)), [1, 2, 3])


# --- registration -----------------------------------------------------------------------------


def test_meta_fields_are_part_of_the_structure():
    assert tree.leaves(Layer(1, 2)) == [1, 2]
    assert tree.structure(Layer(1, 2, "a")) == tree.structure(Layer(3, 4, "a"))
    assert tree.structure(Layer(1, 2, "a")) != tree.structure(Layer(1, 2, "b"))


def test_meta_fields_need_no_hash():
    first, second, third = (tree.structure(Layer(1, 2, [x])) for x in "aab")  # type: ignore[arg-type]

    assert first == second != third
    assert hash(first) == hash(second)


def test_equal_but_distinct_metadata_are_restored_as_they_were():
    tree.structure(Layer(1, 2, 1))  # type: ignore[arg-type]

    assert tree.map(str, Layer(1, 2, True)).name is True  # type: ignore[arg-type]


def test_instances_inside_of_other_containers_are_flattened_too():
    tree.structure([Layer(1, 2, 1)])  # type: ignore[arg-type]

    assert tree.map(str, [Layer(1, 2, True)])[0].name is True  # type: ignore[arg-type]


def test_register_dataclass_decorates_and_reads_static_fields():
    @tree.register_dataclass
    @dataclass
    class Optimizer:
        rate: float
        kind: str = dataclasses.field(metadata={"static": True}, default="sgd")

    assert tree.leaves(Optimizer(0.1)) == [0.1]
    assert tree.map(lambda x: 2 * x, Optimizer(0.1, "adam")) == Optimizer(0.2, "adam")


def test_a_dataclass_without_fields_is_a_node_without_children():
    @tree.register_dataclass
    @dataclass(frozen=True)
    class Defaults:
        pass

    assert tree.leaves((Defaults(), 3)) == [3]
    assert tree.map(str, (Defaults(), 3)) == (Defaults(), "3")
    with pytest.raises(ValueError, match=r"unknown \['c'\]"):
        tree.register_dataclass(Defaults, data_fields=["c"], meta_fields=[])


def test_register_dataclass_names_missing_and_unknown_fields():
    @dataclass
    class Pair:
        a: int
        b: int

    with pytest.raises(ValueError, match=r"missing \['b'\], unknown \['c'\]"):
        tree.register_dataclass(Pair, data_fields=["a", "c"], meta_fields=[])


def test_register_node_gives_children_flat_indices_as_keys():
    class Box:
        def __init__(self, *items: Any):
            self.items = items

    tree.register_node(Box, lambda box: (box.items, None), lambda _, items: Box(*items))
    path, leaf = tree.leaves_with_path([Box(1, 2)])[1]

    assert leaf == 2
    assert tree.keystr(path) == "[0][<flat index 1>]"


def test_register_node_with_keys_names_its_children():
    class Pair:
        def __init__(self, first: Any, second: Any):
            self.x, self.y = first, second

    tree.register_node_with_keys(
        Pair,
        lambda p: ([(tree.GetAttrKey("x"), p.x), (tree.GetAttrKey("y"), p.y)], None),
        lambda _, children: Pair(*children),
    )

    assert [tree.keystr(path) for path, _ in tree.leaves_with_path(Pair(1, [2]))] == [".x", ".y[0]"]
    assert tree.map(str, Pair(1, [2])).y == ["2"]


def test_register_node_class_uses_the_methods_of_the_class():
    @tree.register_node_class
    class Wrapped:
        def __init__(self, value: Any):
            self.value = value

        def tree_flatten(self):
            return (self.value,), "tag"

        @classmethod
        def tree_unflatten(cls, data: str, children: tuple[Any]):
            assert data == "tag"
            return cls(*children)

    assert tree.map(lambda x: x + 1, Wrapped(1)).value == 2


def test_a_static_class_has_no_leaves():
    @tree.register_static
    @dataclass(frozen=True)
    class Mode:
        name: str

    assert tree.leaves(Mode("train")) == []
    assert tree.structure(Mode("train")) == tree.structure(Mode("train"))
    assert tree.structure(Mode("train")) != tree.structure(Mode("test"))
    assert tree.map(str, [Mode("train"), 1]) == [Mode("train"), "1"]


def test_a_class_cannot_be_registered_twice():
    with pytest.raises(ValueError, match="cannot register Layer"):
        tree.register_static(Layer)
    with pytest.raises(ValueError, match="cannot register dict"):
        tree.register_static(dict)


def test_a_class_can_be_registered_after_it_was_met_as_a_leaf():
    class Late:
        pass

    assert len(tree.leaves(Late())) == 1
    tree.register_static(Late)
    assert tree.leaves(Late()) == []


def test_a_partial_is_a_node_that_can_be_called():
    partial = tree.Partial(lambda x, y, *, z: (x, y, z), 1, z=3)

    assert tree.leaves(partial) == [1, 3]
    assert partial(2) == (1, 2, 3)
    assert tree.map(lambda x: 10 * x, partial)(2) == (10, 2, 30)
    assert tree.leaves(tree.Partial(partial, 2)) == [1, 2, 3]


# --- key paths --------------------------------------------------------------------------------


def test_key_paths_print_as_python_would_write_them():
    leaves = tree.leaves_with_path({"a": [0, Layer(1, Point(2, 3))]})

    assert [tree.keystr(path) for path, _ in leaves] == [
        "['a'][0]",
        "['a'][1].weight",
        "['a'][1].bias.x",
        "['a'][1].bias.y",
    ]


def test_simple_key_paths_leave_out_the_brackets():
    (path, _), *_ = tree.leaves_with_path({"a": [Point(1, 2)]})

    assert tree.keystr(path, simple=True, separator="/") == "a/0/x"


def test_ordered_dicts_and_default_dicts_have_their_own_keys():
    leaves = tree.leaves_with_path([OrderedDict(b=1, a=2), defaultdict(int, d=3, c=4)])

    assert "".join(tree.keystr(p) for p, _ in leaves) == "[0]['b'][0]['a'][1]['c'][1]['d']"


def test_map_with_path_passes_the_path_first():
    paths_and_sums = tree.map_with_path(lambda p, x, y: (tree.keystr(p), x + y), [1, (2,)], [10, (20,)])

    assert paths_and_sums == [("[0]", 11), (("[1][0]", 22),)]


# --- functions --------------------------------------------------------------------------------


def test_map_gives_f_the_subtrees_of_the_rest():
    assert tree.map(lambda x, sub: (x, len(sub)), [1, 2], [(3, 4), "abc"]) == [(1, 2), (2, 3)]


def test_reduce_folds_from_the_left():
    assert tree.reduce(lambda text, x: text + str(x), {"b": 2, "a": 1}, "") == "12"
    assert tree.reduce(lambda a, b: a - b, [10, (2, 3)]) == 5
    with pytest.raises(TypeError):
        tree.reduce(lambda a, b: a, [])


def test_all_checks_every_leaf():
    assert tree.all([True, (1, None)])
    assert not tree.all([True, (0,)])
    assert tree.all([])


def test_transpose_turns_a_tree_inside_out():
    pairs = {"a": (1, [2]), "b": (3, [4])}

    assert tree.transpose(tree.structure({"a": 0, "b": 0}), None, pairs) == ({"a": 1, "b": 3}, [{"a": 2, "b": 4}])


def test_transpose_refuses_trees_deeper_than_declared():
    with pytest.raises(TypeError, match="transpose: cannot reach leaves"):
        tree.transpose(tree.structure([0]), tree.structure((0,)), [((1, 2),)])


# --- prefixes ---------------------------------------------------------------------------------


def test_a_prefix_leaf_applies_to_all_leaves_below():
    full = ({"a": 1, "b": [2, 3]}, 4)

    assert tree.broadcast_prefix((0, 1), full) == [0, 0, 0, 1]
    assert tree.broadcast_prefix("x", full) == ["x"] * 4
    assert tree.broadcast_prefix(({"a": 5, "b": 6}, 7), full) == [5, 6, 6, 7]


def test_none_in_a_prefix_matches_only_none_unless_is_leaf_accepts_it():
    with pytest.raises(ArgumentError, match=r"prefix\[1\] is None, tree\[1\] is a leaf of type int"):
        tree.broadcast_prefix((0, None), (1, 2))

    assert tree.broadcast_prefix((0, None), (1, 2), is_leaf=lambda x: x is None) == [0, None]


@pytest.mark.parametrize(
    ("prefix", "full", "message"),
    [
        ((0, 0), (1, 2, 3), "prefix is a tuple of 2, tree is a tuple of 3"),
        ({"a": (0,)}, {"a": [1]}, "prefix['a'] is a tuple of 1, tree['a'] is a list of 1"),
        ({"a": 0}, {"b": 1}, "only the prefix has ['a'], only the tree has ['b']"),
        (Point(0, [0]), Point(1, 2), "prefix.y is a list of 1, tree.y is a leaf of type int"),
        (Layer(0, 0, "a"), Layer(0, 0, "b"), "with data ('a',), tree is a Layer of 2 with data"),
    ],
)
def test_a_mismatch_names_both_key_paths_and_the_difference(prefix: Any, full: Any, message: str):
    with pytest.raises(ArgumentError) as error:
        tree.broadcast_prefix(prefix, full)

    assert message in str(error.value)


def test_ordered_dicts_in_another_order_do_not_match():
    with pytest.raises(ArgumentError, match="another order"):
        tree.map(lambda x, y: x, OrderedDict(a=1, b=2), OrderedDict(b=1, a=2))


def test_a_fold_of_no_leaves_needs_an_identity():
    assert tree.reduce_associative(str.__add__, (), identity="") == ""
    with pytest.raises(ArgumentError, match="cannot fold a tree without leaves"):
        tree.reduce_associative(str.__add__, None)


def test_a_leaf_cannot_be_flattened_by_one_level():
    with pytest.raises(ArgumentError, match=r"flatten_one_level: cannot flatten a leaf \(int\)"):
        tree.flatten_one_level(3)


def test_static_data_that_cannot_be_copied_are_kept_by_reference():
    @rune.tree_util.register_pytree_node_class
    class State:  # as NetKet's, whose settings are a view of a mapping
        def __init__(self, samples: Any, settings: Any):
            self.samples, self.settings = samples, settings

        def tree_flatten(self) -> tuple[Any, Any]:
            return (self.samples,), self.settings

        @classmethod
        def tree_unflatten(cls, settings: Any, children: Any) -> State:
            return cls(children[0], settings)

    double = rune.jit(lambda state: state.samples * state.settings["rates"][0])

    assert [float(double(State(3.0, MappingProxyType({"rates": [rate]})))) for rate in (2, 2, 5)] == [6.0, 6.0, 15.0]
