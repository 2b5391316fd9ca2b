"""`jax.custom_derivatives`."""

from rune import SymbolicZero, closure_convert, custom_gradient, custom_jvp, custom_vjp, linear_call, zero_from_primal
from rune import tree as trees
from rune.transforms.custom.jvp import custom_jvp_call as custom_jvp_call_p
from rune.transforms.custom.vjp import CustomVJPPrimal
from rune.transforms.custom.vjp import custom_vjp_call as custom_vjp_call_p


def custom_vjp_primal_tree_values(tree: object) -> object:
    """A tree of CustomVJPPrimal objects as the tree of their values."""
    return trees.map(lambda x: x.value, tree, is_leaf=lambda x: isinstance(x, CustomVJPPrimal))
