"""Programs that run as several processes, started by `mpirun -n 4 python train.py`.

    rune.distributed.initialize()
    share = data[rune.distributed.process_index() :: rune.distributed.process_count()]
    losses = rune.distributed.process_allgather(loss(share))

Every process runs the same program. If one process calls another function than the others, fails or
leaves, the call ends in all processes with an error that names that process. The names are those of
jax.distributed and jax.experimental.multihost_utils.
"""

from rune.distributed.checkpoints import load_checkpoint as load_checkpoint
from rune.distributed.checkpoints import save_checkpoint as save_checkpoint
from rune.distributed.exchanges import broadcast_one_to_all as broadcast_one_to_all
from rune.distributed.exchanges import process_allgather as process_allgather
from rune.distributed.exchanges import sync_global_devices as sync_global_devices
from rune.distributed.world import devices as devices
from rune.distributed.world import initialize as initialize
from rune.distributed.world import is_initialized as is_initialized
from rune.distributed.world import process_count as process_count
from rune.distributed.world import process_index as process_index
from rune.distributed.world import shutdown as shutdown
from rune.listing import names as _names

__all__ = ["broadcast_one_to_all", "devices", "initialize", "is_initialized", "load_checkpoint"]
__all__ += ["process_allgather", "process_count", "process_index", "save_checkpoint", "shutdown"]
__all__ += ["sync_global_devices"]

__dir__ = _names(globals())
