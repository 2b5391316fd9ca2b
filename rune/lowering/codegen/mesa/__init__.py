"""What SPIR-V for Mesa's processors has beyond that for GPUs."""
