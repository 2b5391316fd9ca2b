"""`jax.ad_checkpoint`."""

from rune import checkpoint_name, checkpoint_policies
from rune.debug import print_saved_residuals

__all__ = ["checkpoint_name", "checkpoint_policies", "print_saved_residuals"]
