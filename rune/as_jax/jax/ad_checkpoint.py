"""`jax.ad_checkpoint`."""

from rune import checkpoint_name, checkpoint_policies
from rune.debug import print_saved_residuals
