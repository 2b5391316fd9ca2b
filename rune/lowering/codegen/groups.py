"""How many threads a group has, where the kernel leaves the choice to the launch."""

from __future__ import annotations

THREADS = 256  # of a group


def threads_of_group(points: int, cores: int, subgroup: int = 32) -> int:
    """Threads of a group: a small grid is spread over all cores rather than packed into few groups.

    >>> threads_of_group(1 << 20, 132), threads_of_group(1000, 132)
    (256, 32)
    """
    threads = subgroup
    while threads < THREADS and points > 2 * threads * cores:
        threads *= 2
    return threads


__all__ = ["THREADS", "threads_of_group"]
