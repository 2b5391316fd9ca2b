"""`jax._src.distributed`: this process among others (Orbax)."""

from __future__ import annotations

from jax.distributed import initialize, is_initialized, shutdown

from rune import absent, processes

__getattr__ = absent.of(__name__)


class State:
    """The state of JAX's client and server. Rune's processes meet without either."""

    client = None
    service = None
    coordinator_address = None
    preemption_sync_manager = None

    @property
    def process_id(self) -> int:
        """The number of this process."""
        return processes.current().index

    @property
    def num_processes(self) -> int:
        """The number of processes."""
        return processes.current().count


global_state = State()
