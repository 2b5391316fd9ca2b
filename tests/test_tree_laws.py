"""The laws of trees, over nested containers of all kinds."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, namedtuple
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rune import tree, tree_util
from tests.test_tree import Layer, Point

Loose = namedtuple("Loose", ["first", "second"])


def trees():
    keys = st.one_of(st.text(max_size=3), st.sampled_from(["a", "b"]))
    return st.recursive(
        st.one_of(st.integers(), st.text(max_size=2), st.booleans(), st.none()),
        lambda t: st.one_of(
            st.lists(t, max_size=3),
            st.lists(t, max_size=3).map(tuple),
            st.dictionaries(keys, t, max_size=3),
            st.dictionaries(st.integers(), t, max_size=3),
            st.dictionaries(keys, t, max_size=3).map(OrderedDict),
            st.dictionaries(keys, t, max_size=3).map(lambda d: defaultdict(int, d)),
            st.tuples(t, t).map(lambda pair: Point(*pair)),
            st.tuples(t, t).map(lambda pair: Loose(*pair)),
            st.tuples(t, t).map(lambda pair: Layer(*pair)),
        ),
        max_leaves=12,
    )


@given(trees())
def test_unflatten_undoes_flatten(x: Any):
    leaves, treedef = tree.flatten(x)
    copy = treedef.unflatten(leaves)

    assert copy == x
    assert type(copy) is type(x)
    assert treedef.num_leaves == len(leaves)


@given(trees())
def test_a_structure_depends_on_no_leaf(x: Any):
    treedef = tree.structure(x)
    other = tree.structure(tree.map(lambda _: "leaf", x))

    assert treedef == other
    assert hash(treedef) == hash(other)
    assert str(treedef) == str(other)


@given(trees())
def test_paths_and_is_leaf_change_no_order(x: Any):
    leaves, treedef = tree.flatten(x)
    pairs, with_paths = tree.flatten_with_path(x)

    assert [leaf for _, leaf in pairs] == leaves
    assert with_paths == treedef
    assert tree.flatten(x, is_leaf=lambda _: False) == (leaves, treedef)
    assert len({tree.keystr(path) for path, _ in pairs}) == len(leaves)


@given(trees())
def test_every_tree_is_a_prefix_of_itself(x: Any):
    assert tree.structure(x).flatten_up_to(x) == tree.leaves(x)
    assert tree.broadcast_prefix(x, x) == tree.leaves(x)


@given(trees())
def test_mapping_composes(x: Any):
    twice = tree.map(lambda y: (y,), tree.map(str, x))

    assert twice == tree.map(lambda y: (str(y),), x)


@given(trees())
def test_a_node_comes_apart_into_children_one_level_down(x: Any):
    if tree.is_tree_node(type(x)):
        children, _ = tree.flatten_one_level(x)
        pairs, _ = tree.flatten_one_level_with_keys(x)
        below = tree_util.treedef_children(tree.structure(x))

        assert [tree.structure(child) for child in children] == below
        assert [leaf for child in children for leaf in tree.leaves(child)] == tree.leaves(x)
        assert [(key,) for key, child in pairs if tree.all_leaves([child])] == [
            path for path, _ in tree.leaves_with_path(x) if len(path) == 1
        ]
    else:
        assert tree_util.treedef_is_leaf(tree.structure(x))


@given(trees(), trees())
def test_a_prefix_broadcasts_to_the_structure_of_the_whole(x: Any, y: Any):
    broadcast = tree.map(lambda _: y, x)

    assert tree.structure(tree.broadcast(x, broadcast)) == tree.structure(broadcast)
    assert tree.broadcast(x, x) == x


@given(st.lists(st.text(max_size=2), min_size=1))
def test_an_associative_fold_is_the_fold_from_the_left(words: list[str]):
    assert tree.reduce_associative(str.__add__, words) == tree.reduce(str.__add__, words)


@pytest.mark.parametrize("walk", [tree.flatten, tree.leaves, tree.flatten_with_path])
def test_is_leaf_is_called_for_nodes_and_leaves(walk: Any):
    nodes: list[object] = []

    walk({"a": [1, None], "b": (2.0,)}, is_leaf=lambda x: nodes.append(x) or False)

    assert nodes == [{"a": [1, None], "b": (2.0,)}, [1, None], 1, None, (2.0,), 2.0]  # as JAX 0.10.2
